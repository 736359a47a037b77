//go:build unix

package upstream

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"mcpproxy/internal/problem"
	"mcpproxy/internal/testutil/mcptest"
	"mcpproxy/internal/upstream/process"
)

// TestHostileServers calls every misbehaving tool of the test servers, and a normal tool after each of them. Meanwhile
// a healthy server answers all calls.
func TestHostileServers(t *testing.T) {
	const want = "" // a result
	type mode struct {
		tool, args string
		code       problem.Code
	}
	both := []mode{
		{"crash", "{}", problem.UpstreamError},
		{"hang", "{}", problem.Timeout},
		{"garbage", "{}", want},
		{"duplicate", "{}", want},
		{"half", "{}", problem.Timeout},
		{"drip", `{"ms":1}`, want},
		{"deep", `{"n":100000}`, problem.UpstreamError},
		{"drip", `{"ms":100}`, problem.Timeout},
		{"storm", `{"n":10000}`, want},
		{"huge", `{"bytes":3000000}`, problem.UpstreamError},
		{"endless", `{}`, problem.UpstreamError},
	}
	stdio := append([]mode{
		{"wrong_id", "{}", problem.Timeout},
		{"traced", "{}", want},
		{"stderr", `{"bytes":50000000}`, want},
		{"no_input", "{}", want},
	}, both...)
	overHTTP := append([]mode{
		{"wrong_id", "{}", problem.UpstreamError},
		{"zip", "{}", problem.UpstreamError},
	}, both...)
	for name, modes := range map[string][]mode{"stdio": stdio, "json": overHTTP, "events": overHTTP} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bad := stdioSpec(t, "bad", "zoo")
			if name != "stdio" {
				bad = httpSpec(t, "bad", mcptest.New(mcptest.Options{Events: name == "events"}, mcptest.SampleTools()...))
			}
			f := newFixture(t, func(o *Options) { o.MaxMessage = 2 << 20 })
			f.ApplySpecs([]Spec{bad, stdioSpec(t, "good", "zoo")})
			f.untilReady(t, "bad", 0)
			f.untilReady(t, "good", 0)
			stop := keepCalling(f, "good")
			defer stop()
			for _, m := range modes {
				limit := patience
				if m.code == problem.Timeout {
					limit = 100 * time.Millisecond
				}
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				start := time.Now()
				_, err := f.Call(ctx, "bad", Call{Tool: m.tool, Arguments: json.RawMessage(m.args)})
				took := time.Since(start)
				cancel()
				if code(err) != m.code {
					t.Errorf("%s %s: error %v, want code %q", m.tool, m.args, err, m.code)
				}
				if took > limit+patience { // 100 ms on a quiet machine
					t.Errorf("%s %s took %v", m.tool, m.args, took)
				}
				// The answers to these calls may end in an incomplete line, and the calls may end with the connection,
				// until the server works again. The time for that depends on the machine.
				broken := m.tool == "endless" || m.tool == "half" || m.tool == "drip"
				for wait := 300 * time.Millisecond; broken && wait < patience; wait *= 2 {
					ctx, cancel := context.WithTimeout(t.Context(), wait)
					_, err := f.Call(ctx, "bad", Call{Tool: "echo"})
					cancel()
					broken = err != nil
				}
				f.must("bad", "echo", "{}")
			}
		})
	}
}

// keepCalling calls a healthy server until it is stopped. Each call must succeed.
func keepCalling(f *fixture, server string) (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-quit:
				return
			default:
			}
			if _, err := f.call(server, "slow", `{"ms":1}`); err != nil {
				f.t.Errorf("the healthy server: %v", err)
				return
			}
		}
	}()
	return func() { close(quit); <-done }
}

func TestKilledServerRestarts(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.ApplySpecs([]Spec{stdioSpec(t, "a", "zoo"), stdioSpec(t, "b", "zoo")})
	a, b := f.pidOf("a"), f.pidOf("b")
	start := time.Now()
	syscall.Kill(a, syscall.SIGKILL)
	f.untilReady(t, "a", 1)
	if took := time.Since(start); took > patience {
		t.Errorf("it took %v", took)
	}
	if got := f.pidOf("a"); got == a {
		t.Error("the process was not replaced")
	}
	if s, _ := f.State("a"); !strings.Contains(s.LastError, "killed") || s.PID == 0 {
		t.Errorf("state %+v", s)
	}
	if f.pidOf("b") != b {
		t.Error("another server was restarted")
	}
}

func TestCrashesDoNotLoop(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.ApplySpecs([]Spec{stdioSpec(t, "a", "zoo")})
	for range 2 {
		_, err := f.call("a", "crash", "{}")
		p := wantCode(t, err, problem.UpstreamError)
		if !strings.Contains(p.Message, "exit status 3") || !strings.Contains(p.Hint, "may have been carried out") {
			t.Errorf("problem %v, %v", p, p.Hint)
		}
	}
}

// TestNoOrphans: all processes that a server has started end with it.
func TestNoOrphans(t *testing.T) {
	t.Parallel()
	scripts := map[string]string{
		"children": `sleep 1000 & sleep 1000 & echo $! > %s; exec "$0"`,
		"deaf":     `trap '' TERM; sleep 1000 & echo $! > %s; "$0"`,
	}
	for name, script := range scripts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			file := filepath.Join(t.TempDir(), "pid")
			spec := stdioSpec(t, "s", "stubborn")
			spec.Args = []string{"-c", fmt.Sprintf(script, file), spec.Command}
			spec.Command = "sh"
			f.ApplySpecs([]Spec{spec})
			server := f.pidOf("s")
			child := readPID(t, file)
			if !alive(child) || !alive(server) {
				t.Fatal("the processes are not running")
			}
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			if err := f.Close(ctx); err != context.DeadlineExceeded {
				t.Errorf("close: %v", err)
			}
			untilDead(t, server, child)
		})
	}
}

func readPID(t *testing.T, file string) int {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// untilDead waits for the end of processes that are not children of this process.
func untilDead(t *testing.T, pids ...int) {
	t.Helper()
	limit := time.Now().Add(patience)
	for _, pid := range pids {
		for running(pid) {
			if time.Now().After(limit) {
				t.Fatalf("process %d is alive", pid)
			}
			runtime.Gosched()
		}
	}
}

// running reports whether pid is a process and not a zombie. Process 1 reaps a process without a parent.
func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return runtime.GOOS != "linux" && alive(pid)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}

func TestStopWithoutGraceOnClose(t *testing.T) {
	t.Parallel()
	took := time.Hour
	for try := 0; try < 5 && took > process.TermGrace; try++ { // retry, because a busy machine can be slow
		f := newFixture(t)
		f.ApplySpecs([]Spec{stdioSpec(t, "s", "stubborn")})
		pid := f.pidOf("s")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		start := time.Now()
		if err := f.Close(ctx); err != context.Canceled {
			t.Errorf("close: %v", err)
		}
		took = time.Since(start)
		if alive(pid) {
			t.Error("it is alive")
		}
	}
	if took > process.TermGrace {
		t.Errorf("it took %v", took)
	}
}

// daemonVar makes the test binary run a Set until it is killed.
const daemonVar = "UPSTREAM_TEST_DAEMON"

func daemonChild() {
	if os.Getenv(daemonVar) == "" {
		return
	}
	w := newWatcher()
	set := NewSet(Options{Observer: w}, noClients)
	command, err := os.Executable()
	if err != nil {
		os.Exit(1)
	}
	set.ApplySpecs([]Spec{{Name: "s", Transport: Stdio, Command: command, Env: map[string]string{"MCPTEST_SERVER": "stubborn"}}})
	for {
		w.mu.Lock()
		changed, pid := w.changed, w.last("s").PID
		w.mu.Unlock()
		if pid != 0 {
			fmt.Println(pid)
			select {}
		}
		<-changed
	}
}

// TestServersEndWithMCPProxy: when MCPProxy is killed, even a server that ignores SIGTERM and the end of its input
// ends. Only Linux supports this.
func TestServersEndWithMCPProxy(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs Pdeathsig")
	}
	t.Parallel()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), daemonVar+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	cmd.Process.Kill()
	cmd.Wait()
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	untilDead(t, pid)
}

func TestServersGetNoSecretsOfOurs(t *testing.T) {
	t.Setenv("UPSTREAM_TEST_SECRET", "s3cret")
	t.Setenv("LC_TEST", "yes")
	f := newFixture(t)
	spec := stdioSpec(t, "s", "environ")
	spec.Env["GIVEN"] = "$(touch /tmp/never); `id`"
	f.ApplySpecs([]Spec{spec})
	got := f.must("s", "environ", "{}")
	if strings.Contains(got, "s3cret") || !strings.Contains(got, `"LC_TEST=yes"`) || !strings.Contains(got, "\"GIVEN=$(touch /tmp/never); `id`\"") {
		t.Errorf("environment %s", got)
	}
}

// TestNoShell: arguments reach the program unchanged, without a shell.
func TestNoShell(t *testing.T) {
	t.Parallel()
	sentinel := filepath.Join(t.TempDir(), "sentinel")
	f := newFixture(t)
	var specs []Spec
	for i, arg := range []string{"; touch ", "$(touch %s)", "`touch %s`", "| touch %s", "&& touch %s", "\n touch %s", "'; touch %s; '", "\"; touch %s; \""} {
		spec := stdioSpec(t, "s"+strconv.Itoa(i), "zoo")
		spec.Args = []string{strings.ReplaceAll(arg, "%s", sentinel)}
		specs = append(specs, spec, Spec{Name: "c" + strconv.Itoa(i), Transport: Stdio, Command: spec.Args[0]})
	}
	f.ApplySpecs(specs)
	for i := range 8 {
		f.untilReady(t, "s"+strconv.Itoa(i), 0)
		f.until(t, "the failure", func() bool { return f.last("c"+strconv.Itoa(i)).Phase == Failed })
	}
	if _, err := os.Stat(sentinel); err == nil {
		t.Error("a shell has interpreted the arguments")
	}
}

// TestManyCallsOnOnePipe: each response reaches its own call.
func TestManyCallsOnOnePipe(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.ApplySpecs([]Spec{stdioSpec(t, "s", "zoo")})
	errs := make(chan error, 64)
	for w := range 64 {
		go func() {
			for i := range 50 {
				args := fmt.Sprintf(`{"w":%d,"i":%d,"pad":"%s"}`, w, i, strings.Repeat("x", i*w%5000))
				r, err := f.Call(t.Context(), "s", Call{Tool: "echo", Arguments: json.RawMessage(args)})
				if err == nil && !strings.Contains(string(r.Result), args) {
					err = fmt.Errorf("the answer to another call: %s", r.Result)
				}
				if err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for range 64 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// TestServerThatDoesNotRead: calls keep their deadlines even if nothing can be written.
func TestServerThatDoesNotRead(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	// The server answers the handshake with fixed text and then reads nothing.
	script := `read -r a; id=${a#*'"id":'}; echo '{"jsonrpc":"2.0","id":'${id%%,*}',"error":{"code":-32601,"message":"?"}}'; read -r a; id=${a#*'"id":'}; echo '{"jsonrpc":"2.0","id":'${id%%,*}',"result":{"protocolVersion":"2025-11-25","capabilities":{}}}'; read b; sleep 100`
	f.ApplySpecs([]Spec{{Name: "s", Transport: Stdio, Command: "sh", Args: []string{"-c", script}}})
	f.untilReady(t, "s", 0)
	args := json.RawMessage(`{"pad":"` + strings.Repeat("x", 100_000) + `"}`)
	for range 5 {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		start := time.Now()
		_, err := f.Call(ctx, "s", Call{Tool: "x", Arguments: args})
		cancel()
		wantCode(t, err, problem.Timeout)
		if took := time.Since(start); took > patience {
			t.Errorf("it took %v", took)
		}
	}
}

// TestForgedAnswerInNoise: a tool prints text to stdout, without a line end, that contains a forged response. Only the
// real response counts.
func TestForgedAnswerInNoise(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.ApplySpecs([]Spec{stdioSpec(t, "s", "forger")})
	if got := f.must("s", "forge", "{}"); got != `{"real":true}` {
		t.Errorf("result %s", got)
	}
	f.must("s", "echo", "{}")
	lines, _ := f.logTail("s", 10)
	if !strings.Contains(strings.Join(lines, "\n"), `[stdout] row 1: {"jsonrpc":"2.0","id":`) {
		t.Errorf("log %q", lines)
	}
}

// TestIDsCannotBeGuessed: IDs start at a random number in every Set and fit into a float64.
func TestIDsCannotBeGuessed(t *testing.T) {
	t.Parallel()
	seen := map[uint64]bool{}
	for range 100 {
		id := NewSet(Options{}, noClients).sharedState.ids.Add(1)
		if seen[id] || id < 1_000 || id > 1<<52 {
			t.Errorf("id %d", id)
		}
		seen[id] = true
	}
}

// TestTextBeforeAMessage: the first message is found after text without a line end.
func TestTextBeforeAMessage(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	spec := stdioSpec(t, "s", "zoo")
	spec.Args = []string{"-c", `printf 'Loading... {"jsonrpc" '; exec "$0"`, spec.Command}
	spec.Command = "sh"
	f.ApplySpecs([]Spec{spec})
	f.must("s", "echo", "{}")
	if lines, _ := f.logTail("s", 10); len(lines) != 3 || !strings.Contains(strings.Join(lines, "\n"), `[stdout] Loading... {"jsonrpc"`) {
		t.Errorf("log %q", lines)
	}
}

// TestTooLargeAnswersAreCancelled: if a server sends a response beyond the size limit, MCPProxy cancels the request,
// and other calls continue.
func TestTooLargeAnswersAreCancelled(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(o *Options) { o.MaxMessage = 1 << 20 })
	f.ApplySpecs([]Spec{stdioSpec(t, "s", "zoo")})
	f.untilReady(t, "s", 0)
	pid := f.pidOf("s")
	if _, err := f.Call(t.Context(), "s", Call{Tool: "endless", Arguments: json.RawMessage("{}")}); problem.From(err).Code != problem.UpstreamError {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); ; {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		_, err := f.Call(ctx, "s", Call{Tool: "echo", Arguments: json.RawMessage("{}")}) // the first answer ends the incomplete line
		cancel()
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the server does not answer: %v", err)
		}
	}
	if got := f.pidOf("s"); got != pid {
		t.Errorf("the server was restarted")
	}
}

// A server that does not respond to the end of its session does not delay anything.
func TestSlowSessionEndDelaysNothing(t *testing.T) {
	t.Parallel()
	asked, over := make(chan struct{}), make(chan struct{})
	s := mcptest.New(mcptest.Options{}, mcptest.SampleTools()...)
	h := mcptest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			close(asked)
			<-over
		}
		s.ServeHTTP(w, r)
	}))
	defer close(over)
	f := newFixture(t)
	f.ApplySpecs([]Spec{{Name: "s", Transport: HTTP, URL: h.URL}})
	f.must("s", "echo", "{}")
	done := f.find("s").availability.done
	f.ApplySpecs(nil)
	<-asked
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Error("Close still waits for the server")
	}
}
