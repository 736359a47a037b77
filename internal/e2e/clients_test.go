package e2e

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// realClient is a client from npm that lists its servers without an account.
type realClient struct {
	id, program, path string
	before            string   // a person's file
	list              []string // how it lists its servers
	says              string   // what that says of MCPProxy, beside its name
}

var realClients = []realClient{
	{"claude-code", "claude", ".claude.json", `{"numStartups": 3, "mcpServers": {"mine": {"type": "stdio", "command": "true", "args": [], "env": {}}}}` + "\n", []string{"mcp", "get", "mcpproxy"}, "http://"},
	{"codex", "codex", ".codex/config.toml", "# mine\nmodel = \"o3\" # and this\n\n[mcp_servers.mine]\ncommand = \"true\"\n", []string{"mcp", "list"}, "http://"},
	{"gemini", "gemini", ".gemini/settings.json", "{\n  // mine\n  \"theme\": \"Default\"\n}\n", []string{"mcp", "list"}, "http://"},
	{"opencode", "opencode", ".config/opencode/opencode.jsonc", "{\n  // mine\n  \"$schema\": \"https://opencode.ai/config.json\",\n  \"mcp\": {},\n}\n", []string{"mcp", "list"}, "connected"},
}

// TestRealClients: clients as their vendors publish them are connected, list MCPProxy
// themselves, get its rules, and their files are what they were after it is undone.
func TestRealClients(t *testing.T) {
	d := startDaemon(t, `{}`)
	t.Setenv("XDG_CONFIG_HOME", "")   // the account is the test's own
	t.Setenv("CLAUDE_CONFIG_DIR", "") // restored after the test
	os.Unsetenv("CLAUDE_CONFIG_DIR")  // an empty one is the working directory to claude
	t.Setenv("CODEX_HOME", "")
	for _, c := range realClients {
		t.Run(c.id, func(t *testing.T) {
			program, err := exec.LookPath(c.program)
			if err != nil {
				t.Skipf("%s is not installed: npm install @anthropic-ai/claude-code @openai/codex @google/gemini-cli opencode-ai", c.program)
			}
			path := filepath.Join(d.dir, c.path)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(c.before), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, step := range [][]string{
				{"connect", c.id, "--yes"}, {"permissions", c.id, "--write", "--yes"}, {"permissions", c.id, "--check"},
			} {
				if code, out, notes := d.cli(step...); code != 0 {
					t.Fatalf("%v: %d\n%s%s", step, code, out, notes)
				} else {
					t.Logf("%s%s", out, notes)
				}
			}
			written, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, program, c.list...)
			cmd.Dir, cmd.Env = d.dir, append(os.Environ(), "HOME="+d.dir, "NO_COLOR=1")
			said, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(said), "mcpproxy") || !strings.Contains(string(said), c.says) || !strings.Contains(string(said), d.address) {
				t.Errorf("%s says %v\n%s", c.program, err, said)
			}
			if now, err := os.ReadFile(path); err == nil && !bytes.Equal(now, written) { // it keeps a state of its own in the file
				t.Logf("%s writes its file while it lists; put back", c.program)
				if err := os.WriteFile(path, written, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for _, step := range [][]string{{"permissions", c.id, "--undo"}, {"connect", c.id, "--undo"}} {
				if code, out, notes := d.cli(step...); code != 0 {
					t.Fatalf("%v: %d\n%s%s", step, code, out, notes)
				}
			}
			if now, err := os.ReadFile(path); err != nil || string(now) != c.before {
				t.Errorf("undone, the file is %q, %v", now, err)
			}
		})
	}
}
