package config

import (
	"strings"
	"testing"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/policy"
)

// TestAskRules checks that a profile adds ask rules and removes none, whether the profile comes from the address or
// from a token.
func TestAskRules(t *testing.T) {
	c := mustParse(t, `{"ask": {"destructive": "ask", "tools": {"a:pay": "ask"}}, "mcpServers": {"a": {"command": "x", "ask": {"wait": "10s"}}, "b": {"command": "y", "ask": {"destructive": "off"}}},
		"profiles": {"careful": {"ask": {"write": "ask", "destructive": "off", "tools": {"a:pay": "off", "b:read": "ask"}}}, "plain": {}}}`)
	none, careful := policy.Scope{}, policy.NewScope(c.ProfileRule("plain"), c.ProfileRule("careful"))
	for _, w := range []struct {
		server, tool string
		within       policy.Scope
		lane         policy.Operation
		want         string
	}{
		{"a", "x", none, policy.Destructive, "ask.destructive"}, {"a", "x", none, policy.Write, ""}, {"b", "x", none, policy.Destructive, ""}, {"a", "pay", none, policy.Read, `ask.tools "a:pay"`},
		{"a", "x", careful, policy.Destructive, "ask.destructive"}, {"a", "x", careful, policy.Write, "ask.write of profile careful"}, {"a", "pay", careful, policy.Read, `ask.tools "a:pay"`},
		{"b", "x", careful, policy.Destructive, ""}, {"b", "read", careful, policy.Read, `ask.tools "b:read" of profile careful`}, {"gone", "x", none, policy.Destructive, "ask.destructive"},
		{"a", "x", policy.NewScope(c.ProfileRule("plain")), policy.Write, ""},
	} {
		got := ""
		if by := c.AskRuleFor(tool.ID{Server: w.server, Tool: w.tool}, w.within, w.lane); by.IsSet() {
			got = by.String()
		}
		if got != w.want {
			t.Errorf("%s:%s as %s: %q, want %q", w.server, w.tool, w.lane, got, w.want)
		}
		if got != "" && !c.MayAskUser(w.server, w.within) {
			t.Errorf("MayAskUser reports false for %s:%s, which has an ask rule", w.server, w.tool)
		}
	}
	if c.AskTimeout("a") != 10*time.Second || c.AskTimeout("b") != 45*time.Second || (&Config{}).AskTimeout("a") != 45*time.Second {
		t.Errorf("AskTimeout returned %v for a, %v for b", c.AskTimeout("a"), c.AskTimeout("b"))
	}
	if d := mustParse(t, `{"mcpServers": {"a": {"command": "x", "ask": {"write": "ask"}}}}`); d.MayAskUser("b", none) || !d.MayAskUser("a", none) {
		t.Error("MayAskUser does not keep the rules of two servers apart")
	}
	if w := mustParse(t, `{"ask": {"tools": {"paymnts:*": "ask"}}, "mcpServers": {"payments": {"command": "x"}}}`).warnings; len(w) != 1 || !strings.Contains(w[0], `"paymnts:*"`) {
		t.Errorf("warnings for a pattern that matches no server: %q", w)
	}
	if one, other := mustParse(t, `{"listen": "127.0.0.1:1"}`), mustParse(t, `{"listen": "127.0.0.1:2", "data_dir": "/x", "log": {"format": "json"}}`); one.RevisionWithoutRestartKeys() != other.RevisionWithoutRestartKeys() || one.Revision() == other.Revision() {
		t.Error("the listen address changes RevisionWithoutRestartKeys, or does not change Revision")
	}
	if mustParse(t, `{"tools_limit": 3}`).RevisionWithoutRestartKeys() == mustParse(t, `{}`).RevisionWithoutRestartKeys() {
		t.Error("a key that affects decisions does not change RevisionWithoutRestartKeys")
	}
	if d := mustParse(t, `{"ask": {"answer_by_client": ["cursor", "claude"]}}`); !d.ClientMayApprove("claude") || d.ClientMayApprove("codex") || d.ClientMayApprove("") || c.ClientMayApprove("claude") {
		t.Error("ClientMayApprove is wrong for a client")
	}
	if mustParse(t, `{"ask": {"write": "ask"}}`).Revision() == mustParse(t, `{}`).Revision() {
		t.Error("the ask rules do not change Revision")
	}
}
