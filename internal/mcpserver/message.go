package mcpserver

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
)

// The bounds of the text of a request.
const (
	maxBody  = 4 << 20
	maxDrain = 16 << 20 // read and thrown away, so that the client gets to see the refusal
	maxDepth = 64
)

var limits = wirejson.Limits{Bytes: maxBody, Depth: maxDepth}

// client is who speaks: about what, as whom, and in which session.
type client struct {
	s       *Server
	place   string // what the surface is of: a session is good for one place
	surface session.Surface
	profile string // by which the surface is seen, "" for none
	actor   auth.Actor
	token   *auth.ActiveToken // that was presented, if one was
	bounds  auth.Bounds       // to what may be reached
	origin  string
	entry   *entry          // the session; nil in the modern era
	calls   *calls          // what its notifications may cancel; nil where there are none
	asked   bool            // a request was answered in the session
	closed  <-chan struct{} // is closed when what has no end has to end
}

// message is one message of a client. It knows no transport.
type message struct {
	*client
	wirejson.Message
	meta   mcp.Meta
	modern bool
	size   int // of the text

	caller auth.Caller
	req    session.Request // it, as the surface gets it
	form   session.Form
	told   bool // something was said before the answer that its client is not to miss
	asks   *outlet
}

// read reads the message and what it says about itself.
func (m *message) read(text []byte) *wirejson.RPCError {
	msg, err := wirejson.ParseRequest(text, limits)
	m.Message, m.size = msg, len(text) // of a broken message, the id at least
	if err != nil {
		return asRPC(err)
	}
	if msg.Params != nil && wirejson.Kind(msg.Params) != '{' {
		return session.InvalidParams("params must be an object")
	}
	if !wirejson.MayName(msg.Params, "_meta") {
		return nil
	}
	if meta := m.param("_meta"); meta != nil && wirejson.Kind(meta) != 'n' {
		if m.meta, err = mcp.SplitMeta(meta); err != nil {
			return session.InvalidParams("params._meta must be an object")
		}
	}
	return nil
}

// era finds out which era a message is of, where version is the revision that
// its transport names, "" when it names none. The modern era says so in every
// request, and initialize without saying so opens a session.
func (m *message) era(version string) {
	m.modern = m.meta.Version != nil || m.Method != mcp.Initialize && !ofSession(version)
}

// ofSession reports whether the revision that a transport names, which may be
// none, is one with sessions.
func ofSession(version string) bool { return version == "" || mcp.IsLegacy(version) }

// checkMeta checks what a modern request says about itself.
func (m *message) checkMeta() *wirejson.RPCError {
	version, isText := wirejson.String(m.meta.Version)
	switch {
	case m.meta.Version != nil && !isText:
		return session.InvalidParams("_meta." + mcp.MetaVersion + " must be a string")
	case !m.modern || !m.IsRequest():
		return nil
	case version != mcp.Modern:
		return unsupportedVersion(version)
	case m.meta.Capabilities == nil:
		return session.InvalidParams("_meta." + mcp.MetaCapabilities + " is required")
	case wirejson.Kind(m.meta.Capabilities) != '{':
		return session.InvalidParams("_meta." + mcp.MetaCapabilities + " must be an object")
	}
	return nil
}

func unsupportedVersion(requested string) *wirejson.RPCError {
	data := append([]byte(`{"supported":`), mcp.Served...)
	data = append(data, `,"requested":`...)
	data = wirejson.AppendString(data, wirejson.Clip(requested, session.MaxIdentity))
	return &wirejson.RPCError{Code: mcp.CodeUnsupportedVersion, Message: "Unsupported protocol version", Data: append(data, '}')}
}

// subject returns the name of what a request is about, if it is about something
// that has one. A modern request has to name it, save a task, and so has one
// whose transport does (named).
func (m *message) subject(named bool) (name string, about bool, bad *wirejson.RPCError) {
	member := "name"
	switch {
	case m.Method == mcp.CallTool, m.Method == mcp.GetPrompt:
	case m.Method == mcp.ReadResource:
		member = "uri"
	case m.ofTask():
		member = "taskId"
	default:
		return "", false, nil
	}
	name, isText := wirejson.String(m.param(member))
	if !isText && (named || m.modern && m.IsRequest() && !m.ofTask()) {
		bad = session.InvalidParams("params." + member + " must be a string")
	}
	return name, true, bad
}

// ofTask reports whether the message is about a task.
func (m *message) ofTask() bool {
	return m.Method == mcp.GetTask || m.Method == mcp.UpdateTask || m.Method == mcp.CancelTask
}

// param is a member of the message's params; nil when it is missing.
func (m *message) param(name string) []byte { return wirejson.Find(m.Params, name) }

// prepare makes the request for the surface.
func (m *message) prepare() {
	m.caller = auth.Caller{Actor: m.actor, Source: auth.MCP, RequestID: requestID(m.ID), Origin: m.origin, Bounds: m.bounds}
	if e := m.entry; e != nil && !m.modern {
		m.caller.SessionID, m.caller.ClientName, m.caller.ClientVersion = e.record, e.client, e.clientVersion
	} else {
		m.caller.ClientName, m.caller.ClientVersion = identity(m.meta.ClientInfo)
	}
	m.req = session.Request{ID: m.ID, Method: m.Method, Params: m.Params, Caller: &m.caller, Size: m.size, Endless: m.endless(), Meta: &m.meta}
	m.req.Forms = m.modern && m.Method == mcp.CallTool && mcp.TakesForms(m.meta.Capabilities)
	if s, ok := m.surface.(session.Formed); ok {
		m.form = s.Form(m.Method)
	}
}

// requestID is the id as text.
func requestID(id []byte) string {
	if text, ok := wirejson.String(id); ok {
		return wirejson.Clip(text, session.MaxIdentity)
	}
	return wirejson.Clip(string(id), session.MaxIdentity)
}

// endless reports whether the request waits for what happens: a subscription, or
// for the end of a task.
func (m *message) endless() bool {
	if m.modern {
		return m.Method == mcp.Listen
	}
	return m.Method == mcp.TaskResult
}

// begin lets the client cancel a request by a notification, until end. The server
// gets the client's own words where it gets the request as the client has made it.
func (m *message) begin(cancel context.CancelCauseFunc) {
	if m.calls != nil {
		m.calls.begin(m.ID, cancel, m.form == session.Waiting && !m.modern)
	}
}

func (m *message) end(cancel context.CancelCauseFunc) {
	if m.calls != nil {
		m.calls.end(m.ID)
	}
	cancel(nil)
}

// untilServerEnds returns a context for what has no end of its own: it ends when
// this server or the connection is closed, or the session, or the token.
func (c *client) untilServerEnds(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(parent)
	ended := make(chan struct{})
	var over <-chan struct{}
	if c.entry != nil {
		over = c.entry.ended
	}
	go func() {
		defer close(ended)
		select {
		case <-c.closed:
			cancel()
		case <-over:
			cancel()
		case <-c.token.Ended():
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(); <-ended }
}

// ask has a request answered that was prepared, within a context that cancel ends. What
// is said before goes out by out; nil: nobody can be told.
func (m *message) ask(ctx context.Context, cancel context.CancelCauseFunc, out *outlet) outcome {
	within := ctx
	if m.req.Endless {
		select {
		case m.s.streams <- struct{}{}:
			defer func() { <-m.s.streams }()
		default:
			return outcome{Reply: session.Reply{Error: errManyStreams, Status: http.StatusServiceUnavailable}}
		}
		until, stop := m.untilServerEnds(ctx)
		defer stop()
		within = until
	}
	switch {
	case out == nil || m.form == session.AtOnce:
	case m.form == session.Passing:
		m.mayAsk(out)
		m.req.Say = out.pass
	default:
		m.mayAsk(out)
		m.req.Say = func(e session.Event) {
			if m.told = true; !out.tell(e) {
				cancel(errStalled)
			}
		}
	}
	var d session.Doer = m.surface
	if !m.modern {
		d = m.entry.session
	}
	o := m.outcome(d.Do(within, &m.req))
	if _, o.cancelled = errors.AsType[*session.Cancelled](context.Cause(ctx)); o.cancelled {
		o = outcome{Reply: session.Reply{Error: errWasCancelled, Status: http.StatusOK}, cancelled: true}
	}
	return o
}

// tell passes on what wants no answer: a notification, or the answer to what a
// server has asked.
func (m *message) tell(ctx context.Context) error {
	switch {
	case m.IsResponse() && m.answersUs():
		return nil
	case m.IsResponse():
		return m.entry.session.Respond(ctx, m.ID, session.Reply{Result: m.Result, Error: m.Error})
	case m.Method == mcp.Cancelled:
		// It reaches the server by the request that it ends.
		m.calls.cancel(m.param("requestId"), m.Params)
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
func (m *message) open(ctx context.Context) (*entry, outcome, error) {
	s, r, err := m.surface.Open(ctx, &m.req)
	if err != nil || s == nil {
		return nil, m.outcome(r, nil), err
	}
	e := &entry{opener: opener{m.actor, m.origin}, place: m.place, session: s}
	e.version, _ = wirejson.String(wirejson.Find(r.Result, "protocolVersion"))
	e.client, e.clientVersion = identity(m.param("clientInfo"))
	e.forms = mcp.TakesForms(m.param("capabilities"))
	return e, m.outcome(r, nil), nil
}

// outcome is what a request came to.
type outcome struct {
	session.Reply
	over      bool // the session that the request is of has ended
	cancelled bool // by the client
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
	return outcome{Reply: r, over: over(err)}
}

// over reports whether err means that the client's session has ended.
func over(err error) bool { return errors.Is(err, session.ErrOver) }

// said is the HTTP status with which a server has refused the message, if it is
// for the client.
func (m *message) said(err error) (status int, ok bool) {
	if err == nil {
		return 0, false
	}
	return session.SaidStatus(m.modern, problem.From(err))
}

// mirrored is the HTTP status of an error that has none: the modern era mirrors
// the errors of the protocol, the other one tells them in the body alone.
func (m *message) mirrored(e *wirejson.RPCError) int {
	if !m.modern {
		return http.StatusOK
	}
	switch e.Code {
	case wirejson.CodeMethodNotFound:
		return http.StatusNotFound
	case wirejson.CodeInvalidParams, wirejson.CodeInvalidRequest, wirejson.CodeParse,
		mcp.CodeHeaderMismatch, mcp.CodeMissingCapability, mcp.CodeUnsupportedVersion:
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// explain is why there is no answer, as an error of the protocol.
func (m *message) explain(err error) *wirejson.RPCError {
	e := m.s.Reply.Error(err)
	if over(err) {
		e.Message = sessionOver
	}
	return e
}

// codeCancelled is the code of the answer to a request that the client itself
// cancelled, where its transport demands that there is one. It is outside of the
// range that JSON-RPC reserves.
const codeCancelled = -32800

// What is answered before a surface is asked, or instead of it.
var (
	errBodyTooLarge = &wirejson.RPCError{Code: wirejson.CodeInvalidRequest,
		Message: "The request body is larger than 4 MiB (" + strconv.Itoa(maxBody) + " bytes), the most that is accepted. Send less, for example a path or a handle instead of the data itself."}
	errNoSession = &wirejson.RPCError{Code: wirejson.CodeInvalidRequest,
		Message: "Mcp-Session-Id is missing. Send initialize to start a session, or use protocol version 2026-07-28, which needs none."}
	errManyStreams = &wirejson.RPCError{Code: wirejson.CodeInternal,
		Message: "Too many open streams (1024). Close some, or do without: every answer comes with its own request."}
	errWasCancelled = &wirejson.RPCError{Code: codeCancelled, Message: "The request was cancelled."}
	errPanicked     = &wirejson.RPCError{Code: wirejson.CodeInternal,
		Message: "Something went wrong inside MCPProxy. See the log of the daemon for the cause."}
)

const sessionOver = "Session not found: it has ended or expired. Send initialize to start a new one."

// refuse puts a call on record that is refused before it gets to the surface, if
// the message is a call.
func (m *message) refuse(ctx context.Context, e *wirejson.RPCError) *wirejson.RPCError {
	if m.Method == mcp.CallTool {
		code := problem.InvalidRequest
		if e.Code == wirejson.CodeInvalidParams {
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
	if wirejson.Kind(clientInfo) != '{' {
		return "", ""
	}
	name, _ = wirejson.String(wirejson.Find(clientInfo, "name"))
	version, _ = wirejson.String(wirejson.Find(clientInfo, "version"))
	return wirejson.Clip(name, session.MaxIdentity), wirejson.Clip(version, session.MaxIdentity)
}
