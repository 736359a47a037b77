package api

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
)

const oneCall = `{"tool_variant":"call_tool_write","name":"github:x","args":{"a":1}}`

func (f *fake) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.calls)
}

// Two requests with the same key cause one call.
func TestRepeatedCalls(t *testing.T) {
	t.Parallel()
	f := &fake{answer: gate.CallResult{Result: json.RawMessage(`{"content":[],"n":9007199254740993}`), ActivityID: "01A"}}
	s := serve(t, f)
	call := func(key, body string) reply { return ask(t, s, "POST", callPath, body, "Idempotency-Key", key) }
	first := call("k", oneCall)
	f.answer.ActivityID = "01B"
	if again := call("k", oneCall); again.body != first.body || again.status != 200 || f.count() != 1 {
		t.Errorf("%d calls, %d %s, before %s", f.count(), again.status, again.body, first.body)
	}
	for _, body := range []string{strings.Replace(oneCall, "1", "2", 1), oneCall + " "} {
		if r := call("k", body); r.status != http.StatusConflict || problemOf(t, r).Details["parameter"] != "Idempotency-Key" {
			t.Errorf("another body: %d %s", r.status, r.body)
		}
	}
	for _, key := range []string{"other", ""} {
		if r := call(key, oneCall); !strings.Contains(r.body, "01B") {
			t.Errorf("with the key %q: %s", key, r.body)
		}
	}
	if f.count() != 3 {
		t.Errorf("%d calls", f.count())
	}
	for _, key := range []string{strings.Repeat("x", 256), "ä", "a\tb"} {
		if r := call(key, oneCall); r.status != 400 || problemOf(t, r).Code != problem.InvalidParameter {
			t.Errorf("%q: %d %s", key, r.status, r.body)
		}
	}
	req, _ := http.NewRequest("POST", s.URL+callPath, strings.NewReader(oneCall))
	req.Header = http.Header{"X-Api-Key": {testKey}, "Content-Type": {"application/json"}, "Idempotency-Key": {"a", "b"}}
	if r := send(t, req); r.status != 400 {
		t.Errorf("two keys: %d %s", r.status, r.body)
	}
	if f.count() != 3 || len(call(strings.Repeat("~", 255), oneCall).body) == 0 || f.count() != 4 {
		t.Errorf("%d calls", f.count())
	}
}

// A repeated request with the same key calls again if the first call reached no server, but not if it may have reached
// it.
func TestRepeatedFailures(t *testing.T) {
	t.Parallel()
	for code, again := range map[problem.Code]bool{
		problem.ToolLocked: true, problem.ServerUnavailable: true, problem.Overloaded: true, problem.ArgsMismatch: true, problem.AuditUnavailable: true, problem.LoginNeeded: true,
		problem.UpstreamError: false, problem.Timeout: false, problem.Interrupted: false, problem.Internal: false,
	} {
		f := &fake{failure: problem.New(code, "It failed.", "")}
		f.answer.ActivityID = "01A"
		s := serve(t, f)
		for range 2 {
			if r := ask(t, s, "POST", callPath, oneCall, "Idempotency-Key", "k"); problemOf(t, r).Code != code || problemOf(t, r).ActivityID != "01A" {
				t.Errorf("%s: %s", code, r.body)
			}
		}
		if got := f.count() == 2; got != again {
			t.Errorf("%s: %d calls", code, f.count())
		}
	}
}

// A call continues when its caller disconnects, and a repeated request gets its answer.
func TestRepeatedWhileItRuns(t *testing.T) {
	t.Parallel()
	f := &fake{block: make(chan struct{}), entered: make(chan struct{}), left: make(chan struct{})}
	f.answer = gate.CallResult{Result: json.RawMessage(`{"content":[]}`), ActivityID: "01A"}
	s := serve(t, f)
	ctx, leave := context.WithCancel(t.Context())
	req, _ := http.NewRequestWithContext(ctx, "POST", s.URL+callPath, strings.NewReader(oneCall))
	req.Header = http.Header{"X-Api-Key": {testKey}, "Content-Type": {"application/json"}, "Idempotency-Key": {"k"}}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if resp, err := http.DefaultTransport.RoundTrip(req); err == nil {
			resp.Body.Close()
			t.Error("the abandoned request got a response")
		}
	}()
	<-f.entered
	leave()
	<-gone
	var asking sync.WaitGroup
	for range 5 {
		asking.Go(func() {
			if r := ask(t, s, "POST", callPath, oneCall, "Idempotency-Key", "k"); r.status != 200 || !strings.Contains(r.body, "01A") {
				t.Errorf("%d %s", r.status, r.body)
			}
		})
	}
	close(f.block)
	asking.Wait()
	if f.count() != 1 {
		t.Errorf("%d calls", f.count())
	}
}

// The stored answers are limited in number, size and time. A call whose answer is no longer stored is not repeated.
func TestRepeatsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, made := &idempotentCalls{}, 0
		call := func(i, size int) (string, error) {
			key := fmt.Sprint("key", i)
			answer, err := r.callOnce(t.Context(), idempotencyKey{caller: "admin", key: key}, sha256.Sum256([]byte(key)), func(context.Context) (any, error) {
				made++
				return CallAnswer{Result: make(json.RawMessage, size), ActivityID: fmt.Sprint("record", made)}, nil
			})
			a, _ := answer.(CallAnswer)
			return a.ActivityID, err
		}
		for i := range 3 * maxRepeatKeys {
			if _, err := call(i, 100); err != nil {
				t.Fatal(err)
			}
		}
		if len(r.kept) != maxRepeatKeys || len(r.order) != maxRepeatKeys || r.bytes != 100*maxRepeatKeys {
			t.Errorf("%d calls with %d bytes are stored", len(r.kept), r.bytes)
		}
		for i := range 5 {
			_, _ = call(-1-i, maxRepeatBytes/4)
		}
		before := made
		_, err := call(-1, 0)
		var kept *recordedError
		if problem.From(err) == nil || problem.From(err).Code != problem.Conflict || !errors.As(err, &kept) || kept.activityID == "" || made != before || r.bytes > maxRepeatBytes {
			t.Errorf("a dropped answer: %v, %d bytes", err, r.bytes)
		}
		if id, err := call(-5, 0); err != nil || id == "" || made != before {
			t.Errorf("the newest answer: %s, %v", id, err)
		}
		time.Sleep(repeatLifetime + time.Second)
		if _, err := call(-5, 0); err != nil || made != before+1 || len(r.kept) != 1 || r.bytes != 0 {
			t.Errorf("after repeatLifetime: %v, %d calls, %d stored", err, made-before, len(r.kept))
		}
		// Running calls are never dropped, so a call over the limit is rejected.
		release := make(chan struct{})
		for i := range maxRepeatKeys {
			go func() {
				_, _ = r.callOnce(t.Context(), idempotencyKey{caller: "admin", key: fmt.Sprint("runs", i)}, [32]byte{}, func(context.Context) (any, error) {
					<-release
					return CallAnswer{}, nil
				})
			}()
		}
		synctest.Wait()
		if _, err := call(9, 0); problem.From(err) == nil || problem.From(err).Code != problem.Overloaded {
			t.Errorf("a call over the limit: %v", err)
		}
		close(release)
	})
}

// A caller stops waiting when its call panics or when the program stops.
func TestRepeatsEnd(t *testing.T) {
	t.Parallel()
	r := &idempotentCalls{}
	func() {
		defer func() { _ = recover() }()
		_, _ = r.callOnce(t.Context(), idempotencyKey{}, [32]byte{}, func(context.Context) (any, error) { panic("x") })
	}()
	if _, err := r.callOnce(t.Context(), idempotencyKey{}, [32]byte{}, nil); problem.From(err) == nil || problem.From(err).Code != problem.Internal {
		t.Errorf("after a panic: %v", err)
	}
	stopping := errors.New("stopping")
	ctx, stop := context.WithCancelCause(t.Context())
	_, err := r.callOnce(ctx, idempotencyKey{key: "stop"}, [32]byte{}, func(ctx context.Context) (any, error) {
		stop(stopping)
		<-ctx.Done()
		return nil, context.Cause(ctx)
	})
	if !errors.Is(err, stopping) {
		t.Errorf("the program stops: %v", err)
	}
}

// A panic in an operation returns a problem without the text of the panic.
func TestPanicIsAProblem(t *testing.T) {
	t.Parallel()
	f := &fake{}
	broken := func(context.Context, ops.Caller, ops.Nothing) (ops.Status, error) { panic("secret cause") }
	server, err := New(Deps{Implementations: homes, Refuse: f.RecordRefusal, Auth: auth.NewAuthenticator(testKey, nil), Logger: slog.New(slog.DiscardHandler), Version: "1.2.3",
		Replacements: append(f.instead(), GetStatus.WithHandler(broken))})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(server)
	t.Cleanup(s.Close)
	r := ask(t, s, "GET", Prefix+"/status", "")
	if d := problemOf(t, r); r.status != 500 || d.Code != problem.Internal || d.Hint == "" || strings.Contains(r.body, "secret") {
		t.Errorf("%d %s", r.status, r.body)
	}
}
