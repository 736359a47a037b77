package policy

import (
	"testing"

	"pgregory.net/rapid"

	"mcpproxy/internal/catalog/tool"
)

// TestCatch checks that rules with patterns take precedence over lanes, and rules that ask over rules that do not, in
// any order. The lane rule of a server replaces the general one.
func TestCatch(t *testing.T) {
	id := tool.ID{Server: "github", Tool: "create_issue"}
	for name, c := range map[string]struct {
		general AskRules
		server  *AskRules
		lane    Operation
		want    string
	}{
		"nothing":                      {AskRules{}, nil, Destructive, ""},
		"off":                          {AskRules{Write: "off", Destructive: "off"}, &AskRules{}, Destructive, ""},
		"write":                        {AskRules{Write: "ask"}, nil, Write, "ask.write"},
		"not what only reads":          {AskRules{Write: "ask", Destructive: "ask"}, nil, Read, ""},
		"nor what is worse":            {AskRules{Write: "ask"}, nil, Destructive, ""},
		"destructive":                  {AskRules{Destructive: "ask"}, nil, Destructive, "ask.destructive"},
		"a lane that is not known":     {AskRules{Destructive: "ask"}, nil, NoOperation, "ask.destructive"},
		"a mode that is not known":     {AskRules{Write: "maybe"}, nil, Write, "ask.write"},
		"the server asks":              {AskRules{Write: "off"}, &AskRules{Write: "ask"}, Write, "ask.write of server github"},
		"the server does not":          {AskRules{Write: "ask"}, &AskRules{Write: "off"}, Write, ""},
		"the server says nothing":      {AskRules{Write: "ask"}, &AskRules{Destructive: "off"}, Write, "ask.write"},
		"a tool":                       {AskRules{Tools: map[string]string{"github:create_*": "ask"}}, nil, Read, `ask.tools "github:create_*"`},
		"a tool of another server":     {AskRules{Tools: map[string]string{"gitlab:*": "ask"}}, nil, Write, ""},
		"a tool is off":                {AskRules{Write: "ask", Tools: map[string]string{"*:create_issue": "off"}}, nil, Write, ""},
		"one asks, another does not":   {AskRules{Tools: map[string]string{"*:*": "off", "github:*": "ask", "*:create_*": "ask"}}, nil, Write, `ask.tools "*:create_*"`},
		"the server has a tool":        {AskRules{}, &AskRules{Tools: map[string]string{"create_*": "ask"}}, Read, `ask.tools "create_*" of server github`},
		"general asks, server not":     {AskRules{Tools: map[string]string{"github:*": "ask"}}, &AskRules{Tools: map[string]string{"create_issue": "off"}}, Write, `ask.tools "github:*"`},
		"the server has a tool off":    {AskRules{Write: "ask"}, &AskRules{Write: "ask", Tools: map[string]string{"create_issue": "off"}}, Write, ""},
		"a pattern that is no tool":    {AskRules{Write: "off", Tools: map[string]string{"github": "ask"}}, nil, Write, ""},
		"a server's pattern is a name": {AskRules{}, &AskRules{Tools: map[string]string{"github:create_issue": "ask"}}, Write, ""},
	} {
		got := ""
		if by := FindApprovalRule(&c.general, c.server, id, c.lane); by.IsSet() {
			got = by.String()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	profile := AskRules{Write: "ask", Tools: map[string]string{"github:create_issue": "off"}}
	if by := profile.FindProfileRule("p", id, Write); by.IsSet() {
		t.Errorf("off in a profile requires an approval: %v", by)
	}
	if by := profile.FindProfileRule("p", tool.ID{Server: "github", Tool: "x"}, Write); by.String() != "ask.write of profile p" {
		t.Errorf("%q", by)
	}
}

// TestAnyMissesNothing checks that RequiresAnyApproval reports true whenever a rule requires an approval of a call.
func TestAnyMissesNothing(t *testing.T) {
	mode := rapid.SampledFrom([]string{"", "off", "ask", "x"})
	rapid.Check(t, func(t *rapid.T) {
		r := AskRules{Write: AskMode(mode.Draw(t, "write")), Destructive: AskMode(mode.Draw(t, "destructive")), Tools: map[string]string{}}
		for range rapid.IntRange(0, 2).Draw(t, "tools") {
			r.Tools[rapid.SampledFrom([]string{"a:*", "*:b", "c:d"}).Draw(t, "pattern")] = mode.Draw(t, "mode")
		}
		for _, id := range []tool.ID{{Server: "a", Tool: "b"}, {Server: "c", Tool: "d"}} {
			for lane := NoOperation; lane <= Destructive; lane++ {
				if FindApprovalRule(&r, nil, id, lane).IsSet() && !r.RequiresAnyApproval() {
					t.Fatalf("%+v", r)
				}
			}
		}
	})
}

func TestCatchAllocatesNothing(t *testing.T) {
	general, server := AskRules{Write: "off", Destructive: "ask", Tools: map[string]string{"a:*": "ask", "b:*": "off"}}, AskRules{Tools: map[string]string{"x": "ask"}}
	if n := testing.AllocsPerRun(100, func() { _ = FindApprovalRule(&general, &server, tool.ID{Server: "c", Tool: "d"}, Write) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
