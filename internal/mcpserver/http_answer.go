package mcpserver

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
)

// answerRequest answers a request: as plain JSON, or as the last event of a stream if events precede the reply.
func (x *httpRequest) answerRequest() {
	x.prepareRequest()
	if x.form == session.Direct {
		x.writeOutcome(x.runRequest(x.r.Context(), nil, nil))
		return
	}
	ctx, cancel := x.cancellableContext()
	x.beginCancellable(cancel)
	defer x.endCancellable(cancel)
	if x.form == session.Waiting {
		x.req.Head = x.out.setForwardedHeaders
		if x.modern {
			x.req.Headers = headersRepeatingBody(x.r.Header)
		}
	}
	plain, streamed := acceptedReplyKinds(x.r.Header)
	if !streamed && x.form != session.Streaming {
		x.writeOutcome(x.runRequest(ctx, cancel, nil))
		return
	}
	x.out.stream = newEventStream(x.out.w, cancel)
	defer x.out.stream.finishStream(nil)
	if !plain && x.form != session.Streaming && x.Method != mcp.Listen { // a subscription is accepted or refused first
		x.out.stream.openStream()
	}
	x.writeOutcome(x.runRequest(ctx, cancel, &x.out.stream.clientWriter))
}

// cancellableContext returns the context of the HTTP request, or a derived one if its writer cannot cancel it.
func (x *httpRequest) cancellableContext() (context.Context, context.CancelCauseFunc) {
	if w, ok := x.out.w.(interface{ Cancel(why error) }); ok {
		return x.r.Context(), w.Cancel
	}
	return context.WithCancelCause(x.r.Context())
}

// writeOutcome writes the outcome of a request. A cancelled request gets no reply if HTTP allows it.
func (x *httpRequest) writeOutcome(o requestOutcome) {
	st := x.out.stream
	if o.cancelled && st != nil {
		st.openStream()
	}
	switch streamed := st != nil && st.closeIfUnused(); {
	case o.sessionEnded && !streamed:
		x.writeSessionEnded()
	case streamed && o.cancelled: // the stream ends without a reply
	case streamed:
		// The status was sent. The error in the stream names the limit or the scope.
		st.finishStream(wirejson.AppendSSEEvent(nil, "", appendReply(nil, x.out.id, &o.Reply)))
	default:
		x.addStepUp(&o)
		if o.retryAfter > 0 {
			x.out.w.Header().Set("Retry-After", strconv.Itoa(o.retryAfter))
		}
		x.out.sendReply(&o.Reply)
	}
}

// writeFailure answers a message that could not be forwarded.
func (x *httpRequest) writeFailure(err error) {
	if isSessionEnded(err) {
		x.writeSessionEnded()
		return
	}
	status, said := x.forwardedStatus(err)
	if !said {
		status = problem.From(err).Code.HTTPStatus()
	}
	x.out.sendError(status, x.newReplyError(err))
}

// writeSessionEnded answers that the server has ended the session. If all sessions end because MCPProxy stops, the
// client's session continues after the restart.
func (x *httpRequest) writeSessionEnded() {
	if x.s.isClosed() && x.s.restorer.store != nil {
		x.writeFailure(errStopping)
		return
	}
	if x.entry != nil {
		x.endPermanently(x.r.Context(), x.entry)
	}
	x.out.sendError(http.StatusNotFound, &wirejson.RPCError{Code: wirejson.CodeInvalidRequest, Message: sessionOver})
}

// openTime is how long a client's stream waits for the server's: some servers send the response head only
// with the first event.
const openTime = 250 * time.Millisecond

// serveGet opens a stream for the notifications of a server.
func (x *httpRequest) serveGet() {
	if !x.requireSession() || !x.acquireSession() {
		return
	}
	defer x.releaseSession()
	if _, stream := acceptedReplyKinds(x.r.Header); !stream {
		x.out.sendError(http.StatusNotAcceptable, &wirejson.RPCError{Code: wirejson.CodeInvalidRequest,
			Message: "A GET opens a stream: send Accept: text/event-stream."})
		return
	}
	select {
	case x.s.streams <- struct{}{}:
		defer func() { <-x.s.streams }()
	default:
		x.out.sendError(http.StatusServiceUnavailable, errManyStreams)
		return
	}
	open, cancel := context.WithCancelCause(x.r.Context())
	defer cancel(nil)
	ctx, stop := x.endlessContext(open)
	defer stop()
	st := newEventStream(x.out.w, cancel)
	x.out.stream = st
	defer st.finishStream(nil)
	late := time.AfterFunc(openTime, st.openStream)
	defer late.Stop()
	err := x.entry.session.Listen(ctx, func(e session.Event) {
		if !st.tryQueue(e) {
			cancel(errStalled) // a client that is too slow loses the stream
		}
	}, st.openStream)
	late.Stop()
	switch {
	case st.closeIfUnused() || ctx.Err() != nil:
	case isSessionEnded(err):
		x.writeSessionEnded()
	default: // the server has no stream
		x.out.w.Header().Set("Allow", "POST, DELETE")
		x.out.sendError(http.StatusMethodNotAllowed, x.newReplyError(err))
	}
}
