//go:build unix

package upstream

import (
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mcpproxy/internal/mcp"
)

// audience is a ServerClients that records its notifications.
type audience struct {
	inUse atomic.Bool

	mu    sync.Mutex // guards the fields below
	live  func() *Connection
	early []bool // for each connection: announced before it could be used
	heard []string
	ended []SessionsToEnd
}

func (a *audience) OnConnected(c *Connection) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.early = append(a.early, a.live == nil || a.live() == nil && c.Cause() == nil)
}

func (a *audience) OnNotification(method string, _ json.RawMessage) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.heard = append(a.heard, method)
	return true
}

func (a *audience) InUse() bool { return a.inUse.Load() }

func (a *audience) OnNeedLearned() {}

func (a *audience) EndSessions(what SessionsToEnd) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = append(a.ended, what)
}

// told returns the new calls of EndSessions since the last call of told.
func (a *audience) told() []SessionsToEnd {
	a.mu.Lock()
	defer a.mu.Unlock()
	ended := a.ended
	a.ended = nil
	return ended
}

// TestClientsAreNotified: clients are notified of each connection before it can be used, of the server's notifications,
// and of the end of sessions. A server becomes idle when no client needs it.
func TestClientsAreNotified(t *testing.T) {
	a := &audience{}
	a.inUse.Store(true)
	superviseFor(t, a, Spec{Name: "s", Transport: Stdio, ConnectTimeout: 20 * time.Second, IdleTimeout: idleAfter}, nil, func(t *testing.T, b *bench) {
		a.mu.Lock()
		a.live = b.sv.availability.live.Load
		a.mu.Unlock()
		want := func(when string, want ...SessionsToEnd) {
			t.Helper()
			synctest.Wait()
			if got := slices.Sorted(slices.Values(a.told())); !slices.Equal(got, want) { // EndAll includes the other scopes
				t.Errorf("%s: %v ended, want %v", when, got, want)
			}
		}
		if !b.sv.ReportReceiver().Notification(mcp.ResourceUpdated, nil) || !slices.Equal(a.heard, []string{mcp.ResourceUpdated}) {
			t.Errorf("heard %q", a.heard)
		}
		sleep(3 * idleAfter)
		if b.phase() != Ready || b.tries() != 1 {
			t.Fatalf("it is %s while a client needs it", b.phase())
		}
		want("in use")
		a.inUse.Store(false)
		sleep(2 * idleAfter)
		if b.phase() != Idle {
			t.Fatalf("it is %s while no client needs it", b.phase())
		}
		want("it rests", EndIdle)
		if err := b.Restart("s"); err != nil {
			t.Fatal(err)
		}
		want("a person restarts it", EndForRestart)
		sleep(time.Minute)
		if err := b.restartQuietly(); err != nil {
			t.Fatal(err)
		}
		want("an agent restarts it", EndIdle)
		spec := b.sv.Spec
		for _, shared := range []bool{true, true, false} {
			spec.Shared = shared
			b.ApplySpecs([]Spec{spec})
			if b.sv.IsShared() != shared {
				t.Errorf("shared %t", !shared)
			}
		}
		want("shared, and not any more", EndSessions, EndSessions)
		sleep(time.Second)
		if b.tries() != 3 || !slices.Equal(a.early, []bool{true, true, true}) {
			t.Errorf("%d tries, connections told early: %v", b.tries(), a.early)
		}
		b.ApplySpecs(nil)
		<-b.sv.availability.done
		want("it is not wanted", EndSessions, EndAll)
	})
}
