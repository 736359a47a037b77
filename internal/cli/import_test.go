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

const (
	cursorFile   = ".cursor/mcp.json"
	cursorServer = "{\r\n  // mine\r\n  \"mcpServers\": {\r\n    \"github\": {\"command\": \"github-mcp\", \"env\": {\"GITHUB_TOKEN\": \"ghp_0123456789abcdefghijABCDEFGHIJ012345\"}},\r\n    \"mcpproxy\": {\"command\": \"mcpproxy\"},\r\n  },\r\n}\r\n"
	windsurfFile = ".codeium/windsurf/mcp_config.json"
	windsurfText = `{"mcpServers": {"gh": {"command": "github-mcp", "env": {"GITHUB_TOKEN": "ghp_0123456789abcdefghijABCDEFGHIJ012345"}}}}`
)

func (w *testEnv) readConfigFile() string {
	w.t.Helper()
	text, err := os.ReadFile(filepath.Join(w.env["HOME"], ".mcpproxy", "mcp_config.json"))
	if err != nil && !os.IsNotExist(err) {
		w.t.Fatal(err)
	}
	return string(text)
}

// The import shows each server once for all clients, adds it and removes it from the clients' files. An undo restores
// the files.
func TestImported(t *testing.T) {
	t.Setenv("MCPPROXY_NO_KEYRING", "1")
	w := newEnvWithHomeFiles(t, map[string]string{cursorFile: cursorServer, windsurfFile: windsurfText})
	for _, step := range []struct {
		args string
		code int
		says string
	}{
		{"upstream import --undo", problem.ExitNotFound, "No import is left to undo"},
		{"upstream import", problem.ExitUsage, "Not a terminal"},
		{"upstream import --dry-run", problem.ExitDone, "Would import github."},
		{"upstream import --dry-run --remove", problem.ExitDone, "Would be removed from "},
		{"upstream import nobody", problem.ExitNotFound, "No client is called"},
		{"upstream import ./nobody.json", problem.ExitUsage, "cannot be read"},
		{"upstream import --keyring --no-keyring", problem.ExitUsage, "cannot be combined"},
		{"upstream import --undo --remove", problem.ExitUsage, "--undo cannot be combined with other flags"},
		{"upstream import zed --yes", problem.ExitDone, "There is nothing to import."},
		{"upstream import --yes --remove", problem.ExitDone, "Imported for review: github."},
		{"upstream import --yes", problem.ExitDone, "There is nothing to import."},
		{"upstream import --undo", problem.ExitDone, cursorFile + " is restored."},
		{"upstream import windsurf --yes --remove", problem.ExitDone, "To use these servers in Windsurf, connect it to MCPProxy: run `mcpproxy connect windsurf`."},
		{"upstream import cursor --yes --remove", problem.ExitDone, "Removed from "},
		{"upstream import windsurf --undo", problem.ExitDone, windsurfFile + " is restored."},
		{"upstream import windsurf --dry-run", problem.ExitDone, "github: already added"},
		{"upstream import --undo", problem.ExitDone, cursorFile + " is restored."},
	} {
		got := w.runCommand(strings.Fields(step.args)...)
		if got.code != step.code || !strings.Contains(got.stdout+got.stderr, step.says) {
			t.Errorf("%s: %d, want %d with %q in\n%s%s", step.args, got.code, step.code, step.says, got.stdout, got.stderr)
		}
		if strings.Contains(got.stdout+got.stderr, "ghp_") {
			t.Errorf("%s shows a secret:\n%s%s", step.args, got.stdout, got.stderr)
		}
	}
	for name, want := range map[string]string{cursorFile: cursorServer, windsurfFile: windsurfText} {
		if text, err := os.ReadFile(filepath.Join(w.env["HOME"], name)); err != nil || string(text) != want {
			t.Errorf("after the undo, %s is %q, %v", name, text, err)
		}
	}
	if text := w.readConfigFile(); !strings.Contains(text, `"${keyring:GITHUB_TOKEN}"`) || !strings.Contains(text, `"quarantined": true`) || strings.Count(text, "github-mcp") != 1 {
		t.Error(text)
	}
}

// The user sees the launch commands before the question, and a yes confirms them. A no to the keyring or to the removal
// affects only that step.
func TestImportAsksFirst(t *testing.T) {
	t.Setenv("MCPPROXY_NO_KEYRING", "1")
	for name, c := range map[string]struct {
		flags                   string
		answers                 []string
		code                    int
		waits, keyring, removed bool
		questions               []string
	}{
		"no":          {"", []string{"n"}, problem.ExitInterrupted, false, false, false, []string{"and start it?"}},
		"yes to all":  {"", []string{"y", "y", "y"}, problem.ExitDone, false, true, true, []string{"and start it?", "Keep 1 secret in the keyring", "Remove them"}},
		"yes to one":  {"", []string{"y", "n", "n"}, problem.ExitDone, false, false, false, []string{"and start it?", "Keep 1 secret in the keyring", "Remove them"}},
		"for review":  {"--quarantined --keyring --remove", []string{"y"}, problem.ExitDone, true, true, true, []string{"for review before they start?"}},
		"in the file": {"--no-keyring --remove", []string{"y"}, problem.ExitDone, false, false, true, []string{"and start it?"}},
	} {
		w := newEnvWithHomeFiles(t, map[string]string{cursorFile: cursorServer})
		var asked []string
		w.deps.Ask = func(_ context.Context, q string) (string, error) {
			asked = append(asked, q)
			return c.answers[len(asked)-1], nil
		}
		got := w.runCommand(append([]string{"upstream", "import"}, strings.Fields(c.flags)...)...)
		if got.code != c.code || len(asked) != len(c.questions) || !strings.Contains(got.stdout, "Command      github-mcp") || !strings.Contains(got.stdout, "Not imported: mcpproxy of Cursor is MCPProxy itself.") {
			t.Errorf("%s: %+v after %q", name, got, asked)
			continue
		}
		for i, q := range c.questions {
			if !strings.Contains(asked[i], q) {
				t.Errorf("%s: %q, want %q", name, asked[i], q)
			}
		}
		if says := strings.Contains(got.stderr, "MCPProxy is not running. `mcpproxy service install`"); says != (c.code == problem.ExitDone && !c.waits) {
			t.Errorf("%s: the next step is wrong or missing: %s", name, got.stderr)
		}
		text := w.readConfigFile()
		if strings.Contains(text, `"quarantined": true`) != c.waits || strings.Contains(text, "${keyring:GITHUB_TOKEN}") != c.keyring || strings.Contains(text, "ghp_") == (c.keyring || c.code != problem.ExitDone) {
			t.Errorf("%s: %s", name, text)
		}
		left, err := os.ReadFile(filepath.Join(w.env["HOME"], cursorFile))
		if err != nil || strings.Contains(string(left), "github-mcp") == c.removed || !strings.Contains(string(left), "\"mcpproxy\"") {
			t.Errorf("%s: %s %v", name, left, err)
		}
	}
}

// The command imports a text from stdin or from a file, in every supported format.
func TestImportOfAText(t *testing.T) {
	t.Setenv("MCPPROXY_NO_KEYRING", "1")
	w := newTestEnv(t)
	w.stdin = "[mcp_servers.files]\ncommand = \"files-mcp\"\n"
	var out importOutput
	got := w.runCommand("upstream", "import", "-", "--yes", "-o", "json")
	if err := json.Unmarshal([]byte(got.stdout), &out); err != nil || got.code != problem.ExitDone || len(out.Found) != 1 || len(out.Results.Results) != 1 || !out.Results.Results[0].Added {
		t.Errorf("%v %+v", err, got)
	}
	path := filepath.Join(t.TempDir(), "servers.json")
	if err := os.WriteFile(path, []byte(`{"mcpServers": {"files": {"command": "other-mcp"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := w.runCommand("upstream", "import", path, "--remove"); got.code != problem.ExitUsage {
		t.Errorf("%+v", got)
	}
	if got := w.runCommand("upstream", "import", path, "--yes"); got.code != problem.ExitDone || !strings.Contains(got.stdout, "Imported for review: files-2.") {
		t.Errorf("%+v", got)
	}
	w.stdin = "{"
	if got := w.runCommand("upstream", "import", "-", "--yes"); got.code != problem.ExitFailed || !strings.Contains(got.stderr, "line 1") {
		t.Errorf("%+v", got)
	}
}

// The command reports an unreadable client file as an error with the reason, even if it imported other servers.
func TestImportOfABrokenFile(t *testing.T) {
	t.Setenv("MCPPROXY_NO_KEYRING", "1")
	w := newEnvWithHomeFiles(t, map[string]string{cursorFile: `{"mcpServers": {"a": {"command": "x"`, windsurfFile: windsurfText})
	for _, step := range []struct {
		args, says string
		code       int
	}{
		{"upstream import cursor --yes", "cannot be read: line 1, column 37: the file ends too early", problem.ExitFailed},
		{"upstream import cursor --dry-run -o json", "cannot be read: line 1, column 37: the file ends too early", problem.ExitFailed},
		{"upstream import --yes", "Imported for review: gh.", problem.ExitFailed},
		{"upstream import windsurf --yes", "There is nothing to import.", problem.ExitDone},
	} {
		got := w.runCommand(strings.Fields(step.args)...)
		if got.code != step.code || !strings.Contains(got.stdout+got.stderr, step.says) {
			t.Errorf("%s: %d, want %d with %q in\n%s%s", step.args, got.code, step.code, step.says, got.stdout, got.stderr)
		}
	}
}

// A text without a server that can be imported is an error with the reason.
func TestImportOfNothingUsable(t *testing.T) {
	t.Setenv("MCPPROXY_NO_KEYRING", "1")
	w := newTestEnv(t)
	for text, says := range map[string]string{
		`{"mcpServers": {"a": {"args": []}, "b": "x"}}`: `No server can be imported: line 1: server "a" is left out`,
		"null": "contains no servers",
	} {
		w.stdin = text
		if got := w.runCommand("upstream", "import", "-", "--yes"); got.code != problem.ExitFailed || !strings.Contains(got.stderr, says) {
			t.Errorf("%s: %+v, want %q", text, got, says)
		}
	}
	w.stdin = `{"mcpServers": {}}`
	if got := w.runCommand("upstream", "import", "-", "--yes"); got.code != problem.ExitDone {
		t.Errorf("no servers: %+v", got)
	}
}

// An import that removes servers from the clients' files also removes those that MCPProxy already has.
func TestImportRemovesExistingServers(t *testing.T) {
	t.Setenv("MCPPROXY_NO_KEYRING", "1")
	w := newEnvWithHomeFiles(t, map[string]string{cursorFile: `{"mcpServers": {"a": {"command": "a-mcp"}, "b": {"command": "b-mcp"}}}`, windsurfFile: `{"mcpServers": {"a": {"command": "a-mcp"}}}`})
	if got := w.runCommand("upstream", "import", "windsurf", "--yes"); got.code != problem.ExitDone {
		t.Fatalf("%+v", got)
	}
	w.deps.Ask = func(context.Context, string) (string, error) { return "y", nil }
	if got := w.runCommand("upstream", "import"); got.code != problem.ExitDone {
		t.Errorf("%+v", got)
	}
	for _, name := range []string{cursorFile, windsurfFile} {
		if text, err := os.ReadFile(filepath.Join(w.env["HOME"], name)); err != nil || strings.Contains(string(text), "-mcp") {
			t.Errorf("%s: %s %v", name, text, err)
		}
	}
}
