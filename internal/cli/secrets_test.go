package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcpproxy/internal/problem"
	"mcpproxy/internal/upstream/secret"
)

// Secrets can be set without a daemon.
func TestSecretsWithoutDaemon(t *testing.T) {
	t.Setenv(secret.NoKeyringEnv, "1")
	dir := t.TempDir()
	config := filepath.Join(dir, "mcp_config.json")
	if err := os.WriteFile(config, []byte(`{"mcpServers": {"tickets": {"command": "x", "env": {"T": "${keyring:TICKETS}"}}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	do := func(stdin string, args ...string) (code int, stdout, stderr string) {
		var out, notes strings.Builder
		code = Run(context.Background(), append([]string{"--config", config, "--data-dir", dir}, args...),
			Deps{Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &notes, Getenv: func(string) string { return "" }})
		return code, out.String(), notes.String()
	}
	for _, c := range []struct {
		name, stdin  string
		args         []string
		code         int
		says, hushed string
	}{
		{"needed", "", []string{"secrets", "list"}, problem.ExitDone, "TICKETS  missing  tickets", ""},
		{"set", "a value\n\n", []string{"secrets", "set", "TICKETS"}, problem.ExitDone, "Used by tickets.", "a value"},
		{"listed", "", []string{"secrets", "list"}, problem.ExitDone, "file", "a value"},
		{"unused", "v\r\n", []string{"secrets", "set", "SPARE"}, problem.ExitDone, "${keyring:SPARE}", ""},
		{"value on the line", "", []string{"secrets", "set", "TICKETS", "plain"}, problem.ExitUsage, "only the name", "plain"},
		{"value as the name", "", []string{"secrets", "set", "a b/c=="}, problem.ExitUsage, "Invalid name for a secret", "a b/c"},
		{"empty", "\n", []string{"secrets", "set", "TICKETS"}, problem.ExitUsage, "empty", ""},
		{"binary", "\x00", []string{"secrets", "set", "TICKETS"}, problem.ExitUsage, "NUL", ""},
		{"large", strings.Repeat("x", secret.MaxValue+1), []string{"secrets", "set", "TICKETS"}, problem.ExitUsage, "65536", "xxx"},
		{"no one to ask", "", []string{"secrets", "delete", "TICKETS"}, problem.ExitUsage, "used by tickets", ""},
		{"deleted", "", []string{"secrets", "delete", "TICKETS", "--yes"}, problem.ExitDone, "deleted", ""},
		{"deleted twice", "", []string{"secrets", "delete", "TICKETS", "--yes"}, problem.ExitNotFound, "no secret", ""},
	} {
		code, stdout, stderr := do(c.stdin, c.args...)
		if code != c.code || !strings.Contains(stdout+stderr, c.says) || c.hushed != "" && strings.Contains(stdout+stderr, c.hushed) {
			t.Errorf("%s: %d, want %d\n%s%s", c.name, code, c.code, stdout, stderr)
		}
		if c.name == "set" {
			if got, err := secret.OpenStore(dir, nil).Get(context.Background(), "TICKETS"); got != "a value\n" || err != nil {
				t.Errorf("stored %q (%v), want exactly one line end removed", got, err)
			}
		}
	}
	if got, err := secret.OpenStore(dir, nil).Get(context.Background(), "SPARE"); got != "v" || err != nil {
		t.Errorf("%q %v", got, err)
	}
}
