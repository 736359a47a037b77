package ops_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mcpproxy/internal/clients"
	"mcpproxy/internal/clients/permission"
	"mcpproxy/internal/config"
	"mcpproxy/internal/mcpserver"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
)

var surfaces = []string{"search", "lanes", "all"}

// realFiles contains one realistic file for each client.
var realFiles = map[string]string{
	"claude-code": "claude-code.json", "claude-desktop": "claude-desktop.json", "cursor": "cursor.json", "vscode": "vscode.jsonc", "codex": "codex.toml", "gemini": "gemini.json",
	"windsurf": "windsurf.json", "opencode": "opencode-v1.json", "zed": "zed.jsonc", "copilot": "copilot-cli.json", "goose": "goose.yaml", "cline": "cline.json",
	"lmstudio": "lmstudio.json", "kiro": "kiro.json", "junie": "junie.json",
}

// surfaceAccount returns an account with MCPProxy's built-in tools.
func surfaceAccount(t *testing.T) *ops.LocalClients {
	a := account(t)
	a.Tools = func() []permission.ProxyTool {
		return permission.ParseTools(mcpserver.BuiltinDefinitions(config.ManagePropose))
	}
	return a
}

// filesIn returns the texts of all files below a directory, by relative path.
func filesIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		all[rel] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// apply makes a planned change.
func apply(t *testing.T, a *ops.LocalClients, plan ops.ConnectPlan, err error) ops.FileChange {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	done, err := a.ApplyPlan(t.Context(), ops.Caller{}, plan)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// connectSurface connects a client. It checks that the plan predicts the written files, and that connecting again
// changes nothing.
func connectSurface(t *testing.T, a *ops.LocalClients, id, surface string) {
	t.Helper()
	plan, err := a.PlanConnect(id, ops.ConnectOptions{Surface: surface})
	done := apply(t, a, plan, err)
	if !done.Changed || !done.Written || done.Surface != surface || len(done.Warnings) > 0 && id != "cursor" {
		t.Fatalf("%+v", done)
	}
	if done.Rules != nil && (!done.Rules.Written || done.Rules.Difference == "") {
		t.Errorf("%+v", done.Rules)
	}
	again, err := a.PlanConnect(id, ops.ConnectOptions{Surface: surface})
	if err != nil || again.Changed {
		t.Errorf("connecting again changes %q %+v, %v", again.Difference, again.Rules, err)
	}
	list, err := a.ListClients()
	if err != nil {
		t.Fatal(err)
	}
	view := list.Clients[slices.IndexFunc(list.Clients, func(v ops.ClientView) bool { return v.ID == id })]
	entries := map[string]int{"search": 1, "lanes": 3, "all": 1}[surface]
	if view.Surface != surface || len(view.Servers) != entries || view.Server != view.Servers[0] || !view.Connected || view.Foreign || view.Permissions.Surface != surface {
		t.Errorf("the list reports %+v", view)
	}
	client, _ := clients.FindClient(id)
	d, ok := client.TargetFile(a.Env).Read()
	if found := d.ProxyEntries(func(url string) bool { return strings.HasPrefix(url, "http://127.0.0.1:8080/") }); !ok || len(found) != entries {
		t.Errorf("%d entries remain", len(found))
	}
}

// TestSurfaces connects every client with every surface in a realistic file, switches to every other surface and undoes
// the switch. Then it disconnects the client and checks that its files are restored.
func TestSurfaces(t *testing.T) {
	for _, c := range clients.AllClients() {
		for _, first := range surfaces {
			t.Run(c.ID+"/"+first, func(t *testing.T) {
				t.Parallel()
				text := read(t, filepath.Join("..", "clients", "testdata", "clients", realFiles[c.ID]))
				for _, second := range surfaces {
					a := surfaceAccount(t)
					target := c.TargetFile(a.Env).Path
					if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(target, []byte(text), 0o600); err != nil {
						t.Fatal(err)
					}
					before := filesIn(t, a.Env.Home)
					connectSurface(t, a, c.ID, first)
					if _, err := a.WriteRules(c.ID, false); err != nil && problem.From(err).Code != problem.NotFound {
						t.Fatal(err)
					}
					connected := filesIn(t, a.Env.Home)
					report, err := permission.CheckClient(a.Env, c.ID, a.Tools())
					if err != nil || report.Surface != first || report.Basis != "unverified" && !report.Right && !readsNeedAHand(c.ID, first) {
						t.Errorf("the check reports %+v, %v", report, err)
					}
					if second != first {
						connectSurface(t, a, c.ID, second)
						switched := filesIn(t, a.Env.Home)
						if rest := fmt.Sprint(maps.Values(switched)); first == "lanes" && strings.Contains(rest, "mcpproxy-read") {
							t.Errorf("an entry of the lanes remains: %s", rest)
						}
						if _, err := a.UndoLastConnect(c.ID); err != nil {
							t.Fatal(err)
						}
						if now := filesIn(t, a.Env.Home); !maps.Equal(now, connected) {
							t.Errorf("after the undo of the switch to %s, got\n%v\nwant\n%v", second, now, connected)
						}
						connectSurface(t, a, c.ID, second)
					}
					plan, err := a.PlanDisconnect(c.ID)
					apply(t, a, plan, err)
					if now := filesIn(t, a.Env.Home); !maps.Equal(now, before) {
						t.Errorf("after %s, %s and disconnect, got\n%v\nwant\n%v", first, second, now, before)
					}
				}
			})
		}
	}
}

// readsNeedAHand reports whether the user must permit the reads of a surface in the client, because no rule in a file
// can.
func readsNeedAHand(id, surface string) bool {
	return surface != "search" && slices.Contains([]string{"zed", "cline", "goose", "cursor"}, id) || id == "goose"
}

// TestSurfaceFiles compares the files that connecting writes to an empty account with testdata/surfaces.txt.
func TestSurfaceFiles(t *testing.T) {
	var b strings.Builder
	for _, c := range clients.AllClients() {
		for _, surface := range surfaces {
			a := surfaceAccount(t)
			plan, err := a.PlanConnect(c.ID, ops.ConnectOptions{Surface: surface})
			apply(t, a, plan, err)
			fmt.Fprintf(&b, "== %s %s\n", c.ID, surface)
			all := filesIn(t, a.Env.Home)
			for _, path := range slices.Sorted(maps.Keys(all)) {
				fmt.Fprintf(&b, "-- %s\n%s", path, all[path])
			}
		}
	}
	const path = "testdata/surfaces.txt"
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(path); err != nil || b.String() != string(want) {
		t.Errorf("the files differ from %s: %v\n%s", path, err, b.String())
	}
}

// TestForeignEntryIsRemoved checks that an entry of another MCPProxy is removed with a warning if the surface does not
// use the entry's name.
func TestForeignEntryIsRemoved(t *testing.T) {
	a := surfaceAccount(t)
	write(t, a, ".cursor/mcp.json", `{"mcpServers": {"mcpproxy": {"url": "http://127.0.0.1:9/mcp"}}}`, 0o600)
	done, text := connected(t, a, "cursor", ops.ConnectOptions{Surface: "lanes"})
	if !strings.Contains(strings.Join(done.Warnings, " "), "leads to http://127.0.0.1:9/mcp now") || strings.Contains(text, "127.0.0.1:9") {
		t.Errorf("%q\n%s", done.Warnings, text)
	}
}

// TestEntriesOfOtherProfilesStay checks that an entry that a user added for another profile is not replaced.
func TestEntriesOfOtherProfilesStay(t *testing.T) {
	a := surfaceAccount(t)
	write(t, a, ".cursor/mcp.json", `{"mcpServers": {"mcpproxy": {"url": "http://127.0.0.1:8080/mcp"}, "second": {"url": "http://127.0.0.1:8080/mcp"}, "work": {"url": "http://127.0.0.1:8080/mcp/p/work"}}}`, 0o600)
	_, text := connected(t, a, "cursor", ops.ConnectOptions{Surface: "lanes"})
	if !strings.Contains(text, `"work": {"url": "http://127.0.0.1:8080/mcp/p/work"}`) || strings.Contains(text, `"second"`) || strings.Contains(text, `"mcpproxy":`) || !strings.Contains(text, `"mcpproxy-read"`) {
		t.Error(text)
	}
}
