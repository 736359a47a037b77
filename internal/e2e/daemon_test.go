package e2e

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	// The sources of the binary, so that a cached test result becomes invalid when they change.
	_ "mcpproxy/internal/app"
	_ "mcpproxy/internal/cli"
	_ "mcpproxy/internal/demo"
	"mcpproxy/internal/testutil/mcptest"
)

// binary is the path of the real binary, built once for all tests.
var binary string

func TestMain(m *testing.M) {
	mcptest.RunIfChild(stdioServers())
	if os.Getenv(commandBinary) != "" && len(os.Args) > 1 {
		os.Exit(conformanceCommand(os.Args[len(os.Args)-1])) // as the suite starts it
	}
	flag.Parse()
	if testing.Short() {
		fmt.Println("-short leaves out the end-to-end tests")
		os.Exit(0)
	}
	if !commandLineSets("test.parallel") {
		_ = flag.Set("test.parallel", strconv.Itoa(max(inParallel, runtime.GOMAXPROCS(0)))) // it is a valid number
	}
	os.Exit(buildAndRun(m))
}

// inParallel is how many tests run in parallel. They mostly wait for processes, so one test per processor would leave
// processors idle.
const inParallel = 6

func commandLineSets(name string) (set bool) {
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == name })
	return set
}

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "mcpproxy-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	// A killed daemon leaves its newest records in a memory file system: see activity.FindTmpfsDir.
	if memory, err := os.MkdirTemp("/dev/shm", "mcpproxy-e2e-"); err == nil { // not every system has it
		defer os.RemoveAll(memory)
		_ = os.Setenv("XDG_RUNTIME_DIR", memory)
	}
	binary = filepath.Join(dir, "mcpproxy")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", binary, "mcpproxy/cmd/mcpproxy")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "the binary does not build:", err)
		return 1
	}
	return m.Run()
}

// patience limits every wait. A test that waits this long has failed.
const patience = time.Minute

// daemon is a running mcpproxy.
type daemon struct {
	t       testing.TB
	dir     string // the directory of the configuration and the data
	address string
	cmd     *exec.Cmd
	stderr  *output
	exited  chan error
	under   []string // the command that starts the daemon, if it is not started directly
	env     []string // additional environment of the daemon and of commands, as NAME=value
}

// output collects the output of a running process.
type output struct {
	mu    sync.Mutex // guards bytes
	bytes bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.bytes.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.bytes.String()
}

// noKeyring disables the system keyring.
const noKeyring = "MCPPROXY_NO_KEYRING=1"

// startDaemon starts `mcpproxy serve` with the configuration and stops it at
// the end of the test. The environment applies to the daemon and to commands.
func startDaemon(t testing.TB, config string, env ...string) *daemon {
	t.Helper()
	return startDaemonUnder(t, nil, config, env...)
}

// startDaemonUnder starts the daemon through a command that executes its remaining arguments.
func startDaemonUnder(t testing.TB, under []string, config string, env ...string) *daemon {
	t.Helper()
	return startDaemonAt(t, freeAddress(t), under, config, env...)
}

func startDaemonAt(t testing.TB, address string, under []string, config string, env ...string) *daemon {
	t.Helper()
	d := &daemon{t: t, dir: t.TempDir(), address: address, under: under, env: env}
	d.writeConfig(config)
	d.start()
	t.Cleanup(func() {
		if d.cmd != nil {
			d.stop()
		}
		if t.Failed() {
			t.Logf("stderr of the daemon:\n%s", d.stderr)
		}
	})
	return d
}

func (d *daemon) writeConfig(config string) {
	d.t.Helper()
	if err := os.WriteFile(d.configPath(), []byte(config), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

// environ returns the environment of the daemon and of its commands.
func (d *daemon) environ(more ...string) []string { return append(environ(d.dir, d.env...), more...) }

// environ returns the environment of this process with another home directory. It omits variables that move the
// directory of a client.
func environ(home string, more ...string) []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return name == "XDG_CONFIG_HOME" || name == "CLAUDE_CONFIG_DIR" || name == "CODEX_HOME"
	})
	return append(append(env, "HOME="+home), more...)
}

func (d *daemon) configPath() string { return filepath.Join(d.dir, "mcp_config.json") }
func (d *daemon) dataDir() string    { return filepath.Join(d.dir, "data") }

// start starts the process and waits until it answers requests.
func (d *daemon) start() {
	d.t.Helper()
	d.stderr = &output{}
	line := append(slices.Clone(d.under), binary, "serve", "--config", d.configPath(), "--data-dir", d.dataDir(), "--listen", d.address)
	d.cmd = exec.Command(line[0], line[1:]...)
	d.cmd.Stderr = d.stderr
	d.cmd.Env = d.environ()
	if err := d.cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.exited = make(chan error, 1)
	go func(cmd *exec.Cmd) { d.exited <- cmd.Wait() }(d.cmd)
	eventually(d.t, "the daemon answers", func() error {
		select {
		case err := <-d.exited:
			d.exited <- err
			d.t.Fatalf("the daemon ended: %v\n%s", err, d.stderr)
		default:
		}
		resp, err := http.Get("http://" + d.address + "/healthz")
		if err != nil {
			return err
		}
		return resp.Body.Close()
	})
}

// stop sends SIGTERM and requires exit code 0.
func (d *daemon) stop() {
	d.t.Helper()
	_ = d.cmd.Process.Signal(syscall.SIGTERM) // the process may have ended
	select {
	case err := <-d.exited:
		if err != nil {
			d.t.Errorf("the daemon did not stop cleanly: %v", err)
		}
	case <-time.After(patience):
		_ = d.cmd.Process.Kill()
		d.t.Error("the daemon does not stop")
	}
	d.cmd = nil
}

// kill ends the process like a crash.
func (d *daemon) kill() {
	_ = d.cmd.Process.Kill() // the process may have ended
	<-d.exited
	d.cmd = nil
}

func (d *daemon) key() string {
	d.t.Helper()
	raw, err := os.ReadFile(filepath.Join(d.dataDir(), "api_key"))
	if err != nil {
		d.t.Fatal(err)
	}
	return strings.TrimSpace(string(raw))
}

// rest sends a request to the REST API with the API key.
func (d *daemon) rest(method, path string, body string) (int, []byte) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://"+d.address+"/api/v1"+path, strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	req.Header.Set("X-API-Key", d.key())
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return resp.StatusCode, answer
}

// cli runs a command against the daemon.
func (d *daemon) cli(args ...string) (code int, stdout, stderr string) {
	d.t.Helper()
	return d.cliWith("", args...)
}

func (d *daemon) cliWith(stdin string, args ...string) (code int, stdout, stderr string) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, append([]string{"--config", d.configPath(), "--data-dir", d.dataDir()}, args...)...)
	cmd.Env = d.environ()
	cmd.Stdin = strings.NewReader(stdin)
	var out, notes bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &notes
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		d.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), notes.String()
}

// agent is an MCP client of the daemon.
type agent struct {
	d       *daemon
	client  *http.Client
	modern  bool
	session string
	path    string // "" means /mcp
}

const (
	legacyRevision = "2025-11-25"
	modernRevision = "2026-07-28"
)

// legacy opens a session of the legacy protocol.
func (d *daemon) legacy() *agent { return d.legacyAt("") }

// legacyAt opens a session of the legacy protocol at another path than /mcp.
func (d *daemon) legacyAt(path string) *agent {
	d.t.Helper()
	a := &agent{d: d, client: &http.Client{Timeout: patience}, path: path}
	_, _, header := a.post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"`+legacyRevision+`","capabilities":{},"clientInfo":{"name":"e2e","version":"1"}}}`, nil)
	a.session = header.Get("Mcp-Session-Id")
	if a.session == "" {
		d.t.Fatal("initialize gave no session")
	}
	a.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, nil)
	return a
}

// stateless returns a client of the modern protocol.
func (d *daemon) stateless() *agent {
	return &agent{d: d, client: &http.Client{Timeout: patience}, modern: true}
}

func (a *agent) post(body string, headers map[string]string) (int, []byte, http.Header) {
	a.d.t.Helper()
	status, answer, header, err := a.try(body, headers)
	if err != nil {
		a.d.t.Fatal(err)
	}
	return status, answer, header
}

func (a *agent) try(body string, headers map[string]string) (int, []byte, http.Header, error) {
	req, err := http.NewRequest(http.MethodPost, "http://"+a.d.address+cmp.Or(a.path, "/mcp"), strings.NewReader(body))
	if err != nil {
		return 0, nil, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	switch {
	case a.modern:
		req.Header.Set("Mcp-Protocol-Version", modernRevision)
	case a.session != "":
		req.Header.Set("Mcp-Session-Id", a.session)
		req.Header.Set("Mcp-Protocol-Version", legacyRevision)
	}
	for k, v := range headers {
		req.Header.Set(k, v)
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return 0, nil, nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	return resp.StatusCode, answer, resp.Header, err
}

// toolResult is a CallToolResult, or the JSON-RPC error in its place.
type toolResult struct {
	Content []struct {
		Type string
		Text string
	}
	IsError           bool
	StructuredContent json.RawMessage
	Meta              map[string]json.RawMessage `json:"_meta"`
	rpcError          *rpcError
}

type rpcError struct {
	Code    int
	Message string
	Data    json.RawMessage
}

func (r toolResult) text() string {
	if len(r.Content) == 0 {
		return ""
	}
	return r.Content[0].Text
}

// refusal is the error object of a refused call.
type refusal struct {
	Code    string
	Message string
	Hint    string
	Details json.RawMessage
}

func (r toolResult) refusal(t testing.TB) refusal {
	t.Helper()
	var s struct{ Error refusal }
	if err := json.Unmarshal(r.StructuredContent, &s); err != nil {
		t.Fatalf("no error in the structured content %s: %v", r.StructuredContent, err)
	}
	return s.Error
}

// call calls a built-in tool with arguments as JSON.
func (a *agent) call(tool, arguments string) toolResult {
	a.d.t.Helper()
	r, err := a.tryCall(tool, arguments)
	if err != nil {
		a.d.t.Fatal(err)
	}
	return r
}

func (a *agent) tryCall(tool, arguments string) (toolResult, error) {
	meta, headers := "", map[string]string{}
	if a.modern {
		meta = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"` + modernRevision + `","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"e2e-modern","version":"1"}}`
		headers["Mcp-Method"], headers["Mcp-Name"] = "tools/call", tool
	}
	_, answer, _, err := a.try(fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":%q,"arguments":%s%s}}`, tool, arguments, meta), headers)
	if err != nil {
		return toolResult{}, err
	}
	var m struct {
		Result toolResult
		Error  *rpcError
	}
	decoder := json.NewDecoder(bytes.NewReader(lastEvent(answer)))
	if err := decoder.Decode(&m); err != nil {
		return toolResult{}, fmt.Errorf("%w in %.300s", err, answer)
	}
	m.Result.rpcError = m.Error
	return m.Result, nil
}

// lastEvent returns the last message of an event stream, or the answer itself if it is not a stream.
func lastEvent(answer []byte) []byte {
	if trimmed := bytes.TrimSpace(answer); len(trimmed) == 0 || trimmed[0] == '{' || trimmed[0] == '[' {
		return answer
	}
	last := answer
	for line := range bytes.Lines(answer) {
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			last = bytes.TrimSpace(data)
		}
	}
	return last
}

// awaitTools waits until a search finds the named tools.
func (d *daemon) awaitTools(names ...string) {
	d.t.Helper()
	for _, name := range names {
		eventually(d.t, name+" can be found", func() error {
			server, tool, _ := strings.Cut(name, ":")
			if status, body := d.rest("GET", "/servers/"+server+"/tools/"+tool, ""); status != http.StatusOK {
				return fmt.Errorf("status %d: %s", status, body)
			}
			return nil
		})
	}
}

// eventually repeats try until it succeeds. After the time limit it fails the test with the last error.
func eventually(t testing.TB, what string, try func() error) {
	t.Helper()
	eventuallyIn(t, patience, what, try)
}

// eventuallyIn is eventually with another limit.
func eventuallyIn(t testing.TB, limit time.Duration, what string, try func() error) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, longestPause) {
		began := time.Now()
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s: %v", what, limit, err)
		}
		<-time.After(max(pause, 2*time.Since(began))) // attempts that start a process use at most a third of a core
	}
}

// longestPause is the longest pause between two quick attempts: many tests wait at the same time.
const longestPause = 100 * time.Millisecond

// ports counts the ports that tests have received.
var ports atomic.Uint32

// freeAddress returns an address that no other test gets. Its port is below the range that systems use for outgoing
// connections. Otherwise such a connection could take the port before a daemon listens, or while it restarts.
func freeAddress(t testing.TB) string {
	t.Helper()
	const first, count = 10_000, 9_000
	for range count {
		port := first + (uint32(os.Getpid())*61+ports.Add(1))%count
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			defer l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("no port is free")
	return ""
}

// signal sends a signal to a process of another test. It returns os.ErrProcessDone if the process does not exist.
func signal(pid int, sig os.Signal) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return p.Signal(sig)
}
