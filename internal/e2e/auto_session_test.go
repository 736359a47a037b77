package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestAutoSession: with session auto, five clients with roots use three servers from npm on every address, with one process
// for each server, although two of these ask for roots at their start. A server that is known to keep state, as its command
// names a browser, has a process for each client. A client that a server asks has one, too, and each with roots of a server
// that needs them.
func TestAutoSession(t *testing.T) {
	t.Parallel()
	modules, node := peers(t)
	dir := t.TempDir()
	server := func(name, script string, args ...string) string { // the script records each start
		all, err := json.Marshal(append([]string{"-c", `echo start >> "$0"; exec "$@"`, filepath.Join(dir, name), node,
			filepath.Join(modules, "@modelcontextprotocol", script, "dist", "index.js")}, args...))
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf(`%q: {"session": "auto", "command": "sh", "args": %s, "env": {"MEMORY_FILE_PATH": %q}}`,
			name, all, filepath.Join(dir, "memory.json"))
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
	three := []string{"everything", "memory", "filesystem"}
	d := startDaemon(t, `{"mcpServers": {`+server("everything", "server-everything")+`, `+server("memory", "server-memory")+`, `+
		server("filesystem", "server-filesystem", dir)+`, `+server("browser", "server-memory", "@playwright/mcp")+`, `+
		server("roots", "server-filesystem")+`}}`)
	d.awaitTools("everything:echo", "memory:read_graph", "filesystem:list_directory", "roots:list_directory")
	before := starts(three...) // a server that does not support the modern protocol may end and be restarted
	for i := range 5 {
		for _, path := range []string{"/mcp", "/mcp/all", "/mcp/all/read"} {
			s := d.sdkAt(path, legacyRevision, nil)
			for _, tool := range []string{"everything__echo", "memory__read_graph", "filesystem__list_allowed_directories"} {
				p := &mcp.CallToolParams{Name: tool, Arguments: map[string]any{}}
				if tool == "everything__echo" {
					p.Arguments = map[string]any{"message": "hi"}
				}
				if path == "/mcp" {
					p = &mcp.CallToolParams{Name: "call_tool_read", Arguments: map[string]any{"name": strings.Replace(tool, "__", ":", 1), "args": p.Arguments}}
				}
				if path == "/mcp/all/read" && tool == "everything__echo" {
					continue // it does not say that it only reads
				}
				if r, err := s.CallTool(within(t), p); err != nil {
					t.Errorf("client %d, %s, %s: %v %+v", i, path, tool, err, r)
				}
			}
		}
		for _, name := range []string{"memory", "filesystem"} { // everything supports tasks
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
		return &mcp.ElicitResult{Action: "decline"}, nil
	}}
	one := d.sdkAt("/mcp/all", legacyRevision, opt)
	for n := range 3 {
		r, err := one.CallTool(within(t), &mcp.CallToolParams{Name: "everything__trigger-elicitation-request", Arguments: map[string]any{}})
		if err != nil || asked != n+1 {
			t.Fatalf("asked %d times: %v %+v", asked, err, r)
		}
	}
	if now := starts(three...); now != before+1 {
		t.Errorf("%d processes for the one client that is asked", now-before)
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
	if code, out, _ := d.cli("upstream", "get", "everything"); code != 0 || !strings.Contains(out, "elicitation") {
		t.Errorf("upstream get: %d\n%s", code, out)
	}
}
