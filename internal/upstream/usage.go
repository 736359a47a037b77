package upstream

import (
	"sync/atomic"
	"time"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
)

// usage counts the requests that need a server, and tells when it may rest.
type usage struct {
	born      time.Time // by the monotonic clock, which nobody sets
	pace      atomic.Pointer[pace]
	paced     chan struct{} // cap 1: pace has changed
	uses      atomic.Int64  // requests that need the server now
	listening atomic.Int64  // those among them that only listen
	used      atomic.Int64  // when the last one ended, in nanoseconds since born
}

// pace is when a server runs. It can change while the server does.
type pace struct {
	idle time.Duration // stop it after that time without use; 0 = never
	lazy bool          // not started before it is used
}

// pace returns what the spec says of it. A server in review runs: somebody looks
// at what it lists.
func (s *Spec) pace() *pace {
	if s.Review {
		return &pace{}
	}
	p := &pace{lazy: s.Lazy}
	if s.Transport == Stdio {
		p.idle = s.IdleTimeout
	}
	return p
}

// Enter counts a request that needs the server, until Leave. Between them
// the connection is not ended for want of use.
func (u *usage) Enter(r *session.Request) {
	u.uses.Add(1)
	if r.Method == mcp.Listen {
		u.listening.Add(1)
	}
}

// Leave is called with what Enter was called with.
func (u *usage) Leave(r *session.Request) {
	if r.Method == mcp.Listen {
		u.listening.Add(-1)
	}
	u.Used()
	u.uses.Add(-1)
}

// Used notes that the server has been used until now.
func (u *usage) Used() { u.used.Store(int64(time.Since(u.born))) }

// neverIdle is longer than any daemon runs.
const neverIdle = 100 * 365 * 24 * time.Hour

// untilIdle returns the time after which the server has not been used for too
// long, if it is not used until then.
func (u *usage) untilIdle(inUse bool) time.Duration {
	idle := u.pace.Load().idle
	switch {
	case idle <= 0:
		return neverIdle
	case inUse:
		return idle
	}
	return idle - (time.Since(u.born) - time.Duration(u.used.Load()))
}
