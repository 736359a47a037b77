package gate

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/store/activity"
)

// TestRefusalNamesItsCheck checks that the record contains the check that refused, and the facts about the tool that
// were known by then.
func TestRefusalNamesItsCheck(t *testing.T) {
	cases := []struct {
		check    policy.Check
		what     string
		call     LaneCall
		change   func(*config.Config)
		known    bool // the tool exists
		status   string
		declared string
		full     bool
	}{
		{check: policy.CheckName, what: "no variant", call: LaneCall{Name: "s:reads"}, known: true},
		{check: policy.CheckName, what: "no colon", call: LaneCall{CallTool: policy.CallToolRead, Name: "reads"}},
		{check: policy.CheckIntent, what: "another operation", call: LaneCall{CallTool: policy.CallToolRead, Name: "s:reads", Declared: declared("intent", `"write"`)},
			known: true, declared: `{"intent":"write"}`},
		{check: policy.CheckIntent, what: "no operation", call: LaneCall{CallTool: policy.CallToolRead, Name: "s:none", Declared: declared("intent", `{"operation_type": 7, "reason":"x"}`)},
			declared: `{"intent":{"operation_type": 7, "reason":"x"}}`},
		{check: policy.CheckArguments, what: "arguments", call: LaneCall{CallTool: policy.CallToolRead, Name: "s:reads", Args: json.RawMessage(`7`)}, known: true},
		{check: policy.CheckExists, what: "no server", call: LaneCall{CallTool: policy.CallToolRead, Name: "x:reads"}},
		{check: policy.CheckExists, what: "no tool", call: LaneCall{CallTool: policy.CallToolRead, Name: "s:none"}},
		{check: policy.CheckCallable, what: "denied", call: LaneCall{CallTool: policy.CallToolRead, Name: "s:reads"}, known: true, status: "disabled_by_config",
			change: func(c *config.Config) { c.Servers[0].DisabledTools = []string{"reads"} }},
		{check: policy.CheckCallable, what: "a server that is off", call: LaneCall{CallTool: policy.CallToolRead, Name: "s:none"}, status: "server_disabled",
			change: func(c *config.Config) { c.Servers[0].Enabled = false }},
		{check: policy.CheckHints, what: "hints", call: LaneCall{CallTool: policy.CallToolRead, Name: "s:destroys"}, known: true},
		{check: policy.CheckSchema, what: "schema", call: LaneCall{CallTool: policy.CallToolRead, Name: "s:reads", Args: json.RawMessage(`{"n":"x"}`)}, known: true},
		{check: policy.CheckSchema, what: "misplaced", call: LaneCall{CallTool: policy.CallToolRead, Name: "s:reads", Unknown: []UnknownArgument{{"n", json.RawMessage("1")}}}, known: true},
		{check: policy.CheckQueue, what: "no place", call: LaneCall{CallTool: policy.CallToolRead, Name: "s:reads", Args: json.RawMessage(`{"n":1}`)}, known: true, full: true},
	}
	for _, c := range cases {
		t.Run(c.what, func(t *testing.T) {
			w := newWorld(t, func(cfg *config.Config) { cfg.MaxConcurrent, cfg.QueueSize = 1, 0 }, readsTool, destroysTool)
			if c.change != nil {
				w.Reload(c.change)
			}
			c.call.Caller = anAgent
			if c.full {
				w.gate.concurrency.Store(newConcurrencyLimiter(w.Config(), nil))
				leave, _, err := w.gate.concurrency.Load().acquireSlots(t.Context(), "s")
				if err != nil {
					t.Fatal(err)
				}
				defer leave()
			}
			if _, err := w.gate.Call(t.Context(), c.call); err == nil || len(w.Appended) != 1 {
				t.Fatalf("%v, %d records", err, len(w.Appended))
			}
			r := w.Appended[0]
			d := r.Metadata.Decision
			if d == nil || d.Outcome != activity.Refused || d.Check != c.check.String() || d.Status != c.status {
				t.Fatalf("%+v", d)
			}
			if known := len(d.Fingerprint) == 64 && d.Hints != nil && d.CallWith != "" && d.ApprovedBy == "trust:auto" && d.ApprovedAt != nil; known != c.known {
				t.Errorf("facts about the tool: %+v", d.DecisionFacts)
			}
			if got := string(r.Metadata.Intent.Declared); got != c.declared {
				t.Errorf("declared %s, want %s", got, c.declared)
			}
			if r.OwnUS < 1 {
				t.Errorf("MCPProxy's own time: %d", r.OwnUS)
			}
		})
	}
}

func declared(name, value string) (d policy.DeclaredIntent) {
	d.AddParameter(name, []byte(value))
	return d
}

// TestEndpointRefusalNamesItsCheck checks that the record of a request that an endpoint refuses also contains the
// check.
func TestEndpointRefusalNamesItsCheck(t *testing.T) {
	w := newWorld(t, nil, readsTool)
	if err := w.gate.RefuseUnnamedCall(t.Context(), "s", passed("tools/call", `{}`)); err == nil {
		t.Fatal("a call without a name was accepted")
	}
	if d := w.Appended[0].Metadata.Decision; d == nil || d.Outcome != activity.Refused || d.Check != "name" {
		t.Errorf("%+v", d)
	}
}

// TestHintsOfRecords checks that the record of a call contains each effective hint with its source.
func TestHintsOfRecords(t *testing.T) {
	w := newWorld(t, func(c *config.Config) {
		c.Intent.InferHints = policy.InferEnforce
		c.Servers[0].HintOverrides = []config.HintOverride{{Pattern: "corrected", Hints: tool.Hints{Destructive: tool.False, OpenWorld: tool.True}}}
	},
		`{"name":"says","annotations":{"readOnlyHint":true,"openWorldHint":false}}`,
		`{"name":"corrected","annotations":{"destructiveHint":true,"readOnlyHint":false}}`,
		`{"name":"delete_user"}`,
	)
	for name, want := range map[string]string{
		"says":        `{"read_only":{"value":true,"from":"server"},"open_world":{"value":false,"from":"server"}} call_tool_read`,
		"corrected":   `{"read_only":{"value":false,"from":"server"},"destructive":{"value":false,"from":"override"},"idempotent":{"value":false,"from":"default"},"open_world":{"value":true,"from":"override"}} call_tool_write`,
		"delete_user": `{"read_only":{"value":false,"from":"inferred"},"destructive":{"value":true,"from":"inferred"},"idempotent":{"value":false,"from":"default"},"open_world":{"value":true,"from":"default"}} call_tool_destructive`,
	} {
		if _, p := w.call(policy.CallToolDestructive, "s:"+name, `{}`); p != nil {
			t.Fatal(p)
		}
		d := w.Begun[len(w.Begun)-1].Metadata.Decision
		hints, err := json.Marshal(d.Hints)
		if got := string(hints) + " " + d.CallWith; got != want || err != nil || d.Outcome != activity.Allowed || d.Check != "" {
			t.Errorf("%s: %s\nwant %s, %v, %+v", name, got, want, err, d)
		}
	}
	w.Reload(func(c *config.Config) { c.Intent.InferHints = policy.InferAdvise })
	if _, p := w.call(policy.CallToolRead, "s:delete_user", `{}`); p != nil {
		t.Fatal(p)
	}
	d := w.Begun[len(w.Begun)-1].Metadata.Decision
	if d.Outcome != activity.Warned || d.Hints.Destructive.From != tool.FromDefault || !d.Hints.Destructive.Value || d.CallWith != "call_tool_write" {
		t.Errorf("an inferred hint that does not apply: %+v", d)
	}
}

// TestRefusalAfterTheWaitIsRecorded checks that a call that was allowed, and then locked while it waited for a slot,
// is recorded with the second decision.
func TestRefusalAfterTheWaitIsRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *config.Config) { c.Servers[0].MaxConcurrent, c.QueueSize, c.QueueTimeout = 1, 1, time.Minute }, readsTool)
		release := make(chan struct{})
		w.AnswerCall = func(context.Context, *session.Request) (session.Reply, error) {
			<-release
			return session.Reply{Result: json.RawMessage(`{}`)}, nil
		}
		ended := make(chan struct{}, 2)
		for range 2 {
			go func() {
				w.call(policy.CallToolRead, "s:reads", `{"n":1}`)
				ended <- struct{}{}
			}()
			synctest.Wait()
		}
		w.Reload(func(c *config.Config) { c.Servers[0].Enabled = false })
		time.Sleep(time.Second)
		close(release)
		<-ended
		<-ended
		if i := slices.IndexFunc(w.Ended, func(o activity.Outcome) bool { return o.Check == "callable" && o.ErrorCode == "TOOL_LOCKED" }); i < 0 {
			t.Errorf("%+v", w.Ended)
		}
		for _, o := range w.Ended {
			if o.Duration != time.Second || o.Own != 1 {
				t.Errorf("own time %v of %v: waiting for a slot and for the server must not count", o.Own, o.Duration)
			}
		}
	})
}

// TestOwnTime checks that the time before the request to the server and after its response is MCPProxy's own time.
func TestOwnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, readsTool)
		w.OnBegin = func() { time.Sleep(3 * time.Millisecond) }
		w.AnswerCall = func(context.Context, *session.Request) (session.Reply, error) {
			time.Sleep(time.Minute)
			return session.Reply{Result: json.RawMessage(`{"content":[]}`)}, nil
		}
		if _, p := w.call(policy.CallToolRead, "s:reads", `{"n":1}`); p != nil {
			t.Fatal(p)
		}
		if o := w.Ended[0]; o.Duration != time.Minute+3*time.Millisecond || o.Own != 3*time.Millisecond {
			t.Errorf("own time %v of %v", o.Own, o.Duration)
		}
	})
}

// TestFactsForReevaluation checks that the record contains the facts that a later evaluation needs, in addition to
// those that decided. These are the call tool or endpoint, whether hints were declared, the outcome for the
// arguments, every reason of a lock, the server's hints below an override, and the inferred hints.
func TestFactsForReevaluation(t *testing.T) {
	const silent = `{"name":"delete_user"}`
	w := newWorld(t, func(c *config.Config) {
		c.Servers[0].HintOverrides = []config.HintOverride{{Pattern: "destroys", Hints: tool.Hints{Destructive: tool.False, ReadOnly: tool.False}}, {Pattern: "delete_user", Hints: tool.Hints{ReadOnly: tool.True}}}
	}, readsTool, destroysTool, brokenTool, silent)
	facts := func(r LaneCall) *activity.Decision {
		t.Helper()
		r.Caller = anAgent
		begun, appended := len(w.Begun), len(w.Appended)
		_, _ = w.gate.Call(t.Context(), r)
		if len(w.Appended) > appended {
			return w.Appended[appended].Metadata.Decision
		}
		return w.Begun[begun].Metadata.Decision
	}
	call := func(name, args string, said ...string) LaneCall {
		r := LaneCall{CallTool: policy.CallToolDestructive, Name: name, Args: json.RawMessage(args)}
		for _, d := range said {
			r.Declared.AddParameter("intent", []byte(d))
		}
		return r
	}
	d := facts(call("s:reads", `{"n":1}`))
	if d.Called != activity.CalledInLane || d.Declared || d.Arguments != activity.ArgumentsFit || d.Overridden != nil || d.Inferred != "" {
		t.Errorf("a plain call: %+v", d)
	}
	if d = facts(call("s:reads", `{"n":"x"}`, `"destructive"`)); !d.Declared || d.Arguments != activity.ArgumentsUnfit || d.Check != "schema" {
		t.Errorf("arguments that do not fit: %+v", d)
	}
	if d = facts(call("s:reads", `{}`, `{"reason":"x"}`)); d.Declared {
		t.Errorf("an intent reason without an operation: %+v", d)
	}
	if d = facts(call("s:broken", `{}`)); d.Arguments != "" {
		t.Errorf("arguments that were not checked: %+v", d)
	}
	d = facts(call("s:destroys", `{}`))
	if hints := d.DecisionFacts.DeclaredHints(); hints != (tool.Hints{Destructive: tool.True}) || d.Hints.Destructive.From != tool.FromOverride {
		t.Errorf("hints below an override: %+v, %+v", hints, d)
	}
	if d = facts(call("s:delete_user", `{}`)); d.Inferred != "destructive" || d.DecisionFacts.DeclaredHints() != (tool.Hints{}) || d.CallWith != "call_tool_read" {
		t.Errorf("a tool without declared hints: %+v", d)
	}
	if err := w.Book.SwitchTool(t.Context(), tool.ID{Server: "s", Tool: "reads"}, false, "admin"); err != nil {
		t.Fatal(err)
	}
	w.Reload(func(c *config.Config) { c.Servers[0].Enabled, c.Servers[0].DisabledTools = false, []string{"reads"} })
	if d = facts(call("s:reads", `{"n":1}`)); d.Status != "server_disabled" || !slices.Equal(d.Further, []string{"disabled_by_config", "disabled_by_user"}) {
		t.Errorf("every lock reason: %+v", d)
	}
	if d = facts(call("s:reads", `7`)); d.Check != "arguments" || d.Status != "server_disabled" || len(d.Further) != 2 {
		t.Errorf("a call that was refused before its status was checked: %+v", d)
	}
	_, _ = w.relay(t.Context(), passed("tools/call", `{"name":"delete_user","arguments":{}}`))
	if d = w.Appended[len(w.Appended)-1].Metadata.Decision; d.Called != activity.CalledByName || d.Status != "server_disabled" {
		t.Errorf("a call by the tool's own name: %+v", d)
	}
}
