package e2e

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
)

// A server that is added while no daemon runs counts as added by a user. It starts with the daemon, and its trust
// setting decides about its tools.
func TestServersAddedWithoutTheDaemon(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, "{\n  // mine\n}\n")
	d.stop()
	for _, line := range [][]string{
		{"upstream", "add", "notes", "--", binary, "demo-upstream", "notes"},
		{"upstream", "add", "held", "--trust", "manual", "--", binary, "demo-upstream", "notes"},
		{"upstream", "add", "later", "--quarantined", "--", binary, "demo-upstream", "notes"},
		{"upstream", "add", "gone", "--", "/no/such/program"},
		{"upstream", "set", "notes", "call_timeout", "20s"},
		{"upstream", "disable", "gone"},
		{"upstream", "remove", "gone", "--yes"},
	} {
		if code, stdout, stderr := d.cli(line...); code != 0 || !strings.Contains(stderr, "MCPProxy is not running") {
			t.Fatalf("%q: %d %s %s", line, code, stdout, stderr)
		}
	}
	if code, _, _ := d.cli("tools", "approve", "held:*", "--yes"); code != 4 {
		t.Errorf("an approval without the daemon: %d", code)
	}
	if got := d.readConfig(); !strings.Contains(got, "// mine") || strings.Contains(got, "gone") {
		t.Errorf("%s", got)
	}
	d.start()
	d.awaitTools("notes:list_notes")
	if r := d.legacy().call("call_tool_read", `{"name":"notes:list_notes"}`); r.IsError {
		t.Errorf("%+v", r)
	}
	d.awaitState("held", "ready")
	if got := d.lockedTools(); got["held:list_notes"] != "pending_approval" {
		t.Errorf("%v", got)
	}
	if s, err := d.server("later"); err != nil || s.State != "stopped" {
		t.Errorf("%+v %v", s, err)
	}
}

// The add command reports its outcome in its output and exit code. Decisions about tools stay when the launch changes.
func TestAddReportsItsOutcome(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, "{}")
	if code, stdout, _ := d.cli("upstream", "add", "held", "--trust", "manual", "--", binary, "demo-upstream", "notes"); code != 0 || !strings.Contains(stdout, "ready, with ") || !strings.Contains(stdout, " wait for approval: mcpproxy approvals") {
		t.Errorf("%d %s", code, stdout)
	}
	code, stdout, stderr := d.cli("upstream", "add", "bad", "--", "sh", "-c", "echo no key >&2; exit 3")
	if code != 7 || !strings.Contains(stdout, "Added bad") || !strings.Contains(stderr, "exit status 3: no key") || !strings.Contains(stderr, "stays configured") {
		t.Errorf("%d %s %s", code, stdout, stderr)
	}
	code, stdout, _ = d.cli("upstream", "add", "bad2", "-o", "json", "--", "sh", "-c", "exit 3")
	var v struct {
		State     string
		LastError string `json:"last_error"`
	}
	if err := json.Unmarshal([]byte(stdout), &v); err != nil || code != 7 || v.State != "failed" || !strings.Contains(v.LastError, "exit status 3") {
		t.Errorf("%d %v %s", code, err, stdout)
	}
	// The repaired launch runs, and earlier approvals and blocks stay.
	if code, _, stderr := d.cli("tools", "approve", "held:*", "--yes"); code != 0 {
		t.Fatal(stderr)
	}
	if code, _, stderr := d.cli("tools", "block", "held:delete_note"); code != 0 {
		t.Fatal(stderr)
	}
	for _, line := range [][]string{
		{"upstream", "set", "held", "--env", "SOMETHING=else"},
		{"upstream", "set", "held", "command", "--", binary, "demo-upstream", "notes"},
		{"upstream", "set", "bad", "command", "--", binary, "demo-upstream", "notes"},
	} {
		if code, _, stderr := d.cli(line...); code != 0 {
			t.Fatalf("%q: %s", line, stderr)
		}
	}
	d.awaitTools("held:list_notes", "bad:list_notes")
	d.awaitState("held", "ready")
	if r := d.legacy().call("call_tool_read", `{"name":"held:list_notes"}`); r.IsError {
		t.Errorf("%+v", r)
	}
	if p := d.legacy().call("call_tool_destructive", `{"name":"held:delete_note","args":{"title":"a"}}`).refusal(t); p.Code != "TOOL_LOCKED" {
		t.Errorf("%+v", p)
	}
	if !strings.Contains(d.readConfig(), `"SOMETHING"`) {
		t.Errorf("%s", d.readConfig())
	}
}

// MCPProxy refuses to be added as its own server, in any spelling of its address.
func TestProxyIsNotAddedToItself(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, "{}")
	_, port, err := net.SplitHostPort(d.address)
	if err != nil {
		t.Fatal(err)
	}
	before := d.readConfig()
	for _, launch := range [][]string{
		{"--url", "http://" + d.address + "/mcp"}, {"--url", "http://localhost:" + port + "/mcp/all"}, {"--url", "http://[::1]:" + port + "/mcp"},
		{"--", "mcpproxy", "stdio"}, {"--", binary, "stdio", "--all"}, {"--", binary, "--data-dir", d.dataDir(), "stdio"},
	} {
		if code, _, stderr := d.cli(append([]string{"upstream", "add", "again"}, launch...)...); code != 2 || !strings.Contains(stderr, "its own server") || d.readConfig() != before {
			t.Errorf("%q: %d %s", launch, code, stderr)
		}
	}
	r := d.legacy().call("upstream_servers", `{"operation":"add","name":"again","url":"http://localhost:`+port+`/mcp"}`)
	if p := r.refusal(t); p.Code != "INVALID_PARAMETER" || !strings.Contains(p.Message, "its own server") {
		t.Errorf("%+v", p)
	}
	d.writeConfig(`{"mcpServers": {"again": {"url": "http://localhost:` + port + `/mcp", "lazy": true}}}`)
	eventually(t, "the status warns", func() error {
		_, stdout, _ := d.cli("status")
		if !strings.Contains(stdout, "mcpServers.again is MCPProxy itself") {
			return errors.New(stdout)
		}
		return nil
	})
}

// Commands and the daemon report the same about a deleted configuration file.
func TestDeletedFile(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, "{}")
	if err := os.Remove(d.configPath()); err != nil {
		t.Fatal(err)
	}
	const story = "is missing; the previous configuration stays active"
	eventually(t, "the status reports the deleted file", func() error {
		_, stdout, stderr := d.cli("status")
		if strings.Contains(stdout+stderr, "the defaults apply") {
			t.Errorf("%s", stdout)
		}
		if !strings.Contains(stdout, story) {
			return errors.New(stdout)
		}
		return nil
	})
	if code, stdout, stderr := d.cli("config", "validate"); code != 1 || !strings.Contains(stderr, story) || strings.Contains(stdout+stderr, "the defaults apply") {
		t.Errorf("%d %s %s", code, stdout, stderr)
	}
	if code, _, stderr := d.cli("upstream", "add", "x", "--", "x"); code != 1 || !strings.Contains(stderr, story) {
		t.Errorf("%d %s", code, stderr)
	}
	d.stop()
	if code, stdout, _ := d.cli("config", "validate"); code != 0 || !strings.Contains(stdout, "the defaults apply") {
		t.Errorf("%d %s", code, stdout)
	}
	d.start()
}
