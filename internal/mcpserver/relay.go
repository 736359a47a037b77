package mcpserver

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"mcpproxy/internal/gateway"
	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/strictjson"
	"mcpproxy/internal/upstream"
)

// Relay is what the transparent surface needs of the product.
type Relay interface {
	Converse(ctx context.Context, r gateway.RelayRequest) (*upstream.Conversation, upstream.Answer, error)
	Relay(ctx context.Context, r gateway.RelayRequest) (upstream.Answer, error)
	Overhear(ctx context.Context, r gateway.RelayRequest, say func(upstream.Event), opened func()) error
}

// targetOf is the server that a path under /mcp is about, "" for /mcp itself.
func targetOf(path string) string {
	if path == allPath {
		return allTarget
	}
	for _, prefix := range [...]string{"/mcp/servers/", "/mcp/s/"} {
		if name, ok := strings.CutPrefix(path, prefix); ok {
			if name == allTarget {
				break // no server has that name
			}
			return name
		}
	}
	return ""
}

// postRelay answers a message that is for one server.
func (x *exchange) postRelay() { x.postPassing(x.converse, x.relayWhole, x.relayNotice) }

// postPassing answers a message on a surface that passes on what clients say:
// initialize opens a session, request answers what wants an answer, notice
// takes the rest.
func (x *exchange) postPassing(initialize, request func(), notice func() error) {
	switch {
	case x.modern && x.msg.IsRequest():
		request()
		return
	case x.modern:
		x.postModern() // what this era does not have it does not have here either
		return
	case x.msg.IsRequest() && x.msg.Method == "initialize":
		initialize()
		return
	}
	if !x.findSession() {
		return
	}
	defer x.session.release()
	if x.msg.IsRequest() {
		request()
		return
	}
	if err := notice(); err != nil {
		x.failRelay(err)
		return
	}
	x.accepted()
}

// relayed is the message as the gateway takes it.
func (x *exchange) relayed() gateway.RelayRequest {
	r := gateway.RelayRequest{Server: x.target, Caller: x.caller(), RequestBytes: x.size,
		Request: upstream.Request{ID: x.msg.ID, Method: x.msg.Method, Params: x.msg.Params,
			Principal: x.actor.String()}}
	if x.session != nil {
		r.Conversation = x.session.talk
	}
	if x.modern {
		r.Request.Fields = mirroredHeaders(x.r.Header)
	}
	return r
}

// mirroredHeaders are the headers that say what the body says: a server that
// checks them needs them.
func mirroredHeaders(h http.Header) []upstream.Field {
	var fields []upstream.Field
	for name, values := range h {
		if name == headerMethod || name == headerName || strings.HasPrefix(name, "Mcp-Param-") {
			fields = append(fields, upstream.Field{Name: name, Value: values[0]})
		}
	}
	return fields
}

// endless says whether the request waits for what happens: a subscription, or
// for the end of a task.
func (x *exchange) endless() bool {
	if x.modern {
		return x.msg.Method == "subscriptions/listen"
	}
	return x.msg.Method == "tasks/result"
}

// relayWhole passes on a request that has its HTTP exchange for itself.
func (x *exchange) relayWhole() {
	if !x.endless() {
		x.relayRequest()
		return
	}
	if !x.s.streams.take() {
		x.tooManyStreams()
		return
	}
	defer x.s.streams.give()
	x.relayRequest()
}

// relayRequest passes a request on and answers with what comes back.
func (x *exchange) relayRequest() {
	x.reply(func(ctx context.Context, st *stream) outcome {
		r := x.relayed()
		if r.Endless = x.endless(); r.Endless {
			var stop func()
			ctx, stop = x.untilServerEnds(ctx)
			defer stop()
		}
		r.Request.Head = x.takeHead
		if st != nil {
			r.Request.Events = func(e upstream.Event) { st.tell(&e) }
			r.Request.Head = func(fields []upstream.Field) {
				x.takeHead(fields)
				st.setHead(fields)
			}
		}
		return x.pass(ctx, r)
	})
}

// untilServerEnds gives a context for what has no end of its own: it ends when
// this server is closed, or the session is over.
func (x *exchange) untilServerEnds(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(parent)
	ended := make(chan struct{})
	var session <-chan struct{}
	if x.session != nil {
		session = x.session.ended
	}
	go func() {
		defer close(ended)
		select {
		case <-x.s.closed:
			cancel()
		case <-session:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(); <-ended }
}

// pass is Relay with the answer in our form.
func (x *exchange) pass(ctx context.Context, r gateway.RelayRequest) outcome {
	a, err := x.s.Relay.Relay(ctx, r)
	o := x.passedOn(a, err)
	o.over = gateway.Over(err)
	return o
}

// passedOn is what came of a request that was passed on, in our form.
func (x *exchange) passedOn(a upstream.Answer, err error) outcome {
	if err == nil {
		return x.relayOutcome(a)
	}
	e := x.relayError(err)
	if gateway.Over(err) {
		return outcome{err: e}
	}
	p := problem.From(err)
	status, said := x.saidStatus(p)
	switch {
	case said && x.target != allTarget:
		return outcome{err: e, status: status}
	case x.msg.Method == "tools/call" && p.Code != problem.ToolNotFound && p.Code != problem.InvalidName && p.Code != problem.ServerNotFound:
		return outcome{result: x.refusal(err)}
	case !said:
		status = x.refusedStatus(p)
	}
	return outcome{err: e, status: status}
}

// relayOutcome is a server's answer as it is.
func (x *exchange) relayOutcome(a upstream.Answer) outcome {
	o := outcome{err: a.Error, status: a.Status}
	switch {
	case a.Error == nil:
		o.result = pieces(a.Result)
	case o.status == 0, o.status == http.StatusNotFound && !x.sharesFate():
		o.status = x.mirroredStatus(a.Error)
	}
	return o
}

// sharesFate says whether a 404 of the server may reach the client. In a session
// it means that the session is over, and where the server knows of none that is
// ours, of which the server says nothing.
func (x *exchange) sharesFate() bool {
	return x.session == nil || x.session.talk != nil && x.session.talk.HasID()
}

// mirroredStatus is the HTTP status for an error that did not come by HTTP.
func (x *exchange) mirroredStatus(e *jsonrpc.Error) int {
	switch e.Code {
	case jsonrpc.CodeMethodNotFound, jsonrpc.CodeInvalidParams, jsonrpc.CodeInvalidRequest, jsonrpc.CodeParse,
		jsonrpc.CodeHeaderMismatch, jsonrpc.CodeMissingCapability, jsonrpc.CodeUnsupportedVersion:
		return x.status(e)
	}
	return http.StatusOK
}

// saidStatus is what the server said in words of HTTP alone; but its demands for
// credentials are not for the client, and a 404 would end the client's session.
func (x *exchange) saidStatus(p *problem.Problem) (status int, ok bool) {
	for _, d := range p.Details {
		if status, ok := d.Value.(int); ok && d.Key == "http_status" && status >= 400 &&
			status != http.StatusUnauthorized && status != http.StatusForbidden && (status != http.StatusNotFound || x.modern) {
			return status, true
		}
	}
	return 0, false
}

// refusedStatus is the HTTP status of a request to which the server said nothing.
func (x *exchange) refusedStatus(p *problem.Problem) int {
	switch {
	case p.Code == problem.ServerNotFound:
		return http.StatusNotFound
	case x.modern && p.Code.JSONRPC() == jsonrpc.CodeInvalidParams:
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// relayError is a problem as an error of the protocol.
func (x *exchange) relayError(err error) *jsonrpc.Error {
	p := problem.From(err)
	if p.Code == problem.Internal && !errors.Is(err, context.Canceled) && !gateway.Over(err) {
		x.s.Logger.Error("a request could not be passed on", "server", x.target, "error", p.Cause)
	}
	message := p.Message
	if gateway.Over(err) {
		message = sessionOver
	} else if p.Hint != "" {
		message = strings.TrimSuffix(message, ".") + ". " + p.Hint
	}
	data := appendText([]byte(`{"code":`), []byte(p.Code))
	return &jsonrpc.Error{Code: p.Code.JSONRPC(), Message: message, Data: append(data, '}')}
}

const sessionOver = "Session not found: it has ended or expired. Send initialize to start a new one."

// overRelay answers for a session whose server has ended it.
func (x *exchange) overRelay() {
	if x.session != nil {
		x.s.sessions.end(x.session)
	}
	x.fail(http.StatusNotFound, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: sessionOver})
}

// failRelay answers for a message that could not be passed on and wants no
// answer of its own.
func (x *exchange) failRelay(err error) {
	if gateway.Over(err) {
		x.overRelay()
		return
	}
	p := problem.From(err)
	status, said := x.saidStatus(p)
	if !said {
		status = p.Code.HTTPStatus()
	}
	x.fail(status, x.relayError(err))
}

// converse opens a session with the server, and one of ours for it.
func (x *exchange) converse() {
	r := x.relayed()
	r.Request.Head = x.takeHead
	talk, a, err := x.s.Relay.Converse(x.r.Context(), r)
	switch {
	case err != nil:
		x.failRelay(err)
		return
	case talk == nil:
		x.send(x.relayOutcome(a))
		return
	}
	version, _ := strictjson.String(strictjson.Find(a.Result, "protocolVersion"))
	client, clientVersion := identity(x.params.clientInfo)
	s := &session{actor: x.actor, version: version, client: client, clientVersion: clientVersion, server: x.target, talk: talk}
	if bad := x.s.sessions.open(s); bad != nil {
		talk.End()
		x.fail(http.StatusServiceUnavailable, bad)
		return
	}
	x.w.Header()[headerSession] = []string{s.id}
	x.send(x.relayOutcome(a))
}

// relayNotice passes on what wants no answer: a notification, or the answer to
// a request of the server.
func (x *exchange) relayNotice() error {
	switch talk := x.session.talk; {
	case x.msg.IsResponse():
		return talk.Respond(x.r.Context(), x.msg.ID, x.msg.Result, x.msg.Error)
	case x.msg.Method == "notifications/cancelled":
		// It reaches the server by the request that it ends.
		x.session.cancel(x.params.requestID, &upstream.Cancelled{Params: x.msg.Params})
		return nil
	default:
		return talk.Notify(x.r.Context(), x.msg.Method, x.msg.Params)
	}
}

// relayInBatch passes on one message of a batch.
func (x *exchange) relayInBatch() outcome {
	ctx, _, end := x.cancellable()
	defer end()
	o := x.pass(ctx, x.relayed())
	o.status = 0
	return o
}

// openTime is how long a client's stream waits for the server's: some servers
// answer only when they have something to say.
const openTime = 250 * time.Millisecond

// held runs what holds a stream of the client open, until the client goes, this
// server is closed or the session is over.
func (x *exchange) held(run func(ctx context.Context, cancel context.CancelCauseFunc)) {
	if !x.s.streams.take() {
		x.tooManyStreams()
		return
	}
	defer x.s.streams.give()
	open, cancel := context.WithCancelCause(x.r.Context())
	defer cancel(nil)
	ctx, stop := x.untilServerEnds(open)
	defer stop()
	run(ctx, cancel)
}

// overhear gives the client what the server says by itself.
func (x *exchange) overhear() {
	x.held(func(ctx context.Context, cancel context.CancelCauseFunc) {
		st := newStream(x.w, cancel)
		defer func() { x.answered = st.finish(nil) || x.answered }()
		late := time.AfterFunc(openTime, st.open)
		defer late.Stop()
		err := x.s.Relay.Overhear(ctx, x.relayed(), func(e upstream.Event) { st.offer(&e) }, st.open)
		late.Stop()
		if !st.settle() && ctx.Err() == nil {
			x.noStream(err)
		}
	})
}

// noStream answers for a stream that the server does not give.
func (x *exchange) noStream(err error) {
	switch {
	case err == nil:
		x.accepted() // not reached: a stream that the server agreed to is open
	case gateway.Over(err):
		x.overRelay()
	default:
		x.w.Header().Set("Allow", "POST, DELETE")
		x.fail(http.StatusMethodNotAllowed, x.relayError(err))
	}
}

func (x *exchange) tooManyStreams() {
	x.fail(http.StatusServiceUnavailable, &jsonrpc.Error{Code: jsonrpc.CodeInternal,
		Message: "Too many open streams (1024). Close some, or do without: every answer comes with its own request."})
}
