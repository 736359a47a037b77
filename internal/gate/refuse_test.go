package gate

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"mcpproxy/internal/config"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/testutil/volume"
)

const wipes = `{"name":"wipe","inputSchema":{"type":"object"},"annotations":{"destructiveHint":true}}`

// refused makes a call that is refused, from a connection, and returns how long that took.
func (w *world) refused(origin string) time.Duration {
	w.T.Helper()
	began := time.Now()
	_, err := w.gate.Call(w.T.Context(), LaneCall{CallTool: policy.CallToolRead, Name: "s:wipe",
		Caller: auth.Caller{Actor: auth.Actor{Kind: auth.Agent}, Source: activity.SourceMCP, Origin: origin}})
	if problem.From(err).Code != problem.ServerMismatch {
		w.T.Fatalf("%v", err)
	}
	return time.Since(began)
}

// TestRefusalLoopIsSlowedDown checks that a client in a loop gets 200 refusals a second after a burst, and that other
// clients are not affected.
func TestRefusalLoopIsSlowedDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, wipes)
		began := time.Now()
		n := volume.FullOrQuick(10_000, 4_000)
		for range n {
			w.refused("a")
		}
		paced := time.Duration(n-2_000) * time.Second / 200
		if took := time.Since(began); took < paced-time.Second || took > paced+time.Second {
			t.Errorf("%d refusals took %v", n, took)
		}
		if took := w.refused("b"); took != 0 {
			t.Errorf("another connection waited %v", took)
		}
		if _, err := w.gate.Call(t.Context(), LaneCall{CallTool: policy.CallToolDestructive, Name: "s:wipe",
			Caller: auth.Caller{Actor: auth.Actor{Kind: auth.Agent}, Origin: "a"}}); err != nil || time.Since(began) > paced+time.Second {
			t.Errorf("an allowed call: %v, or it waited", err)
		}
		time.Sleep(time.Minute)
		if took := w.refused("a"); took != 0 {
			t.Errorf("after a minute the connection waited %v", took)
		}
	})
}

// TestNewConnectionsDoNotResetThePace checks that a client that opens a connection for each call is limited by the
// rate of its actor, and waits no longer than a second.
func TestNewConnectionsDoNotResetThePace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, wipes)
		began := time.Now()
		for i := range 50_000 {
			w.refused(fmt.Sprint(i))
		}
		if took := time.Since(began); took < 5*time.Second {
			t.Errorf("50,000 refusals took %v", took)
		}
		if n := len(w.gate.refusalLimiter.newer) + len(w.gate.refusalLimiter.before); n > 2*maxRateLimited {
			t.Errorf("%d connections are remembered", n)
		}
		var longest time.Duration
		for range 20_000 {
			longest = max(longest, w.gate.refusalLimiter.countRefusal("of agent", actorLimit, time.Now()))
		}
		if longest > maxRateLimitWait {
			t.Errorf("a client would wait %v", longest)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		began = time.Now()
		w.gate.refusalLimiter.waitOutDelay(ctx, time.Hour)
		if time.Since(began) != 0 {
			t.Error("the delay did not end with the context")
		}
	})
}

// TestFullQueueIsARefusal checks that calls that find the queue full are refused before a call record begins, and
// count as refusals.
func TestFullQueueIsARefusal(t *testing.T) {
	w := newWorld(t, func(c *config.Config) { c.MaxConcurrent, c.QueueSize = 1, 0 }, wipes)
	w.gate.concurrency.Store(newConcurrencyLimiter(w.Config(), nil))
	entered, leave := make(chan struct{}), make(chan struct{})
	w.AnswerCall = func(context.Context, *session.Request) (session.Reply, error) {
		close(entered)
		<-leave
		return session.Reply{Result: []byte(`{"content":[]}`)}, nil
	}
	call := func() error {
		_, err := w.gate.Call(t.Context(), LaneCall{CallTool: policy.CallToolDestructive, Name: "s:wipe", Caller: auth.Caller{Actor: auth.Actor{Kind: auth.Agent}}})
		return err
	}
	first := make(chan error)
	go func() { first <- call() }()
	<-entered
	if err := call(); problem.From(err).Code != problem.Overloaded {
		t.Errorf("%v", err)
	}
	close(leave)
	if err := <-first; err != nil {
		t.Error(err)
	}
	if !slices.Equal(w.Events, []string{"begin", "call {}", "refuse", "end"}) {
		t.Errorf("%q", w.Events)
	}
}
