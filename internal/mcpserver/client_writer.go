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

// clientWriter writes events and replies of several goroutines to one client. Events are queued and written by
// the next writer: the reader of a server's connection never waits for a client unless it asks to. Replies
// are written by the goroutine that has them, so a client that does not read delays only its own requests.
type clientWriter struct {
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

// writeQueued writes the queue and then the pieces. It returns when they are written or writing has failed.
func (o *clientWriter) writeQueued(pieces ...[]byte) {
	select {
	case o.writeSlot <- struct{}{}:
		defer func() { <-o.writeSlot }()
	case <-o.ended:
		return
	}
	var room [9][]byte
	all := append(append(room[:0], o.takeQueue()), pieces...)
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
			o.abandonClient()
			return
		}
	}
}

// abandonClient gives up the client: later events are discarded.
func (o *clientWriter) abandonClient() {
	o.ending.Do(func() {
		o.mu.Lock()
		o.closed = true
		o.mu.Unlock()
		close(o.ended)
		o.failed()
	})
}

// takeQueue removes and returns the queue.
func (o *clientWriter) takeQueue() []byte {
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

// queueOptional queues an event that a slow client may miss.
func (o *clientWriter) queueOptional(e session.Event) { o.tryQueue(e) }

// tryQueue queues an event without waiting and reports whether there is room.
func (o *clientWriter) tryQueue(e session.Event) bool { return o.queueEvent(e, 0) }

// queueOrWait queues an event of a request. It waits while the client is slow, and reports success.
func (o *clientWriter) queueOrWait(e session.Event) bool { return o.queueEvent(e, writeTimeout) }

// queueEvent queues an event if there is room within that time.
func (o *clientWriter) queueEvent(e session.Event, within time.Duration) bool {
	event := o.frame(e)
	o.mu.Lock()
	defer o.mu.Unlock()
	for !o.closed && len(o.queue) > 0 && len(o.queue)+len(event) > maxQueued {
		if within == 0 || !o.waitUntilTaken(within) {
			return false
		}
	}
	return o.appendToQueue(event)
}

// appendToQueue queues a text, unless the writer is closed. The lock is held.
func (o *clientWriter) appendToQueue(text []byte) bool {
	if o.closed {
		return false
	}
	if o.writeSlot == nil {
		o.writeSlot, o.ended = make(chan struct{}, 1), make(chan struct{})
	}
	if o.opened = true; o.queue == nil {
		o.writers.Go(func() { o.writeQueued() })
	}
	o.queue = append(o.queue, text...)
	return true
}

// waitUntilTaken waits until the queue is taken, and reports whether that was in time. The lock is held before and
// after.
func (o *clientWriter) waitUntilTaken(limit time.Duration) bool {
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

// closeIfUnused reports whether anything was queued. If not, it closes the queue.
func (o *clientWriter) closeIfUnused() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = o.closed || !o.opened
	return o.opened
}

// closeAndWait closes the queue, and waits until it and the last pieces are written or writing has failed.
func (o *clientWriter) closeAndWait(last ...[]byte) {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	o.writeQueued(last...)
	o.writers.Wait()
}
