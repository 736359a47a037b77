package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mcpproxy/internal/testutil/pgtest"
	"mcpproxy/internal/testutil/volume"
)

// deniedServer is an MCP server for node that reads and writes files when it starts, and ends if it cannot. Its
// arguments are the files to read, and then those to write, with a + before.
const deniedServer = `
const fs = require("fs");
for (const path of process.argv.slice(2)) {
  try {
    path[0] === "+" ? fs.writeFileSync(path.slice(1) + "/state", "x") : fs.readFileSync(path.replace(/^-/, ""));
  } catch (e) {
    console.error(e.message);
    if (!path.startsWith("-")) process.exit(1);
  }
}
` + unhintedServer

// suggestion is a proposed sandbox.
type suggestion struct {
	Sandbox struct {
		Mode, Network string
		Read, Write   []string
	}
	Text, Command string
	LeftOut       []string `json:"left_out"`
	Started       bool
	Ready         bool
	Untried       bool
	Problem       string
}

// suggest returns the proposed sandbox of a server.
func (d *daemon) suggest(server string) (s suggestion) {
	d.t.Helper()
	d.rest200("POST", "/servers/"+server+"/sandbox/suggest", "", &s) // several starts of the server
	return s
}

// apply runs the command of a suggestion, as a user would.
func (d *daemon) apply(s suggestion) {
	d.t.Helper()
	cmd := exec.Command("sh", "-c", `mcpproxy() { "$BINARY" "$@" --config "$CONFIG" --data-dir "$DATA"; }; `+s.Command)
	cmd.Env = d.environ("BINARY="+binary, "CONFIG="+d.configPath(), "DATA="+d.dataDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		d.t.Fatalf("%s: %v\n%s", s.Command, err, out)
	}
}

// TestSuggestedSandboxes: trial runs find what a server needs, secrets stay out, nothing is changed, and the server
// runs in the proposed sandbox. A server that is not approved is not started.
func TestSuggestedSandboxes(t *testing.T) {
	t.Parallel()
	_, node := peers(t)
	dir, state := t.TempDir(), t.TempDir()
	script := filepath.Join(t.TempDir(), "server.js")
	notes := filepath.Join(dir, "it's a note.txt")
	other := filepath.Join(t.TempDir(), "other.txt")
	for path, text := range map[string]string{script: deniedServer, notes: "x", other: "x"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d := startDaemon(t, `{"mcpServers": {}}`)
	key := filepath.Join(d.dir, ".ssh", "id_ed25519")
	if err := os.MkdirAll(filepath.Dir(key), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(key, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{
		"reader": map[string]any{"command": node, "args": []string{script, "--", notes, "-" + key, "+" + state}},
		"kept":   map[string]any{"command": node, "args": []string{script, notes, "-" + other}, "sandbox": map[string]any{"mode": "strict", "read": []string{notes}}},
		"bad":    map[string]any{"command": node, "args": []string{script, "--", key}},
		"waits":  map[string]any{"command": node, "args": []string{script, notes}, "quarantined": true},
	}})
	if err != nil {
		t.Fatal(err)
	}
	d.writeConfig(string(config))
	d.awaitTools("reader:frobnicate")

	s := d.suggest("reader")
	if !s.Started || !s.Ready || s.Sandbox.Mode != "strict" || s.Sandbox.Network != "none" || !slices.Equal(s.Sandbox.Read, []string{notes}) || !slices.Equal(s.Sandbox.Write, []string{state}) {
		t.Fatalf("%+v", s)
	}
	if left := strings.Join(s.LeftOut, "\n"); !strings.Contains(left, key+", because it is a secret") {
		t.Errorf("left out: %s", left)
	}
	if text, err := os.ReadFile(d.configPath()); err != nil || string(text) != string(config) {
		t.Errorf("the configuration changed: %s, %v", text, err)
	}
	d.apply(s)
	eventually(t, "the server runs in its sandbox", func() error {
		if _, stdout, _ := d.cli("call", "tool-write", "reader:frobnicate"); !strings.Contains(stdout, "done") {
			return fmt.Errorf("%s", stdout)
		}
		if _, stdout, _ := d.cli("upstream", "get", "reader"); !strings.Contains(stdout, "may read "+notes+", read and write "+state+", no network") {
			return fmt.Errorf("%s", stdout)
		}
		return nil
	})
	if _, stdout, _ := d.cli("sandbox", "suggest", "reader"); !strings.Contains(stdout, `{"mode":"strict"`) || !strings.Contains(stdout, "The server listed its tools in this sandbox") || !strings.Contains(stdout, "mcpproxy upstream set reader sandbox '") {
		t.Error(stdout)
	}
	if _, stdout, _ := d.cli("activity", "list", "--server", "reader", "--type", "server_change", "-o", "json"); !strings.Contains(stdout, "try_sandbox") {
		t.Error(stdout)
	}

	if s = d.suggest("kept"); !s.Started || !s.Untried || s.Ready || !slices.Equal(s.Sandbox.Read, []string{notes, other}) {
		t.Errorf("%+v", s)
	}
	if _, stdout, _ := d.cli("sandbox", "suggest", "kept"); !strings.Contains(stdout, "not tried in this sandbox") {
		t.Error(stdout)
	}
	if s = d.suggest("bad"); s.Ready || s.Problem == "" || len(s.Sandbox.Read) > 0 || !strings.Contains(strings.Join(s.LeftOut, "\n"), "it is a secret") {
		t.Errorf("%+v", s)
	}
	if s = d.suggest("waits"); s.Started || s.Ready || !slices.Equal(s.Sandbox.Read, []string{notes}) {
		t.Errorf("%+v", s)
	}
}

// TestSuggestedSandboxesOfNpmServers: servers from npm answer their calls in the sandbox that is proposed for them.
func TestSuggestedSandboxesOfNpmServers(t *testing.T) {
	t.Parallel()
	entries := map[string]any{}
	servers := slices.DeleteFunc(npmServers(t, t.TempDir()), func(s npmServer) bool { return s.name == "playwright" }) // its browser needs Unix sockets
	if volume.CoversTopic(volume.Peers) {
		_, node := peers(t)
		script := installed(t, "@modelcontextprotocol", "server-postgres", "dist", "index.js")
		servers = append(servers, npmServer{"postgres", map[string]any{"command": node, "args": []string{script, pgtest.SharedServer(t).CreateDatabase(t)}},
			[]npmCall{{"write", "query", `{"sql":"select 40 + 2 as sum"}`, `42`, false}}})
	}
	for _, s := range servers {
		entries[s.name] = s.entry
	}
	config, err := json.Marshal(map[string]any{"mcpServers": entries})
	if err != nil {
		t.Fatal(err)
	}
	d := startDaemon(t, string(config))
	for _, s := range servers {
		d.awaitTools(s.name + ":" + s.calls[0].tool)
		found := d.suggest(s.name)
		if !found.Ready {
			t.Errorf("%s: %+v", s.name, found)
		}
		d.apply(found)
		eventually(t, s.name+" runs in its sandbox", func() error {
			if _, stdout, _ := d.cli("upstream", "get", s.name); !strings.Contains(stdout, found.Text) || !strings.Contains(stdout, "ready") {
				return fmt.Errorf("%s", stdout)
			}
			return nil
		})
		for _, c := range s.calls {
			if _, stdout, stderr := d.cli("call", "tool-"+c.lane, s.name+":"+c.tool, "--args", c.arguments, "-o", "json"); !strings.Contains(strings.ReplaceAll(stdout+stderr, `": `, `":`), c.want) {
				t.Errorf("%s:%s in %s: %s %s", s.name, c.tool, found.Text, stdout, stderr)
			}
		}
	}
}
