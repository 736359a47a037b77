package upstream

import (
	"sync/atomic"
	"time"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
)

// usageTracker counts the requests in flight and determines when the server is idle.
type usageTracker struct {
	started           time.Time // reference for monotonic times
	idlePolicy        atomic.Pointer[idlePolicy]
	idlePolicyChanged chan struct{} // cap 1: idlePolicy has changed
	uses              atomic.Int64  // requests in flight
	listening         atomic.Int64  // subscriptions among them
	lastUsed          atomic.Int64  // end of the last one, in nanoseconds since started
}

// idlePolicy determines when a server runs. It can change while the server runs.
type idlePolicy struct {
	idle time.Duration // stop after this idle time; 0 means never
	lazy bool          // start at the first use
}

// idlePolicy returns the policy of the spec. A server in review always runs, because a user inspects its tools.
func (s *Spec) idlePolicy() *idlePolicy {
	if s.Review {
		return &idlePolicy{}
	}
	p := &idlePolicy{lazy: s.Lazy}
	if s.Transport == Stdio {
		p.idle = s.IdleTimeout
	}
	return p
}

// BeginUse counts a request as in flight until EndUse. Until then, the connection is not closed as idle.
func (u *usageTracker) BeginUse(r *session.Request) {
	u.uses.Add(1)
	if r.Method == mcp.Listen {
		u.listening.Add(1)
	}
}

// EndUse ends a use. It takes the same request as BeginUse.
func (u *usageTracker) EndUse(r *session.Request) {
	if r.Method == mcp.Listen {
		u.listening.Add(-1)
	}
	u.MarkUsed()
	u.uses.Add(-1)
}

// MarkUsed records that the server was in use until now.
func (u *usageTracker) MarkUsed() { u.lastUsed.Store(int64(time.Since(u.started))) }

// neverIdle is longer than any daemon runs.
const neverIdle = 100 * 365 * 24 * time.Hour

// timeUntilIdle returns the time until the server counts as idle, without further use.
func (u *usageTracker) timeUntilIdle(inUse bool) time.Duration {
	idle := u.idlePolicy.Load().idle
	switch {
	case idle <= 0:
		return neverIdle
	case inUse:
		return idle
	}
	return idle - (time.Since(u.started) - time.Duration(u.lastUsed.Load()))
}
