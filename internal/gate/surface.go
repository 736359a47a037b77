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
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
)

// Surface returns what clients get to talk to of a server: what is behind the
// gate, with the gate before it. Calls of tools go through the gate, but for the arguments' schema and the
// size of the result; of what else there is to see and to use, what nobody has
// approved and the tasks of others are left out. The errors of its requests are
// a *problem.Problem, session.ErrOver, or ctx.Err().
func (g *Gate) Surface(server string) session.Endpoint {
	s := g.Servers(server)
	return &surface{g, target{server: server, Doer: s}, s}
}

type surface struct {
	gate   *Gate
	target target
	open   session.Endpoint
}

func (f *surface) Do(ctx context.Context, r *session.Request) (session.Reply, error) {
	return f.gate.do(ctx, f.target, r)
}

func (f *surface) Open(ctx context.Context, initialize *session.Request) (session.Session, session.Reply, error) {
	caller := *initialize.Caller
	if p := f.gate.Reachable(f.target.server, &caller); p != nil {
		return nil, session.Reply{}, p
	}
	s, reply, err := f.open.Open(ctx, initialize)
	if reply.Result != nil {
		reply.Result, _ = f.gate.Offers.FilterResult(ctx, f.target.server, mcp.Initialize, reply.Result, catalog.Audience{Scope: caller.Scope()})
	}
	if s == nil {
		return nil, reply, err
	}
	w := &sessionSurface{Session: s, gate: f.gate, caller: caller}
	w.target = target{server: f.target.server, Doer: s, asks: &w.asks}
	return w, reply, err
}

// sessionSurface is a client's session with a server.
type sessionSurface struct {
	session.Session
	gate   *Gate
	target target
	caller auth.Caller // who has opened it
	asks   session.ServerQuestions
}

func (w *sessionSurface) Do(ctx context.Context, r *session.Request) (session.Reply, error) {
	return w.gate.do(ctx, w.target, r)
}

// Notify refuses a call of a tool that wants no answer: some servers act on one.
func (w *sessionSurface) Notify(ctx context.Context, method string, params json.RawMessage) error {
	if method == mcp.CallTool {
		return problem.New(problem.InvalidRequest, "tools/call must be a request of its own", "Send it with an id.")
	}
	return w.Session.Notify(ctx, method, params)
}

func (w *sessionSurface) Respond(ctx context.Context, id json.RawMessage, r session.Reply) error {
	w.asks.MarkAnswered(id) // what the server takes from now on is its own time
	return w.Session.Respond(ctx, id, r)
}

func (w *sessionSurface) Listen(ctx context.Context, say func(session.Event), opened func()) error {
	if p := w.gate.Reachable(w.target.server, &w.caller); p != nil {
		return p
	}
	return w.Session.Listen(ctx, func(e session.Event) {
		w.asks.TrackQuestion(&e) // it may be answered when the stream is over
		say(e)
	}, opened)
}

// opened returns the client's session that a call is sent in.
func opened(ctx context.Context, to target) (target, error) {
	s, err := to.open(ctx, to.server)
	if err != nil {
		return target{}, err
	}
	w, ok := s.(*sessionSurface)
	if !ok {
		return target{}, problem.New(problem.Internal, "the session is not one that was opened by the gate", "")
	}
	return w.target, nil
}

// do is every request of a client to one server.
func (g *Gate) do(ctx context.Context, w target, r *session.Request) (session.Reply, error) {
	if r.Method != mcp.CallTool {
		return g.relay(ctx, w, r)
	}
	name, isText := wirejson.String(wirejson.Find(r.Params, "name"))
	if !isText {
		return session.Reply{}, g.Unnamed(ctx, w.server, r)
	}
	return g.pass(ctx, w, &NamedCall{ID: tool.ID{Server: w.server, Tool: name}}, r) // which refuses what cannot be reached, on record
}

// relay passes on what is no call of a tool.
func (g *Gate) relay(ctx context.Context, w target, r *session.Request) (session.Reply, error) {
	if p := g.Reachable(w.server, r.Caller); p != nil {
		return session.Reply{}, p
	}
	if readsOffers(r.Method) && !mayRead(r.Caller) {
		return session.Reply{}, problem.Newf(problem.OutOfScope, "'%s' is outside what this client may use: it needs the read lane", problem.ClipName(r.Method)).
			WithHint("Only the user can widen the scope of an agent token.")
	}
	r, foreign := g.tasks.guard(w.server, r)
	if foreign != nil {
		return session.Reply{Error: foreign}, nil
	}
	if r.Endless {
		r, err := g.use(ctx, w.server, r)
		if err != nil {
			return session.Reply{}, err
		}
		return w.send(ctx, r)
	}
	ctx, clock, end := session.StartDeadline(ctx, timeout(g.Config(), w.server))
	defer end()
	r, err := g.use(ctx, w.server, r)
	if err != nil {
		return session.Reply{}, timeoutErr(ctx, err)
	}
	leave, _, err := g.admission.Load().enter(ctx, w.server)
	if err != nil {
		return session.Reply{}, unplaced(timeoutErr(ctx, err), w.server, r.Method)
	}
	defer leave()
	defer w.asks.PauseWhileAsked(clock)()
	asked := time.Now()
	reply, err := w.send(ctx, r)
	if err == nil && reply.Error == nil {
		reply.Result, err = g.Offers.FilterResult(ctx, w.server, r.Method, reply.Result, catalog.Audience{Scope: r.Caller.Scope(), RequestedAt: asked})
	}
	if err == nil && r.Method == mcp.ListTasks {
		reply.Result = g.tasks.listed(w.server, r, reply.Result)
	}
	return reply, err
}

// readsOffers reports whether a method is about what a server offers beside tools.
func readsOffers(method string) bool {
	return strings.HasPrefix(method, "prompts/") || strings.HasPrefix(method, "resources/") || strings.HasPrefix(method, "completion/")
}

// send is Do with note taken of what the client is asked meanwhile.
func (w *target) send(ctx context.Context, r *session.Request) (session.Reply, error) {
	if w.asks == nil || r.Say == nil {
		return w.Do(ctx, r)
	}
	noted := *r
	say, done := w.asks.TrackEvents(r.Say)
	defer done()
	noted.Say = say
	return w.Do(ctx, &noted)
}

// use refuses the use of what nobody has approved, on record.
func (g *Gate) use(ctx context.Context, server string, r *session.Request) (*session.Request, error) {
	allowed, err := g.Offers.CheckUse(ctx, server, r)
	if locked, ok := errors.AsType[*catalog.PrimitiveLockedError](err); ok {
		g.Refuse(ctx, Refusal{Caller: *r.Caller, Server: server, Action: r.Method, Detail: locked.What, RequestBytes: r.Size, Problem: locked.Problem})
		return nil, locked.Problem
	}
	return allowed, err
}

// unplaced is the error of a request that has waited for a place all the time that
// it has.
func unplaced(err error, server, method string) error {
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return problem.Newf(problem.Timeout, "Server '%s' was too busy for '%s' all the time that it has", server, problem.ClipName(method)).
		WithHint("It was not sent: try again in a moment.").With("server", server)
}
