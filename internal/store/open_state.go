package store

import (
	"context"
	"sync"
	"time"
)

// openState is a database that is open, or why it is not.
type openState[E any] struct {
	mu       sync.Mutex // guards what follows
	engine   *E         // nil while the database is not open
	err      error      // why not; nil before the first attempt has ended
	lastOpen time.Time  // when it was open last
	changed  chan struct{}
}

func newOpenState[E any]() openState[E] { return openState[E]{changed: make(chan struct{})} }

// setStateLocked says what the database is now. It is called with mu.
func (o *openState[E]) setStateLocked(e *E, err error) {
	if o.engine != nil && e == nil {
		o.lastOpen = time.Now()
	}
	o.engine, o.err = e, err
	close(o.changed)
	o.changed = make(chan struct{})
}

// setState is become without mu.
func (o *openState[E]) setState(e *E, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.setStateLocked(e, err)
}

// current is the database as it is, and what is closed when that changes.
func (o *openState[E]) current() (e *E, changed <-chan struct{}, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.engine, o.changed, o.err
}

// timeSinceOpen is how long ago the database was open; very long when it never was.
func (o *openState[E]) timeSinceOpen() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return time.Since(o.lastOpen)
}

// waitOpen waits until it is known whether the database is open.
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
