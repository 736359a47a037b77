package ops

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/policy"
)

// The status describes the benefit of enforcing inferred hints, unless the user has already chosen.
func TestUnhinted(t *testing.T) {
	tools := []string{`{"name":"get_note"}`, `{"name":"list_notes"}`, `{"name":"delete_note"}`, `{"name":"note"}`, readsTool, destroysTool, `{"name":"get_off"}`}
	for _, c := range []struct {
		name   string
		change func(*config.Config)
		tools  []string
		want   *Unhinted
	}{
		{"advised", func(*config.Config) {}, tools, &Unhinted{"s", 4, 2}},
		{"enforced for all", func(c *config.Config) { c.Intent.InferHints = policy.InferEnforce }, tools, nil},
		{"off for all", func(c *config.Config) { c.Intent.InferHints = policy.InferOff }, tools, nil},
		{"chosen for the server", func(c *config.Config) { c.Servers[0].InferHints = policy.InferAdvise }, tools, nil},
		{"nothing reads", func(*config.Config) {}, tools[2:6], nil},
		{"an override says it", func(c *config.Config) {
			c.Servers[0].HintOverrides = []config.HintOverride{{Pattern: "get_*", Hints: tool.Hints{ReadOnly: tool.True}}}
		}, tools, &Unhinted{"s", 3, 1}},
	} {
		w := newWorld(t, func(cfg *config.Config) {
			cfg.Servers[0].DisabledTools = []string{"*_off"} // locks tools, but not because of hints
			c.change(cfg)
		}, c.tools...)
		server, err := w.gateway.Server(context.Background(), person, ServerRef{Name: "s"})
		list := listServersWithUnhintedTools(w.Catalog.Current().Servers(), w.Config())
		if err != nil || (server.Unhinted == nil) != (c.want == nil) || c.want != nil && *server.Unhinted != *c.want {
			t.Errorf("%s: %+v, %v", c.name, server.Unhinted, err)
		}
		if c.want == nil && list != nil || c.want != nil && !slices.Equal(list, []Unhinted{*c.want}) {
			t.Errorf("%s: %+v", c.name, list)
		}
	}
}

// A tool that its server lists only for clients counts as not callable, with the reason.
func TestToolsForClientsAreNotCallable(t *testing.T) {
	w := newWorld(t, nil)
	var tools []*tool.Definition
	for _, raw := range []string{readsTool, destroysTool} {
		d, err := tool.ParseDefinition("s", json.RawMessage(raw))
		if err != nil {
			t.Fatal(err)
		}
		tools = append(tools, &d)
	}
	tools[1].ForClients = true
	w.Catalog.ToolsListed("s", tools)
	w.Catalog.Publish()
	server, err := w.gateway.Server(context.Background(), person, ServerRef{Name: "s"})
	if raw, _ := json.Marshal(server.Tools); err != nil || string(raw) != `{"callable":1,"for_clients":1}` || server.ToolCount != 2 {
		t.Errorf("%s of %d, %v", raw, server.ToolCount, err)
	}
	if usable, _ := w.gateway.UsableServers(&anAgent); usable[0].Tools != 1 {
		t.Errorf("%+v", usable)
	}
	var again Counts
	if raw, _ := json.Marshal(server.Tools); json.Unmarshal(raw, &again) != nil || again != *server.Tools {
		t.Errorf("%v decoded from JSON is %v", server.Tools, again)
	}
	view, err := w.gateway.Tool(context.Background(), Caller{}, ToolRef{Server: "s", Tool: "destroys"})
	if err != nil || view.Status != ForClients {
		t.Errorf("%+v, %v", view, err)
	}
	w.Reload(func(c *config.Config) { c.Servers[0].DisabledTools = []string{"destroys"} }) // a lock takes precedence
	if view, err := w.gateway.Tool(context.Background(), Caller{}, ToolRef{Server: "s", Tool: "destroys"}); err != nil || view.Status != "disabled_by_config" {
		t.Errorf("%+v, %v", view, err)
	}
}
