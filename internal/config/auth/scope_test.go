package auth_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"mcpproxy/internal/config/auth"
)

func TestScope(t *testing.T) {
	rule := func(l auth.ScopeLimits) auth.Scope { return auth.NewScope(auth.NewScopeRule(l)) }
	tools := []auth.ToolPatterns{{Server: "git*", Patterns: []string{"get_*"}}, {Server: "github", Patterns: []string{"*_issue", "x"}}, {Server: "none", Patterns: []string{}}}
	for name, c := range map[string]struct {
		of           auth.Scope
		server, tool string
		want, serves bool
	}{
		"everything":          {auth.Scope{}, "a", "b", true, true},
		"no limits":           {rule(auth.ScopeLimits{}), "a", "b", true, true},
		"a server":            {rule(auth.ScopeLimits{Servers: []string{"a"}}), "a", "b", true, true},
		"another":             {rule(auth.ScopeLimits{Servers: []string{"a"}}), "ab", "b", false, false},
		"a pattern":           {rule(auth.ScopeLimits{Servers: []string{"x", "a*"}}), "ab", "b", true, true},
		"case counts":         {rule(auth.ScopeLimits{Servers: []string{"a"}}), "A", "b", false, false},
		"no server":           {rule(auth.ScopeLimits{Servers: []string{}}), "a", "b", false, false},
		"tools of another":    {rule(auth.ScopeLimits{Tools: tools}), "gitlab", "get_x", true, true},
		"all entries count":   {rule(auth.ScopeLimits{Tools: tools}), "github", "get_issue", true, true},
		"one of them refuses": {rule(auth.ScopeLimits{Tools: tools}), "github", "get_x", false, true},
		"the other one, too":  {rule(auth.ScopeLimits{Tools: tools}), "github", "x", false, true},
		"no tools":            {rule(auth.ScopeLimits{Tools: tools}), "none", "x", false, true},
		"not narrowed":        {rule(auth.ScopeLimits{Tools: tools}), "a", "b", true, true},
		"tools need a server": {rule(auth.ScopeLimits{Servers: []string{"a"}, Tools: tools}), "gitlab", "get_x", false, false},
		"all rules count": {auth.NewScope(auth.NewScopeRule(auth.ScopeLimits{Servers: []string{"a", "b"}}), nil, auth.NewScopeRule(auth.ScopeLimits{Servers: []string{"b", "c"}})),
			"a", "x", false, false},
		"nothing": {auth.NewScope(auth.DenyAllRule("p")), "a", "b", false, false},
	} {
		if got := c.of.AllowsTool(c.server, c.tool); got != c.want {
			t.Errorf("%s: AllowsTool is %v", name, got)
		}
		if got := c.of.AllowsServer(c.server); got != c.serves {
			t.Errorf("%s: AllowsServer is %v", name, got)
		}
	}
}

func TestLanes(t *testing.T) {
	for text, want := range map[string]string{"": "", "read": "read", "destructive read": "read destructive", "nonsense": "", "read read": "read", "READ write": "write"} {
		s := auth.NewScope(auth.NewScopeRule(auth.ScopeLimits{Lanes: strings.Fields(text + " ")}))
		if got := strings.Join(s.Lanes().Words(), " "); got != want {
			t.Errorf("%q: %q", text, got)
		}
		if s.Lanes().Has(0) || s.Lanes().Has(4) || s.Lanes().Has(200) {
			t.Errorf("%q has an unknown lane", text)
		}
	}
	if !auth.NewScope(auth.NewScopeRule(auth.ScopeLimits{})).AllowsAllLanes() || !(auth.Scope{}).AllowsAllLanes() {
		t.Error("a rule or scope without limits does not allow all lanes")
	}
	two := auth.NewScope(auth.NewScopeRule(auth.ScopeLimits{Lanes: []string{"read", "write"}}), auth.NewScopeRule(auth.ScopeLimits{Lanes: []string{"write", "destructive"}}))
	if got := two.Lanes().Words(); !slices.Equal(got, []string{"write"}) {
		t.Errorf("lanes of both rules: %v", got)
	}
}

// TestMoreRulesNeverGrantAccess checks that an additional rule never grants access, and that two scopes with the same
// key allow the same.
func TestMoreRulesNeverGrantAccess(t *testing.T) {
	word := rapid.StringMatching(`[ab*?]{1,3}`)
	limits := rapid.Custom(func(t *rapid.T) auth.ScopeLimits {
		var l auth.ScopeLimits
		if rapid.Bool().Draw(t, "servers") {
			l.Servers = rapid.SliceOfN(word, 0, 2).Draw(t, "s")
		}
		if rapid.Bool().Draw(t, "lanes") {
			l.Lanes = rapid.SliceOfN(rapid.SampledFrom(auth.OperationLaneNames()), 0, 3).Draw(t, "l")
		}
		for range rapid.IntRange(0, 2).Draw(t, "tools") {
			l.Tools = append(l.Tools, auth.ToolPatterns{Server: word.Draw(t, "ts"), Patterns: rapid.SliceOfN(word, 0, 2).Draw(t, "tp")})
		}
		return l
	})
	seen := map[auth.ScopeKey]string{}
	rapid.Check(t, func(t *rapid.T) {
		a, b := auth.NewScopeRule(limits.Draw(t, "a")), auth.NewScopeRule(limits.Draw(t, "b"))
		one, both := auth.NewScope(a), auth.NewScope(a, b)
		text := ""
		for _, server := range []string{"a", "b", "ab", "ba", "aab"} {
			for _, tool := range []string{"a", "b", "bb"} {
				if both.AllowsTool(server, tool) && !one.AllowsTool(server, tool) || both.AllowsServer(server) && !one.AllowsServer(server) || both.AllowsTool(server, tool) && !both.AllowsServer(server) {
					t.Fatalf("an additional rule grants more access: %s:%s", server, tool)
				}
				text += map[bool]string{true: "1", false: "0"}[both.AllowsTool(server, tool)]
			}
		}
		if both.Lanes()&^one.Lanes() != 0 || !both.IsBounded() || both.AllowsAllServers() && !one.AllowsAllServers() {
			t.Fatal("an additional rule grants more access")
		}
		text += strings.Join(both.Lanes().Words(), " ")
		if before, known := seen[both.Key()]; known && before != text {
			t.Fatalf("two different scopes have the key %v", both.Key())
		}
		seen[both.Key()] = text
	})
}

func TestProfiles(t *testing.T) {
	p := func(name string) *auth.ScopeRule { return auth.NewScopeRule(auth.ScopeLimits{Profile: name}) }
	for want, s := range map[string]auth.Scope{"": {}, "a": auth.NewScope(p("a")), "a,b": auth.NewScope(p("a"), p(""), p("b")), "b": auth.NewScope(p("b"), p("b"))} {
		if got := s.ProfileNames(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestAskingAllocatesNothing(t *testing.T) {
	s := auth.NewScope(auth.NewScopeRule(auth.ScopeLimits{Servers: []string{"git*", "web-*"}, Tools: []auth.ToolPatterns{{Server: "git*", Patterns: []string{"list_*", "get_*"}}}, Lanes: []string{"read"}}),
		auth.NewScopeRule(auth.ScopeLimits{Servers: []string{"*"}}))
	if n := testing.AllocsPerRun(100, func() { _, _, _ = s.AllowsTool("github", "get_issue"), s.Lanes(), s.Key() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
