package compat

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/transport"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/upstream"
)

// Do sends a request of the client.
func (s *Session) Do(ctx context.Context, r *session.Request) (session.Reply, error) {
	if err := sound(r); err != nil {
		return session.Reply{}, err
	}
	if r.Method != mcp.Ping || s.kind != shared { // that one does not go to the server
		s.sv.Enter(r)
		defer s.sv.Leave(r)
	}
	reply, err := s.send(ctx, r)
	if reply.Status == http.StatusNotFound && (s.own == nil || !s.own.HasID()) {
		reply.Status = 0 // it would say that the client's session is over
	}
	return reply, s.explain(ctx, r, err)
}

// send sends a request. A call in the client's own session takes the way of all
// calls, on which it is judged by our own connection. Peers of the other kinds
// take it by themselves.
func (s *Session) send(ctx context.Context, r *session.Request) (session.Reply, error) {
	s.enter()
	defer s.leave()
	if s.own == nil || !upstream.IsCall(r) {
		return s.peer.Do(ctx, r)
	}
	if cause := s.Cause(); cause != nil {
		return session.Reply{}, s.sv.OverUnsent(cause)
	}
	return s.sv.Try(ctx, r, func(c *upstream.Connection) (session.Reply, error) {
		if err := s.own.admit(ctx, c, r); err != nil {
			return session.Reply{}, s.explain(ctx, r, err)
		}
		reply, err := s.peer.Do(ctx, r)
		return reply, s.explain(ctx, r, err)
	})
}

// explain makes the error of a request.
func (s *Session) explain(ctx context.Context, r *session.Request, err error) error {
	if _, ok := err.(*problem.Problem); ok || err == nil {
		return err
	}
	if cause := s.Cause(); cause != nil && ctx.Err() == nil {
		if transport.NotExecuted(err) || session.NotSent(err) {
			return s.sv.OverUnsent(cause)
		}
		return s.sv.Over(cause)
	}
	return s.sv.Explain(ctx, r, err)
}

// Notify passes a notification of the client on.
func (s *Session) Notify(ctx context.Context, method string, params json.RawMessage) error {
	if method == mcp.CallTool {
		return upstream.Unjudged()
	}
	s.enter()
	defer s.leave()
	return s.failed(ctx, "the notification", s.peer.Notify(ctx, method, params))
}

// Respond passes on the client's answer to a request of the server.
func (s *Session) Respond(ctx context.Context, id json.RawMessage, r session.Reply) error {
	s.enter()
	defer s.leave()
	return s.failed(ctx, "the answer", s.peer.Respond(ctx, id, r))
}

// Listen hands on what the server says by itself.
func (s *Session) Listen(ctx context.Context, say func(session.Event), opened func()) error {
	s.enter()
	defer s.leave()
	err := s.peer.Listen(ctx, say, opened)
	var refused *transport.StatusError
	if errors.As(err, &refused) || errors.Is(err, session.ErrHasReader) {
		return problem.Newf(problem.InvalidRequest, "Server '%s' offers no stream here: %v", s.sv.Spec.Name, err)
	}
	return s.failed(ctx, "the stream", err)
}

// failed makes the error of something that is no request.
func (s *Session) failed(ctx context.Context, what string, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	if cause := s.Cause(); cause != nil {
		return s.sv.Over(cause)
	}
	return s.sv.NotTaken(what, err)
}

// enter and leave keep account of the use.
func (s *Session) enter() { s.busy.Add(1) }

func (s *Session) leave() {
	s.used.Store(int64(time.Since(s.born)))
	s.busy.Add(-1)
}
