package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"mcpproxy/internal/testutil/mcptest"
)

const (
	// clockRun enables this run. The run is optional because it builds the standard library again.
	clockRun = "MCPPROXY_CLOCK_RUN"
	// clockVar names the file that contains the offset of the daemon's clock in seconds.
	clockVar = "MCPPROXY_TEST_CLOCK"
)

// clockSource is added to the package time of the daemon. It changes only the wall clock, as a user or NTP does.
const clockSource = `
var wallOffset atomic.Int64

func init() {
	if name, ok := syscall.Getenv("` + clockVar + `"); ok {
		go func() {
			for {
				followWall(name)
				Sleep(Millisecond)
			}
		}()
	}
}

func followWall(name string) {
	fd, err := open(name)
	if err != nil {
		return
	}
	defer closefd(fd)
	var text [32]byte
	n, _ := read(fd, text[:])
	sign, sec := int64(1), int64(0)
	for _, c := range text[:max(n, 0)] {
		if c == '-' {
			sign = -1
		} else if '0' <= c && c <= '9' {
			sec = sec*10 + int64(c-'0')
		}
	}
	wallOffset.Store(sign * sec)
}
`

// buildWithClock builds the binary with a wall clock that a file sets.
func buildWithClock(t *testing.T) string {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	original := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	source, err := os.ReadFile(original)
	if err != nil {
		t.Fatal(err)
	}
	const reading = "\tsec, nsec, mono := runtimeNow()\n"
	if strings.Count(string(source), reading) != 1 {
		t.Fatalf("package time of %s does not read its clock as this test expects", runtime.Version())
	}
	changed := strings.Replace(string(source), reading, reading+"\tsec += wallOffset.Load()\n", 1)
	changed = strings.Replace(changed, "import (\n", "import (\n\t\"sync/atomic\"\n\t\"syscall\"\n", 1) + clockSource
	dir := t.TempDir()
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{original: filepath.Join(dir, "time.go")}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"time.go": changed, "overlay.json": string(overlay)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(dir, "mcpproxy")
	if said, err := exec.Command("go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", out, "mcpproxy/cmd/mcpproxy").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	return out
}

// TestClockChanges runs the real daemon while its clock is set between a year back and a year ahead, with an occasional
// kill -9. No answered call is lost, doubled or changes its outcome, and IDs increase. Sessions, server processes and
// result handles stay valid. The test does not run in parallel, because other tests use the binary that it replaces.
func TestClockChanges(t *testing.T) {
	if os.Getenv(clockRun) == "" {
		t.Skipf("set %s=1 to run this test; its build takes minutes (store and activity have tests with a changed clock)", clockRun)
	}
	clock := filepath.Join(t.TempDir(), "clock")
	usual := binary
	binary = buildWithClock(t)
	t.Cleanup(func() { binary = usual })
	r := newResting(t)
	files, env := mcptest.ChildCommand(t, "zoo")
	config, err := json.Marshal(map[string]any{"result_limit": 2000, "idle_timeout": "1h", "mcpServers": map[string]any{
		"s": r.entry, "zoo": map[string]any{"command": files, "env": maps.Clone(env), "trust": "auto"}}})
	if err != nil {
		t.Fatal(err)
	}
	c := &clockedRun{t: t, d: startDaemon(t, string(config), clockVar+"="+clock), random: rand.New(rand.NewPCG(47, 11)), clock: clock}
	for round := range 24 {
		if round%6 == 0 {
			if round > 0 {
				c.d.kill()
				c.d.start()
			}
			c.begin()
		}
		c.round()
	}
	c.check()
}

type clockedRun struct {
	t      *testing.T
	d      *daemon
	random *rand.Rand
	clock  string
	agent  *agent
	pid    string
	handle string
	ids    []string // of the answered calls
}

// begin opens the session and the handle that must stay valid in all rounds.
func (c *clockedRun) begin() {
	c.d.awaitTools("s:pid", "zoo:echo")
	c.agent = c.d.legacy()
	c.pid = c.agent.call("call_tool_read", `{"name":"s:pid"}`).text()
	long := c.agent.call("call_tool_read", fmt.Sprintf(`{"name":"zoo:echo","args":{"text":%q}}`, strings.Repeat("a long text ", 1000)))
	var cut struct{ Handle string }
	if err := json.Unmarshal(long.Meta["mcpproxy/truncated"], &cut); err != nil || cut.Handle == "" {
		c.t.Fatalf("no handle in %s: %v", long.text(), err)
	}
	c.handle = cut.Handle
}

// round sets the clock and makes calls.
func (c *clockedRun) round() {
	const year = 365 * 24 * 60 * 60
	for range 5 {
		if err := os.WriteFile(c.clock+".new", fmt.Appendf(nil, "%d", c.random.IntN(2*year)-year), 0o600); err != nil {
			c.t.Fatal(err)
		}
		if err := os.Rename(c.clock+".new", c.clock); err != nil {
			c.t.Fatal(err)
		}
		for range 10 {
			status, body := c.d.rest("POST", "/tools/call", fmt.Sprintf(`{"tool_variant":"call_tool_read","name":"zoo:echo","args":{"n":"call %d"}}`, len(c.ids)))
			var answer struct {
				ID string `json:"activity_id"`
			}
			if err := json.Unmarshal(body, &answer); err != nil || status != http.StatusOK || answer.ID == "" {
				c.t.Fatalf("call %d: %d %s", len(c.ids), status, body)
			}
			c.ids = append(c.ids, answer.ID)
		}
	}
	if got := c.agent.call("call_tool_read", `{"name":"s:pid"}`); got.text() != c.pid {
		c.t.Errorf("the session has the process %s, it was %s", got.text(), c.pid)
	}
	if got := c.agent.call("read_result", fmt.Sprintf(`{"handle":%q}`, c.handle)); got.IsError || got.rpcError != nil || !strings.Contains(got.text(), "a long text") {
		c.t.Errorf("the handle gives %.200s %v", got.text(), got.rpcError)
	}
}

// check looks for every call in the log.
func (c *clockedRun) check() {
	if !slices.IsSorted(c.ids) {
		c.t.Error("the IDs do not increase")
	}
	found := map[string]int{}
	for cursor, first := "", true; first || cursor != ""; first = false {
		_, body := c.d.rest("GET", "/activity?limit=1000&type=tool_call&tool=zoo:echo&cursor="+url.QueryEscape(cursor), "")
		var page struct {
			Activities []struct {
				ID, Status string
				Arguments  json.RawMessage
				Duration   int64 `json:"duration_ms"`
			}
			Next string `json:"next_cursor"`
		}
		if err := json.Unmarshal(body, &page); err != nil {
			c.t.Fatal(err)
		}
		for _, a := range page.Activities {
			if a.Status != "success" || a.Duration < 0 || a.Duration > patience.Milliseconds() {
				c.t.Errorf("%s: %s after %d ms", a.ID, a.Status, a.Duration)
			}
			found[a.ID+string(a.Arguments)]++
		}
		cursor = page.Next
	}
	for i, id := range c.ids {
		if n := found[fmt.Sprintf(`%s{"n":"call %d"}`, id, i)]; n != 1 {
			c.t.Errorf("call %d, %s: %d records", i, id, n)
		}
	}
	c.t.Logf("%d calls, %d records of them", len(c.ids), len(found))
}
