package session

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// Queue is what waits for one reader, in order and bounded. Who puts something
// in never waits. Its zero value takes nothing; fields are set before its first
// use.
type Queue struct {
	Max   int // events
	Bytes int // of their params, together
	// DropOldest makes room for what comes by dropping the oldest that waits;
	// else what does not fit is dropped itself.
	DropOldest bool
	// Unique leaves out what waits already.
	Unique bool

	mu       sync.Mutex // guards what follows
	events   []Event
	size     int
	come     chan struct{} // cap 1: there is something
	attached bool
}

// attachedRoom is how many times as much waits for a reader who is there.
const attachedRoom = 4

// Put queues e as it is, and reports whether there was room for it. Who has it
// for a while only puts a Clone.
func (q *Queue) Put(e Event) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, most, bytes := len(e.Params), q.Max, q.Bytes
	if q.attached { // it is on its way, and anything gets through one by one
		most, bytes = attachedRoom*most, max(attachedRoom*bytes, n)
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
	q.wake()
	return true
}

// Attached reports whether there is a reader.
func (q *Queue) Attached() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.attached
}

// ErrHasReader is what a second reader is refused with.
var ErrHasReader = errors.New("the session has a stream already")

// Read hands on what waits and what comes, until ctx or done ends; cause returns
// why done did. opened is called when the caller is the reader: there is one at a
// time.
func (q *Queue) Read(ctx context.Context, done <-chan struct{}, say func(Event), opened func(), cause func() error) error {
	if !q.attach() {
		return ErrHasReader
	}
	defer q.detach()
	opened()
	handOn := func() {
		for _, e := range q.Take() {
			say(e)
		}
	}
	for come := q.Come(); ; {
		handOn()
		select {
		case <-come:
		case <-ctx.Done():
			return ctx.Err()
		case <-done:
			handOn() // what was said last
			return cause()
		}
	}
}

// Take returns all that waits.
func (q *Queue) Take() []Event {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := q.events
	q.events, q.size = nil, 0
	return all
}

// Reset empties the queue for another use.
func (q *Queue) Reset() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.events, q.size, q.attached = nil, 0, false
	select {
	case <-q.come:
	default:
	}
}

// Come returns the channel on which a reader is woken when there is something
// to take. It may be woken for nothing.
func (q *Queue) Come() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.make()
	return q.come
}

func (q *Queue) attach() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.attached {
		return false
	}
	q.attached = true
	return true
}

func (q *Queue) detach() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.attached = false
}

// wake signals come; the lock is held.
func (q *Queue) wake() {
	q.make()
	select {
	case q.come <- struct{}{}:
	default:
	}
}

func (q *Queue) make() {
	if q.come == nil {
		q.come = make(chan struct{}, 1)
	}
}
