package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpproxy/internal/activity"
	"mcpproxy/internal/approval/approvaltest"
	"mcpproxy/internal/auth"
	"mcpproxy/internal/catalog"
	"mcpproxy/internal/config"
	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/policy"
	"mcpproxy/internal/problem"
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
	answer            func(ctx context.Context, c upstream.Call) (upstream.Reply, error)
}

func newWorld(t testing.TB, change func(*config.Config), definitions ...string) *world {
	t.Helper()
	w := &world{t: t, cfg: config.Default(), results: map[string]store.StoredResult{}}
	w.cfg.Servers = []config.Server{{Name: "s", Protocol: "stdio", Enabled: true, Trust: config.TrustAuto}}
	if change != nil {
		change(w.cfg)
	}
	w.answer = func(context.Context, upstream.Call) (upstream.Reply, error) {
		return upstream.Reply{Result: json.RawMessage(`{"content":[{"type":"text","text":"done"}],"x":9007199254740993}`)}, nil
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

func (w *world) Call(ctx context.Context, _ string, c upstream.Call) (upstream.Reply, error) {
	w.note("call "+string(c.Arguments), nil)
	return w.answer(ctx, c)
}
func (w *world) Restart(string) error                  { w.note("restart", nil); return nil }
func (w *world) LogTail(string, int) ([]string, error) { return nil, nil }

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

func TestTheRecordComesBeforeTheCall(t *testing.T) {
	w := newWorld(t, nil, readsTool)
	r, p := w.call(policy.CallToolRead, "s:reads", ` {"n": 9007199254740993} `)
	if p != nil {
		t.Fatal(p)
	}
	if string(r.Result) != `{"content":[{"type":"text","text":"done"}],"x":9007199254740993}` {
		t.Errorf("the result changed: %s", r.Result)
	}
	want := []string{"begin", `call  {"n": 9007199254740993} `, "end"}
	if !slices.Equal(w.events, want) {
		t.Errorf("events %q, want %q", w.events, want)
	}
	begun, ended := w.begun[0], w.ended[0]
	if begun.Metadata.Intent.OperationType != "read" || begun.Metadata.ToolVariant != "call_tool_read" || begun.Actor != "agent" {
		t.Errorf("the record: %+v", begun)
	}
	if ended.Status != activity.Success || ended.ResponseBytes != int64(len(r.Result)) {
		t.Errorf("the outcome: %+v", ended)
	}
}

func TestWithoutARecordThereIsNoCall(t *testing.T) {
	w := newWorld(t, nil, readsTool)
	w.beginErr = problem.New(problem.AuditUnavailable, "the disk is full", "")
	if _, p := w.call(policy.CallToolRead, "s:reads", `{"n":1}`); p == nil || p.Code != problem.AuditUnavailable {
		t.Errorf("got %v", p)
	}
	if len(w.events) != 0 {
		t.Errorf("something happened all the same: %q", w.events)
	}
}

func TestRefusalsReachNobodyAndAreRecorded(t *testing.T) {
	cases := []struct {
		name    string
		variant policy.Variant
		tool    string
		args    string
		code    problem.Code
	}{
		{"destructive tool in the read lane", policy.CallToolRead, "s:destroys", `{}`, problem.ServerMismatch},
		{"no variant", policy.NoVariant, "s:reads", `{"n":1}`, ""},
		{"no colon", policy.CallToolRead, "reads", `{}`, problem.InvalidName},
		{"no server", policy.CallToolRead, "x:reads", `{}`, problem.ServerNotFound},
		{"no tool", policy.CallToolRead, "s:read", `{}`, problem.ToolNotFound},
		{"not an object", policy.CallToolRead, "s:reads", `7`, problem.InvalidArgs},
		{"duplicate keys", policy.CallToolRead, "s:reads", `{"n":1,"n":2}`, problem.InvalidArgs},
		{"case variants", policy.CallToolRead, "s:reads", `{"n":1,"N":2}`, problem.InvalidArgs},
		{"against the schema", policy.CallToolRead, "s:reads", `{"n":"x"}`, problem.ArgsMismatch},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, nil, readsTool, destroysTool)
			_, p := w.call(c.variant, c.tool, c.args)
			if p == nil || c.code != "" && p.Code != c.code {
				t.Fatalf("got %+v, want %s", p, c.code)
			}
			if !slices.Equal(w.events, []string{"append"}) {
				t.Fatalf("events %q", w.events)
			}
			r := w.appended[0]
			if r.Type != activity.PolicyDecision || r.Status != activity.Blocked || r.Metadata.ErrorCode != string(p.Code) {
				t.Errorf("the record: %+v", r)
			}
		})
	}
}

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

func TestTheOutcomeIsRecordedWhateverHappens(t *testing.T) {
	cases := map[string]struct {
		answer  func(ctx context.Context, c upstream.Call) (upstream.Reply, error)
		code    problem.Code
		message string
	}{
		"upstream error": {func(context.Context, upstream.Call) (upstream.Reply, error) {
			return upstream.Reply{Error: &jsonrpc.Error{Code: -32602, Message: "bad city", Data: json.RawMessage(`{"x":1}`)}}, nil
		}, problem.UpstreamError, "bad city"},
		"unavailable": {func(context.Context, upstream.Call) (upstream.Reply, error) {
			return upstream.Reply{}, problem.New(problem.ServerUnavailable, "it is away", "")
		}, problem.ServerUnavailable, "it is away"},
		"deadline": {func(ctx context.Context, _ upstream.Call) (upstream.Reply, error) {
			return upstream.Reply{}, context.DeadlineExceeded
		}, problem.Timeout, "did not answer within"},
		"no object": {func(context.Context, upstream.Call) (upstream.Reply, error) {
			return upstream.Reply{Result: json.RawMessage(`[1]`)}, nil
		}, problem.UpstreamError, "not a result object"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil, readsTool)
			w.answer = c.answer
			_, p := w.call(policy.CallToolRead, "s:reads", `{"n":1}`)
			if p == nil || p.Code != c.code || !strings.Contains(p.Message, c.message) {
				t.Fatalf("got %+v", p)
			}
			if len(w.ended) != 1 || w.ended[0].Status != activity.Failed || w.ended[0].ErrorCode != string(c.code) {
				t.Errorf("the outcome: %+v", w.ended)
			}
		})
	}
}

func TestAPanicIsRecorded(t *testing.T) {
	w := newWorld(t, nil, readsTool)
	w.answer = func(context.Context, upstream.Call) (upstream.Reply, error) { panic("boom") }
	func() {
		defer func() { _ = recover() }()
		w.call(policy.CallToolRead, "s:reads", `{"n":1}`)
	}()
	if len(w.ended) != 1 || w.ended[0].Status != activity.Failed {
		t.Errorf("the outcome: %+v", w.ended)
	}
}

func TestCancellationAndTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, readsTool)
		w.answer = func(ctx context.Context, _ upstream.Call) (upstream.Reply, error) {
			<-ctx.Done()
			return upstream.Reply{}, ctx.Err()
		}
		started := time.Now()
		_, err := w.gateway.Call(context.Background(), CallRequest{Variant: policy.CallToolRead, Name: "s:reads", Args: json.RawMessage(`{"n":1}`), Caller: anAgent, Timeout: time.Second})
		if problem.From(err).Code != problem.Timeout || time.Since(started) != time.Second {
			t.Errorf("%v after %s", err, time.Since(started))
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, err = w.gateway.Call(ctx, CallRequest{Variant: policy.CallToolRead, Name: "s:reads", Args: json.RawMessage(`{"n":1}`), Caller: anAgent})
		if problem.From(err).Code != problem.Interrupted {
			t.Errorf("cancelled: %v", err)
		}
		if len(w.ended) != 2 {
			t.Errorf("%d outcomes", len(w.ended))
		}
	})
}

func TestValidateArgumentsModes(t *testing.T) {
	for _, c := range []struct {
		general, own config.Validation
		passes, warn bool
	}{
		{config.ValidateReject, "", false, false},
		{config.ValidateWarn, "", true, true},
		{config.ValidateOff, "", true, false},
		{config.ValidateReject, config.ValidateOff, true, false},
		{config.ValidateOff, config.ValidateReject, false, false},
	} {
		w := newWorld(t, func(cfg *config.Config) {
			cfg.ValidateArguments = c.general
			cfg.Servers[0].ValidateArguments = c.own
		}, readsTool)
		r, p := w.call(policy.CallToolRead, "s:reads", `{"n":"x"}`)
		if (p == nil) != c.passes || (len(r.Warnings) > 0) != c.warn {
			t.Errorf("%s/%s: %+v %v", c.general, c.own, r, p)
		}
	}
}

func TestABrokenSchemaWarnsAndPasses(t *testing.T) {
	w := newWorld(t, nil, brokenTool)
	r, p := w.call(policy.CallToolWrite, "s:broken", `{"n":1}`)
	if p != nil || len(r.Warnings) != 1 {
		t.Fatalf("%+v %v", r, p)
	}
	var got struct {
		Meta struct {
			Warnings []string `json:"mcpproxy/warnings"`
		} `json:"_meta"`
		X json.Number
	}
	if err := json.Unmarshal(r.Result, &got); err != nil || !slices.Equal(got.Meta.Warnings, r.Warnings) || got.X != "9007199254740993" {
		t.Errorf("the result: %s %v", r.Result, err)
	}
}

func TestLargeResultsAreCutAndReadOn(t *testing.T) {
	w := newWorld(t, func(c *config.Config) { c.ResultLimit = 2000 }, readsTool)
	whole := fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, strings.Repeat("0123456789", 1000))
	w.answer = func(context.Context, upstream.Call) (upstream.Reply, error) {
		return upstream.Reply{Result: json.RawMessage(whole)}, nil
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

func TestLimitsOfConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *config.Config) {
			c.Servers[0].MaxConcurrent, c.QueueSize, c.QueueTimeout = 1, 1, time.Second
		}, readsTool)
		release := make(chan struct{})
		w.answer = func(context.Context, upstream.Call) (upstream.Reply, error) {
			<-release
			return upstream.Reply{Result: json.RawMessage(`{}`)}, nil
		}
		codes := make(chan problem.Code, 3)
		for range 3 {
			go func() {
				_, err := w.gateway.Call(context.Background(), CallRequest{Variant: policy.CallToolRead, Name: "s:reads", Args: json.RawMessage(`{"n":1}`), Caller: anAgent})
				if err == nil {
					codes <- ""
					return
				}
				codes <- problem.From(err).Code
			}()
		}
		// One runs, one waits a second in vain, one finds the queue full.
		if a, b := <-codes, <-codes; a != problem.Overloaded || b != problem.Overloaded {
			t.Errorf("got %s, %s", a, b)
		}
		close(release)
		if c := <-codes; c != "" {
			t.Errorf("the running call ended with %s", c)
		}
	})
}

// While a server flips its hints, no call in the read lane reaches a tool that
// the snapshot it was decided on calls destructive.
func TestHintsAreReadAtCallTime(t *testing.T) {
	w := newWorld(t, nil, `{"name":"destroys","annotations":{"readOnlyHint":true}}`)
	if _, p := w.call(policy.CallToolRead, "s:destroys", `{}`); p != nil {
		t.Fatalf("read-only at first: %v", p)
	}
	w.list(destroysTool) // stricter: accepted by trust auto
	if _, p := w.call(policy.CallToolRead, "s:destroys", `{}`); p == nil || p.Code != problem.ServerMismatch {
		t.Fatalf("destructive now: %v", p)
	}
}

// What a caller makes too large to check is refused: else every caller could
// switch the check off.
func TestArgumentsThatCannotBeCheckedAreRefused(t *testing.T) {
	w := newWorld(t, nil, `{"name":"rows","inputSchema":{"type":"object","properties":{"rows":{"type":"array","items":{"anyOf":[{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]},{"type":"string"}]}}}}}`)
	_, p := w.call(policy.CallToolWrite, "s:rows", `{"rows":[`+strings.Repeat(`{"a":1},`, 100_000)+`{"a":1}]}`)
	if p == nil || p.Code != problem.ArgsMismatch {
		t.Fatalf("got %v", p)
	}
	if !slices.Equal(w.events, []string{"append"}) {
		t.Errorf("events %q", w.events)
	}
}

// A reload lifts no limit that it does not change.
func TestAReloadKeepsThePlaces(t *testing.T) {
	cfg := config.Default()
	cfg.MaxConcurrent = 8
	cfg.Servers = []config.Server{{Name: "a"}, {Name: "b", MaxConcurrent: 3}}
	before := newAdmission(cfg, nil)
	if before.servers["a"].n != 2 || before.servers["b"].n != 3 {
		t.Errorf("places %d and %d, want a quarter of all and its own", before.servers["a"].n, before.servers["b"].n)
	}
	changed := *cfg
	changed.Servers = []config.Server{{Name: "a"}, {Name: "b", MaxConcurrent: 4}}
	after := newAdmission(&changed, before)
	if after.all != before.all || after.servers["a"] != before.servers["a"] || after.servers["b"] == before.servers["b"] {
		t.Error("only the changed limit is made anew")
	}
}
