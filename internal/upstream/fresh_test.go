//go:build unix

package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/problem"
)

// judged calls the first tool of a server. The call was decided on the first list.
func (b *bench) judged(ctx context.Context) error {
	_, err := b.Call(ctx, "s", Call{Tool: "t0", Listed: json.RawMessage(`{"name":"t0"}`)})
	return err
}

// TestCallWaitsForAnAnnouncedList: after the server has announced a change, no call is sent that was decided on the old
// list, however long the new list takes.
func TestCallWaitsForAnAnnouncedList(t *testing.T) {
	for name, slow := range map[string]time.Duration{"slow": 8 * time.Second, "fast": 0} {
		for change, version := range map[string]int{"changed": 1, "the same": 0} {
			t.Run(name+" "+change, func(t *testing.T) {
				supervise(t, nil, func(t *testing.T, b *bench) {
					l := b.link()
					l.set(func() { l.version, l.slow = version, slow })
					b.sv.ReportReceiver().ToolsChanged()
					start := time.Now()
					err := b.judged(t.Context())
					if took := time.Since(start); took != slow {
						t.Errorf("it took %v, want the %v of the list", took, slow)
					}
					switch calls := l.count(mcp.CallTool); {
					case version == 0 && (err != nil || calls != 1):
						t.Errorf("error %v, %d calls", err, calls)
					case version == 1:
						if p := wantCode(t, err, problem.ServerUnavailable); p.Detail("changed") != true || calls != 0 {
							t.Errorf("problem %+v, %d calls", p, calls)
						}
					}
					// The second change comes within the pause between two lists.
					l.set(func() { l.version = 2 })
					b.sv.ReportReceiver().ToolsChanged()
					sent := l.count(mcp.CallTool)
					start = time.Now()
					wantCode(t, b.judged(t.Context()), problem.ServerUnavailable)
					if took := time.Since(start); took > slow+relistPause || slow == 0 && took > awaitedPause {
						t.Errorf("the second one took %v", took)
					}
					if n := l.count(mcp.CallTool) - sent; n != 0 {
						t.Errorf("%d calls were sent", n)
					}
				})
			})
		}
	}
}

// TestCallIsRefusedWithoutAList: if the time limit of the call ends first, or the server cannot list its tools, the
// call is not sent. Calls work when the list arrives.
func TestCallIsRefusedWithoutAList(t *testing.T) {
	supervise(t, nil, func(t *testing.T, b *bench) {
		l := b.link()
		refused := func(within time.Duration) {
			t.Helper()
			ctx, _, end := session.StartPausableDeadline(t.Context(), 5*time.Second)
			defer end()
			start := time.Now()
			p := wantCode(t, b.judged(ctx), problem.ServerUnavailable)
			if p.Message != "Server 's' has announced that its tools have changed and has not listed them yet, so the call to 't0' was not sent" || p.Detail("changed") != true {
				t.Errorf("problem %+v", p)
			}
			if took := time.Since(start); took > within {
				t.Errorf("it took %v", took)
			}
		}
		l.set(func() { l.slow = time.Hour })
		b.sv.ReportReceiver().ToolsChanged()
		refused(5 * time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := b.judged(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("the caller has cancelled: %v", err)
		}
		l.set(func() { l.slow, l.broken = 0, true })
		sleep(defaultConnectTime + relistPause)
		refused(awaitedPause)
		if n := l.count(mcp.CallTool); n != 0 {
			t.Errorf("%d calls were sent", n)
		}
		l.set(func() { l.broken = false })
		if err := b.judged(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestFailedListIsRetried: a failed list is retried even without calls, so that an announced change is not forgotten.
func TestFailedListIsRetried(t *testing.T) {
	supervise(t, nil, func(t *testing.T, b *bench) {
		l := b.link()
		l.set(func() { l.version, l.broken = 3, true })
		b.sv.ReportReceiver().ToolsChanged()
		sleep(time.Hour)
		if n := l.count(mcp.ListTools); n < 30 || n > 80 {
			t.Errorf("%d lists in an hour", n)
		}
		l.set(func() { l.broken = false })
		sleep(unannouncedPause)
		b.watcher.mu.Lock()
		defer b.watcher.mu.Unlock()
		if got := b.lastTools("s"); got[0] != "t3" {
			t.Errorf("tools %q", got)
		}
	})
}

// TestCallsInAStormOfChanges: each call waits only for a list that began after its request. MCPProxy pauses between
// lists.
func TestCallsInAStormOfChanges(t *testing.T) {
	supervise(t, nil, func(t *testing.T, b *bench) {
		l := b.link()
		const list = 10 * time.Millisecond
		l.set(func() { l.slow = list })
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		stormed := make(chan struct{})
		go func() {
			defer close(stormed)
			for ctx.Err() == nil {
				time.Sleep(100 * time.Microsecond)
				b.sv.ReportReceiver().ToolsChanged()
			}
		}()
		start, calls, longest := time.Now(), 0, time.Duration(0)
		for time.Since(start) < 20*time.Second {
			began := time.Now()
			if err := b.judged(t.Context()); err != nil {
				t.Fatal(err)
			}
			calls++
			longest = max(longest, time.Since(began))
			time.Sleep(50 * time.Microsecond)
		}
		if most := 2 * (awaitedPause + list); longest > most {
			t.Errorf("a call took %v, want %v at most", longest, most)
		}
		if lists := l.count(mcp.ListTools); lists > int(20*time.Second/awaitedPause)+2 {
			t.Errorf("%d lists in 20 s", lists)
		}
		cancel()
		<-stormed
		synctest.Wait()
	})
}

// TestLostConnectionEndsTheWait: a call stops waiting when the connection is lost, because the next connection begins
// with a list.
func TestLostConnectionEndsTheWait(t *testing.T) {
	supervise(t, nil, func(t *testing.T, b *bench) {
		l := b.link()
		l.set(func() { l.slow = time.Hour })
		b.sv.ReportReceiver().ToolsChanged()
		done := make(chan error, 1)
		go func() { done <- b.judged(t.Context()) }()
		sleep(time.Second)
		l.Signal(errors.New("gone"))
		if err := <-done; err != nil || l.count(mcp.CallTool) != 0 || b.link().count(mcp.CallTool) != 1 {
			t.Errorf("error %v, %d and %d calls", err, l.count(mcp.CallTool), b.link().count(mcp.CallTool))
		}
	})
}
