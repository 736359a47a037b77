package cli

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/clients/permission"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// tryPolicy returns differences of each kind. It rejects a text that contains "tols_limit".
func (f *fakeOperations) tryPolicy(_ context.Context, _ ops.Caller, in ops.TrialRequest) (ops.Trial, error) {
	if strings.Contains(in.Text, "tols_limit") {
		return ops.Trial{}, problem.New(problem.InvalidConfig, "mcp_config.json:2:3: unknown", "").
			With("mistakes", []ops.Mistake{{Line: 2, Column: 3, Path: "tols_limit", Message: `the key "tols_limit" is not known`, Hint: "did you mean tools_limit?"}})
	}
	since := parseRFC3339("2025-12-16T10:00:00Z")
	if in.Period == "604800s" {
		return ops.Trial{Since: since}, nil
	}
	last := parseRFC3339("2026-01-15T09:00:00Z")
	return ops.Trial{Since: since, Revision: "0123456789ab", InForce: "ba9876543210", Calls: 1234, Others: 7, Same: 1190, Refused: 40, Allowed: 3, Unknown: 1, TookMS: 12,
		Groups: []ops.TrialGroup{
			{Tool: "github:delete_repo", Variant: "call_tool_destructive", Called: "lane", Was: ops.Allowed, Would: ops.Refused, Check: "callable", Code: "TOOL_LOCKED", Status: "disabled_by_config",
				Why: "Tool 'github:delete_repo' is locked: disabled_by_config", Calls: 40, Last: last, Examples: []string{"01JG2K4WZ3N8Q5R7T9V1X2Y3Z4", "01JG2K4WZ3N8Q5R7T9V1X2Y3Z5"}},
			{Tool: "github:list_repos", Variant: "call_tool_read", Called: "name", Was: ops.Refused, Would: ops.Allowed, Check: "scope", Code: "OUT_OF_SCOPE",
				Why: "It is outside \x1b[31mwhat this client may use", Calls: 3, Last: last, Examples: []string{"01JG2K4WZ3N8Q5R7T9V1X2Y3Z6"}},
			{Tool: "notes:write", Variant: "call_tool_write", Called: "lane", Was: ops.Allowed, Would: ops.Unknown, Why: "The arguments are masked.", Calls: 1, Last: last, Examples: []string{"01JG2K4WZ3N8Q5R7T9V1X2Y3Z7"}},
		}}, nil
}

// explainCall returns a result for a client whose call is allowed in one lane or in none.
func (f *fakeOperations) explainCall(_ context.Context, _ ops.Caller, in ops.ExplainRequest) (ops.Prospect, error) {
	lane := func(name string, outcome activity.Verdict) ops.ProspectLane {
		one := ops.ProspectLane{Tool: name, Outcome: outcome, Why: "call_tool_destructive is allowed with all hints."}
		if outcome == activity.Refused {
			one.Check, one.Code, one.Why, one.Hint = "hints", "SERVER_MISMATCH", "Tool 'github:delete_repo' is marked destructive by server, use call_tool_destructive instead of "+name, "Correct it."
		}
		if in.Who == "claude-code" {
			one.Client = &ops.ProspectClient{Verdict: permission.Asks, Rule: permission.Rule{Text: "ask mcp__mcpproxy__" + name, Path: "/home/me/.claude/settings.json", Line: 7}}
		}
		return one
	}
	last := activity.Allowed
	if in.Who == "research" {
		last = activity.Refused
	}
	return ops.Prospect{
		Name: in.Name, As: ops.ProspectWho{Kind: map[bool]string{true: "client", false: "profile"}[in.Who == "claude-code"], Name: in.Who, Connected: true, Address: "/mcp/p/research", Profiles: "research", Token: "ci"},
		DecisionFacts: tool.DecisionFacts{CallWith: "call_tool_destructive", Hints: &tool.JudgedHints{Destructive: &tool.HintFact{Value: true, From: tool.FromServer}}},
		Lanes:         []ops.ProspectLane{lane("call_tool_read", activity.Refused), lane("call_tool_write", activity.Refused), lane("call_tool_destructive", last)},
		Can:           last == activity.Allowed, Notes: []string{"A note."},
	}, nil
}

func TestPolicyTry(t *testing.T) {
	t.Parallel()
	w := newEnvWithWrappedDaemon(t, &fakeOperations{}, func(h http.Handler) http.Handler { return h })
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "candidate.json"), filepath.Join(dir, "bad.json")
	for path, text := range map[string]string{good: "{}", bad: "{\n  \"tols_limit\": 3}"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	compareWithGolden(t, "policy_try", w.runCommand("policy", "try", good).stdout)
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{good, "--since", "7d"}, problem.ExitDone, "The log has no calls since"},
		{[]string{good, "--since", "soon"}, problem.ExitUsage, "'soon'"},
		{[]string{good, "--since", "2099-01-01"}, problem.ExitUsage, "a time that has passed"},
		{[]string{bad}, problem.ExitFailed, `bad.json:2:3: the key "tols_limit" is not known`},
		{[]string{filepath.Join(dir, "none.json")}, problem.ExitNotFound, "does not exist"},
		{nil, problem.ExitUsage, "Missing argument: file."},
	} {
		got := w.runCommand(append([]string{"policy", "try"}, c.args...)...)
		if got.code != c.code || !strings.Contains(got.stdout+got.stderr, c.says) {
			t.Errorf("%q: %+v", c.args, got)
		}
	}
	if got := w.runCommand("policy", "try", good, "-o", "json"); !strings.Contains(got.stdout, `"would": "refused"`) {
		t.Errorf("%+v", got)
	}
}

func TestCan(t *testing.T) {
	t.Parallel()
	w := newEnvWithWrappedDaemon(t, &fakeOperations{}, func(h http.Handler) http.Handler { return h })
	compareWithGolden(t, "can", w.runCommand("can", "claude-code", "github:delete_repo").stdout)
	got := w.runCommand("can", "research", "github:delete_repo", "--args", `{"a":1}`)
	if got.code != problem.ExitRefused || !strings.Contains(got.stdout, "✗ call_tool_destructive is refused (hints)") || !strings.Contains(got.stderr, "Error: research cannot call github:delete_repo.") {
		t.Errorf("%+v", got)
	}
	if got := w.runCommand("can", "research", "github:delete_repo", "--args", `{`); got.code != problem.ExitUsage {
		t.Errorf("%+v", got)
	}
	if got := w.runCommand("can", "research"); got.code != problem.ExitUsage || !strings.Contains(got.stderr, "Missing argument: server:tool.") {
		t.Errorf("%+v", got)
	}
}
