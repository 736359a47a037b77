package store

import (
	"context"
	"sync"
	"time"
)

// openState contains the engine of an open database, or the reason why the database is not open.
type openState[E any] struct {
	mu       sync.Mutex // guards the fields below
	engine   *E         // nil while the database is not open
	err      error      // why the database is not open; nil before the first attempt has ended
	closedAt time.Time  // the last time at which the database was open
	changed  chan struct{}
}

func newOpenState[E any]() openState[E] { return openState[E]{changed: make(chan struct{})} }

// setStateLocked publishes a new state. The caller must hold mu.
func (o *openState[E]) setStateLocked(e *E, err error) {
	if o.engine != nil && e == nil {
		o.closedAt = time.Now()
	}
	o.engine, o.err = e, err
	close(o.changed)
	o.changed = make(chan struct{})
}

// setState publishes a new state.
func (o *openState[E]) setState(e *E, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.setStateLocked(e, err)
}

// current returns the state, and a channel that is closed when the state changes.
func (o *openState[E]) current() (e *E, changed <-chan struct{}, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.engine, o.changed, o.err
}

// timeSinceClosed returns how long ago the database was open, or a very long time if it never was.
func (o *openState[E]) timeSinceClosed() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return time.Since(o.closedAt)
}

// waitOpen waits until the database is open or has failed to open.
func (o *openState[E]) waitOpen(ctx context.Context) (*E, error) {
	for {
		e, changed, err := o.current()
		if e != nil || err != nil {
			return e, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
