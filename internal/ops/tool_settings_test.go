package ops

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"mcpproxy/internal/config"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/testutil/catalogtest"
)

func namesOf(a catalogtest.RetrieveResult) (names []string) {
	for _, f := range a.Tools {
		names = append(names, strings.TrimPrefix(f.Name, "s:"))
	}
	return names
}

func withSettings(settings ...config.ToolSettings) func(*config.Config) {
	return func(c *config.Config) { c.Servers[0].ToolSettings = settings }
}

// TestSearchShowsTheUsersNames checks that search finds and shows a tool by the user's name and text, also after the
// configuration has changed.
func TestSearchShowsTheUsersNames(t *testing.T) {
	const create = `{"name":"create_issue","description":"Create an issue.","inputSchema":{"type":"object","properties":{"title":{"type":"string"}}}}`
	w := newWorld(t, nil, create, silentGet)
	first := func(query string) catalogtest.RetrievedTool {
		a, _ := w.answer(RetrieveRequest{Query: query})
		if len(a.Tools) == 0 {
			return catalogtest.RetrievedTool{}
		}
		return a.Tools[0]
	}
	_, before := w.answer(RetrieveRequest{Query: "create issue"})
	w.Reload(withSettings(config.ToolSettings{Tool: "create_issue", Alias: "report_bug", Description: "File a defect with the platform team."}))
	for _, query := range []string{"s:report_bug", "report_bug", "reporting a bug", "defect platform", "create_issue", "s:create_issue"} {
		if f := first(query); f.Name != "s:report_bug" || f.Description != "File a defect with the platform team." {
			t.Errorf("%s: %+v", query, f)
		}
	}
	w.Reload(withSettings(config.ToolSettings{Tool: "create_issue", AddDescription: "Only for the zebra project."}))
	if f := first("zebra"); f.Name != "s:create_issue" || f.Description != "Create an issue.\n\nOnly for the zebra project." {
		t.Errorf("%+v", f)
	}
	if f := first("defect platform"); strings.Contains(f.Description, "platform") {
		t.Errorf("the former text is still found: %+v", f)
	}
	w.Reload(withSettings())
	if _, after := w.answer(RetrieveRequest{Query: "create issue"}); string(after) != string(before) {
		t.Errorf("without settings the answer differs:\n%s\n%s", before, after)
	}
	w.Reload(func(c *config.Config) {
		c.Servers[0].DisabledTools = []string{"create_issue"}
		c.Servers[0].ToolSettings = []config.ToolSettings{{Tool: "create_issue", Alias: "report_bug"}}
	})
	if a, _ := w.answer(RetrieveRequest{Query: "bug", IncludeDisabled: true}); len(a.Disabled) != 1 || a.Disabled[0].Name != "s:report_bug" {
		t.Errorf("%+v", a)
	}
}

// TestAlwaysToolsComeFirst checks that each answer begins with the tools that are always listed, within the filters of
// the caller, and that they take no place of a match.
func TestAlwaysToolsComeFirst(t *testing.T) {
	w := newWorld(t, nil, silentWipe, silentGet, silentNote, readsNote, `{"name":"weather","description":"Forecast."}`)
	plain, _ := w.answer(RetrieveRequest{Query: "note", Limit: 2})
	w.Reload(withSettings(config.ToolSettings{Tool: "weather", Always: true}, config.ToolSettings{Tool: "gone", Always: true}))
	a, _ := w.answer(RetrieveRequest{Query: "note", Limit: 2})
	if got, want := namesOf(a), append([]string{"weather"}, namesOf(plain)...); !slices.Equal(got, want) || a.Total != plain.Total || a.Tools[0].Score != 0 || a.Tools[0].Signature == "" || a.Tools[1].InputSchema != nil != (plain.Tools[0].InputSchema != nil) {
		t.Errorf("%v, want %v; %+v", got, want, a.Tools[0])
	}
	if a, _ := w.answer(RetrieveRequest{Query: "forecast", Limit: 1}); fmt.Sprint(namesOf(a)) != "[weather]" || a.Tools[0].Score == 0 {
		t.Errorf("%+v", a.Tools)
	}
	if a, _ := w.answer(RetrieveRequest{Query: "zzzz"}); fmt.Sprint(namesOf(a)) != "[weather]" || a.Total != 0 || !strings.Contains(a.Notice, "Nothing matches") {
		t.Errorf("%+v", a)
	}
	if a, _ := w.answer(RetrieveRequest{Query: "note", Operation: policy.Destructive}); slices.Contains(namesOf(a), "weather") {
		t.Error(namesOf(a))
	}
	hidden := anAgent
	hidden.Bounds = toolBounds{"*_note"}
	raw, err := w.gateway.RetrieveTools(context.Background(), RetrieveRequest{Query: "note", Caller: hidden})
	if err != nil || strings.Contains(string(raw), "weather") {
		t.Errorf("%s %v", raw, err)
	}
	w.Reload(func(c *config.Config) { c.Servers[0].DisabledTools = []string{"weather"} })
	if a, _ := w.answer(RetrieveRequest{Query: "note"}); slices.Contains(namesOf(a), "weather") {
		t.Error(namesOf(a))
	}
}

// toolBounds limits a caller to tools of server s.
type toolBounds []string

func (b toolBounds) Scope() auth.Scope {
	return policy.NewScope(policy.NewScopeRule(policy.ScopeLimits{Tools: []policy.ScopeTools{{Server: "s", Patterns: b}}}))
}

// TestAlwaysToolsAreNeverDropped checks the guarantee for the largest permitted number of tools with the longest names
// and large definitions, at the smallest discovery_limit that the configuration permits.
func TestAlwaysToolsAreNeverDropped(t *testing.T) {
	var definitions []string
	var settings []config.ToolSettings
	for i := range 40 {
		name := fmt.Sprintf("thing_%d_", i)
		name += strings.Repeat("x", 256-len(name))
		definitions = append(definitions, fmt.Sprintf(`{"name":%q,"description":%q,"inputSchema":%s}`, name, strings.Repeat(`a "quoted" thing, `, 2000), schemaOf(20_000)))
		if i < config.MaxAlwaysTools {
			settings = append(settings, config.ToolSettings{Tool: name, Always: true})
		}
	}
	names := []string{}
	for i := range 100 {
		names = append(names, fmt.Sprintf("away-thing-%d", i))
	}
	w := newWorld(t, func(c *config.Config) { withServers(c, names...); withSettings(settings...)(c) }, definitions...)
	for _, size := range []int{25_000, 40_000} {
		w.Reload(func(c *config.Config) { c.DiscoveryLimit = size })
		for _, query := range []string{"", "thing", "zzzz", strings.Repeat("\x01", 20_000)} {
			for _, limit := range []int{1, 10, 100} {
				for _, detail := range []config.ToolDetailLevel{config.Auto, config.Full, config.Compact} {
					for _, disabled := range []bool{false, true} {
						a, _ := w.answer(RetrieveRequest{Query: query, Limit: limit, Detail: detail, IncludeDisabled: disabled})
						if len(a.Tools) < len(settings) {
							t.Errorf("%.10q, limit %d, %d bytes, %s: %d tools", query, limit, size, detail, len(a.Tools))
							continue
						}
						for _, f := range a.Tools[:len(settings)] {
							if !slices.ContainsFunc(settings, func(s config.ToolSettings) bool { return f.Name == "s:"+s.Tool }) {
								t.Errorf("%.10q, limit %d, %d bytes, %s: %.20s is among the first", query, limit, size, detail, f.Name)
							}
						}
					}
				}
			}
		}
	}
}

// TestChangeTool checks that a user can set and remove settings, and that the view marks the user's texts.
func TestChangeTool(t *testing.T) {
	w := newAdminWorld(t, nil, silentGet, silentNote)
	change := func(name, key, value string) (ToolView, *problem.Problem) {
		one := config.ToolSettingChange{Key: key}
		if value != "" {
			one.Value = json.RawMessage(value)
		}
		v, err := w.gateway.ChangeTool(t.Context(), adminPerson, ToolChange{ToolRef{"s", name}, []config.ToolSettingChange{one}})
		return v, problem.From(err)
	}
	v, p := change("get_note", "description", `"Mine."`)
	if p != nil || v.Description != "Mine." || v.DeclaredDescription != "Gets a note." || v.Settings == nil || v.Settings.Description != "Mine." || v.Name != "s:get_note" {
		t.Errorf("%+v %v", v, p)
	}
	if v.Trust.Reason != "" {
		t.Errorf("the user's text changed the approval: %+v", v.Trust)
	}
	if r := w.Begun[len(w.Begun)-1]; r.Metadata.Action != "set_tool" || r.ToolName != "get_note" || r.Metadata.Detail != "description" {
		t.Errorf("%+v", r)
	}
	if _, p := change("get_note", "alias", `"note"`); p == nil || p.Code != problem.Conflict {
		t.Error(p)
	}
	if _, p := change("none", "alias", `"x"`); p == nil || p.Code != problem.ToolNotFound {
		t.Error(p)
	}
	if v, p := change("get_note", "alias", `"fetch"`); p != nil || v.Settings.Alias != "fetch" {
		t.Errorf("%+v %v", v, p)
	}
	w.SetTools(silentNote)
	if _, p := change("get_note", "alias", ""); p != nil {
		t.Errorf("settings of a tool that is gone cannot be removed: %v", p)
	}
	if _, err := w.gateway.ChangeTool(t.Context(), adminAgent, ToolChange{ToolRef{"s", "note"}, []config.ToolSettingChange{{Key: "always", Value: json.RawMessage("true")}}}); problem.From(err).Code != problem.Forbidden {
		t.Error(err)
	}
}
