package mcpserver

import (
	"errors"
	"net/http"

	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/wirejson"
)

// request is one HTTP request: who makes it, its message, and the answer.
type request struct {
	from client
	message
	r   *http.Request
	out response
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := request{from: client{s: s, closed: s.closed, origin: auth.Origin(r)}, r: r, out: response{w: w}}
	x.from.place, x.from.profile, x.from.surface = s.at(r.URL.Path)
	x.client = &x.from
	defer x.recover()
	if !x.admit() {
		return
	}
	switch {
	case r.Method == http.MethodPost:
		x.post()
	case r.Method == http.MethodGet && r.Header.Get("Upgrade") == mcp.Lines && auth.FromSocket(r.Context()):
		x.lines()
	case r.Method == http.MethodGet:
		x.get()
	case r.Method == http.MethodDelete:
		x.delete()
	default:
		x.methodNotAllowed()
	}
}

// post answers one POST: one message, or a batch in the one revision that has
// batches.
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
		x.era(version)
		bad = checkHeaders(x.r.Header, &x.message)
	}
	switch {
	case bad != nil:
		x.out.fail(http.StatusBadRequest, x.refuse(x.r.Context(), bad))
	case x.modern && x.IsRequest():
		x.answer()
	case x.modern && x.IsNotification():
		x.out.accepted() // a call is cancelled by closing it
	case x.modern:
		x.out.fail(http.StatusBadRequest, &wirejson.RPCError{Code: wirejson.CodeInvalidRequest,
			Message: "A client sends requests only in this revision of the protocol."})
	case x.Method == mcp.Initialize && x.IsRequest():
		x.initialize()
	default:
		x.postLegacy()
	}
}

// batch answers several messages in one. Only one revision has batches.
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
	if x.entry.version != mcp.Batches || method || !ofSession(x.r.Header.Get(mcp.HeaderVersion)) {
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
		x.asked = x.Method != mcp.Ping
		return
	}
	if err := x.tell(x.r.Context()); err != nil {
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

// findSession finds the session of the request and keeps it from being
// evicted; who finds it has to release it.
func (x *request) findSession() bool {
	id, given := header(x.r.Header, mcp.HeaderSession)
	if !given {
		x.out.fail(http.StatusBadRequest, x.refuse(x.r.Context(), errNoSession))
		return false
	}
	if x.entry = x.s.sessions.find(id, x.actor, x.place); x.entry == nil {
		x.out.fail(http.StatusNotFound, x.refuse(x.r.Context(), &wirejson.RPCError{Code: wirejson.CodeInvalidRequest, Message: sessionOver}))
		return false
	}
	x.calls = &x.entry.calls
	return true
}

// release releases the session that findSession found.
func (x *request) release() { x.entry.release(x.asked) }

// delete ends a session.
func (x *request) delete() {
	if !x.sessionMethod() || !x.findSession() {
		return
	}
	x.release()
	x.s.sessions.end(x.entry)
	x.out.deliver(http.StatusNoContent)
}

// sessionMethod refuses GET and DELETE to those who have no session.
func (x *request) sessionMethod() bool {
	has := x.hasSession()
	if !has {
		x.methodNotAllowed()
	}
	return has
}

// hasSession reports whether the request claims to be in a session.
func (x *request) hasSession() bool {
	return x.r.Header.Get(mcp.HeaderSession) != "" && ofSession(x.r.Header.Get(mcp.HeaderVersion))
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

// recover answers for a handler that panicked.
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
		panic(http.ErrAbortHandler) // the client must not take half an answer for a whole one
	}
	x.out.fail(http.StatusInternalServerError, errPanicked)
}
