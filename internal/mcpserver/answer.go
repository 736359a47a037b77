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

// answer answers a request: as plain JSON, or as the last event of a stream if events precede the reply.
func (x *request) answer() {
	x.prepare()
	if x.form == session.Direct {
		x.finish(x.ask(x.r.Context(), nil, nil))
		return
	}
	ctx, cancel := x.cancelable()
	x.begin(cancel)
	defer x.end(cancel)
	if x.form == session.Waiting {
		x.req.Head = x.out.takeHead
		if x.modern {
			x.req.Headers = mirroredHeaders(x.r.Header)
		}
	}
	plain, streamed := accepts(x.r.Header)
	if !streamed && x.form != session.Streaming {
		x.finish(x.ask(ctx, cancel, nil))
		return
	}
	x.out.stream = newStream(x.out.w, cancel)
	defer x.out.stream.finish(nil)
	if !plain && x.form != session.Streaming && x.Method != mcp.Listen { // a subscription is accepted or refused first
		x.out.stream.open()
	}
	x.finish(x.ask(ctx, cancel, &x.out.stream.outlet))
}

// cancelable returns the context of the HTTP request, or a derived one if its writer cannot cancel it.
func (x *request) cancelable() (context.Context, context.CancelCauseFunc) {
	if w, ok := x.out.w.(interface{ Cancel(why error) }); ok {
		return x.r.Context(), w.Cancel
	}
	return context.WithCancelCause(x.r.Context())
}

// finish writes the outcome of a request. A cancelled request gets no reply if HTTP allows it.
func (x *request) finish(o outcome) {
	st := x.out.stream
	if o.cancelled && st != nil {
		st.open()
	}
	switch streamed := st != nil && st.settle(); {
	case o.sessionEnded && !streamed:
		x.sessionEnded()
	case streamed && o.cancelled: // the stream ends without a reply
	case streamed:
		st.finish(wirejson.AppendEvent(nil, "", appendReply(nil, x.out.id, &o.Reply)))
	default:
		x.out.send(&o.Reply)
	}
}

// fail answers a message that could not be forwarded.
func (x *request) fail(err error) {
	if isSessionEnded(err) {
		x.sessionEnded()
		return
	}
	status, said := x.forwardedStatus(err)
	if !said {
		status = problem.From(err).Code.HTTPStatus()
	}
	x.out.fail(status, x.rpcError(err))
}

// sessionEnded answers that the server has ended the session.
func (x *request) sessionEnded() {
	if x.entry != nil {
		x.s.sessions.end(x.entry)
	}
	x.out.fail(http.StatusNotFound, &wirejson.RPCError{Code: wirejson.CodeInvalidRequest, Message: sessionOver})
}

// openTime is how long a client's stream waits for the server's: some servers send the response head only
// with the first event.
const openTime = 250 * time.Millisecond

// get opens a stream for the notifications of a server.
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
			cancel(errStalled) // a client that is too slow loses the stream
		}
	}, st.open)
	late.Stop()
	switch {
	case st.settle() || ctx.Err() != nil:
	case isSessionEnded(err):
		x.sessionEnded()
	default: // the server has no stream
		x.out.w.Header().Set("Allow", "POST, DELETE")
		x.out.fail(http.StatusMethodNotAllowed, x.rpcError(err))
	}
}
