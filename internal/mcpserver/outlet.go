package mcpserver

import (
	"io"
	"sync"
	"time"

	"mcpproxy/internal/mcp/session"
)

const (
	// writeTimeout limits how long a client may take to read a reply. The buffers of a connection may be
	// full for a small reply, too.
	writeTimeout = 30 * time.Second
	// maxQueued limits the queue for a client that does not read, in bytes. Progress over the limit is
	// dropped; the reply always fits.
	maxQueued = 1 << 20
	// onePiece is the size up to which queue and pieces are written together, in bytes.
	onePiece = 32 << 10
)

// outlet writes events and replies of several goroutines to one client. Events are queued and written by
// the next writer: the reader of a server's connection never waits for a client unless it asks to. Replies
// are written by the goroutine that has them, so a client that does not read delays only its own requests.
type outlet struct {
	to     io.Writer
	frame  func(session.Event) []byte
	failed func() // called when writing fails

	writeSlot chan struct{} // cap 1: the holder may write
	buf       []byte        // of the writer

	ending sync.Once
	ended  chan struct{} // closed when writing has ended

	mu      sync.Mutex // guards the following fields, and the start of writers
	queue   []byte     // events
	taken   chan struct{}
	opened  bool // an event was queued
	closed  bool // accepts no more events
	writers sync.WaitGroup
}

// flush writes the queue and then the pieces. It returns when they are written or writing has failed.
func (o *outlet) flush(pieces ...[]byte) {
	select {
	case o.writeSlot <- struct{}{}:
		defer func() { <-o.writeSlot }()
	case <-o.ended:
		return
	}
	var room [9][]byte
	all := append(append(room[:0], o.take()), pieces...)
	size := 0
	for _, p := range all {
		size += len(p)
	}
	if size <= onePiece {
		o.buf = o.buf[:0]
		for _, p := range all {
			o.buf = append(o.buf, p...)
		}
		all = append(room[:0], o.buf)
	}
	for _, p := range all {
		if len(p) == 0 {
			continue
		}
		if _, err := o.to.Write(p); err != nil {
			o.end()
			return
		}
	}
}

// end gives up the client: later events are discarded.
func (o *outlet) end() {
	o.ending.Do(func() {
		o.mu.Lock()
		o.closed = true
		o.mu.Unlock()
		close(o.ended)
		o.failed()
	})
}

// take removes and returns the queue.
func (o *outlet) take() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	events := o.queue
	o.queue = nil
	if o.taken != nil {
		close(o.taken)
		o.taken = nil
	}
	return events
}

// pass queues an event that a slow client may miss.
func (o *outlet) pass(e session.Event) { o.offer(e) }

// offer queues an event without waiting and reports whether there is room.
func (o *outlet) offer(e session.Event) bool { return o.put(e, 0) }

// deliver queues an event of a request. It waits while the client is slow, and reports success.
func (o *outlet) deliver(e session.Event) bool { return o.put(e, writeTimeout) }

// put queues an event if there is room within that time.
func (o *outlet) put(e session.Event, within time.Duration) bool {
	event := o.frame(e)
	o.mu.Lock()
	defer o.mu.Unlock()
	for !o.closed && len(o.queue) > 0 && len(o.queue)+len(event) > maxQueued {
		if within == 0 || !o.wait(within) {
			return false
		}
	}
	return o.push(event)
}

// push queues a text, unless the outlet is closed. The lock is held.
func (o *outlet) push(text []byte) bool {
	if o.closed {
		return false
	}
	if o.writeSlot == nil {
		o.writeSlot, o.ended = make(chan struct{}, 1), make(chan struct{})
	}
	if o.opened = true; o.queue == nil {
		o.writers.Go(func() { o.flush() })
	}
	o.queue = append(o.queue, text...)
	return true
}

// wait waits until the queue is taken, and reports whether that was in time. The lock is held before and
// after.
func (o *outlet) wait(limit time.Duration) bool {
	if o.taken == nil {
		o.taken = make(chan struct{})
	}
	taken := o.taken
	o.mu.Unlock()
	defer o.mu.Lock()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-taken:
		return true
	case <-o.ended:
	case <-timer.C:
	}
	return false
}

// settle reports whether anything was queued. If not, it closes the queue.
func (o *outlet) settle() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = o.closed || !o.opened
	return o.opened
}

// close closes the queue, and waits until it and the last pieces are written or writing has failed.
func (o *outlet) close(last ...[]byte) {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	o.flush(last...)
	o.writers.Wait()
}
