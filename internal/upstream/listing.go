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

// toolListTracker tracks a server's list of tools over all its connections.
//
// After a server announces a change of its tools, calls wait until the tools are listed again, because they may differ
// from those that the decisions were based on. Each call waits for a list that was requested after the last change
// announced before the call. So even a server that announces changes all the time delays a call by at most two lists.
type toolListTracker struct {
	announced        atomic.Uint64 // number of changes
	relist           chan struct{} // cap 1: the tools have changed
	awaited          chan struct{} // cap 1: a call waits for the new list
	clientToolsAdded chan struct{} // cap 1: client tools were added

	mu         sync.Mutex // guards the fields below
	listedAt   time.Time  // when the last published list was requested
	published  chan struct{}
	rejections uint64 // number of lists that the server rejected
	// clientTools are the tools that the server lists only to clients, for example to
	// those that support elicitation. They are part of the published list; tools listed
	// to MCPProxy take precedence.
	clientTools map[string]*tool.Definition
}

// maxClientTools limits the number of tools that a server lists only to clients.
const maxClientTools = 500

// ErrUnlisted means that changed tools could not be listed in time.
var ErrUnlisted = errors.New("the changed tools are not listed yet")

func newToolListTracker() toolListTracker {
	return toolListTracker{relist: make(chan struct{}, 1), awaited: make(chan struct{}, 1), clientToolsAdded: make(chan struct{}, 1), published: make(chan struct{})}
}

// isStale reports whether a change was announced that the list of c does not include.
func (t *toolListTracker) isStale(c *Connection) bool {
	return c.listedChange.Load() < t.announced.Load()
}

// waitForCurrentList waits for a list with all changes announced so far. It ends early when the server rejects the
// list, or when ctx, c or stopped ends.
func (t *toolListTracker) waitForCurrentList(ctx context.Context, c *Connection, stopped <-chan struct{}) error {
	announced, failures := t.announced.Load(), uint64(0)
	for first := true; ; first = false {
		t.mu.Lock()
		refused, told := t.rejections, t.published
		t.mu.Unlock()
		if first {
			failures = refused
		}
		switch {
		case c.listedChange.Load() >= announced:
			return nil
		case c.link.Cause() != nil:
			return &session.NotSentError{Cause: c.link.Cause()}
		case refused != failures:
			return ErrUnlisted
		}
		trySignal(t.awaited)
		select {
		case <-told:
		case <-c.link.Done():
		case <-stopped:
			return ErrUnlisted
		case <-ctx.Done():
			if session.IsTimedOut(ctx) {
				return ErrUnlisted
			}
			return ctx.Err()
		}
	}
}

// refreshList lists the tools again, unless they were listed after since, and waits briefly for the result.
func (t *toolListTracker) refreshList(ctx context.Context, since time.Time) {
	limit := time.NewTimer(refreshTimeout)
	defer limit.Stop()
	for asked := false; ; asked = true {
		t.mu.Lock()
		listed, again := t.listedAt, t.published
		t.mu.Unlock()
		if listed.After(since) {
			return
		}
		if !asked {
			trySignal(t.relist)
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

// refreshTimeout is how long refreshList waits for a list.
const refreshTimeout = 3 * time.Second

// markListed records that a list requested at that time was published.
func (t *toolListTracker) markListed(asked time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.listedAt = asked
	t.wakeCalls()
}

// markRejected records that the server rejected a list.
func (t *toolListTracker) markRejected() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rejections++
	t.wakeCalls()
}

// wakeCalls wakes the calls that wait for a list. The caller holds the lock.
func (t *toolListTracker) wakeCalls() {
	close(t.published)
	t.published = make(chan struct{})
}

// addClientTool adds a tool that the server listed to a client. It reports whether the tool is new.
func (t *toolListTracker) addClientTool(d tool.Definition) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	known, is := t.clientTools[d.ID.Tool]
	if is && bytes.Equal(known.Raw, d.Raw) || !is && len(t.clientTools) >= maxClientTools {
		return false
	}
	if t.clientTools == nil {
		t.clientTools = map[string]*tool.Definition{}
	}
	d.ForClients = true
	t.clientTools[d.ID.Tool] = &d
	return true
}

// clearClientTools removes the client tools.
func (t *toolListTracker) clearClientTools() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.clientTools = nil
}

// setTools sets the tools of c to own, which the server listed to MCPProxy, plus the client tools. It returns all of
// them.
func (t *toolListTracker) setTools(c *Connection, own []*tool.Definition) []*tool.Definition {
	all := slices.Clone(own)
	t.mu.Lock()
	for _, d := range own {
		delete(t.clientTools, d.ID.Tool)
	}
	for _, name := range slices.Sorted(maps.Keys(t.clientTools)) {
		all = append(all, t.clientTools[name])
	}
	t.mu.Unlock()
	c.tools.Store(newToolLists(all, len(own))) // before the observer is notified, so that calls decided on the old list are rejected
	return all
}

// Pauses between lists.
const (
	relistPause      = 2 * time.Second // between two lists
	unannouncedPause = time.Minute     // between two lists of a server that does not announce changes
	// awaitedPause is the minimum time between two lists that calls wait for. The pause
	// is four times the duration of a list, up to relistPause, so that endless lists use
	// at most a fifth of a core.
	awaitedPause = 20 * time.Millisecond
)

// relistSchedule plans when to list a server's tools again.
type relistSchedule struct {
	due    <-chan time.Time // nil: not planned
	at     time.Time
	ended  time.Time     // end of the last list
	took   time.Duration // its duration
	failed int           // consecutive failures
}

// planList schedules a list after pause, unless an earlier one is scheduled.
func (r *relistSchedule) planList(pause time.Duration) {
	at := r.ended.Add(pause)
	if r.due != nil && !at.Before(r.at) {
		return
	}
	r.at, r.due = at, time.After(time.Until(at))
}

// planAwaitedList schedules a list that a call waits for.
func (r *relistSchedule) planAwaitedList() {
	r.planList(min(max(awaitedPause, 4*r.took), relistPause))
}

// recordListOutcome records the outcome of a list. If announced changes could not be listed, it schedules retries with
// growing pauses.
func (r *relistSchedule) recordListOutcome(began time.Time, listed bool) {
	r.due, r.ended = nil, time.Now()
	r.took = r.ended.Sub(began)
	if listed {
		r.failed = 0
		return
	}
	r.failed++
	r.planList(min(relistPause<<min(r.failed, 10), unannouncedPause))
}
