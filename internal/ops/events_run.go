package ops

import (
	"context"
	"time"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/store/activity"
)

const (
	// The first event of a burst is sent after firstDelay. During a burst events are sent every busyInterval, plus busyIntervalPerListener for each further
	// listener, because each send costs CPU time.
	firstDelay              = 10 * time.Millisecond
	busyInterval            = 50 * time.Millisecond
	busyIntervalPerListener = 10 * time.Millisecond

	// changesInterval is the minimum interval between change events.
	changesInterval = 300 * time.Millisecond

	maxChunk = 128 << 10 // in bytes, about
)

// Run publishes events until ctx ends. It is idle while there are no listeners.
func (h *Hub) Run(ctx context.Context) {
	defer h.Close()
	t := &notifier{Hub: h, later: time.NewTimer(0)}
	defer t.stop()
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
			t.replaced = nil // until that is published
		case <-t.later.C:
		}
		switch {
		case t.listenerCount() == 0:
			t.stop()
		case t.reader == nil:
			t.start()
		default:
			t.publishUntilIdle(ctx)
		}
	}
}

// publishUntilIdle publishes events until none are left.
func (t *notifier) publishUntilIdle(ctx context.Context) {
	for pause := firstDelay; ; pause = busyInterval + time.Duration(t.listenerCount()-1)*busyIntervalPerListener {
		select {
		case <-ctx.Done():
			return
		case <-t.closed:
			return
		case <-time.After(pause):
		}
		if !t.publish(ctx) || t.listenerCount() == 0 {
			return
		}
	}
}

func (h *Hub) listenerCount() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.listeners
}

// notifier publishes log entries and changes as chunks, in one goroutine.
type notifier struct {
	*Hub
	reader   *activity.EventReader // nil without listeners
	appended <-chan struct{}
	steps    []activity.EntryEvent

	snapshot *catalog.Snapshot // the one that listeners know
	replaced <-chan struct{}   // nil when it is known to be replaced
	changed  time.Time         // when changes were last published
	later    *time.Timer       // fires when changes may be published again
}

func (t *notifier) start() {
	t.reader, t.appended = t.Log.Follow()
	t.snapshot = t.Catalog.Current()
	t.replaced = t.snapshot.ReplacedChan()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buffer.begin(t.reader.Position())
}

func (t *notifier) stop() {
	if t.reader == nil {
		return
	}
	t.reader.Close()
	t.reader, t.appended, t.replaced, t.snapshot = nil, nil, nil, nil
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buffer.end()
	t.changes = changes{}
}

// publish publishes what is there, and reports whether there were log entries.
func (t *notifier) publish(ctx context.Context) (happened bool) {
	was := t.reader.Position()
	for ctx.Err() == nil && t.publishSteps(ctx) {
	}
	happened = t.reader.Position() != was
	t.mu.Lock()
	none := t.changes.empty()
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

// publishSteps publishes new log entries as a chunk, and reports whether there may be more.
func (t *notifier) publishSteps(ctx context.Context) (more bool) {
	c := &chunk{from: t.reader.Position(), to: t.reader.Position()}
	for len(c.data) < maxChunk {
		var err error
		if t.steps, err = t.reader.ReadEvents(ctx, t.steps[:0]); err != nil {
			t.startOver()
			return false
		}
		if more = len(t.steps) > 0; !more {
			break
		}
		for i := range t.steps {
			c.add(&t.steps[i])
		}
	}
	clear(t.steps)
	if c.to != c.from {
		t.addChunk(c)
	}
	return more
}

// startOver continues at the end of the log after a read error. All listeners must reload.
func (t *notifier) startOver() {
	t.reader.Close()
	t.reader, t.appended = t.Log.Follow()
	at := t.reader.Position()
	c := &chunk{from: at, to: at}
	c.data = appendReset(c.data, at)
	c.addEvent(EventReset, at)
	t.addChunk(c)
}

// publishChanges publishes the collected changes as a chunk.
func (t *notifier) publishChanges(ctx context.Context) {
	now := t.Catalog.Current()
	t.mu.Lock()
	what := t.changes
	t.changes = changes{}
	t.mu.Unlock()
	what.compare(t.snapshot, now)
	t.snapshot, t.replaced, t.changed = now, now.ReplacedChan(), time.Now()
	if what.empty() {
		return
	}
	c := &chunk{from: t.reader.Position(), to: t.reader.Position()}
	what.appendTo(ctx, c, t.Servers)
	t.addChunk(c)
}

func (t *notifier) addChunk(c *chunk) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buffer.add(c)
}
