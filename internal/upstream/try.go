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

// maxSends is how often a request may be sent, when it is certain that the
// server has not acted on the one before.
const maxSends = 2

// Try has f send a request, when there is a connection and the request may be
// sent. It waits for a server that is away, and gets it reconnected at once. A
// tools/call needs the proof that it was decided about; when it has waited it is
// decided about once more, and the server has to list the very definition that
// was judged. f is called once more when it is certain that the server has not
// acted on the request; a problem that f returns is the last word.
//
// The errors of Try are problems, or ctx.Err() when the caller has given up.
// Callers call Enter before it and Leave after it.
func (s *Server) Try(ctx context.Context, r *session.Request, f func(*Connection) (session.Reply, error)) (session.Reply, error) {
	isCall := IsCall(r)
	if isCall && !r.Permit.Allows(toolOf(r)) {
		return session.Reply{}, Unjudged()
	}
	reached := false // the server has seen the call, and refused it
	failed := func(err error) (session.Reply, error) {
		err = s.Explain(ctx, r, err)
		if p, ok := err.(*problem.Problem); ok && reached && p.Code == problem.ServerUnavailable {
			p.Hint = mayHaveRun + " " + s.seeLogs()
		}
		return session.Reply{}, err
	}
	for sends := 1; ; sends++ {
		c, waited, err := s.current(ctx, r)
		if err != nil {
			return failed(err)
		}
		if isCall {
			if err := s.gate(c, r, waited || sends > 1); err != nil {
				return session.Reply{}, err
			}
		}
		reply, err := f(c)
		if isCall {
			s.noteCall(ctx, reply, err)
		}
		if err == nil {
			return reply, nil
		}
		if p, ok := err.(*problem.Problem); ok {
			return session.Reply{}, p
		}
		gone := transport.NotExecuted(err)
		reached = reached || gone && isCall
		if !gone && !session.NotSent(err) || ctx.Err() != nil || sends == maxSends {
			return failed(err)
		}
	}
}

// noteCall takes the outcome of a call that was sent. The connection is tried after a
// failure. A server that fails every call for failingTime is shown as failed, and works
// again with the first call that succeeds.
func (s *Server) noteCall(ctx context.Context, reply session.Reply, err error) {
	if err = callFailure(ctx, reply, err); err == errNoVerdict {
		return
	}
	if reply.Error != nil { // it answers; one that is at work for long is left alone
		signal(s.suspicion)
	}
	if s.failing.note(time.Now(), err) {
		signal(s.verdict)
	}
}

// IsCall reports whether a request calls a tool.
func IsCall(r *session.Request) bool { return r.Call != nil || r.Method == mcp.CallTool }

// toolOf returns the tool that a tools/call names, as its server does.
func toolOf(r *session.Request) string {
	if r.Call != nil {
		return r.Call.Tool
	}
	name, _ := wirejson.String(wirejson.Find(r.Params, "name"))
	return name
}

// current returns the connection when the server's list is up to date, and
// reports whether that had to be waited for.
func (s *Server) current(ctx context.Context, r *session.Request) (c *Connection, waited bool, err error) {
	for {
		if c = s.availability.live.Load(); !c.usable() {
			waited = true
			if c, err = s.Ready(ctx); err != nil {
				return nil, waited, err
			}
		}
		if r.Permit.Listed() == nil || !s.listing.stale(c) {
			return c, waited, nil
		}
		waited = true
		if err = s.listing.await(ctx, c, s.availability.done); err == nil || c.link.Cause() == nil {
			return c, waited, err
		}
	}
}

// gate refuses a call that may not be sent: it is decided about once more if it
// has waited, and the tool has to be the one that was judged.
func (s *Server) gate(c *Connection, r *session.Request, waited bool) error {
	if waited {
		if err := r.Permit.Recheck(); err != nil {
			return err
		}
	}
	switch {
	case !c.stillLists(r):
		return s.Changed(r)
	case r.Call != nil && c.forOthers(r.Call.Tool):
		return s.forOthers(r)
	}
	return nil
}

// Recheck is for a request that has waited otherwise than in Try, for a session or
// an answer of its client: if it is a call it is decided about once more.
func (s *Server) Recheck(ctx context.Context, c *Connection, r *session.Request) error {
	if !IsCall(r) {
		return nil
	}
	if r.Permit.Listed() != nil && s.listing.stale(c) {
		if err := s.listing.await(ctx, c, s.availability.done); err != nil {
			return err
		}
	}
	return s.gate(c, r, true)
}
