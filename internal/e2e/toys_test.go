package e2e

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// The sample servers are ordinary configured servers that this binary runs. Adding them twice changes nothing, and a
// user's server with the same name stays.
func TestSampleServers(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, `{"mcpServers": {}}`)
	add := func() (status int, added []string, code string) {
		t.Helper()
		status, body := d.rest(http.MethodPost, "/demo", "")
		var answer struct {
			Added []string
			Code  string
		}
		if err := json.Unmarshal(body, &answer); err != nil {
			t.Fatalf("%d %s", status, body)
		}
		return status, answer.Added, answer.Code
	}
	if status, added, _ := add(); status != http.StatusOK || !slices.Equal(added, []string{"notes", "weather", "shifty"}) {
		t.Fatalf("%d %v", status, added)
	}
	d.awaitTools("notes:list_notes", "weather:get_forecast", "shifty:add_numbers")
	for _, c := range []struct{ variant, tool, args, want string }{
		{"tool-read", "notes:list_notes", `{}`, "groceries"},
		{"tool-read", "weather:get_forecast", `{"city": "Lisbon"}`, "Invented weather for Lisbon"},
		{"tool-read", "shifty:add_numbers", `{"a": 1, "b": 2}`, "3"},
	} {
		if code, stdout, stderr := d.cli("call", c.variant, c.tool, "--args", c.args); code != 0 || !strings.Contains(stdout, c.want) {
			t.Errorf("%s: %d %s %s", c.tool, code, stdout, stderr)
		}
	}
	if status, added, _ := add(); status != http.StatusOK || len(added) != 0 {
		t.Errorf("the second time: %d %v", status, added)
	}
	if code, stdout, _ := d.cli("activity", "list", "--type", "config_change", "-o", "json"); code != 0 || strings.Count(stdout, `"add_server"`) != 3 {
		t.Errorf("records: %s", stdout)
	}

	for _, line := range []string{"upstream remove weather --yes", "upstream add weather -- " + binary + " demo-upstream notes"} {
		if code, _, stderr := d.cli(strings.Fields(line)...); code != 0 {
			t.Fatalf("%s: %s", line, stderr)
		}
	}
	before := d.readConfig()
	if status, _, code := add(); status != http.StatusConflict || code != "CONFLICT" {
		t.Errorf("with a server of the same name: %d %s", status, code)
	}
	if d.readConfig() != before {
		t.Errorf("the configuration was changed:\n%s", d.readConfig())
	}
}
