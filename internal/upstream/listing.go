package upstream

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/mcp/session"
)

// listing is what is known of the tools that a server lists, over all its connections.
//
// A server that announces that its tools have changed is known to do something
// else than what calls were judged on, until it has listed them again. Calls
// wait meanwhile: each for a list that was asked for after the last change that
// was announced before the call, so that a server which announces changes all
// the time delays them by two lists at most.
type listing struct {
	announced atomic.Uint64 // changes
	relist    chan struct{} // cap 1: the tools have changed
	awaited   chan struct{} // cap 1: a call waits for the list of the changed tools
	taught    chan struct{} // cap 1: something was learnt

	mu      sync.Mutex // guards what follows
	asked   time.Time  // when the list was asked for that was told last
	told    chan struct{}
	refused uint64 // lists that the server has refused
	// learnt are the tools that the server lists to clients and not to us: some
	// have tools for those alone who can be asked something. They belong to what
	// the server lists from then on; what it lists to us goes first.
	learnt map[string]*tool.Definition
}

// maxLearnt bounds the tools of a server that it lists to some clients alone.
const maxLearnt = 500

// ErrUnlisted says that a change was announced and could not be listed in time.
var ErrUnlisted = errors.New("the changed tools are not listed yet")

func newListing() listing {
	return listing{relist: make(chan struct{}, 1), awaited: make(chan struct{}, 1), taught: make(chan struct{}, 1), told: make(chan struct{})}
}

// stale reports whether a change of the tools was announced that is not on the
// list of c.
func (t *listing) stale(c *Connection) bool { return c.upTo.Load() < t.announced.Load() }

// await waits for a list with the changes that were announced so far: until it is
// there, the server has refused to list them, or ctx, c or stopped ends.
func (t *listing) await(ctx context.Context, c *Connection, stopped <-chan struct{}) error {
	announced, failures := t.announced.Load(), uint64(0)
	for first := true; ; first = false {
		t.mu.Lock()
		refused, told := t.refused, t.told
		t.mu.Unlock()
		if first {
			failures = refused
		}
		switch {
		case c.upTo.Load() >= announced:
			return nil
		case c.link.Cause() != nil:
			return &session.NotSentError{Cause: c.link.Cause()}
		case refused != failures:
			return ErrUnlisted
		}
		signal(t.awaited)
		select {
		case <-told:
		case <-c.link.Done():
		case <-stopped:
			return ErrUnlisted
		case <-ctx.Done():
			if session.TimedOut(ctx) {
				return ErrUnlisted
			}
			return ctx.Err()
		}
	}
}

// refresh has the tools listed again, unless they were after since, and waits for
// it a moment.
func (t *listing) refresh(ctx context.Context, since time.Time) {
	limit := time.NewTimer(refreshTime)
	defer limit.Stop()
	for asked := false; ; asked = true {
		t.mu.Lock()
		listed, again := t.asked, t.told
		t.mu.Unlock()
		if listed.After(since) {
			return
		}
		if !asked {
			signal(t.relist)
		}
		select {
		case <-again:
		case <-limit.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// refreshTime is how long a refresh waits for a list.
const refreshTime = 3 * time.Second

// noteListed notes that the observer was told a list that was asked for at
// that time.
func (t *listing) noteListed(asked time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asked = asked
	t.wake()
}

// noteRefused notes that the server has refused to list its tools.
func (t *listing) noteRefused() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refused++
	t.wake()
}

// wake wakes who waits for a list. The lock is held.
func (t *listing) wake() {
	close(t.told)
	t.told = make(chan struct{})
}

// learn takes a tool that the server has listed to a client, and reports whether
// it is news.
func (t *listing) learn(d tool.Definition) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	known, is := t.learnt[d.ID.Tool]
	if is && bytes.Equal(known.Raw, d.Raw) || !is && len(t.learnt) >= maxLearnt {
		return false
	}
	if t.learnt == nil {
		t.learnt = map[string]*tool.Definition{}
	}
	d.ForClients = true
	t.learnt[d.ID.Tool] = &d
	return true
}

// forget forgets what was learnt.
func (t *listing) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.learnt = nil
}

// publish makes own, which the server has listed to us, and what was learnt
// besides the tools of c, and returns them.
func (t *listing) publish(c *Connection, own []*tool.Definition) []*tool.Definition {
	all := slices.Clone(own)
	t.mu.Lock()
	for _, d := range own {
		delete(t.learnt, d.ID.Tool)
	}
	for _, name := range slices.Sorted(maps.Keys(t.learnt)) {
		all = append(all, t.learnt[name])
	}
	t.mu.Unlock()
	c.tools.Store(newTools(all, len(own))) // before it is told: what was judged on the old list is not sent any more
	return all
}

// The pauses between lists.
const (
	relistPause = 2 * time.Second // between two lists
	blindPause  = time.Minute     // between two lists of a server that does not say when they change
	// awaitedPause is the least time between two lists that calls wait for. It is
	// four times what a list takes, up to relistPause, so that lists without end
	// take a fifth of a processor at most.
	awaitedPause = 20 * time.Millisecond
)

// relists says when a server is asked again for what it lists.
type relists struct {
	due    <-chan time.Time // nil: it is not planned
	at     time.Time
	ended  time.Time     // the last time
	took   time.Duration // then
	failed int           // in a row
}

// plan has it asked when that pause has passed since the last time, if
// that is not planned for an earlier time.
func (r *relists) plan(pause time.Duration) {
	at := r.ended.Add(pause)
	if r.due != nil && !at.Before(r.at) {
		return
	}
	r.at, r.due = at, time.After(time.Until(at))
}

// planAwaited plans a list that a call waits for.
func (r *relists) planAwaited() {
	r.plan(min(max(awaitedPause, 4*r.took), relistPause))
}

// done notes how it went. What was announced and could not be listed is asked
// for again, at growing intervals.
func (r *relists) done(began time.Time, listed bool) {
	r.due, r.ended = nil, time.Now()
	r.took = r.ended.Sub(began)
	if listed {
		r.failed = 0
		return
	}
	r.failed++
	r.plan(min(relistPause<<min(r.failed, 10), blindPause))
}
