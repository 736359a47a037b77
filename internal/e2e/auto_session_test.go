package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpproxy/internal/testutil/mcptest"
)

// TestAutoSession: without a setting, five clients with roots use three servers from npm on every address, with one process
// for each server, although one of these asks for roots at its start. Clients have their own processes of a server that is
// known to keep state (its command names a browser), of one that asks them, of one that needs their roots, and of one that
// lists other tools to them.
func TestAutoSession(t *testing.T) {
	t.Parallel()
	modules, node := peers(t)
	dir := t.TempDir()
	child, env := mcptest.ChildCommand(t, "asking")
	config := func(name, more, command string, args ...string) string { // the script records each start
		all, err := json.Marshal(append([]string{"-c", `echo start >> "$0"; exec "$@"`, filepath.Join(dir, name), command}, args...))
		if err != nil {
			t.Fatal(err)
		}
		env["MEMORY_FILE_PATH"] = filepath.Join(dir, name+".json")
		environment, err := json.Marshal(env)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf(`%q: {%s "command": "sh", "args": %s, "env": %s}`, name, more, all, environment)
	}
	server := func(name, script string, args ...string) string {
		return config(name, "", node, append([]string{filepath.Join(modules, "@modelcontextprotocol", script, "dist", "index.js")}, args...)...)
	}
	starts := func(names ...string) (n int) {
		for _, name := range names {
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			n += strings.Count(string(text), "start")
		}
		return n
	}
	three := []string{"memory", "notes", "filesystem"}
	everything := filepath.Join(modules, "@modelcontextprotocol", "server-everything", "dist", "index.js")
	d := startDaemon(t, `{"mcpServers": {`+server("memory", "server-memory")+`, `+server("notes", "server-memory")+`, `+
		server("filesystem", "server-filesystem", dir)+`, `+server("browser", "server-memory", "@playwright/mcp")+`, `+
		server("roots", "server-filesystem")+`, `+config("asking", "", child)+`, `+
		config("lists", "", node, everything)+`, `+config("lists-own", `"session": "per_client",`, node, everything)+`}}`)
	d.awaitTools("memory:read_graph", "notes:read_graph", "filesystem:list_directory", "roots:list_directory", "browser:read_graph", "asking:busy", "lists:echo", "lists-own:echo")
	before := starts(three...)
	for i := range 5 {
		for _, path := range []string{"/mcp", "/mcp/all", "/mcp/all/read"} {
			s := d.sdkAt(path, legacyRevision, nil)
			for _, tool := range []string{"memory__read_graph", "notes__read_graph", "filesystem__list_allowed_directories"} {
				p := &mcp.CallToolParams{Name: tool, Arguments: map[string]any{}}
				if path == "/mcp" {
					p = &mcp.CallToolParams{Name: "call_tool_read", Arguments: map[string]any{"name": strings.Replace(tool, "__", ":", 1), "args": p.Arguments}}
				}
				if r, err := s.CallTool(within(t), p); err != nil || r.IsError {
					t.Errorf("client %d, %s, %s: %v %+v", i, path, tool, err, r)
				}
			}
		}
		for _, name := range three {
			s := d.sdkAt("/mcp/servers/"+name, legacyRevision, nil)
			if r, err := s.ListTools(within(t), nil); err != nil || len(r.Tools) == 0 {
				t.Errorf("client %d, %s: %v", i, name, err)
			}
		}
	}
	if now := starts(three...); now != before {
		t.Errorf("the servers were started %d times, %d before the first client", now, before)
	}

	was := starts("browser")
	for range 5 {
		s := d.sdkAt("/mcp/servers/browser", legacyRevision, nil)
		if _, err := s.ListTools(within(t), nil); err != nil {
			t.Error(err)
		}
	}
	if now := starts("browser"); now != was+5 {
		t.Errorf("the server with state was started %d times for 5 clients", now-was)
	}

	asked := 0
	opt := &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}, ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		asked++
		return &mcp.ElicitResult{Action: "accept"}, nil
	}}
	was = starts("asking")
	one := d.sdkAt("/mcp/all", legacyRevision, opt)
	for n := range 3 {
		r, err := one.CallTool(within(t), &mcp.CallToolParams{Name: "asking__busy", Arguments: map[string]any{"n": n}})
		if err != nil || r.IsError || asked != n+1 {
			t.Fatalf("asked %d times: %v %+v", asked, err, r)
		}
	}
	if now := starts("asking"); now != was+1 {
		t.Errorf("%d processes for the one client that is asked", now-was)
	}
	was = starts("roots")
	for range 2 {
		s := d.sdkAt("/mcp/all", legacyRevision, nil)
		if _, err := s.CallTool(within(t), &mcp.CallToolParams{Name: "roots__list_allowed_directories"}); err != nil {
			t.Error(err)
		}
	}
	if now := starts("roots"); now != was+2 {
		t.Errorf("the server that needs roots was started %d times for 2 clients", now-was)
	}
	for name, why := range map[string]string{"asking": "elicitation", "lists": "lists other tools"} {
		if code, out, _ := d.cli("upstream", "get", name); code != 0 || !strings.Contains(out, why) {
			t.Errorf("upstream get %s: %d\n%s", name, code, out)
		}
	}

	// Each client sees what it sees in a session of its own, on the server's address and on that of all servers.
	for _, capabilities := range []string{`{}`, `{"sampling":{},"elicitation":{},"roots":{}}`} {
		shared, own := toolNames(d, "/mcp/servers/lists", capabilities), toolNames(d, "/mcp/servers/lists-own", capabilities)
		if len(shared) < 10 || !slices.Equal(shared, own) {
			t.Errorf("with %s, a client sees %q, on its own %q", capabilities, shared, own)
		}
		var all [2][]string
		for _, name := range toolNames(d, "/mcp/all", capabilities) {
			if server, tool, _ := strings.Cut(name, "__"); server == "lists" {
				all[0] = append(all[0], tool)
			} else if server == "lists-own" {
				all[1] = append(all[1], tool)
			}
		}
		if len(all[0]) < 10 || !slices.Equal(all[0], all[1]) {
			t.Errorf("on /mcp/all with %s, a client sees %q, on its own %q", capabilities, all[0], all[1])
		}
	}
}

// toolNames returns the names of the tools that a client sees, sorted.
func toolNames(d *daemon, path, capabilities string) (names []string) {
	d.t.Helper()
	var answer struct {
		Result struct{ Tools []struct{ Name string } }
	}
	body := d.answerTo(d.openAt(path, capabilities).post(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
	if err := json.Unmarshal(body, &answer); err != nil {
		d.t.Fatal(err)
	}
	for _, tool := range answer.Result.Tools {
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	return names
}
