package transport

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
)

// refused reads an answer that is not 2xx. It may hold the JSON-RPC error of
// the request.
func (l *HTTP) refused(a *Response, x *entry) (session.Reply, error) {
	fail := statusOf(a)
	if m := errorIn(a); m != nil && !fail.WantsLogin() && x.isAnswer(m) {
		reply := replyOf(m, true)
		reply.Status = a.Status
		return reply, nil
	}
	return session.Reply{}, fail
}

// errorIn returns the JSON-RPC error that an answer has for its body, nil if
// there is none.
func errorIn(a *Response) *wirejson.Message {
	if a.Media != JSON {
		return nil
	}
	body, err := readBody(a, maxErrorBody)
	if err != nil {
		return nil
	}
	m, err := wirejson.Parse(validUTF8(withoutMark(bytes.TrimSpace(body))))
	if err != nil || m.Error == nil {
		return nil
	}
	return &m
}

// A server that has forgotten the session says so in many ways: with any status,
// in an error of JSON-RPC, as plain text. No text decides. After a refusal that may mean it
// the server is asked for what it has answered before in this session.

// settled returns the outcome of an exchange. It fails the link when the server has
// forgotten the session. The outcome is a goneError only where the server cannot have run
// the request: that one may be sent again.
func (l *HTTP) settled(ctx context.Context, state *httpState, x *entry, status int, reply session.Reply, err error) (session.Reply, error) {
	doubtful, unrun := doubts(status, reply, err)
	if !doubtful || x.probes || x.Method == mcp.Initialize || state.version == "" || l.modern.Load() || ctx.Err() != nil {
		return reply, err
	}
	switch {
	case !l.forgotten(ctx, state, status, x.Method):
		return reply, err
	case unrun:
		if err == nil {
			err = &AnswerError{Code: reply.Error.Code}
		}
		return session.Reply{}, &goneError{err}
	}
	l.Fail(ErrSessionGone)
	return reply, err
}

// doubts reports whether the answer to a request may mean that the server has forgotten the
// session, and whether the server has not run the request if it does mean that.
func doubts(status int, reply session.Reply, err error) (doubtful, unrun bool) {
	passing := (&StatusError{Status: status}).Passing()
	_, odd := errors.AsType[*StatusError](err)
	_, silent := errors.AsType[*noMessage](err)
	switch {
	case status >= 300 && status < 400:
		return false, false
	case status >= 400 && status < 500 && !passing:
		return true, true
	case isBroken(status):
		return true, false
	case status > 299:
		return false, false
	case odd || silent:
		return true, false
	case err != nil || reply.Error == nil:
		return false, false
	}
	names := namesSession(reply.Error.Message)
	switch reply.Error.Code {
	case wirejson.CodeMethodNotFound, wirejson.CodeInvalidParams, mcp.CodeResourceNotFound:
		return names, names
	}
	return true, names
}

// namesSession reports whether an error speaks of the session or of the handshake. It
// decides only about a request that the server has answered with status 200 and whose
// session is known to be gone.
func namesSession(message string) bool {
	message = strings.ToLower(message)
	return strings.Contains(message, "session") || strings.Contains(message, "initializ")
}

// pingTime is how long a server may take to answer a ping.
const pingTime = 10 * time.Second

// forgotten reports whether the server has forgotten the session: it refuses what it has
// answered in this session before, a ping and the list of its tools. One ping is
// enough where it answers with the status that the protocol has for this.
func (l *HTTP) forgotten(ctx context.Context, state *httpState, status int, method string) bool {
	ctx, cancel := context.WithTimeout(ctx, pingTime)
	defer cancel()
	known := status == http.StatusNotFound && state.session != ""
	if known && method == mcp.Ping {
		return true
	}
	refused, again := l.refuses(ctx, state, mcp.Ping)
	if !refused || known && again == status {
		return refused
	}
	refused, _ = l.refuses(ctx, state, mcp.ListTools)
	return refused
}

// refuses sends a request of our own and reports whether the server refuses it, and with
// which status. A server that does not know the method does not refuse it.
func (l *HTTP) refuses(ctx context.Context, state *httpState, method string) (refused bool, status int) {
	x := l.wait.entry()
	x.request.Body = x.send(nil, &session.Request{Method: method}, &l.Options, false, false)
	x.probes = true
	reply, err := l.exchange(ctx, state, x)
	if fail, ok := errors.AsType[*StatusError](err); ok {
		status = fail.Status
	} else if err == nil && reply.Error != nil {
		status, err = reply.Status, &AnswerError{Code: reply.Error.Code}
	}
	return Refuses(err), status
}

// Refuses reports whether err is a server's refusal of a request that it should know, which
// does not pass by itself.
func Refuses(err error) bool {
	if fail, ok := errors.AsType[*StatusError](err); ok {
		return !fail.Passing() || isBroken(fail.Status)
	}
	if answer, ok := errors.AsType[*AnswerError](err); ok {
		return answer.Code != wirejson.CodeMethodNotFound
	}
	_, silent := errors.AsType[*noMessage](err)
	return silent
}

// isBroken reports whether a status says that the server itself fails, and no gateway before it.
func isBroken(status int) bool {
	return status == http.StatusInternalServerError || status == http.StatusNotImplemented
}
