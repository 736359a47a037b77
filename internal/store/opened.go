package store

import (
	"context"
	"sync"
	"time"
)

// opened is a database that is open, or why it is not.
type opened[E any] struct {
	mu      sync.Mutex // guards what follows
	engine  *E         // nil while the database is not open
	err     error      // why not; nil before the first attempt has ended
	since   time.Time  // when it was open last
	changed chan struct{}
}

func notOpened[E any]() opened[E] { return opened[E]{changed: make(chan struct{})} }

// become says what the database is now. It is called with mu.
func (o *opened[E]) become(e *E, err error) {
	if o.engine != nil && e == nil {
		o.since = time.Now()
	}
	o.engine, o.err = e, err
	close(o.changed)
	o.changed = make(chan struct{})
}

// set is become without mu.
func (o *opened[E]) set(e *E, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.become(e, err)
}

// now is the database as it is, and what is closed when that changes.
func (o *opened[E]) now() (e *E, changed <-chan struct{}, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.engine, o.changed, o.err
}

// away is how long ago the database was open; very long when it never was.
func (o *opened[E]) away() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return time.Since(o.since)
}

// use waits until it is known whether the database is open.
func (o *opened[E]) use(ctx context.Context) (*E, error) {
	for {
		e, changed, err := o.now()
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
