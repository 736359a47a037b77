package door

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"mcpproxy/internal/activity"
	"mcpproxy/internal/approval/approvaltest"
	"mcpproxy/internal/auth"
	"mcpproxy/internal/catalog"
	"mcpproxy/internal/config"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/offers"
	"mcpproxy/internal/policy"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/rawjson"
	"mcpproxy/internal/session"
	"mcpproxy/internal/store"
	"mcpproxy/internal/tool"
)

// world is a door with everything around it in memory. Its events tell in which
// order the log and the server were asked.
type world struct {
	t       testing.TB
	cfg     *config.Config
	catalog *catalog.Catalog
	door    *Door

	mu       sync.Mutex // guards what follows
	events   []string
	begun    []activity.Record
	refusals []activity.Record
	ended    []activity.Outcome
	results  map[string]store.StoredResult

	beginErr error
	begin    func() // what happens while a record is written
	answer   func(ctx context.Context, r *session.Request) (session.Reply, error)
	relays
}

func newWorld(t testing.TB, change func(*config.Config), definitions ...string) *world {
	t.Helper()
	w := &world{t: t, cfg: config.Default(), results: map[string]store.StoredResult{}, begin: func() {}}
	w.relays.w = w
	w.cfg.Servers = []config.Server{{Name: "s", Protocol: "stdio", Enabled: true, Trust: config.TrustAuto}}
	if change != nil {
		change(w.cfg)
	}
	w.answer = func(context.Context, *session.Request) (session.Reply, error) {
		return session.Reply{Result: json.RawMessage(`{"content":[{"type":"text","text":"done"}],"x":9007199254740993}`)}, nil
	}
	logger := slog.New(slog.DiscardHandler)
	w.catalog = catalog.New(catalog.Options{Servers: w.cfg.Servers, Infer: w.cfg.Intent.InferHints, Book: new(approvaltest.Memory).Book(), Logger: logger})
	w.list(definitions...)
	w.door = New(Deps{
		Config: func() *config.Config { return w.cfg }, Catalog: w.catalog, Servers: w.surface, Offers: offers.New(w.catalog, &w.relays, logger),
		Log: w, Results: w, NeedsLogin: func(string) bool { return false },
		Found: func(string, tool.ID) *activity.Search { return nil }, Logger: logger,
	})
	return w
}

// list makes the definitions the tools of server s.
func (w *world) list(definitions ...string) {
	var tools []tool.Definition
	for _, raw := range definitions {
		d, err := tool.ParseDefinition("s", json.RawMessage(raw))
		if err != nil {
			w.t.Fatal(err)
		}
		tools = append(tools, d)
	}
	w.catalog.ToolsListed("s", tools)
	w.reload(func(*config.Config) {})
}

// reload makes another configuration the one that is live.
func (w *world) reload(change func(*config.Config)) {
	next := *w.cfg
	next.Servers = slices.Clone(next.Servers)
	change(&next)
	commit, err := w.catalog.Prepare(&next)
	if err != nil {
		w.t.Fatal(err)
	}
	w.cfg = &next
	commit()
}

func (w *world) note(event string, keep func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, event)
	if keep != nil {
		keep()
	}
}

func (w *world) Begin(r *activity.Record) error {
	if w.beginErr != nil {
		return w.beginErr
	}
	w.begin()
	r.ID = "record"
	w.note("begin", func() { w.begun = append(w.begun, *r) })
	return nil
}

func (w *world) End(_ string, o activity.Outcome) error {
	w.note("end", func() { w.ended = append(w.ended, o) })
	return nil
}

func (w *world) Refuse(r *activity.Record) error {
	r.ID, r.Type, r.Status = "refusal", activity.PolicyDecision, activity.Blocked
	w.note("refuse", func() { w.refusals = append(w.refusals, *r) })
	return nil
}

func (w *world) PutResult(_ context.Context, r store.StoredResult) error {
	w.results[r.Handle] = r
	return nil
}

func (w *world) surface(server string) session.Surface { return worldSurface{w, server} }

type worldSurface struct {
	w      *world
	server string
}

func (f worldSurface) Do(ctx context.Context, r *session.Request) (session.Reply, error) {
	if r.Method != mcp.CallTool {
		return f.w.relays.Relay(ctx, f.server, r)
	}
	name, _ := rawjson.String(rawjson.Find(r.Params, "name"))
	arguments := json.RawMessage(rawjson.Find(r.Params, "arguments"))
	if r.Call != nil {
		name, arguments = r.Call.Tool, r.Call.Arguments
	}
	if !r.Judged.Allows(name) {
		f.w.t.Errorf("a call of %q without the proof that it was decided about", name)
	}
	f.w.note("call "+string(arguments), nil)
	return f.w.answer(ctx, r)
}

func (f worldSurface) Open(context.Context, *session.Request) (session.Session, session.Reply, error) {
	return &worldSession{worldSurface: f}, session.Reply{Result: json.RawMessage(`{}`)}, nil
}

// worldSession notes what it is told.
type worldSession struct {
	worldSurface
	say func(session.Event) // of who listens
}

func (s *worldSession) Notify(_ context.Context, method string, _ json.RawMessage) error {
	s.w.note("notify "+method, nil)
	return nil
}

func (s *worldSession) Respond(_ context.Context, id json.RawMessage, _ session.Reply) error {
	s.w.note("respond "+string(id), nil)
	return nil
}

func (s *worldSession) Listen(ctx context.Context, say func(session.Event), opened func()) error {
	s.say = say
	opened()
	<-ctx.Done()
	return nil
}

func (*worldSession) Close()                {}
func (*worldSession) Done() <-chan struct{} { return nil }

var anAgent = auth.Caller{Actor: auth.Actor{Kind: auth.Agent}, Source: activity.SourceMCP, SessionID: "session"}

func (w *world) call(v policy.Variant, name, args string) (CallResult, *problem.Problem) {
	w.t.Helper()
	r, err := w.door.Call(context.Background(), CallRequest{Variant: v, Name: name, Args: json.RawMessage(args), Caller: anAgent})
	if err == nil {
		return r, nil
	}
	var p *problem.Problem
	if !errors.As(err, &p) {
		w.t.Fatalf("the error %v is no problem", err)
	}
	return r, p
}

// relay is a request of a client that stands for itself.
func (w *world) relay(ctx context.Context, r *session.Request) (session.Reply, error) {
	return w.door.Wrap("s", w.surface("s")).Do(ctx, r)
}

func passed(method, params string) *session.Request {
	caller := anAgent
	return &session.Request{ID: json.RawMessage("1"), Method: method, Params: json.RawMessage(params), Caller: &caller}
}

const (
	readsTool    = `{"name":"reads","description":"Read a thing.","inputSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]},"annotations":{"readOnlyHint":true}}`
	destroysTool = `{"name":"destroys","description":"Destroy a thing.","annotations":{"destructiveHint":true}}`
	brokenTool   = `{"name":"broken","inputSchema":{"type":"object","properties":{"n":{"type":"no such type"}}}}`
)

const (
	reads   = `{"name":"reads","inputSchema":{"type":"object","required":["a"]},"annotations":{"readOnlyHint":true}}`
	deletes = `{"name":"deletes","annotations":{"destructiveHint":true}}`
	denied  = `{"name":"denied"}`
)

// relays passes on what is no call; its list is what the server lists now.
type relays struct {
	w       *world
	list    string
	refresh func()
	learns  bool
	asked   []string
	sent    []string
	hangs   string // server that does not answer when it is asked what it offers
	offered map[string][]json.RawMessage
	replies func(context.Context, *session.Request) (session.Reply, error) // nil: it answers at once
}

func (r *relays) Relay(ctx context.Context, server string, q *session.Request) (session.Reply, error) {
	r.sent = append(r.sent, server+" "+string(q.Params))
	r.asked = append(r.asked, q.Method)
	if r.replies != nil {
		return r.replies(ctx, q)
	}
	return session.Reply{Result: json.RawMessage(`{"x":1,"tools":[` + r.list + `],"nextCursor":"c"}`)}, nil
}

func (r *relays) Learn(_ string, definitions []json.RawMessage) bool {
	if !r.learns {
		return false
	}
	var all []string
	for _, d := range append([]json.RawMessage{json.RawMessage(reads)}, definitions...) {
		all = append(all, string(d))
	}
	r.w.list(all...)
	return true
}

func (r *relays) Refresh(context.Context, string, time.Time) {
	if r.refresh != nil {
		r.refresh()
	}
}

func (r *relays) Offered(ctx context.Context, server, method, _ string) ([]json.RawMessage, error) {
	if r.hangs == server {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return r.offered[server+" "+method], nil
}

func relayWorld(t *testing.T, change func(*config.Config)) (*world, *relays) {
	w := newWorld(t, func(c *config.Config) {
		c.Servers[0].DisabledTools = []string{"denied"}
		c.Intent.RequireIntent = true
		if change != nil {
			change(c)
		}
	}, reads, deletes, denied)
	return w, &w.relays
}
