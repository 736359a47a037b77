package ops

import (
	"context"
	"time"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/store/activity"
)

const (
	// collectTime is how long is waited for more before the first of what happens is
	// told. As long as more happens it is told every busyTime, and busyMore later
	// for each further listener: to wake up and to send is what costs.
	collectTime = 10 * time.Millisecond
	busyTime    = 50 * time.Millisecond
	busyMore    = 10 * time.Millisecond

	// changesEvery is how often at most it is told that something changed.
	changesEvery = 300 * time.Millisecond

	maxChunk = 128 << 10 // in bytes, about
)

// Run tells what happens, until ctx ends. It sleeps while nobody listens.
func (h *Hub) Run(ctx context.Context) {
	defer h.Close()
	t := &notifier{Hub: h, later: time.NewTimer(0)}
	defer t.rest()
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
			t.replaced = nil // until that is told
		case <-t.later.C:
		}
		switch {
		case t.listening() == 0:
			t.rest()
		case t.reader == nil:
			t.begin()
		default:
			t.tellAll(ctx)
		}
	}
}

// tellAll tells what happens, until for a moment nothing does.
func (t *notifier) tellAll(ctx context.Context) {
	for pause := collectTime; ; pause = busyTime + time.Duration(t.listening()-1)*busyMore {
		select {
		case <-ctx.Done():
			return
		case <-t.closed:
			return
		case <-time.After(pause):
		}
		if !t.tell(ctx) || t.listening() == 0 {
			return
		}
	}
}

func (h *Hub) listening() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.listeners
}

// notifier puts what happens into the hub's chunks, in one goroutine.
type notifier struct {
	*Hub
	reader   *activity.Reader // nil while nobody listens
	appended <-chan struct{}
	steps    []activity.Step

	snapshot *catalog.Snapshot // that the listeners know
	replaced <-chan struct{}   // nil when it is known that there is another one
	changed  time.Time         // when changes were told
	later    *time.Timer       // when they may be told again
}

func (t *notifier) begin() {
	t.reader, t.appended = t.Log.Follow()
	t.snapshot = t.Catalog.Current()
	t.replaced = t.snapshot.Replaced()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.recent.begin(t.reader.At())
}

func (t *notifier) rest() {
	if t.reader == nil {
		return
	}
	t.reader.Close()
	t.reader, t.appended, t.replaced, t.snapshot = nil, nil, nil, nil
	t.mu.Lock()
	defer t.mu.Unlock()
	t.recent.end()
	t.changes = changes{}
}

// tell tells what there is, and reports whether anything happened.
func (t *notifier) tell(ctx context.Context) (happened bool) {
	was := t.reader.At()
	for ctx.Err() == nil && t.tellSteps(ctx) {
	}
	happened = t.reader.At() != was
	t.mu.Lock()
	none := t.changes.none()
	t.mu.Unlock()
	if none && t.snapshot == t.Catalog.Current() {
		return happened
	}
	if wait := time.Until(t.changed.Add(changesEvery)); wait > 0 {
		t.later.Reset(wait)
		return happened
	}
	t.tellChanges(ctx)
	return happened
}

// tellSteps makes a chunk of what was appended to the log, and reports whether
// there may be more.
func (t *notifier) tellSteps(ctx context.Context) (more bool) {
	c := &chunk{from: t.reader.At(), to: t.reader.At()}
	for len(c.data) < maxChunk {
		var err error
		if t.steps, err = t.reader.Next(ctx, t.steps[:0]); err != nil {
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
		t.put(c)
	}
	return more
}

// startOver goes on at the end of the log: what is between cannot be read, and
// everybody has to load again.
func (t *notifier) startOver() {
	t.reader.Close()
	t.reader, t.appended = t.Log.Follow()
	at := t.reader.At()
	c := &chunk{from: at, to: at}
	c.data = appendReset(c.data, at)
	c.note(EventReset, at)
	t.put(c)
}

// tellChanges makes a chunk of what is no record.
func (t *notifier) tellChanges(ctx context.Context) {
	now := t.Catalog.Current()
	t.mu.Lock()
	what := t.changes
	t.changes = changes{}
	t.mu.Unlock()
	what.compare(t.snapshot, now)
	t.snapshot, t.replaced, t.changed = now, now.Replaced(), time.Now()
	if what.none() {
		return
	}
	c := &chunk{from: t.reader.At(), to: t.reader.At()}
	what.tell(ctx, c, t.Servers)
	t.put(c)
}

func (t *notifier) put(c *chunk) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.recent.add(c)
}
