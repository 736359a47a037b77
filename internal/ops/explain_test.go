package ops_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/clients"
	"mcpproxy/internal/clients/permission"
	"mcpproxy/internal/config"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store"
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/testutil/catalogtest"
	"mcpproxy/internal/testutil/gatetest"
)

const explainBase = `{
  "intent_declaration": {"require_intent": true},
  "profiles": {"research": {"servers": ["s"], "lanes": ["read"]}, "cursor": {"servers": ["other"]}, "notes": {"tools": {"s": ["reads"]}}},
  "mcpServers": {"s": {"command": "x", "trust": "auto", "disabled_tools": ["denied"]}, "new": {"command": "y"}}
}`

// explainWorld is a test environment with a gate, a catalog, tokens in a real store and an account with MCP clients.
type explainWorld struct {
	*catalogtest.Harness
	t         *testing.T
	tokens    *auth.AgentTokens
	home      string
	prospects *ops.Explainer
}

func newExplainWorld(t *testing.T) *explainWorld {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "mcp_config.json")
	if err := os.WriteFile(path, []byte(explainBase), 0o600); err != nil {
		t.Fatal(err)
	}
	live, err := config.OpenLiveConfig(path, config.Options{DataDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	w := &explainWorld{t: t, home: t.TempDir()}
	w.Harness = catalogtest.New(t, func(c *config.Config) { *c = *live.Current() },
		`{"name":"reads","inputSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]},"annotations":{"readOnlyHint":true}}`,
		`{"name":"writes","annotations":{"readOnlyHint":false,"destructiveHint":false}}`,
		`{"name":"destroys","annotations":{"destructiveHint":true}}`, `{"name":"plain"}`, `{"name":"denied"}`)
	db := store.OpenSQLite(filepath.Join(dir, "mcpproxy.db"), nil)
	w.tokens = auth.NewAgentTokens(db, dir, func(auth.Actor) {}, nil)
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { w.tokens.Run(ctx) })
	t.Cleanup(func() {
		stop()
		running.Wait()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	var own []permission.ProxyTool
	for name, hints := range map[string]tool.Hints{"call_tool_read": {ReadOnly: tool.True}, "call_tool_write": {}, "call_tool_destructive": {Destructive: tool.True}} {
		own = append(own, permission.ProxyTool{Name: name, Hints: hints})
	}
	w.prospects = &ops.Explainer{Gateway: ops.NewGateway(ops.GatewayDeps{Gate: gate.New(gatetest.NewDeps(w.Harness)), Book: w.Book}), Tokens: w.tokens, Account: &permission.AccountClients{
		Env:   clients.Env{GOOS: "linux", Root: filepath.Join(dir, "root"), Home: w.home, Getenv: func(string) string { return "" }},
		Tools: func() []permission.ProxyTool { return own },
	}}
	w.AnswerCall = func(context.Context, *session.Request) (session.Reply, error) {
		t.Error("a server was called")
		return session.Reply{}, errors.New("asked")
	}
	return w
}

// file writes a file in the account's home directory.
func (w *explainWorld) file(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.home, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *explainWorld) token(t auth.Token) string {
	w.t.Helper()
	text, _, err := w.tokens.Create(context.Background(), t, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return text
}

func (w *explainWorld) can(who, name, args string) ops.Prospect {
	w.t.Helper()
	in := ops.ExplainRequest{Who: who, Name: name}
	if args != "" {
		in.Args = json.RawMessage(args)
	}
	out, err := w.prospects.Explain(context.Background(), catalogtest.AdminCaller, in)
	if err != nil {
		w.t.Fatalf("%s %s: %v", who, name, err)
	}
	return out
}

// lanes formats the predicted outcome of the call by lane.
func lanes(out ops.Prospect) string {
	var all []string
	for _, l := range out.Lanes {
		one := strings.TrimPrefix(l.Tool, "call_tool_") + " " + string(l.Outcome)
		if l.Check != "" {
			one += " " + l.Check
		}
		all = append(all, one)
	}
	return strings.Join(all, ", ")
}

// TestLanes checks the predicted outcome and its reason in each lane.
func TestLanes(t *testing.T) {
	w := newExplainWorld(t)
	w.token(auth.Token{Name: "ci", Profile: "notes", Lanes: []string{"read", "write"}})
	w.token(auth.Token{Name: "old", Expires: time.Now().Add(-time.Hour)})
	w.file(".claude.json", `{"mcpServers": {"mcpproxy": {"type": "http", "url": "http://127.0.0.1:8080/mcp"}}}`)
	const inScope = "read refused scope, write refused scope, destructive refused scope"
	for _, c := range []struct{ who, name, args, want, why string }{
		{"claude-code", "s:reads", "", "read allowed, write warned, destructive allowed", "The tool is said to be read-only by its server."},
		{"claude-code", "s:reads", `{"n":1}`, "read allowed, write warned, destructive allowed", ""},
		{"claude-code", "s:reads", `{"n":"x"}`, "read refused schema, write refused schema, destructive refused schema", "The arguments do not match the input schema"},
		{"claude-code", "s:reads", `[]`, "read refused arguments, write refused arguments, destructive refused arguments", "an array, not an object"},
		{"claude-code", "s:writes", "", "read refused hints, write allowed, destructive allowed", "The tool is said not to be destructive by its server."},
		{"claude-code", "s:destroys", "", "read refused hints, write refused hints, destructive allowed", "call_tool_destructive is allowed with all hints."},
		{"claude-code", "s:plain", "", "read allowed, write allowed, destructive allowed", "No hint of the tool contradicts the lane"},
		{"claude-code", "s:denied", "", "read refused callable, write refused callable, destructive refused callable", "disabled_by_config"},
		{"claude-code", "new:anything", "", "read refused tool_exists, write refused tool_exists, destructive refused tool_exists", "connecting"},
		{"research", "s:reads", "", "read allowed, write refused scope, destructive refused scope", "The profile 'research' has the lanes read, and the lane of the call is write."},
		{"research", "s:destroys", "", inScope, "The profile 'research' has the lanes read, and the tool counts as destructive."},
		{"notes", "s:writes", "", inScope, "The profile 'notes' does not have the tool."},
		{"cursor", "s:reads", "", inScope, "The profile 'cursor' does not have the server 's'."},
		{"client:cursor", "s:reads", "", "read allowed, write warned, destructive allowed", ""},
		{"agent:ci", "s:reads", "", "read allowed, write warned, destructive refused scope", "The token 'ci' has the lanes read, write, and the lane of the call is destructive."},
		{"ci", "s:plain", "", inScope, "The profile 'notes' does not have the tool."},
		{"agent:old", "s:reads", "", inScope, "The token 'old' has expired."},
	} {
		out := w.can(c.who, c.name, c.args)
		if got := lanes(out); got != c.want || out.Can == strings.HasPrefix(c.want, "read refused") && !strings.Contains(c.want, "allowed") {
			t.Errorf("%s %s %s: %s, want %s (%v)", c.who, c.name, c.args, got, c.want, out.Can)
		}
		if !slices.ContainsFunc(out.Lanes, func(l ops.ProspectLane) bool { return strings.Contains(l.Why, c.why) }) {
			t.Errorf("%s %s: no lane contains %q: %+v", c.who, c.name, c.why, out.Lanes)
		}
		for _, l := range out.Lanes {
			if l.Why == "" || l.Code == "" != (l.Check == "") {
				t.Errorf("%s %s: %+v", c.who, c.name, l)
			}
		}
	}
	if len(w.Events) > 0 || len(w.Begun)+len(w.Appended) > 0 {
		t.Errorf("a call was made or recorded: %v", w.Events)
	}
	all, err := w.tokens.ListAll(context.Background())
	if err != nil || slices.ContainsFunc(all, func(t auth.Token) bool { return !t.Used.IsZero() }) {
		t.Errorf("a token was used: %v, %v", all, err)
	}
}

// TestExplainAgreesWithTheGate checks that the prediction equals the outcome of a real call.
func TestExplainAgreesWithTheGate(t *testing.T) {
	w := newExplainWorld(t)
	w.AnswerCall = func(context.Context, *session.Request) (session.Reply, error) {
		return session.Reply{Result: json.RawMessage(`{"content":[]}`)}, nil
	}
	for _, profile := range []string{"", "research", "notes", "cursor", "none"} {
		for _, name := range []string{"s:reads", "s:writes", "s:destroys", "s:plain", "s:denied", "s:none", "x:y"} {
			for v := policy.CallToolRead; v <= policy.CallToolDestructive; v++ {
				for _, args := range []string{`{"n":1}`, `{"n":"x"}`} {
					c := gate.LaneCall{CallTool: v, Name: name, Args: json.RawMessage(args), Caller: catalogtest.AgentCaller}
					c.Declared.AddParameter("intent", []byte(`"`+v.Operation().String()+`"`))
					c.Caller.Bounds = auth.NewCallerBounds(nil, profile, w.Config().ProfileRule)
					would := w.prospects.Gateway.DryRun(c)
					begun, appended := len(w.Begun), len(w.Appended)
					_, err := w.prospects.Gateway.Call(context.Background(), c)
					var got string
					if len(w.Appended) > appended {
						got = facts(w.Appended[appended].Metadata.Decision)
					} else {
						got = facts(w.Begun[begun].Metadata.Decision)
					}
					if want := facts(would.Facts); got != want || (err == nil) != (would.Problem == nil) {
						t.Errorf("%s %s %v: recorded %s, predicted %s", profile, name, v, got, want)
					}
				}
			}
		}
	}
}

func facts(d any) string {
	text, _ := json.Marshal(d)
	return string(text)
}

// TestExplainClients checks that a client is evaluated with the connection in its files.
func TestExplainClients(t *testing.T) {
	w := newExplainWorld(t)
	text := w.token(auth.Token{Name: "ci", Lanes: []string{"read"}})
	entry := func(url, more string) string {
		return `{"mcpServers": {"mcpproxy": {"type": "http", "url": "http://127.0.0.1:8080` + url + `"` + more + `}}}`
	}
	const reads, asks = "runs", "asks"
	w.file(".claude/settings.json", `{"permissions": {"allow": ["mcp__mcpproxy__call_tool_read", "mcp__mcpproxy-read__*"]}}`)
	lane := func(name, lane string) string {
		return `"mcpproxy-` + name + `": {"type": "http", "url": "http://127.0.0.1:8080/mcp/all/` + lane + `"}`
	}
	for _, c := range []struct {
		what, file      string
		as              ops.ProspectWho
		lanes           string
		read            permission.Verdict
		notes, never    string
		requireMCPToken bool
	}{
		{what: "not connected", file: `{}`, as: ops.ProspectWho{}, lanes: "read allowed, write warned, destructive allowed", read: reads, notes: "The client is not connected"},
		{what: "plain", file: entry("/mcp", ""), as: ops.ProspectWho{Connected: true, Address: "/mcp"}, lanes: "read allowed, write warned, destructive allowed", read: reads},
		{what: "a profile", file: entry("/mcp/p/research", ""), as: ops.ProspectWho{Connected: true, Address: "/mcp/p/research", Profiles: "research"},
			lanes: "read allowed, write refused scope, destructive refused scope", read: reads},
		{what: "a profile by a command", file: `{"mcpServers": {"mcpproxy": {"command": "mcpproxy", "args": ["stdio", "--profile", "research"]}}}`,
			as: ops.ProspectWho{Connected: true, Address: "/mcp/p/research", Profiles: "research"}, lanes: "read allowed, write refused scope, destructive refused scope", read: reads},
		{what: "a token", file: entry("/mcp", `, "headers": {"Authorization": "Bearer `+text+`"}`), as: ops.ProspectWho{Connected: true, Address: "/mcp", Token: "ci"},
			lanes: "read allowed, write refused scope, destructive refused scope", read: reads, never: text},
		{what: "a token by a command", file: `{"mcpServers": {"mcpproxy": {"command": "mcpproxy", "args": ["stdio"], "env": {"MCPPROXY_TOKEN": "` + text + `"}}}}`,
			as: ops.ProspectWho{Connected: true, Address: "/mcp", Token: "ci"}, lanes: "read allowed, write refused scope, destructive refused scope", read: reads, never: text},
		{what: "a token of another", file: entry("/mcp", `, "headers": {"Authorization": "Bearer mcpp_t_`+strings.Repeat("0", 64)+`"}`), as: ops.ProspectWho{Connected: true, Address: "/mcp"},
			lanes: "read allowed, write warned, destructive allowed", read: reads, notes: "is not valid for this MCPProxy", never: strings.Repeat("0", 64)},
		{what: "all servers", file: entry("/mcp/all", ""), as: ops.ProspectWho{Connected: true, Address: "/mcp/all"}, lanes: "read allowed, write warned, destructive allowed", read: permission.Asks},
		{what: "one server", file: entry("/mcp/servers/s", ""), as: ops.ProspectWho{Connected: true, Address: "/mcp/servers/s"}, lanes: "read allowed, write warned, destructive allowed", read: permission.Unknown},
		{what: "lanes", file: `{"mcpServers": {` + lane("destr", "destructive") + `, ` + lane("read", "read") + `, ` + lane("write", "write") + `}}`,
			as: ops.ProspectWho{Connected: true, Address: "/mcp/all/read, /mcp/all/write, /mcp/all/destructive"}, lanes: "read allowed, write warned, destructive allowed", read: reads},
		{what: "no token where one is wanted", file: entry("/mcp", ""), as: ops.ProspectWho{Connected: true, Address: "/mcp"}, lanes: "read allowed, write warned, destructive allowed",
			read: reads, notes: "MCPProxy requires a token from every client", requireMCPToken: true},
	} {
		t.Run(c.what, func(t *testing.T) {
			w.file(".claude.json", c.file)
			w.Reload(func(cfg *config.Config) { cfg.RequireMCPAuth = c.requireMCPToken })
			out := w.can("Claude Code", "s:reads", "")
			c.as.Kind, c.as.Name = "client", "claude-code"
			if out.As != c.as || lanes(out) != c.lanes {
				t.Errorf("%+v, %s", out.As, lanes(out))
			}
			if read, write := out.Lanes[0].Client, out.Lanes[1].Client; read == nil || read.Verdict != c.read || read.Rule.Text == "" || c.read == reads && write.Verdict != asks {
				t.Errorf("the client: %+v %+v", read, write)
			}
			if !strings.Contains(strings.Join(out.Notes, "\n"), c.notes) {
				t.Errorf("notes: %q", out.Notes)
			}
			if text, _ := json.Marshal(out); c.never != "" && strings.Contains(string(text), c.never) {
				t.Errorf("the token is shown: %s", text)
			}
		})
	}
}

// TestMistakes checks that an error about an unknown name suggests similar names.
func TestMistakes(t *testing.T) {
	w := newExplainWorld(t)
	w.token(auth.Token{Name: "nightly"})
	for _, c := range []struct {
		who, name string
		code      problem.Code
		hint      string
	}{
		{"claud-code", "s:reads", problem.NotFound, "Did you mean 'claude-code'?"},
		{"reserch", "s:reads", problem.NotFound, "Did you mean 'research'?"},
		{"agent:nightli", "s:reads", problem.NotFound, "Did you mean 'agent:nightly'?"},
		{"profile:claude-code", "s:reads", problem.NotFound, "mcpproxy profile list"},
		{"", "s:reads", problem.NotFound, "mcpproxy profile list"},
		{"research", "s:read", problem.ToolNotFound, "Did you mean 's:reads'?"},
		{"research", "neew:reads", problem.ServerNotFound, "Did you mean 'new'?"},
		{"research", "reads", problem.InvalidName, "server:tool"},
	} {
		_, err := w.prospects.Explain(context.Background(), catalogtest.AdminCaller, ops.ExplainRequest{Who: c.who, Name: c.name})
		if p := problem.From(err); err == nil || p.Code != c.code || !strings.Contains(p.Hint, c.hint) {
			t.Errorf("%s %s: %v (%v)", c.who, c.name, err, problem.From(err).Hint)
		}
	}
}

// TestExplainHeldCalls checks that a call that needs approval is reported as possible, and that the explanation names
// the rule.
func TestExplainHeldCalls(t *testing.T) {
	w := newExplainWorld(t)
	w.Reload(func(c *config.Config) {
		c.Ask = policy.AskRules{Destructive: policy.AskOn, Tools: map[string]string{"s:reads": "ask"}}
	})
	for name, want := range map[string][3]string{ // outcomes by lane
		"s:reads":    {`ask.tools "s:reads"`, `ask.tools "s:reads"`, `ask.tools "s:reads"`},
		"s:writes":   {"", "", "ask.destructive"},
		"s:destroys": {"", "", "ask.destructive"},
	} {
		got, err := w.prospects.Explain(t.Context(), catalogtest.AdminCaller, ops.ExplainRequest{Who: "claude-code", Name: name})
		if err != nil || !got.Can {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		for i, lane := range got.Lanes {
			if asked := lane.Outcome == activity.Asked; asked != (want[i] != "") || asked && (lane.Check != "ask" || lane.Code != "" || lane.Why != "It would be held for approval, by "+want[i]+".") {
				t.Errorf("%s, %s: %+v", name, lane.Tool, lane)
			}
		}
	}
}
