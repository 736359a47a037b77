package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"mcpproxy/internal/testutil/mcptest"
)

// restingVar names the file that contains the tool definition of the test server.
const restingVar = "E2E_RESTING_TOOL"

// stdioServers are the servers that the test binary can run.
func stdioServers() map[string]func() *mcptest.Server {
	return map[string]func() *mcptest.Server{
		"tasks-false": func() *mcptest.Server { return mcptest.NewTaskServer(false) },
		"tasks-true":  func() *mcptest.Server { return mcptest.NewTaskServer(true) },
		"spy":         spy,
		"gossip":      gossip,
		"asking":      func() *mcptest.Server { return mcptest.New(mcptest.Options{}, busyTool()) },
		"zoo":         func() *mcptest.Server { return mcptest.New(mcptest.Options{}, mcptest.SampleTools()...) },
		"deaf": func() *mcptest.Server {
			return mcptest.New(mcptest.Options{IgnoreTerm: true}, mcptest.SampleTools()...)
		},
		"resting": func() *mcptest.Server {
			definition, err := os.ReadFile(os.Getenv(restingVar))
			if err != nil {
				panic(err)
			}
			return mcptest.New(mcptest.Options{}, mcptest.Tool{Definition: string(definition), Handle: func(*mcptest.Call) (json.RawMessage, error) {
				return fmt.Appendf(nil, `{"content":[{"type":"text","text":"%d"}]}`, os.Getpid()), nil
			}})
		},
	}
}

const (
	pidTool        = `{"name":"pid","description":"Tells its process.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`
	changedPidTool = `{"name":"pid","description":"Tells its process, and more.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`
)

// resting is a server named s with the tool pid.
type resting struct {
	t          testing.TB
	definition string // the file that contains the tool definition
	entry      map[string]any
}

func newResting(t testing.TB) *resting {
	command, env := mcptest.ChildCommand(t, "resting")
	r := &resting{t: t, definition: filepath.Join(t.TempDir(), "tool.json")}
	env = maps.Clone(env)
	env[restingVar] = r.definition
	r.define(pidTool)
	r.entry = map[string]any{"command": command, "env": env}
	return r
}

func (r *resting) define(definition string) {
	r.t.Helper()
	if err := os.WriteFile(r.definition, []byte(definition), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// config returns a configuration with the server. server and all contain additional keys for the server and for the top
// level.
func (r *resting) config(server, all map[string]any) string {
	r.t.Helper()
	entry, top := maps.Clone(r.entry), map[string]any{}
	maps.Copy(entry, server)
	maps.Copy(top, all)
	top["mcpServers"] = map[string]any{"s": entry}
	text, err := json.Marshal(top)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(text)
}

// pid calls the tool pid of s.
func (a *agent) pid() (int, error) {
	r, err := a.tryCall("call_tool_read", `{"name":"s:pid"}`)
	if err != nil {
		return 0, err
	}
	pid, err := strconv.Atoi(r.text())
	if err != nil {
		return 0, fmt.Errorf("%+v", r)
	}
	return pid, nil
}

func (a *agent) mustPID() int {
	a.d.t.Helper()
	pid, err := a.pid()
	if err != nil {
		a.d.t.Fatal(err)
	}
	return pid
}

func TestIdleServerSleepsAndWakes(t *testing.T) {
	t.Parallel()
	r := newResting(t)
	d := startDaemon(t, r.config(nil, map[string]any{"idle_timeout": "1s"}))
	d.awaitTools("s:pid")
	a := d.legacy()
	first := a.mustPID()
	d.awaitState("s", "idle")
	if err := signal(first, syscall.Signal(0)); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("the process still runs: %v", err)
	}
	if _, out, _ := d.cli("upstream", "list"); !strings.Contains(out, "idle") || !strings.Contains(out, "1") {
		t.Errorf("upstream list:\n%s", out)
	}
	if _, out, _ := d.cli("status"); !strings.Contains(out, "1 idle") || !strings.Contains(out, "1 callable of 1") {
		t.Errorf("status:\n%s", out)
	}
	if found := a.call("retrieve_tools", `{"query":"process"}`); !strings.Contains(found.text(), "s:pid") {
		t.Errorf("the tool is not found: %s", found.text())
	}

	pids := make([]int, 64)
	var wg sync.WaitGroup
	for i := range pids {
		wg.Go(func() {
			var err error
			if pids[i], err = a.pid(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, pid := range pids {
		if pid != pids[0] || pid == first {
			t.Fatalf("processes %v; the first one was %d", pids, first)
		}
	}

	d.awaitState("s", "idle")
	r.define(changedPidTool)
	answer := a.call("call_tool_read", `{"name":"s:pid"}`)
	if p := answer.refusal(t); p.Code != "TOOL_LOCKED" && (p.Code != "SERVER_UNAVAILABLE" || !strings.Contains(p.Message, "changed")) {
		t.Errorf("the call was decided on the old definition: %+v", p)
	}
	// The refusal changes as soon as the catalog has the new list. Until then no call is allowed.
	eventually(t, "the tool that changed is locked", func() error {
		if p := a.call("call_tool_read", `{"name":"s:pid"}`).refusal(t); p.Code != "TOOL_LOCKED" {
			return fmt.Errorf("%s: %s", p.Code, p.Message)
		}
		return nil
	})
}

func TestLazyServer(t *testing.T) {
	t.Parallel()
	r := newResting(t)
	d := startDaemon(t, r.config(map[string]any{"lazy": true}, nil))
	d.awaitState("s", "idle")
	a := d.stateless()
	if p := a.call("call_tool_read", `{"name":"s:pid"}`).refusal(t); p.Code != "SERVER_UNAVAILABLE" || !strings.Contains(p.Message, "upstream restart s") {
		t.Errorf("a call before the tools are known: %+v", p)
	}
	if _, out, _ := d.cli("upstream", "list"); !strings.Contains(out, "mcpproxy upstream restart s") {
		t.Errorf("upstream list:\n%s", out)
	}
	if code, out, stderr := d.cli("upstream", "restart", "s"); code != 0 || !strings.Contains(out, "ready") {
		t.Fatalf("restart: %d %s %s", code, out, stderr)
	}
	d.awaitTools("s:pid")
	a.mustPID()

	d.kill()
	d.start() // the tools are known, so the server is not started
	d.awaitTools("s:pid")
	d.awaitState("s", "idle")
	if s, err := d.server("s"); err != nil || s.PID != 0 {
		t.Errorf("after a restart of the daemon: %+v %v", s, err)
	}
	pid := a.mustPID()
	d.awaitState("s", "ready")
	if s, err := d.server("s"); err != nil || s.PID != pid {
		t.Errorf("after the first call: %+v %v, process %d", s, err, pid)
	}
}

// Neither lazy nor idle_timeout starts a server that no user has approved.
func TestLazyServerInQuarantineIsNotStarted(t *testing.T) {
	t.Parallel()
	r := newResting(t)
	d := startDaemon(t, r.config(map[string]any{"lazy": true, "quarantined": true}, map[string]any{"idle_timeout": "1s"}))
	if code, _, _ := d.cli("upstream", "restart", "s"); code == 0 {
		t.Error("restart starts the server")
	}
	if p := d.legacy().call("call_tool_read", `{"name":"s:pid"}`).refusal(t); strings.Contains(p.Message, "upstream restart") {
		t.Errorf("the call: %+v", p)
	}
	d.awaitState("s", "stopped")
	if s, err := d.server("s"); err != nil || s.PID != 0 {
		t.Errorf("%+v %v", s, err)
	}
}
