package e2e

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mcpproxy/internal/testutil/volume"
)

// realClient is a client from npm that can list its servers without an account.
type realClient struct {
	id, program, path string
	before            string   // the user's file before the test
	list              []string // the command that lists its servers
	says              string   // the client's text about MCPProxy, next to its name
	off               edit     // the edit that disables MCPProxy
	saysOff           string   // the text about a disabled MCPProxy; "" if it is not listed
}

// edit is a change of a file: the old text is replaced by the new text. If old is "", the edit creates the file.
type edit struct{ path, old, new string }

var realClients = []realClient{
	{"claude-code", "claude", ".claude.json", `{"numStartups": 3, "mcpServers": {"mine": {"type": "stdio", "command": "true", "args": [], "env": {}}}}` + "\n", []string{"mcp", "list"}, "Connected",
		edit{".claude/settings.json", "{", `{"deniedMcpServers": [{"serverName": "mcpproxy"}],`}, ""},
	{"codex", "codex", ".codex/config.toml", "# mine\nmodel = \"o3\" # and this\n\n[mcp_servers.mine]\ncommand = \"true\"\n", []string{"mcp", "list"}, "enabled",
		edit{".codex/config.toml", "default_tools_approval_mode", "enabled = false\ndefault_tools_approval_mode"}, "disabled"},
	{"gemini", "gemini", ".gemini/settings.json", "{\n  // mine\n  \"theme\": \"Default\"\n}\n", []string{"mcp", "list"}, "Connected",
		edit{".gemini/mcp-server-enablement.json", "", `{"mcpproxy": {"enabled": false}}`}, "Disabled"},
	{"opencode", "opencode", ".config/opencode/opencode.jsonc", "{\n  // mine\n  \"$schema\": \"https://opencode.ai/config.json\",\n  \"mcp\": {},\n}\n", []string{"mcp", "list"}, "connected",
		edit{".config/opencode/opencode.jsonc", `"enabled": true`, `"enabled": false`}, "disabled"},
}

// inPath returns a PATH in which the directory of a program comes first.
func inPath(program string) string {
	return "PATH=" + filepath.Dir(program) + string(filepath.ListSeparator) + os.Getenv("PATH")
}

// clientProgram returns the path of a client, from npm or installed on this machine. If it is missing, the test is
// skipped, or fails in CI.
func clientProgram(t testing.TB, name string) string {
	t.Helper()
	volume.SkipUnlessNightly(t, volume.Clients)
	path, err := filepath.Abs(filepath.Join("..", "..", ".ci", "clients", "node_modules", ".bin", name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err = os.Stat(path); err == nil {
		return path
	}
	if path, err = exec.LookPath(name); err != nil {
		const install = "npm install --prefix .ci/clients"
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s is required in CI: %s", name, install)
		}
		t.Skipf("%s is not installed: %s", name, install)
	}
	return path
}

// TestRealClients: real clients are connected, list MCPProxy and get permission rules. An undo restores their files.
func TestRealClients(t *testing.T) {
	t.Parallel()
	volume.SkipUnlessNightly(t, volume.Clients)
	for _, c := range realClients {
		t.Run(c.id, func(t *testing.T) {
			t.Parallel()
			program := clientProgram(t, c.program)
			d := startDaemon(t, `{}`, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", inPath(program))
			path := filepath.Join(d.dir, c.path)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(c.before), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, step := range [][]string{
				{"connect", c.id, "--surface", "search", "--yes"}, {"permissions", c.id, "--write", "--yes"}, {"permissions", c.id, "--check"},
			} {
				if code, out, notes := d.cli(step...); code != 0 {
					t.Fatalf("%v: %d\n%s%s", step, code, out, notes)
				} else {
					t.Logf("%s%s", out, notes)
				}
			}
			if c.id == "gemini" {
				d.inHome(".gemini/trustedFolders.json", `{"/": "TRUST_FOLDER"}`) // skips its first question
			}
			c.lists(d, program, d.address, c.says)
			undo := d.switchOff(c.off)
			if code, out, _ := d.cli("permissions", c.id, "--check", "-o", "json"); code != 3 || strings.Count(out, `"verdict": "denied"`) != 6 {
				t.Errorf("disabled: the check reports %d %s", code, out)
			}
			if said := c.lists(d, program, c.saysOff); c.saysOff == "" && strings.Contains(said, d.address) {
				t.Errorf("disabled: MCPProxy is listed:\n%s", said)
			}
			undo()
			for _, step := range [][]string{{"permissions", c.id, "--undo"}, {"connect", c.id, "--undo"}} {
				if code, out, notes := d.cli(step...); code != 0 {
					t.Fatalf("%v: %d\n%s%s", step, code, out, notes)
				}
			}
			if now, err := os.ReadFile(path); err != nil || string(now) != c.before {
				t.Errorf("after the undo, the file is %q, %v", now, err)
			}
		})
	}
}

// twelveServers returns the files of the three clients that can list their servers, with four servers each.
func twelveServers() map[string]string {
	files := map[string]string{".codex/config.toml": "# mine\nmodel = \"o3\" # and this\n"}
	entries := func(indent, end string, names ...string) (text string) {
		for i, name := range names {
			if i == len(names)-1 {
				end = strings.TrimPrefix(end, ",")
			}
			text += fmt.Sprintf(`%s"%s": {"command": %q, "args": ["demo-upstream", "notes"], "env": {"WHICH": "%[2]s"}}%[4]s`, indent, name, binary, end)
		}
		return text
	}
	files[".claude.json"] = "{\n  \"numStartups\": 3,\n  \"mcpServers\": {\n" + entries("    ", ",\n", "one", "two", "three", "four") + "  },\n  \"theme\": \"dark\"\n}\n"
	files[".gemini/settings.json"] = "{\r\n  // mine\r\n  \"theme\": \"Default\",\r\n  \"mcpServers\": {\r\n" + entries("\t", ", // kept\r\n", "nine", "ten", "eleven", "twelve") + "  }\r\n}\r\n"
	for _, name := range []string{"five", "six", "seven", "eight"} {
		files[".codex/config.toml"] += fmt.Sprintf("\n[mcp_servers.%s] # %[1]s\ncommand = %q\nargs = [\"demo-upstream\", \"notes\"]\nenv = { WHICH = %[1]q }\n", name, binary)
	}
	return files
}

// TestMigrateAnAccountAndUndo: the servers of three clients are imported, and the clients are connected and get
// permission rules. Each client lists only MCPProxy, as the check reports. Undoing each step restores every file byte
// for byte.
func TestMigrateAnAccountAndUndo(t *testing.T) {
	t.Parallel()
	programs, env := map[string]string{}, []string{noKeyring, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"}
	for _, c := range realClients[:3] {
		programs[c.id] = clientProgram(t, c.program)
		env = append(env, inPath(programs[c.id])) // npm installs all of them in one directory
	}
	d := startDaemon(t, `{}`, env...)
	before := twelveServers()
	for name, text := range before {
		d.inHome(name, text)
	}
	d.inHome(".gemini/trustedFolders.json", `{"/": "TRUST_FOLDER"}`) // skips its first question
	do := func(args ...string) string {
		t.Helper()
		code, out, notes := d.cli(args...)
		if code != 0 {
			t.Fatalf("%v: %d\n%s%s", args, code, out, notes)
		}
		return out
	}
	do("upstream", "import", "--yes", "--remove")
	for _, name := range []string{"one", "five", "nine"} { // one of each client: approve the launch, then the tools
		do("upstream", "approve", name, "--yes")
		do("upstream", "approve", name, "--yes")
	}
	d.awaitTools("one:list_notes", "five:list_notes", "nine:list_notes")
	if n := strings.Count(do("upstream", "list", "-o", "json"), `"protocol":`); n != 12 {
		t.Errorf("%d servers were imported", n)
	}
	for _, c := range realClients[:3] {
		do("connect", c.id, "--yes")
		do("permissions", c.id, "--write", "--yes")
		if out := do("permissions", c.id, "--check", "-o", "json"); !strings.Contains(out, `"connected": true`) {
			t.Errorf("%s: %s", c.id, out)
		}
		if said := c.lists(d, programs[c.id], d.address, c.says); strings.Contains(said, "demo-upstream") {
			t.Errorf("%s still lists other servers:\n%s", c.id, said)
		}
	}
	for _, c := range realClients[:3] {
		do("connect", c.id, "--undo") // this also removes the rules, which were added later
	}
	do("upstream", "import", "--undo")
	for name, want := range before {
		if now, err := os.ReadFile(filepath.Join(d.dir, name)); err != nil || string(now) != want {
			t.Errorf("after the undo, %s is %q, %v; it was %q", name, now, err, want)
		}
	}
	for _, made := range []string{".claude/settings.json", ".gemini/policies/mcpproxy.toml"} {
		if _, err := os.Stat(filepath.Join(d.dir, made)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("after the undo, %s is left: %v", made, err)
		}
	}
}

// lists makes the client list its servers. It restores the parts of the client's file that the client changes by
// itself.
func (c realClient) lists(d *daemon, program string, wants ...string) string {
	d.t.Helper()
	path := filepath.Join(d.dir, c.path)
	written, err := os.ReadFile(path)
	if err != nil {
		d.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(d.t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, c.list...)
	cmd.Dir, cmd.Env = d.dir, d.environ("NO_COLOR=1")
	said, err := cmd.CombinedOutput()
	for _, want := range wants {
		if err != nil || !strings.Contains(string(said), want) {
			d.t.Errorf("%s: %v, want %q in\n%s", c.program, err, want, said)
		}
	}
	if err := os.WriteFile(path, written, 0o600); err != nil {
		d.t.Fatal(err)
	}
	return string(said)
}

// switchOff applies an edit and returns a function that reverts it.
func (d *daemon) switchOff(e edit) (undo func()) {
	d.t.Helper()
	if e.old == "" {
		path := d.inHome(e.path, e.new)
		return func() { _ = os.Remove(path) }
	}
	path := filepath.Join(d.dir, e.path)
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), e.old) {
		d.t.Fatalf("%v: no %q in %s", err, e.old, text)
	}
	d.inHome(e.path, strings.Replace(string(text), e.old, e.new, 1))
	return func() { d.inHome(e.path, string(text)) }
}
