package ops_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpproxy/internal/catalog/tool"
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
	"mcpproxy/internal/testutil/volume"
)

const trialBase = `{
  "profiles": {"research": {"servers": ["s"], "lanes": ["read"]}},
  "mcpServers": {"s": {"command": "x", "trust": "auto", "disabled_tools": ["denied"], "hint_overrides": {"corrected": {"destructiveHint": false}}}}
}`

var definitions = []string{
	`{"name":"reads","description":"Read a thing.","inputSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]},"annotations":{"readOnlyHint":true}}`,
	`{"name":"destroys","annotations":{"destructiveHint":true}}`,
	`{"name":"corrected","annotations":{"destructiveHint":true,"readOnlyHint":false}}`,
	`{"name":"delete_user","description":"Delete a user."}`,
	`{"name":"denied","annotations":{"readOnlyHint":true}}`,
	`{"name":"off","annotations":{"readOnlyHint":true}}`,
}

// trialWorld is a test environment with a gate, a real activity log with a real database, and trials of the log.
type trialWorld struct {
	*catalogtest.Harness
	t      testing.TB
	live   *config.LiveConfig
	log    *activity.Log
	db     *store.SQLite
	gate   *gate.Gate
	tokens *auth.AgentTokens
	trials *ops.TrialOperations
}

func newTrialWorld(t testing.TB, text string, tools ...string) *trialWorld {
	t.Helper()
	dir := t.TempDir()
	w := &trialWorld{t: t, db: store.OpenSQLite(filepath.Join(dir, "mcpproxy.db"), nil)}
	path := filepath.Join(dir, "mcp_config.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if w.live, err = config.OpenLiveConfig(path, config.Options{DataDir: dir}); err != nil {
		t.Fatal(err)
	}
	if w.log, err = activity.Open(activity.Options{Dir: filepath.Join(dir, "spool")}, w.db); err != nil {
		t.Fatal(err)
	}
	w.Harness = catalogtest.New(t, func(c *config.Config) { *c = *w.live.Current() }, tools...)
	deps := gatetest.NewDeps(w.Harness)
	deps.Log = w.log
	w.gate = gate.New(deps)
	w.tokens = auth.NewAgentTokens(w.db, dir, func(auth.Actor) {}, nil)
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { w.tokens.Run(ctx) })
	t.Cleanup(func() {
		stop()
		running.Wait()
		if err := errors.Join(w.log.Close(context.Background()), w.db.Close()); err != nil {
			t.Error(err)
		}
	})
	w.trials = &ops.TrialOperations{
		Each: w.log.EachRecord, Live: w.Config, Catalog: w.Catalog, Tokens: w.tokens.ListAll, Now: time.Now,
		Parse: func(text string) (*config.Config, error) {
			next, a := w.live.CheckText([]byte(text))
			return next, a.Err
		},
	}
	return w
}

// caller returns an agent with the given profile and token, both optional.
func (w *trialWorld) caller(profile, token string) auth.Caller {
	w.t.Helper()
	profiles := func(name string) *auth.ScopeRule { return w.Config().ProfileRule(name) }
	c := catalogtest.AgentCaller
	var held *auth.LoadedToken
	if token != "" {
		r := httptest.NewRequest("POST", "/", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		var err error
		if c.Actor, held, err = auth.NewAuthenticator("", w.tokens).IdentifyRequest(r); err != nil || held == nil {
			w.t.Fatal(c.Actor, err)
		}
	}
	c.Bounds = auth.NewCallerBounds(held, profile, profiles)
	return c
}

func (w *trialWorld) call(c auth.Caller, v policy.CallToolVariant, name, args string, declared ...string) {
	r := gate.LaneCall{CallTool: v, Name: name, Args: json.RawMessage(args), Caller: c}
	for _, d := range declared {
		r.Declared.AddParameter("intent_operation_type", []byte(d))
	}
	_, _ = w.gate.Call(context.Background(), r) // the outcome is recorded
}

func (w *trialWorld) callByName(c auth.Caller, own string) {
	r := catalogtest.NewRequest("tools/call", fmt.Sprintf(`{"name":%q,"arguments":{}}`, own))
	r.Caller = &c
	_, _ = w.gate.GatedEndpoint("s").Do(context.Background(), r)
}

// try simulates a configuration text and returns the result.
func (w *trialWorld) try(text string) ops.Trial {
	w.t.Helper()
	out, err := w.trials.SimulateConfig(context.Background(), catalogtest.AdminCaller, ops.TrialRequest{Text: text})
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

// groups formats the changed outcomes of a result.
func groups(out ops.Trial) (said []string) {
	for _, g := range out.Groups {
		said = append(said, strings.Join(strings.Fields(fmt.Sprintf("%d× %s %s %s: %s→%s %s %s %s", g.Calls, g.Tool, g.Called, strings.TrimPrefix(g.Variant, "call_tool_"), g.Was, g.Would, g.Check, g.Code, g.Status)), " "))
	}
	slices.Sort(said)
	return said
}

// calls makes one call of each kind.
func (w *trialWorld) calls() {
	w.t.Helper()
	agent := w.caller("", "")
	text, _, err := w.tokens.Create(context.Background(), auth.Token{Name: "ci", Lanes: []string{"read", "write"}}, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.Book.SwitchTool(context.Background(), tool.ID{Server: "s", Tool: "off"}, false, "admin"); err != nil {
		w.t.Fatal(err)
	}
	w.call(agent, policy.CallToolRead, "s:reads", `{"n":1}`)
	w.call(agent, policy.CallToolRead, "s:reads", `{"n":1}`, `"read"`)
	w.call(agent, policy.CallToolDestructive, "s:destroys", `{}`)
	w.call(agent, policy.CallToolWrite, "s:corrected", `{}`)
	w.call(agent, policy.CallToolRead, "s:delete_user", `{}`)
	w.call(w.caller("", text), policy.CallToolWrite, "s:corrected", `{}`)
	w.callByName(agent, "destroys")
	w.callByName(agent, "corrected")
	w.callByName(agent, "delete_user")

	w.call(agent, policy.CallToolRead, "s:destroys", `{}`)
	w.call(agent, policy.CallToolRead, "s:reads", `{"n":"x"}`)
	w.call(agent, policy.CallToolRead, "s:reads", `{"n":1}`, `"write"`)
	w.call(agent, policy.CallToolRead, "s:reads", `7`)
	w.call(agent, policy.CallToolRead, "s:none", `{}`)
	w.call(agent, policy.CallToolRead, "x:reads", `{}`)
	w.call(agent, policy.CallToolRead, "noname", `{}`)
	w.call(agent, policy.CallToolRead, "s:denied", `{}`)
	w.call(agent, policy.CallToolRead, "s:off", `{}`)
	w.call(w.caller("research", ""), policy.CallToolWrite, "s:corrected", `{}`)
	w.call(w.caller("", text), policy.CallToolDestructive, "s:destroys", `{}`)
	w.callByName(agent, "denied")
}

// TestTrialOfEachChange checks that each change of the configuration changes the outcomes of exactly the calls that it
// affects. The tests are repeated without the tool definitions.
func TestTrialOfEachChange(t *testing.T) {
	replace := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(trialBase) }
	set := func(key string) string { return strings.Replace(trialBase, "{", "{"+key+", ", 1) }
	cases := []struct {
		what, text string
		want       []string
		gone       []string // the expected groups without definitions, if different
	}{
		{what: "the same", text: trialBase},
		{what: "the same, written otherwise", text: "// a comment\n" + set(`"tools_limit": 20`)},
		{what: "one tool denied", text: replace(`["denied"]`, `["denied", "dest*"]`), want: []string{
			"1× s:destroys lane destructive: allowed→refused callable TOOL_LOCKED disabled_by_config",
			"1× s:destroys name destructive: allowed→refused callable TOOL_LOCKED disabled_by_config",
		}},
		{what: "nothing denied", text: replace(`"disabled_tools": ["denied"], `, ""), want: []string{
			"1× s:denied name read: refused→allowed callable TOOL_LOCKED disabled_by_config",
			"1× s:denied lane read: refused→allowed callable TOOL_LOCKED disabled_by_config",
		}, gone: []string{
			"1× s:denied name read: refused→allowed callable TOOL_LOCKED disabled_by_config",
			"1× s:denied lane read: refused→unknown", // the schema would decide, but is no longer known
		}},
		{what: "only some enabled", text: replace(`"disabled_tools": ["denied"]`, `"enabled_tools": ["reads", "off"]`), want: []string{
			"1× s:delete_user lane read: allowed→refused callable TOOL_LOCKED disabled_by_config",
			"1× s:delete_user name write: allowed→refused callable TOOL_LOCKED disabled_by_config",
			"1× s:destroys lane destructive: allowed→refused callable TOOL_LOCKED disabled_by_config",
			"1× s:destroys name destructive: allowed→refused callable TOOL_LOCKED disabled_by_config",
			"1× s:corrected name write: allowed→refused callable TOOL_LOCKED disabled_by_config",
			"2× s:corrected lane write: allowed→refused callable TOOL_LOCKED disabled_by_config",
		}},
		{what: "intent required", text: set(`"intent_declaration": {"require_intent": true}`), want: []string{
			"1× s:delete_user lane read: allowed→refused intent MISSING_INTENT",
			"1× s:destroys lane destructive: allowed→refused intent MISSING_INTENT",
			"1× s:reads lane read: allowed→refused intent MISSING_INTENT",
			"2× s:corrected lane write: allowed→refused intent MISSING_INTENT",
			"1× s:corrected name write: allowed→refused intent MISSING_INTENT", // a call by name cannot declare an intent
			"1× s:delete_user name write: allowed→refused intent MISSING_INTENT",
			"1× s:destroys name destructive: allowed→refused intent MISSING_INTENT",
		}},
		{what: "no override", text: replace(`, "hint_overrides": {"corrected": {"destructiveHint": false}}`, ""), want: []string{
			"1× s:corrected lane write: allowed→refused hints SERVER_MISMATCH",
			"1× s:corrected lane write: allowed→refused scope OUT_OF_SCOPE", // the token does not include the required lane
		}},
		{what: "an override more", text: replace(`{"corrected"`, `{"rea*": {"destructiveHint": true}, "corrected"`), want: []string{
			"2× s:reads lane read: allowed→refused hints SERVER_MISMATCH",
		}},
		{what: "an override that loosens", text: replace(`{"corrected"`, `{"destroys": {"destructiveHint": false, "readOnlyHint": true}, "corrected"`), want: []string{
			"1× s:destroys lane read: refused→allowed hints SERVER_MISMATCH", // the override allows the chosen lane
		}, gone: []string{"1× s:destroys lane read: refused→unknown"}},
		{what: "not strict", text: set(`"intent_declaration": {"strict_server_validation": false}`), want: []string{
			"1× s:destroys lane read: refused→allowed hints SERVER_MISMATCH",
		}, gone: []string{"1× s:destroys lane read: refused→unknown"}},
		{what: "inferred hints enforced", text: set(`"intent_declaration": {"infer_hints": "enforce"}`), want: []string{
			"1× s:delete_user lane read: allowed→refused hints SERVER_MISMATCH",
		}},
		{what: "arguments not held to schemas", text: set(`"validate_arguments": "off"`), want: []string{
			"1× s:reads lane read: refused→allowed schema ARGS_MISMATCH",
		}},
		{what: "a profile with more lanes", text: replace(`"lanes": ["read"]`, `"lanes": ["read", "write"]`), want: []string{
			"1× s:corrected lane write: refused→allowed scope OUT_OF_SCOPE",
		}, gone: []string{"1× s:corrected lane write: refused→unknown"}},
		{what: "the server off", text: replace(`"command"`, `"enabled": false, "command"`), want: allOf("callable TOOL_LOCKED server_disabled")},
		{what: "the server quarantined", text: replace(`"command"`, `"quarantined": true, "command"`), want: append(allOf("callable TOOL_LOCKED server_quarantined")[1:],
			"1× s:corrected lane write: allowed→refused scope OUT_OF_SCOPE", "1× s:corrected lane write: allowed→refused callable TOOL_LOCKED server_quarantined")},
		{what: "no server", text: `{"mcpServers": {}}`, want: allOf("tool_exists SERVER_NOT_FOUND")},
		{what: "another server", text: replace(`"s": {`, `"x": {"command": "y"}, "s": {`), want: []string{"1× x:reads lane read: refused→unknown"}},
	}
	w := newTrialWorld(t, trialBase, definitions...)
	w.calls()
	for _, known := range []string{"known", "gone"} {
		for _, c := range cases {
			t.Run(c.what+", definitions "+known, func(t *testing.T) {
				out := w.try(c.text)
				want := slices.Clone(c.want)
				if known == "gone" && c.gone != nil {
					want = slices.Clone(c.gone)
				}
				slices.Sort(want)
				if got := groups(out); !slices.Equal(got, want) {
					t.Errorf("%d calls\n got %s\nwant %s", out.Calls, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
				}
				if out.Calls != 21 || out.Same+out.Refused+out.Allowed+out.Unknown != out.Calls || out.Others != 0 {
					t.Errorf("%+v", out)
				}
				for _, g := range out.Groups {
					if len(g.Examples) == 0 || g.Why == "" || g.Last.IsZero() {
						t.Errorf("no example or reason: %+v", g)
					}
				}
			})
		}
		w.SetTools() // the server no longer lists any tools
	}
}

// allOf returns the groups of all allowed calls, changed to refused for the given reason.
func allOf(why string) (all []string) {
	for _, call := range []string{"2× s:corrected lane write", "2× s:reads lane read", "1× s:destroys lane destructive", "1× s:destroys name destructive",
		"1× s:corrected name write", "1× s:delete_user lane read", "1× s:delete_user name write"} {
		all = append(all, call+": allowed→refused "+why)
	}
	return all
}

// TestMaskedArguments checks calls whose arguments were not validated. If the log contains them only masked, the
// outcome is unknown, never allowed. Complete arguments are evaluated.
func TestMaskedArguments(t *testing.T) {
	lax := strings.Replace(trialBase, "{", `{"validate_arguments": "off", `, 1)
	w := newTrialWorld(t, lax, `{"name":"reads","inputSchema":{"type":"object","properties":{"password":{"type":"string","maxLength":20},"n":{"type":"integer"}}},"annotations":{"readOnlyHint":true}}`)
	agent := w.caller("", "")
	for _, args := range []string{`{"password":"hunter2-Zq81xK3"}`, `{"n":"no number"}`, `{"n":7}`, `{"n":7,"x":"` + strings.Repeat("x", 100_000) + `"}`} {
		w.call(agent, policy.CallToolRead, "s:reads", args)
	}
	if out := w.try(lax); out.Same != 4 {
		t.Errorf("unchanged: %+v", out)
	}
	want := []string{"1× s:reads lane read: allowed→refused schema ARGS_MISMATCH", "2× s:reads lane read: allowed→unknown"}
	if got := groups(w.try(trialBase)); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	page, err := w.log.List(t.Context(), activity.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range page.Records {
		if string(r.Arguments) == `{"n":7}` {
			if _, err := w.log.EraseFields(t.Context(), activity.Record{Actor: "admin"}, r.ID, []activity.ErasableField{activity.FieldArguments}); err != nil {
				t.Fatal(err)
			}
		}
	}
	want[1] = strings.Replace(want[1], "2", "3", 1)
	if got := groups(w.try(trialBase)); !slices.Equal(got, want) {
		t.Errorf("with erased arguments: got %q, want %q", got, want)
	}
	w.SetTools()
	if got := groups(w.try(trialBase)); !slices.Equal(got, []string{"4× s:reads lane read: allowed→unknown"}) {
		t.Errorf("without the definition: %q", got)
	}
}

// TestLanesByArguments checks that the effect of arguments is evaluated again with another mode and another rule. For
// masked arguments, the recorded facts apply, or the outcome is unknown.
func TestLanesByArguments(t *testing.T) {
	with := func(mode, lanes string) string {
		return `{"intent_declaration": {"judge_arguments": "` + mode + `"}, "mcpServers": {"s": {"command": "x", "trust": "auto"` + lanes + `}}}`
	}
	const declared, other = `, "lanes": {"query": {"by": "sql", "argument": "$.sql"}}`, `, "lanes": {"query": {"by": "sql", "argument": "$.other"}}`
	w := newTrialWorld(t, with("advise", ""), `{"name":"query","inputSchema":{"type":"object","properties":{"sql":{"type":"string"}, "password": {"type":"string"}}},"annotations":{"destructiveHint":true}}`,
		`{"name":"look","inputSchema":{"type":"object","properties":{"sql":{"type":"string"}}}}`)
	agent := w.caller("", "")
	w.call(agent, policy.CallToolDestructive, "s:query", `{"sql":"SELECT 1"}`)
	w.call(agent, policy.CallToolDestructive, "s:query", `{"sql":"SELECT 2", "password": "hunter2-Zq81xK3"}`)
	w.call(agent, policy.CallToolRead, "s:query", `{"sql":"SELECT 1"}`) // one record for three refusals
	w.call(agent, policy.CallToolRead, "s:query", `{"sql":"DROP TABLE x"}`)
	w.call(agent, policy.CallToolRead, "s:query", `{"sql":"DROP TABLE y"}`)
	person := agent
	person.Actor = auth.Actor{Kind: auth.Admin}
	w.call(person, policy.CallToolRead, "s:query", `{"sql":"SELECT 1"}`)
	w.call(agent, policy.CallToolRead, "s:look", `{"sql":"SELECT 1"}`)
	w.call(agent, policy.CallToolRead, "s:look", `{"sql":"DROP TABLE x"}`)
	for _, c := range []struct {
		text string
		want []string
	}{
		{with("advise", ""), nil},
		{with("enforce", ""), []string{"1× s:look lane read: allowed→refused lane ARGUMENT_MISMATCH"}},
		{with("enforce", declared), []string{"1× s:look lane read: allowed→refused lane ARGUMENT_MISMATCH", "1× s:query lane read: refused→allowed hints SERVER_MISMATCH", "3× s:query lane read: refused→unknown"}},
		{with("advise", declared), []string{"1× s:query lane read: refused→allowed hints SERVER_MISMATCH", "3× s:query lane read: refused→unknown"}},
		{with("off", declared), nil},
	} {
		if got := groups(w.try(c.text)); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n got %q\nwant %q", c.text, got, c.want)
		}
	}
	// If another argument decides, the outcome of the call with masked arguments is unknown.
	if got := groups(w.try(with("enforce", other))); !slices.Contains(got, "1× s:query lane destructive: allowed→unknown") {
		t.Errorf("another rule: %q", got)
	}
}

// TestTrialWithDeletedTokens checks that the outcome is unknown if it depends on the scope of a deleted token.
func TestTrialWithDeletedTokens(t *testing.T) {
	w := newTrialWorld(t, trialBase, definitions...)
	w.calls()
	if _, err := w.tokens.Revoke(context.Background(), "ci"); err != nil {
		t.Fatal(err)
	}
	want := []string{"1× s:destroys lane destructive: refused→unknown"}
	if got := groups(w.try(trialBase)); !slices.Equal(got, want) {
		t.Errorf("unchanged: got %q, want %q", got, want)
	}
	tighter := strings.Replace(trialBase, `, "hint_overrides": {"corrected": {"destructiveHint": false}}`, "", 1)
	want = []string{"1× s:corrected lane write: allowed→refused hints SERVER_MISMATCH", "1× s:destroys lane destructive: refused→unknown"}
	if got := groups(w.try(tighter)); !slices.Contains(got, want[1]) {
		t.Errorf("without the override: got %q", got)
	}
}

// TestTrialOfOldRecords checks that the outcome is unknown if the record does not contain all facts.
func TestTrialOfOldRecords(t *testing.T) {
	w := newTrialWorld(t, trialBase, definitions...)
	for _, d := range []*activity.Decision{nil, {Outcome: activity.Allowed, ConfigRevision: "0123456789ab"}} {
		r := activity.Record{Type: activity.ToolCall, Status: activity.Success, ServerName: "s", ToolName: "reads",
			Metadata: activity.Metadata{ToolVariant: "call_tool_read", Decision: d}}
		if err := w.log.Append(&r); err != nil {
			t.Fatal(err)
		}
	}
	if out := w.try(trialBase); out.Unknown != 2 || out.Others != 2 || len(out.Groups) != 1 {
		t.Errorf("%+v", out)
	}
}

// TestTrialOfInvalidConfigurations checks that an invalid configuration is rejected with the positions of its mistakes.
func TestTrialOfInvalidConfigurations(t *testing.T) {
	w := newTrialWorld(t, trialBase, definitions...)
	for _, c := range []struct {
		in   ops.TrialRequest
		code problem.Code
		says string
	}{
		{ops.TrialRequest{Text: "{\n  \"tols_limit\": 3}"}, problem.InvalidConfig, ":2:3: "},
		{ops.TrialRequest{Text: "{"}, problem.InvalidConfig, ":1:"},
		{ops.TrialRequest{Text: "{}", Period: "soon"}, problem.InvalidParameter, "'soon'"},
		{ops.TrialRequest{Text: "{}", Period: "0s"}, problem.InvalidParameter, "'0s'"},
	} {
		_, err := w.trials.SimulateConfig(context.Background(), catalogtest.AdminCaller, c.in)
		if p := problem.From(err); err == nil || p.Code != c.code || !strings.Contains(p.Message, c.says) {
			t.Errorf("%+v: %v", c.in, err)
		}
	}
}

// fill makes the given number of calls of every kind through the gate, from 16 callers. When it returns, all calls are
// in the database.
func (w *trialWorld) fill(all int) {
	w.t.Helper()
	w.AnswerCall = func(context.Context, *session.Request) (session.Reply, error) {
		return session.Reply{Result: json.RawMessage(`{"content":[{"type":"text","text":"done"}]}`)}, nil
	}
	w.calls()
	const callers, made = 16, 21 // calls makes 21
	agent, research := w.caller("", ""), w.caller("research", "")
	var making sync.WaitGroup
	for i := range callers {
		making.Go(func() {
			for n := i; n < all-made; n += callers {
				switch n % 5 {
				case 0:
					w.call(agent, policy.CallToolRead, "s:reads", fmt.Sprintf(`{"n":%d}`, n))
				case 1:
					w.call(agent, policy.CallToolDestructive, "s:destroys", `{"a":"b"}`)
				case 2:
					w.call(research, policy.CallToolRead, "s:reads", fmt.Sprintf(`{"n":%d}`, n), `"read"`)
				case 3:
					w.callByName(agent, "corrected")
				default:
					w.call(agent, policy.CallToolRead, "s:delete_user", `{}`)
				}
			}
		})
	}
	making.Wait()
	if _, err := w.log.List(context.Background(), activity.Filter{Limit: 1}); err != nil {
		w.t.Fatal(err)
	}
}

// TestTrialOfManyCalls checks that calls recorded in a real log have the same outcome under the same configuration, and
// that a change is detected.
func TestTrialOfManyCalls(t *testing.T) {
	volume.SkipUnderRace(t)
	w := newTrialWorld(t, trialBase, definitions...)
	const all = 5_000
	w.fill(all)
	if out := w.try(trialBase); out.Calls != all || out.Same != all {
		t.Errorf("%+v", out)
	}
	out := w.try(strings.Replace(trialBase, `"lanes": ["read"]`, `"lanes": ["write"]`, 1))
	want := []string{"1× s:corrected lane write: refused→allowed scope OUT_OF_SCOPE", "996× s:reads lane read: allowed→refused scope OUT_OF_SCOPE"}
	if got := groups(out); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// BenchmarkHundredThousand measures the evaluation of 100,000 recorded calls.
func BenchmarkHundredThousand(b *testing.B) {
	w := newTrialWorld(b, trialBase, definitions...)
	const all = 100_000
	w.fill(all)
	for b.Loop() {
		if out := w.try(trialBase); out.Calls != all || out.Same != all {
			b.Fatalf("%+v", out)
		}
	}
}
