package policy_test

import (
	"strings"
	"testing"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate/policy"
)

// TestMessagesForUsers checks that messages for users omit advice that only models can follow, and keep the rest,
// even if the name of a tool equals a part of such advice.
func TestMessagesForUsers(t *testing.T) {
	t.Parallel()
	ask := policy.CallRequest{CallTool: policy.CallToolRead, ID: tool.ID{Server: "x", Tool: "retrieve_tools"}}
	for want, facts := range map[string]policy.Facts{
		"Tool 'x:retrieve_tools' not found. Did you mean 'x:a'?": {InScope: true, Lanes: auth.AllLanes, Existence: policy.NoTool, Suggestions: []string{"x:a"}},
		"Tool 'x:retrieve_tools' cannot be called: its status is disabled_by_user. " + policy.DisabledByUser.Remedy(): {
			InScope: true, Lanes: auth.AllLanes, Existence: policy.Exists, Status: policy.DisabledByUser},
	} {
		p := policy.Decide(ask, facts, policy.Rules{}).Problem
		if p == nil || !strings.Contains(strings.TrimPrefix(p.Message, want), "retrieve_tools") {
			t.Fatalf("the refusal is %v", p)
		}
		if got := policy.WithoutModelAdvice(p.Message); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
