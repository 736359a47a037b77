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

// readRefusal reads an error response. It may contain the JSON-RPC error of the request.
func (l *HTTPLink) readRefusal(a *HTTPResponse, x *pendingRequest) (session.Reply, error) {
	fail := newStatusError(a)
	if m := errorInBody(a); m != nil && !fail.WantsLogin() && x.isAnsweredBy(m) {
		reply := toReply(m, true)
		reply.Status = a.Status
		return reply, nil
	}
	return session.Reply{}, fail
}

// errorInBody returns the JSON-RPC error in the body, or nil.
func errorInBody(a *HTTPResponse) *wirejson.Message {
	if a.Media != JSON && a.Media != unsure {
		return nil
	}
	body, err := readBody(a, maxErrorBody)
	if err != nil {
		return nil
	}
	m, err := wirejson.ParseServerMessage(toValidUTF8(trimByteOrderMark(bytes.TrimSpace(body))))
	if err != nil || m.Error == nil {
		return nil
	}
	return &m
}

// Servers report a lost session in many ways: with any status, in a JSON-RPC error, as plain text. MCPProxy does not
// interpret texts. After a refusal that may mean a lost session, it repeats requests that the server has answered
// before in this session.

// checkSessionLost returns the result of an exchange. It fails the link if the server has lost the session. It
// returns a sessionGoneError only if the server cannot have executed the request.
func (l *HTTPLink) checkSessionLost(ctx context.Context, state *sessionRequestHeads, x *pendingRequest, status int, reply session.Reply, err error) (session.Reply, error) {
	doubtful, unrun := suggestsLostSession(status, reply, err)
	if !doubtful || x.probes || x.Method == mcp.Initialize || state.version == "" || l.modern.Load() || ctx.Err() != nil {
		return reply, err
	}
	switch {
	case !l.probeSessionLost(ctx, state, status, x.Method):
		return reply, err
	case unrun:
		if err == nil {
			err = &ServerRPCError{Code: reply.Error.Code}
		}
		return session.Reply{}, &sessionGoneError{err}
	}
	l.Signal(ErrSessionGone)
	return reply, err
}

// suggestsLostSession reports whether a response may mean that the session is lost, and whether the request was not
// executed in that case.
func suggestsLostSession(status int, reply session.Reply, err error) (doubtful, unrun bool) {
	passing := (&StatusError{Status: status}).Temporary()
	_, odd := errors.AsType[*StatusError](err)
	_, silent := errors.AsType[*contentTypeError](err)
	switch {
	case status >= 300 && status < 400:
		return false, false
	case status >= 400 && status < 500 && !passing:
		return true, true
	case isNonGatewayErrorStatus(status):
		return true, false
	case status > 299:
		return false, false
	case odd || silent || errors.Is(err, ErrNoMessage):
		return true, false
	case err != nil || reply.Error == nil:
		return false, false
	}
	names := mentionsSession(reply.Error.Message)
	switch reply.Error.Code {
	case wirejson.CodeMethodNotFound, wirejson.CodeInvalidParams, mcp.CodeResourceNotFound:
		return names, names
	}
	return true, names
}

// mentionsSession reports whether an error message mentions the session or the handshake. It matters only for a
// response with status 200 if the session is known to be lost.
func mentionsSession(message string) bool {
	message = strings.ToLower(message)
	return strings.Contains(message, "session") || strings.Contains(message, "initializ")
}

// pingTime limits a ping.
const pingTime = 10 * time.Second

// probeSessionLost reports whether the server refuses requests that it has answered before in this session: a ping and
// tools/list. The ping alone is enough if it gets the status that the protocol defines for a lost session.
func (l *HTTPLink) probeSessionLost(ctx context.Context, state *sessionRequestHeads, status int, method string) bool {
	ctx, cancel := context.WithTimeout(ctx, pingTime)
	defer cancel()
	known := status == http.StatusNotFound && state.session != ""
	if known && method == mcp.Ping {
		return true
	}
	refused, again := l.probeRefused(ctx, state, mcp.Ping)
	if !refused || known && again == status {
		return refused
	}
	refused, _ = l.probeRefused(ctx, state, mcp.ListTools)
	return refused
}

// probeRefused sends a request of MCPProxy. It reports whether the server refuses it, and with which status. An error
// for an unknown method is not a refusal.
func (l *HTTPLink) probeRefused(ctx context.Context, state *sessionRequestHeads, method string) (refused bool, status int) {
	x := l.pending.newUnregistered()
	x.request.Body = x.encodeRequest(nil, &session.Request{Method: method}, &l.LinkOptions, false, false)
	x.probes = true
	reply, err := l.sendAndReadReply(ctx, state, x)
	if fail, ok := errors.AsType[*StatusError](err); ok {
		status = fail.Status
	} else if err == nil && reply.Error != nil {
		status, err = reply.Status, &ServerRPCError{Code: reply.Error.Code}
	}
	return IsPermanentRefusal(err), status
}

// IsPermanentRefusal reports whether err is a permanent refusal of a request that every server must support.
func IsPermanentRefusal(err error) bool {
	if fail, ok := errors.AsType[*StatusError](err); ok {
		return !fail.Temporary() || isNonGatewayErrorStatus(fail.Status)
	}
	if answer, ok := errors.AsType[*ServerRPCError](err); ok {
		return answer.Code != wirejson.CodeMethodNotFound
	}
	_, silent := errors.AsType[*contentTypeError](err)
	return silent || errors.Is(err, ErrNoMessage)
}

// isNonGatewayErrorStatus reports whether a status comes from the server itself and not from a gateway.
func isNonGatewayErrorStatus(status int) bool {
	return status == http.StatusInternalServerError || status == http.StatusNotImplemented
}
