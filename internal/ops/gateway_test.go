package ops

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"mcpproxy/internal/config"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/testutil/catalogtest"
	"mcpproxy/internal/testutil/gatetest"
	"mcpproxy/internal/upstream"
)

// world is a test environment with a gateway, a gate and in-memory dependencies.
type world struct {
	*catalogtest.Harness
	gateway *Gateway
	gate    *gate.Gate
}

func newWorld(t testing.TB, change func(*config.Config), definitions ...string) *world {
	t.Helper()
	w := &world{Harness: catalogtest.New(t, change, definitions...)}
	w.Catalog.StateChanged(upstream.State{Name: "s", Phase: upstream.Ready})
	w.Catalog.Publish()
	w.gate = gate.New(gatetest.NewDeps(w.Harness))
	w.gateway = NewGateway(GatewayDeps{Book: w.Book, Upstreams: w, Log: catalogtest.QueryableLog{Harness: w.Harness}, Gate: w.gate})
	return w
}

var anAgent, aPerson = catalogtest.AgentCaller, catalogtest.AdminCaller

func (w *world) call(v policy.CallToolVariant, name, args string) (gate.CallResult, *problem.Problem) {
	w.T.Helper()
	r, err := w.gate.Call(context.Background(), gate.LaneCall{CallTool: v, Name: name, Args: json.RawMessage(args), Caller: anAgent})
	return r, problem.From(err)
}

func (*world) StartProgress(string) upstream.StartProgress { return upstream.StartProgress{} }

func (*world) Deviations(string) []string               { return nil }
func (*world) SessionNeeds(string) []upstream.KnownNeed { return nil }

func (w *world) retrieve(r RetrieveRequest) catalogtest.RetrieveResult {
	w.T.Helper()
	r.Caller = anAgent
	return w.ParseRetrieveResult(w.gateway.RetrieveTools(context.Background(), r))
}

const (
	readsTool    = `{"name":"reads","description":"Read a thing.","inputSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]},"annotations":{"readOnlyHint":true}}`
	destroysTool = `{"name":"destroys","description":"Destroy a thing.","annotations":{"destructiveHint":true}}`
)

func TestRefusalsAgreeWithDiscovery(t *testing.T) {
	w := newWorld(t, func(c *config.Config) { c.Servers[0].DisabledTools = []string{"destroys"} }, readsTool, destroysTool)
	_, p := w.call(policy.CallToolDestructive, "s:destroys", `{}`)
	if p == nil || p.Code != problem.ToolLocked || p.Detail("status") != "disabled_by_config" {
		t.Fatalf("got %+v", p)
	}
	if strings.Contains(strings.ToLower(p.Hint), "override it in the ui") && !strings.Contains(p.Hint, "cannot") {
		t.Errorf("the hint claims that a lock in the configuration can be overridden: %s", p.Hint)
	}
	answer := w.retrieve(RetrieveRequest{Query: "destroy a thing", IncludeDisabled: true})
	if len(answer.Disabled) != 1 || answer.Disabled[0].Name != "s:destroys" || answer.Disabled[0].Status != "disabled_by_config" || len(answer.Remediation) != 1 {
		t.Errorf("search reports %+v", answer)
	}
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
	if a := w.retrieve(RetrieveRequest{Query: "thing", Operation: policy.Destructive}); a.Total != 1 || a.Tools[0].Name != "s:destroys" {
		t.Errorf("by operation: %+v", a)
	}
	if a := w.retrieve(RetrieveRequest{Query: "read", Detail: config.Compact}); a.Tools[0].Signature != "reads(n: integer)" || a.Tools[0].InputSchema != nil {
		t.Errorf("compact: %+v", a)
	}
}

func TestAnswersAreTheSameBytesWithoutTheLockedTools(t *testing.T) {
	query := RetrieveRequest{Query: "read or destroy a thing", Caller: anAgent}
	with := newWorld(t, func(c *config.Config) { c.Servers[0].DisabledTools = []string{"destroys"} }, readsTool, destroysTool)
	without := newWorld(t, nil, readsTool)
	a, errA := with.gateway.RetrieveTools(context.Background(), query)
	b, errB := without.gateway.RetrieveTools(context.Background(), query)
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
	w.AnswerCall = func(context.Context, *session.Request) (session.Reply, error) {
		return session.Reply{Result: json.RawMessage(whole)}, nil
	}
	r, p := w.call(policy.CallToolRead, "s:reads", `{"n":1}`)
	if p != nil || r.Handle == "" || len(r.Result) > 2000 || !json.Valid(r.Result) {
		t.Fatalf("%d bytes, handle %q, %v", len(r.Result), r.Handle, p)
	}
	said := func(in json.RawMessage, kept int) {
		t.Helper()
		want := fmt.Sprintf(`continue with read_result {\"handle\": \"%s\", \"path\": \"content[0].text\", \"offset\": %d}"`, r.Handle, kept)
		if !strings.Contains(string(in), want) {
			t.Errorf("%s does not contain %s", in, want)
		}
	}
	kept := strings.Index(string(r.Result), `"}`) - len(`{"content":[{"type":"text","text":"`)
	said(r.Result, kept)
	part, err := w.gateway.ReadResult(context.Background(), ReadResultRequest{Handle: r.Handle, Path: "content[0].text", Offset: kept, Limit: 5, Caller: anAgent})
	if err != nil {
		t.Fatal(err)
	}
	said(part, kept+5)
	var read strings.Builder
	for offset := 0; ; {
		raw, err := w.gateway.ReadResult(context.Background(), ReadResultRequest{Handle: r.Handle, Offset: offset, Caller: anAgent})
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
		t.Errorf("the parts do not add up to the result: %d bytes of %d", read.Len(), len(whole))
	}
	if err := w.Edit(func(c *config.Config) error { c.Servers[0].Quarantined = true; return nil }); err != nil {
		t.Fatal(err)
	}
	if part, err := w.gateway.ReadResult(context.Background(), ReadResultRequest{Handle: r.Handle, Caller: anAgent}); problem.From(err) == nil || problem.From(err).Code != problem.ServerUnavailable {
		t.Errorf("of a quarantined server: %d bytes, %v", len(part), err)
	}
	other := Caller{Actor: auth.Actor{Kind: auth.Agent, Name: "other"}}
	for _, req := range []ReadResultRequest{{Handle: r.Handle, Caller: other}, {Handle: "nope", Caller: anAgent}} {
		if _, err := w.gateway.ReadResult(context.Background(), req); problem.From(err).Code != problem.NotFound {
			t.Errorf("a foreign or unknown handle gave %v", err)
		}
	}
}
