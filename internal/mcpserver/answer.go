package mcpserver

import (
	"context"
	"net/http"
	"time"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
)

// answer has a request answered, and its client gets what it comes to: as plain
// JSON, or as the last event of a stream when something is said before.
func (x *request) answer() {
	x.prepare()
	if x.form == session.AtOnce {
		x.finish(x.ask(x.r.Context(), nil, nil))
		return
	}
	ctx, cancel := x.cancelable()
	x.begin(cancel)
	defer x.end(cancel)
	if x.form == session.Waiting {
		x.req.Head = x.out.takeHead
		if x.modern {
			x.req.Fields = mirroredHeaders(x.r.Header)
		}
	}
	plain, streamed := accepts(x.r.Header)
	if !streamed && x.form != session.Streaming {
		x.finish(x.ask(ctx, cancel, nil))
		return
	}
	x.out.stream = newStream(x.out.w, cancel)
	defer x.out.stream.finish(nil)
	if !plain && x.form != session.Streaming && x.Method != mcp.Listen { // which is agreed to first, or refused
		x.out.stream.open()
	}
	x.finish(x.ask(ctx, cancel, &x.out.stream.outlet))
}

// cancelable returns the context of the HTTP request, or one of our own where its writer
// cannot end that.
func (x *request) cancelable() (context.Context, context.CancelCauseFunc) {
	if w, ok := x.out.w.(interface{ Cancel(why error) }); ok {
		return x.r.Context(), w.Cancel
	}
	return context.WithCancelCause(x.r.Context())
}

// finish writes the outcome of a request. A client that has
// cancelled it gets none, as far as HTTP can do without.
func (x *request) finish(o outcome) {
	st := x.out.stream
	if o.cancelled && st != nil {
		st.open()
	}
	switch streamed := st != nil && st.settle(); {
	case o.over && !streamed:
		x.over()
	case streamed && o.cancelled: // it ends without an answer
	case streamed:
		st.finish(wirejson.AppendEvent(nil, "", appendReply(nil, x.out.id, &o.Reply)))
	default:
		x.out.send(&o.Reply)
	}
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
	x.out.fail(http.StatusNotFound, &wirejson.RPCError{Code: wirejson.CodeInvalidRequest, Message: sessionOver})
}

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
		x.out.fail(http.StatusNotAcceptable, &wirejson.RPCError{Code: wirejson.CodeInvalidRequest,
			Message: "A GET opens a stream: send Accept: text/event-stream."})
		return
	}
	select {
	case x.s.streams <- struct{}{}:
		defer func() { <-x.s.streams }()
	default:
		x.out.fail(http.StatusServiceUnavailable, errManyStreams)
		return
	}
	open, cancel := context.WithCancelCause(x.r.Context())
	defer cancel(nil)
	ctx, stop := x.untilServerEnds(open)
	defer stop()
	st := newStream(x.out.w, cancel)
	x.out.stream = st
	defer st.finish(nil)
	late := time.AfterFunc(openTime, st.open)
	defer late.Stop()
	err := x.entry.session.Listen(ctx, func(e session.Event) {
		if !st.offer(e) {
			cancel(errStalled) // who is too far behind loses the stream
		}
	}, st.open)
	late.Stop()
	switch {
	case st.settle() || ctx.Err() != nil:
	case over(err):
		x.over()
	default: // the server has none
		x.out.w.Header().Set("Allow", "POST, DELETE")
		x.out.fail(http.StatusMethodNotAllowed, x.explain(err))
	}
}
