package scope_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"mcpproxy/internal/scope"
)

func TestScope(t *testing.T) {
	rule := func(l scope.Limits) scope.Scope { return scope.Of(scope.NewRule(l)) }
	tools := []scope.Tools{{Server: "git*", Patterns: []string{"get_*"}}, {Server: "github", Patterns: []string{"*_issue", "x"}}, {Server: "none", Patterns: []string{}}}
	for name, c := range map[string]struct {
		of           scope.Scope
		server, tool string
		want, serves bool
	}{
		"everything":          {scope.Scope{}, "a", "b", true, true},
		"no limits":           {rule(scope.Limits{}), "a", "b", true, true},
		"a server":            {rule(scope.Limits{Servers: []string{"a"}}), "a", "b", true, true},
		"another":             {rule(scope.Limits{Servers: []string{"a"}}), "ab", "b", false, false},
		"a pattern":           {rule(scope.Limits{Servers: []string{"x", "a*"}}), "ab", "b", true, true},
		"case counts":         {rule(scope.Limits{Servers: []string{"a"}}), "A", "b", false, false},
		"no server":           {rule(scope.Limits{Servers: []string{}}), "a", "b", false, false},
		"tools of another":    {rule(scope.Limits{Tools: tools}), "gitlab", "get_x", true, true},
		"all entries count":   {rule(scope.Limits{Tools: tools}), "github", "get_issue", true, true},
		"one of them refuses": {rule(scope.Limits{Tools: tools}), "github", "get_x", false, true},
		"the other one, too":  {rule(scope.Limits{Tools: tools}), "github", "x", false, true},
		"no tools":            {rule(scope.Limits{Tools: tools}), "none", "x", false, true},
		"not narrowed":        {rule(scope.Limits{Tools: tools}), "a", "b", true, true},
		"tools need a server": {rule(scope.Limits{Servers: []string{"a"}, Tools: tools}), "gitlab", "get_x", false, false},
		"all rules count": {scope.Of(scope.NewRule(scope.Limits{Servers: []string{"a", "b"}}), nil, scope.NewRule(scope.Limits{Servers: []string{"b", "c"}})),
			"a", "x", false, false},
		"nothing": {scope.Of(scope.Nothing("p")), "a", "b", false, false},
	} {
		if got := c.of.Tool(c.server, c.tool); got != c.want {
			t.Errorf("%s: the tool is in it: %v", name, got)
		}
		if got := c.of.Server(c.server); got != c.serves {
			t.Errorf("%s: the server is in it: %v", name, got)
		}
	}
}

func TestLanes(t *testing.T) {
	for text, want := range map[string]string{"": "", "read": "read", "destructive read": "read destructive", "nonsense": "", "read read": "read", "READ write": "write"} {
		s := scope.Of(scope.NewRule(scope.Limits{Lanes: strings.Fields(text + " ")}))
		if got := strings.Join(s.Lanes().Words(), " "); got != want {
			t.Errorf("%q: %q", text, got)
		}
		if s.Lanes().Has(0) || s.Lanes().Has(4) || s.Lanes().Has(200) {
			t.Errorf("%q has a lane that is none", text)
		}
	}
	if !scope.Of(scope.NewRule(scope.Limits{})).AllLanes() || !(scope.Scope{}).AllLanes() {
		t.Error("what does not limit leaves lanes out")
	}
	two := scope.Of(scope.NewRule(scope.Limits{Lanes: []string{"read", "write"}}), scope.NewRule(scope.Limits{Lanes: []string{"write", "destructive"}}))
	if got := two.Lanes().Words(); !slices.Equal(got, []string{"write"}) {
		t.Errorf("both: %v", got)
	}
}

// TestARuleMoreNeverWidens, and two scopes of one key let the same through.
func TestARuleMoreNeverWidens(t *testing.T) {
	word := rapid.StringMatching(`[ab*?]{1,3}`)
	limits := rapid.Custom(func(t *rapid.T) scope.Limits {
		var l scope.Limits
		if rapid.Bool().Draw(t, "servers") {
			l.Servers = rapid.SliceOfN(word, 0, 2).Draw(t, "s")
		}
		if rapid.Bool().Draw(t, "lanes") {
			l.Lanes = rapid.SliceOfN(rapid.SampledFrom(scope.Words()), 0, 3).Draw(t, "l")
		}
		for range rapid.IntRange(0, 2).Draw(t, "tools") {
			l.Tools = append(l.Tools, scope.Tools{Server: word.Draw(t, "ts"), Patterns: rapid.SliceOfN(word, 0, 2).Draw(t, "tp")})
		}
		return l
	})
	seen := map[scope.Key]string{}
	rapid.Check(t, func(t *rapid.T) {
		a, b := scope.NewRule(limits.Draw(t, "a")), scope.NewRule(limits.Draw(t, "b"))
		one, both := scope.Of(a), scope.Of(a, b)
		text := ""
		for _, server := range []string{"a", "b", "ab", "ba", "aab"} {
			for _, tool := range []string{"a", "b", "bb"} {
				if both.Tool(server, tool) && !one.Tool(server, tool) || both.Server(server) && !one.Server(server) || both.Tool(server, tool) && !both.Server(server) {
					t.Fatalf("a rule more widens: %s:%s", server, tool)
				}
				text += map[bool]string{true: "1", false: "0"}[both.Tool(server, tool)]
			}
		}
		if both.Lanes()&^one.Lanes() != 0 || !both.Bounded() || both.AllServers() && !one.AllServers() {
			t.Fatal("a rule more widens")
		}
		text += strings.Join(both.Lanes().Words(), " ")
		if before, known := seen[both.Key()]; known && before != text {
			t.Fatalf("one key, two scopes: %v", both.Key())
		}
		seen[both.Key()] = text
	})
}

func TestProfiles(t *testing.T) {
	p := func(name string) *scope.Rule { return scope.NewRule(scope.Limits{Profile: name}) }
	for want, s := range map[string]scope.Scope{"": {}, "a": scope.Of(p("a")), "a,b": scope.Of(p("a"), p(""), p("b")), "b": scope.Of(p("b"), p("b"))} {
		if got := s.Profiles(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestAskingAllocatesNothing(t *testing.T) {
	s := scope.Of(scope.NewRule(scope.Limits{Servers: []string{"git*", "web-*"}, Tools: []scope.Tools{{Server: "git*", Patterns: []string{"list_*", "get_*"}}}, Lanes: []string{"read"}}),
		scope.NewRule(scope.Limits{Servers: []string{"*"}}))
	if n := testing.AllocsPerRun(100, func() { _, _, _ = s.Tool("github", "get_issue"), s.Lanes(), s.Key() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
