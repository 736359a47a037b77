package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// All endpoints report the same status for tools that cannot be called, for a test server and for one from npm.
func TestLocksAgreeEverywhere(t *testing.T) {
	t.Parallel()
	const definition = `{"name":%q,"description":"Works on a file: %s.","inputSchema":{"type":"object"}}`
	other := startUpstream(t, fmt.Sprintf(definition, "remote_file", "elsewhere"))
	t.Run("fake", func(t *testing.T) {
		t.Parallel()
		var all []string
		for _, name := range []string{"read_text_file", "move_file", "write_file", "edit_file"} {
			all = append(all, fmt.Sprintf(definition, name, strings.ReplaceAll(name, "_", " ")))
		}
		tellOneStory(t, fmt.Sprintf(`{"url": %q`, startUpstream(t, all...).URL), other.URL)
	})
	t.Run("npm", func(t *testing.T) {
		t.Parallel()
		modules, node := peers(t)
		script := filepath.Join(modules, "@modelcontextprotocol", "server-filesystem", "dist", "index.js")
		tellOneStory(t, fmt.Sprintf(`{"command": %q, "args": [%q, %q]`, node, script, t.TempDir()), other.URL)
	})
}

// statuses maps the names of locked tools to their statuses.
type statuses map[string]string

func tellOneStory(t *testing.T, files, other string) {
	d := startDaemon(t, fmt.Sprintf(`{
		// Operator policy stands here.
		"mcpServers": {
			"files": %s, "disabled_tools": ["move_*"]},
			"other": {"url": %q},
		},
	}`, files, other))
	d.awaitTools("files:read_text_file", "files:move_file", "files:write_file", "files:edit_file", "other:remote_file")
	for _, line := range []string{"tools disable files:write_file", "tools block files:edit_file", "upstream disable other"} {
		if code, _, stderr := d.cli(strings.Fields(line)...); code != 0 {
			t.Fatalf("%s: exit code %d: %s", line, code, stderr)
		}
	}
	raw, err := os.ReadFile(d.configPath())
	if err != nil || !strings.Contains(string(raw), "// Operator policy stands here.") {
		t.Errorf("the comment of the configuration is gone: %s %v", raw, err)
	}
	want := statuses{"files:move_file": "disabled_by_config", "files:write_file": "disabled_by_user",
		"files:edit_file": "pending_approval", "other:remote_file": "server_disabled"}
	rest := maps.Clone(want)
	rest["files:edit_file"] = "blocked" // REST distinguishes a blocked tool from a pending one
	eventually(t, "the statuses are as expected", func() error {
		if got := d.lockedTools(); !maps.Equal(got, rest) {
			return fmt.Errorf("%v", got)
		}
		return nil
	})
	story := func(t *testing.T) {
		checkDiscovery(t, d, want)
		checkCounts(t, d)
		checkRefusals(t, d, want)
		checkCommands(t, d, want)
	}
	t.Run("at once", story)
	d.stop()
	d.start()
	d.awaitTools("files:read_text_file", "other:remote_file")
	eventually(t, "the server files is ready", func() error {
		if s, err := d.server("files"); err != nil || s.State != "ready" {
			return fmt.Errorf("%+v %w", s, err)
		}
		return nil
	})
	t.Run("after a restart", story)

	// Disabling a tool is one lock of several. Enabling it removes only that lock.
	if _, _, stderr := d.cli("tools", "disable", "files:move_file"); stderr != "" {
		t.Errorf("disable: %s", stderr)
	}
	if code, stdout, stderr := d.cli("tools", "enable", "files:move_file"); code != 0 || !strings.Contains(stdout, "files:move_file is enabled") ||
		!strings.Contains(stderr, "disabled_by_config") || !strings.Contains(stderr, "mcp_config.json") {
		t.Errorf("enable: %d %s %s", code, stdout, stderr)
	}
	checkRefusals(t, d, want)
	for _, line := range []string{"tools enable files:write_file", "tools approve files:edit_file --yes", "upstream enable other"} {
		if code, _, stderr := d.cli(strings.Fields(line)...); code != 0 {
			t.Fatalf("%s: exit code %d: %s", line, code, stderr)
		}
	}
	eventually(t, "all but what the operator denies can be called", func() error {
		if got := d.lockedTools(); !maps.Equal(got, statuses{"files:move_file": "disabled_by_config"}) {
			return fmt.Errorf("%v", got)
		}
		return nil
	})
}

// lockedTools returns the statuses from REST.
func (d *daemon) lockedTools() statuses {
	d.t.Helper()
	var answer struct {
		Tools []struct{ Name, Status string }
	}
	status, body := d.rest("GET", "/tools", "")
	if err := json.Unmarshal(body, &answer); err != nil || status != http.StatusOK {
		d.t.Fatalf("%d %s %v", status, body, err)
	}
	locked := statuses{}
	for _, t := range answer.Tools {
		if t.Status != "" {
			locked[t.Name] = t.Status
		}
	}
	return locked
}

// checkDiscovery checks retrieve_tools with and without include_disabled.
func checkDiscovery(t *testing.T, d *daemon, want statuses) {
	type answer struct {
		Total    int
		Tools    []struct{ Name string }
		Disabled []struct{ Name, Server, Description, Status string }
		Remedies map[string]string `json:"remediation"`
		Notice   string
	}
	ask := func(arguments string) (a answer, text string) {
		r := d.legacy().call("retrieve_tools", arguments)
		if err := json.Unmarshal(r.StructuredContent, &a); err != nil || r.IsError {
			t.Fatalf("%v in %s", err, r.StructuredContent)
		}
		return a, r.text()
	}
	plain, text := ask(`{"query":"file","limit":50}`)
	for name := range want {
		_, own, _ := strings.Cut(name, ":")
		if strings.Contains(text, `"`+name+`"`) || strings.Contains(text, `"`+own+`"`) {
			t.Errorf("%s is shown without include_disabled: %s", name, text)
		}
	}
	if plain.Total != len(plain.Tools) || plain.Total == 0 || plain.Notice != "" || strings.Contains(text, "disabled") {
		t.Errorf("%s", text)
	}
	full, _ := ask(`{"query":"file","limit":50,"include_disabled":true}`)
	got, present := statuses{}, map[string]bool{}
	for _, one := range full.Disabled {
		got[one.Name] = one.Status
		present[one.Status] = true
		if (one.Description == "") != (one.Status == "pending_approval") {
			t.Errorf("the description of %s (%s) is %q", one.Name, one.Status, one.Description)
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("disabled: got %v, want %v", got, want)
	}
	if !slices.Equal(slices.Sorted(maps.Keys(full.Remedies)), slices.Sorted(maps.Keys(present))) {
		t.Errorf("remediation: %v", full.Remedies)
	}
	for status, remedy := range full.Remedies {
		checkRemedy(t, status, remedy)
	}
	if !slices.Equal(full.Tools, plain.Tools) || full.Total != plain.Total {
		t.Errorf("the callable results differ: %v and %v", full.Tools, plain.Tools)
	}
	if alone, text := ask(`{"query":"remote_file","limit":1}`); len(alone.Tools) == 0 && !strings.Contains(alone.Notice, "include_disabled: true") {
		t.Errorf("no notice: %s", text)
	}
}

// checkRemedy checks that the remedy matches the status.
func checkRemedy(t *testing.T, status, text string) {
	t.Helper()
	says := map[string]string{
		"disabled_by_config": "mcp_config.json", "disabled_by_user": "switch it on again",
		"pending_approval": "review and approve", "server_disabled": "enable the server first",
	}
	if says[status] == "" || !strings.Contains(text, says[status]) {
		t.Errorf("the remedy of %s: %q", status, text)
	}
	if status != "disabled_by_config" {
		return
	}
	if !strings.Contains(text, "cannot override") {
		t.Errorf("the text does not say that the user cannot override it: %q", text)
	}
	for _, lie := range []string{"switch it on", "ask the user to enable", "ask the user to approve", "toggle"} {
		if strings.Contains(strings.ToLower(text), lie) {
			t.Errorf("a lock of the configuration is described as the user's: %q", text)
		}
	}
}

// checkCounts checks the counts in upstream_servers and in REST.
func checkCounts(t *testing.T, d *daemon) {
	var agents, people struct {
		Servers []struct {
			Name      string
			Enabled   bool
			ToolCount int            `json:"tool_count"`
			Tools     map[string]int `json:"tools"`
		}
	}
	if err := json.Unmarshal(d.legacy().call("upstream_servers", `{"operation":"list"}`).StructuredContent, &agents); err != nil {
		t.Fatal(err)
	}
	_, body := d.rest("GET", "/servers", "")
	if err := json.Unmarshal(body, &people); err != nil || len(people.Servers) != 2 || len(agents.Servers) != 2 {
		t.Fatalf("%v in %s", err, body)
	}
	for i, s := range people.Servers {
		want := map[string]int{"callable": 0, "server_disabled": 1}
		if s.Name == "files" {
			want = map[string]int{"callable": s.ToolCount - 3, "disabled_by_config": 1, "disabled_by_user": 1, "pending_approval": 1}
		}
		known := maps.Clone(want) // REST and the CLI distinguish a blocked tool from a pending one
		if n := known["pending_approval"]; n > 0 {
			delete(known, "pending_approval")
			known["blocked"] = n
		}
		if !maps.Equal(s.Tools, known) || !maps.Equal(agents.Servers[i].Tools, want) || s.Enabled != (s.Name == "files") || agents.Servers[i].Enabled != s.Enabled {
			t.Errorf("REST returns %+v, agents get %+v, want %v", s, agents.Servers[i], want)
		}
	}
}

// checkRefusals calls every locked tool in every lane.
func checkRefusals(t *testing.T, d *daemon, want statuses) {
	a := d.legacy()
	for name, status := range want {
		for _, variant := range []string{"call_tool_read", "call_tool_write", "call_tool_destructive"} {
			p := a.call(variant, fmt.Sprintf(`{"name":%q}`, name)).refusal(t)
			var details struct{ Status string }
			if err := json.Unmarshal(p.Details, &details); err != nil || p.Code != "TOOL_LOCKED" || details.Status != status {
				t.Errorf("%s of %s: %+v %s", variant, name, p, p.Details)
			}
			checkRemedy(t, status, p.Message)
			if !strings.Contains(p.Message, "include_disabled: true") {
				t.Errorf("the refusal does not say how to find other tools: %s", p.Message)
			}
		}
	}
}

// checkCommands checks the output of the command line.
func checkCommands(t *testing.T, d *daemon, want statuses) {
	for name, told := range want {
		status := told
		if name == "files:edit_file" {
			status = "blocked"
		}
		if _, stdout, _ := d.cli("tools", "list", "--status", status); !strings.Contains(stdout, name) {
			t.Errorf("tools list --status %s: %s", status, stdout)
		}
		if _, stdout, _ := d.cli("tools", "show", name); !strings.Contains(stdout, status) {
			t.Errorf("tools show %s: %s", name, stdout)
		}
		if code, stdout, stderr := d.cli("call", "tool-destructive", name); code != 3 || stdout != "" || !strings.Contains(stderr, told) {
			t.Errorf("call of %s: %d %s %s", name, code, stdout, stderr)
		}
	}
	if _, stdout, _ := d.cli("approvals"); !strings.Contains(stdout, "mcpproxy tools approve files:edit_file") || strings.Contains(stdout, "move_file") {
		t.Errorf("approvals: %s", stdout)
	}
}
