package upstream

import (
	"context"
	"time"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/transport"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
)

// maxSends limits how often a request is sent. It is sent again only if the server has certainly not executed it.
const maxSends = 2

// SendWhenReady calls f to send a request when there is a connection and the request may be sent. If the server is
// disconnected, SendWhenReady makes it reconnect at once and waits. A tools/call needs a permit. If the call had to
// wait, its policy decision is repeated, and the server must list the same definition. f is called again if the server
// has certainly not executed the request. If f returns a problem, that is final.
//
// The errors of SendWhenReady are problems, or ctx.Err() when the caller has canceled. Callers call BeginUse before it
// and EndUse after it.
func (s *Server) SendWhenReady(ctx context.Context, r *session.Request, f func(*Connection) (session.Reply, error)) (session.Reply, error) {
	isCall := IsToolCall(r)
	if isCall && !r.Permit.Allows(requestedToolName(r)) {
		return session.Reply{}, UnpermittedCallError()
	}
	reached := false // the server received the call and rejected it
	failed := func(err error) (session.Reply, error) {
		err = s.ToProblem(ctx, r, err)
		if p, ok := err.(*problem.Problem); ok && reached && p.Code == problem.ServerUnavailable {
			p.Hint = mayHaveRun + " " + s.logsHint()
		}
		return session.Reply{}, err
	}
	for sends := 1; ; sends++ {
		c, waited, err := s.waitForCurrentConnection(ctx, r)
		if err != nil {
			return failed(err)
		}
		if isCall {
			if err := s.checkCallAllowed(c, r, waited || sends > 1); err != nil {
				return session.Reply{}, err
			}
		}
		reply, err := f(c)
		if isCall {
			s.recordCallOutcome(ctx, reply, err)
		}
		if err == nil {
			return reply, nil
		}
		if p, ok := err.(*problem.Problem); ok {
			return session.Reply{}, p
		}
		gone := transport.IsRetryableSessionLoss(err)
		reached = reached || gone && isCall
		if !gone && !session.IsNotSent(err) || ctx.Err() != nil || sends == maxSends {
			return failed(err)
		}
	}
}

// recordCallOutcome records the outcome of a call that was sent, and checks the connection after a failure. If all
// calls of a server fail for failingAfter, the server becomes Failed until a call succeeds.
func (s *Server) recordCallOutcome(ctx context.Context, reply session.Reply, err error) {
	if err = serverFaultOf(ctx, reply, err); err == errInconclusive {
		return
	}
	if reply.Error != nil { // the server answered
		trySignal(s.connectionSuspect)
	}
	if s.failing.recordCall(time.Now(), err) {
		trySignal(s.failingChanged)
	}
}

// IsToolCall reports whether a request calls a tool.
func IsToolCall(r *session.Request) bool { return r.Call != nil || r.Method == mcp.CallTool }

// requestedToolName returns the tool of a tools/call, by the server's name for it.
func requestedToolName(r *session.Request) string {
	if r.Call != nil {
		return r.Call.Tool
	}
	name, _ := wirejson.String(wirejson.Find(r.Params, "name"))
	return name
}

// waitForCurrentConnection returns the connection when its tool list is current, and reports whether it had to wait for
// that.
func (s *Server) waitForCurrentConnection(ctx context.Context, r *session.Request) (c *Connection, waited bool, err error) {
	for {
		if c = s.availability.live.Load(); !c.isUsable() {
			waited = true
			if c, err = s.WaitReady(ctx); err != nil {
				return nil, waited, err
			}
		}
		if r.Permit.ListedDefinition() == nil || !s.listing.isStale(c) {
			return c, waited, nil
		}
		waited = true
		if err = s.listing.waitForCurrentList(ctx, c, s.availability.done); err == nil || c.link.Cause() == nil {
			return c, waited, err
		}
	}
}

// checkCallAllowed returns an error if a call may not be sent. If the call has waited, the decision is repeated. The
// tool must be unchanged.
func (s *Server) checkCallAllowed(c *Connection, r *session.Request, waited bool) error {
	if waited {
		if err := r.Permit.Recheck(); err != nil {
			return err
		}
	}
	switch {
	case !c.toolMatchesDecision(r):
		return s.ToolChangedError(r)
	case r.Call != nil && c.listsOnlyToClients(r.Call.Tool):
		return s.clientOnlyToolError(r)
	}
	return nil
}

// RecheckDecision repeats the decision about a call that waited outside of SendWhenReady, for a session or for its
// client's answer.
func (s *Server) RecheckDecision(ctx context.Context, c *Connection, r *session.Request) error {
	if !IsToolCall(r) {
		return nil
	}
	if r.Permit.ListedDefinition() != nil && s.listing.isStale(c) {
		if err := s.listing.waitForCurrentList(ctx, c, s.availability.done); err != nil {
			return err
		}
	}
	return s.checkCallAllowed(c, r, true)
}
