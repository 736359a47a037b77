// Package compat gives clients access to one server, by single requests or in a session,
// and translates between the legacy protocol (2024-11-05 to 2025-11-25) and the modern
// one (2026-07-28). Surface (compat.go) is the API, Session (session.go, sessions.go) a
// client's session. Its peer is one of three: ownLink (own.go), a session of the server
// for this client alone; sharedClient (shared.go, shared_connection.go), one of several clients on
// MCPProxy's own connection; or legacyClient (legacy.go), a legacy client on a modern
// server. modern*.go serve modern clients on a legacy server. translate.go translates.
//
// Guarantees:
//   - What a server sends in one client's session reaches only that client. On a shared
//     connection, it is never routed by guess.
//   - Params and results stay the bytes they are, except for what the other protocol
//     requires.
//   - A server's requests to a client use the client's protocol.
//   - Everything stored for a client is bounded.
//   - Every tool call goes through upstream's Server.Try.
//
// It opens no connection of MCPProxy itself, does not decide what may be called, and
// writes no activity record.
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

// Set is the enabled servers with access for clients.
type Set struct{ *upstream.Set }

// NewSet returns an empty Set.
func NewSet(opt upstream.Options) *Set {
	return &Set{upstream.NewSet(opt, func(sv *upstream.Server) upstream.ClientSessions { return newClientSessions(sv) })}
}

// Surface returns a server's API for clients: modern requests, calls with input rounds,
// and sessions. A tools/call without a permit is rejected.
func (s *Set) Surface(server string) session.Endpoint { return surface{s, server} }

type surface struct {
	set  *Set
	name string
}

// Do sends a request outside of a session.
func (f surface) Do(ctx context.Context, r *session.Request) (session.Reply, error) {
	if err := checkHeaders(r); err != nil {
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
		reply, err := sv.Clients.(*clientSessions).modern.handle(ctx, c, r)
		switch {
		case transport.IsNotExecuted(err): // pooled sessions are older, and discarded as well
			sv.Clients.End(upstream.EndIdle)
		case err != nil:
			err = sv.Explain(ctx, r, err) // a problem is final: the request is not sent again
		}
		return reply, err
	})
}

// Open opens a session with the client's initialize request.
func (f surface) Open(ctx context.Context, initialize *session.Request) (session.Session, session.Reply, error) {
	if initialize.Method != mcp.Initialize {
		return nil, session.Reply{}, upstream.UnpermittedCallError()
	}
	sv, err := f.set.Server(ctx, f.name)
	if err != nil {
		return nil, session.Reply{}, err
	}
	sv.Enter(initialize)
	defer sv.Leave(initialize)
	sv.Wake() // tools are listed on MCPProxy's own connection
	ctx, cancel := context.WithTimeout(ctx, sv.Spec.ConnectTime())
	defer cancel()
	s, reply, err := sv.Clients.(*clientSessions).open(ctx, initialize)
	if s == nil {
		return nil, reply, err
	}
	return s, reply, err
}

// checkHeaders rejects a request with invalid HTTP headers.
func checkHeaders(r *session.Request) error {
	if err := transport.CheckHeaders(r.Headers); err != nil {
		return problem.New(problem.InvalidRequest, "The request cannot be passed on: "+err.Error(), "")
	}
	return nil
}

// clientSessions are the clients of one server.
type clientSessions struct {
	sessions
	modern modernClients
}

func newClientSessions(sv *upstream.Server) *clientSessions {
	c := &clientSessions{sessions: sessions{sv: sv, sharing: newSharedConnection(sv)}}
	c.modern.sv, c.modern.sessions = sv, &c.sessions
	return c
}

// Connected and the following methods implement upstream.ClientSessions.
func (c *clientSessions) Connected(on *upstream.Connection) {
	if !on.Modern() {
		c.modernOnly.Store(false)
	}
	c.sharing.reconnect(on)
}

func (c *clientSessions) Notified(method string, params json.RawMessage) bool {
	return c.sharing.broadcast(method, params)
}

func (c *clientSessions) InUse() bool { return c.inUse() || c.sharing.subscribed() }

func (c *clientSessions) End(what upstream.EndScope) {
	switch what {
	case upstream.EndIdle:
		c.end(func(s *Session) bool { return s.pooled })
	case upstream.EndForRestart:
		c.end(func(s *Session) bool { return s.kind != kindShared })
	case upstream.EndSessions:
		c.end(func(*Session) bool { return true })
	case upstream.EndAll:
		c.close()
		c.modern.end()
		c.sharing.wg.Wait() // the connection has ended: nothing more is sent
	}
}

// open opens a session of the server's kind. If the server rejects initialize, the
// session is nil and the reply has the error.
func (c *clientSessions) open(ctx context.Context, initialize *session.Request) (*Session, session.Reply, error) {
	switch {
	case c.sv.Shared():
		on, err := c.sv.Ready(ctx)
		if err != nil {
			return nil, session.Reply{}, c.sv.Explain(ctx, initialize, err)
		}
		if on.Modern() { // modern servers have one connection for all anyway
			return c.openAs(ctx, initialize, kindBridged)
		}
		return c.openAs(ctx, initialize, kindShared)
	case c.modernOnly.Load():
		return c.openAs(ctx, initialize, kindBridged)
	}
	before := c.sv.UsesSSE()
	s, reply, err := c.openAs(ctx, initialize, kindOwn)
	if s != nil || ctx.Err() != nil {
		return s, reply, err
	}
	on, lost := c.sv.Ready(ctx)
	switch {
	case lost != nil:
	case !before && c.sv.UsesSSE(): // detected by this attempt
		return c.openAs(ctx, initialize, kindOwn)
	case on.Modern():
		// It only speaks the modern protocol. Its discover result is enough.
		if s, bridge, err := c.openAs(ctx, initialize, kindBridged); s != nil {
			c.modernOnly.Store(true)
			return s, bridge, err
		}
	}
	return nil, reply, err
}
