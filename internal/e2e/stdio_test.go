package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// stdioCommand returns the command that a client starts.
func stdioCommand(dir string, more ...string) *exec.Cmd {
	cmd := exec.Command(binary, append([]string{"stdio", "--config", filepath.Join(dir, "mcp_config.json"), "--data-dir", filepath.Join(dir, "data")}, more...)...)
	cmd.Env = environ(dir)
	cmd.Stderr = &lockedBuffer{}
	return cmd
}

// lockedBuffer is a buffer for concurrent reads and writes.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// connect connects the official client, which starts the command.
func connect(t *testing.T, cmd *exec.Cmd, version string) *mcp.ClientSession {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	client := mcp.NewClient(&mcp.Implementation{Name: "sdk", Version: "1"}, nil)
	s, err := client.Connect(ctx, &mcp.CommandTransport{Command: cmd}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatalf("%s: %v\n%s", version, err, cmd.Stderr)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func callEcho(t *testing.T, s *mcp.ClientSession) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "call_tool_read",
		Arguments: map[string]any{"name": "fake:echo", "args": map[string]any{"a": 1}}})
	if err != nil {
		return err
	}
	text, err := json.Marshal(r.Content)
	if err != nil || !strings.Contains(string(text), `got {\"a\":1}`) {
		return fmt.Errorf("the result is %s (%w)", text, err)
	}
	return nil
}

func mustEcho(t *testing.T, s *mcp.ClientSession) {
	t.Helper()
	if err := callEcho(t, s); err != nil {
		t.Fatal(err)
	}
}

const echo = `{"name":"echo","description":"Echo the arguments.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`

// inspectStdio connects the official Inspector, which starts the command.
func inspectStdio(t *testing.T, d *daemon, era string) {
	modules, node := peers(t)
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, filepath.Join(modules, ".bin", "mcp-inspector"), "--cli", "--protocol-era", era, "--connect-timeout", inspectorPatience,
		"--method", "tools/list", "--strict", "--", binary, "stdio", "--config", d.configPath(), "--data-dir", d.dataDir())
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "PATH="+filepath.Dir(node)+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), `"call_tool_destructive"`) {
		t.Errorf("%v\n%s", err, out)
	}
}

// Clients over stdio use the running daemon, in both protocols. They count as agents, although the socket belongs to
// the user.
func TestStdioWithDaemon(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, startUpstream(t, echo).config("fake", ""))
	d.awaitTools("fake:echo")
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		s := connect(t, stdioCommand(d.dir), version)
		tools, err := s.ListTools(context.Background(), nil)
		if err != nil || len(tools.Tools) != 6 {
			t.Fatalf("%s: %v %v", version, tools, err)
		}
		mustEcho(t, s)
		if err := s.Close(); err != nil {
			t.Errorf("%s: the command does not end cleanly: %v", version, err)
		}
	}
	_, body := d.rest("GET", "/activity?type=tool_call", "")
	var log struct {
		Activities []struct {
			Actor, Source string
			ClientName    string `json:"client_name"`
		}
	}
	if err := json.Unmarshal(body, &log); err != nil || len(log.Activities) != 2 {
		t.Fatalf("%s: %v", body, err)
	}
	for _, a := range log.Activities {
		if a.Actor != "agent" || a.Source != "mcp" || a.ClientName != "sdk" {
			t.Errorf("record: %+v", a)
		}
	}
}

// Without a daemon, the process of the first client becomes the daemon. A second client uses it, and takes over when
// the first one is killed.
func TestStdioWithoutDaemon(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config := strings.Replace(startUpstream(t, echo).config("fake", ""), "{", `{"listen":"`+freeAddress(t)+`",`, 1)
	if err := os.WriteFile(filepath.Join(dir, "mcp_config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	first, second := stdioCommand(dir), stdioCommand(dir)
	// The clients start at the same time, and one of them becomes the daemon.
	sessions := make(chan *mcp.ClientSession, 2)
	for _, cmd := range []*exec.Cmd{first, second} {
		go func() { sessions <- connect(t, cmd, "2025-11-25") }()
	}
	a, b := <-sessions, <-sessions
	for _, s := range []*mcp.ClientSession{a, b} {
		eventually(t, "the tool can be called", func() error { return callEcho(t, s) })
	}
	daemon, other := first, second
	if strings.Contains(second.Stderr.(*lockedBuffer).String(), "mcpproxy answers") {
		daemon, other = second, first
	}
	if strings.Contains(other.Stderr.(*lockedBuffer).String(), "mcpproxy answers") {
		t.Fatal("both processes are daemons of the same directory")
	}
	if err := daemon.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	// The test cannot tell which command serves which session. One session ends.
	survived := 0
	for _, s := range []*mcp.ClientSession{a, b} {
		deadline, cancel := context.WithTimeout(context.Background(), patience)
		for deadline.Err() == nil {
			err := callEcho(t, s)
			if err == nil {
				survived++
				break
			}
			if !strings.Contains(err.Error(), "MCPProxy") && !strings.Contains(err.Error(), "the result is") {
				break // the command itself was killed
			}
		}
		cancel()
	}
	if survived != 1 {
		t.Fatalf("%d of the clients continue\n%s", survived, other.Stderr)
	}
}

// A client does not notice that the daemon is killed and started again, in either protocol.
func TestStdioOutlivesADaemon(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, startUpstream(t, echo).config("fake", ""))
	d.awaitTools("fake:echo")
	var sessions []*mcp.ClientSession
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		s := connect(t, stdioCommand(d.dir), version)
		mustEcho(t, s)
		sessions = append(sessions, s)
	}
	for range 2 {
		d.kill()
		d.start()
		d.awaitTools("fake:echo")
		for _, s := range sessions {
			mustEcho(t, s)
		}
	}
	for _, s := range sessions {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestStdioAnswersPipedInput(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config := strings.Replace(startUpstream(t, echo).config("fake", ""), "{", `{"listen":"127.0.0.1:0",`, 1)
	if err := os.WriteFile(filepath.Join(dir, "mcp_config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := stdioCommand(dir)
	cmd.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"pipe","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":1,"method":"tools/list"}
`)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, cmd.Stderr)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != 2 || !strings.Contains(lines[1], "call_tool_destructive") {
		t.Errorf("stdout: %s", out)
	}
	for _, line := range lines {
		if !json.Valid([]byte(line)) {
			t.Errorf("not a protocol message: %s", line)
		}
	}
}

// A client over stdio gets the unchanged endpoint of one server, with and without a daemon.
func TestStdioOfOneServer(t *testing.T) {
	t.Parallel()
	upstream := startUpstream(t, echo)
	config := strings.Replace(upstream.config("fake", ""), "{", `{"listen":"127.0.0.1:0",`, 1)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mcp_config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		s := connect(t, stdioCommand(dir, "--server", "fake"), version)
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		tools, err := s.ListTools(ctx, nil)
		if err != nil || len(tools.Tools) != 1 || tools.Tools[0].Name != "echo" {
			t.Fatalf("%s: %+v %v", version, tools, err)
		}
		r, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"a": 1}})
		if text, _ := json.Marshal(r); err != nil || !strings.Contains(string(text), `got {\"a\":1}`) {
			t.Errorf("%s: %s %v", version, text, err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("%s: %v", version, err)
		}
	}
	cmd := stdioCommand(dir, "--server", "../x")
	if out, err := cmd.Output(); err == nil || len(out) > 0 {
		t.Errorf("an unknown name: %v, %s", err, out)
	}
}

// The client gets the reason if the daemon cannot start.
func TestStdioReportsStartErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mcp_config.json"), []byte(`{"tools_limmit": 3}`), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := stdioCommand(dir)
	cmd.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}` + "\n")
	out, _ := cmd.Output()
	if !strings.Contains(string(out), "tools_limmit") || !strings.Contains(string(out), `"id":0,"error"`) {
		t.Errorf("stdout: %s\nstderr: %s", out, cmd.Stderr)
	}
}

func TestStdioEndsOnSignal(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, startUpstream(t, echo).config("fake", ""))
	cmd := stdioCommand(d.dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(in, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`)
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v\n%s", err, cmd.Stderr)
	}
}

// A tool may require arguments in headers. A client over stdio has no headers, so MCPProxy adds them, on the endpoint
// of the server and on /mcp/all.
func TestStdioMirrorsArguments(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		_ = json.NewDecoder(r.Body).Decode(&m)
		w.Header().Set("Content-Type", "application/json")
		answer := `"error":{"code":-32601,"message":"Method not found"}`
		switch {
		case r.Header.Get("Mcp-Protocol-Version") != "2026-07-28" || r.Header.Get("Mcp-Method") != m.Method:
			w.WriteHeader(http.StatusBadRequest)
			answer = `"error":{"code":-32022,"message":"Unsupported protocol version","data":{"supported":["2026-07-28"],"requested":""}}`
		case m.Method == "server/discover":
			answer = `"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"serverInfo":{"name":"m","version":"1"}}`
		case m.Method == "tools/list":
			answer = `"result":{"resultType":"complete","tools":[{"name":"weather","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object","properties":{"city":{"type":"string","x-mcp-header":"City"}}}}]}`
		case m.Method == "tools/call" && r.Header.Get("Mcp-Param-City") == "=?base64?WsO8cmljaA==?=" && r.Header.Get("Mcp-Name") == "weather":
			answer = `"result":{"resultType":"complete","content":[{"type":"text","text":"sunny"}]}`
		case m.Method == "tools/call":
			w.WriteHeader(http.StatusBadRequest)
			answer = `"error":{"code":-32020,"message":"Header mismatch"}`
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, m.ID, answer)
	}))
	t.Cleanup(server.Close)
	d := startDaemon(t, fmt.Sprintf(`{"mcpServers":{"m":{"url":%q,"trust":"auto"}}}`, server.URL))
	d.awaitTools("m:weather")
	for tool, flags := range map[string][]string{"weather": {"--server", "m"}, "m__weather": {"--all"}} {
		for _, version := range []string{"2025-11-25", "2026-07-28"} {
			s := connect(t, stdioCommand(d.dir, flags...), version)
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			for range 2 {
				r, err := s.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: map[string]any{"city": "Zürich"}})
				if text, _ := json.Marshal(r); err != nil || !strings.Contains(string(text), "sunny") {
					t.Errorf("%s, %s: %s %v", tool, version, text, err)
				}
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
