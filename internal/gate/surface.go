package gate

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate/pause"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
)

// GatedEndpoint returns the endpoint of one server for clients. Its tools/call requests run through the gate, without
// validation against the schema and without the limit of the result. Unapproved prompts and resources, and tasks of
// other clients, are hidden. Errors are a *problem.Problem, session.ErrOver, or ctx.Err().
func (g *Gate) GatedEndpoint(server string) session.Endpoint {
	s := g.UpstreamSurface(server)
	return &gatedEndpoint{g, requestTarget{server: server, Doer: s}, s}
}

// gatedEndpoint is the endpoint of one server behind the gate.
type gatedEndpoint struct {
	gate   *Gate
	target requestTarget
	open   session.Endpoint
}

func (f *gatedEndpoint) Do(ctx context.Context, r *session.Request) (session.Reply, error) {
	return f.gate.dispatchRequest(ctx, f.target, r)
}

func (f *gatedEndpoint) OpenSession(ctx context.Context, initialize *session.Request) (session.Session, session.Reply, error) {
	caller := *initialize.Caller
	if p := f.gate.CheckReachable(f.target.server, &caller); p != nil {
		return nil, session.Reply{}, p
	}
	s, reply, err := f.open.OpenSession(ctx, initialize)
	if reply.Result != nil {
		reply.Result, _ = f.gate.Offers.FilterResult(ctx, f.target.server, mcp.Initialize, reply.Result, catalog.Recipient{Scope: caller.Scope()})
	}
	if s == nil {
		return nil, reply, err
	}
	w := &gatedSession{Session: s, gate: f.gate, caller: caller}
	w.target = requestTarget{server: f.target.server, Doer: s, asks: &w.asks}
	return w, reply, err
}

// gatedSession is a client's session with a server.
type gatedSession struct {
	session.Session
	gate   *Gate
	target requestTarget
	caller auth.Caller // the caller that opened the session
	asks   session.ServerQuestionTracker
}

func (w *gatedSession) Do(ctx context.Context, r *session.Request) (session.Reply, error) {
	return w.gate.dispatchRequest(ctx, w.target, r)
}

// IsMoved reports whether the session has ended with session.ErrMoved.
func (w *gatedSession) IsMoved() bool { return session.IsMoved(w.Session) }

// NotifyServer refuses a tools/call without an ID, because some servers would execute it.
func (w *gatedSession) NotifyServer(ctx context.Context, method string, params json.RawMessage) error {
	if method == mcp.CallTool {
		return problem.New(problem.InvalidRequest, "tools/call must be a request of its own", "Send it with an id.")
	}
	return w.Session.NotifyServer(ctx, method, params)
}

func (w *gatedSession) AnswerServerQuestion(ctx context.Context, id json.RawMessage, r session.Reply) error {
	w.asks.MarkAnswered(id) // from now on the time counts towards the server's limit
	return w.Session.AnswerServerQuestion(ctx, id, r)
}

func (w *gatedSession) Listen(ctx context.Context, say func(session.Event), opened func()) error {
	if p := w.gate.CheckReachable(w.target.server, &w.caller); p != nil {
		return p
	}
	return w.Session.Listen(ctx, func(e session.Event) {
		w.asks.TrackQuestion(&e) // the client may answer after the stream has ended
		say(e)
	}, opened)
}

// openTargetSession opens the client's session that a call needs, and returns it as the target.
func openTargetSession(ctx context.Context, to requestTarget) (requestTarget, error) {
	s, err := to.open(ctx, to.server)
	if err != nil {
		return requestTarget{}, err
	}
	w, ok := s.(*gatedSession)
	if !ok {
		return requestTarget{}, problem.New(problem.Internal, "the session was not opened by the gate", "")
	}
	return w.target, nil
}

// dispatchRequest runs a client's request to one server: tools/call by callFromClient, all others by
// relayRequest.
func (g *Gate) dispatchRequest(ctx context.Context, w requestTarget, r *session.Request) (session.Reply, error) {
	if r.Method != mcp.CallTool {
		return g.relayRequest(ctx, w, r)
	}
	name, isText := wirejson.String(wirejson.Find(r.Params, "name"))
	if !isText {
		return session.Reply{}, g.RefuseUnnamedCall(ctx, w.server, r)
	}
	return g.callFromClient(ctx, w, &ToolCallTarget{ID: tool.ID{Server: w.server, Tool: name}}, r) // refuses and records calls to unreachable servers
}

// relayRequest forwards a request other than tools/call.
func (g *Gate) relayRequest(ctx context.Context, w requestTarget, r *session.Request) (session.Reply, error) {
	if p := g.CheckReachable(w.server, r.Caller); p != nil {
		return session.Reply{}, p
	}
	if isPrimitiveMethod(r.Method) && !hasReadLane(r.Caller) {
		return session.Reply{}, problem.Newf(problem.OutOfScope, "'%s' is outside what this client may use: it needs the read lane", problem.ClipName(r.Method)).
			WithHint("Only the user can extend the scope of an agent token.")
	}
	if !passesPause(r.Method) {
		var ticket *pause.Ticket
		var p *problem.Problem
		if ctx, ticket, p = g.Pause.Enter(ctx); p != nil {
			g.RecordRefusal(ctx, SurfaceRefusal{Caller: *r.Caller, Server: w.server, Action: r.Method, RequestBytes: r.Size, Problem: p})
			return session.Reply{}, p
		}
		defer ticket.Leave()
	}
	reply, err := g.relayAllowed(ctx, w, r)
	if stopped := pause.Stopped(ctx); err != nil && stopped != nil {
		err = stopped.Problem("Calls were paused while '" + problem.ClipName(r.Method) + "' ran, and MCPProxy cancelled it.")
		g.RecordRefusal(context.WithoutCancel(ctx), SurfaceRefusal{Caller: *r.Caller, Server: w.server, Action: r.Method, RequestBytes: r.Size, Problem: problem.From(err)})
	}
	return reply, err
}

// passesPause reports whether requests of a method pass while calls are paused: those that list, subscribe or stop
// something. All others may make a server act, including the server's own methods.
func passesPause(method string) bool {
	switch method {
	case mcp.Initialize, mcp.Discover, mcp.Ping, mcp.SetLevel, mcp.Listen, mcp.Unsubscribe, mcp.ListTasks, mcp.CancelTask:
		return true
	}
	_, lists := catalog.ListKindOfMethod(method)
	return lists
}

// relayAllowed forwards a request that the caller may make.
func (g *Gate) relayAllowed(ctx context.Context, w requestTarget, r *session.Request) (session.Reply, error) {
	r, foreign := g.tasks.restrictToOwn(w.server, r)
	if foreign != nil {
		return session.Reply{Error: foreign}, nil
	}
	if r.Endless {
		r, err := g.checkPrimitiveUse(ctx, w.server, r)
		if err != nil {
			return session.Reply{}, err
		}
		return w.sendTracked(ctx, r)
	}
	ctx, clock, end := session.StartPausableDeadline(ctx, configuredTimeout(g.Config(), w.server))
	defer end()
	r, err := g.checkPrimitiveUse(ctx, w.server, r)
	if err != nil {
		return session.Reply{}, toTimeoutError(ctx, err)
	}
	leave, _, err := g.concurrency.Load().acquireSlots(ctx, w.server)
	if err != nil {
		return session.Reply{}, toQueueTimeout(toTimeoutError(ctx, err), w.server, r.Method)
	}
	defer leave()
	defer w.asks.PauseWhileAsked(clock)()
	asked := time.Now()
	reply, err := w.sendTracked(ctx, r)
	if err == nil && reply.Error == nil {
		reply.Result, err = g.Offers.FilterResult(ctx, w.server, r.Method, reply.Result, catalog.Recipient{Scope: r.Caller.Scope(), RequestedAt: asked})
	}
	if err == nil && r.Method == mcp.ListTasks {
		reply.Result = g.tasks.filterListResult(w.server, r, reply.Result)
	}
	return reply, err
}

// isPrimitiveMethod reports whether a method concerns prompts or resources.
func isPrimitiveMethod(method string) bool {
	return strings.HasPrefix(method, "prompts/") || strings.HasPrefix(method, "resources/") || strings.HasPrefix(method, "completion/")
}

// sendTracked sends a request. Until the reply arrives, it tracks the server's requests to the client.
func (w *requestTarget) sendTracked(ctx context.Context, r *session.Request) (session.Reply, error) {
	if w.asks == nil || r.Say == nil {
		return w.Do(ctx, r)
	}
	noted := *r
	say, done := w.asks.WrapToTrackQuestions(r.Say)
	defer done()
	noted.Say = say
	return w.Do(ctx, &noted)
}

// checkPrimitiveUse refuses the use of an unapproved prompt or resource, and records the refusal.
func (g *Gate) checkPrimitiveUse(ctx context.Context, server string, r *session.Request) (*session.Request, error) {
	allowed, err := g.Offers.CheckUse(ctx, server, r)
	if locked, ok := errors.AsType[*catalog.PrimitiveLockedError](err); ok {
		g.RecordRefusal(ctx, SurfaceRefusal{Caller: *r.Caller, Server: server, Action: r.Method, Detail: locked.What, RequestBytes: r.Size, Problem: locked.Problem})
		return nil, locked.Problem
	}
	return allowed, err
}

// toQueueTimeout converts a timeout while waiting for a slot to a problem.
func toQueueTimeout(err error, server, method string) error {
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return problem.Newf(problem.Timeout, "Server '%s' was too busy: '%s' timed out in the queue", server, problem.ClipName(method)).
		WithHint("It was not sent: try again in a moment.").With("server", server)
}
