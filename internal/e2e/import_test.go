package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// inHome writes a client's file into the home directory of the daemon.
func (d *daemon) inHome(name, text string) string {
	d.t.Helper()
	path := filepath.Join(d.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
	return path
}

// threeClients are realistic files of three clients with 12 servers in total.
func threeClients() map[string]string {
	const secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	notes := func(name string) string {
		return fmt.Sprintf(`{ "command": %q, "args": ["demo-upstream", "notes"], "env": {"WHICH": %q, "GITHUB_TOKEN": %q}, },`, binary, name, secret)
	}
	files := map[string]string{
		".cursor/mcp.json": "\ufeff// mine\r\n{\r\n  \"mcpServers\": {\r\n    \"one\": " + notes("1") + "\r\n    \"two\": " + notes("2") + " // the second\r\n    \"three\": " + notes("3") + "\r\n    \"four\": " + notes("4") +
			"\r\n    \"mcpproxy\": {\"url\": \"http://127.0.0.1:8080/mcp\"},\r\n  },\r\n}\r\n",
		".codex/config.toml":        "model = \"o5\" # best\n",
		".config/goose/config.yaml": "GOOSE_MODE: auto\nextensions:\n  developer:\n    type: builtin\n    enabled: true\n",
	}
	for _, name := range []string{"five", "six", "seven", "eight"} {
		files[".codex/config.toml"] += fmt.Sprintf("\n[mcp_servers.%s] # %[1]s\ncommand = %q\nargs = [\"demo-upstream\", \"notes\"]\nenv = { WHICH = %[1]q }\n", name, binary)
	}
	for _, name := range []string{"nine", "ten", "eleven", "twelve"} {
		files[".config/goose/config.yaml"] += fmt.Sprintf("  %s:\n    type: stdio\n    cmd: %q\n    args: [demo-upstream, notes]\n    envs:\n      WHICH: %s # which\n      API_KEY: key-of-%[1]s\n    enabled: true\n", name, binary, name)
	}
	return files
}

// TestImportTwelveServers: twelve servers of three clients are imported with their secrets, and run after their
// approval. An undo restores each client's file byte for byte.
func TestImportTwelveServers(t *testing.T) {
	t.Parallel()
	for _, running := range []bool{true, false} {
		d := startDaemon(t, "{\n  // mine\n}\n", noKeyring)
		paths := map[string]string{}
		for name, text := range threeClients() {
			paths[d.inHome(name, text)] = text
		}
		if !running {
			d.stop()
		}
		code, stdout, stderr := d.cli("upstream", "import", "--yes", "--remove", "-o", "json")
		var out struct {
			Results []struct {
				Name, State    string
				Added, Removed bool
				Secrets        []string
			}
		}
		if err := json.Unmarshal([]byte(stdout), &out); err != nil || code != 0 || len(out.Results) != 12 {
			t.Fatalf("%d %v %s %s", code, err, stdout, stderr)
		}
		for _, r := range out.Results {
			if !r.Added || !r.Removed || r.State != "review" {
				t.Errorf("%+v", r)
			}
		}
		for path := range paths {
			left, err := os.ReadFile(path)
			if err != nil || strings.Contains(string(left), "demo-upstream") || strings.Contains(string(left), "WHICH") {
				t.Errorf("%s: %v %s", path, err, left)
			}
		}
		if got := d.readConfig(); !strings.Contains(got, "// mine") || strings.Contains(got, "ghp_") || strings.Contains(got, "key-of-") || strings.Count(got, `"${keyring:GITHUB_TOKEN}"`) != 4 || !strings.Contains(got, `"${keyring:TEN_API_KEY}"`) {
			t.Error(got)
		}
		if running {
			if s, err := d.server("one"); err != nil || s.State != "stopped" {
				t.Errorf("it runs before its approval: %+v %v", s, err)
			}
		} else {
			d.start()
		}
		for range 2 { // approve the launch, then the definitions
			if code, _, stderr := d.cli("upstream", "approve", "ten", "--yes"); code != 0 {
				t.Fatal(stderr)
			}
		}
		d.awaitTools("ten:list_notes")
		code, stdout, stderr = d.cli("upstream", "import", "--undo")
		if code != 0 || strings.Count(stdout, "is restored") != 3 {
			t.Errorf("%d %s %s", code, stdout, stderr)
		}
		for path, want := range paths {
			if got, err := os.ReadFile(path); err != nil || string(got) != want {
				t.Errorf("after the undo, %s differs: %v %q", path, err, got)
			}
		}
		if code, stdout, _ := d.cli("upstream", "import", "--yes"); code != 0 || !strings.Contains(stdout, "There is nothing to import.") {
			t.Errorf("%d %s", code, stdout)
		}
	}
}

// TestImportByREST: an import names the IDs of the found servers and requires that they are unchanged. Confirmed
// servers start, and the change of the client's file can be undone.
func TestImportByREST(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, "{}", noKeyring)
	text := fmt.Sprintf(`{"mcpServers": {"a": {"command": %q, "args": ["demo-upstream", "notes"], "env": {"A_TOKEN": "clear-text-of-a"}}, "b": {"command": "b", "env": {"B_TOKEN": "clear-text-of-b"}}}}`, binary)
	path := d.inHome(".cursor/mcp.json", text)
	list := func() (ids []string) {
		t.Helper()
		status, body := d.rest("GET", "/clients/servers", "")
		var all struct {
			Found []struct {
				ID   string
				Have bool
			}
		}
		if err := json.Unmarshal(body, &all); err != nil || status != 200 || strings.Contains(string(body), "clear-text") {
			t.Fatalf("%d %v %s", status, err, body)
		}
		for _, f := range all.Found {
			ids = append(ids, f.ID)
		}
		return ids
	}
	seen := list()
	if err := os.WriteFile(path, []byte(strings.Replace(text, `"b"}`, `"b", "args": ["evil"]}`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	d.inHome(".cursor/mcp.json", strings.Replace(text, `"command": "b"`, `"command": "evil"`, 1))
	if status, body := d.rest("POST", "/servers/import", fmt.Sprintf(`{"ids": [%q, %q], "confirmed": true}`, seen[0], seen[1])); status != 404 || strings.Contains(d.readConfig(), "demo-upstream") {
		t.Errorf("a server that has changed was imported: %d %s", status, body)
	}
	d.inHome(".cursor/mcp.json", text)
	status, body := d.rest("POST", "/servers/import", fmt.Sprintf(`{"ids": [%q], "confirmed": true, "keyring": true, "remove": true}`, seen[0]))
	var out struct {
		Results []struct {
			Added, Removed bool
			State, Change  string
		}
	}
	if err := json.Unmarshal(body, &out); err != nil || status != 200 || len(out.Results) != 1 || !out.Results[0].Added || !out.Results[0].Removed || out.Results[0].State == "review" {
		t.Fatalf("%d %v %s", status, err, body)
	}
	d.awaitTools("a:list_notes")
	if left, err := os.ReadFile(path); err != nil || strings.Contains(string(left), "clear-text-of-a") || !strings.Contains(string(left), "clear-text-of-b") {
		t.Errorf("%s %v", left, err)
	}
	if status, body := d.rest("POST", "/clients/undo", fmt.Sprintf(`{"change": %q}`, out.Results[0].Change)); status != 200 {
		t.Errorf("%d %s", status, body)
	}
	if left, err := os.ReadFile(path); err != nil || string(left) != text {
		t.Errorf("%s %v", left, err)
	}
	for _, bad := range []string{`{"ids": []}`, `{"ids": ["../../etc/passwd"]}`, `{"ids": ["x"], "path": "/etc/passwd"}`, `{}`} {
		if status, body := d.rest("POST", "/servers/import", bad); status < 400 || status >= 500 {
			t.Errorf("%s: %d %s", bad, status, body)
		}
	}
	if _, body := d.rest("GET", "/activity?type=config_change", ""); !strings.Contains(string(body), "import_servers") || strings.Contains(string(body), "clear-text") {
		t.Errorf("%s", body)
	}
}
