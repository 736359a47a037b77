package mcpserver

import (
	"errors"
	"net/http"

	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/wirejson"
)

// httpRequest is one HTTP request with its client, message and response.
type httpRequest struct {
	from clientState
	message
	r   *http.Request
	out httpReply
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := httpRequest{from: clientState{s: s, closed: s.closed, origin: auth.ConnectionAddress(r)}, r: r, out: httpReply{w: w}}
	x.from.endpoint, x.from.profile, x.from.surface = s.resolveEndpoint(r.URL.Path)
	x.clientState = &x.from
	defer x.recoverPanic()
	if !x.authenticate() {
		return
	}
	switch {
	case r.Method == http.MethodPost:
		x.servePost()
	case r.Method == http.MethodGet && r.Header.Get("Upgrade") == mcp.LineProtocol && auth.IsFromSocket(r.Context()):
		x.serveLines()
	case r.Method == http.MethodGet:
		x.serveGet()
	case r.Method == http.MethodDelete:
		x.serveDelete()
	default:
		x.sendMethodNotAllowed()
	}
}

// servePost answers a POST: one message, or a batch.
func (x *httpRequest) servePost() {
	if !hasJSONBody(x.r.Header) {
		x.out.sendError(http.StatusUnsupportedMediaType, &wirejson.RPCError{Code: wirejson.CodeInvalidRequest,
			Message: "The body must be JSON, sent with Content-Type: application/json and no Content-Encoding."})
		return
	}
	body, ok := x.readBody()
	if !ok {
		return
	}
	if wirejson.Kind(body) == '[' {
		x.size = len(body)
		x.serveBatch(body)
		return
	}
	bad := x.parseMessage(body)
	x.out.id = x.ID
	if bad == nil {
		version, _ := headerValue(x.r.Header, mcp.HeaderVersion)
		x.detectProtocol(version)
		bad = checkHeadersMatchBody(x.r.Header, &x.message)
	}
	switch {
	case bad != nil:
		x.out.sendError(http.StatusBadRequest, x.recordRefusalIfCall(x.r.Context(), bad))
	case x.modern && x.IsRequest():
		x.answerRequest()
	case x.modern && x.IsNotification():
		x.out.sendAccepted() // a call is cancelled by closing its connection
	case x.modern:
		x.out.sendError(http.StatusBadRequest, &wirejson.RPCError{Code: wirejson.CodeInvalidRequest,
			Message: "In this version of the protocol, a client sends only requests."})
	case x.Method == mcp.Initialize && x.IsRequest():
		x.serveInitialize()
	default:
		x.servePostInSession()
	}
}

// serveBatch answers a batch. Only one protocol version has batches.
func (x *httpRequest) serveBatch(body []byte) {
	messages, err := wirejson.SplitBatch(body, limits)
	if err != nil {
		x.out.sendError(http.StatusBadRequest, toRPCError(err))
		return
	}
	if id, _ := headerValue(x.r.Header, mcp.HeaderSession); id == "" {
		x.out.sendError(http.StatusBadRequest, errNoBatch)
		return
	}
	if !x.acquireSession() {
		return
	}
	defer x.releaseSession()
	_, method := headerValue(x.r.Header, mcp.HeaderMethod)
	if x.entry.version != mcp.BatchVersion || method || !isLegacyVersion(x.r.Header.Get(mcp.HeaderVersion)) {
		x.out.sendError(http.StatusBadRequest, errNoBatch)
		return
	}
	if answers := x.answerBatch(x.r.Context(), messages); answers != nil {
		x.out.sendBody(http.StatusOK, answers)
	} else {
		x.out.sendAccepted()
	}
}

// servePostInSession answers a message in a session.
func (x *httpRequest) servePostInSession() {
	if !x.acquireSession() {
		return
	}
	defer x.releaseSession()
	if x.IsRequest() {
		x.answerRequest()
		x.answered = x.Method != mcp.Ping
		return
	}
	if err := x.forwardToSession(x.r.Context()); err != nil {
		x.writeFailure(err)
		return
	}
	x.out.sendAccepted()
}

// serveInitialize opens a session.
func (x *httpRequest) serveInitialize() {
	x.prepareRequest()
	x.req.Head = x.out.setForwardedHeaders
	e, o, err := x.openSession(x.r.Context())
	if err != nil {
		x.writeFailure(err)
		return
	}
	if e != nil {
		e.assignID(x.newSessionID(x.r.Context(), e, x.paramMember("capabilities")))
		if full := x.s.sessions.addSession(e); full != nil {
			e.session.Close()
			x.out.sendError(http.StatusServiceUnavailable, full)
			return
		}
		x.out.w.Header()[mcp.HeaderSession] = []string{e.id}
	}
	x.out.sendReply(&o.Reply)
}

// acquireSession finds or rebuilds the session of the request and protects it from eviction. The caller must release
// it.
func (x *httpRequest) acquireSession() bool {
	id, given := headerValue(x.r.Header, mcp.HeaderSession)
	if !given {
		x.out.sendError(http.StatusBadRequest, x.recordRefusalIfCall(x.r.Context(), errNoSession))
		return false
	}
	if x.entry = x.findSession(id); x.entry == nil {
		err := x.restoreSession(x.r.Context(), id)
		if err == nil {
			err = errUnknownSession // if findSession returns nil
			x.entry = x.findSession(id)
		}
		if x.entry == nil {
			x.writeNoSession(err)
			return false
		}
	}
	x.calls = &x.entry.cancellableCalls
	return true
}

// releaseSession releases the session of acquireSession.
func (x *httpRequest) releaseSession() { x.entry.releaseUse(x.answered) }

// serveDelete ends a session.
func (x *httpRequest) serveDelete() {
	if !x.requireSession() {
		return
	}
	id, _ := headerValue(x.r.Header, mcp.HeaderSession)
	if x.entry = x.s.sessions.acquireSession(id, x.actor, x.endpoint); x.entry != nil {
		x.releaseSession()
		x.endPermanently(x.r.Context(), x.entry)
	} else if _, until, err := x.readSessionID(x.r.Context(), id); err == nil { // it need not be rebuilt
		x.s.restorer.markEnded(sessionRecordID(id), until)
	} else {
		x.writeNoSession(err)
		return
	}
	x.s.restorer.awaitSaved(x.r.Context())
	x.out.sendPieces(http.StatusNoContent)
}

// requireSession refuses GET and DELETE without a session.
func (x *httpRequest) requireSession() bool {
	has := x.hasSession()
	if !has {
		x.sendMethodNotAllowed()
	}
	return has
}

// hasSession reports whether the request names a session.
func (x *httpRequest) hasSession() bool {
	return x.r.Header.Get(mcp.HeaderSession) != "" && isLegacyVersion(x.r.Header.Get(mcp.HeaderVersion))
}

func (x *httpRequest) sendMethodNotAllowed() {
	allow := "GET, POST, DELETE"
	if !x.hasSession() {
		allow = "POST"
	}
	x.out.w.Header().Set("Allow", allow)
	x.out.sendError(http.StatusMethodNotAllowed, &wirejson.RPCError{Code: wirejson.CodeInvalidRequest,
		Message: x.r.Method + " is not allowed here. Send each message by POST. GET and DELETE need a session (Mcp-Session-Id)."})
}

// recoverPanic answers a request whose handler panicked.
func (x *httpRequest) recoverPanic() {
	cause := recover()
	if cause == nil {
		return
	}
	if err, ok := cause.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(cause)
	}
	x.s.logPanic(x.Method, cause)
	if st := x.out.stream; x.out.begun || st != nil && st.closeIfUnused() {
		panic(http.ErrAbortHandler) // the client must not take a partial reply for a complete one
	}
	x.out.sendError(http.StatusInternalServerError, errPanicked)
}
