package mcpserver

import (
	"io"
	"sync"
	"time"

	"mcpproxy/internal/mcp/session"
)

const (
	// writeTimeout is how long a client may take to read an answer. Any answer may
	// find the buffers of its connection full, a small one too.
	writeTimeout = 30 * time.Second
	// maxQueued is how much is kept for a client that does not read. What is
	// beyond is progress that nobody sees; the answer itself always has room.
	maxQueued = 1 << 20
	// onePiece is the size up to which all that is there is written at once, in
	// bytes.
	onePiece = 32 << 10
)

// outlet is what a client is told by several at a time. Events are queued, and
// written by whoever writes next: whoever delivers them, the reader of an
// upstream, never waits for a client unless it asks to. Answers are written by who
// has them, so a client that does not read holds up its own requests.
type outlet struct {
	to     io.Writer
	frame  func(session.Event) []byte
	failed func() // is called when it cannot be written any more

	turn chan struct{} // cap 1: who has put something in may write
	buf  []byte        // of who writes

	ending sync.Once
	gone   chan struct{} // closed when nothing is written any more

	mu      sync.Mutex // guards what follows, and the beginning of writers
	queue   []byte     // events
	taken   chan struct{}
	opened  bool // something was queued
	closed  bool // nothing is queued any more
	writers sync.WaitGroup
}

// flush writes what is queued, and then the pieces. It returns when they are
// written, or cannot be.
func (o *outlet) flush(pieces ...[]byte) {
	select {
	case o.turn <- struct{}{}:
		defer func() { <-o.turn }()
	case <-o.gone:
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

// end drops the client: what is still said to it is discarded.
func (o *outlet) end() {
	o.ending.Do(func() {
		o.mu.Lock()
		o.closed = true
		o.mu.Unlock()
		close(o.gone)
		o.failed()
	})
}

// take returns what is queued.
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

// pass queues what a server says that a client which is behind may miss.
func (o *outlet) pass(e session.Event) { o.offer(e) }

// offer queues what somebody says who must not wait, and reports whether there
// is room for it.
func (o *outlet) offer(e session.Event) bool { return o.put(e, 0) }

// tell queues what a server says to a request that was passed on. It waits while
// the client is behind, and reports whether that was of use.
func (o *outlet) tell(e session.Event) bool { return o.put(e, writeTimeout) }

// put queues an event, when there is room within that time.
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

// push queues a text, unless nothing is queued any more. The lock is held.
func (o *outlet) push(text []byte) bool {
	if o.closed {
		return false
	}
	if o.turn == nil {
		o.turn, o.gone = make(chan struct{}, 1), make(chan struct{})
	}
	if o.opened = true; o.queue == nil {
		o.writers.Go(func() { o.flush() })
	}
	o.queue = append(o.queue, text...)
	return true
}

// wait waits until the queue was taken, and reports whether it was in time. The
// lock is held before and after.
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
	case <-o.gone:
	case <-timer.C:
	}
	return false
}

// settle reports whether anything was queued. If nothing was, nothing will be.
func (o *outlet) settle() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = o.closed || !o.opened
	return o.opened
}

// close ends the queueing, and waits until what is queued and the last pieces are
// written, or cannot be.
func (o *outlet) close(last ...[]byte) {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	o.flush(last...)
	o.writers.Wait()
}
