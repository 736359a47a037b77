//go:build unix

package upstream

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpproxy/internal/mcp/transport"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/testutil/cputime"
	"mcpproxy/internal/testutil/mcptest"
	"mcpproxy/internal/testutil/volume"
	"mcpproxy/internal/upstream/process"
)

// burnVar is how long a server of these tests computes before it answers.
const burnVar = "STARTUP_BURN"

// startedVar names the file to which a server of these tests appends a byte on each start.
const startedVar = "STARTUP_STARTED"

// slowStarter is a server that computes before it answers.
func slowStarter() *mcptest.Server {
	if file := os.Getenv(startedVar); file != "" {
		if f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
			f.WriteString("+")
			f.Close()
		}
	}
	burn, _ := time.ParseDuration(os.Getenv(burnVar))
	for end := cputime.Process() + burn; cputime.Process() < end; {
	}
	return mcptest.New(mcptest.Options{}, mcptest.SampleTools()...)
}

// inShell starts the server of spec at the end of a shell script.
func inShell(spec Spec, script string) Spec {
	spec.Args = []string{"-c", script + `; exec "$0"`, spec.Command}
	spec.Command = "/bin/sh"
	return spec
}

func needsProc(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("process activity is visible only on Linux")
	}
}

func TestAServerThatWorksIsNotKilledOnItsWay(t *testing.T) {
	if testing.Short() {
		t.Skip("servers compute for seconds")
	}
	t.Parallel()
	needsProc(t)
	busy := stdioSpec(t, "s", "slow starter")
	busy.Env[burnVar] = "2s"
	for name, spec := range map[string]Spec{
		"it computes":         busy,
		"its child computes":  inShell(stdioSpec(t, "s", "zoo"), `timeout 2.5 sh -c "while :; do :; done"`),
		"it writes to stderr": inShell(stdioSpec(t, "s", "zoo"), `for i in 1 2 3 4 5 6 7 8 9 10; do echo step $i >&2; sleep 0.3; done`),
		"a grandchild computes": inShell(stdioSpec(t, "s", "zoo"),
			`sh -c 'timeout 2.5 sh -c "while :; do :; done"; true'`),
	} {
		t.Run(name, func(t *testing.T) {
			if name == "its child computes" && !volume.IsFull() {
				t.Skip("the grandchild test covers this")
			}
			t.Parallel()
			f := newFixture(t)
			spec.ConnectTimeout = 1500 * time.Millisecond
			f.ApplySpecs([]Spec{spec})
			f.until(t, "it is ready, or has failed", func() bool {
				return slices.Contains([]Phase{Ready, Failed}, f.last("s").Phase)
			})
			if s, _ := f.State("s"); s.Phase != Ready {
				t.Errorf("it was killed while it was working: %+v", s.Failure)
			}
		})
	}
}

func TestAQuietStartFailsAfterTheConnectTimeout(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	spec := inShell(stdioSpec(t, "s", "zoo"), "sleep 60")
	spec.ConnectTimeout = 300 * time.Millisecond
	start := time.Now()
	f.ApplySpecs([]Spec{spec})
	f.until(t, "it has failed", func() bool { return f.last("s").Phase == Failed })
	s, _ := f.State("s")
	if took := time.Since(start); took < spec.ConnectTimeout || took > patience/2 || s.LastError != "it did not answer within 300ms" || s.Failure.Code != "TIMEOUT" {
		t.Errorf("after %v: %+v", took, s)
	}
}

func TestManySlowStartersComeUpInTurn(t *testing.T) {
	if testing.Short() {
		t.Skip("18 servers compute")
	}
	t.Parallel()
	const count, room = 18, 3
	f := newFixture(t)
	f.sharedState.starts = process.NewStartQueueWithCapacity(room)
	started := filepath.Join(t.TempDir(), "started")
	var specs []Spec
	for i := range count {
		spec := stdioSpec(t, "s"+strconv.Itoa(i), "slow starter")
		spec.Env[burnVar], spec.Env[startedVar] = "50ms", started
		specs = append(specs, spec)
	}
	f.ApplySpecs(specs)
	f.until(t, "all are ready", func() bool {
		ready := 0
		for name := range f.states {
			if f.last(name).Phase == Ready {
				ready++
			}
		}
		// A server releases its slot only after its state is ready.
		if b, _ := os.ReadFile(started); len(b)-ready > room {
			t.Errorf("%d were started when %d were ready", len(b), ready)
		}
		return ready == count
	})
	if b, _ := os.ReadFile(started); len(b) != count {
		t.Errorf("%d starts, want %d", len(b), count)
	}
}

// TestCalledServerStartsFirst: when an idle server is called, its start does not wait for all others, and the caller
// sees its progress.
func TestCalledServerStartsFirst(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.sharedState.starts = process.NewStartQueueWithCapacity(1)
	other := f.sharedState.starts.Join(process.PackageRunner{}, false) // uses the whole capacity
	defer other.Release(false)
	var specs []Spec
	for _, name := range []string{"a", "b", "c", "lazy"} {
		specs = append(specs, stdioSpec(t, name, "zoo"))
	}
	specs[3].Lazy = true
	f.ApplySpecs(specs)
	f.until(t, "three wait", func() bool {
		return f.sharedState.starts.WaitingCount() == 3
	})
	said := map[string]bool{}
	for _, name := range []string{"a", "b", "c"} {
		p := f.StartProgress(name)
		if p.Step != Queued {
			t.Errorf("%s: %+v", name, p)
		}
		said[p.String()] = true
	}
	if !said["waits to start, and is the next server"] || !said["waits to start, servers before it: 1"] || !said["waits to start, servers before it: 2"] {
		t.Errorf("progress: %v", said)
	}
	for _, name := range []string{"c", "lazy"} {
		if _, err := f.call(name, "echo", `{"text":"x"}`); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"a", "b"} {
		if p := f.StartProgress(name); p.Step != Queued {
			t.Errorf("%s has started although no slot was free: %+v", name, p)
		}
	}
	other.Release(false)
	f.untilReady(t, "a", 0)
	f.untilReady(t, "b", 0)
}

// TestHangingServerReleasesItsSlot: a server that neither computes nor responds does not delay the others until its
// timeout.
func TestHangingServerReleasesItsSlot(t *testing.T) {
	t.Parallel()
	needsProc(t)
	f := newFixture(t)
	f.sharedState.starts = process.NewStartQueueWithCapacity(1)
	hangs := inShell(stdioSpec(t, "hangs", "zoo"), "sleep 60")
	f.ApplySpecs([]Spec{hangs})
	f.until(t, "it starts", func() bool { return f.StartProgress("hangs").Step == Starting })
	f.ApplySpecs([]Spec{hangs, stdioSpec(t, "other", "zoo")})
	f.untilReady(t, "other", 0)
	if s, _ := f.State("hangs"); s.Phase != Connecting {
		t.Errorf("it is %s", s.Phase)
	}
}

func TestASlowFailureIsNotRepeatedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{watcher: newWatcher()}
		b.Set = NewSet(Options{Observer: b.watcher}, noClients)
		b.Set.sharedState.starts = nil
		sv := newServer(Spec{Name: "s", Transport: Stdio}, &b.Set.sharedState, noClients)
		sv.open = func() (transport.Link, error) {
			b.mu.Lock()
			b.opens = append(b.opens, time.Now())
			b.mu.Unlock()
			time.Sleep(30 * time.Second)
			return nil, errors.New("no")
		}
		b.sv = sv
		ctx, cancel := context.WithCancel(t.Context())
		sv.cancel = cancel
		b.Set.servers.Store(&map[string]*Server{"s": sv})
		b.Set.wg.Go(func() { sv.supervise(ctx, nil) })
		sleep(100 * time.Second)
		if b.tries() != 2 || b.lastPause() < time.Minute {
			t.Errorf("%d tries, the last one %v after the one before", b.tries(), b.lastPause())
		}
		// Continuous calls do not cause more attempts either.
		before, start := b.tries(), time.Now()
		for time.Since(start) < 10*time.Minute {
			_, err := b.Call(t.Context(), "s", Call{Tool: "t"})
			wantCode(t, err, problem.ServerUnavailable)
		}
		if n := b.tries() - before; n > 16 {
			t.Errorf("%d tries of 30 s in ten minutes", n)
		}
		cancel()
		if err := b.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// fakeNpx writes an npx that computes for a while, then creates the file installed and starts the server. On SIGTERM it
// rolls back for a while and creates the file undone.
func fakeNpx(t *testing.T, spec Spec) (_ Spec, installed, undone string) {
	dir := t.TempDir()
	installed, undone = filepath.Join(dir, "installed"), filepath.Join(dir, "undone")
	script := fmt.Sprintf(`#!/bin/sh
trap 'end=$(($(date +%%s%%N) + 1000000000)); while [ $(date +%%s%%N) -lt $end ]; do :; done; echo > %[1]s; exit 1' TERM
echo > %[2]s
end=$(($(date +%%s%%N) + ${NPX_TIME}))
while ! [ -e %[3]s ] && [ $(date +%%s%%N) -lt $end ]; do :; done
echo > %[3]s
exec %[4]s
`, undone, filepath.Join(dir, "began"), installed, spec.Command)
	if err := mcptest.WriteProgram(filepath.Join(dir, "npx"), []byte(script)); err != nil {
		t.Fatal(err)
	}
	spec.Command, spec.Args = filepath.Join(dir, "npx"), []string{"-y", "pack"}
	return spec, installed, undone
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// untilExists waits for a file that a process creates.
func untilExists(t *testing.T, file string) {
	t.Helper()
	for limit := time.Now().Add(patience); !exists(file); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatal("missing file: " + file)
		}
	}
}

// TestStopLetsPackageManagerFinish: a stop waits for a package manager. If it was killed, it would leave a broken
// package for every user of its cache.
func TestStopLetsPackageManagerFinish(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for four seconds")
	}
	t.Parallel()
	needsProc(t)
	spec, installed, undone := fakeNpx(t, stdioSpec(t, "s", "zoo"))
	spec.Env["NPX_TIME"] = "4000000000" // longer than the grace period of other processes
	f := newFixture(t)
	f.ApplySpecs([]Spec{spec})
	untilExists(t, filepath.Join(filepath.Dir(installed), "began"))
	if p := f.StartProgress("s"); p.Step != Installing || p.Runner != "npx" || !strings.HasPrefix(p.String(), "installing with npx, ") {
		t.Errorf("progress %+v", p)
	}
	f.ApplySpecs(nil) // remove the server
	if err := f.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if !exists(installed) || exists(undone) {
		t.Error("the installation was not finished")
	}
}

// TestHurriedStopLetsPackageManagerRollBack: a package manager can roll back even if its shell ends first.
func TestHurriedStopLetsPackageManagerRollBack(t *testing.T) {
	t.Parallel()
	needsProc(t)
	for _, shell := range []bool{false, true} {
		t.Run(fmt.Sprintf("shell=%t", shell), func(t *testing.T) {
			t.Parallel()
			spec, installed, undone := fakeNpx(t, stdioSpec(t, "s", "zoo"))
			spec.Env["NPX_TIME"] = "60000000000"
			if shell {
				spec.Command, spec.Args = "/bin/sh", []string{"-c", "cd /; " + spec.Command + " -y pack; true"}
			}
			f := newFixture(t)
			f.ApplySpecs([]Spec{spec})
			untilExists(t, filepath.Join(filepath.Dir(installed), "began"))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() {
				for f.sharedState.starts.FinishingInstallCount() == 0 && t.Context().Err() == nil {
					time.Sleep(time.Millisecond)
				}
				cancel()
			}()
			start := time.Now()
			if err := f.Close(ctx); err != nil {
				t.Errorf("a rollback counts as a clean stop, but got %v", err)
			}
			if !exists(undone) || exists(installed) || time.Since(start) > 50*time.Second {
				t.Errorf("after %v: rolled back = %t", time.Since(start), exists(undone))
			}
		})
	}
}

// TestClientSessionsDoNotInstall: a client's session does not start an installation, because its process would be
// killed when the client stops waiting.
func TestClientSessionsDoNotInstall(t *testing.T) {
	t.Parallel()
	needsProc(t)
	spec, installed, undone := fakeNpx(t, stdioSpec(t, "s", "zoo"))
	spec.Env["NPX_TIME"] = "2000000000"
	spec.ConnectTimeout = 1500 * time.Millisecond
	f := newFixture(t)
	f.ApplySpecs([]Spec{spec})
	sv, err := f.ServerForRequest(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	_, err = openOwn(t.Context(), sv)
	p := wantCode(t, err, problem.ServerUnavailable)
	if !strings.Contains(p.Message, "(connecting): installing with npx, ") {
		t.Errorf("problem %v", p)
	}
	f.untilReady(t, "s", 0)
	if !exists(installed) || exists(undone) {
		t.Error("an installation was killed")
	}
	f.Close(t.Context())

	// After the installation, clients get processes of their own, even more than the queue has slots.
	spec.ConnectTimeout = 10 * time.Second
	f = newFixture(t)
	f.sharedState.starts = process.NewStartQueueWithCapacity(1)
	f.ApplySpecs([]Spec{spec})
	f.untilReady(t, "s", 0)
	if sv, err = f.ServerForRequest(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	var clients sync.WaitGroup
	for range 6 {
		clients.Go(func() {
			l, err := openOwn(t.Context(), sv)
			if err != nil {
				t.Errorf("a client: %v", err)
				return
			}
			t.Cleanup(func() { l.Stop(sv.StopNowSignal()) }) // before the fixture's
		})
	}
	clients.Wait()
}
