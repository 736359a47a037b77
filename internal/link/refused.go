package link

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"time"

	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/session"
	"mcpproxy/internal/wire"
)

// refused reads an answer that is not 2xx. It may hold the JSON-RPC error of
// the request; or it says that the session has gone, and then the server has
// not looked at the request.
func (l *HTTP) refused(ctx context.Context, state *httpState, a *wire.Response, x *entry) (session.Reply, error) {
	fail := statusOf(a)
	m := errorIn(a)
	var reply session.Reply
	if m != nil && !fail.WantsLogin() && x.isAnswer(m) {
		reply = replyOf(m, true)
		reply.Status = a.Status
	}
	gone := a.Status == http.StatusNotFound || a.Status == http.StatusBadRequest && m != nil && aboutSession(m)
	switch {
	case gone && state.session != "" && (x.Method == mcp.Ping || l.sessionGone(ctx, state)):
		return session.Reply{}, &goneError{fail}
	case reply.Error == nil:
		return session.Reply{}, fail
	}
	return reply, nil
}

// errorIn returns the JSON-RPC error that an answer has for its body, nil if
// there is none.
func errorIn(a *wire.Response) *jsonrpc.Message {
	if a.Media != wire.JSON {
		return nil
	}
	body, err := wire.ReadBody(a, maxErrorBody)
	if err != nil {
		return nil
	}
	m, err := jsonrpc.Parse(validUTF8(bytes.TrimSpace(body)))
	if err != nil || m.Error == nil {
		return nil
	}
	return &m
}

// aboutSession recognises servers that answer 400 where the protocol asks for
// 404, by the very texts of the TypeScript and Python SDKs and their examples.
func aboutSession(m *jsonrpc.Message) bool {
	switch m.Error.Message {
	case "Bad Request: No valid session ID provided", "Bad Request: Mcp-Session-Id header is required",
		"Bad Request: Missing session ID":
		return true
	}
	return false
}

// pingTime is how long a server may take to answer a ping.
const pingTime = 10 * time.Second

// sessionGone makes sure, with a ping, that it was the session which the server
// did not know when it refused a request, and nothing that the request is about.
func (l *HTTP) sessionGone(ctx context.Context, state *httpState) bool {
	ctx, cancel := context.WithTimeout(ctx, pingTime)
	defer cancel()
	x := l.wait.entry()
	x.request.Body = x.send(nil, &session.Request{Method: mcp.Ping}, &l.Options, false, false)
	_, err := l.exchange(ctx, state, x)
	return errors.Is(err, ErrSessionGone)
}
