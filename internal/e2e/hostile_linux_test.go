package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpproxy/internal/testutil/mcptest"
)

// childMark is in the environment of every process that the daemon starts in this test. Its value is the number of this
// process.
const childMark = "MCPPROXY_E2E_CHILD"

// TestHostileServers: whatever a server does during a call, on every endpoint, in both protocols and over every
// transport, the call ends in a correct answer or a typed error. Other servers are not affected, the memory of the
// daemon stays bounded, and no process is left.
func TestHostileServers(t *testing.T) {
	t.Parallel()
	good := mcptest.Serve(t, mcptest.New(mcptest.Options{}, mcptest.SampleTools()...))
	d := startDaemon(t, hostileConfig(t, good.URL))
	var servers []string
	for _, transport := range []string{"stdio", "json", "events"} {
		servers = append(servers, "hasty-"+transport+":echo", "patient-"+transport+":echo")
	}
	d.awaitTools(append(servers, "good:echo", "near:echo", "deaf:echo")...)
	stop := d.keepCalling("good", "near")
	rest := d.memory("VmRSS:")

	for _, transport := range []string{"stdio", "json", "events"} {
		for _, m := range hostileModes() {
			if m.over != "" && m.over != transport {
				continue
			}
			server := "patient-" + transport
			if m.right == "" {
				server = "hasty-" + transport
			}
			d.provoke(server, m)
			d.await(server)
		}
	}
	d.provoke("deaf", hostileMode{tool: "crash"})
	d.await("deaf")
	if code, _, stderr := d.cli("upstream", "enable", "pages"); code != 0 {
		t.Fatal(stderr)
	}
	eventually(t, "the endless list is given up", func() error {
		if _, body := d.rest("GET", "/servers/pages", ""); !bytes.Contains(body, []byte("longer than")) {
			return fmt.Errorf("%s", body)
		}
		return nil
	})
	d.provoke("pages", hostileMode{tool: "echo"})

	stop()
	t.Logf("grown by %d MiB", d.memory("VmHWM:")-rest)
	if growth := d.memory("VmHWM:") - rest; growth > 96 {
		t.Errorf("the daemon has grown by %d MiB from %d", growth, rest)
	}
	pid := d.cmd.Process.Pid
	if n := len(marked()); n < 4 {
		t.Errorf("only %d server processes are running", n) // otherwise the test would not find leftover processes
	}
	eventually(t, "every child has been waited for", func() error {
		if z := zombies(pid); len(z) > 0 {
			return fmt.Errorf("zombies %v", z)
		}
		return nil
	})
	d.stop()
	eventually(t, "no process is left", func() error {
		if left := marked(); len(left) > 0 {
			return fmt.Errorf("%v", left)
		}
		return nil
	})
}

// hostileMode is a call of a misbehaving tool of mcptest's zoo.
type hostileMode struct {
	tool, args string
	right      string // a part of the correct answer; "" when an error is expected
	either     bool   // it ends its process, so that other calls fail too
	over       string // the transport for this mode; "" means all
}

func hostileModes() []hostileMode {
	return []hostileMode{
		{tool: "crash"},
		{tool: "hang"},
		{tool: "garbage", right: "done"},
		{tool: "wrong_id"},
		{tool: "duplicate", right: "first"},
		{tool: "half"},
		{tool: "half", args: `{"bytes":2000000}`},
		{tool: "drip", args: `{"ms":1000}`},
		{tool: "deep", args: `{"n":100000}`},
		{tool: "stderr", args: `{"bytes":20000000}`, right: "done", over: "stdio"}, // 120 MB: the calls of all surfaces share a process
		{tool: "endless"},
		{tool: "endless", args: `{"json":1}`, over: "json"},
		{tool: "storm", args: `{"n":2000,"rate":10000}`, right: "done"},
		{tool: "zip", args: `{"bytes":10000000000}`, over: "json"},
		{tool: "zip", args: `{"bytes":10000000000}`, over: "events"},
		{tool: "no_input", right: "done", either: true, over: "stdio"},
	}
}

// hostileConfig configures servers of the zoo with a short call timeout (hasty) and with a long one (patient), a server
// with an endless list, one that ignores SIGTERM, and healthy ones.
func hostileConfig(t *testing.T, good string) string {
	t.Helper()
	var config strings.Builder
	fmt.Fprintf(&config, `{"mcpServers":{"good":{"url":%q}`, good)
	process := func(name, server, timeout string) {
		command, env := mcptest.ChildCommand(t, server)
		env[childMark] = strconv.Itoa(os.Getpid())
		var vars []string
		for k, v := range env {
			vars = append(vars, fmt.Sprintf("%q:%q", k, v))
		}
		// The process has a child process, which must end with it.
		fmt.Fprintf(&config, `,%q:{"trust":"auto","call_timeout":%q,"command":"sh","args":["-c","sleep 100000 & exec \"$0\"",%q],"env":{%s}}`,
			name, timeout, command, strings.Join(vars, ","))
	}
	process("near", "zoo", patience.String())
	process("deaf", "deaf", "300ms")
	for name, timeout := range map[string]string{"hasty": "300ms", "patient": patience.String()} {
		process(name+"-stdio", "zoo", timeout)
		for _, transport := range []string{"json", "events"} {
			server := mcptest.Serve(t, mcptest.New(mcptest.Options{Events: transport == "events"}, mcptest.SampleTools()...))
			fmt.Fprintf(&config, `,%q:{"trust":"auto","call_timeout":%q,"url":%q}`, name+"-"+transport, timeout, server.URL)
		}
	}
	pages := mcptest.Serve(t, mcptest.New(mcptest.Options{EndlessPages: true, PageText: 200_000}))
	fmt.Fprintf(&config, `,"pages":{"enabled":false,"trust":"auto","call_timeout":"300ms","url":%q}}}`, pages.URL)
	return config.String()
}

// provoke calls the tool once on each surface, all at the same time.
func (d *daemon) provoke(server string, m hostileMode) {
	d.t.Helper()
	if m.args == "" {
		m.args = "{}"
	}
	var calls sync.WaitGroup
	for _, s := range mcptest.AllSurfaces() {
		calls.Go(func() {
			c := d.caller(s, server)
			defer c.Close()
			o := c.Call(m.tool, m.args, m.right)
			if o.Unclear || (o.What == "ok") != (m.right != "") && !m.either {
				d.t.Errorf("%s %s of %s on %v: %s after %v", m.tool, m.args, server, s, o.What, o.Took)
			}
		})
	}
	calls.Wait()
}

func (d *daemon) caller(s mcptest.Surface, server string) *mcptest.GatewayClient {
	return &mcptest.GatewayClient{Base: "http://" + d.address, Surface: s, Server: server, HTTP: &http.Client{Timeout: 2 * patience}}
}

// await waits until a server of the zoo answers again.
func (d *daemon) await(server string) {
	d.t.Helper()
	c := d.caller(mcptest.Surface{Path: "/mcp", Modern: true}, server)
	eventually(d.t, server+" answers", func() error {
		if o := c.Call("echo", `{"well":1}`, `"well":1`); o.What != "ok" {
			return fmt.Errorf("%s", o.What)
		}
		return nil
	})
}

// keepCalling calls healthy servers on all surfaces until it is stopped. Every call must succeed.
func (d *daemon) keepCalling(servers ...string) (stop func()) {
	quit := make(chan struct{})
	var calling sync.WaitGroup
	for _, server := range servers {
		for _, s := range mcptest.AllSurfaces() {
			calling.Go(func() {
				c := d.caller(s, server)
				defer c.Close()
				pace := time.NewTicker(10 * time.Millisecond)
				defer pace.Stop()
				for n := 0; ; n++ {
					if o := c.Call("echo", fmt.Sprintf(`{"n":%d}`, n), fmt.Sprintf(`{"n":%d}`, n)); o.What != "ok" {
						d.t.Errorf("the healthy server %s on %v: %s after %v", server, s, o.What, o.Took)
						return
					}
					select {
					case <-quit:
						return
					case <-pace.C:
					}
				}
			})
		}
	}
	return func() { close(quit); calling.Wait() }
}

// memory returns a field of the daemon's /proc status, in MiB.
func (d *daemon) memory(field string) int {
	d.t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.cmd.Process.Pid))
	if err != nil {
		d.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(raw), field)
	kb, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		d.t.Fatal(err)
	}
	return kb >> 10
}

// marked returns the processes with the mark.
func marked() []string { return processesWith(fmt.Sprintf("%s=%d", childMark, os.Getpid())) }

// processesWith returns the processes that have this environment variable.
func processesWith(variable string) (found []string) {
	all, _ := filepath.Glob("/proc/[0-9]*/environ") // the pattern is valid
	for _, path := range all {
		raw, err := os.ReadFile(path)
		if err == nil && bytes.Contains(raw, []byte(variable+"\x00")) {
			name, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "comm")) // the process may have ended
			found = append(found, path+" "+strings.TrimSpace(string(name)))
		}
	}
	return found
}

// zombies returns the children of a process that have ended and that it has not waited for.
func zombies(parent int) (found []string) {
	all, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is valid
	for _, path := range all {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue // the process has ended
		}
		_, rest, _ := strings.Cut(string(raw), ") ")
		if f := strings.Fields(rest); len(f) > 1 && f[0] == "Z" && f[1] == strconv.Itoa(parent) {
			found = append(found, path)
		}
	}
	return found
}
