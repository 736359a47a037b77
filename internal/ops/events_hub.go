package ops

import (
	"sync"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// HubDeps is what a Hub is made of.
type HubDeps struct {
	Log     *activity.Log
	Catalog *catalog.Catalog
	Servers Servers
	// Shared reports whether other instances share the log: what they do is in no chain of
	// this one, so that who comes back loads again.
	Shared bool
}

// maxListeners is how many may listen at a time.
const maxListeners = 64

// Hub tells listeners what happens, once Run runs.
type Hub struct {
	HubDeps
	wake   chan struct{} // there is something for Run
	closed chan struct{} // the streams end

	mu        sync.Mutex // guards what follows
	ended     bool       // closed is closed
	listeners int
	recent    eventsRecent
	changes   changes
}

// NewHub makes a Hub.
func NewHub(d HubDeps) *Hub {
	return &Hub{HubDeps: d, wake: make(chan struct{}, 1), closed: make(chan struct{}), recent: eventsRecent{more: make(chan struct{})}}
}

// Close ends the streams, and lets nobody listen any more.
func (h *Hub) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.ended {
		h.ended = true
		close(h.closed)
	}
}

// Decided tells that something is decided about a server, or what it offers, or
// that some of that waits for a decision. It waits for nothing. "" is every server.
func (h *Hub) Decided(server string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.listeners == 0 {
		return // who comes is told everything
	}
	h.changes.add(server, aboutServer|aboutTools)
	h.raise()
}

// ConfigChanged tells that the configuration changed, in these keys, or why a file
// was refused. It waits for nothing.
func (h *Hub) ConfigChanged(keys []string, refused error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.listeners == 0 {
		return
	}
	h.changes.addConfig(keys, refused)
	h.raise()
}

// PendingChanged tells that other calls wait for a person, or that there are other leases. It
// waits for nothing.
func (h *Hub) PendingChanged() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.listeners == 0 {
		return
	}
	h.changes.pending = true
	h.raise()
}

// Listening reports whether anybody listens.
func (h *Hub) Listening() bool { return h.listening() > 0 }

// Elsewhere tells what has happened on other instances; missed, that there was more. It
// waits for nothing.
func (h *Hub) Elsewhere(steps []activity.Step, missed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.recent.live {
		return
	}
	at := h.recent.head
	c := &chunk{from: at, to: at}
	for i := range steps {
		steps[i].Place = at
		c.add(&steps[i])
	}
	if missed {
		c.data = appendReset(c.data, at)
		c.note(EventReset, at)
	}
	if len(c.data) > 0 {
		h.recent.add(c)
	}
}

// raise wakes Run.
func (h *Hub) raise() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// enter lets one more listen.
func (h *Hub) enter() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.ended:
		return problem.New(problem.Overloaded, "MCPProxy is stopping.", "Try again when it runs.")
	case h.listeners >= maxListeners:
		return problem.Newf(problem.Overloaded, "%d streams of events are open, which is the most there may be.", maxListeners).
			WithHint("Close one, such as a page that shows MCPProxy, and try again.")
	}
	h.listeners++
	h.raise()
	return nil
}

func (h *Hub) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.listeners--
	h.raise()
}

// chunks returns those from a number on, and what is closed when there are more.
func (h *Hub) chunks(from uint64) (chunks []*chunk, more <-chan struct{}, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	chunks, ok = h.recent.since(from)
	return chunks, h.recent.more, ok
}

// join finds the chunk that continues a place up to which a listener was told
// everything. It is ahead when it has read what is not in the chunks yet.
func (h *Hub) join(at activity.Place) (next uint64, ok, ahead bool, more <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	next, ok = h.recent.join(at)
	return next, ok, at.Seq > h.recent.head.Seq, h.recent.more
}
