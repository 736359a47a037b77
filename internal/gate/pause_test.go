package gate

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/pause"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// TestPauseStopsRunningCalls: 64 calls run at their server, and clients begin more all the time. When the pause has
// returned, no call runs, and none reaches a server until calls are resumed. Each call is on record.
func TestPauseStopsRunningCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *config.Config) { c.MaxConcurrent, c.Servers[0].MaxConcurrent, c.QueueSize = 0, 0, 0 }, readsTool)
	var reached, made, cancelled, refused atomic.Int64
	all := make(chan struct{})
	w.AnswerCall = func(ctx context.Context, _ *session.Request) (session.Reply, error) {
		if reached.Add(1) == 64 {
			close(all)
		}
		<-ctx.Done()
		return session.Reply{}, ctx.Err()
	}
	call := func() {
		made.Add(1)
		_, err := w.gate.Call(context.Background(), LaneCall{CallTool: policy.CallToolRead, Name: "s:reads", Args: json.RawMessage(`{"n":1}`), Caller: anAgent})
		p := problem.From(err)
		switch {
		case p == nil || p.Code != problem.CallsPaused || !strings.Contains(p.Message, "The user's reason: a test"):
			t.Errorf("%v", err)
		case strings.Contains(p.Message, "It may have taken effect"):
			cancelled.Add(1)
		default:
			refused.Add(1)
		}
	}
	var clients sync.WaitGroup
	stop := make(chan struct{})
	for range 64 {
		clients.Go(func() {
			for {
				call()
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	<-all
	n, err := w.gate.Pause.Pause(t.Context(), pause.State{Reason: "a test"})
	if err != nil || n < 64 {
		t.Errorf("%d calls were cancelled, %v", n, err)
	}
	if left := w.gate.Pause.AwaitIdle(t.Context()); left != 0 {
		t.Errorf("%d calls still run", left)
	}
	before := reached.Load()
	for range 1000 {
		call()
	}
	close(stop)
	clients.Wait()
	if reached.Load() != before || cancelled.Load() != before {
		t.Errorf("%d calls reached the server before the pause, %d in all, %d were cancelled", before, reached.Load(), cancelled.Load())
	}
	if int64(len(w.Begun)+len(w.Appended)) != made.Load() || len(w.Ended) != len(w.Begun) || int64(len(w.Begun)) != cancelled.Load() {
		t.Errorf("%d calls: %d begun, %d ended, %d refused", made.Load(), len(w.Begun), len(w.Ended), len(w.Appended))
	}
	for _, o := range w.Ended {
		if o.Status != activity.Failed || o.ErrorCode != string(problem.CallsPaused) || o.Check != "pause" {
			t.Fatalf("%+v", o)
		}
	}
	for _, r := range w.Appended {
		if r.ServerName != "s" || r.ToolName != "reads" || r.Metadata.ErrorCode != string(problem.CallsPaused) || r.Metadata.Decision.Check != "pause" {
			t.Fatalf("%+v", r)
		}
	}
	w.AnswerCall = func(context.Context, *session.Request) (session.Reply, error) {
		return session.Reply{Result: json.RawMessage(`{"content":[]}`)}, nil
	}
	if err := w.gate.Pause.Resume(t.Context(), pause.State{}); err != nil {
		t.Fatal(err)
	}
	if _, p := w.call(policy.CallToolRead, "s:reads", `{"n":1}`); p != nil {
		t.Errorf("after resume: %v", p)
	}
}

// TestPauseEndsHeldCalls: a call that waits for an approval ends, and its record names the record of the held call.
func TestPauseEndsHeldCalls(t *testing.T) {
	t.Parallel()
	a := newAsking(t, textWith(`"ask": {"destructive": "ask", "wait": "1m"}`), destroysTool)
	done := make(chan error, 1)
	go func() { done <- a.destroy(t.Context(), `{"x":1}`) }()
	a.waits(1)
	if n, err := a.gate.Pause.Pause(t.Context(), pause.State{}); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	p := wantCode(t, "held", <-done, problem.CallsPaused)
	if p == nil || !strings.Contains(p.Message, "was not sent") || a.asked() != 0 {
		t.Errorf("%v, %q", p, a.Events)
	}
	if len(a.Appended) != 1 || a.Appended[0].ParentID != "record" || a.Appended[0].Metadata.ErrorCode != string(problem.CallsPaused) {
		t.Errorf("%+v", a.Appended)
	}
	if e := a.gate.DryRun(LaneCall{CallTool: policy.CallToolDestructive, Name: "s:destroys", Args: json.RawMessage(`{}`), Caller: anAgent}); e.Problem == nil || e.Problem.Code != problem.CallsPaused {
		t.Errorf("%+v", e)
	}
}

// TestPauseStopsOtherRequests: prompts, resources, completion, tasks and a server's own methods do not pass, and are on
// record. Lists, subscriptions and cancellations pass.
func TestPauseStopsOtherRequests(t *testing.T) {
	t.Parallel()
	w, _ := relayWorld(t, nil)
	if _, err := w.gate.Pause.Pause(t.Context(), pause.State{}); err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{"tools/call", "prompts/get", "resources/read", "resources/subscribe", "completion/complete", "tasks/get", "tasks/result", "tasks/update", "own/method"} {
		before := len(w.Appended)
		_, err := w.relay(t.Context(), passed(method, `{"name":"reads","uri":"x:y","taskId":"1"}`))
		wantCode(t, method, err, problem.CallsPaused)
		if len(w.Appended) != before+1 || w.Appended[before].Metadata.ErrorCode != string(problem.CallsPaused) {
			t.Errorf("%s is not on record: %+v", method, w.Appended[before:])
		}
	}
	for _, method := range []string{"tools/list", "prompts/list", "resources/list", "resources/templates/list", "ping", "tasks/list", "tasks/cancel", "resources/unsubscribe"} {
		if _, err := w.relay(t.Context(), passed(method, `{"taskId":"1"}`)); err != nil && problem.From(err).Code == problem.CallsPaused {
			t.Errorf("%s does not pass", method)
		}
	}
}
