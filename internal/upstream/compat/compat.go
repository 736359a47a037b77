// Package compat gives clients access to one server, by single requests or in a session. It translates between the legacy
// protocol (2024-11-05 to 2025-11-25) and the modern one (2026-07-28).
//
// Files:
//   - compat.go: Set.Surface, the API.
//   - session.go, sessions.go: Session, a client's session with the server; the pool of unused sessions; limits on processes
//     for clients.
//   - exclusive_link.go: a session of the server for one client alone.
//   - shared_client.go, shared_connection.go: clients that share MCPProxy's own connection; their subscriptions and log levels
//     are synchronized with the server.
//   - legacy.go: a legacy client on a modern server.
//   - modern.go, modern_held.go, modern_listen.go: modern clients on a legacy server; the request is held while the client
//     answers the server's requests.
//   - translate.go: converts results, errors and metadata.
//   - endless_list.go: ends a list whose pages lead in a circle.
//   - reply_helpers.go: replies and JSON objects.
//
// Guarantees:
//   - A question of a server reaches only the client whose request has caused it, or is refused.
//   - A server's messages in one client's session reach only that client. On a shared connection, they are never routed by
//     guess.
//   - Params and results keep their bytes, except for changes that the other protocol requires, and for a nextCursor that would
//     lead the client in a circle.
//   - A server's requests to a client use the client's protocol.
//   - Everything stored for a client is bounded.
//   - Every tool call goes through upstream's Server.SendWhenReady.
//
// It opens no connection of MCPProxy itself, does not decide what may be called, and writes no activity record.
package compat

import (
	"context"
	"encoding/json"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/transport"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/upstream"
)

// ServerSet is the enabled servers with access for clients.
type ServerSet struct{ *upstream.Set }

// NewServerSet returns an empty Set.
func NewServerSet(opt upstream.Options) *ServerSet {
	return &ServerSet{upstream.NewSet(opt, func(sv *upstream.Server) upstream.ServerClients { return newServerClients(sv) })}
}

// ServerEndpoint returns a server's API for clients: modern requests, calls with input rounds,
// and sessions. A tools/call without a permit is rejected.
func (s *ServerSet) ServerEndpoint(server string) session.Endpoint { return serverEndpoint{s, server} }

type serverEndpoint struct {
	set  *ServerSet
	name string
}

// Do sends a request outside of a session.
func (f serverEndpoint) Do(ctx context.Context, r *session.Request) (session.Reply, error) {
	if err := checkHeaders(r); err != nil {
		return session.Reply{}, err
	}
	sv, err := f.set.ServerForRequest(ctx, f.name)
	if err != nil {
		return session.Reply{}, err
	}
	sv.BeginUse(r)
	defer sv.EndUse(r)
	clients := sv.Clients.(*serverClients)
	reply, err := sv.SendWhenReady(ctx, r, func(c *upstream.Connection) (session.Reply, error) {
		if r.Call != nil || r.ID == nil || c.IsModern() { // without an ID it is a request of MCPProxy itself
			return c.Do(ctx, r)
		}
		reply, err := clients.modern.handleRequest(ctx, c, r)
		switch {
		case transport.IsRetryableSessionLoss(err): // pooled sessions are older, and discarded as well
			sv.Clients.EndSessions(upstream.EndIdle)
		case err != nil:
			err = sv.ToProblem(ctx, r, err) // a problem is final: the request is not sent again
		}
		return reply, err
	})
	clients.endEndlessList(r, &reply)
	return reply, err
}

// OpenSession opens a session with the client's initialize request.
func (f serverEndpoint) OpenSession(ctx context.Context, initialize *session.Request) (session.Session, session.Reply, error) {
	if initialize.Method != mcp.Initialize {
		return nil, session.Reply{}, upstream.UnpermittedCallError()
	}
	sv, err := f.set.ServerForRequest(ctx, f.name)
	if err != nil {
		return nil, session.Reply{}, err
	}
	sv.BeginUse(initialize)
	defer sv.EndUse(initialize)
	sv.RequestStart() // tools are listed on MCPProxy's own connection
	ctx, cancel := context.WithTimeout(ctx, sv.Spec.ConnectTimeLimit())
	defer cancel()
	s, reply, err := sv.Clients.(*serverClients).openSession(ctx, initialize)
	if s == nil {
		return nil, reply, err
	}
	return s, reply, err
}

// checkHeaders rejects a request with invalid HTTP headers.
func checkHeaders(r *session.Request) error {
	if err := transport.CheckHeaders(r.Headers); err != nil {
		return problem.New(problem.InvalidRequest, "The request cannot be forwarded: "+err.Error(), "")
	}
	return nil
}

// serverClients holds the sessions of the MCP clients with one server.
type serverClients struct {
	sessionSet
	modern modernClientBridge
	pages  pageGraph
}

func newServerClients(sv *upstream.Server) *serverClients {
	c := &serverClients{sessionSet: sessionSet{sv: sv, sharing: newSharedConnection(sv)}}
	c.modern.sv, c.modern.sessions = sv, &c.sessionSet
	return c
}

// OnConnected and the following methods implement upstream.ServerClients.
func (c *serverClients) OnConnected(on *upstream.Connection) {
	if !on.IsModern() {
		c.modernOnly.Store(false)
	}
	c.sharing.moveClientsToConnection(on)
}

func (c *serverClients) OnNotification(method string, params json.RawMessage) bool {
	return c.sharing.deliverToClients(method, params)
}

// OnNeedLearned ends the sessions of clients that now need their own session, as soon as they have no request in
// flight.
func (c *serverClients) OnNeedLearned() {
	on := c.sharing.connection()
	c.mu.Lock()
	defer c.mu.Unlock()
	for s := range c.all {
		if s.needsOwn(on) {
			s.moveAway()
		}
	}
}

func (c *serverClients) InUse() bool { return c.hasDependentSession() || c.sharing.hasSubscriptions() }

func (c *serverClients) EndSessions(what upstream.SessionsToEnd) {
	switch what {
	case upstream.EndIdle:
		c.endSessions(func(s *Session) bool { return s.pooled })
	case upstream.EndForRestart:
		c.endSessions(func(s *Session) bool { return s.kind != kindShared })
	case upstream.EndSessions:
		c.endSessions(func(*Session) bool { return true })
	case upstream.EndAll:
		c.closeAll()
		c.modern.endHeldRequests()
		c.sharing.wg.Wait() // the connection has ended: nothing more is sent
	}
}

// needsLegacySession reports whether a legacy client needs a session of its own with a server on a modern connection. A
// server that supports both protocols may ask a legacy client things that it cannot ask in the modern protocol. Over HTTP, a
// session costs no process.
func (c *serverClients) needsLegacySession(on *upstream.Connection, initialize *session.Request) bool {
	if !c.sv.Spec.Auto || c.modernOnly.Load() {
		return false
	}
	capabilities := wirejson.Find(initialize.Params, "capabilities")
	return c.sv.Spec.Transport != upstream.Stdio || declaresAnyQuestion(capabilities) || c.sv.NeedsOwnSession(on, capabilities, !initialize.WithoutTasks)
}

// openSession opens a session of the server's kind. If the server rejects initialize, the
// session is nil and the reply has the error.
func (c *serverClients) openSession(ctx context.Context, initialize *session.Request) (*Session, session.Reply, error) {
	switch {
	case c.sv.IsShared() || c.sv.Spec.Auto:
		on, err := c.sv.WaitReady(ctx)
		switch {
		case err != nil:
			return nil, session.Reply{}, c.sv.ToProblem(ctx, initialize, err)
		case on.IsModern() && !c.needsLegacySession(on, initialize): // modern servers have one connection for all anyway
			return c.openSessionOfKind(ctx, initialize, kindBridged)
		case on.IsModern():
		case !c.sv.Spec.Auto:
			return c.openSessionOfKind(ctx, initialize, kindShared)
		case !c.sv.NeedsOwnSession(on, wirejson.Find(initialize.Params, "capabilities"), !initialize.WithoutTasks):
			s, reply, err := c.openSessionOfKind(ctx, initialize, kindShared)
			if s != nil {
				s.shared.allowMoveToOwnSession()
				if s.needsOwn(on) { // learned in the meantime
					s.moveAway()
				}
			}
			return s, reply, err
		}
	case c.modernOnly.Load():
		return c.openSessionOfKind(ctx, initialize, kindBridged)
	}
	before := c.sv.UsesSSE()
	s, reply, err := c.openSessionOfKind(ctx, initialize, kindOwn)
	if s != nil || ctx.Err() != nil {
		return s, reply, err
	}
	on, lost := c.sv.WaitReady(ctx)
	switch {
	case lost != nil:
	case !before && c.sv.UsesSSE(): // detected by this attempt
		return c.openSessionOfKind(ctx, initialize, kindOwn)
	case on.IsModern():
		// It only speaks the modern protocol. Its discover result is enough.
		if s, bridge, err := c.openSessionOfKind(ctx, initialize, kindBridged); s != nil {
			c.modernOnly.Store(true)
			return s, bridge, err
		}
	}
	return nil, reply, err
}
