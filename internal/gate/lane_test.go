package gate

import (
	"encoding/json"
	"strings"
	"testing"

	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/store/activity"
)

const (
	queryTool  = `{"name":"query","description":"Run SQL","inputSchema":{"type":"object","properties":{"sql":{"type":"string"}},"required":["sql"]}}`
	wipesTool  = `{"name":"wipes","description":"Run SQL","inputSchema":{"type":"object","properties":{"sql":{"type":"string"}}},"annotations":{"readOnlyHint":false,"destructiveHint":true}}`
	viewsTool  = `{"name":"views","description":"Run SQL","inputSchema":{"type":"object","properties":{"sql":{"type":"string"}}},"annotations":{"readOnlyHint":true}}`
	selectArgs = `{"sql":"SELECT 1"}`
	dropArgs   = `{"sql":"DROP TABLE x"}`
)

func enforced(c *config.Config) {
	c.Intent.JudgeArguments = policy.ArgumentsEnforce
	c.Servers[0].Lanes = []config.ArgumentLaneRule{{Pattern: "wip*", By: policy.BySQL, Argument: "$.sql"}}
}

// TestLaneByArguments checks that the effect of the arguments decides after the schema and before the server is
// called, in each lane and by the tool's own name, and that it is recorded.
func TestLaneByArguments(t *testing.T) {
	w := newWorld(t, enforced, queryTool, wipesTool, viewsTool)
	for _, c := range []struct {
		variant    policy.CallToolVariant
		name, args string
		code       string
	}{
		{policy.CallToolRead, "s:query", selectArgs, ""}, {policy.CallToolRead, "s:query", dropArgs, "ARGUMENT_MISMATCH"}, {policy.CallToolWrite, "s:query", dropArgs, "ARGUMENT_MISMATCH"},
		{policy.CallToolDestructive, "s:query", dropArgs, ""}, {policy.CallToolRead, "s:query", `{"sql":7}`, "ARGS_MISMATCH"}, {policy.CallToolRead, "s:query", `{"sql":"INSERT INTO x VALUES (1)"}`, "ARGUMENT_MISMATCH"},
		{policy.CallToolWrite, "s:query", `{"sql":"INSERT INTO x VALUES (1)"}`, ""},
		// Declared lanes: the arguments replace the hint.
		{policy.CallToolRead, "s:wipes", selectArgs, ""}, {policy.CallToolRead, "s:wipes", dropArgs, "ARGUMENT_MISMATCH"}, {policy.CallToolRead, "s:wipes", `{}`, "SERVER_MISMATCH"}, {policy.CallToolDestructive, "s:wipes", dropArgs, ""},
		{policy.CallToolRead, "s:views", selectArgs, ""}, {policy.CallToolRead, "s:views", dropArgs, "ARGUMENT_MISMATCH"},
	} {
		begun, appended := len(w.Begun), len(w.Appended)
		_, p := w.call(c.variant, c.name, c.args)
		code := ""
		if p != nil {
			code = string(p.Code)
		}
		if code != c.code || (len(w.Begun) > begun) != (code == "") {
			t.Errorf("%s %s %s: %s, want %s; sent: %v", c.variant, c.name, c.args, code, c.code, len(w.Begun) > begun)
			continue
		}
		if c.code == "ARGUMENT_MISMATCH" {
			d := w.Appended[appended].Metadata.Decision
			if d.Check != "lane" || d.Lane == nil || d.Lane.By != "sql" || d.Lane.Argument != "$.sql" || d.Lane.Word == "" || d.Lane.Declared != strings.HasPrefix(c.name, "s:wipes") {
				t.Errorf("%s: record: %+v, %+v", c.name, d, d.Lane)
			}
		} else if c.code == "" {
			if d := w.Begun[begun].Metadata.Decision; d.Lane == nil || d.Lane.Operation == "" {
				t.Errorf("%s: record: %+v", c.name, d)
			}
		}
	}
	for name, refused := range map[string]bool{"views": true, "query": false, "wipes": false} { // without hints the worst lane is assumed
		appended := len(w.Appended)
		_, err := w.relay(t.Context(), passed("tools/call", `{"name":"`+name+`","arguments":`+dropArgs+`}`))
		if (err != nil) != refused || (len(w.Appended) > appended) != refused {
			t.Errorf("%s by its own name: %v", name, err)
		}
	}
	w.Reload(func(c *config.Config) { c.Intent.JudgeArguments = policy.ArgumentsAdvise })
	if r, p := w.call(policy.CallToolRead, "s:query", dropArgs); p != nil || len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "DROP TABLE") {
		t.Errorf("judge_arguments advise: %v, %v", r.Warnings, p)
	}
	if _, p := w.call(policy.CallToolRead, "s:wipes", dropArgs); p == nil || p.Code != "SERVER_MISMATCH" {
		t.Errorf("advise loosened more than the arguments allow: %v", p)
	}
	if _, p := w.call(policy.CallToolRead, "s:wipes", selectArgs); p != nil {
		t.Errorf("a SELECT with declared lanes: %v", p)
	}
	w.Reload(func(c *config.Config) { c.Intent.JudgeArguments = policy.ArgumentsOff })
	if r, p := w.call(policy.CallToolRead, "s:query", dropArgs); p != nil || len(r.Warnings) != 0 || w.Begun[len(w.Begun)-1].Metadata.Decision.Lane != nil {
		t.Errorf("judge_arguments off: %v, %v", r.Warnings, p)
	}
	if _, p := w.call(policy.CallToolRead, "s:wipes", selectArgs); p == nil {
		t.Error("judge_arguments is off, but declared lanes loosen the decision")
	}
}

// TestScopesCountArguments checks that a caller that may only read cannot drop tables in any mode, and can read with
// a tool whose lanes a user has declared.
func TestScopesCountArguments(t *testing.T) {
	w := newWorld(t, enforced, queryTool, wipesTool, viewsTool)
	for _, mode := range []policy.ArgumentEffectMode{policy.ArgumentsOff, policy.ArgumentsAdvise, policy.ArgumentsEnforce} {
		w.Reload(func(c *config.Config) { c.Intent.JudgeArguments = mode })
		reader := anAgent
		reader.Bounds = bounded(policy.NewScope(policy.NewScopeRule(policy.ScopeLimits{Servers: []string{"s"}, Lanes: []string{"read"}})))
		call := func(name, args string) string {
			_, err := w.gate.Call(t.Context(), LaneCall{CallTool: policy.CallToolRead, Name: name, Args: json.RawMessage(args), Caller: reader})
			if err == nil {
				return ""
			}
			return err.Error()
		}
		if err := call("s:views", dropArgs); !strings.Contains(err, "outside the scope") || !strings.Contains(err, "DROP TABLE") {
			t.Errorf("%s: DROP by a read-only caller: %s", mode, err)
		}
		if err := call("s:views", selectArgs); err != "" {
			t.Errorf("%s: SELECT by a read-only caller: %s", mode, err)
		}
		if err := call("s:wipes", dropArgs); !strings.Contains(err, "outside the scope") {
			t.Errorf("%s: DROP by a read-only caller, with declared lanes: %s", mode, err)
		}
		if err := call("s:wipes", selectArgs); (err == "") != (mode != policy.ArgumentsOff) {
			t.Errorf("%s: SELECT by a read-only caller, with declared lanes: %s", mode, err)
		}
	}
}

// TestNewArgumentRuleDuringTheWait checks that a rule that is added while a call waits applies to that call.
func TestNewArgumentRuleDuringTheWait(t *testing.T) {
	w := newWorld(t, nil, queryTool)
	c, s, now := w.gate.resolveLaneCall(&LaneCall{CallTool: policy.CallToolRead, Name: "s:query", Args: json.RawMessage(dropArgs), Caller: anAgent})
	v := w.gate.decide(&c, s, now)
	if v.Problem != nil {
		t.Fatal(v.Problem)
	}
	w.Reload(func(c *config.Config) { c.Intent.JudgeArguments = policy.ArgumentsEnforce })
	v.cfg = w.Config()
	var again rechecker
	again.initFor(w.gate, &c, &v, nil)
	if err := again.decideAgain(); err == nil || again.failedCheck() != policy.CheckLane {
		t.Errorf("%v, %s", err, again.failedCheck())
	}
}

// TestExplainWithoutArguments checks that a dry run without arguments is not evaluated by arguments.
func TestExplainWithoutArguments(t *testing.T) {
	w := newWorld(t, enforced, queryTool)
	j := w.gate.DryRun(LaneCall{CallTool: policy.CallToolRead, Name: "s:query", Caller: anAgent})
	if j.Problem != nil || j.Facts.Lane != nil {
		t.Errorf("%+v", j)
	}
	j = w.gate.DryRun(LaneCall{CallTool: policy.CallToolRead, Name: "s:query", Args: json.RawMessage(dropArgs), Caller: anAgent})
	if j.Problem == nil || j.Facts.Lane == nil || j.Facts.Outcome != activity.Refused || j.Facts.Check != "lane" {
		t.Errorf("%+v", j)
	}
}
