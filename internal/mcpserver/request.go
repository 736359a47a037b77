package mcpserver

import (
	"errors"
	"net/http"

	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/wirejson"
)

// request is one HTTP request with its client, message and response.
type request struct {
	from client
	message
	r   *http.Request
	out response
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := request{from: client{s: s, closed: s.closed, origin: auth.ConnectionOf(r)}, r: r, out: response{w: w}}
	x.from.endpoint, x.from.profile, x.from.surface = s.endpoint(r.URL.Path)
	x.client = &x.from
	defer x.recover()
	if !x.admit() {
		return
	}
	switch {
	case r.Method == http.MethodPost:
		x.post()
	case r.Method == http.MethodGet && r.Header.Get("Upgrade") == mcp.LineProtocol && auth.IsFromSocket(r.Context()):
		x.lines()
	case r.Method == http.MethodGet:
		x.get()
	case r.Method == http.MethodDelete:
		x.delete()
	default:
		x.methodNotAllowed()
	}
}

// post answers a POST: one message, or a batch.
func (x *request) post() {
	if !jsonBody(x.r.Header) {
		x.out.fail(http.StatusUnsupportedMediaType, &wirejson.RPCError{Code: wirejson.CodeInvalidRequest,
			Message: "The body must be JSON, sent with Content-Type: application/json and no Content-Encoding."})
		return
	}
	body, ok := x.readBody()
	if !ok {
		return
	}
	if wirejson.Kind(body) == '[' {
		x.size = len(body)
		x.batch(body)
		return
	}
	bad := x.read(body)
	x.out.id = x.ID
	if bad == nil {
		version, _ := header(x.r.Header, mcp.HeaderVersion)
		x.detectProtocol(version)
		bad = checkHeaders(x.r.Header, &x.message)
	}
	switch {
	case bad != nil:
		x.out.fail(http.StatusBadRequest, x.refuse(x.r.Context(), bad))
	case x.modern && x.IsRequest():
		x.answer()
	case x.modern && x.IsNotification():
		x.out.accepted() // a call is cancelled by closing its connection
	case x.modern:
		x.out.fail(http.StatusBadRequest, &wirejson.RPCError{Code: wirejson.CodeInvalidRequest,
			Message: "A client sends requests only in this revision of the protocol."})
	case x.Method == mcp.Initialize && x.IsRequest():
		x.initialize()
	default:
		x.postLegacy()
	}
}

// batch answers a batch. Only one protocol version has batches.
func (x *request) batch(body []byte) {
	messages, err := wirejson.SplitBatch(body, limits)
	if err != nil {
		x.out.fail(http.StatusBadRequest, asRPC(err))
		return
	}
	if id, _ := header(x.r.Header, mcp.HeaderSession); id == "" {
		x.out.fail(http.StatusBadRequest, errNoBatch)
		return
	}
	if !x.findSession() {
		return
	}
	defer x.release()
	_, method := header(x.r.Header, mcp.HeaderMethod)
	if x.entry.version != mcp.BatchVersion || method || !isLegacyVersion(x.r.Header.Get(mcp.HeaderVersion)) {
		x.out.fail(http.StatusBadRequest, errNoBatch)
		return
	}
	if answers := x.answerBatch(x.r.Context(), messages); answers != nil {
		x.out.write(http.StatusOK, answers)
	} else {
		x.out.accepted()
	}
}

// postLegacy answers a message in a session.
func (x *request) postLegacy() {
	if !x.findSession() {
		return
	}
	defer x.release()
	if x.IsRequest() {
		x.answer()
		x.answered = x.Method != mcp.Ping
		return
	}
	if err := x.forward(x.r.Context()); err != nil {
		x.fail(err)
		return
	}
	x.out.accepted()
}

// initialize opens a session.
func (x *request) initialize() {
	x.prepare()
	x.req.Head = x.out.takeHead
	e, o, err := x.open(x.r.Context())
	if err != nil {
		x.fail(err)
		return
	}
	if e != nil {
		if full := x.s.sessions.open(e); full != nil {
			e.session.Close()
			x.out.fail(http.StatusServiceUnavailable, full)
			return
		}
		x.out.w.Header()[mcp.HeaderSession] = []string{e.id}
	}
	x.out.send(&o.Reply)
}

// findSession finds the session of the request and protects it from eviction. The caller must release it.
func (x *request) findSession() bool {
	id, given := header(x.r.Header, mcp.HeaderSession)
	if !given {
		x.out.fail(http.StatusBadRequest, x.refuse(x.r.Context(), errNoSession))
		return false
	}
	if x.entry = x.s.sessions.find(id, x.actor, x.endpoint); x.entry == nil {
		x.out.fail(http.StatusNotFound, x.refuse(x.r.Context(), &wirejson.RPCError{Code: wirejson.CodeInvalidRequest, Message: sessionOver}))
		return false
	}
	x.calls = &x.entry.calls
	return true
}

// release releases the session of findSession.
func (x *request) release() { x.entry.release(x.answered) }

// delete ends a session.
func (x *request) delete() {
	if !x.sessionMethod() || !x.findSession() {
		return
	}
	x.release()
	x.s.sessions.end(x.entry)
	x.out.deliver(http.StatusNoContent)
}

// sessionMethod refuses GET and DELETE without a session.
func (x *request) sessionMethod() bool {
	has := x.hasSession()
	if !has {
		x.methodNotAllowed()
	}
	return has
}

// hasSession reports whether the request names a session.
func (x *request) hasSession() bool {
	return x.r.Header.Get(mcp.HeaderSession) != "" && isLegacyVersion(x.r.Header.Get(mcp.HeaderVersion))
}

func (x *request) methodNotAllowed() {
	allow := "GET, POST, DELETE"
	if !x.hasSession() {
		allow = "POST"
	}
	x.out.w.Header().Set("Allow", allow)
	x.out.fail(http.StatusMethodNotAllowed, &wirejson.RPCError{Code: wirejson.CodeInvalidRequest,
		Message: x.r.Method + " is not allowed here. Send each message by POST. GET and DELETE need a session (Mcp-Session-Id)."})
}

// recover answers a request whose handler panicked.
func (x *request) recover() {
	cause := recover()
	if cause == nil {
		return
	}
	if err, ok := cause.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(cause)
	}
	x.s.panicked(x.Method, cause)
	if st := x.out.stream; x.out.begun || st != nil && st.settle() {
		panic(http.ErrAbortHandler) // the client must not take a partial reply for a complete one
	}
	x.out.fail(http.StatusInternalServerError, errPanicked)
}
