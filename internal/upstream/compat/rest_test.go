//go:build unix

package compat

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/upstream"
)

func gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

func untilPhase(t testing.TB, f *fixture, server string, want upstream.Phase) {
	f.until(t, server+" is "+string(want), func() bool { return f.last(server).Phase == want })
}

func restingSpec(t testing.TB, server string, idle time.Duration) Spec {
	spec := stdioSpec(t, server, server)
	spec.IdleTimeout = idle
	return spec
}

func TestOpenSessionKeepsTheServer(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.ApplySpecs([]Spec{restingSpec(t, "zoo", 50*time.Millisecond)})
	untilPhase(t, f, "zoo", Idle)
	c, _, err := f.Converse(t.Context(), "zoo", session.Request{ID: json.RawMessage("1"), Method: mcp.Initialize,
		Params: json.RawMessage(`{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}`)})
	if err != nil || c == nil {
		t.Fatal(err)
	}
	pid := f.pidOf("zoo")
	for range 20 { // each ping takes a while, and none is a use of the shared process
		if a, err := f.Relay(t.Context(), "zoo", c, session.Request{ID: json.RawMessage("2"), Method: mcp.Ping}); err != nil || a.Error != nil {
			t.Fatal(a.Error, err)
		}
	}
	if !f.clients("zoo").InUse() || gone(pid) {
		t.Error("a server with an open session may be stopped")
	}
	c.Close()
	untilPhase(t, f, "zoo", Idle)
	if !gone(pid) {
		t.Error("the process is still there")
	}
}

// A session that is only kept for the next request keeps no process.
func TestSpareSessionsEndWithTheirServer(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.ApplySpecs([]Spec{restingSpec(t, "zoo", 100*time.Millisecond)})
	a, err := f.Relay(t.Context(), "zoo", nil, session.Request{ID: json.RawMessage("1"), Method: mcp.ListTools, Caller: named("p"),
		Params: json.RawMessage(`{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}`)})
	if err != nil || a.Error != nil {
		t.Fatal(a.Error, err)
	}
	open := &f.clients("zoo").sessionSet
	open.mu.Lock()
	kept := slices.Collect(maps.Keys(open.all))
	open.mu.Unlock()
	if len(kept) != 1 {
		t.Fatalf("%d sessions are kept", len(kept))
	}
	untilPhase(t, f, "zoo", Idle)
	select {
	case <-kept[0].ended:
	case <-time.After(patience):
		t.Error("it goes on")
	}
}

// A client that shares the connection keeps the server running only while it waits for a message of it, and continues when
// the server runs again.
func TestSharedServerBecomesIdle(t *testing.T) {
	t.Parallel()
	const idle = 100 * time.Millisecond
	f := newFixture(t)
	spec := restingSpec(t, "club", idle)
	spec.Shared = true
	f.ApplySpecs([]Spec{spec})
	m := &member{f: f, server: "club", c: f.converse(t, "club")}
	untilPhase(t, f, "club", Idle)
	m.request(t, mcp.Ping, "{}")
	if s, _ := f.State("club"); s.Phase != Idle {
		t.Fatalf("it is %s after a ping of a client", s.Phase)
	}
	m.subscribe(t, mcp.Subscribe, "a:b")
	pid := f.pidOf("club")
	time.Sleep(3 * idle)
	if s, _ := f.State("club"); s.Phase != Ready || s.PID != pid {
		t.Fatalf("it is %s with a subscription", s.Phase)
	}
	m.subscribe(t, mcp.Unsubscribe, "a:b")
	m.untilTrue(t, "it rests although a client pings", func() bool {
		m.request(t, mcp.Ping, "{}")
		s, _ := f.State("club")
		return s.Phase == Idle
	})
	m.subscribe(t, mcp.Subscribe, "a:b")
	m.c.Close()
	other := &member{f: f, server: "club", c: f.converse(t, "club")}
	other.untilSeen(t, mcp.Unsubscribe, `{"uri":"a:b"}`)
	untilPhase(t, f, "club", Idle)
}

// TestAgentRestartsFailNoCalls checks that an agent that requests many restarts of a server gets one, and that no call
// of other clients fails.
func TestAgentRestartsFailNoCalls(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.ApplySpecs([]Spec{stdioSpec(t, "zoo", "zoo")})
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
				switch err := f.RestartWhenDrained(ctx, "zoo", func() error { return nil }); {
				case code(err) == problem.Overloaded:
					refused.Add(1)
				case err != nil && !errors.Is(err, context.Canceled):
					t.Error(err)
				}
				_ = sleepContext(ctx, time.Millisecond) // not to have the processor for itself
			}
		})
	}
	f.untilReady(t, "zoo", 1)
	for before := calls.Load(); calls.Load() < before+100; {
		_ = sleepContext(ctx, time.Millisecond)
	}
	cancel()
	wg.Wait()
	s, _ := f.State("zoo")
	if s.Restarts != 1 || refused.Load() == 0 {
		t.Errorf("%d restarts, %d refused, %d calls", s.Restarts, refused.Load(), calls.Load())
	}
	params := json.RawMessage(`{"name":"echo","arguments":{"text":"hi"}}`)
	if _, err := f.Call(t.Context(), "zoo", Call{Tool: "echo", Passed: &Passed{Session: own,
		Request: session.Request{ID: json.RawMessage("1"), Method: mcp.CallTool, Params: params}}}); err != nil {
		t.Errorf("the client's own session: %v", err)
	}
}
