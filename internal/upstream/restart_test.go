//go:build unix

package upstream

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/problem"
)

func (b *bench) restartQuietly() error {
	return b.RestartWhenDrained(context.Background(), "s", func() error { return nil })
}

// TestRestartWaitsForCallsInFlight: a restart waits for calls in flight up to a limit, and is then refused. New calls
// wait during that time.
func TestRestartWaitsForCallsInFlight(t *testing.T) {
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
					t.Errorf("%d calls while a restart waits", n)
				}
				err := <-restarted
				if took := time.Since(start); took > min(long, drainTimeout)+drainPollInterval {
					t.Errorf("it took %v", took)
				}
				if refused := long > drainTimeout; refused != (code(err) == problem.Overloaded) || refused == (err == nil) {
					t.Errorf("the restart: %v", err)
				}
				for _, c := range []chan error{inFlight, later} {
					if err := <-c; err != nil {
						t.Errorf("a call: %v", err)
					}
				}
				if s, _ := b.State("s"); s.Phase != Ready || (s.Restarts == 1) != (long < drainTimeout) {
					t.Errorf("state %+v", s)
				}
			})
		})
	}
}

// TestAgentRestartRate: an agent cannot restart a server while it starts or shortly afterwards. A user always can.
func TestAgentRestartRate(t *testing.T) {
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
		sleep(minRestartInterval - 1500*time.Millisecond)
		refused(2)
		sleep(1500 * time.Millisecond)
		good()
		b.Restart("s") // a restart by a user
		synctest.Wait()
		if b.tries() != 4 {
			t.Errorf("%d starts", b.tries())
		}
		sleep(minRestartInterval - time.Second)
		refused(1)
		b.prepare(func(l *fakeLink) { l.hang = true })
		b.Restart("s")
		sleep(minRestartInterval)
		refused(10) // the server is starting
		if _, err := b.Call(t.Context(), "x", Call{}); err == nil {
			t.Error("an unknown server")
		}
		wantCode(t, b.RestartWhenDrained(t.Context(), "x", nil), problem.ServerUnavailable)
	})
}

// TestUnrecordedRestartIsRefused: if a restart cannot be recorded, it does not happen.
func TestUnrecordedRestartIsRefused(t *testing.T) {
	supervise(t, nil, func(t *testing.T, b *bench) {
		full := errors.New("full")
		if err := b.RestartWhenDrained(t.Context(), "s", func() error { return full }); err != full {
			t.Error(err)
		}
		if _, err := b.Call(t.Context(), "s", Call{Tool: "t0"}); err != nil || b.tries() != 1 {
			t.Errorf("%v, %d starts", err, b.tries())
		}
	})
}
