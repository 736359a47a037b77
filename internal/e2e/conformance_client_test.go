package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// In the client part of the official conformance suite, the suite is a server and checks its client. Here the client is
// MCPProxy: the suite starts this test binary as its command. The command runs MCPProxy with the suite's server as
// upstream, and the SDK's everything-client uses that server through /mcp/servers/up. The command also acts as the user
// who logs in.

const everythingClient = "github.com/modelcontextprotocol/go-sdk/conformance/everything-client@v1.8.0"

// These environment variables tell this test binary to act as the suite's command.
const (
	commandBinary = "MCPPROXY_CONFORMANCE_BINARY" // path of MCPProxy
	commandClient = "MCPPROXY_CONFORMANCE_CLIENT" // path of the everything-client
	commandQueue  = "MCPPROXY_CONFORMANCE_QUEUE"  // a directory for locks
)

// The time limits of the suite and of one scenario.
const (
	suiteTime    = 8 * time.Minute
	scenarioTime = time.Minute
)

// conformanceCommand is the suite's command. It returns the exit code.
func conformanceCommand(url string) int {
	awaitOthers(filepath.Join(os.Getenv(commandQueue), allStarted))
	err := takeTurn()
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), scenarioTime)
		defer cancel()
		err = runAsClient(ctx, url)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "the scenario:", err)
		return 1
	}
	return 0
}

// commandConfig is MCPProxy's configuration for the scenario.
func commandConfig(url, listen string) ([]byte, error) {
	login := map[string]any{"client_metadata_url": "https://conformance-test.local/client-metadata.json"}
	var given struct {
		ClientID     string `json:"client_id"`
		ClientSecret string `json:"client_secret"`
	}
	if raw := os.Getenv("MCP_CONFORMANCE_CONTEXT"); raw != "" {
		if err := json.Unmarshal([]byte(raw), &given); err != nil {
			return nil, err
		}
	}
	if given.ClientID != "" {
		login["client_id"] = given.ClientID
	}
	if given.ClientSecret != "" {
		login["client_secret"] = given.ClientSecret
	}
	return json.Marshal(map[string]any{"listen": listen, "mcpServers": map[string]any{"up": map[string]any{"url": url, "oauth": login, "trust": "auto"}}})
}

// maxLogins is the number of login attempts before the user gives up.
const maxLogins = 3

func runAsClient(ctx context.Context, url string) error {
	dir, err := os.MkdirTemp("", "mcpproxy-conformance-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	p := &person{dir: dir, binary: os.Getenv(commandBinary)}
	if err := p.start(ctx, url); err != nil {
		return err
	}
	defer p.stop()
	var failed error // the last login
	for logins := 0; ; logins++ {
		err := p.useServer(ctx)
		if logins == maxLogins || !p.needsLogin(ctx) {
			return errors.Join(failed, err)
		}
		failed = p.logIn(ctx) // the message of a failed login says to try again
	}
}

// person is a user who runs and uses MCPProxy.
type person struct {
	dir, binary, address string
	daemon               *exec.Cmd
}

func (p *person) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p.binary, append(args, "--config", filepath.Join(p.dir, "mcp_config.json"), "--data-dir", filepath.Join(p.dir, "data"))...)
	cmd.Env = environ(p.dir, noKeyring)
	cmd.Stderr = os.Stderr
	return cmd
}

var answersAt = regexp.MustCompile(`mcp=(http://[0-9.:]+)/mcp`)

// start starts MCPProxy and waits until it has tried to connect to its server.
func (p *person) start(ctx context.Context, url string) error {
	config, err := commandConfig(url, "127.0.0.1:0")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(p.dir, "mcp_config.json"), config, 0o600); err != nil {
		return err
	}
	p.daemon = p.command(ctx, "serve")
	stderr := &lockedBuffer{}
	p.daemon.Stderr = io.MultiWriter(stderr, os.Stderr)
	p.daemon.Cancel = func() error { return p.daemon.Process.Signal(syscall.SIGTERM) }
	if err := p.daemon.Start(); err != nil {
		return err
	}
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for {
		if m := answersAt.FindStringSubmatch(stderr.String()); m != nil {
			p.address = m[1]
			if state := p.state(ctx); state != "" && state != "connecting" && state != "stopped" {
				return nil
			}
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (p *person) stop() {
	_ = p.daemon.Process.Signal(syscall.SIGTERM)
	_ = p.daemon.Wait() // the suite decides, not the exit code
}

type upState struct {
	State      string
	NeedsLogin bool `json:"needs_login"`
}

func (p *person) look(ctx context.Context) (s upState) {
	key, err := os.ReadFile(filepath.Join(p.dir, "data", "api_key"))
	if err != nil {
		return s
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.address+"/api/v1/servers/up", nil)
	if err != nil {
		return s
	}
	r.Header.Set("X-API-Key", strings.TrimSpace(string(key)))
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return s
	}
	defer resp.Body.Close()
	_ = json.NewDecoder(resp.Body).Decode(&s) // an unreadable answer counts as no state
	return s
}

func (p *person) state(ctx context.Context) string { return p.look(ctx).State }

// needsLogin reports whether the server needs a login. It waits for some attempts to connect, because a rejected token
// is sent once more.
func (p *person) needsLogin(ctx context.Context) bool {
	for range 20 {
		if s := p.look(ctx); s.NeedsLogin || s.State == "ready" || ctx.Err() != nil {
			return s.NeedsLogin
		}
		time.Sleep(200 * time.Millisecond)
	}
	return false
}

// useServer runs the everything-client against MCPProxy.
func (p *person) useServer(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, os.Getenv(commandClient), p.address+"/mcp/servers/up")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}

// logIn logs in with a browser that follows redirects.
func (p *person) logIn(ctx context.Context) error {
	cmd := p.command(ctx, "upstream", "login", "up", "--no-browser")
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	address := make([]byte, 16<<10)
	n, err := out.Read(address)
	if err != nil {
		return errors.Join(err, cmd.Wait())
	}
	resp, err := http.Get(strings.TrimSpace(string(address[:n])))
	if err == nil {
		resp.Body.Close()
	}
	return errors.Join(err, cmd.Wait())
}

var (
	clientLine     = regexp.MustCompile(`(?m)^([✓✗]) ([\w/.-]+): \d+ passed, \d+ failed`)
	clientUnscored = regexp.MustCompile(`(?m)^  [✓✗] ([\w/.-]+) \(`)
)

// TestClientConformance: all scenarios of a protocol version pass.
func TestClientConformance(t *testing.T) {
	t.Parallel()
	script, node := suite(t)
	client := buildSDK(t, everythingClient)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for revision, scored := range map[string]int{"2025-11-25": 18, "2026-07-28": 32} {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(context.Background(), suiteTime)
			defer cancel()
			results, queue := t.TempDir(), t.TempDir()
			cmd := exec.CommandContext(ctx, node, script, "client", "--command", self, "-o", results,
				"--requirements", revision, "--timeout", strconv.FormatInt(suiteTime.Milliseconds(), 10))
			cmd.Env = append(os.Environ(), commandBinary+"="+binary, commandClient+"="+client, commandQueue+"="+queue)
			said := &suiteOutput{queue: queue}
			cmd.Stdout, cmd.Stderr = said, said
			runErr := cmd.Run() // the exit code repeats the output
			out := []byte(said.String())
			var unscored []string
			for _, m := range clientUnscored.FindAllStringSubmatch(string(out), -1) {
				unscored = append(unscored, m[1])
			}
			passed := 0
			for _, m := range clientLine.FindAllStringSubmatch(string(out), -1) {
				switch {
				case slices.Contains(unscored, m[2]):
				case m[1] == "✓":
					passed++
				default:
					t.Errorf("%s fails: %s", m[2], failedChecks(results, m[2]))
				}
			}
			if passed != scored {
				t.Errorf("%d of %d scenarios pass (%v)", passed, scored, runErr)
			}
			if t.Failed() {
				t.Logf("%s", out)
			}
		})
	}
}

// allStarted is a file in the queue. It tells the clients of a suite that all of them were started.
const allStarted = "all-started"

// suiteOutput is the output of a suite. It makes the file allStarted.
type suiteOutput struct {
	output
	queue string
}

var scenarioCount = regexp.MustCompile(`\((\d+) scenarios\) in parallel`)

func (s *suiteOutput) Write(p []byte) (int, error) {
	n, _ := s.output.Write(p) // never fails
	said := s.String()
	m := scenarioCount.FindStringSubmatch(said)
	if m == nil || fmt.Sprint(strings.Count(said, "Executing client: ")) != m[1] {
		return n, nil
	}
	return n, os.WriteFile(filepath.Join(s.queue, allStarted), nil, 0o600)
}

// awaitOthers waits until the suite has started all clients. Until then it does not answer. MCPProxy assumes the legacy
// protocol for a server that sends nothing for five seconds.
func awaitOthers(started string) {
	for end := time.Now().Add(scenarioTime); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(started); err == nil {
			return
		}
	}
}

// failedChecks returns the checks of a scenario that failed, from the results of the suite.
func failedChecks(results, scenario string) (failed []string) {
	files, _ := filepath.Glob(filepath.Join(results, scenario+"-*", "checks.json")) // the pattern is valid
	for _, file := range files {
		var checks []json.RawMessage
		raw, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(raw, &checks)
		}
		if err != nil {
			failed = append(failed, err.Error())
		}
		for _, check := range checks {
			if bytes.Contains(check, []byte(`"FAILURE"`)) {
				failed = append(failed, string(check))
			}
		}
	}
	return failed
}

// sdkPrograms are the SDK programs that tests requested. Each value is a function that builds its program once.
var sdkPrograms sync.Map

// buildSDK builds a program that uses the SDK, in a separate module, once for all tests.
func buildSDK(t testing.TB, program string) string {
	t.Helper()
	build, _ := sdkPrograms.LoadOrStore(program, sync.OnceValues(func() (string, error) { return installProgram(program) }))
	path, err := build.(func() (string, error))()
	if err != nil && os.Getenv("CI") == "true" {
		t.Fatal(err)
	}
	if err != nil {
		t.Skipf("is the module proxy reachable? %v", err)
	}
	return path
}

// installProgram installs a program of a Go module in a directory next to the binary.
func installProgram(program string) (path string, err error) {
	dir, err := os.MkdirTemp(filepath.Dir(binary), "sdk-")
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	build := exec.CommandContext(ctx, "go", "install", program)
	build.Dir, build.Env = dir, append(os.Environ(), "GOBIN="+dir)
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s does not build: %w\n%s", program, err, out)
	}
	name, _, _ := strings.Cut(filepath.Base(program), "@")
	return filepath.Join(dir, name), nil
}
