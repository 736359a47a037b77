package mcpserver

import (
	"context"
	"errors"
	"net/http"

	"mcpproxy/internal/auth"
	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/rawjson"
	"mcpproxy/internal/reply"
	"mcpproxy/internal/session"
)

// client is who speaks: about what, as whom, and in which session.
type client struct {
	s       *Server
	place   string // what the surface is of: a session is good for one place
	surface session.Surface
	actor   auth.Actor
	origin  string
	entry   *entry // the session; nil in the modern era
}

// message is one message of a client. It knows no transport: what reads it says
// which era it is of.
type message struct {
	*client
	jsonrpc.Message
	meta   mcp.Meta
	modern bool
	size   int // of the text

	caller auth.Caller
	req    session.Request // it, as the surface gets it
}

// read reads the message and what it says about itself.
func (m *message) read(text []byte) *jsonrpc.Error {
	msg, err := jsonrpc.ParseRequest(text, limits)
	m.Message, m.size = msg, len(text) // of a broken message, the id at least
	if err != nil {
		return asRPC(err)
	}
	if msg.Params != nil && rawjson.Kind(msg.Params) != '{' {
		return reply.InvalidParams("params must be an object")
	}
	if meta := m.param("_meta"); meta != nil && rawjson.Kind(meta) != 'n' {
		if m.meta, err = mcp.SplitMeta(meta); err != nil {
			return reply.InvalidParams("params._meta must be an object")
		}
	}
	return nil
}

// param is a member of the message's params; nil when it is not given.
func (m *message) param(name string) []byte { return rawjson.Find(m.Params, name) }

// prepare makes the request for the surface.
func (m *message) prepare() {
	m.caller = auth.Caller{Actor: m.actor, Source: auth.MCP, RequestID: requestID(m.ID), Origin: m.origin}
	if e := m.entry; e != nil {
		m.caller.SessionID, m.caller.ClientName, m.caller.ClientVersion = e.record, e.client, e.clientVersion
	} else {
		m.caller.ClientName, m.caller.ClientVersion = identity(m.meta.ClientInfo)
	}
	m.req = session.Request{ID: m.ID, Method: m.Method, Params: m.Params, Caller: &m.caller, Size: m.size, Endless: m.endless(), Meta: &m.meta}
}

// requestID is the id as text.
func requestID(id []byte) string {
	if text, ok := rawjson.String(id); ok {
		return rawjson.Clip(text, reply.MaxIdentity)
	}
	return rawjson.Clip(string(id), reply.MaxIdentity)
}

// endless reports whether the request waits for what happens: a subscription, or
// for the end of a task.
func (m *message) endless() bool {
	if m.modern {
		return m.Method == mcp.Listen
	}
	return m.Method == mcp.TaskResult
}

// form is how the request is answered.
func (m *message) form() session.Form {
	if s, ok := m.surface.(session.Formed); ok {
		return s.Form(m.Method)
	}
	return session.Waiting
}

// begin returns the context of a request that its client can cancel by a
// notification, until end. The server gets the client's own words where it gets
// the request as the client has made it.
func (m *message) begin(parent context.Context, form session.Form) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	if m.entry != nil {
		m.entry.begin(m.ID, cancel, form == session.Waiting)
	}
	return ctx, cancel
}

func (m *message) end(cancel context.CancelCauseFunc) {
	if m.entry != nil {
		m.entry.end(m.ID)
	}
	cancel(nil)
}

// ask has a request answered that was prepared.
func (m *message) ask(ctx context.Context) outcome {
	var d session.Doer = m.surface
	if !m.modern {
		d = m.entry.session
	}
	return m.outcome(d.Do(ctx, &m.req))
}

// tell passes on what wants no answer: a notification, or the answer to what a
// server has asked.
func (m *message) tell(ctx context.Context) error {
	switch {
	case m.IsResponse():
		return m.entry.session.Respond(ctx, m.ID, session.Reply{Result: m.Result, Error: m.Error})
	case m.Method == mcp.Cancelled:
		// It reaches the server by the request that it ends.
		m.entry.cancel(m.param("requestId"), m.Params)
		return nil
	}
	err := m.entry.session.Notify(ctx, m.Method, m.Params)
	if err != nil && m.Method == mcp.CallTool {
		m.record(ctx, problem.From(err))
	}
	return err
}

// open opens a session with an initialize that was prepared. When there is none
// afterwards the outcome, or the error, says why.
func (m *message) open(ctx context.Context) (outcome, error) {
	s, r, err := m.surface.Open(ctx, &m.req)
	if err != nil {
		return outcome{}, err
	}
	if s != nil {
		e := &entry{opener: opener{m.actor, m.origin}, place: m.place, session: s}
		e.version, _ = rawjson.String(rawjson.Find(r.Result, "protocolVersion"))
		e.client, e.clientVersion = identity(m.param("clientInfo"))
		if full := m.s.sessions.open(e); full != nil {
			s.Close()
			return outcome{Reply: session.Reply{Error: full, Status: http.StatusServiceUnavailable}}, nil
		}
		m.entry = e
	}
	return m.outcome(r, nil), nil
}

// outcome is what a request came to.
type outcome struct {
	session.Reply
	over bool // the session that the request is of has ended
}

// outcome is the table of what the answer of a surface means for the client.
func (m *message) outcome(r session.Reply, err error) outcome {
	switch status, said := m.said(err); {
	case err == nil:
	case over(err):
		r = session.Reply{Error: m.explain(err)}
	case said:
		r = session.Reply{Error: m.explain(err), Status: status}
	default:
		r = m.s.Reply.Problem(m.modern, m.Method, err)
	}
	if r.Error != nil && r.Status == 0 {
		r.Status = m.mirrored(r.Error)
	}
	return outcome{r, over(err)}
}

// over reports whether err means that the client's session has ended.
func over(err error) bool { return errors.Is(err, session.ErrOver) }

// said is the HTTP status with which a server has refused the message, if it is
// for the client.
func (m *message) said(err error) (status int, ok bool) {
	if err == nil {
		return 0, false
	}
	return reply.SaidStatus(m.modern, problem.From(err))
}

// mirrored is the HTTP status of an error that has none: the modern era mirrors
// the errors of the protocol, the other one tells them in the body alone.
func (m *message) mirrored(e *jsonrpc.Error) int {
	if !m.modern {
		return http.StatusOK
	}
	switch e.Code {
	case jsonrpc.CodeMethodNotFound:
		return http.StatusNotFound
	case jsonrpc.CodeInvalidParams, jsonrpc.CodeInvalidRequest, jsonrpc.CodeParse,
		mcp.CodeHeaderMismatch, mcp.CodeMissingCapability, mcp.CodeUnsupportedVersion:
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// explain is why there is no answer, as an error of the protocol.
func (m *message) explain(err error) *jsonrpc.Error {
	e := m.s.Reply.Error(err)
	if over(err) {
		e.Message = sessionOver
	}
	return e
}

const sessionOver = "Session not found: it has ended or expired. Send initialize to start a new one."

// refuse puts a call on record that is refused before it gets to the surface, if
// the message is a call.
func (m *message) refuse(ctx context.Context, e *jsonrpc.Error) *jsonrpc.Error {
	if m.Method == mcp.CallTool {
		code := problem.InvalidRequest
		if e.Code == jsonrpc.CodeInvalidParams {
			code = problem.InvalidParameter
		}
		m.record(ctx, problem.New(code, e.Message, ""))
	}
	return e
}

// record puts a refusal on record, with what the message says of the call.
func (m *message) record(ctx context.Context, p *problem.Problem) {
	m.prepare()
	if s, ok := m.surface.(interface {
		Refused(ctx context.Context, r *session.Request, p *problem.Problem)
	}); ok {
		s.Refused(ctx, &m.req, p)
	} else {
		m.s.Refused(ctx, m.place, &m.req, p)
	}
}

// identity reads clientInfo.
func identity(clientInfo []byte) (name, version string) {
	if rawjson.Kind(clientInfo) != '{' {
		return "", ""
	}
	name, _ = rawjson.String(rawjson.Find(clientInfo, "name"))
	version, _ = rawjson.String(rawjson.Find(clientInfo, "version"))
	return rawjson.Clip(name, reply.MaxIdentity), rawjson.Clip(version, reply.MaxIdentity)
}
