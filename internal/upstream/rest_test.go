//go:build unix

package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/transport"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/testutil/mcptest"
)

const idleAfter = 5 * time.Minute

// phase returns the phase of the server's state.
func (b *bench) phase() Phase {
	s, _ := b.State("s")
	return s.Phase
}

// superviseAs is supervise for a server with the idle settings of rest.
func superviseAs(t *testing.T, rest Spec, test func(t *testing.T, b *bench)) {
	superviseSpec(t, Spec{Name: "s", Transport: Stdio, ConnectTimeout: 20 * time.Second,
		IdleTimeout: rest.IdleTimeout, Lazy: rest.Lazy, Review: rest.Review}, nil, test)
}

func TestUnusedServerIsStoppedAndStartedByACall(t *testing.T) {
	superviseAs(t, Spec{IdleTimeout: idleAfter}, func(t *testing.T, b *bench) {
		sleep(idleAfter - time.Second)
		if b.phase() != Ready {
			t.Fatalf("phase %s before the idle time", b.phase())
		}
		first := b.link()
		sleep(time.Second)
		if b.phase() != Idle || first.Cause() != transport.ErrStopped {
			t.Fatalf("it is %s, its link ended by %v", b.phase(), first.Cause())
		}
		sleep(24 * time.Hour)
		if b.tries() != 1 || len(b.lastTools("s")) != 1 {
			t.Fatalf("%d starts while no one needs it, tools %v", b.tries(), b.lastTools("s"))
		}
		start := time.Now()
		if _, err := b.Call(t.Context(), "s", Call{Tool: "t0"}); err != nil || time.Since(start) != 0 {
			t.Fatalf("the call took %v: %v", time.Since(start), err)
		}
		s, _ := b.State("s")
		if s.Phase != Ready || s.Restarts != 0 || s.LastError != "" {
			t.Errorf("state %+v", s)
		}
		sleep(idleAfter - time.Second)
		if _, err := b.Call(t.Context(), "s", Call{Tool: "t0"}); err != nil {
			t.Fatal(err)
		}
		sleep(idleAfter - time.Second) // the idle time starts at the last use
		if b.phase() != Ready {
			t.Errorf("phase %s before the idle time", b.phase())
		}
		sleep(time.Second)
		if b.phase() != Idle || b.tries() != 2 {
			t.Errorf("it is %s after %d starts", b.phase(), b.tries())
		}
	})
}

func TestServerAtWorkIsNotIdle(t *testing.T) {
	calls := map[string]func(ctx context.Context, b *bench){
		"a call": func(ctx context.Context, b *bench) { _, _ = b.Call(ctx, "s", Call{Tool: "t0"}) },
		"a request": func(ctx context.Context, b *bench) {
			b.link().Do(ctx, &session.Request{ID: json.RawMessage("1"), Method: "x/y"})
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			superviseAs(t, Spec{IdleTimeout: idleAfter}, func(t *testing.T, b *bench) {
				l := b.link()
				l.set(func() { l.hang = true })
				ctx, cancel := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				wg.Go(func() {
					r := &session.Request{Method: mcp.ListTools}
					b.sv.BeginUse(r) // like a caller of SendWhenReady
					defer b.sv.EndUse(r)
					call(ctx, b)
				})
				synctest.Wait()
				l.set(func() { l.hang = false }) // for other calls
				sleep(3 * time.Hour)
				if b.phase() != Ready {
					t.Errorf("phase %s while a request is in flight", b.phase())
				}
				cancel()
				wg.Wait()
				sleep(idleAfter)
				if b.phase() != Idle {
					t.Errorf("phase %s after the request", b.phase())
				}
			})
		})
	}
}

func TestManyCallsStartAnIdleServerOnce(t *testing.T) {
	superviseAs(t, Spec{IdleTimeout: idleAfter}, func(t *testing.T, b *bench) {
		for round := range 20 {
			sleep(idleAfter)
			var wg sync.WaitGroup
			for range 64 {
				wg.Go(func() {
					if _, err := b.Call(t.Context(), "s", Call{Tool: "t0", Listed: json.RawMessage(`{"name":"t0"}`)}); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if b.tries() != round+2 {
				t.Fatalf("%d starts, want %d", b.tries(), round+2)
			}
		}
	})
}

// Calls that arrive while the server is being stopped are executed.
func TestCallsAtTheLastMoment(t *testing.T) {
	superviseAs(t, Spec{IdleTimeout: time.Second}, func(t *testing.T, b *bench) {
		for range 500 {
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() {
					time.Sleep(time.Second)
					if _, err := b.Call(t.Context(), "s", Call{Tool: "t0"}); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
		}
		if b.tries() > 501 {
			t.Errorf("%d starts", b.tries())
		}
	})
}

func TestToolThatChangedWhileIdleIsNotCalled(t *testing.T) {
	superviseAs(t, Spec{IdleTimeout: idleAfter}, func(t *testing.T, b *bench) {
		sleep(idleAfter)
		b.prepare(func(l *fakeLink) { l.version = 7 })
		_, err := b.Call(t.Context(), "s", Call{Tool: "t0", Listed: json.RawMessage(`{"name":"t0"}`)})
		if p := wantCode(t, err, problem.ServerUnavailable); p.Detail("changed") != true {
			t.Errorf("problem %v", p)
		}
		if n := b.link().count(mcp.CallTool); n != 0 {
			t.Errorf("%d calls were sent", n)
		}
		if got := b.lastTools("s"); got[0] != "t7" {
			t.Errorf("tools %v: the new list was not published", got)
		}
	})
}

func TestCallIsCheckedAgainAfterItHasWaited(t *testing.T) {
	superviseAs(t, Spec{IdleTimeout: idleAfter}, func(t *testing.T, b *bench) {
		locked := errors.New("locked meanwhile")
		checks := 0
		call := func() error {
			_, err := b.Call(t.Context(), "s", Call{Tool: "t0", Check: func() error { checks++; return locked }})
			return err
		}
		if err := call(); err != nil || checks != 0 {
			t.Fatalf("%d checks of a call that did not wait: %v", checks, err)
		}
		sleep(idleAfter)
		if err := call(); err != locked || checks != 1 || b.link().count(mcp.CallTool) != 0 {
			t.Errorf("%d checks, %d calls: %v", checks, b.link().count(mcp.CallTool), err)
		}
	})
}

func TestLazyServerIsStartedByItsFirstUse(t *testing.T) {
	uses := map[string]func(b *bench) error{
		"call":    func(b *bench) error { _, err := b.Call(context.Background(), "s", Call{Tool: "t0"}); return err },
		"restart": func(b *bench) error { defer synctest.Wait(); return b.Restart("s") },
		"refresh": func(b *bench) error {
			defer synctest.Wait()
			b.RefreshTools(context.Background(), "s", time.Now().Add(-time.Second))
			return nil
		},
		"setting": func(b *bench) error {
			spec := b.sv.Spec
			spec.Lazy = false
			b.ApplySpecs([]Spec{spec})
			synctest.Wait()
			return nil
		},
	}
	for name, use := range uses {
		t.Run(name, func(t *testing.T) {
			superviseAs(t, Spec{Lazy: true}, func(t *testing.T, b *bench) {
				sleep(24 * time.Hour)
				if b.tries() != 0 || b.phase() != Idle {
					t.Fatalf("%d starts, it is %s", b.tries(), b.phase())
				}
				if err := use(b); err != nil || b.tries() != 1 || b.phase() != Ready {
					t.Fatalf("%d starts, it is %s: %v", b.tries(), b.phase(), err)
				}
				sleep(24 * time.Hour) // without idle_timeout it keeps running
				if b.phase() != Ready || b.tries() != 1 {
					t.Errorf("%d starts, it is %s", b.tries(), b.phase())
				}
			})
		})
	}
}

func TestServerInReviewRuns(t *testing.T) {
	superviseAs(t, Spec{Lazy: true, IdleTimeout: idleAfter, Review: true}, func(t *testing.T, b *bench) {
		sleep(time.Hour)
		if b.phase() != Ready {
			t.Fatalf("it is %s", b.phase())
		}
		spec := b.sv.Spec
		spec.Review = false
		b.sv.reviewed = true
		b.ApplySpecs([]Spec{spec}) // the review has ended
		sleep(idleAfter)
		if b.phase() != Idle || b.tries() != 1 {
			t.Errorf("it is %s after %d starts", b.phase(), b.tries())
		}
	})
}

func TestSettingsOfIdlenessNeedNoRestart(t *testing.T) {
	superviseAs(t, Spec{}, func(t *testing.T, b *bench) {
		set := func(idle time.Duration) {
			spec := b.sv.Spec
			spec.IdleTimeout = idle
			b.ApplySpecs([]Spec{spec})
			synctest.Wait()
		}
		sleep(time.Hour)
		set(2 * time.Hour)
		sleep(time.Hour - time.Second)
		if b.phase() != Ready {
			t.Errorf("phase %s before the idle time", b.phase())
		}
		sleep(time.Second)
		if b.phase() != Idle || b.tries() != 1 {
			t.Fatalf("it is %s after %d starts", b.phase(), b.tries())
		}
		set(time.Hour)
		if b.phase() != Idle {
			t.Errorf("another idle_timeout makes it %s", b.phase())
		}
		set(0)
		if b.phase() != Ready || b.tries() != 2 {
			t.Errorf("without idle_timeout it is %s after %d starts", b.phase(), b.tries())
		}
	})
}

func TestIdleServerThatDoesNotStart(t *testing.T) {
	superviseAs(t, Spec{IdleTimeout: idleAfter}, func(t *testing.T, b *bench) {
		sleep(idleAfter)
		b.setFail(problem.TrustedTextErrorf("no such program"))
		_, err := b.Call(t.Context(), "s", Call{Tool: "t0"})
		p := wantCode(t, err, problem.ServerUnavailable)
		if !strings.Contains(p.Message, "no such program") || b.phase() != Failed {
			t.Errorf("it is %s: %v", b.phase(), p)
		}
		b.setFail(nil)
		if _, err := b.Call(t.Context(), "s", Call{Tool: "t0"}); err != nil {
			t.Error(err)
		}
	})
}

func TestCallWaitsForAnIdleServerWithinItsOwnTime(t *testing.T) {
	superviseAs(t, Spec{IdleTimeout: idleAfter}, func(t *testing.T, b *bench) {
		sleep(idleAfter)
		b.prepare(func(l *fakeLink) { l.hang = true })
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		start := time.Now()
		_, err := b.Call(ctx, "s", Call{Tool: "t0"})
		if p := wantCode(t, err, problem.ServerUnavailable); time.Since(start) != 3*time.Second {
			t.Errorf("it took %v: %v", time.Since(start), p)
		}
	})
}

// gone reports whether the process has ended.
func gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

func untilPhase(t testing.TB, f *fixture, server string, want Phase) {
	t.Helper()
	f.until(t, server+" is "+string(want), func() bool { return f.last(server).Phase == want })
}

func restingSpec(t testing.TB, idle time.Duration) Spec {
	spec := stdioSpec(t, "zoo", "zoo")
	spec.IdleTimeout = idle
	return spec
}

func TestIdleProcessEndsAndRestarts(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.ApplySpecs([]Spec{restingSpec(t, time.Second)})
	first := f.pidOf("zoo")
	untilPhase(t, f, "zoo", Idle)
	if s, _ := f.State("zoo"); !gone(first) || s.PID != 0 {
		t.Fatalf("process %d is still running: %+v", first, s)
	}
	pids := make(chan int, 64)
	var wg sync.WaitGroup
	for range cap(pids) {
		wg.Go(func() { pids <- f.pidOf("zoo") })
	}
	wg.Wait()
	second := <-pids
	for range cap(pids) - 1 {
		if pid := <-pids; pid != second || pid == first {
			t.Fatalf("the processes %d and %d, after %d", pid, second, first)
		}
	}
	untilPhase(t, f, "zoo", Idle)
	if !gone(second) {
		t.Error("the second process is still running")
	}
}

func TestProcessKilledWhileItWakes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	pipe := filepath.Join(t.TempDir(), "pids")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	spec := stdioSpec(t, "mute", "mute") // it never becomes ready
	spec.Args = []string{"-c", `echo $$ > ` + pipe + `; exec "$0"`, spec.Command}
	spec.Command, spec.Lazy, spec.ConnectTimeout = "sh", true, 20*time.Second
	f.ApplySpecs([]Spec{spec})
	failed := make(chan error, 1)
	go func() {
		_, err := f.call("mute", "pid", "{}")
		failed <- err
	}()
	for range 2 { // a server that exits on server/discover is started again
		if err := syscall.Kill(readPID(t, pipe), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	if p := wantCode(t, <-failed, problem.ServerUnavailable); p.Detail("last_error") == nil {
		t.Errorf("problem %v", p)
	}
}

func TestCallsOutliveProcessesThatAreKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("ten servers are killed")
	}
	t.Parallel()
	f := newFixture(t)
	f.ApplySpecs([]Spec{restingSpec(t, 20*time.Millisecond)})
	for range 10 {
		pid := f.pidOf("zoo")
		_ = syscall.Kill(pid, syscall.SIGKILL)                // it may have ended
		if _, err := f.call("zoo", "pid", "{}"); err != nil { // sent to the killed process
			wantCode(t, err, problem.UpstreamError)
		}
		f.pidOf("zoo")
		untilPhase(t, f, "zoo", Idle)
	}
}

// slowOffers takes longer to list its prompts than its idle timeout.
func slowOffers() *mcptest.Server {
	return mcptest.New(mcptest.Options{Other: func(string, *mcptest.Call) (json.RawMessage, error) {
		time.Sleep(300 * time.Millisecond)
		return json.RawMessage(`{"prompts":[{"name":"a"}]}`), nil
	}}, mcptest.SampleTools()...)
}

// TestServerIsNotStoppedWhileItLists: listing primitives counts as using the server.
func TestServerIsNotStoppedWhileItLists(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	spec := stdioSpec(t, "s", "slow offers")
	spec.IdleTimeout = 50 * time.Millisecond
	f.ApplySpecs([]Spec{spec})
	if all, err := f.ListPrimitives(t.Context(), "s", mcp.ListPrompts, "prompts"); err != nil || len(all) != 1 {
		t.Errorf("%s %v", all, err)
	}
}
