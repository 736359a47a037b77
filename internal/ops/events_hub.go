package ops

import (
	"context"
	"slices"
	"sync"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/upstream/oauth"
)

// EventHubDeps are the dependencies of an EventHub.
type EventHubDeps struct {
	Log     *activity.Log
	Catalog *catalog.Catalog
	Servers ServerLister
	// SharedLog reports whether other instances write to the same database. Their events are not in this instance's
	// chain, so a listener that reconnects must reload everything.
	SharedLog bool
}

// ServerLister lists the servers for events.
type ServerLister interface {
	Servers(context.Context, Caller, Nothing) (ServerViews, error)
}

// LogObserver is called for each entry of the log. remote reports that another instance wrote the entry. It must not
// block.
type LogObserver func(e *activity.EntryEvent, remote bool)

// maxListeners limits the number of concurrent listeners.
const maxListeners = 64

// EventHub streams events to listeners while Run is running.
type EventHub struct {
	EventHubDeps
	wake   chan struct{} // signals Run
	closed chan struct{} // ends the streams

	mu        sync.Mutex // guards the fields below
	ended     bool       // whether closed is closed
	listeners int
	observer  LogObserver // nil for none
	buffer    eventBuffer
	changes   changeSet
}

// NewEventHub returns an EventHub.
func NewEventHub(d EventHubDeps) *EventHub {
	return &EventHub{EventHubDeps: d, wake: make(chan struct{}, 1), closed: make(chan struct{}), buffer: eventBuffer{more: make(chan struct{})}}
}

// Close ends the streams and rejects new listeners.
func (h *EventHub) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.ended {
		h.ended = true
		close(h.closed)
	}
}

// DecisionChanged announces that a decision about a server or its definitions was made or is required. "" means all
// servers. It does not block.
func (h *EventHub) DecisionChanged(server string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.listeners == 0 {
		return // a new listener reloads everything
	}
	h.changes.addServerChange(server, serverChanged|toolsChanged)
	h.wakeRun()
}

// ConfigChanged announces changed configuration keys, or the reason why a file was rejected. It does not block.
func (h *EventHub) ConfigChanged(keys []string, refused error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.listeners == 0 {
		return
	}
	h.changes.addConfigChange(keys, refused)
	h.wakeRun()
}

// PendingChanged announces that the pending calls or the leases changed. It does not block.
func (h *EventHub) PendingChanged() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.listeners == 0 {
		return
	}
	h.changes.pending = true
	h.wakeRun()
}

// PauseChanged announces that calls were paused or resumed. It does not block.
func (h *EventHub) PauseChanged() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.listeners == 0 {
		return
	}
	h.changes.pause = true
	h.wakeRun()
}

// Observe sets the observer of the log; nil means none. An observer costs less than a listener, because nothing is
// encoded for it.
func (h *EventHub) Observe(f LogObserver) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.observer = f
	h.wakeRun()
}

// NeedsEntries reports whether there are listeners or an observer.
func (h *EventHub) NeedsEntries() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.listeners > 0 || h.observer != nil
}

// LoginChanged announces that the login to a server has changed. It does not block.
func (h *EventHub) LoginChanged(server string, e oauth.LoginEvent) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.listeners == 0 {
		return
	}
	h.changes.addServerChange(server, serverChanged)
	change := loginChange{kind: EventLoginNeeded, server: server}
	if e == oauth.EventFailed {
		change.kind = EventLoginFailed
	}
	if e != oauth.EventChanged && !slices.Contains(h.changes.logins, change) {
		h.changes.logins = append(h.changes.logins, change)
	}
	h.wakeRun()
}

// AddRemoteEntries announces log entries of other instances. missed reports that some entries are missing. It does not
// block.
func (h *EventHub) AddRemoteEntries(steps []activity.EntryEvent, missed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range steps {
		if h.observer != nil {
			h.observer(&steps[i], true)
		}
	}
	if !h.buffer.live {
		return
	}
	at := h.buffer.head
	c := &eventChunk{from: at, to: at}
	for i := range steps {
		steps[i].ChainPosition = at
		c.addActivityEntry(&steps[i])
	}
	if missed {
		c.data = appendResetEvent(c.data, at)
		c.registerAppendedEvent(EventReset, at)
	}
	if len(c.data) > 0 {
		h.buffer.addChunk(c)
	}
}

// wakeRun signals Run to check for work.
func (h *EventHub) wakeRun() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// addListener adds a listener. It returns an error if there are too many listeners.
func (h *EventHub) addListener() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.ended:
		return problem.New(problem.Overloaded, "MCPProxy is stopping.", "Try again when it runs.")
	case h.listeners >= maxListeners:
		return problem.Newf(problem.Overloaded, "%d event streams are open, the maximum.", maxListeners).
			WithHint("Close one, such as a page that shows MCPProxy, and try again.")
	}
	h.listeners++
	h.wakeRun()
	return nil
}

func (h *EventHub) removeListener() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.listeners--
	h.wakeRun()
}

// chunksFrom returns the chunks from a number on, and a channel that is closed when a new chunk is added.
func (h *EventHub) chunksFrom(from uint64) (chunks []*eventChunk, more <-chan struct{}, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	chunks, ok = h.buffer.chunksFrom(from)
	return chunks, h.buffer.more, ok
}

// findNextChunk returns the number of the chunk that continues at a log position. ahead reports that the listener has
// read entries that the chunks do not contain yet.
func (h *EventHub) findNextChunk(at activity.ChainPosition) (next uint64, ok, ahead bool, more <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	next, ok = h.buffer.chunkNumberAfter(at)
	return next, ok, at.Seq > h.buffer.head.Seq, h.buffer.more
}
