package cli

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcpproxy/internal/clients/permission"
	"mcpproxy/internal/problem"
)

// newEnvWithHomeFiles returns a test environment with clients' files in the home directory.
func newEnvWithHomeFiles(t *testing.T, files map[string]string) *testEnv {
	t.Helper()
	w := newTestEnv(t)
	for name, text := range files {
		path := filepath.Join(w.env["HOME"], name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

const (
	claudeJSON     = ".claude.json"
	claudeSettings = ".claude/settings.json"
	connected      = `{"mcpServers": {"mcpproxy": {"type": "http", "url": "http://127.0.0.1:8080/mcp"}}}`
)

// The check exits with 3 until the rules are written. An undo restores the file, so that the check exits with 3 again.
func TestPermissionsWrittenAndUndone(t *testing.T) {
	t.Parallel()
	const mine = "{\r\n  // mine\r\n  \"model\": \"opus\"\r\n}\r\n"
	w := newEnvWithHomeFiles(t, map[string]string{claudeJSON: connected, claudeSettings: mine})
	path := filepath.Join(w.env["HOME"], claudeSettings)
	for _, step := range []struct {
		args string
		code int
		says string
	}{
		{"permissions claude --check", problem.ExitRefused, "✗ call_tool_read asks, recommended: runs without asking"},
		{"permissions claude --dry-run", problem.ExitDone, `+     "allow": [`},
		{"permissions claude --undo", problem.ExitNotFound, "No change of the permissions of Claude Code is left to undo."},
		{"permissions claude --write", problem.ExitUsage, "Not a terminal"},
		{"permissions claude --write --yes", problem.ExitDone, "✓ call_tool_destructive asks"},
		{"permissions claude --check", problem.ExitDone, "allow mcp__mcpproxy__call_tool_read, " + path + ":"},
		{"permissions claude --write", problem.ExitDone, "No changes"},
		{"permissions claude --undo", problem.ExitDone, "is restored"},
		{"permissions claude --check", problem.ExitRefused, "PERMISSIONS_DIFFER"},
	} {
		args := strings.Fields(step.args)
		if step.says == "PERMISSIONS_DIFFER" {
			args = append(args, "-o", "json")
		}
		got := w.runCommand(args...)
		if got.code != step.code || !strings.Contains(got.stdout+got.stderr, step.says) {
			t.Errorf("%s: %d, want %d with %q in\n%s%s", step.args, got.code, step.code, step.says, got.stdout, got.stderr)
		}
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != mine {
		t.Errorf("after the undo, the file is %q, %v", text, err)
	}
}

// The user sees the changes before the question. If the answer is no, nothing is changed.
func TestPermissionsAskFirst(t *testing.T) {
	t.Parallel()
	w := newEnvWithHomeFiles(t, map[string]string{".cursor/mcp.json": connected})
	var question string
	w.deps.Ask = func(_ context.Context, q string) (string, error) { question = q; return "n", nil }
	got := w.runCommand("permissions", "cursor", "--write")
	if got.code != problem.ExitInterrupted || !strings.Contains(question, "permissions.json") {
		t.Errorf("%+v after %q", got, question)
	}
	for _, says := range []string{`+     "*mcpproxy:call_tool_read"`, "replaces the list in Cursor's settings"} {
		if !strings.Contains(strings.ReplaceAll(got.stderr, "\n", " "), says) {
			t.Errorf("%q is not in\n%s", says, got.stderr)
		}
	}
	if _, err := os.Stat(filepath.Join(w.env["HOME"], ".cursor/permissions.json")); err == nil {
		t.Error("the file was written after the answer no")
	}
}

// The hint of --check is correct: it suggests to write rules if this changes the result, otherwise an action of the
// user. Unknown results are not reported as wrong.
func TestCheckAdvises(t *testing.T) {
	t.Parallel()
	for client, c := range map[string]struct {
		files       map[string]string
		says, hints string
	}{
		"claude-code":    {map[string]string{claudeJSON: connected}, "The permissions of Claude Code differ from the recommended ones.", "`mcpproxy permissions claude-code --dry-run` shows the fix."},
		"claude-desktop": {map[string]string{".config/Claude/claude_desktop_config.json": connected}, "The permissions of Claude Desktop are unknown: they are not in a file.", "The instructions are above."},
		"goose": {map[string]string{".config/goose/config.yaml": "GOOSE_MODE: auto\nextensions:\n  mcpproxy:\n    type: streamable_http\n    uri: http://127.0.0.1:8080/mcp\n",
			".config/goose/permission.yaml": "user:\n  always_allow:\n  - mcpproxy__retrieve_tools\n  - mcpproxy__call_tool_read\n  - mcpproxy__read_result\n  ask_before:\n  - mcpproxy__call_tool_write\n  - mcpproxy__call_tool_destructive\n  - mcpproxy__upstream_servers\n  never_allow: []\n"},
			"The permissions of Goose differ from the recommended ones.", "The instructions are above."},
		"codex": {map[string]string{".codex/config.toml": "model = \"o3\"\n"}, "The permissions of Codex differ from the recommended ones.", "Run `mcpproxy connect codex` first."},
	} {
		got := newEnvWithHomeFiles(t, c.files).runCommand("permissions", client, "--check")
		if got.code != problem.ExitRefused || !strings.Contains(got.stderr, "Error: "+c.says+"\nHint: "+c.hints) {
			t.Errorf("%s: %d\n%s%s", client, got.code, got.stdout, got.stderr)
		}
	}
}

func TestPermissionsInJSON(t *testing.T) {
	t.Parallel()
	w := newEnvWithHomeFiles(t, map[string]string{claudeJSON: connected})
	var report permission.Report
	if err := json.Unmarshal([]byte(w.runCommand("permissions", "claude-code", "--check", "-o", "json").stdout), &report); err != nil || len(report.Lanes) != 6 || report.Right {
		t.Errorf("%+v, %v", report, err)
	}
	for _, args := range [][]string{{"permissions", "claude", "--check", "--write"}, {"permissions", "claude", "--undo", "--dry-run"}, {"permissions"}} {
		if got := w.runCommand(args...); got.code != problem.ExitUsage {
			t.Errorf("%v: %+v", args, got)
		}
	}
	if got := w.runCommand("permissions", "nobody"); got.code != problem.ExitNotFound {
		t.Errorf("%+v", got)
	}
}
