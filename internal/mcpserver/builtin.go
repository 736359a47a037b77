package mcpserver

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"mcpproxy/internal/config"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
)

// Gateway is what the surface needs of the product.
type Gateway interface {
	Call(ctx context.Context, r ops.CallRequest) (ops.CallResult, error)
	Retrieve(ctx context.Context, r ops.RetrieveRequest) (json.RawMessage, error)
	ReadResult(ctx context.Context, r ops.ReadRequest) (json.RawMessage, error)
	Servers(ctx context.Context, c ops.Caller, in ops.Nothing) (ops.ServerViews, error)
	Server(ctx context.Context, c ops.Caller, in ops.ServerRef) (ops.ServerView, error)
	RestartServer(ctx context.Context, c ops.Caller, in ops.ServerRef) (ops.ServerView, error)
	AddServer(ctx context.Context, c ops.Caller, in ops.NewServer) (ops.ServerView, error)
	Refuse(ctx context.Context, r ops.Refusal) string
	Usable(c *auth.Caller) (all []ops.UsableServer, changed <-chan struct{})
	Calls(c *auth.Caller) map[string]int64
}

// BuiltinTools is a session.Surface.
type BuiltinTools struct {
	gateway Gateway
	config  func() *config.Config
	reply   *session.ReplyWriter
	texts   texts
}

// NewBuiltinTools makes a Surface.
func NewBuiltinTools(g Gateway, config func() *config.Config, w *session.ReplyWriter) *BuiltinTools {
	return &BuiltinTools{gateway: g, config: config, reply: w, texts: makeTexts(w)}
}

// Form returns how requests of a method are answered.
func (s *BuiltinTools) Form(method string) session.Form {
	switch method {
	case mcp.CallTool:
		return session.Passing
	case mcp.Listen:
		return session.Streaming
	}
	return session.AtOnce
}

// Do answers a modern request.
func (s *BuiltinTools) Do(ctx context.Context, r *session.Request) (session.Reply, error) {
	switch r.Method {
	case mcp.Discover:
		now, _ := s.shows(r.Caller)
		return session.Reply{Result: slices.Concat(s.texts.discover, now.instructions(s.gateway.Calls(r.Caller)), []byte(changing+"}"))}, nil
	case mcp.Listen:
		return s.listen(ctx, r), nil
	}
	return s.answer(ctx, r, nil), nil
}

// builtinAnswer answers what there is in both eras; l is nil in the modern one.
func (s *BuiltinTools) answer(ctx context.Context, r *session.Request, l *legacy) session.Reply {
	switch r.Method {
	case mcp.CallTool:
		q := builtinRequest{BuiltinTools: s, Request: r, modern: l == nil, cfg: s.config()}
		if l != nil {
			q.told = l.told.before
		}
		return q.run(ctx)
	case mcp.ListTools:
		return s.listTools(r, l == nil)
	}
	return session.MethodNotFound(r.Method)
}

// listTools answers tools/list. There is one page, so no cursor was ever given
// out; the empty one is what some send for the first page.
func (s *BuiltinTools) listTools(r *session.Request, modern bool) session.Reply {
	if c := wirejson.Find(r.Params, "cursor"); c != nil && wirejson.Kind(c) != 'n' && string(c) != `""` {
		return session.Reply{Error: session.InvalidParams("the cursor is not one of ours: there is one page, ask without a cursor")}
	}
	return session.Reply{Result: s.texts.list(s.listing(r.Caller, modern))}
}

// ListBytes returns how many bytes the list of the tools has.
func (s *BuiltinTools) ListBytes() int { return len(s.texts.list(s.listing(nil, false))) }

// shows returns what a caller is shown, and a channel that is closed when it may be
// something else.
func (s *BuiltinTools) shows(c *auth.Caller) (shown, <-chan struct{}) {
	servers, changed := s.gateway.Usable(c)
	return shown{s.listing(c, false), servers}, changed
}

// listing is what the list of the tools depends on now; a caller nil is one without
// bounds.
func (s *BuiltinTools) listing(c *auth.Caller, modern bool) listing {
	cfg := s.config()
	l := listing{modern: modern, intent: cfg.Intent.RequireIntent, management: cfg.MCPManagement, most: policy.Destructive}
	if !manages(cfg) {
		l.management = config.ManageOff
	}
	if c != nil {
		l.most = policy.Worst(c.Scope())
	}
	if c != nil && l.management == config.ManagePropose && !ops.MayPropose(c) {
		l.management = config.ManageRead
	}
	return l
}

// announce says that what the client knows has changed, until ctx ends.
func (s *BuiltinTools) announce(ctx context.Context, c *auth.Caller, k *known, say func()) {
	for {
		now, changed := s.shows(c)
		if k.gets(now) {
			say()
		}
		if session.AwaitSettled(ctx, changed) != nil {
			return
		}
	}
}

// listen holds a subscription open: it tells when the tools, or the servers that
// they lead to, have changed.
func (s *BuiltinTools) listen(ctx context.Context, r *session.Request) session.Reply {
	wanted, bad := session.WantedEvents(r)
	if bad != nil {
		return session.Reply{Error: bad}
	}
	if tools, _ := wirejson.Bool(wirejson.Find(wanted, "toolsListChanged")); !tools {
		session.Acknowledge(r, "{}")
		<-ctx.Done()
		return s.reply.End(r)
	}
	var k known
	now, _ := s.shows(r.Caller)
	k.gets(now) // before the client can list
	session.Acknowledge(r, `{"toolsListChanged":true}`)
	s.announce(ctx, r.Caller, &k, func() {
		r.Say(session.Event{Method: mcp.ToolsChanged, Params: json.RawMessage("{" + session.Subscription(r) + "}}")})
	})
	return s.reply.End(r)
}

// Open opens a session.
func (s *BuiltinTools) Open(_ context.Context, initialize *session.Request) (session.Session, session.Reply, error) {
	l := &legacy{BuiltinTools: s, caller: *initialize.Caller}
	now, _ := s.shows(&l.caller)
	l.known.gets(now)
	return l, session.Reply{Result: slices.Concat([]byte(`{"protocolVersion":"`+session.RequestedVersion(initialize.Params)), s.texts.initialize, now.instructions(s.gateway.Calls(&l.caller)), []byte("}"))}, nil
}

// legacy is the session of a client.
type legacy struct {
	*BuiltinTools
	caller auth.Caller
	known  known
	told   told
}

// told is what a session was told once.
type told struct {
	mu    sync.Mutex // guards texts
	texts map[string]bool
}

// before notes a text and reports whether it was told before. There are few texts.
func (t *told) before(text string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.texts[text]
	if t.texts == nil {
		t.texts = make(map[string]bool)
	}
	t.texts[text] = true
	return before
}

func (l *legacy) Do(ctx context.Context, r *session.Request) (session.Reply, error) {
	if r.Method == mcp.Ping {
		return session.Reply{Result: []byte("{}")}, nil
	}
	return l.answer(ctx, r, l), nil
}

// Notify takes a notification, of which there are none that matter here, and
// Respond an answer, to nothing that was asked.
func (*legacy) Notify(context.Context, string, json.RawMessage) error         { return nil }
func (*legacy) Respond(context.Context, json.RawMessage, session.Reply) error { return nil }
func (*legacy) Close()                                                        {}
func (*legacy) Done() <-chan struct{}                                         { return nil }

// Listen tells the client when the tools, or the servers that they lead to, have
// changed. Of several listeners one is told.
func (l *legacy) Listen(ctx context.Context, say func(session.Event), opened func()) error {
	opened()
	l.announce(ctx, &l.caller, &l.known, func() { say(session.Event{Method: mcp.ToolsChanged}) })
	return ctx.Err()
}

// builtinRequest is a tools/call, and what is read of it.
type builtinRequest struct {
	*BuiltinTools
	*session.Request
	modern bool
	cfg    *config.Config
	told   func(text string) bool // nil where a client is not known from one request to the next

	name, args json.RawMessage // the members of params; nil when not given
}

// read finds the parts of the params.
func (q *builtinRequest) read() {
	_ = wirejson.Members(q.Params, func(name, value []byte) error {
		switch string(name) {
		case "name":
			q.name = value
		case "arguments":
			q.args = value
		}
		return nil
	})
}

// Refused puts a call on record that was refused before it got here.
func (s *BuiltinTools) Refused(ctx context.Context, r *session.Request, p *problem.Problem) {
	q := builtinRequest{BuiltinTools: s, Request: r}
	q.read()
	q.record(ctx, p)
}

// invalid refuses a call that cannot be understood.
func (q *builtinRequest) invalid(ctx context.Context, what string) session.Reply {
	e := session.InvalidParams(what)
	q.record(ctx, problem.New(problem.InvalidParameter, e.Message, ""))
	return session.Reply{Error: e}
}

// refuse is the answer of a built-in tool that does not do what it was asked
// for. What is a refusal, and no failure, is on record.
func (q *builtinRequest) refuse(ctx context.Context, err error) session.Reply {
	switch p := problem.From(err); p.Code {
	case problem.Internal, problem.Interrupted, problem.Timeout, problem.AuditUnavailable:
	default:
		q.record(ctx, p)
	}
	return q.reply.Refusal(q.modern, err)
}

// record puts a refusal on record, with what the request says of the call.
func (q *builtinRequest) record(ctx context.Context, p *problem.Problem) {
	r := ops.Refusal{Caller: *q.Caller, RequestBytes: q.Size, Problem: p}
	r.Tool, _ = wirejson.String(q.name)
	switch r.Tool {
	case toolReadResult: // the handle is a secret
	case toolUpstreamServers: // its environment may hold some
		r.Server, _ = wirejson.String(wirejson.Find(q.args, "name"))
		r.Action, _ = wirejson.String(wirejson.Find(q.args, "operation"))
	default:
		r.Arguments = q.args
	}
	q.gateway.Refuse(ctx, r)
}
