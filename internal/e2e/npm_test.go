package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/testutil/volume"
)

// peers returns the paths of the MCP peers from npm and of node 22. If they are missing, it skips the test, or fails it
// in CI.
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
			t.Fatalf("node is required in CI: %v (npm install --prefix .ci/npm)", err)
		}
		t.Skipf("node 22 and the MCP peers are not installed (npm install --prefix .ci/npm): %v", err)
	}
	return modules, node
}

// npmServer is a server from npm and the calls of its tools.
type npmServer struct {
	name  string
	entry map[string]any // its entry in the configuration
	calls []npmCall      // in order; the Inspector repeats the last one
}

type npmCall struct {
	lane, tool, arguments string
	want                  string // a part of the expected output
	varies                bool   // the result differs each time
}

// installed returns the path of a file of an npm package. If it is missing, it skips the test, or fails it in CI.
func installed(t testing.TB, path ...string) string {
	t.Helper()
	modules, _ := peers(t)
	file := filepath.Join(append([]string{modules}, path...)...)
	if _, err := os.Stat(file); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("the MCP peers are required in CI: %v (npm install --prefix .ci/npm)", err)
		}
		t.Skipf("not all MCP peers are installed (npm install --prefix .ci/npm): %v", err)
	}
	return file
}

// chromium unpacks the browser from npm and the libraries that it needs.
func chromium(t testing.TB) (browser, libraries string) {
	t.Helper()
	packed := installed(t, "@sparticuz", "chromium", "build", "index.js")
	_, node := peers(t)
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	defer cancel()
	dir := t.TempDir()
	cmd := exec.CommandContext(ctx, node, "-e", `import(process.argv[1]).then(c => c.default.executablePath())`, packed)
	// With this variable the package also unpacks the libraries that are missing on AWS Lambda.
	cmd.Env = append(os.Environ(), "TMPDIR="+dir, "AWS_EXECUTION_ENV=AWS_Lambda_nodejs22.x")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("the browser does not unpack: %v\n%s", err, out)
	}
	return filepath.Join(dir, "chromium"), filepath.Join(dir, "al2023", "lib")
}

// npmServers returns three servers from npm, and three more in the nightly run, with everything they need on this
// machine.
func npmServers(t testing.TB, files string) []npmServer {
	t.Helper()
	_, node := peers(t)
	local := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v2/context" {
			fmt.Fprintf(w, "documentation of %s, about %s", r.URL.Query().Get("libraryId"), r.URL.Query().Get("query"))
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<h1>A page</h1><button>Press</button>")
	}))
	t.Cleanup(local.Close)
	hello, memory := filepath.Join(files, "hello.txt"), filepath.Join(files, "memory.json")
	for path, text := range map[string]string{hello: "hello from a file",
		memory: `{"type":"entity","name":"Grace","entityType":"person","observations":["writes compilers"]}`} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	entry := func(env map[string]string, script string, args ...string) map[string]any {
		return map[string]any{"command": node, "args": append([]string{script}, args...), "env": env, "working_dir": files}
	}
	official := func(name string) string { return installed(t, "@modelcontextprotocol", name, "dist", "index.js") }
	servers := []npmServer{
		{"everything", entry(map[string]string{}, official("server-everything"), "stdio"), []npmCall{
			{"read", "get-structured-content", `{"location":"New York"}`, `"structuredContent"`, false},
			{"read", "get-tiny-image", `{}`, `"mimeType":"image/png"`, false},
			{"read", "echo", `{"message":"ping"}`, "Echo: ping", false},
		}},
		{"files", entry(map[string]string{}, official("server-filesystem"), files), []npmCall{
			{"read", "read_text_file", fmt.Sprintf(`{"path":%q}`, filepath.Join(files, "none.txt")), "ENOENT", false},
			{"read", "read_text_file", fmt.Sprintf(`{"path":%q}`, hello), "hello from a file", false},
		}},
		{"memory", entry(map[string]string{"MEMORY_FILE_PATH": memory}, official("server-memory")), []npmCall{
			{"read", "search_nodes", `{"query":"Grace"}`, "writes compilers", false},
		}},
	}
	if !volume.CoversTopic(volume.Peers) {
		return servers
	}
	servers = append(servers, []npmServer{
		{"context7", entry(map[string]string{"CONTEXT7_API_URL": local.URL + "/api"}, installed(t, "@upstash", "context7-mcp", "dist", "index.js")), []npmCall{
			{"read", "query-docs", `{"libraryId":"/a/b","query":"hooks"}`, "documentation of /a/b, about hooks", false},
		}},
		{"mongodb", entry(map[string]string{"MDB_MCP_TELEMETRY": "disabled"}, installed(t, "mongodb-mcp-server", "dist", "esm", "index.js")), []npmCall{
			{"read", "list-databases", `{"connectionId":"none"}`, "does not exist or has expired", false},
			{"read", "list-connections", `{}`, "There are no active connections", false},
		}},
	}...)
	if at := runtime.GOOS + "/" + runtime.GOARCH; at != "linux/amd64" {
		t.Logf("without playwright: the browser from npm does not run on %s", at)
		return servers
	}
	browser, libraries := chromium(t)
	return append(servers, npmServer{"playwright", entry(map[string]string{"LD_LIBRARY_PATH": libraries}, installed(t, "@playwright", "mcp", "cli.js"),
		"--headless", "--isolated", "--no-sandbox", "--executable-path", browser), []npmCall{
		{"destructive", "browser_navigate", fmt.Sprintf(`{"url":%q}`, local.URL+"/"), "Page URL: " + local.URL, true},
		{"read", "browser_snapshot", `{}`, `button \"Press\"`, true},
		{"destructive", "browser_evaluate", `{"function":"() => document.body.innerText"}`, "A page", false},
		{"destructive", "browser_navigate", fmt.Sprintf(`{"url":%q}`, local.URL+"/again"), "Page URL: " + local.URL + "/again", true},
	}})
}

// Servers from npm work on all three endpoints and in both protocols; the nightly run also uses the official Inspector.
func TestServersFromNpm(t *testing.T) {
	t.Parallel()
	files := t.TempDir()
	servers := npmServers(t, files)
	entries := map[string]any{"remote": map[string]any{
		"url": startUpstream(t, `{"name":"remote_echo","description":"Echo over HTTP.","inputSchema":{"type":"object"}}`).URL}}
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
	}
	d.awaitTools("remote:remote_echo")

	t.Run("calls", func(t *testing.T) {
		a := d.legacy()
		for _, c := range []struct{ tool, arguments, want string }{
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
	for _, version := range []string{legacyRevision, modernRevision} {
		t.Run("all "+version, func(t *testing.T) { useAll(t, d, version) })
	}
	for _, s := range servers {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			compareSurfaces(t, d, s)
		})
	}
	for _, era := range []string{"legacy", "auto", "modern"} {
		t.Run("inspector "+era, func(t *testing.T) {
			t.Parallel()
			volume.SkipUnlessNightly(t, volume.Peers)
			inspect(t, d, era, servers)
			inspectStdio(t, d, era)
		})
	}
}

// compareSurfaces lists and calls the tools of a server on each surface, in both protocols, and compares the results
// with those of the server itself.
func compareSurfaces(t *testing.T, d *daemon, s npmServer) {
	for _, version := range []string{legacyRevision, modernRevision} {
		direct := s.open(t, version)
		same := direct != nil
		if !same {
			direct = s.open(t, legacyRevision)
		}
		listed := direct("tools/list", "", "")
		var definitions []json.RawMessage
		if err := json.Unmarshal(wirejson.Find(listed, "tools"), &definitions); err != nil || len(definitions) == 0 {
			t.Fatalf("directly: %v in %s", err, listed)
		}
		results := make([]json.RawMessage, len(s.calls))
		for i, c := range s.calls {
			if results[i] = direct("tools/call", c.tool, c.params(c.tool)); !bytes.Contains(results[i], []byte(c.want)) {
				t.Fatalf("directly, %s %s: %s", c.tool, c.arguments, results[i])
			}
		}
		compare := func(surface string, through request, name func(npmCall) (tool, params string)) {
			t.Helper()
			for i, c := range s.calls {
				tool, params := name(c)
				got := through("tools/call", tool, params)
				if !bytes.Contains(got, []byte(c.want)) {
					t.Errorf("%s %s, %s: %s", surface, version, params, got)
				}
				for _, member := range []string{"content", "structuredContent", "isError"} {
					if !c.varies && string(wirejson.Find(got, member)) != string(wirejson.Find(results[i], member)) {
						t.Errorf("%s %s, %s: %s changed:\n%s\n%s", surface, version, params, member, got, results[i])
					}
				}
				if surface == "servers" && same && !c.varies && string(got) != string(results[i]) {
					t.Errorf("%s %s, %s:\n%s\n%s", surface, version, params, got, results[i])
				}
			}
		}

		alone := d.requests("/mcp/servers/"+s.name, version)
		if got := alone("tools/list", "", ""); string(wirejson.Find(got, "tools")) != string(wirejson.Find(listed, "tools")) || same && string(got) != string(listed) {
			t.Errorf("the lists in %s differ:\n%s\n%s", version, got, listed)
		}
		compare("servers", alone, func(c npmCall) (string, string) { return c.tool, c.params(c.tool) })

		all := d.requests("/mcp/all", version)
		s.checkAll(t, all, definitions)
		compare("all", all, func(c npmCall) (string, string) {
			return s.name + "__" + c.tool, c.params(s.name + "__" + c.tool)
		})

		a := d.stateless()
		if version == legacyRevision {
			a = d.legacy()
		}
		for _, definition := range definitions {
			checkUnchanged(t, a, s.name, definition)
		}
		compare("/mcp", d.requests("/mcp", version), func(c npmCall) (string, string) {
			return "call_tool_" + c.lane, fmt.Sprintf(`"name":"call_tool_%s","arguments":{"name":"%s:%s","args":%s}`, c.lane, s.name, c.tool, c.arguments)
		})
	}
}

// checkAll checks that the list of /mcp/all contains exactly the server's definitions, unchanged except for their
// names.
func (s npmServer) checkAll(t *testing.T, all request, definitions []json.RawMessage) {
	t.Helper()
	listed := map[string]json.RawMessage{}
	var tools []json.RawMessage
	if err := json.Unmarshal(wirejson.Find(all("tools/list", "", ""), "tools"), &tools); err != nil {
		t.Fatal(err)
	}
	for _, raw := range tools {
		if name, ok := strings.CutPrefix(toolName(t, raw), s.name+"__"); ok {
			listed[name] = bytes.Replace(raw, []byte(`"`+s.name+"__"+name+`"`), []byte(`"`+name+`"`), 1)
		}
	}
	if len(listed) != len(definitions) {
		t.Errorf("%d tools, directly %d", len(listed), len(definitions))
	}
	for _, want := range definitions {
		if got := listed[toolName(t, want)]; got == nil || !reflect.DeepEqual(exact(t, got), exact(t, want)) {
			t.Errorf("a tool has changed:\n%s\n%s", got, want)
		}
	}
}

func (c npmCall) params(name string) string {
	return fmt.Sprintf(`"name":%q,"arguments":%s`, name, c.arguments)
}

// request sends a request with params, given without braces, and returns its result.
type request func(method, name, params string) json.RawMessage

// requests returns a client of a protocol version at a path of the daemon.
func (d *daemon) requests(path, version string) request {
	d.t.Helper()
	ask := func(method, name, params string) []byte {
		return d.answerTo(d.tryModernAt(path, method, name, params, ""))
	}
	if version == legacyRevision {
		c := d.openAt(path, "{}")
		ask = func(method, _, params string) []byte {
			return d.answerTo(c.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s}}`, method, params)))
		}
	}
	return func(method, name, params string) json.RawMessage {
		answer := ask(method, name, params)
		result := wirejson.Find(answer, "result")
		if result == nil {
			d.t.Errorf("%s %s %s: %s", path, method, params, answer)
		}
		return result
	}
}

// open starts the server for its own client, without MCPProxy. It returns nil if the server does not support that
// protocol version.
func (s npmServer) open(t *testing.T, version string) request {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	cmd := exec.CommandContext(ctx, s.entry["command"].(string), s.entry["args"].([]string)...)
	cmd.Dir = s.entry["working_dir"].(string)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	for k, v := range s.entry["env"].(map[string]string) {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait() // its exit code does not matter
		cancel()
	})
	lines := bufio.NewReader(out)
	ask := func(method, params string) json.RawMessage {
		fmt.Fprintf(in, `{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s}}`+"\n", method, params)
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				t.Fatalf("%s directly, %s: %v", s.name, method, err)
			}
			if wirejson.Find(line, "id") != nil {
				return wirejson.Find(line, "result")
			}
		}
	}
	if version == legacyRevision {
		ask("initialize", `"protocolVersion":"`+legacyRevision+`","capabilities":{},"clientInfo":{"name":"e2e","version":"1"}`)
		fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		return func(method, _, params string) json.RawMessage { return ask(method, params) }
	}
	if ask("server/discover", modernParams("", "")) == nil {
		return nil
	}
	return func(method, _, params string) json.RawMessage { return ask(method, modernParams(params, "")) }
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

// killOne kills the process of one server. The other servers are not affected, and the killed one restarts
// automatically.
func killOne(t *testing.T, d *daemon) {
	before := map[string]serverState{}
	for _, name := range []string{"everything", "files", "memory"} {
		s, err := d.server(name)
		if err != nil || s.PID == 0 {
			t.Fatalf("%s: %+v %v", name, s, err)
		}
		before[name] = s
	}
	if err := signal(before["everything"].PID, os.Kill); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the killed server is ready again", func() error {
		s, err := d.server("everything")
		if err == nil && (s.State != "ready" || s.PID == before["everything"].PID) {
			err = fmt.Errorf("%+v", s)
		}
		return err
	})
	for _, name := range []string{"files", "memory"} {
		if s, err := d.server(name); err != nil || s.PID != before[name].PID || s.State != "ready" {
			t.Errorf("%s was affected: %+v, before %+v, %v", name, s, before[name], err)
		}
	}
	if r := d.legacy().call("call_tool_read", `{"name":"everything:echo","args":{"message":"again"}}`); r.text() != "Echo: again" {
		t.Errorf("after the restart: %+v", r)
	}
}

// inspect runs the official Inspector against all surfaces.
func inspect(t *testing.T, d *daemon, era string, servers []npmServer) {
	lists := func(path string, names ...string) {
		t.Helper()
		list := inspector(t, d, path, era, "--method", "tools/list", "--strict")
		for _, name := range names {
			if !strings.Contains(list, `"`+name+`"`) {
				t.Errorf("%s is not in the list of %s:\n%s", name, path, list)
			}
		}
	}
	calls := func(path, tool, arguments, want string) {
		t.Helper()
		if called := inspector(t, d, path, era, "--method", "tools/call", "--tool-name", tool, "--tool-args-json", arguments); !strings.Contains(called, want) {
			t.Errorf("the call of %s at %s gave:\n%s", tool, path, called)
		}
	}
	lists("/mcp", "retrieve_tools", "call_tool_read", "call_tool_write", "call_tool_destructive", "read_result", "upstream_servers")
	calls("/mcp", "call_tool_read", `{"name":"everything:echo","args":{"message":"inspected"}}`, "Echo: inspected")
	var all []string
	for _, s := range servers {
		c := s.calls[len(s.calls)-1]
		all = append(all, s.name+"__"+c.tool)
		lists("/mcp/servers/"+s.name, c.tool)
		if era != "auto" { // auto selects one of the other versions
			calls("/mcp/s/"+s.name, c.tool, c.arguments, c.want)
		}
	}
	lists("/mcp/all", all...)
	calls("/mcp/all", "everything__echo", `{"message":"all"}`, "Echo: all")
	if prompts := inspector(t, d, "/mcp/servers/everything", era, "--method", "prompts/list"); !strings.Contains(prompts, `"prompts"`) {
		t.Errorf("the prompts of one server:\n%s", prompts)
	}
}

// inspectorPatience is how long the Inspector may take to connect, in milliseconds. Its default of 15 s is too short
// for a server that is started on a busy machine.
const inspectorPatience = "50000"

// inspector runs the Inspector once against a path.
func inspector(t *testing.T, d *daemon, path, era string, args ...string) string {
	t.Helper()
	modules, node := peers(t)
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, append([]string{filepath.Join(modules, ".bin", "mcp-inspector"), "--cli",
		"--server-url", "http://" + d.address + path, "--transport", "http", "--protocol-era", era,
		"--connect-timeout", inspectorPatience}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "PATH="+filepath.Dir(node)+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("inspector %s %v: %v\n%s", path, args, err, out)
	}
	return string(out)
}
