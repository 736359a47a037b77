//go:build unix

package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/session"
)

func (b *bench) restartQuietly() error {
	return b.RestartQuietly(context.Background(), "s", func() error { return nil })
}

// TestAgentsRestartNobodysCalls: an agent that restarts a server as often as it
// can gets one restart, and no call of others fails.
func TestAgentsRestartNobodysCalls(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Apply([]Spec{stdioSpec(t, "zoo", "zoo")})
	f.untilReady(t, "zoo", 0)
	own := f.converse(t, "zoo") // a client with a process of its own
	ctx, cancel := context.WithCancel(t.Context())
	var (
		wg             sync.WaitGroup
		calls, refused atomic.Int64
	)
	for range 4 {
		wg.Go(func() {
			for ctx.Err() == nil {
				f.must("zoo", "echo", `{"text":"hi"}`)
				calls.Add(1)
			}
		})
		wg.Go(func() {
			for ctx.Err() == nil {
				switch err := f.RestartQuietly(ctx, "zoo", func() error { return nil }); {
				case code(err) == problem.Overloaded:
					refused.Add(1)
				case err != nil && !errors.Is(err, context.Canceled):
					t.Error(err)
				}
				_ = pause(ctx, time.Millisecond) // not to have the processor for itself
			}
		})
	}
	f.untilReady(t, "zoo", 1)
	for before := calls.Load(); calls.Load() < before+100; {
		_ = pause(ctx, time.Millisecond)
	}
	cancel()
	wg.Wait()
	s, _ := f.State("zoo")
	if s.Restarts != 1 || refused.Load() == 0 {
		t.Errorf("%d restarts, %d refused, %d calls", s.Restarts, refused.Load(), calls.Load())
	}
	params := json.RawMessage(`{"name":"echo","arguments":{"text":"hi"}}`)
	if _, err := f.Call(t.Context(), "zoo", Call{Tool: "echo", Passed: &Passed{Conversation: own,
		Request: session.Request{ID: json.RawMessage("1"), Method: mcp.CallTool, Params: params}}}); err != nil {
		t.Errorf("the client's own session: %v", err)
	}
}

// TestARestartWaitsForCallsInFlight: for a while, after which it is refused; who
// comes meanwhile waits, too.
func TestARestartWaitsForCallsInFlight(t *testing.T) {
	for name, long := range map[string]time.Duration{"short": time.Second, "long": time.Minute} {
		t.Run(name, func(t *testing.T) {
			supervise(t, nil, func(t *testing.T, b *bench) {
				l := b.link()
				call := func() chan error {
					done := make(chan error, 1)
					go func() {
						_, err := b.Call(t.Context(), "s", Call{Tool: "t0"})
						done <- err
					}()
					synctest.Wait()
					return done
				}
				l.set(func() { l.takes = long })
				inFlight := call()
				restarted := make(chan error, 1)
				start := time.Now()
				go func() { restarted <- b.restartQuietly() }()
				synctest.Wait()
				b.prepare(func(*fakeLink) {})
				l.set(func() { l.takes = 0 })
				later := call()
				if n := l.count(mcp.CallTool); n != 1 {
					t.Errorf("%d calls while it is to be restarted", n)
				}
				err := <-restarted
				if took := time.Since(start); took > min(long, quietTime)+quietLook {
					t.Errorf("it took %v", took)
				}
				if refused := long > quietTime; refused != (code(err) == problem.Overloaded) || refused == (err == nil) {
					t.Errorf("the restart: %v", err)
				}
				for _, c := range []chan error{inFlight, later} {
					if err := <-c; err != nil {
						t.Errorf("a call: %v", err)
					}
				}
				if s, _ := b.State("s"); s.Phase != Ready || (s.Restarts == 1) != (long < quietTime) {
					t.Errorf("state %+v", s)
				}
			})
		})
	}
}

// TestHowOftenAgentsRestart: not while the server is being started, and not a
// moment after it was; a person at any time.
func TestHowOftenAgentsRestart(t *testing.T) {
	supervise(t, nil, func(t *testing.T, b *bench) {
		refused := func(seconds int) {
			t.Helper()
			p := wantCode(t, b.restartQuietly(), problem.Overloaded)
			if p.Detail("retry_after") != seconds {
				t.Errorf("problem %+v, want %d seconds", p, seconds)
			}
		}
		good := func() {
			t.Helper()
			before := b.tries()
			if err := b.restartQuietly(); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			if b.tries() != before+1 {
				t.Errorf("%d starts", b.tries()-before)
			}
		}
		good()
		refused(10)
		sleep(restartPause - 1500*time.Millisecond)
		refused(2)
		sleep(1500 * time.Millisecond)
		good()
		b.Restart("s") // a person
		synctest.Wait()
		if b.tries() != 4 {
			t.Errorf("%d starts", b.tries())
		}
		sleep(restartPause - time.Second)
		refused(1)
		b.prepare(func(l *fakeLink) { l.hang = true })
		b.Restart("s")
		sleep(restartPause)
		refused(10) // it is being started
		if _, err := b.Call(t.Context(), "x", Call{}); err == nil {
			t.Error("an unknown server")
		}
		wantCode(t, b.RestartQuietly(t.Context(), "x", nil), problem.ServerUnavailable)
	})
}

// TestARestartThatCannotBeRecorded is none.
func TestARestartThatCannotBeRecorded(t *testing.T) {
	supervise(t, nil, func(t *testing.T, b *bench) {
		full := errors.New("full")
		if err := b.RestartQuietly(t.Context(), "s", func() error { return full }); err != full {
			t.Error(err)
		}
		if _, err := b.Call(t.Context(), "s", Call{Tool: "t0"}); err != nil || b.tries() != 1 {
			t.Errorf("%v, %d starts", err, b.tries())
		}
	})
}
