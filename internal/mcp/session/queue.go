package session

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// EventQueue is a bounded FIFO of events for one reader. Put never blocks. The zero value accepts no event. Set the
// fields before the first use.
type EventQueue struct {
	Max   int // maximum number of events
	Bytes int // maximum total size of params
	// DropOldest drops the oldest event when the queue is full; otherwise the new one is dropped.
	DropOldest bool
	// Unique drops an event if an equal one is already queued.
	Unique bool

	mu       sync.Mutex // guards the following fields
	events   []Event
	size     int
	ready    chan struct{} // capacity 1: the queue is not empty
	attached bool
}

// attachedFactor multiplies the limits while a reader is attached.
const attachedFactor = 4

// Put queues e without copying it and reports whether there was room. A caller that does not own e must pass a Clone.
func (q *EventQueue) Put(e Event) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, most, bytes := len(e.Params), q.Max, q.Bytes
	if q.attached { // a reader drains the queue, so an event of any size is accepted
		most, bytes = attachedFactor*most, max(attachedFactor*bytes, n)
	}
	if most == 0 || n > bytes {
		return false
	}
	if q.Unique && slices.ContainsFunc(q.events, func(w Event) bool { return w.Method == e.Method && string(w.Params) == string(e.Params) }) {
		return true
	}
	for len(q.events) > 0 && (len(q.events) >= most || q.size+n > bytes) {
		if !q.DropOldest {
			return false
		}
		q.size -= len(q.events[0].Params)
		q.events = q.events[1:]
	}
	q.events = append(q.events, e)
	q.size += n
	q.signalReady()
	return true
}

// HasReader reports whether there is a reader.
func (q *EventQueue) HasReader() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.attached
}

// ErrHasReader is the error for a second reader.
var ErrHasReader = errors.New("the session has a stream already")

// PassEvents passes queued and new events to say until ctx ends or done is closed. cause returns the error for done.
// opened is called when the caller has become the only reader.
func (q *EventQueue) PassEvents(ctx context.Context, done <-chan struct{}, say func(Event), opened func(), cause func() error) error {
	if !q.attachReader() {
		return ErrHasReader
	}
	defer q.detachReader()
	opened()
	handOn := func() {
		for _, e := range q.TakeAll() {
			say(e)
		}
	}
	for come := q.ReadyChannel(); ; {
		handOn()
		select {
		case <-come:
		case <-ctx.Done():
			return ctx.Err()
		case <-done:
			handOn() // the last events
			return cause()
		}
	}
}

// TakeAll removes and returns all events.
func (q *EventQueue) TakeAll() []Event {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := q.events
	q.events, q.size = nil, 0
	return all
}

// Reset empties the queue for reuse.
func (q *EventQueue) Reset() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.events, q.size, q.attached = nil, 0, false
	select {
	case <-q.ready:
	default:
	}
}

// ReadyChannel returns the channel that wakes the reader. It may wake the reader without an event.
func (q *EventQueue) ReadyChannel() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ensureReadyChannel()
	return q.ready
}

func (q *EventQueue) attachReader() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.attached {
		return false
	}
	q.attached = true
	return true
}

func (q *EventQueue) detachReader() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.attached = false
}

// signalReady signals ready. The lock is held.
func (q *EventQueue) signalReady() {
	q.ensureReadyChannel()
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

func (q *EventQueue) ensureReadyChannel() {
	if q.ready == nil {
		q.ready = make(chan struct{}, 1)
	}
}
