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

// The limits of a request.
const (
	maxBody  = 4 << 20
	maxDrain = 16 << 20 // read and discarded, so that the client sees the refusal
	maxDepth = 64
)

var limits = wirejson.Limits{Bytes: maxBody, Depth: maxDepth}

// clientState is the state that a message inherits from its connection: endpoint, actor and session.
type clientState struct {
	s        *Server
	endpoint string // key of the endpoint: a session is valid for one endpoint
	surface  session.Endpoint
	profile  string // the profile that restricts the endpoint, "" for none
	actor    auth.Actor
	token    *auth.LoadedToken // the presented token, if any
	bounds   auth.Bounds       // restrictions of what may be reached
	origin   string
	entry    *sessionEntry     // the session; nil in the modern protocol
	calls    *cancellableCalls // what its notifications may cancel; nil: nothing
	answered bool              // a request was answered in the session
	closed   <-chan struct{}   // closed when endless requests must end
}

// message is one message of a client, independent of the transport.
type message struct {
	*clientState
	wirejson.Message
	meta   mcp.RequestMeta
	modern bool
	size   int // of the text

	caller auth.Caller
	req    session.Request // the request for the endpoint
	form   session.EventDelivery
	told   bool // an event that must not be dropped precedes the reply
	asks   *clientWriter
}

// parseMessage parses the message and its _meta.
func (m *message) parseMessage(text []byte) *wirejson.RPCError {
	msg, err := wirejson.ParseClientMessage(text, limits)
	m.Message, m.size = msg, len(text) // even a malformed message may have an ID
	if err != nil {
		return toRPCError(err)
	}
	if msg.Params != nil && wirejson.Kind(msg.Params) != '{' {
		return session.InvalidParamsError("params must be an object")
	}
	if !wirejson.MayContain(msg.Params, "_meta") {
		return nil
	}
	if meta := m.paramMember("_meta"); meta != nil && wirejson.Kind(meta) != 'n' {
		if m.meta, err = mcp.SplitRequestMeta(meta); err != nil {
			return session.InvalidParamsError("params._meta must be an object")
		}
	}
	return nil
}

// detectProtocol determines the protocol of a message; version is that of the transport, "" for none.
// Modern requests name their version, and an initialize without one opens a session.
func (m *message) detectProtocol(version string) {
	m.modern = m.meta.Version != nil || m.Method != mcp.Initialize && !isLegacyVersion(version)
}

// isLegacyVersion reports whether the version of a transport, which may be empty, has sessions.
func isLegacyVersion(version string) bool { return version == "" || mcp.IsLegacyVersion(version) }

// checkMeta checks the _meta of a modern request.
func (m *message) checkMeta() *wirejson.RPCError {
	version, isText := wirejson.String(m.meta.Version)
	switch {
	case m.meta.Version != nil && !isText:
		return session.InvalidParamsError("_meta." + mcp.MetaVersion + " must be a string")
	case !m.modern || !m.IsRequest():
		return nil
	case version != mcp.Modern:
		return newUnsupportedVersionError(version)
	case m.meta.Capabilities == nil:
		return session.InvalidParamsError("_meta." + mcp.MetaCapabilities + " is required")
	case wirejson.Kind(m.meta.Capabilities) != '{':
		return session.InvalidParamsError("_meta." + mcp.MetaCapabilities + " must be an object")
	}
	return nil
}

func newUnsupportedVersionError(requested string) *wirejson.RPCError {
	data := append([]byte(`{"supported":`), mcp.SupportedVersions...)
	data = append(data, `,"requested":`...)
	data = wirejson.AppendString(data, wirejson.ClipText(requested, session.MaxIdentity))
	return &wirejson.RPCError{Code: mcp.CodeUnsupportedVersion, Message: "Unsupported protocol version", Data: append(data, '}')}
}

// targetName returns the name that a request refers to, if its method has one. It is required for modern
// requests, except for tasks, and if the transport repeats it (named).
func (m *message) targetName(named bool) (name string, about bool, bad *wirejson.RPCError) {
	member := "name"
	switch {
	case m.Method == mcp.CallTool, m.Method == mcp.GetPrompt:
	case m.Method == mcp.ReadResource:
		member = "uri"
	case m.isTaskMethod():
		member = "taskId"
	default:
		return "", false, nil
	}
	name, isText := wirejson.String(m.paramMember(member))
	if !isText && (named || m.modern && m.IsRequest() && !m.isTaskMethod()) {
		bad = session.InvalidParamsError("params." + member + " must be a string")
	}
	return name, true, bad
}

// isTaskMethod reports whether the message is about a task.
func (m *message) isTaskMethod() bool {
	return m.Method == mcp.GetTask || m.Method == mcp.UpdateTask || m.Method == mcp.CancelTask
}

// paramMember returns a member of params; nil if missing.
func (m *message) paramMember(name string) []byte { return wirejson.Find(m.Params, name) }

// prepareRequest builds the request for the endpoint.
func (m *message) prepareRequest() {
	m.caller = auth.Caller{Actor: m.actor, Source: auth.MCP, RequestID: requestIDText(m.ID), Origin: m.origin, Bounds: m.bounds}
	if e := m.entry; e != nil && !m.modern {
		m.caller.SessionID, m.caller.ClientName, m.caller.ClientVersion = e.record, e.client, e.clientVersion
	} else {
		m.caller.ClientName, m.caller.ClientVersion = parseClientInfo(m.meta.ClientInfo)
	}
	m.req = session.Request{ID: m.ID, Method: m.Method, Params: m.Params, Caller: &m.caller, Size: m.size, Endless: m.isEndless(), Meta: &m.meta}
	m.req.Apps = m.showsApps()
	m.req.Forms = m.modern && m.Method == mcp.CallTool && mcp.SupportsElicitationForms(m.meta.Capabilities)
	if s, ok := m.surface.(session.DeliveryChooser); ok {
		m.form = s.EventDeliveryOf(m.Method)
	}
}

// showsApps reports whether the client declares MCP Apps: in its session, in initialize, or in this request.
func (m *message) showsApps() bool {
	apps := false
	switch {
	case m.entry != nil && !m.modern:
		apps = m.entry.apps
	case m.Method == mcp.Initialize && !m.modern:
		apps = mcp.SupportsApps(m.paramMember("capabilities"))
	default:
		apps = mcp.SupportsApps(m.meta.Capabilities)
	}
	if apps && m.s.AppsClientSeen != nil {
		m.s.AppsClientSeen()
	}
	return apps
}

// requestIDText returns an ID as text.
func requestIDText(id []byte) string {
	if text, ok := wirejson.String(id); ok {
		return wirejson.ClipText(text, session.MaxIdentity)
	}
	return wirejson.ClipText(string(id), session.MaxIdentity)
}

// isEndless reports whether the request waits for events: a subscription, or the end of a task.
func (m *message) isEndless() bool {
	if m.modern {
		return m.Method == mcp.Listen
	}
	return m.Method == mcp.TaskResult
}

// beginCancellable makes a request cancellable by notifications, until endCancellable. The server gets the client's params if it
// gets the unchanged request.
func (m *message) beginCancellable(cancel context.CancelCauseFunc) {
	if m.calls != nil {
		m.calls.addCall(m.ID, cancel, m.form == session.Waiting && !m.modern)
	}
}

func (m *message) endCancellable(cancel context.CancelCauseFunc) {
	if m.calls != nil {
		m.calls.removeCall(m.ID)
	}
	cancel(nil)
}

// endlessContext returns a context for endless requests: it ends with the server, the connection, the
// session or the token.
func (c *clientState) endlessContext(parent context.Context) (ctx context.Context, stop func()) {
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

// runRequest executes a prepared request in a context that cancel ends. Events go to out; nil: they are dropped.
func (m *message) runRequest(ctx context.Context, cancel context.CancelCauseFunc, out *clientWriter) requestOutcome {
	within := ctx
	if m.req.Endless {
		select {
		case m.s.streams <- struct{}{}:
			defer func() { <-m.s.streams }()
		default:
			return requestOutcome{Reply: session.Reply{Error: errManyStreams, Status: http.StatusServiceUnavailable}}
		}
		until, stop := m.endlessContext(ctx)
		defer stop()
		within = until
	}
	switch {
	case out == nil || m.form == session.Direct:
	case m.form == session.Dropping:
		m.enableClientQuestions(out)
		m.req.Say = out.queueOptional
	default:
		m.enableClientQuestions(out)
		m.req.Say = func(e session.Event) {
			if m.told = true; !out.queueOrWait(e) {
				cancel(errStalled)
			}
		}
	}
	var d session.Doer = m.surface
	if !m.modern {
		d = m.entry.session
	}
	r, err := d.Do(within, &m.req)
	if !m.modern && m.reopenIfMoved(ctx, err) {
		if cancel != nil {
			m.beginCancellable(cancel)
		}
		r, err = m.entry.session.Do(within, &m.req)
	}
	o := m.toOutcome(r, err)
	if _, o.cancelled = errors.AsType[*session.ClientCancelledError](context.Cause(ctx)); o.cancelled {
		o = requestOutcome{Reply: session.Reply{Error: errWasCancelled, Status: http.StatusOK}, cancelled: true}
	}
	return o
}

// forwardToSession forwards a notification, or the answer to a server's question.
func (m *message) forwardToSession(ctx context.Context) error {
	switch {
	case m.IsResponse() && m.deliverAnswerToProxyQuestion():
		return nil
	case m.IsResponse():
		err := m.entry.session.AnswerServerQuestion(ctx, m.ID, session.Reply{Result: m.Result, Error: m.Error})
		if errors.Is(err, session.ErrMoved) { // the question has been refused
			return nil
		}
		return err
	case m.Method == mcp.Cancelled:
		// The server learns of it by the end of the request.
		m.calls.cancelByID(m.paramMember("requestId"), m.Params)
		return nil
	}
	err := m.entry.session.NotifyServer(ctx, m.Method, m.Params)
	if m.reopenIfMoved(ctx, err) {
		err = m.entry.session.NotifyServer(ctx, m.Method, m.Params)
	}
	if err != nil && m.Method == mcp.CallTool {
		m.recordRefusal(ctx, problem.From(err))
	}
	return err
}

// openSession opens a session with a prepared initialize. Without a session, the outcome or the error says why.
func (m *message) openSession(ctx context.Context) (*sessionEntry, requestOutcome, error) {
	s, r, err := m.surface.OpenSession(ctx, &m.req)
	if err != nil || s == nil {
		return nil, m.toOutcome(r, nil), err
	}
	e := &sessionEntry{openerIdentity: openerIdentity{m.actor, m.origin}, place: m.endpoint, session: s}
	e.version, _ = wirejson.String(wirejson.Find(r.Result, "protocolVersion"))
	e.client, e.clientVersion = parseClientInfo(m.paramMember("clientInfo"))
	e.forms = mcp.SupportsElicitationForms(m.paramMember("capabilities"))
	e.apps = m.req.Apps
	return e, m.toOutcome(r, nil), nil
}

// requestOutcome is the result of a request.
type requestOutcome struct {
	session.Reply
	sessionEnded bool // the session has ended
	cancelled    bool // by the client
}

// toOutcome maps the reply of an endpoint to what the client gets.
func (m *message) toOutcome(r session.Reply, err error) requestOutcome {
	switch status, said := m.forwardedStatus(err); {
	case err == nil:
	case isSessionEnded(err):
		r = session.Reply{Error: m.newReplyError(err)}
	case said:
		r = session.Reply{Error: m.newReplyError(err), Status: status}
	default:
		r = m.s.Reply.ProblemReply(m.modern, m.Method, err)
	}
	if r.Error != nil && r.Status == 0 {
		r.Status = m.errorHTTPStatus(r.Error)
	}
	return requestOutcome{Reply: r, sessionEnded: isSessionEnded(err)}
}

// isSessionEnded reports whether err says that the client's session has ended.
func isSessionEnded(err error) bool { return errors.Is(err, session.ErrEnded) }

// forwardedStatus returns the HTTP status of a server that refused the message, and whether it is sent to
// the client.
func (m *message) forwardedStatus(err error) (status int, ok bool) {
	if err == nil {
		return 0, false
	}
	return session.ForwardedHTTPStatus(m.modern, problem.From(err))
}

// errorHTTPStatus returns the HTTP status of a JSON-RPC error: the modern protocol maps errors to a status,
// the legacy one uses only the body.
func (m *message) errorHTTPStatus(e *wirejson.RPCError) int {
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

// newReplyError returns the error that the client gets in place of a reply.
func (m *message) newReplyError(err error) *wirejson.RPCError {
	e := m.s.Reply.ToRPCError(err)
	if isSessionEnded(err) {
		e.Message = sessionOver
	}
	return e
}

// codeCancelled is the code of the reply to a request that the client cancelled, if its transport requires
// a reply. It is outside of the range that JSON-RPC reserves.
const codeCancelled = -32800

// The errors that need no endpoint.
var (
	errBodyTooLarge = &wirejson.RPCError{Code: wirejson.CodeInvalidRequest,
		Message: "The request body is larger than 4 MiB (" + strconv.Itoa(maxBody) + " bytes), the most that is accepted. Send less, for example a path or a handle instead of the data itself."}
	errNoSession = &wirejson.RPCError{Code: wirejson.CodeInvalidRequest,
		Message: "Mcp-Session-Id is missing. Send initialize to start a session, or use protocol version 2026-07-28, which needs none."}
	errManyStreams = &wirejson.RPCError{Code: wirejson.CodeInternal,
		Message: "Too many open streams (1024). Close some. A client does not need a stream: each answer is sent in the response to its request."}
	errWasCancelled = &wirejson.RPCError{Code: codeCancelled, Message: "The request was cancelled."}
	errPanicked     = &wirejson.RPCError{Code: wirejson.CodeInternal,
		Message: "Something went wrong inside MCPProxy. See the log of the daemon for the cause."}
)

const sessionOver = "Session not found: it has ended or expired. Send initialize to start a new one."

// recordRefusalIfCall records a refused message, if it is a call.
func (m *message) recordRefusalIfCall(ctx context.Context, e *wirejson.RPCError) *wirejson.RPCError {
	if m.Method == mcp.CallTool {
		code := problem.InvalidRequest
		if e.Code == wirejson.CodeInvalidParams {
			code = problem.InvalidParameter
		}
		m.recordRefusal(ctx, problem.New(code, e.Message, ""))
	}
	return e
}

// RefusalRecorder is a surface that records the calls that it was not asked for.
type RefusalRecorder interface {
	RecordRefusedCall(ctx context.Context, r *session.Request, p *problem.Problem)
}

var _ RefusalRecorder = (*BuiltinTools)(nil)

// recordRefusal records a refusal with the parameters of the call.
func (m *message) recordRefusal(ctx context.Context, p *problem.Problem) {
	m.prepareRequest()
	if s, ok := m.surface.(RefusalRecorder); ok {
		s.RecordRefusedCall(ctx, &m.req, p)
	} else {
		m.s.RecordRefusedCall(ctx, m.endpoint, &m.req, p)
	}
}

// parseClientInfo reads clientInfo.
func parseClientInfo(clientInfo []byte) (name, version string) {
	if wirejson.Kind(clientInfo) != '{' {
		return "", ""
	}
	name, _ = wirejson.String(wirejson.Find(clientInfo, "name"))
	version, _ = wirejson.String(wirejson.Find(clientInfo, "version"))
	return wirejson.ClipText(name, session.MaxIdentity), wirejson.ClipText(version, session.MaxIdentity)
}
