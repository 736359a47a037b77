package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcpproxy/internal/testutil/mcptest"
)

// TestPauseSurvivesRestart checks that MCPProxy rejects calls on all surfaces while calls are paused, also after a kill
// and while the stored state is damaged. Search and lists work and report the pause. The log contains who paused and
// why.
func TestPauseSurvivesRestart(t *testing.T) {
	t.Parallel()
	world := &counted{}
	world.add("look", `{"readOnlyHint":true}`, `{"type":"object"}`)
	u := mcptest.Serve(t, mcptest.New(mcptest.Options{}, world.tool...))
	d := startDaemon(t, fmt.Sprintf(`{"mcpServers":{"s":{"url":%q,"trust":"auto"}}}`, u.URL))
	d.awaitTools("s:look")
	if code, out, notes := d.cli("pause", "--reason", "the wrong files are deleted"); code != 0 || !strings.Contains(out, "MCPProxy rejects every call until you run `mcpproxy resume`") {
		t.Fatalf("%d %s%s", code, out, notes)
	}
	refused := func(when string) {
		t.Helper()
		d.awaitTools("s:look")
		for surface, got := range map[string]string{
			"/mcp":     d.stateless().call("call_tool_read", `{"name":"s:look"}`).text(),
			"/mcp/all": (&agent{d: d, client: http.DefaultClient, modern: true, path: "/mcp/all"}).call("s__look", `{}`).text(),
			"a lane":   (&agent{d: d, client: http.DefaultClient, modern: true, path: "/mcp/all/read"}).call("s__look", `{}`).text(),
			"direct":   (&agent{d: d, client: http.DefaultClient, modern: true, path: "/mcp/servers/s"}).call("look", `{}`).text(),
			"legacy":   d.legacy().call("call_tool_destructive", `{"name":"s:look"}`).text(),
		} {
			if !strings.Contains(got, "paused") {
				t.Errorf("%s, %s: %s", when, surface, got)
			}
		}
		if status, body := d.rest("POST", "/tools/call", `{"tool_variant":"call_tool_read","name":"s:look"}`); status != http.StatusServiceUnavailable || !strings.Contains(string(body), "CALLS_PAUSED") {
			t.Errorf("%s, REST: %d %s", when, status, body)
		}
		if code, _, notes := d.cli("call", "tool-read", "s:look"); code != 3 || !strings.Contains(notes, "paused") {
			t.Errorf("%s, CLI: %d %s", when, code, notes)
		}
	}
	refused("paused")
	if found := d.stateless().call("retrieve_tools", `{"query":"look"}`).text(); !strings.Contains(found, `"s:look"`) || !strings.Contains(found, "the wrong files are deleted") {
		t.Error(found)
	}
	if list := d.stateless().call("upstream_servers", `{"operation":"list"}`).text(); !strings.Contains(list, "Calls are paused") {
		t.Error(list)
	}
	if _, out, _ := d.cli("status"); !strings.Contains(out, "All calls are paused by admin") || !strings.Contains(out, "the wrong files are deleted") {
		t.Error(out)
	}
	if _, out, _ := d.cli("doctor", "-o", "json"); !strings.Contains(out, `"D108"`) || !strings.Contains(out, "the wrong files are deleted") {
		t.Error(out)
	}
	if _, out, _ := d.cli("upstream", "list"); !strings.Contains(out, "s ") {
		t.Error(out)
	}
	d.kill()
	d.start()
	refused("after a kill")
	d.stop()
	if err := os.WriteFile(filepath.Join(d.dataDir(), "pause.json"), []byte(`{"pau`), 0o600); err != nil {
		t.Fatal(err)
	}
	d.start()
	d.awaitTools("s:look")
	if got := d.stateless().call("call_tool_read", `{"name":"s:look"}`).text(); !strings.Contains(got, "cannot read whether calls are paused") {
		t.Errorf("a damaged file: %s", got)
	}
	if ran := world.all(); len(ran) != 0 {
		t.Errorf("calls passed: %q", ran)
	}
	if code, out, notes := d.cli("resume"); code != 0 || out != "Calls are allowed again.\n" {
		t.Errorf("%d %s%s", code, out, notes)
	}
	if got := d.stateless().call("call_tool_read", `{"name":"s:look"}`).text(); got != "it ran" {
		t.Error(got)
	}
	for _, want := range []string{`"action":"pause","detail":"the wrong files are deleted"`, `"action":"resume"`} {
		eventually(t, want+" is on record", func() error {
			if _, body := d.rest("GET", "/activity?type=system", ""); !strings.Contains(string(body), want) {
				return fmt.Errorf("%s", body)
			}
			return nil
		})
	}
	var page struct{ Total int }
	if _, body := d.rest("GET", "/activity?type=policy_decision&q=paused", ""); json.Unmarshal(body, &page) != nil || page.Total == 0 {
		t.Errorf("refused calls on record: %s", body)
	}
}
