package cli

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcpproxy/internal/problem"
)

// A client is connected and disconnected. Connecting it again changes nothing. Each undo restores the file.
func TestConnectAndUndo(t *testing.T) {
	t.Parallel()
	const mine = "{\r\n  // mine\r\n  \"mcpServers\": {}\r\n}\r\n"
	w := newEnvWithHomeFiles(t, map[string]string{".cursor/mcp.json": mine})
	w.deps.Program = "/usr/bin/mcpproxy"
	for _, step := range []struct {
		args string
		code int
		says string
	}{
		{"connect", problem.ExitUsage, "Name one of claude-code"},
		{"connect nobody --yes", problem.ExitNotFound, "No client is called"},
		{"connect cursor --all", problem.ExitUsage, "--all takes no client names"},
		{"connect cursor zed --token x", problem.ExitUsage, "A token is for one client"},
		{"connect cursor --undo --dry-run", problem.ExitUsage, "cannot be combined"},
		{"connect cursor --undo", problem.ExitNotFound, "No change of Cursor is left to undo"},
		{"disconnect cursor", problem.ExitNotFound, "mcpproxy connect cursor"},
		{"connect cursor --dry-run", problem.ExitDone, `+   "mcpServers": {`},
		{"connect cursor", problem.ExitUsage, "Not a terminal"},
		{"connect cursor --profile none", problem.ExitNotFound, "The profile 'none' does not exist"},
		{"connect cursor --token x --yes", problem.ExitNoDaemon, "mcpproxy serve"},
		{"connect --all --yes", problem.ExitDone, "✓ Cursor: connected in"},
		{"connect cursor", problem.ExitDone, "no change"},
		{"connect --all", problem.ExitNotFound, "No MCP client to connect was found"},
		{"disconnect --all --yes", problem.ExitDone, "✓ Cursor: disconnected in"},
		{"disconnect cursor --undo", problem.ExitDone, "is restored"},
		{"connect cursor --undo", problem.ExitDone, "is restored"},
		{"connect claude-desktop --yes", problem.ExitDone, "Quit Claude Desktop"},
		{"connect claude-desktop --undo", problem.ExitDone, "is removed again"},
	} {
		got := w.runCommand(strings.Fields(step.args)...)
		if got.code != step.code || !strings.Contains(got.stdout+got.stderr, step.says) {
			t.Errorf("%s: %d, want %d with %q in\n%s%s", step.args, got.code, step.code, step.says, got.stdout, got.stderr)
		}
	}
	if text, err := os.ReadFile(filepath.Join(w.env["HOME"], ".cursor/mcp.json")); err != nil || string(text) != mine {
		t.Errorf("after the undo, the file is %q, %v", text, err)
	}
}

// If one client fails, the others are still connected. If the user answers no, nothing is written.
func TestConnectMany(t *testing.T) {
	t.Parallel()
	w := newEnvWithHomeFiles(t, map[string]string{".cursor/mcp.json": "{", ".kiro/settings/mcp.json": "{}"})
	var question string
	w.deps.Ask = func(_ context.Context, q string) (string, error) { question = q; return "n", nil }
	if got := w.runCommand("connect", "cursor", "kiro"); got.code != problem.ExitInterrupted || question != "Connect Kiro? [y/N] " || !strings.Contains(got.stderr, `+     "mcpproxy": {`) && !strings.Contains(got.stderr, `"mcpproxy": {`) {
		t.Errorf("%+v after %q", got, question)
	}
	got := w.runCommand("connect", "cursor", "kiro", "--yes", "-o", "json")
	var out connectResult
	if err := json.Unmarshal([]byte(got.stdout), &out); err != nil || len(out.Clients) != 1 || !out.Clients[0].Written || len(out.Failed) != 1 || out.Failed[0].Name != "cursor" {
		t.Errorf("%+v, %v", got, err)
	}
	if got.code == problem.ExitDone || !strings.Contains(got.stderr, "1 client could not be changed") {
		t.Errorf("%+v", got)
	}
}

// The command also offers permission rules. The user can decline the rules and still connect.
func TestConnectOffersRules(t *testing.T) {
	t.Parallel()
	const mine = "# mine\n"
	files := []string{".codex/config.toml", ".gemini/settings.json"}
	for answer, said := range map[string]int{"y": 2, "n": 0} {
		w := newEnvWithHomeFiles(t, map[string]string{files[0]: mine, files[1]: "{}"})
		var questions []string
		w.deps.Ask = func(_ context.Context, q string) (string, error) {
			questions = append(questions, q)
			return map[bool]string{true: "y", false: answer}[len(questions) == 1], nil
		}
		got := w.runCommand("connect", "codex", "gemini", "vscode", "--surface", "search")
		if got.code != problem.ExitDone || len(questions) != 2 || !strings.Contains(questions[1], "these rules") || strings.Count(got.stderr, ": the rules are in") != said {
			t.Errorf("%+v after %q", got, questions)
		}
		for _, says := range []string{`+ default_tools_approval_mode = "writes"`, `decision = "ask_user"`, "Next, run `mcpproxy permissions vscode`", "MCPProxy is not running. `mcpproxy service install`"} {
			if !strings.Contains(got.stderr, says) {
				t.Errorf("%q is not in\n%s", says, got.stderr)
			}
		}
		for _, client := range []string{"codex", "gemini"} {
			if check := w.runCommand("permissions", client, "--check"); (check.code == problem.ExitDone) != (said > 0) {
				t.Errorf("%s: %+v", client, check)
			}
			if undo := w.runCommand("connect", client, "--undo"); undo.code != problem.ExitDone || strings.Count(undo.stdout, "restored")+strings.Count(undo.stdout, "removed again") != 1+said/2 {
				t.Errorf("%s: %+v", client, undo)
			}
		}
		for i, want := range []string{mine, "{}"} {
			if text, err := os.ReadFile(filepath.Join(w.env["HOME"], files[i])); err != nil || string(text) != want {
				t.Errorf("after the undo, %s is %q, %v", files[i], text, err)
			}
		}
	}
}

// TestConnectSurfaces checks that auto selects the default surface of each client and that another surface replaces it.
// The list, the check and the doctor report the surface.
func TestConnectSurfaces(t *testing.T) {
	t.Parallel()
	const old = `{"mcpServers": {"mcpproxy": {"type": "http", "url": "http://127.0.0.1:8080/mcp"}, "notes": {"command": "notes-mcp"}}}`
	w := newEnvWithHomeFiles(t, map[string]string{".claude.json": old, ".codex/config.toml": "# mine\n", ".gemini/settings.json": "{}"})
	for _, step := range []struct {
		args string
		code int
		says string
	}{
		{"connect claude-code --surface both", problem.ExitUsage, "Give one of auto, search, lanes, all"},
		{"clients list", problem.ExitDone, "claude-code connected search mcpproxy codex not connected gemini not connected"},
		{"connect --all --yes", problem.ExitDone, "Codex: connected in"},
		{"clients list", problem.ExitDone, "claude-code connected search mcpproxy codex connected lanes mcpproxy-read, mcpproxy-write, mcpproxy-destr gemini connected search mcpproxy"},
		{"connect claude-code --dry-run", problem.ExitDone, `+ "mcp__mcpproxy-read__*"`},
		{"connect --all --surface auto --yes", problem.ExitDone, "Claude Code: connected in"},
		{"clients list", problem.ExitDone, "claude-code connected lanes mcpproxy-read, mcpproxy-write, mcpproxy-destr"},
		{"permissions claude-code --check", problem.ExitDone, "✓ mcpproxy-read:* runs without asking"},
		{"permissions codex --check", problem.ExitDone, "✓ mcpproxy-destr:* asks"},
		{"permissions claude-code", problem.ExitDone, "mcp__mcpproxy-read__*"},
		{"doctor --only D606", problem.ExitDone, "not through MCPProxy: notes."},
		{"upstream import claude-code --dry-run", problem.ExitDone, "notes"},
		{"connect claude-code --surface all --yes", problem.ExitDone, "surface all"},
		{"permissions claude-code --check", problem.ExitDone, "✓ mcpproxy:* (destructive) asks"},
		{"permissions claude-code", problem.ExitDone, "--surface lanes"},
		{"connect claude-code --undo", problem.ExitDone, "is restored"},
		{"permissions claude-code --check", problem.ExitDone, "✓ mcpproxy-read:* runs without asking"},
		{"disconnect --all --yes", problem.ExitDone, "Claude Code: disconnected in"},
	} {
		got := w.runCommand(strings.Fields(step.args)...)
		said := strings.Join(strings.Fields(got.stdout+got.stderr), " ")
		if got.code != step.code || !strings.Contains(said, step.says) {
			t.Errorf("%s: %d, want %d with %q in\n%s", step.args, got.code, step.code, step.says, said)
		}
		if strings.Contains(step.args, "--surface all") && strings.Contains(said, "Next:") {
			t.Errorf("%s names a next step that changes nothing: %s", step.args, said)
		}
		if strings.HasPrefix(step.args, "doctor") || strings.HasPrefix(step.args, "upstream import") {
			if strings.Contains(strings.ReplaceAll(said, "mcpproxy-read of Claude Code is MCPProxy itself", ""), "mcpproxy-read") {
				t.Errorf("%s takes MCPProxy for another server: %s", step.args, said)
			}
		}
	}
	for file, want := range map[string]string{".claude.json": `{"mcpServers": {"notes": {"command": "notes-mcp"}}}`, ".codex/config.toml": "# mine\n", ".gemini/settings.json": "{}"} {
		if text, err := os.ReadFile(filepath.Join(w.env["HOME"], file)); err != nil || string(text) != want {
			t.Errorf("after disconnect, %s is %q, %v", file, text, err)
		}
	}
}

// The doctor reports on clients from their files.
func TestDoctorReportsClients(t *testing.T) {
	t.Parallel()
	w := newEnvWithHomeFiles(t, map[string]string{".cursor/mcp.json": `{"mcpServers": {"mcpproxy": {"url": "http://127.0.0.1:9/mcp"}}}`, ".lmstudio/mcp.json": `{"mcpServers": {"mcpproxy": {"command": "/gone/mcpproxy"}}}`})
	got := w.runCommand("doctor", "--only", "D601,D602,D603,D604")
	for _, says := range []string{"D602", "has the address http://127.0.0.1:9/mcp", "connect cursor", "D603", "/gone/mcpproxy", "connect lmstudio", "D604", "permissions cursor --write"} {
		if !strings.Contains(strings.Join(strings.Fields(got.stdout), " "), says) {
			t.Errorf("%q is not in\n%s%s", says, got.stdout, got.stderr)
		}
	}
	for _, mend := range []string{"connect cursor --yes", "connect lmstudio --yes", "permissions cursor --write --yes"} {
		w.deps.Program = "/bin/sh"
		if got := w.runCommand(strings.Fields(mend)...); got.code != problem.ExitDone {
			t.Errorf("%s: %+v", mend, got)
		}
	}
	if got := w.runCommand("doctor", "--only", "D601,D602,D603,D604"); got.code != problem.ExitDone || !strings.Contains(got.stdout, "0 problems, 0 warnings") {
		t.Errorf("%+v", got)
	}
	// One client has a broken file. Another is connected but also reaches servers without MCPProxy.
	w = newEnvWithHomeFiles(t, map[string]string{".cursor/mcp.json": `{"mcpServers": {"mcpproxy": {"url": "http://127.0.0.1:8080/mcp"}, "github": {"command": "gh-mcp"}, "off": {"command": "x", "disabled": true}}}`, ".kiro/settings/mcp.json": "{\n"})
	got = w.runCommand("doctor", "--only", "D605,D606")
	for _, says := range []string{"D605", ".kiro/settings/mcp.json: line 2", "not through MCPProxy: github.", "upstream import cursor --remove"} {
		if !strings.Contains(strings.Join(strings.Fields(got.stdout), " "), says) {
			t.Errorf("%q is not in\n%s%s", says, got.stdout, got.stderr)
		}
	}
	// The rules are written, but a mode takes precedence over them. Writing them again fixes nothing.
	w = newEnvWithHomeFiles(t, map[string]string{".config/goose/config.yaml": "GOOSE_MODE: auto\nextensions:\n  mcpproxy:\n    type: streamable_http\n    uri: http://127.0.0.1:8080/mcp\n"})
	for _, command := range []string{"permissions goose --write", "permissions goose --check"} {
		got = w.runCommand("doctor", "--only", "D604")
		if !strings.Contains(got.stdout, " "+command+"\n") {
			t.Errorf("%s: %s", command, got.stdout)
		}
		w.runCommand(append(strings.Fields(command), "--yes")...)
	}
}
