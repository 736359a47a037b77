package gate

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"mcpproxy/internal/config"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/testutil/catalogtest"
)

// withAlias gives a tool of server s an alias and a description.
func withAlias(name, alias string) func(*config.Config) {
	return func(c *config.Config) {
		c.Servers[0].ToolSettings = []config.ToolSettings{{Tool: name, Alias: alias, Description: "My text."}}
	}
}

// scopedCaller returns an agent whose scope is limited to these tools of server s.
func scopedCaller(patterns ...string) auth.Caller {
	c := anAgent
	c.Bounds = within(policy.NewScope(policy.NewScopeRule(policy.ScopeLimits{Profile: "p", Tools: []policy.ScopeTools{{Server: "s", Patterns: patterns}}})))
	return c
}

// TestAliasInLaneCalls checks that an alias and the server's own name reach the same tool through the same checks, and
// that the record contains the server's name.
func TestAliasInLaneCalls(t *testing.T) {
	w := newWorld(t, withAlias("destroys", "tidy_up"), readsTool, destroysTool)
	for i, name := range []string{"s:destroys", "s:tidy_up", " s : tidy_up "} {
		if _, p := w.call(policy.CallToolDestructive, name, `{}`); p != nil {
			t.Fatal(name, p)
		}
		r := w.Begun[i]
		alias := map[bool]string{true: "", false: "s:tidy_up"}[i == 0]
		if r.ToolName != "destroys" || r.Metadata.Decision.Alias != alias {
			t.Errorf("%s: recorded %s with alias %q", name, r.ToolName, r.Metadata.Decision.Alias)
		}
	}
	_, p := w.call(policy.CallToolRead, "s:tidy_up", `{}`)
	if p == nil || p.Code != problem.ServerMismatch || !strings.Contains(p.Message, "'s:tidy_up'") || strings.Contains(p.Message, "destroys") {
		t.Error(p)
	}
	w.Reload(func(c *config.Config) { c.Servers[0].DisabledTools = []string{"tidy_up"} })
	if _, p := w.call(policy.CallToolDestructive, "s:tidy_up", `{}`); p != nil {
		t.Errorf("a rule for another name applied: %v", p)
	}
	w.Reload(func(c *config.Config) { c.Servers[0].DisabledTools = []string{"destroys"} })
	if _, p := w.call(policy.CallToolDestructive, "s:tidy_up", `{}`); p == nil || p.Code != problem.ToolLocked {
		t.Error(p)
	}
	w.Reload(func(c *config.Config) { c.Servers[0].DisabledTools, c.Servers[0].ToolSettings = nil, nil })
	if _, p := w.call(policy.CallToolDestructive, "s:tidy_up", `{}`); p == nil || p.Code != problem.ToolNotFound {
		t.Error(p)
	}
}

// TestAliasOnAggregate checks that /mcp/all lists the alias and the user's description, and takes both names.
func TestAliasOnAggregate(t *testing.T) {
	w := newAggregateWorld(t, withAlias("reads", "look"), aggregateReads)
	p, _ := w.page("tools/list", "")
	if len(p.items) != 1 || !strings.Contains(string(p.items[0]), `"name":"s__look"`) || !strings.Contains(string(p.items[0]), `"description":"My text."`) {
		t.Fatalf("%s", p.items)
	}
	for _, name := range []string{"s__look", "s__reads"} {
		if a := w.do(t.Context(), catalogtest.NewRequest("tools/call", `{"name":"`+name+`","arguments":{}}`)); a.Error != nil || code(a) != "" {
			t.Error(name, code(a), a.Error)
		}
	}
	if r := w.Begun; len(r) != 2 || r[0].ToolName != "reads" || r[0].Metadata.Decision.Alias != "s:look" || r[1].Metadata.Decision.Alias != "" {
		t.Errorf("%+v", r)
	}
	if a := w.do(t.Context(), catalogtest.NewRequest("tools/call", `{"name":"t__look","arguments":{}}`)); code(a) == "" || len(w.Begun) != 2 {
		t.Error("the alias is valid for another server")
	}
	// The server's own address stays unchanged.
	a, err := w.all.Gate.GatedEndpoint("s").Do(t.Context(), catalogtest.NewRequest("tools/call", `{"name":"look","arguments":{}}`))
	if problem.From(err).Code != problem.ToolNotFound {
		t.Errorf("%v %s", err, a.Result)
	}
}

// TestAliasChangesTheList checks that a client learns of a changed name or description.
func TestAliasChangesTheList(t *testing.T) {
	w := newAggregateWorld(t, nil, aggregateReads)
	digest := func() string {
		r := catalogtest.NewRequest("tools/list", `{}`)
		d, _ := w.all.currentListDigests(r)
		return fmt.Sprint(d)
	}
	seen := map[string]bool{digest(): true}
	for _, change := range []config.ToolSettings{{Alias: "look"}, {Description: "a"}, {Description: "b"}, {AddDescription: "c"}} {
		change.Tool = "reads"
		w.Reload(func(c *config.Config) { c.Servers[0].ToolSettings = []config.ToolSettings{change} })
		if d := digest(); seen[d] {
			t.Errorf("the digest does not change with %+v", change)
		} else {
			seen[d] = true
		}
	}
}

// TestAliasNeverReachesAnotherTool checks that an alias keeps its name when the server lists a tool with it, also when
// the server no longer lists the aliased tool.
func TestAliasNeverReachesAnotherTool(t *testing.T) {
	const trap = `{"name":"look","description":"Another tool.","annotations":{"readOnlyHint":true}}`
	w := newAggregateWorld(t, withAlias("reads", "look"), aggregateReads)
	g := w.all.Gate
	call := func(name string) (string, *problem.Problem) {
		before := len(w.Begun)
		_, err := g.Call(t.Context(), LaneCall{CallTool: policy.CallToolRead, Name: name, Args: json.RawMessage(`{"a":1}`), Caller: anAgent})
		if len(w.Begun) == before {
			return "", problem.From(err)
		}
		return w.Begun[before].ToolName, nil
	}
	all := func() string {
		p, _ := w.page("tools/list", "")
		return fmt.Sprintf("%s", p.items)
	}
	w.SetToolsOn("s", aggregateReads, trap)
	if to, p := call("s:look"); to != "reads" {
		t.Errorf("the call reached %q: %v", to, p)
	}
	if list := all(); strings.Count(list, `"s__look"`) != 1 || strings.Contains(list, "Another tool.") {
		t.Error(list)
	}
	if said := fmt.Sprint(w.Catalog.LeftOut(w.Catalog.Current().Server("s"))); !strings.Contains(said, "'look' is the alias of 'reads'") {
		t.Error(said)
	}
	w.SetToolsOn("s", trap) // the server has renamed its tool to the alias
	if to, p := call("s:look"); to != "" || p.Code != problem.ToolNotFound {
		t.Errorf("the call reached %q: %v", to, p)
	}
	if a := w.do(t.Context(), catalogtest.NewRequest("tools/call", `{"name":"s__look","arguments":{}}`)); code(a) != problem.InvalidName {
		t.Error(code(a))
	}
	if said := fmt.Sprint(w.Catalog.LeftOut(w.Catalog.Current().Server("s"))); !strings.Contains(said, "'look' is the alias of 'reads'") || !strings.Contains(said, "settings for 'reads', which the server does not list") {
		t.Error(said)
	}
	if _, err := g.GatedEndpoint("s").Do(t.Context(), catalogtest.NewRequest("tools/call", `{"name":"look","arguments":{}}`)); err != nil {
		t.Errorf("the server's own address hides its tool: %v", err)
	}
	w.Reload(func(c *config.Config) { c.Servers[0].ToolSettings = nil })
	if to, p := call("s:look"); to != "look" {
		t.Errorf("the call reached %q: %v", to, p)
	}
}

// TestAliasInScope checks that a scope names tools by the server's names, and that an alias does not reveal a tool
// outside the scope.
func TestAliasInScope(t *testing.T) {
	w := newWorld(t, withAlias("destroys", "list_all"), readsTool, destroysTool)
	call := func(c auth.Caller, name string) problem.Code {
		_, err := w.gate.Call(t.Context(), LaneCall{CallTool: policy.CallToolDestructive, Name: name, Args: json.RawMessage(`{}`), Caller: c})
		if err == nil {
			return ""
		}
		return problem.From(err).Code
	}
	inside, outside := scopedCaller("destroys"), scopedCaller("list_*")
	if got := call(inside, "s:list_all"); got != "" {
		t.Error(got)
	}
	if got, unknown := call(outside, "s:list_all"), call(outside, "s:list_none"); got != unknown || got != problem.ToolNotFound {
		t.Errorf("the alias of a hidden tool gives %s, an unknown name %s", got, unknown)
	}
	if got := call(outside, "s:destroys"); got != problem.OutOfScope {
		t.Error(got)
	}
}

// TestAliasChangesDuringCalls checks that calls during reloads of the configuration reach the aliased tool or none.
func TestAliasChangesDuringCalls(t *testing.T) {
	w := newWorld(t, withAlias("reads", "look"), readsTool, destroysTool)
	var calls sync.WaitGroup
	var mu sync.Mutex
	got := map[string]int{}
	for range 4 {
		calls.Go(func() {
			for range 200 {
				_, err := w.gate.Call(t.Context(), LaneCall{CallTool: policy.CallToolRead, Name: "s:look", Args: json.RawMessage(`{"n":1}`), Caller: anAgent})
				code := "sent"
				if err != nil {
					code = string(problem.From(err).Code)
				}
				mu.Lock()
				got[code]++
				mu.Unlock()
			}
		})
	}
	for i := range 200 {
		w.Reload(func(c *config.Config) {
			c.Servers[0].ToolSettings = nil
			if i%2 == 1 {
				c.Servers[0].ToolSettings = []config.ToolSettings{{Tool: "reads", Alias: "look"}}
			}
		})
	}
	calls.Wait()
	for _, r := range w.Begun {
		if r.ToolName != "reads" {
			t.Fatalf("a call reached %s", r.ToolName)
		}
	}
	if got["sent"]+got[string(problem.ToolNotFound)] != 800 {
		t.Error(got)
	}
}
