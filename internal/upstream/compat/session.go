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
	if err := checkHeaders(r); err != nil {
		return session.Reply{}, err
	}
	if r.Method != mcp.Ping || s.kind != kindShared { // not forwarded to the server
		s.sv.BeginUse(r)
		defer s.sv.EndUse(r)
	}
	reply, err := s.sendToPeer(ctx, r)
	if reply.Status == http.StatusNotFound && (s.own == nil || !s.own.HasSessionID()) {
		reply.Status = 0 // it would mean that the client's session has ended
	}
	s.sv.Clients.(*serverClients).endEndlessList(r, &reply)
	return reply, s.toProblem(ctx, r, err)
}

// sendToPeer sends a request. A call in the client's own session goes through Server.SendWhenReady, and
// is decided on MCPProxy's own connection. The other peers do that themselves.
func (s *Session) sendToPeer(ctx context.Context, r *session.Request) (session.Reply, error) {
	s.beginUse()
	defer s.endUse()
	if s.client != nil {
		defer s.client.beginRequest(r)()
		filtered := *r
		filtered.Say, r = s.filterEvents(ctx, r.Say), &filtered
	}
	if s.own == nil || !upstream.IsToolCall(r) {
		return s.sessionPeer.Do(ctx, r)
	}
	if cause := s.Cause(); cause != nil {
		return session.Reply{}, s.sv.SessionEndedBeforeSendError(cause)
	}
	return s.sv.SendWhenReady(ctx, r, func(c *upstream.Connection) (session.Reply, error) {
		if err := s.own.rejectCallOfChangedTool(ctx, c, r); err != nil {
			return session.Reply{}, s.toProblem(ctx, r, err)
		}
		reply, err := s.sessionPeer.Do(ctx, r)
		return reply, s.toProblem(ctx, r, err)
	})
}

// toProblem converts the error of a request.
func (s *Session) toProblem(ctx context.Context, r *session.Request, err error) error {
	if _, ok := err.(*problem.Problem); ok || err == nil {
		return err
	}
	if cause := s.Cause(); cause != nil && ctx.Err() == nil {
		if transport.IsRetryableSessionLoss(err) || session.IsNotSent(err) {
			return s.sv.SessionEndedBeforeSendError(cause)
		}
		return s.sv.SessionEndedError(cause)
	}
	return s.sv.ToProblem(ctx, r, err)
}

// notifyTime limits the wait until a server has taken a notification. Some never answer one; it is sent nevertheless.
const notifyTime = 5 * time.Second

// NotifyServer forwards a notification of the client.
func (s *Session) NotifyServer(ctx context.Context, method string, params json.RawMessage) error {
	if method == mcp.CallTool {
		return upstream.UnpermittedCallError()
	}
	s.beginUse()
	defer s.endUse()
	return s.toNotAcceptedError(ctx, "the notification", s.notifyPeer(ctx, method, params))
}

// notifyPeer sends a notification, and does not wait for long until the server has taken it.
func (s *Session) notifyPeer(ctx context.Context, method string, params json.RawMessage) error {
	limited, cancel := context.WithTimeout(ctx, notifyTime)
	defer cancel()
	err := s.sessionPeer.NotifyServer(limited, method, params)
	if limited.Err() != nil && ctx.Err() == nil && s.Cause() == nil {
		return nil
	}
	return err
}

// AnswerServerQuestion forwards the client's response to a request of the server.
func (s *Session) AnswerServerQuestion(ctx context.Context, id json.RawMessage, r session.Reply) error {
	s.beginUse()
	defer s.endUse()
	return s.toNotAcceptedError(ctx, "the answer", s.sessionPeer.AnswerServerQuestion(ctx, id, r))
}

// Listen delivers the server's messages that belong to no request.
func (s *Session) Listen(ctx context.Context, say func(session.Event), opened func()) error {
	s.beginUse()
	defer s.endUse()
	err := s.sessionPeer.Listen(ctx, s.filterEvents(ctx, say), opened)
	var refused *transport.StatusError
	if errors.As(err, &refused) || errors.Is(err, session.ErrHasReader) {
		return problem.Newf(problem.InvalidRequest, "Server '%s' has no event stream at this address: %v", s.sv.Spec.Name, err)
	}
	return s.toNotAcceptedError(ctx, "the stream", err)
}

// toNotAcceptedError returns the error for a notification or response that failed.
func (s *Session) toNotAcceptedError(ctx context.Context, what string, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	if cause := s.Cause(); cause != nil {
		return s.sv.SessionEndedError(cause)
	}
	return s.sv.MessageNotAcceptedError(what, err)
}

// beginUse and endUse count uses.
func (s *Session) beginUse() { s.busy.Add(1) }

func (s *Session) endUse() {
	s.lastUsed.Store(int64(time.Since(s.started)))
	s.busy.Add(-1)
}
