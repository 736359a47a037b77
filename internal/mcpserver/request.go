package mcpserver

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/rawjson"
	"mcpproxy/internal/session"
)

// request is one HTTP request: who makes it, its message, and the answer.
type request struct {
	from client
	message
	r     *http.Request
	out   response
	asked bool // a request was answered in the session
}

// The places that are no server: of the built-in tools, and of all servers at
// once. No server can have such a name.
const atBuiltIn, atAll = "", "*"

// at returns what a path under /mcp is about.
func (s *Server) at(path string) (place string, surface session.Surface) {
	if path == "/mcp/all" {
		return atAll, s.All
	}
	for _, prefix := range [...]string{"/mcp/servers/", "/mcp/s/"} {
		if name, ok := strings.CutPrefix(path, prefix); ok && name != atAll && name != atBuiltIn {
			return name, s.At(name)
		}
	}
	return atBuiltIn, s.BuiltIn
}

// post answers one POST: one message, or a batch in the one revision that has
// batches.
func (x *request) post() {
	if !jsonBody(x.r.Header) {
		x.out.fail(http.StatusUnsupportedMediaType, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest,
			Message: "The body must be JSON, sent with Content-Type: application/json and no Content-Encoding."})
		return
	}
	body, ok := x.readBody()
	if !ok {
		return
	}
	if rawjson.Kind(body) == '[' {
		x.size = len(body)
		x.batch(body)
		return
	}
	bad := x.read(body)
	x.out.id = x.ID
	if bad == nil {
		// The modern era says so in every request, and initialize without saying
		// so opens a session.
		x.modern = x.meta.Version != nil || x.Method != mcp.Initialize && !ofSession(x.r.Header.Get(mcp.HeaderVersion))
		bad = x.checkHeaders()
	}
	switch {
	case bad != nil:
		x.out.fail(http.StatusBadRequest, x.refuse(x.r.Context(), bad))
	case x.modern:
		x.postModern()
	case x.Method == mcp.Initialize && x.IsRequest():
		x.initialize()
	default:
		x.postLegacy()
	}
}

// ofSession reports whether the version header, which may be missing, is one
// that belongs to a session.
func ofSession(version string) bool { return version == "" || mcp.IsLegacy(version) }

// postModern answers a message of the era whose requests stand for themselves.
func (x *request) postModern() {
	switch {
	case x.IsRequest():
		x.answer()
	case x.IsNotification():
		x.out.accepted() // a call is cancelled by closing it
	default:
		x.out.fail(http.StatusBadRequest, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest,
			Message: "A client sends requests only in this revision of the protocol."})
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
	o, err := x.open(x.r.Context())
	if err != nil {
		x.fail(err)
		return
	}
	if x.entry != nil {
		x.out.w.Header()[mcp.HeaderSession] = []string{x.entry.id}
	}
	x.out.send(&o.Reply)
}

// answer has a request answered, and its client gets what it comes to: as plain
// JSON, or as the last event of a stream when something is said before.
func (x *request) answer() {
	form := x.form()
	x.prepare()
	if form == session.AtOnce {
		x.finish(x.r.Context(), x.ask(x.r.Context()))
		return
	}
	ctx, cancel := x.begin(x.r.Context(), form)
	defer x.end(cancel)
	within := ctx
	if x.req.Endless {
		if !x.takeStream() {
			return
		}
		defer x.s.streams.give()
		var stop func()
		within, stop = x.untilServerEnds(ctx)
		defer stop()
	}
	if form == session.Waiting {
		x.req.Head = x.out.takeHead
		if x.modern {
			x.req.Fields = mirroredHeaders(x.r.Header)
		}
	}
	plain, streamed := accepts(x.r.Header)
	if !streamed && form != session.Streaming {
		x.finish(ctx, x.ask(within))
		return
	}
	st := newStream(x.out.w, cancel)
	x.out.stream = st
	defer x.out.close()
	if form == session.Passing {
		x.req.Say = st.pass
	} else {
		x.req.Say = st.tell
	}
	if !plain && form != session.Streaming && x.Method != mcp.Listen { // which is agreed to first, or refused
		st.open()
	}
	x.finish(ctx, x.ask(within))
}

// codeCancelled is the code of the answer to a request that the client itself
// cancelled, where HTTP demands that there is one. It is outside of the range
// that JSON-RPC reserves.
const codeCancelled = -32800

// finish gives the outcome of a request to its client. A client that has
// cancelled it gets none, as far as HTTP can do without.
func (x *request) finish(ctx context.Context, o outcome) {
	_, cancelled := errors.AsType[*session.Cancelled](context.Cause(ctx))
	st := x.out.stream
	if cancelled && st != nil {
		st.open()
	}
	switch streamed := st != nil && st.settle(); {
	case o.over && !streamed:
		x.over()
	case streamed && cancelled: // it ends without an answer
	case streamed:
		x.out.last(&o.Reply)
	case cancelled:
		x.out.fail(http.StatusOK, &jsonrpc.Error{Code: codeCancelled, Message: "The request was cancelled."})
	default:
		x.out.send(&o.Reply)
	}
}

// untilServerEnds returns a context for what has no end of its own: it ends when
// this server is closed, or the session is over.
func (x *request) untilServerEnds(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(parent)
	ended := make(chan struct{})
	var over <-chan struct{}
	if x.entry != nil {
		over = x.entry.ended
	}
	go func() {
		defer close(ended)
		select {
		case <-x.s.closed:
			cancel()
		case <-over:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(); <-ended }
}

// fail answers for a message that could not be passed on and has no answer of
// its own.
func (x *request) fail(err error) {
	if over(err) {
		x.over()
		return
	}
	status, said := x.said(err)
	if !said {
		status = problem.From(err).Code.HTTPStatus()
	}
	x.out.fail(status, x.explain(err))
}

// over answers for a session that its server has ended.
func (x *request) over() {
	if x.entry != nil {
		x.s.sessions.end(x.entry)
	}
	x.out.fail(http.StatusNotFound, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: sessionOver})
}

// findSession finds the session of the request and keeps it from being
// evicted; who finds it has to release it.
func (x *request) findSession() bool {
	id, given := x.header(mcp.HeaderSession)
	if !given {
		x.out.fail(http.StatusBadRequest, x.refuse(x.r.Context(), &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest,
			Message: "Mcp-Session-Id is missing. Send initialize to start a session, or use protocol version 2026-07-28, which needs none."}))
		return false
	}
	if x.entry = x.s.sessions.find(id, x.actor, x.place); x.entry == nil {
		x.out.fail(http.StatusNotFound, x.refuse(x.r.Context(), &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: sessionOver}))
		return false
	}
	return true
}

// release gives the session back that findSession found.
func (x *request) release() { x.entry.release(x.asked) }

// openTime is how long a client's stream waits for the server's: some servers
// answer only when they have something to say.
const openTime = 250 * time.Millisecond

// get holds a stream open for what a server says unasked.
func (x *request) get() {
	if !x.sessionMethod() || !x.findSession() {
		return
	}
	defer x.release()
	if _, stream := accepts(x.r.Header); !stream {
		x.out.fail(http.StatusNotAcceptable, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest,
			Message: "A GET opens a stream: send Accept: text/event-stream."})
		return
	}
	if !x.takeStream() {
		return
	}
	defer x.s.streams.give()
	open, cancel := context.WithCancelCause(x.r.Context())
	defer cancel(nil)
	ctx, stop := x.untilServerEnds(open)
	defer stop()
	st := newStream(x.out.w, cancel)
	x.out.stream = st
	defer x.out.close()
	late := time.AfterFunc(openTime, st.open)
	defer late.Stop()
	err := x.entry.session.Listen(ctx, st.offer, st.open)
	late.Stop()
	if !st.settle() && ctx.Err() == nil {
		x.noStream(err)
	}
}

// noStream answers for a stream that the server does not give.
func (x *request) noStream(err error) {
	switch {
	case err == nil:
		x.out.accepted() // not reached: a stream that the server agreed to is open
	case over(err):
		x.over()
	default:
		x.out.w.Header().Set("Allow", "POST, DELETE")
		x.out.fail(http.StatusMethodNotAllowed, x.explain(err))
	}
}

// takeStream takes one of the streams that may be held open, or refuses.
func (x *request) takeStream() bool {
	if x.s.streams.take() {
		return true
	}
	x.out.fail(http.StatusServiceUnavailable, &jsonrpc.Error{Code: jsonrpc.CodeInternal,
		Message: "Too many open streams (1024). Close some, or do without: every answer comes with its own request."})
	return false
}

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
	if x.r.Header.Get(mcp.HeaderSession) == "" || !ofSession(x.r.Header.Get(mcp.HeaderVersion)) {
		x.methodNotAllowed()
		return false
	}
	return true
}

func (x *request) methodNotAllowed() {
	allow := "GET, POST, DELETE"
	if x.r.Header.Get(mcp.HeaderSession) == "" || !ofSession(x.r.Header.Get(mcp.HeaderVersion)) {
		allow = "POST"
	}
	x.out.w.Header().Set("Allow", allow)
	x.out.fail(http.StatusMethodNotAllowed, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest,
		Message: x.r.Method + " is not allowed here. Send each message by POST. GET and DELETE need a session (Mcp-Session-Id)."})
}
