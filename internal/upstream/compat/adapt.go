// Package compat gives clients access to one server: as requests that stand for
// themselves, or in a session. Modern is revision 2026-07-28 of the protocol,
// legacy all before it; adapt translates between the two eras. A session is one of
// the server's own, a place on the connection that MCPProxy has, which several
// clients share, or a bridge to a server that speaks the modern revision alone. A
// modern client's request to a legacy server has a session while it runs.
//
// It guarantees that what a server says or asks in one client's session reaches
// that client alone, and on a shared connection that it goes to nobody by guess;
// that params and results pass as the bytes they are, except for what the other
// era demands; that questions of a server reach the client in the words of its
// own era; and that all that is kept for a client is bounded. A call of a tool
// goes through upstream's Try, whichever kind of session it is made in. It makes no connection of
// MCPProxy's own and starts no server, it does not decide what may be called, and
// it writes no activity record.
//
// Where things are: a Surface sends a request that stands for itself, or opens a
// Session (this file). Sessions are opened, counted, kept for reuse and ended in
// sessions.go; what a client does in one is in session.go. What a session stands
// on is a peer: ownLink (own.go), sharedClient (shared.go; what the server is told
// for all of them: sharing.go) or legacyClient, a legacy client on a modern server
// (legacy.go). A modern client on a legacy server is served by modern (modern.go),
// whose requests may be held while their client is asked (modern_held.go) and
// whose subscriptions are in modern_listen.go. eras.go translates between the eras.
package compat

import (
	"context"
	"encoding/json"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/transport"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/upstream"
)

// Set is the servers that are wanted, with what clients can talk to.
type Set struct{ *upstream.Set }

// NewSet makes an empty Set.
func NewSet(opt upstream.Options) *Set {
	return &Set{upstream.NewSet(opt, func(sv *upstream.Server) upstream.Clients { return newClients(sv) })}
}

// Surface returns what clients can talk to of one server: requests of the modern
// revision, calls in parts, and sessions. A tools/call is refused unless it comes
// with the proof that it was decided about.
func (s *Set) Surface(server string) session.Surface { return surface{s, server} }

type surface struct {
	set  *Set
	name string
}

// Do sends a request that stands for itself.
func (f surface) Do(ctx context.Context, r *session.Request) (session.Reply, error) {
	if err := sound(r); err != nil {
		return session.Reply{}, err
	}
	sv, err := f.set.Server(ctx, f.name)
	if err != nil {
		return session.Reply{}, err
	}
	sv.Enter(r)
	defer sv.Leave(r)
	return sv.Try(ctx, r, func(c *upstream.Connection) (session.Reply, error) {
		if r.Call != nil || c.Modern() {
			return c.Do(ctx, r)
		}
		reply, err := sv.Clients.(*clients).modern.do(ctx, c, r)
		switch {
		case transport.NotExecuted(err): // those that are kept are older, and forgotten as well
			sv.Clients.End(upstream.Spare)
		case err != nil:
			err = sv.Explain(ctx, r, err) // the last word: it is not sent again
		}
		return reply, err
	})
}

// Open opens a session with the client's own initialize.
func (f surface) Open(ctx context.Context, initialize *session.Request) (session.Session, session.Reply, error) {
	if initialize.Method != mcp.Initialize {
		return nil, session.Reply{}, upstream.Unjudged()
	}
	sv, err := f.set.Server(ctx, f.name)
	if err != nil {
		return nil, session.Reply{}, err
	}
	sv.Enter(initialize)
	defer sv.Leave(initialize)
	sv.Wake() // what it lists is judged by our own connection
	ctx, cancel := context.WithTimeout(ctx, sv.Spec.ConnectTime())
	defer cancel()
	s, reply, err := sv.Clients.(*clients).open(ctx, initialize)
	if s == nil {
		return nil, reply, err
	}
	return s, reply, err
}

// sound refuses a request with header lines that HTTP does not allow.
func sound(r *session.Request) error {
	if err := transport.CheckHeaders(r.Headers); err != nil {
		return problem.New(problem.InvalidRequest, "The request cannot be passed on: "+err.Error(), "")
	}
	return nil
}

// clients are the clients of one server.
type clients struct {
	sessions
	modern modern
}

func newClients(sv *upstream.Server) *clients {
	c := &clients{sessions: sessions{sv: sv, sharing: newSharing(sv)}}
	c.modern.sv, c.modern.sessions = sv, &c.sessions
	return c
}

// Connected implements upstream.Clients, as the following methods do.
func (c *clients) Connected(on *upstream.Connection) {
	if !on.Modern() {
		c.modernOnly.Store(false)
	}
	c.sharing.renew(on)
}

func (c *clients) Heard(method string, params json.RawMessage) bool {
	return c.sharing.spread(method, params)
}

func (c *clients) InUse() bool { return c.inUse() || c.sharing.subscribed() }

func (c *clients) End(what upstream.Ending) {
	switch what {
	case upstream.Spare:
		c.end(func(s *Session) bool { return s.spare })
	case upstream.Restart:
		c.end(func(s *Session) bool { return s.kind != shared })
	case upstream.Sessions:
		c.end(func(*Session) bool { return true })
	case upstream.ForGood:
		c.close()
		c.modern.end()
		c.sharing.wg.Wait() // the connection has ended: nothing more is told
	}
}

// open opens a session of the kind that the server has for its clients. When it
// refuses initialize the session is nil and the reply says why.
func (c *clients) open(ctx context.Context, initialize *session.Request) (*Session, session.Reply, error) {
	switch {
	case c.sv.Shared():
		on, err := c.sv.Ready(ctx)
		if err != nil {
			return nil, session.Reply{}, c.sv.Explain(ctx, initialize, err)
		}
		if on.Modern() { // one connection for everybody anyhow
			return c.openAs(ctx, initialize, bridged)
		}
		return c.openAs(ctx, initialize, shared)
	case c.modernOnly.Load():
		return c.openAs(ctx, initialize, bridged)
	}
	before := c.sv.OverSSE()
	s, reply, err := c.openAs(ctx, initialize, own)
	if s != nil || ctx.Err() != nil {
		return s, reply, err
	}
	on, lost := c.sv.Ready(ctx)
	switch {
	case lost != nil:
	case !before && c.sv.OverSSE(): // which was not known yet
		return c.openAs(ctx, initialize, own)
	case on.Modern():
		// It speaks the modern revision alone. What it says of itself will do.
		if s, bridge, err := c.openAs(ctx, initialize, bridged); s != nil {
			c.modernOnly.Store(true)
			return s, bridge, err
		}
	}
	return nil, reply, err
}
