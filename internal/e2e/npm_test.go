package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// peers finds the MCP peers from npm and node 22, or skips; in CI they are
// obligatory.
func peers(t testing.TB) (modules, node string) {
	t.Helper()
	modules = os.Getenv("MCPPROXY_NODE_MODULES")
	if modules == "" {
		modules = filepath.Join("..", "..", ".ci", "npm", "node_modules")
	}
	modules, err := filepath.Abs(modules)
	if err != nil {
		t.Fatal(err)
	}
	node = filepath.Join(modules, "node", "bin", "node")
	if _, err := os.Stat(node); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("node is obligatory in CI: %v (npm install --prefix .ci/npm)", err)
		}
		t.Skipf("node 22 and the MCP peers are not installed (npm install --prefix .ci/npm): %v", err)
	}
	return modules, node
}

// npmConfig has three npm servers over stdio and one server over HTTP.
func npmConfig(t testing.TB, files string) string {
	modules, node := peers(t)
	script := func(server string) string {
		return filepath.Join(modules, "@modelcontextprotocol", server, "dist", "index.js")
	}
	upstream := startUpstream(t, `{"name":"remote_echo","description":"Echo over HTTP.","inputSchema":{"type":"object"}}`)
	return fmt.Sprintf(`{
		// Real servers from npm.
		"mcpServers": {
			"everything": {"command": %[1]q, "args": [%[2]q, "stdio"]},
			"files":      {"command": %[1]q, "args": [%[3]q, %[4]q]},
			"memory":     {"command": %[1]q, "args": [%[5]q], "env": {"MEMORY_FILE_PATH": %[6]q}},
			"remote":     {"url": %[7]q},
		},
	}`, node, script("server-everything"), script("server-filesystem"), files, script("server-memory"),
		filepath.Join(files, "memory.json"), upstream.URL)
}

func TestServersFromNpm(t *testing.T) {
	files := t.TempDir()
	if err := os.WriteFile(filepath.Join(files, "hello.txt"), []byte("hello from a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := startDaemon(t, npmConfig(t, files))
	d.awaitTools("everything:echo", "files:read_text_file", "memory:read_graph", "remote:remote_echo")

	t.Run("calls", func(t *testing.T) {
		a := d.legacy()
		for _, c := range []struct{ tool, arguments, want string }{
			{"call_tool_read", `{"name":"everything:echo","args":{"message":"ping"}}`, "Echo: ping"},
			{"call_tool_read", fmt.Sprintf(`{"name":"files:read_text_file","args":{"path":%q}}`, filepath.Join(files, "hello.txt")), "hello from a file"},
			{"call_tool_write", `{"name":"memory:create_entities","args":{"entities":[{"name":"Ada","entityType":"person","observations":["writes programs"]}]}}`, "Ada"},
			{"call_tool_read", `{"name":"memory:search_nodes","args":{"query":"Ada"}}`, "writes programs"},
			{"call_tool_write", `{"name":"remote:remote_echo","args":{"a":1}}`, `got {"a":1}`},
		} {
			if r := a.call(c.tool, c.arguments); r.IsError || !strings.Contains(r.text(), c.want) {
				t.Errorf("%s %s: %+v", c.tool, c.arguments, r)
			}
		}
		r := a.call("call_tool_read", `{"name":"memory:delete_entities","args":{"entityNames":["Ada"]}}`)
		if p := r.refusal(t); p.Code != "SERVER_MISMATCH" {
			t.Errorf("a destructive tool in the read lane: %+v", p)
		}
	})
	t.Run("kill -9", func(t *testing.T) { killOne(t, d) })
	for _, era := range []string{"legacy", "auto", "modern"} {
		t.Run("inspector "+era, func(t *testing.T) {
			t.Parallel()
			inspect(t, d, era)
			inspectStdio(t, d, era)
		})
	}
}

type serverState struct {
	Name     string
	State    string
	PID      int
	Restarts int
}

func (d *daemon) server(name string) (s serverState, err error) {
	d.t.Helper()
	status, body := d.rest("GET", "/servers/"+name, "")
	if status != http.StatusOK {
		return s, fmt.Errorf("status %d: %s", status, body)
	}
	return s, json.Unmarshal(body, &s)
}

// killOne kills the process of one server: the others stay as they are, and it
// comes back by itself.
func killOne(t *testing.T, d *daemon) {
	before := map[string]serverState{}
	for _, name := range []string{"everything", "files", "memory"} {
		s, err := d.server(name)
		if err != nil || s.PID == 0 {
			t.Fatalf("%s: %+v %v", name, s, err)
		}
		before[name] = s
	}
	if err := syscall.Kill(before["everything"].PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the killed server is back", func() error {
		s, err := d.server("everything")
		if err == nil && (s.State != "ready" || s.PID == before["everything"].PID) {
			err = fmt.Errorf("%+v", s)
		}
		return err
	})
	for _, name := range []string{"files", "memory"} {
		if s, err := d.server(name); err != nil || s.PID != before[name].PID || s.State != "ready" {
			t.Errorf("%s was touched: %+v, before %+v, %v", name, s, before[name], err)
		}
	}
	if r := d.legacy().call("call_tool_read", `{"name":"everything:echo","args":{"message":"again"}}`); r.text() != "Echo: again" {
		t.Errorf("after the return: %+v", r)
	}
}

// inspect runs the official Inspector against /mcp, and against one server
// behind it.
func inspect(t *testing.T, d *daemon, era string) {
	list := inspector(t, d, "/mcp", era, "--method", "tools/list", "--strict")
	for _, name := range []string{"retrieve_tools", "call_tool_read", "call_tool_write", "call_tool_destructive", "read_result", "upstream_servers"} {
		if !strings.Contains(list, `"`+name+`"`) {
			t.Errorf("%s is not in the list:\n%s", name, list)
		}
	}
	called := inspector(t, d, "/mcp", era, "--method", "tools/call", "--tool-name", "call_tool_read",
		"--tool-args-json", `{"name":"everything:echo","args":{"message":"inspected"}}`)
	if !strings.Contains(called, "Echo: inspected") {
		t.Errorf("the call gave:\n%s", called)
	}
	for server, want := range map[string]string{"everything": "echo", "files": "read_text_file", "memory": "read_graph"} {
		if list := inspector(t, d, "/mcp/servers/"+server, era, "--method", "tools/list", "--strict"); !strings.Contains(list, `"`+want+`"`) {
			t.Errorf("%s is not in the list of %s:\n%s", want, server, list)
		}
	}
	called = inspector(t, d, "/mcp/s/everything", era, "--method", "tools/call", "--tool-name", "echo", "--tool-args-json", `{"message":"by itself"}`)
	if !strings.Contains(called, "Echo: by itself") {
		t.Errorf("the call of one server gave:\n%s", called)
	}
	if read := inspector(t, d, "/mcp/servers/everything", era, "--method", "prompts/list"); !strings.Contains(read, `"prompts"`) {
		t.Errorf("the prompts of one server:\n%s", read)
	}
}

// inspector runs the Inspector once against a path.
func inspector(t *testing.T, d *daemon, path, era string, args ...string) string {
	t.Helper()
	modules, node := peers(t)
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, append([]string{filepath.Join(modules, ".bin", "mcp-inspector"), "--cli",
		"--server-url", "http://" + d.address + path, "--transport", "http", "--protocol-era", era}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "PATH="+filepath.Dir(node)+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("inspector %s %v: %v\n%s", path, args, err, out)
	}
	return string(out)
}
