package ops_test

import (
	"strings"
	"testing"
	"time"

	"mcpproxy/internal/gate/ask"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/testutil/catalogtest"
	"mcpproxy/internal/testutil/volume"
)

// TestTrialWithOtherAskRules checks that a trial with other approval rules counts the calls that would have waited for
// approval, or would not have waited.
func TestTrialWithOtherAskRules(t *testing.T) {
	w := newTrialWorld(t, trialBase, append(definitions, `{"name":"query","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object","properties":{"sql":{"type":"string"}}}}`)...)
	const masked = `{"sql":"SELECT 'ghp_0123456789abcdefghijklmnopqrstuvwxyz'"}`
	w.call(catalogtest.AgentCaller, policy.CallToolRead, "s:reads", `{"n":1}`)
	w.call(catalogtest.AgentCaller, policy.CallToolWrite, "s:reads", `{"n":1}`)
	w.call(catalogtest.AgentCaller, policy.CallToolDestructive, "s:destroys", `{}`)
	w.call(catalogtest.AgentCaller, policy.CallToolRead, "s:destroys", `{}`) // rejected, whatever the approval rules
	w.callByName(catalogtest.AgentCaller, "delete_user")
	w.callByName(catalogtest.AgentCaller, "reads")
	w.call(catalogtest.AgentCaller, policy.CallToolRead, "s:query", `{"sql":"DROP TABLE x"}`)
	w.call(catalogtest.AgentCaller, policy.CallToolRead, "s:query", `{"sql":"SELECT 1"}`)
	w.call(catalogtest.AgentCaller, policy.CallToolRead, "s:query", masked)
	w.call(w.caller("research", ""), policy.CallToolRead, "s:reads", `{"n":1}`)
	asking := func(rules string) string { return strings.Replace(trialBase, "{\n", "{\n \"ask\": "+rules+",\n", 1) }
	for name, c := range map[string]struct {
		text           string
		asked, unknown int64
	}{
		"as it is":         {trialBase, 0, 0},
		"destructive":      {asking(`{"destructive": "ask"}`), 3, 0}, // the effect of the masked argument is recorded
		"write, too":       {asking(`{"write": "ask", "destructive": "ask"}`), 4, 0},
		"a tool":           {asking(`{"tools": {"s:reads": "ask"}}`), 4, 0},
		"a tool is off":    {asking(`{"destructive": "ask", "tools": {"s:*": "off"}}`), 0, 0},
		"what is not said": {asking(`{"tools": {"s:query": "ask"}}`), 3, 0},
		"in a profile":     {strings.Replace(trialBase, `"lanes": ["read"]}`, `"lanes": ["read"], "ask": {"tools": {"s:reads": "ask"}}}`, 1), 1, 0},
	} {
		got := w.try(c.text)
		if got.Asked != c.asked || got.Unknown != c.unknown || got.Refused != 0 || got.Allowed != 0 || got.Same != got.Calls-c.asked-c.unknown {
			t.Errorf("%s: %+v", name, got)
		}
		for _, g := range got.Groups {
			if g.Would == ops.Asked && (g.Check != "ask" || g.Code != "APPROVAL_PENDING" || !strings.Contains(g.Why, "ask.") || len(g.Examples) == 0) {
				t.Errorf("%s: %+v", name, g)
			}
		}
	}
	off := strings.Replace(trialBase, "{\n", "{\n \"intent_declaration\": {\"judge_arguments\": \"off\"},\n", 1)
	w = newTrialWorld(t, off, `{"name":"query","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object","properties":{"sql":{"type":"string"}}}}`)
	w.call(catalogtest.AgentCaller, policy.CallToolRead, "s:query", masked)
	for rules, unknown := range map[string]int64{`{"write": "ask"}`: 0, `{"destructive": "ask"}`: 1, `{"destructive": "ask", "tools": {"s:query": "off"}}`: 0} {
		if got := w.try(asking(rules)); got.Unknown != unknown || got.Asked != 0 {
			t.Errorf("a call without recorded facts, under %s: %+v", rules, got)
		}
	}
}

// TestTrialOfHeldCalls checks that calls that waited for approval would wait again, and would not wait without the
// rule.
func TestTrialOfHeldCalls(t *testing.T) {
	t.Parallel()
	volume.SkipUnderRace(t)
	text := strings.Replace(trialBase, "{\n", "{\n \"ask\": {\"destructive\": \"ask\", \"wait\": \"1s\"},\n", 1)
	w := newTrialWorld(t, text, definitions...)
	asks := w.db.ApprovalQuestions()
	w.gate.Ask = ask.NewWaiter(asks, nil, time.Now, func() {})
	call := func() { w.call(catalogtest.AgentCaller, policy.CallToolDestructive, "s:destroys", `{}`) }
	call() // waits for approval
	call() // still waits
	for _, approve := range []bool{true, false} {
		all, err := asks.WaitingQuestions(t.Context(), time.Now())
		if err != nil || len(all) != 1 {
			t.Fatalf("%+v, %v", all, err)
		}
		if _, err := asks.AnswerQuestion(t.Context(), all[0].ID, ask.Answer{Approve: approve, By: "admin", At: time.Now()}); err != nil {
			t.Fatal(err)
		}
		call() // allowed by the approval; the next call is denied
		if approve {
			call() // waits again
		}
	}
	if got := w.try(text); got.Calls != 5 || got.Same != 5 {
		t.Errorf("under the same rules: %+v", got)
	}
	if got := w.try(trialBase); got.Allowed != 5 {
		t.Errorf("without the rules: %+v", got)
	}
}
