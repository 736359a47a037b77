package e2e

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"

	"mcpproxy/internal/testutil/mcptest"
)

// claudeEntry is one server entry in Claude Code's file.
type claudeEntry struct {
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
}

// claudeEntries reads the server entries of Claude Code.
func (d *daemon) claudeEntries(path string) map[string]claudeEntry {
	d.t.Helper()
	text, err := os.ReadFile(path)
	var file struct {
		McpServers map[string]claudeEntry `json:"mcpServers"`
	}
	if err == nil {
		err = json.Unmarshal(text, &file)
	}
	if err != nil {
		d.t.Fatal(err)
	}
	return file.McpServers
}

// mustRun runs a command that must succeed, and returns its output.
func (d *daemon) mustRun(args ...string) string {
	d.t.Helper()
	code, out, notes := d.cli(args...)
	if code != 0 {
		d.t.Fatalf("%v: %d\n%s%s", args, code, out, notes)
	}
	return out + notes
}

// TestTheLanesOfAClientAreReached: Claude Code is connected with lanes and a token. Each URL in its file accepts the
// token in its entry, lists the tools of its lane and calls them. The token survives a change of the surface, and all
// of this can be undone.
func TestTheLanesOfAClientAreReached(t *testing.T) {
	t.Parallel()
	define := func(name, hints string) mcptest.Tool {
		return mcptest.Tool{Definition: `{"name":"` + name + `","inputSchema":{"type":"object"},"annotations":{` + hints + `}}`}
	}
	upstream := mcptest.Serve(t, mcptest.New(mcptest.Options{}, define("look", `"readOnlyHint":true`), define("change", `"readOnlyHint":false,"destructiveHint":false`),
		define("wipe", `"readOnlyHint":false,"destructiveHint":true`)))
	d := startDaemon(t, fmt.Sprintf(`{"require_mcp_auth":true,"mcpServers":{"s":{"url":%q}}}`, upstream.URL), "PATH=/nowhere")
	d.awaitTools("s:look", "s:change", "s:wipe")
	const before = "{\n  \"numStartups\": 3,\n  \"mcpServers\": {\"mine\": {\"type\": \"stdio\", \"command\": \"true\"}}\n}\n"
	path := d.inHome(".claude.json", before)
	if said := d.mustRun("connect", "claude-code", "--token", "cc", "--yes"); !strings.Contains(said, "surface lanes") {
		t.Error(said)
	}
	reach := func(e claudeEntry, tool, call string) {
		t.Helper()
		at, err := url.Parse(e.URL)
		token := strings.TrimPrefix(e.Headers["Authorization"], "Bearer ")
		if err != nil || at.Host != d.address || !strings.HasPrefix(token, "mcpp_t_") {
			t.Fatalf("%+v, %v", e, err)
		}
		a := &scopeActor{}
		for _, modern := range []bool{false, true} {
			sessions := map[string]string{}
			if status, text := a.ask(t, d, sessions, token, at.Path, "tools/list", "{}", modern); status != 200 || strings.Count(string(text), `"inputSchema"`) < 1 || !strings.Contains(string(text), `"`+tool+`"`) {
				t.Errorf("%s modern %v: %d %s", at.Path, modern, status, text)
			}
			if status, text := a.ask(t, d, sessions, token, at.Path, "tools/call", call, modern); status != 200 || strings.Contains(string(text), `"isError":true`) || !strings.Contains(string(text), `"content"`) {
				t.Errorf("%s modern %v: %d %s", at.Path, modern, status, text)
			}
		}
		if status, _ := a.ask(t, d, nil, "", at.Path, "tools/list", "{}", true); status != 401 {
			t.Errorf("%s without the token: %d", at.Path, status)
		}
	}
	entries := d.claudeEntries(path)
	for name, tool := range map[string]string{"mcpproxy-read": "s__look", "mcpproxy-write": "s__change", "mcpproxy-destr": "s__wipe"} {
		reach(entries[name], tool, `{"name":"`+tool+`","arguments":{}}`)
	}
	if len(entries) != 4 {
		t.Errorf("%v", entries)
	}
	if said := d.mustRun("permissions", "claude-code", "--check"); !strings.Contains(said, "✓ mcpproxy-read:* runs without asking") || strings.Count(said, "✓") != 3 {
		t.Error(said)
	}
	lanes, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	d.mustRun("connect", "claude-code", "--surface", "search", "--yes")
	entries = d.claudeEntries(path)
	reach(entries["mcpproxy"], "retrieve_tools", `{"name":"call_tool_destructive","arguments":{"name":"s:wipe","args":{},"intent_operation_type":"destructive"}}`)
	if said := d.mustRun("permissions", "claude-code", "--check"); len(entries) != 2 || !strings.Contains(said, "✓ call_tool_read runs without asking") {
		t.Errorf("%v %s", entries, said)
	}
	if said := d.mustRun("clients", "list"); !strings.Contains(strings.Join(strings.Fields(said), " "), "claude-code connected search mcpproxy") {
		t.Error(said)
	}
	d.mustRun("connect", "claude-code", "--undo")
	if now, err := os.ReadFile(path); err != nil || string(now) != string(lanes) {
		t.Errorf("after undoing the change of the surface: %s, %v", now, err)
	}
	d.mustRun("permissions", "claude-code", "--check")

	status, body := d.rest("POST", "/clients/claude-code/connect", `{"dry_run":true,"surface":"search"}`)
	if status != 200 || !strings.Contains(string(body), `"surface":"search"`) || !strings.Contains(string(body), "mcp__mcpproxy__retrieve_tools") {
		t.Errorf("%d %s", status, body)
	}
	if status, body := d.rest("POST", "/clients/claude-code/connect", `{"dry_run":true,"surface":"both"}`); status != 400 {
		t.Errorf("%d %s", status, body)
	}
	if _, body := d.rest("GET", "/clients", ""); !strings.Contains(string(body), `"servers":["mcpproxy-read","mcpproxy-write","mcpproxy-destr"],"surface":"lanes"`) {
		t.Errorf("%s", body)
	}
	d.mustRun("disconnect", "claude-code", "--yes")
	if now, err := os.ReadFile(path); err != nil || string(now) != before {
		t.Errorf("after the disconnect: %s, %v", now, err)
	}
	if left, err := os.ReadFile(d.dir + "/.claude/settings.json"); err == nil {
		t.Errorf("remaining rules: %s", left)
	}
}
