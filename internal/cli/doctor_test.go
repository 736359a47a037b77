package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcpproxy/internal/ops/doctor"
	"mcpproxy/internal/problem"
)

const offlineConfig = `{
  "listen": "127.0.0.1:1",
  "mcpServers": {
    "fine": {"command": "sh"},
    "gone": {"command": "/no/such/program"},
    "later": {"command": "sh", "args": ["-c", "true"], "quarantined": true},
    "off": {"command": "/no/such/program", "args": ["x"], "enabled": false}
  }
}`

// newEnvWithoutDaemon returns a test environment with a configuration and no daemon.
func newEnvWithoutDaemon(t *testing.T, config string) *testEnv {
	t.Helper()
	w := newTestEnv(t)
	w.env["MCPPROXY_CONFIG"] = filepath.Join(w.dir, "mcp_config.json")
	if err := os.WriteFile(w.env["MCPPROXY_CONFIG"], []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(w.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return w
}

// Without a daemon, the status is read from the files, and the exit code reports that no daemon is running.
func TestStatusWithoutADaemon(t *testing.T) {
	t.Parallel()
	w := newEnvWithoutDaemon(t, offlineConfig)
	got := w.runCommand("status")
	compareWithGolden(t, "status-down", strings.ReplaceAll(got.stdout, w.dir, "/home/me/.mcpproxy"))
	if got.code != problem.ExitNoDaemon || !strings.Contains(got.stderr, "mcpproxy serve") {
		t.Errorf("%+v", got)
	}
	got = w.runCommand("status", "-o", "json")
	var s struct {
		Running *bool
		Servers struct {
			Total, Enabled int
			NotReady       []doctor.UnavailableServer `json:"not_ready"`
		}
		Waiting doctor.PendingReviews
	}
	if err := json.Unmarshal([]byte(got.stdout), &s); err != nil || s.Running == nil || *s.Running || s.Servers.Total != 4 || s.Servers.Enabled != 3 ||
		len(s.Servers.NotReady) != 3 || len(s.Waiting.Servers) != 1 || s.Waiting.Servers[0] != "later" {
		t.Errorf("%v: %+v of %s", err, s, got.stdout)
	}
	if got.code != problem.ExitNoDaemon || !strings.Contains(got.stderr, `"code": "DAEMON_NOT_RUNNING"`) {
		t.Errorf("%+v", got)
	}
	w = newEnvWithoutDaemon(t, "{\n\"tools_limits\": 1}")
	if got := w.runCommand("status"); !strings.Contains(got.stdout, `mcp_config.json:2:1: unknown key "tools_limits"`) {
		t.Errorf("an invalid file: %+v", got)
	}
}

func TestDoctorText(t *testing.T) {
	t.Parallel()
	w := newEnvWithoutDaemon(t, offlineConfig)
	got := w.runCommand("doctor", "--only", "D101,D205,server-command-missing,D406,D706")
	compareWithGolden(t, "doctor", strings.ReplaceAll(got.stdout, w.dir, "/home/me/.mcpproxy"))
	if got.code != problem.ExitFailed || !strings.Contains(got.stderr, "The doctor found 2 problems.") {
		t.Errorf("%+v", got)
	}
	if got := w.runCommand("doctor", "--only", "D205"); got.code != problem.ExitDone || got.stderr != "" {
		t.Errorf("a passing check: %+v", got)
	}
	if got := w.runCommand("doctor", "--only", "deamon-silent"); got.code != problem.ExitUsage || !strings.Contains(got.stderr, "daemon-silent") {
		t.Errorf("an unknown check: %+v", got)
	}
	if err := os.Chmod(w.env["MCPPROXY_CONFIG"], 0o644); err != nil {
		t.Fatal(err)
	}
	got = w.runCommand("doctor", "--only", "config-open", "--fix")
	info, err := os.Stat(w.env["MCPPROXY_CONFIG"])
	if err != nil || info.Mode().Perm() != 0o600 || got.code != problem.ExitDone || !strings.Contains(got.stdout, "✓ fixed D205: chmod 600 ") {
		t.Errorf("%v: %+v", err, got)
	}
}

// The doctor's output contains no secret from the configuration file.
func TestDoctorShowsNoSecret(t *testing.T) {
	t.Parallel()
	const secret = "ghp_0123456789abcdefghijABCDEFGHIJ456789"
	w := newEnvWithoutDaemon(t, `{"listen": "127.0.0.1:1", "mcpServers": {"gone": {"command": "/no/such/program", "args": ["--token", "`+secret+`"], "env": {"A": "`+secret+`"}},
		"same": {"url": "https://u:`+secret+`@example.com/mcp"}, "twin": {"url": "https://u:`+secret+`@example.com/mcp"}}}`)
	for _, line := range []string{"doctor", "doctor -o json", "status", "status -o json"} {
		if got := w.runCommand(strings.Fields(line)...); strings.Contains(got.stdout+got.stderr, secret) {
			t.Errorf("%s: %+v", line, got)
		}
	}
}
