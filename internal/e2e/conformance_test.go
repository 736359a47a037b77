package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mcpproxy/internal/mcp/wirejson"
)

// The official conformance suite, run through /mcp/servers/NAME against the SDK's everything-server, must pass every
// scenario that it passes against that server directly. The suite decides which scenarios count.

// everythingServer is the test server of the SDK, built through the module proxy.
const everythingServer = "github.com/modelcontextprotocol/go-sdk/conformance/everything-server@v1.8.0"

// suite returns the paths of the conformance suite and of node.
func suite(t testing.TB) (script, node string) {
	t.Helper()
	modules, node := peers(t)
	script = filepath.Join(modules, "@modelcontextprotocol", "conformance", "dist", "index.js")
	if _, err := os.Stat(script); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("the conformance suite is required in CI: %v (npm install --prefix .ci/npm)", err)
		}
		t.Skipf("the conformance suite is not installed (npm install --prefix .ci/npm): %v", err)
	}
	return script, node
}

// serveFixture runs the test server over HTTP: stateless, or with sessions as in the legacy protocol.
func serveFixture(t testing.TB, fixture string, stateless bool) (url string) {
	t.Helper()
	address := freeAddress(t)
	serveAt(t, exec.Command(fixture, "-http", address, fmt.Sprintf("-stateless=%t", stateless)), address)
	return "http://" + address + "/mcp"
}

// verdict is the result of the suite: whether each scenario passed.
type verdict struct {
	passed map[string]bool
	scored []string // the scenarios that count for the protocol version
	output string
}

var (
	scenarioLine = regexp.MustCompile(`(?m)^([✓✗]) ([\w-]+): \d+ passed, \d+ failed`)
	unscoredLine = regexp.MustCompile(`(?m)^  [✓✗] ([\w-]+) \(`)
)

// conform runs the suite against a URL. If it runs several times, a scenario passes only if it passes each time.
func conform(t testing.TB, url, revision string) verdict {
	t.Helper()
	script, node := suite(t)
	ctx, cancel := context.WithTimeout(context.Background(), 4*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, script, "server", "--url", url, "-o", t.TempDir(), "--requirements", revision)
	out, err := cmd.CombinedOutput() // the exit code repeats the output
	v := verdict{passed: map[string]bool{}, output: string(out)}
	var unscored []string
	for _, m := range unscoredLine.FindAllStringSubmatch(v.output, -1) {
		unscored = append(unscored, m[1])
	}
	for _, m := range scenarioLine.FindAllStringSubmatch(v.output, -1) {
		v.passed[m[2]] = m[1] == "✓"
		if !slices.Contains(unscored, m[2]) {
			v.scored = append(v.scored, m[2])
		}
	}
	if len(v.passed) == 0 {
		t.Fatalf("the suite has no output: %v\n%s", err, v.output)
	}
	return v
}

func (v verdict) failing(names []string) (failing []string) {
	for _, name := range names {
		if !v.passed[name] {
			failing = append(failing, name)
		}
	}
	return failing
}

func TestConformance(t *testing.T) {
	t.Parallel()
	suite(t)
	fixture := buildSDK(t, everythingServer)
	urls := map[string]string{"2025-11-25": serveFixture(t, fixture, false), "2026-07-28": serveFixture(t, fixture, true)}
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{
		"http-2025-11-25": map[string]any{"url": urls["2025-11-25"]},
		"http-2026-07-28": map[string]any{"url": urls["2026-07-28"]},
		"stdio":           map[string]any{"command": fixture},
		"http-own":        map[string]any{"url": urls["2025-11-25"], "session": "per_client"},
		"stdio-own":       map[string]any{"command": fixture, "session": "per_client"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	d := startDaemon(t, string(config))
	d.awaitTools("http-2025-11-25:test_simple_text", "http-2026-07-28:test_simple_text", "stdio:test_simple_text", "http-own:test_simple_text", "stdio-own:test_simple_text")
	for revision, scored := range map[string]int{"2025-11-25": 30, "2026-07-28": 37} {
		direct := conform(t, urls[revision], revision)
		if len(direct.scored) != scored || len(direct.failing(direct.scored)) > 0 {
			t.Fatalf("directly: %d scenarios, want %d; these fail: %q", len(direct.scored), scored, direct.failing(direct.scored))
		}
		through := []string{"http-" + revision, "stdio", "stdio-own"}
		if revision == "2025-11-25" {
			through = append(through, "http-own")
		}
		for _, upstream := range through {
			t.Run(revision+" through "+upstream, func(t *testing.T) {
				through := conform(t, "http://"+d.address+"/mcp/servers/"+upstream, revision)
				for name, passed := range direct.passed {
					if passed && !through.passed[name] {
						t.Errorf("%s passes directly, but not through MCPProxy", name)
					}
				}
				if t.Failed() {
					t.Log(strings.TrimSpace(through.output))
				}
			})
		}
	}
}

// TestNotificationsKeepTheirOrder: in the suite's notification scenarios, notifications that the test server sends
// before its answer arrive before the answer, in 25 of 25 runs.
func TestNotificationsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	fixture := buildSDK(t, everythingServer)
	config := fmt.Sprintf(`{"mcpServers":{"http":{"url":%q},"modern":{"url":%q},"stdio":{"command":%q}}}`,
		serveFixture(t, fixture, false), serveFixture(t, fixture, true), fixture)
	d := startDaemon(t, config)
	d.awaitTools("http:test_simple_text", "modern:test_simple_text", "stdio:test_simple_text")
	const rounds = 25
	check := func(server, what, want string, call func(tool string) []string) {
		tool := "test_tool_with_" + what
		t.Run(server+" "+what, func(t *testing.T) {
			t.Parallel()
			for round := range rounds {
				if got := call(tool); len(got) != 4 || got[3] != "" || slices.ContainsFunc(got[:3], func(m string) bool { return m != want }) {
					t.Fatalf("round %d of %d: %q", round+1, rounds, got)
				}
			}
		})
	}
	for _, server := range []string{"http", "stdio"} {
		for what, want := range map[string]string{"logging": "notifications/message", "progress": "notifications/progress"} {
			c := d.relayClient(server)
			_ = d.answerTo(c.post(`{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"debug"}}`))
			check(server, what, want, func(tool string) []string {
				resp, err := c.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":%q,"arguments":{},"_meta":{"progressToken":"p"}}}`, tool))
				return methodsOf(t, resp, err)
			})
		}
	}
	for _, server := range []string{"modern", "stdio"} {
		check("2026-07-28 "+server, "progress", "notifications/progress", func(tool string) []string {
			resp, err := d.tryModern(server, "tools/call", tool, fmt.Sprintf(`"name":%q,"arguments":{}`, tool), `"progressToken":"p"`)
			return methodsOf(t, resp, err)
		})
	}
}

// methodsOf returns the methods of the messages in an answer, with "" for the response.
func methodsOf(t testing.TB, resp *http.Response, err error) (methods []string) {
	t.Helper()
	if err != nil {
		t.Error(err)
		return nil
	}
	defer resp.Body.Close()
	events := wirejson.NewSSEReader(resp.Body, 1<<20)
	for {
		e, err := events.Next()
		if err != nil {
			return methods
		}
		method, _ := wirejson.String(wirejson.Find(e.Data, "method"))
		methods = append(methods, method)
	}
}

// TestLegacyClientOnModernServer: a client with sessions uses a stateless server.
func TestLegacyClientOnModernServer(t *testing.T) {
	t.Parallel()
	suite(t)
	fixture := buildSDK(t, everythingServer)
	d := startDaemon(t, fmt.Sprintf(`{"mcpServers":{"modern":{"url":%q}}}`, modernOnly(t, serveFixture(t, fixture, true))))
	d.awaitTools("modern:test_simple_text")
	v := conform(t, "http://"+d.address+"/mcp/servers/modern", legacyRevision)
	failing := v.failing(v.scored)
	t.Logf("%d of %d pass; these fail: %q", len(v.scored)-len(failing), len(v.scored), failing)
	if len(v.scored)-len(failing) < 28 {
		t.Error(v.output)
	}
}

// TestModernClientOnLegacyServer: a stateless client uses a server that requires sessions, over HTTP.
func TestModernClientOnLegacyServer(t *testing.T) {
	t.Parallel()
	suite(t)
	fixture := buildSDK(t, everythingServer)
	d := startDaemon(t, fmt.Sprintf(`{"mcpServers":{"older":{"url":%q}}}`, serveFixture(t, fixture, false)))
	d.awaitTools("older:test_simple_text")
	v := conform(t, "http://"+d.address+"/mcp/servers/older", modernRevision)
	failing := v.failing(v.scored)
	t.Logf("%d of %d pass; these fail: %q", len(v.scored)-len(failing), len(v.scored), failing)
	if len(v.scored)-len(failing) < 35 {
		t.Error(v.output)
	}
}
