package catalog

import (
	"testing"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/classify"
	"mcpproxy/internal/gate/policy"
)

// infers applies a configuration with this mode of infer_hints.
func (c *Catalog) infers(t *testing.T, mode policy.InferMode) {
	t.Helper()
	commit, err := c.PrepareConfig(&config.Config{Servers: c.servers, Intent: policy.Rules{InferHints: mode}})
	if err != nil {
		t.Fatal(err)
	}
	commit()
}

// TestInferredHints checks that inferred hints apply to tools for which neither the server nor an override declares
// hints, as soon as the configuration enables them.
func TestInferredHints(t *testing.T) {
	server := enabled("s")
	server.HintOverrides = []config.HintOverride{
		{Pattern: "delete_draft", Hints: tool.Hints{Destructive: tool.False}},
		{Pattern: "delete_world", Hints: tool.Hints{OpenWorld: tool.True}},
	}
	c := start(t, newMemory(), server)
	c.list("s", []*tool.Definition{
		define(t, "s", `{"name":"get_user"}`),
		define(t, "s", `{"name":"create_user"}`),
		define(t, "s", `{"name":"delete_user"}`),
		define(t, "s", `{"name":"delete_world"}`), // the override does not declare its operation
		define(t, "s", `{"name":"delete_draft"}`), // the override declares it
		define(t, "s", `{"name":"delete_nothing","annotations":{"readOnlyHint":true}}`),
		define(t, "s", `{"name":"delete_old","annotations":{"destructiveHint":false}}`),
		define(t, "s", `{"name":"delete_idempotent","annotations":{"idempotentHint":true}}`),
	})
	type is struct {
		inferred policy.Operation
		with     policy.CallToolVariant
	}
	off := map[string]is{
		"get_user": {0, policy.CallToolWrite}, "create_user": {0, policy.CallToolWrite}, "delete_user": {0, policy.CallToolWrite},
		"delete_world": {0, policy.CallToolWrite}, "delete_draft": {0, policy.CallToolWrite}, "delete_nothing": {0, policy.CallToolRead},
		"delete_old": {0, policy.CallToolWrite}, "delete_idempotent": {0, policy.CallToolWrite},
	}
	advise := map[string]is{
		"get_user": {policy.Read, policy.CallToolWrite}, "create_user": {policy.Write, policy.CallToolWrite},
		"delete_user": {policy.Destructive, policy.CallToolWrite}, "delete_world": {policy.Destructive, policy.CallToolWrite},
		"delete_draft": {0, policy.CallToolWrite}, "delete_nothing": {0, policy.CallToolRead}, "delete_old": {0, policy.CallToolWrite},
		"delete_idempotent": {policy.Destructive, policy.CallToolWrite},
	}
	enforce := map[string]is{
		"get_user": {policy.Read, policy.CallToolRead}, "create_user": {policy.Write, policy.CallToolWrite},
		"delete_user": {policy.Destructive, policy.CallToolDestructive}, "delete_world": {policy.Destructive, policy.CallToolDestructive},
		"delete_draft": {0, policy.CallToolWrite}, "delete_nothing": {0, policy.CallToolRead}, "delete_old": {0, policy.CallToolWrite},
		"delete_idempotent": {policy.Destructive, policy.CallToolDestructive},
	}
	for _, step := range []struct {
		mode policy.InferMode
		want map[string]is
	}{{policy.InferOff, off}, {policy.InferAdvise, advise}, {policy.InferEnforce, enforce}, {"", enforce}, {policy.InferAdvise, advise}, {policy.InferOff, off}} {
		c.infers(t, step.mode)
		for name, want := range step.want {
			got := c.Current().Tool(tool.ID{Server: "s", Tool: name})
			in := got.InferredOperation()
			if in.Operation != want.inferred || got.CallWith != want.with || (in == classify.Inference{}) != (want.inferred == 0) {
				t.Errorf("%s, %q: inferred %+v, %v, want %+v", name, step.mode, in, got.CallWith, want)
			}
			if got.CallWith != policy.CallToolForHints(got.Effective) {
				t.Errorf("%s: %v does not follow from %+v", name, got.CallWith, got.Effective)
			}
		}
	}
	if h := c.Current().Tool(tool.ID{Server: "s", Tool: "delete_world"}).Effective; h.OpenWorld != tool.True || h.Destructive != tool.Unset {
		t.Errorf("inferred hints remain after inference is switched off: %+v", h)
	}
}
