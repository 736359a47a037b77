package ops

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/problem"
)

const (
	silentDelete   = `{"name":"delete_note","description":"Deletes a note","inputSchema":{"type":"object"}}`
	adminSilentGet = `{"name":"get_note","description":"Gets a note","inputSchema":{"type":"object"}}`
	silentOther    = `{"name":"note","description":"Works on a note","inputSchema":{"type":"object"}}`
)

// Inferred hints are shown, reported in warnings or enforced, as configured. Search, views and calls agree.
func TestInferHints(t *testing.T) {
	type call struct {
		variant  policy.CallToolVariant
		tool     string
		code     problem.Code
		warnings int
	}
	read, write, destructive := policy.CallToolRead, policy.CallToolWrite, policy.CallToolDestructive
	for mode, c := range map[policy.InferMode]struct {
		inferred, with map[string]string // inferred operation and required variant, by tool
		calls          []call
	}{
		policy.InferOff: {
			map[string]string{}, map[string]string{"s:delete_note": "call_tool_write", "s:get_note": "call_tool_write", "s:note": "call_tool_write"},
			[]call{{read, "s:delete_note", "", 0}, {write, "s:delete_note", "", 0}, {read, "s:get_note", "", 0}, {write, "s:get_note", "", 0}, {read, "s:note", "", 0}},
		},
		policy.InferAdvise: {
			map[string]string{"s:delete_note": "destructive", "s:get_note": "read", "s:note": "write"},
			map[string]string{"s:delete_note": "call_tool_write", "s:get_note": "call_tool_write", "s:note": "call_tool_write"},
			[]call{{read, "s:delete_note", "", 1}, {write, "s:delete_note", "", 1}, {destructive, "s:delete_note", "", 0},
				{read, "s:get_note", "", 0}, {write, "s:get_note", "", 0}, {read, "s:note", "", 0}},
		},
		policy.InferEnforce: {
			map[string]string{"s:delete_note": "destructive", "s:get_note": "read", "s:note": "write"},
			map[string]string{"s:delete_note": "call_tool_destructive", "s:get_note": "call_tool_read", "s:note": "call_tool_write"},
			[]call{{read, "s:delete_note", problem.ServerMismatch, 0}, {write, "s:delete_note", problem.ServerMismatch, 0}, {destructive, "s:delete_note", "", 0},
				{read, "s:get_note", "", 0}, {write, "s:get_note", "", 1}, {read, "s:note", problem.ServerMismatch, 0}, {write, "s:note", "", 0}},
		},
	} {
		t.Run(string(mode), func(t *testing.T) {
			w := newAdminWorld(t, func(cfg *config.Config) { cfg.Intent.InferHints = mode }, silentDelete, adminSilentGet, silentOther)
			answer, err := w.gateway.RetrieveTools(context.Background(), RetrieveRequest{Query: "note", Caller: adminAgent})
			if err != nil {
				t.Fatal(err)
			}
			var found struct {
				Tools []struct {
					Name     string
					CallWith string  `json:"call_with"`
					Inferred *string `json:"inferred_operation"`
				}
			}
			if err := json.Unmarshal(answer, &found); err != nil || len(found.Tools) != 3 {
				t.Fatalf("%s: %v", answer, err)
			}
			for _, f := range found.Tools {
				want, ok := c.inferred[f.Name]
				if (f.Inferred != nil) != ok || ok && *f.Inferred != want || f.CallWith != c.with[f.Name] {
					t.Errorf("found %+v", f)
				}
				id, err := tool.ParseID(f.Name)
				if err != nil {
					t.Fatal(err)
				}
				view, err := w.gateway.Tool(context.Background(), Caller{}, ToolRef(id))
				if err != nil || view.InferredOperation != want || (view.InferredReason != "") != ok || view.CallWith != f.CallWith {
					t.Errorf("%s is shown as %+v, %v", f.Name, view, err)
				}
			}
			for _, k := range c.calls {
				r, p := w.call(k.variant, k.tool, `{}`)
				if p == nil && k.code != "" || p != nil && p.Code != k.code || len(r.Warnings) != k.warnings {
					t.Errorf("%s of %s: %v, warnings %q", k.variant, k.tool, p, r.Warnings)
				}
				if len(r.Warnings) == 1 && !strings.Contains(r.Warnings[0], "carries no hints and seems to") {
					t.Errorf("warned: %s", r.Warnings[0])
				}
			}
		})
	}
}

// If an override declares the operation of a tool, no hints are inferred.
func TestOverrideEndsInference(t *testing.T) {
	w := newAdminWorld(t, func(cfg *config.Config) {
		cfg.Intent.InferHints = policy.InferEnforce
		cfg.Servers[0].HintOverrides = []config.HintOverride{{Pattern: "delete_*", Hints: tool.Hints{Destructive: tool.False}}}
	}, silentDelete)
	view, err := w.gateway.Tool(context.Background(), Caller{}, ToolRef{Server: "s", Tool: "delete_note"})
	if err != nil || view.InferredOperation != "" || view.CallWith != "call_tool_write" {
		t.Errorf("%+v, %v", view, err)
	}
	if r, p := w.call(policy.CallToolRead, "s:delete_note", `{}`); p != nil || len(r.Warnings) != 0 {
		t.Errorf("%v, %q", p, r.Warnings)
	}
}

// The infer_hints setting of a server takes precedence over the global one, in decisions, views and warnings.
func TestInferHintsOfOneServer(t *testing.T) {
	type want struct {
		with string
		code problem.Code // error code of a call in the read lane
		said int          // number of its warnings
	}
	wants := map[policy.InferMode]want{
		policy.InferOff: {"call_tool_write", "", 0}, policy.InferAdvise: {"call_tool_write", "", 1}, policy.InferEnforce: {"call_tool_destructive", problem.ServerMismatch, 0},
	}
	for general := range wants {
		w := newAdminWorld(t, func(c *config.Config) { c.Intent.InferHints = general }, silentDelete)
		for own, want := range wants {
			w.Reload(func(c *config.Config) { c.Servers[0].InferHints = own })
			view, err := w.gateway.Tool(context.Background(), Caller{}, ToolRef{Server: "s", Tool: "delete_note"})
			r, p := w.call(policy.CallToolRead, "s:delete_note", `{}`)
			if err != nil || view.CallWith != want.with || len(r.Warnings) != want.said || want.code == "" && p != nil || want.code != "" && (p == nil || p.Code != want.code) {
				t.Errorf("%s, of the server %s: %+v, %v, %v, %q", general, own, view, err, p, r.Warnings)
			}
			if p != nil && p.Detail("source") != "inference" {
				t.Errorf("%s, of the server %s: %v", general, own, p.Detail("source"))
			}
		}
	}
}

// If inferred hints are enforced for one server only, a change that relaxes them waits for approval only for that
// server.
func TestLoosenedInferenceOfOneServer(t *testing.T) {
	for own, want := range map[policy.InferMode]string{policy.InferEnforce: "pending_approval", policy.InferOff: "callable", "": "callable"} {
		w := newAdminWorld(t, func(c *config.Config) { c.Servers[0].InferHints, c.Intent.InferHints = own, policy.InferAdvise })
		w.SetToolsOn("s", `{"name":"note","description":"Permanently deletes all notes"}`)
		w.SetToolsOn("s", `{"name":"note","description":"Gets a note"}`)
		if s := w.status("s:note"); s != want {
			t.Errorf("%q: %s, want %s", own, s, want)
		}
	}
}

// A refusal names the source of the deciding hint: the server, the user's override, or MCPProxy's inference.
func TestRefusalNamesTheHintSource(t *testing.T) {
	for _, c := range []struct {
		name, definition, source string
		override                 tool.Hints
		infers                   policy.InferMode
	}{
		{"server", `{"name":"note","annotations":{"readOnlyHint":false}}`, "server", tool.Hints{}, policy.InferEnforce},
		{"server, destructive", `{"name":"note","annotations":{"destructiveHint":true}}`, "server", tool.Hints{OpenWorld: tool.True}, policy.InferEnforce},
		{"override", `{"name":"note","annotations":{"readOnlyHint":true}}`, "override", tool.Hints{ReadOnly: tool.False}, policy.InferEnforce},
		{"override, destructive", `{"name":"note"}`, "override", tool.Hints{Destructive: tool.True}, policy.InferAdvise},
		{"inference", silentOther, "inference", tool.Hints{}, policy.InferEnforce},
		{"inference, destructive", `{"name":"note","description":"Permanently deletes all notes"}`, "inference", tool.Hints{}, policy.InferEnforce},
	} {
		w := newAdminWorld(t, func(cfg *config.Config) {
			cfg.Intent.InferHints = c.infers
			cfg.Servers[0].HintOverrides = []config.HintOverride{{Pattern: "note", Hints: c.override}}
		}, c.definition)
		_, p := w.call(policy.CallToolRead, "s:note", `{}`)
		if p == nil || p.Code != problem.ServerMismatch || p.Detail("source") != c.source {
			t.Errorf("%s: %+v", c.name, p)
			continue
		}
		variant, _ := policy.ParseCallToolName(p.Detail("call_with").(string))
		if _, p := w.call(variant, "s:note", `{}`); p != nil {
			t.Errorf("%s: with %s: %v", c.name, variant, p)
		}
	}
}

// If inferred hints are enforced, a changed description that relaxes them waits for approval like a change of declared
// hints.
func TestLoosenedInferenceIsHeld(t *testing.T) {
	const purges, purgesMore, gets = `{"name":"note","description":"Permanently deletes all notes"}`,
		`{"name":"note","description":"Permanently deletes all notes, and folders"}`, `{"name":"note","description":"Gets a note"}`
	for mode, want := range map[policy.InferMode]string{policy.InferEnforce: "pending_approval", policy.InferAdvise: "callable"} {
		w := newAdminWorld(t, func(c *config.Config) { c.Intent.InferHints = mode })
		w.SetToolsOn("s", purges)
		w.SetToolsOn("s", purgesMore)
		if s := w.status("s:note"); s != "callable" {
			t.Errorf("%s: after a change that relaxes no hint: %s", mode, s)
		}
		w.SetToolsOn("s", gets)
		if s := w.status("s:note"); s != want {
			t.Errorf("%s: %s, want %s", mode, s, want)
		}
		w.approve("s:note")
		if s := w.status("s:note"); s != "callable" {
			t.Errorf("%s: after the approval: %s", mode, s)
		}
		w.SetToolsOn("s", purges)
		w.SetToolsOn("s", gets)
		if s := w.status("s:note"); s != want {
			t.Errorf("%s: after the hint was relaxed again: %s, want %s", mode, s, want)
		}
	}
}
