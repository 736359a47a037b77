package ops

import (
	"context"
	"slices"
	"sync"
	"time"

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
	h.announce(func(c *changeSet) { c.addServerChange(server, serverChanged|toolsChanged) })
}

// ConfigChanged announces changed configuration keys, or the reason why a file was rejected. It does not block.
func (h *EventHub) ConfigChanged(keys []string, refused error) {
	h.announce(func(c *changeSet) { c.addConfigChange(keys, refused) })
}

// PendingChanged announces that the pending calls or the leases changed. It does not block.
func (h *EventHub) PendingChanged() { h.announce(func(c *changeSet) { c.pending = true }) }

// announce adds a change. Without listeners it does nothing, because a new listener reloads everything.
func (h *EventHub) announce(add func(*changeSet)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.listeners > 0 {
		add(&h.changes)
		h.wakeRun()
	}
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
	change := loginChange{kind: EventLoginNeeded, server: server}
	if e == oauth.EventFailed {
		change.kind = EventLoginFailed
	}
	h.announce(func(c *changeSet) {
		c.addServerChange(server, serverChanged)
		if e != oauth.EventChanged && !slices.Contains(c.logins, change) {
			c.logins = append(c.logins, change)
		}
	})
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
		c.add(EventReset, struct{}{})
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

const (
	// The first event of a burst is sent after firstDelay. During a burst, events are sent every busyInterval, plus
	// busyIntervalPerListener for each further listener, because each send costs CPU time.
	firstDelay              = 10 * time.Millisecond
	busyInterval            = 50 * time.Millisecond
	busyIntervalPerListener = 10 * time.Millisecond

	// changesInterval is the minimum interval between change events.
	changesInterval = 300 * time.Millisecond

	maxChunk = 128 << 10 // approximate size in bytes
)

// Run publishes events until ctx is done. It is idle while there are no listeners and no observer.
func (h *EventHub) Run(ctx context.Context) {
	defer h.Close()
	t := &eventPublisher{EventHub: h, later: time.NewTimer(0)}
	defer t.stopFollowing()
	defer t.later.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.closed:
			return
		case <-h.wake:
		case <-t.appended:
		case <-t.replaced:
			t.replaced = nil // set again when the new snapshot is published
		case <-t.later.C:
		}
		if t.follow() {
			t.publishUntilIdle(ctx)
		}
	}
}

// publishUntilIdle publishes events until there are no more.
func (t *eventPublisher) publishUntilIdle(ctx context.Context) {
	for pause := firstDelay; ; pause = busyInterval + time.Duration(max(0, t.listenerCount()-1))*busyIntervalPerListener {
		select {
		case <-ctx.Done():
			return
		case <-t.closed:
			return
		case <-time.After(pause):
		}
		if !t.publishNewEvents(ctx) || !t.follow() {
			return
		}
	}
}

func (h *EventHub) listenerCount() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.listeners
}

// eventPublisher publishes log entries and changes as chunks, in one goroutine.
type eventPublisher struct {
	*EventHub
	reader   *activity.EventReader // nil if there are no listeners and no observer
	appended <-chan struct{}
	steps    []activity.EntryEvent

	snapshot *catalog.Snapshot // the snapshot that was last announced; nil if there are no listeners
	replaced <-chan struct{}   // nil after the snapshot was replaced
	changed  time.Time         // time when changes were last published
	later    *time.Timer       // fires when changes may be published again
}

// follow starts or stops to follow the log, as the observer and the listeners require, and to collect events for the
// listeners. It reports whether the log is followed.
func (t *eventPublisher) follow() bool {
	t.mu.Lock()
	listens, observes := t.listeners > 0, t.observer != nil
	t.mu.Unlock()
	if !listens && !observes {
		t.stopFollowing()
		return false
	}
	if t.reader == nil {
		t.reader, t.appended = t.Log.Follow()
	}
	if listens != (t.snapshot != nil) {
		t.setCollecting(listens)
	}
	return true
}

// setCollecting starts or stops to collect events for listeners. To start, it stores the current catalog snapshot and
// starts the buffer.
func (t *eventPublisher) setCollecting(on bool) {
	t.snapshot, t.replaced = nil, nil
	if on {
		t.snapshot = t.Catalog.Current()
		t.replaced = t.snapshot.ReplacedChan()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if on {
		t.buffer.start(t.reader.Position())
		return
	}
	t.buffer.stop()
	t.changes = changeSet{}
}

func (t *eventPublisher) stopFollowing() {
	if t.reader == nil {
		return
	}
	t.reader.Close()
	t.reader, t.appended = nil, nil
	t.setCollecting(false)
}

// publishNewEvents publishes all new events, and reports whether there were log entries.
func (t *eventPublisher) publishNewEvents(ctx context.Context) (happened bool) {
	was := t.reader.Position()
	for ctx.Err() == nil && t.publishActivityEntries(ctx) {
	}
	happened = t.reader.Position() != was
	if t.snapshot == nil {
		return happened // no listener
	}
	t.mu.Lock()
	none := t.changes.isEmpty()
	t.mu.Unlock()
	if none && t.snapshot == t.Catalog.Current() {
		return happened
	}
	if wait := time.Until(t.changed.Add(changesInterval)); wait > 0 {
		t.later.Reset(wait)
		return happened
	}
	t.publishChanges(ctx)
	return happened
}

// publishActivityEntries publishes new log entries as a chunk, and reports whether there may be more.
func (t *eventPublisher) publishActivityEntries(ctx context.Context) (more bool) {
	c := &eventChunk{from: t.reader.Position(), to: t.reader.Position()}
	for len(c.data) < maxChunk && ctx.Err() == nil {
		var err error
		if t.steps, err = t.reader.ReadEvents(ctx, t.steps[:0]); err != nil {
			t.restartAtLogEnd()
			return false
		}
		if more = len(t.steps) > 0; !more {
			break
		}
		t.mu.Lock()
		observer := t.observer
		t.mu.Unlock()
		for i := range t.steps {
			if observer != nil {
				observer(&t.steps[i], false)
			}
			if t.snapshot != nil {
				c.addActivityEntry(&t.steps[i])
			}
		}
	}
	clear(t.steps)
	if c.to != c.from {
		t.addChunk(c)
	}
	return more
}

// restartAtLogEnd continues at the end of the log after a read error. It tells all listeners to reload.
func (t *eventPublisher) restartAtLogEnd() {
	t.reader.Close()
	t.reader, t.appended = t.Log.Follow()
	at := t.reader.Position()
	c := &eventChunk{from: at, to: at}
	c.add(EventReset, struct{}{})
	t.addChunk(c)
}

// publishChanges publishes the collected changes as a chunk.
func (t *eventPublisher) publishChanges(ctx context.Context) {
	now := t.Catalog.Current()
	t.mu.Lock()
	what := t.changes
	t.changes = changeSet{}
	t.mu.Unlock()
	what.addDifferences(t.snapshot, now)
	t.snapshot, t.replaced, t.changed = now, now.ReplacedChan(), time.Now()
	if what.isEmpty() {
		return
	}
	c := &eventChunk{from: t.reader.Position(), to: t.reader.Position()}
	what.appendEventsTo(ctx, c, t.Servers)
	t.addChunk(c)
}

func (t *eventPublisher) addChunk(c *eventChunk) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.buffer.live {
		t.buffer.addChunk(c)
	}
}
