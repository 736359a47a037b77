package mcpserver

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// SessionStore stores the part of sessions that survives a restart.
type SessionStore interface {
	// SessionKey returns the key that signs session IDs. Without one it stores key.
	SessionKey(ctx context.Context, key []byte) (stored []byte, err error)
	// SaveEndedSessions stores record IDs of sessions that must not be rebuilt, each until a time.
	SaveEndedSessions(ctx context.Context, until map[string]time.Time) error
	// IsSessionEnded reports whether a session was saved as ended.
	IsSessionEnded(ctx context.Context, record string) (bool, error)
}

const (
	// keyWaitToOpen limits the time for which initialize waits for the key after a start. Without it the session cannot
	// be rebuilt.
	keyWaitToOpen   = 2 * time.Second
	storeRetryPause = time.Second
	// saveWait is how long DELETE waits for the store.
	saveWait = time.Second
	// maxUnsavedEnds limits the ended sessions that wait to be saved.
	maxUnsavedEnds = 10_000
)

// sessionRestorer contains the data for rebuilding sessions: the key of their IDs, and the IDs of sessions that have
// ended permanently.
type sessionRestorer struct {
	store  SessionStore // nil: no session is rebuilt
	loaded chan struct{}
	key    []byte // set before loaded is closed
	flight singleflight.Group
	wake   chan struct{} // sessions wait to be saved
	saving chan struct{} // holds a value while they are saved

	mu      sync.Mutex           // guards unsaved
	unsaved map[string]time.Time // ended sessions, by record ID
}

func newSessionRestorer(s SessionStore) *sessionRestorer {
	return &sessionRestorer{store: s, loaded: make(chan struct{}), wake: make(chan struct{}, 1), saving: make(chan struct{}, 1),
		unsaved: map[string]time.Time{}}
}

// run loads the key and saves ended sessions, until ctx ends.
func (r *sessionRestorer) run(ctx context.Context) {
	if r.store == nil {
		return
	}
	retry := time.NewTimer(0)
	defer retry.Stop()
	for isLoaded := false; ; {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			_ = r.saveEnded(last) // otherwise they can be rebuilt
			cancel()
			return
		case <-r.wake:
		case <-retry.C:
		}
		var err error
		if !isLoaded {
			err = r.loadKey(ctx)
			isLoaded = err == nil
		}
		if errors.Join(err, r.saveEnded(ctx)) != nil {
			retry.Reset(storeRetryPause)
		}
	}
}

func (r *sessionRestorer) loadKey(ctx context.Context) error {
	proposed := make([]byte, 32)
	_, _ = rand.Read(proposed) // never fails
	key, err := r.store.SessionKey(ctx, proposed)
	if err == nil {
		r.key = key
		close(r.loaded)
	}
	return err
}

// waitKey returns the key; nil if it is not loaded in time.
func (r *sessionRestorer) waitKey(ctx context.Context, limit time.Duration) []byte {
	select {
	case <-r.loaded:
		return r.key
	default:
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-r.loaded:
		return r.key
	case <-ctx.Done():
	case <-timer.C:
	}
	return nil
}

// storeKeyAgain stores the key in a database that may be a new one.
func (r *sessionRestorer) storeKeyAgain(ctx context.Context) error {
	select {
	case <-r.loaded:
		_, err := r.store.SessionKey(ctx, r.key)
		return err
	default:
		return nil // not loaded yet
	}
}

// awaitSaved waits for a while until the ended sessions are saved.
func (r *sessionRestorer) awaitSaved(ctx context.Context) {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveWait)
	defer cancel()
	_ = r.saveEnded(limited) // run tries again
}

// markEnded prevents that a session is rebuilt: immediately in this process, and soon after in the store.
func (r *sessionRestorer) markEnded(record string, until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.unsaved) >= maxUnsavedEnds {
		for one := range r.unsaved { // the store is away for long
			delete(r.unsaved, one)
			break
		}
	}
	r.unsaved[record] = until
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// saveEnded saves the ended sessions, several at a time.
func (r *sessionRestorer) saveEnded(ctx context.Context) error {
	select {
	case r.saving <- struct{}{}:
		defer func() { <-r.saving }()
	case <-ctx.Done():
		return ctx.Err()
	}
	r.mu.Lock()
	batch := maps.Clone(r.unsaved)
	r.mu.Unlock()
	if len(batch) == 0 {
		return nil
	}
	if err := r.store.SaveEndedSessions(ctx, batch); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for record := range batch {
		delete(r.unsaved, record)
	}
	return nil
}

// isEnded reports whether a session must not be rebuilt.
func (r *sessionRestorer) isEnded(ctx context.Context, record string) (bool, error) {
	r.mu.Lock()
	_, unsaved := r.unsaved[record]
	r.mu.Unlock()
	if unsaved {
		return true, nil
	}
	return r.store.IsSessionEnded(ctx, record)
}

// Run stores changes of sessions for the next process, until ctx ends.
func (s *Server) Run(ctx context.Context) { s.restorer.run(ctx) }

// StoreSessionKeyAgain stores the key of session IDs again: the store may have lost it.
func (s *Server) StoreSessionKeyAgain(ctx context.Context) error {
	return s.restorer.storeKeyAgain(ctx)
}
