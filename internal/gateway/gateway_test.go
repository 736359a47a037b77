package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpproxy/internal/activity"
	"mcpproxy/internal/approval"
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
	"mcpproxy/internal/upstream"
)

// world is a gateway with everything around it in memory. Its events tell in
// which order the log and the upstream were asked.
type world struct {
	t       testing.TB
	cfg     *config.Config
	catalog *catalog.Catalog
	gateway *Gateway
	// approvals are what is decided, as the store would keep it.
	approvals approvaltest.Memory

	mu       sync.Mutex // guards what follows
	events   []string
	begun    []activity.Record
	appended []activity.Record
	logged   []activity.Record // what the log is asked for
	ended    []activity.Outcome
	results  map[string]store.StoredResult

	beginErr, editErr error
	refuses           error // to restart for an agent
	answer            func(ctx context.Context, r *session.Request) (session.Reply, error)
	relays            interface {
		offers.Source
		Relay(ctx context.Context, server string, r *session.Request) (session.Reply, error)
		Open() (session.Session, session.Reply, error)
	}
}

// servers are all servers, as the gateway shows them.
func (w *world) servers() []ServerView {
	all, _ := w.gateway.Servers(context.Background(), Caller{}, Nothing{})
	return all.Servers
}

func newWorld(t testing.TB, change func(*config.Config), definitions ...string) *world {
	t.Helper()
	w := &world{t: t, cfg: config.Default(), results: map[string]store.StoredResult{}}
	w.cfg.Servers = []config.Server{{Name: "s", Protocol: "stdio", Enabled: true, Trust: config.TrustAuto}}
	if change != nil {
		change(w.cfg)
	}
	w.answer = func(context.Context, *session.Request) (session.Reply, error) {
		return session.Reply{Result: json.RawMessage(`{"content":[{"type":"text","text":"done"}],"x":9007199254740993}`)}, nil
	}
	book := w.approvals.Book()
	w.catalog = catalog.New(catalog.Options{Servers: w.cfg.Servers, Infer: w.cfg.Intent.InferHints, Book: book, Logger: slog.New(slog.DiscardHandler)})
	w.list(definitions...)
	w.gateway = New(Deps{
		Config: func() *config.Config { return w.cfg }, Catalog: w.catalog, Book: book, Upstreams: w, Log: w,
		Results: w, Logger: slog.New(slog.DiscardHandler),
	})
	return w
}

// renew has the gateway made anew, on the catalog that there is now.
func (w *world) renew(book *approval.Book) {
	d := w.gateway.Deps
	d.Catalog, d.Book = w.catalog, book
	w.gateway = New(d)
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
	commit, err := w.catalog.Prepare(w.cfg)
	if err != nil {
		w.t.Fatal(err)
	}
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
	r.ID = "record"
	w.note("begin", func() { w.begun = append(w.begun, *r) })
	return nil
}

func (w *world) End(_ string, o activity.Outcome) error {
	w.note("end", func() { w.ended = append(w.ended, o) })
	return nil
}

func (w *world) Append(r *activity.Record) error {
	r.ID = "refusal"
	w.note("append", func() { w.appended = append(w.appended, *r) })
	return nil
}

func (w *world) Refuse(r *activity.Record) error {
	r.Type, r.Status = activity.PolicyDecision, activity.Blocked
	return w.Append(r)
}

func (w *world) List(context.Context, activity.Filter) (activity.Page, error) {
	return activity.Page{Records: w.logged}, nil
}
func (w *world) Get(context.Context, string) (activity.Record, error) { return activity.Record{}, nil }
func (w *world) Health() activity.Health                              { return activity.Health{} }

func (w *world) PutResult(_ context.Context, r store.StoredResult) error {
	w.results[r.Handle] = r
	return nil
}

func (w *world) GetResult(_ context.Context, handle string) (store.StoredResult, error) {
	r, ok := w.results[handle]
	if !ok {
		return r, problem.New(problem.NotFound, "no such handle", "")
	}
	return r, nil
}

// Surface is a server: what is no call relays answers, or what stands for them.
func (w *world) Surface(server string) session.Surface { return worldSurface{w, server} }

type worldSurface struct {
	w      *world
	server string
}

func (f worldSurface) Do(ctx context.Context, r *session.Request) (session.Reply, error) {
	if r.Method != mcp.CallTool {
		return f.w.relays.Relay(ctx, f.server, r)
	}
	f.w.note("call "+string(argumentsOf(r)), nil)
	return f.w.answer(ctx, r)
}

func (f worldSurface) Open(context.Context, *session.Request) (session.Session, session.Reply, error) {
	return f.w.relays.Open()
}

// argumentsOf are the arguments that a server gets with a call.
func argumentsOf(r *session.Request) json.RawMessage {
	if r.Call != nil {
		return r.Call.Arguments
	}
	return rawjson.Find(r.Params, "arguments")
}

func (w *world) Offered(ctx context.Context, server, method, list string) ([]json.RawMessage, error) {
	return w.relays.Offered(ctx, server, method, list)
}
func (w *world) Learn(server string, definitions []json.RawMessage) bool {
	return w.relays.Learn(server, definitions)
}
func (w *world) Refresh(ctx context.Context, server string, since time.Time) {
	w.relays.Refresh(ctx, server, since)
}
func (w *world) Restart(string) error { w.note("restart", nil); return nil }
func (w *world) RestartQuietly(_ context.Context, _ string, begin func() error) error {
	w.note("restart quietly", nil)
	if w.refuses != nil {
		return w.refuses
	}
	return begin()
}
func (w *world) LogTail(string, int) ([]string, error) { return nil, nil }
func (w *world) Progress(string) upstream.Progress     { return upstream.Progress{} }

var anAgent = Caller{Actor: auth.Actor{Kind: auth.Agent}, Source: activity.SourceMCP, SessionID: "session"}

func (w *world) call(v policy.Variant, name, args string) (CallResult, *problem.Problem) {
	w.t.Helper()
	r, err := w.gateway.Call(context.Background(), CallRequest{Variant: v, Name: name, Args: json.RawMessage(args), Caller: anAgent})
	if err == nil {
		return r, nil
	}
	var p *problem.Problem
	if !errors.As(err, &p) {
		w.t.Fatalf("the error %v is no problem", err)
	}
	return r, p
}

const (
	readsTool    = `{"name":"reads","description":"Read a thing.","inputSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]},"annotations":{"readOnlyHint":true}}`
	destroysTool = `{"name":"destroys","description":"Destroy a thing.","annotations":{"destructiveHint":true}}`
	brokenTool   = `{"name":"broken","inputSchema":{"type":"object","properties":{"n":{"type":"no such type"}}}}`
)

func TestLockedToolsAreRefusedAsDiscoverySaysThem(t *testing.T) {
	w := newWorld(t, func(c *config.Config) { c.Servers[0].DisabledTools = []string{"destroys"} }, readsTool, destroysTool)
	_, p := w.call(policy.CallToolDestructive, "s:destroys", `{}`)
	if p == nil || p.Code != problem.ToolLocked || p.Detail("status") != "disabled_by_config" {
		t.Fatalf("got %+v", p)
	}
	if strings.Contains(strings.ToLower(p.Hint), "override it in the ui") && !strings.Contains(p.Hint, "cannot") {
		t.Errorf("a config lock is called overridable: %s", p.Hint)
	}
	answer := w.retrieve(RetrieveRequest{Query: "destroy a thing", IncludeDisabled: true})
	if len(answer.Disabled) != 1 || answer.Disabled[0].Status != "disabled_by_config" || len(answer.Remediation) != 1 {
		t.Errorf("discovery says %+v", answer)
	}
}

type retrieved struct {
	Query string
	Total int
	Tools []struct {
		Name, Server, Description, Signature string
		InputSchema                          json.RawMessage
		Score                                float64
		Annotations                          json.RawMessage
		CallWith                             string `json:"call_with"`
	}
	Usage       string `json:"usage_instructions"`
	Notice      string
	Disabled    []struct{ Name, Server, Description, Status string }
	Remediation map[string]string
}

func (w *world) retrieve(req RetrieveRequest) (answer retrieved) {
	w.t.Helper()
	req.Caller = anAgent
	raw, err := w.gateway.Retrieve(context.Background(), req)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		w.t.Fatalf("%v in %s", err, raw)
	}
	return answer
}

func TestRetrieve(t *testing.T) {
	w := newWorld(t, nil, readsTool, destroysTool)
	a := w.retrieve(RetrieveRequest{Query: "read a thing"})
	if a.Total != 2 || a.Tools[0].Name != "s:reads" || a.Tools[0].CallWith != "call_tool_read" || string(a.Tools[0].Annotations) != `{"readOnlyHint":true}` {
		t.Errorf("got %+v", a)
	}
	if len(a.Usage) == 0 || len(a.Usage) > 300 {
		t.Errorf("the usage instructions have %d bytes", len(a.Usage))
	}
	if a := w.retrieve(RetrieveRequest{Query: "thing", Operation: "destructive"}); a.Total != 1 || a.Tools[0].Name != "s:destroys" {
		t.Errorf("by operation: %+v", a)
	}
	if a := w.retrieve(RetrieveRequest{Query: "read", Detail: "compact"}); a.Tools[0].Signature != "reads(n: integer)" || a.Tools[0].InputSchema != nil {
		t.Errorf("compact: %+v", a)
	}
	for _, bad := range []RetrieveRequest{{Query: "x", Operation: "delete"}, {Query: "x", Detail: "long"}} {
		if _, err := w.gateway.Retrieve(context.Background(), bad); problem.From(err).Code != problem.InvalidParameter {
			t.Errorf("%+v gave %v", bad, err)
		}
	}
}

func TestAnswersAreTheSameBytesWithoutTheLockedTools(t *testing.T) {
	query := RetrieveRequest{Query: "read or destroy a thing", Caller: anAgent}
	with := newWorld(t, func(c *config.Config) { c.Servers[0].DisabledTools = []string{"destroys"} }, readsTool, destroysTool)
	without := newWorld(t, nil, readsTool)
	a, errA := with.gateway.Retrieve(context.Background(), query)
	b, errB := without.gateway.Retrieve(context.Background(), query)
	if errA != nil || errB != nil || string(a) != string(b) {
		t.Errorf("%s\n%s %v %v", a, b, errA, errB)
	}
	if a := with.retrieve(RetrieveRequest{Query: "destroy"}); a.Total != 0 || !strings.Contains(a.Notice, "1") || !strings.Contains(a.Notice, "include_disabled: true") {
		t.Errorf("the notice: %+v", a)
	}
}

func TestLargeResultsAreCutAndReadOn(t *testing.T) {
	w := newWorld(t, func(c *config.Config) { c.ResultLimit = 2000 }, readsTool)
	whole := fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, strings.Repeat("0123456789", 1000))
	w.answer = func(context.Context, *session.Request) (session.Reply, error) {
		return session.Reply{Result: json.RawMessage(whole)}, nil
	}
	r, p := w.call(policy.CallToolRead, "s:reads", `{"n":1}`)
	if p != nil || r.Handle == "" || len(r.Result) > 2000 || !json.Valid(r.Result) {
		t.Fatalf("%d bytes, handle %q, %v", len(r.Result), r.Handle, p)
	}
	var read strings.Builder
	for offset := 0; ; {
		raw, err := w.gateway.ReadResult(context.Background(), ReadRequest{Handle: r.Handle, Offset: offset, Caller: anAgent})
		if err != nil {
			t.Fatal(err)
		}
		var part struct {
			Content    string
			NextOffset *int `json:"next_offset"`
		}
		if err := json.Unmarshal(raw, &part); err != nil {
			t.Fatalf("%v in %s", err, raw)
		}
		read.WriteString(part.Content)
		if part.NextOffset == nil {
			break
		}
		offset = *part.NextOffset
	}
	if read.String() != whole {
		t.Errorf("the parts are not the whole: %d bytes of %d", read.Len(), len(whole))
	}
	if err := w.edit(func(c *config.Config) error { c.Servers[0].Quarantined = true; return nil }); err != nil {
		t.Fatal(err)
	}
	if part, err := w.gateway.ReadResult(context.Background(), ReadRequest{Handle: r.Handle, Caller: anAgent}); problem.From(err) == nil || problem.From(err).Code != problem.ServerUnavailable {
		t.Errorf("of a quarantined server: %d bytes, %v", len(part), err)
	}
	other := Caller{Actor: auth.Actor{Kind: auth.Agent, Name: "other"}}
	for _, req := range []ReadRequest{{Handle: r.Handle, Caller: other}, {Handle: "nope", Caller: anAgent}} {
		if _, err := w.gateway.ReadResult(context.Background(), req); problem.From(err).Code != problem.NotFound {
			t.Errorf("a foreign or unknown handle gave %v", err)
		}
	}
}
