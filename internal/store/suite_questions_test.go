package store_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate/ask"
	"mcpproxy/internal/problem"
)

func newCall(args string) ask.Call {
	return ask.Call{Principal: "agent:cursor#1", Session: "s1", ID: tool.ID{Server: "github", Tool: "delete_repo"}, Fingerprint: tool.Fingerprint{1, 31: 2},
		Arguments: []byte(args), Revision: "abc", Variant: "call_tool_destructive"}
}

func newQuestion(id, args string, at time.Time) ask.Question {
	c := newCall(args)
	q := ask.Question{ID: id, Key: c.Key(), State: ask.Waiting, Call: c, Shown: []byte(args), Cut: true, Lane: "destructive", Because: "é", Rule: "ask.tools", Reason: "why",
		Actor: "agent:cursor", Source: "mcp", Client: "cursor", ClientVersion: "1", Record: "01", Asked: at, Last: at, Until: at.Add(ask.Life)}
	q.Arguments = nil
	return q
}

// acceptAnyLease accepts all leases.
func acceptAnyLease(*ask.Lease) bool { return true }

func problemCode(err error) problem.Code {
	if p, ok := errors.AsType[*problem.Problem](err); ok {
		return p.Code
	}
	return ""
}

// testQuestions checks that all calls with the same key share one question, which is loaded as it was stored and can be
// answered once. The approval can be used once, before it expires and only with its key. All of this must also hold
// after a restart.
func testQuestions(t *testing.T, open storeOpener) {
	dir := t.TempDir()
	s := open(t, dir)
	a, ctx := s.ApprovalQuestions(), t.Context()
	begin := time.Date(2026, 1, 15, 10, 30, 0, 1000, time.UTC)
	at := func(d time.Duration) time.Time { return begin.Add(d) }
	q := newQuestion("q1", `{"a":1}`, begin)
	if got, found, err := a.FindQuestion(ctx, q.Key, begin); found || err != nil {
		t.Errorf("FindQuestion before the question was added gave %+v, %v", got, err)
	}
	if got, fresh, err := a.AddQuestion(ctx, q); !fresh || err != nil || cmp.Diff(q, got) != "" {
		t.Errorf("%v, %v: %s", fresh, err, cmp.Diff(q, got))
	}
	again := q
	again.ID, again.Asked = "q2", at(time.Minute)
	if got, fresh, err := a.AddQuestion(ctx, again); fresh || err != nil || got.ID != "q1" || !got.Until.Equal(at(ask.Life+time.Minute)) {
		t.Errorf("adding the question again gave %+v, %v, %v", got, fresh, err)
	}
	want := q
	want.Last, want.Until = at(2*time.Minute), at(ask.Life+2*time.Minute)
	if got, found, err := a.FindQuestion(ctx, q.Key, at(2*time.Minute)); !found || err != nil || cmp.Diff(want, got) != "" {
		t.Errorf("%v, %v: %s", found, err, cmp.Diff(want, got))
	}
	if ok, err := a.UseApproval(ctx, "q1", q.Key, at(2*time.Minute)); ok || err != nil {
		t.Errorf("UseApproval before the approval succeeded or failed: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	defer func() { _ = s.Close() }()
	a = s.ApprovalQuestions()
	if all, err := a.WaitingQuestions(ctx, at(3*time.Minute)); err != nil || cmp.Diff([]ask.Question{want}, all) != "" {
		t.Errorf("%v: %s", err, cmp.Diff([]ask.Question{want}, all))
	}
	if n, err := a.CountWaitingQuestions(ctx, at(3*time.Minute)); n != 1 || err != nil {
		t.Errorf("%d questions wait, want 1; error: %v", n, err)
	}
	if _, err := a.AnswerQuestion(ctx, "none", ask.Answer{At: begin}); problemCode(err) != problem.NotFound {
		t.Errorf("answering an unknown question gave %v", err)
	}
	yes := ask.Answer{Approve: true, By: "admin", Via: "cli", At: at(4 * time.Minute)}
	if got, err := a.AnswerQuestion(ctx, "q1", yes); err != nil || got.State != ask.Approved || got.By != "admin" || got.Via != "cli" || !got.Until.Equal(at(4*time.Minute+ask.Life)) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := a.AnswerQuestion(ctx, "q1", ask.Answer{Why: "no", By: "admin", At: at(5 * time.Minute)}); problemCode(err) != problem.Conflict {
		t.Errorf("a second answer gave %v", err)
	}
	if got, found, err := a.FindQuestion(ctx, q.Key, at(5*time.Minute)); !found || err != nil || got.State != ask.Approved || got.Why != "" {
		t.Errorf("%+v, %v, %v", got, found, err)
	}
	other := newCall(`{"a":2}`)
	for name, use := range map[string]struct {
		key ask.CallKey
		at  time.Time
	}{"another call": {other.Key(), at(5 * time.Minute)}, "too late": {q.Key, at(4*time.Minute + ask.Life)}, "by a clock that was set back": {q.Key, at(-time.Hour)}} {
		if ok, err := a.UseApproval(ctx, "q1", use.key, use.at); ok || err != nil {
			t.Errorf("UseApproval for %s succeeded or failed: %v", name, err)
		}
	}
	var used atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if ok, err := a.UseApproval(ctx, "q1", q.Key, at(5*time.Minute)); err != nil {
				t.Error(err)
			} else if ok {
				used.Add(1)
			}
		})
	}
	if all.Wait(); used.Load() != 1 {
		t.Errorf("the approval was used %d times, want once", used.Load())
	}
	if q, err := a.LoadQuestion(ctx, "q1"); err != nil || q.State != ask.Used || string(q.Shown) != "null" {
		t.Errorf("%+v, %v", q, err)
	}
	if _, found, err := a.FindQuestion(ctx, q.Key, at(5*time.Minute)); found || err != nil {
		t.Errorf("FindQuestion still finds the used approval: %v", err)
	}
	denied := newQuestion("q3", `{"a":1}`, at(6*time.Minute))
	if _, fresh, err := a.AddQuestion(ctx, denied); !fresh || err != nil {
		t.Errorf("adding a question for the same call again gave %v, %v", fresh, err)
	}
	if _, err := a.AnswerQuestion(ctx, "q3", ask.Answer{Why: "not now", By: "admin", At: at(7 * time.Minute)}); err != nil {
		t.Error(err)
	}
	if got, found, err := a.FindQuestion(ctx, q.Key, at(8*time.Minute)); !found || err != nil || got.State != ask.Denied || got.Why != "not now" {
		t.Errorf("%+v, %v, %v", got, found, err)
	}
	if ok, err := a.UseApproval(ctx, "q3", q.Key, at(8*time.Minute)); ok || err != nil {
		t.Errorf("UseApproval accepted a denial or failed: %v", err)
	}
	if _, found, err := a.FindQuestion(ctx, q.Key, at(7*time.Minute+ask.Life)); found || err != nil {
		t.Errorf("FindQuestion found an expired denial or failed: %v", err)
	}
}

// testCallAskedTwice stores two questions about one call, which happens if the clock was set back. FindQuestion must
// prefer an answered question, and a denial to an approval.
func testCallAskedTwice(t *testing.T, open storeOpener) {
	s := open(t, t.TempDir())
	defer func() { _ = s.Close() }()
	a, ctx := s.ApprovalQuestions(), t.Context()
	now := time.Date(2026, 1, 15, 10, 30, 0, 0, time.UTC)
	call := newCall(`{"a":1}`)
	key := call.Key()
	for _, q := range []ask.Question{newQuestion("before", `{"a":1}`, now.Add(3*time.Minute)), newQuestion("after", `{"a":1}`, now)} {
		if _, fresh, err := a.AddQuestion(ctx, q); !fresh || err != nil {
			t.Errorf("%s: %v, %v", q.ID, fresh, err)
		}
	}
	now = now.Add(2 * time.Minute)
	if _, err := a.AnswerQuestion(ctx, "before", ask.Answer{Approve: true, By: "admin", At: now}); err != nil {
		t.Error(err)
	}
	if got, found, err := a.FindQuestion(ctx, key, now); !found || err != nil || got.ID != "before" || got.State != ask.Approved {
		t.Errorf("%+v, %v, %v", got, found, err)
	}
	if _, err := a.AnswerQuestion(ctx, "after", ask.Answer{By: "admin", At: now}); err != nil {
		t.Error(err)
	}
	if got, found, err := a.FindQuestion(ctx, key, now); !found || err != nil || got.ID != "after" || got.State != ask.Denied {
		t.Errorf("after the denial: %+v, %v, %v", got, found, err)
	}
}

// testQuestionLimits checks the limits of waiting questions, in total and per actor, and that old questions are
// deleted.
func testQuestionLimits(t *testing.T, open storeOpener) {
	s := open(t, t.TempDir())
	defer func() { _ = s.Close() }()
	a, ctx := s.ApprovalQuestions(), t.Context()
	begin := time.Date(2026, 1, 15, 10, 30, 0, 0, time.UTC)
	add := func(actor, n int, at time.Time) error {
		q := newQuestion(fmt.Sprintf("q%d-%d-%d", actor, n, at.Unix()), fmt.Sprintf(`{"n":%d}`, n), at)
		q.Principal = fmt.Sprint("agent:", actor)
		call := q.Call
		call.Arguments = q.Shown
		q.Key = call.Key()
		_, _, err := a.AddQuestion(ctx, q)
		return err
	}
	for actor := range ask.MaxWaiting / ask.MaxOfActor {
		for n := range ask.MaxOfActor {
			if err := add(actor, n, begin); err != nil {
				t.Fatal(err)
			}
		}
		if err := add(actor, ask.MaxOfActor, begin); problemCode(err) != problem.Overloaded {
			t.Fatalf("one question too many of an actor gave %v", err)
		}
	}
	if err := add(99, 0, begin); problemCode(err) != problem.Overloaded {
		t.Errorf("one question too many in total gave %v", err)
	}
	later := begin.Add(ask.Life)
	if err := add(99, 0, later); err != nil {
		t.Errorf("adding a question after the others expired: %v", err)
	}
	if all, err := a.WaitingQuestions(ctx, later); err != nil || len(all) != 1 {
		t.Errorf("%d questions wait, want 1; error: %v", len(all), err)
	}
	if old, err := a.LoadQuestion(ctx, fmt.Sprintf("q0-0-%d", begin.Unix())); err != nil || old.State != ask.Expired || string(old.Shown) != "null" {
		t.Errorf("an expired question still has its arguments: %+v, %v", old, err)
	}
	if err := add(99, 1, begin.AddDate(0, 0, 40)); err != nil {
		t.Error(err)
	}
	if _, err := a.LoadQuestion(ctx, fmt.Sprintf("q0-0-%d", begin.Unix())); problemCode(err) != problem.NotFound {
		t.Errorf("loading a deleted question gave %v", err)
	}
}

// testLeases checks that a lease allows its calls, as often as permitted, until it expires or is revoked.
func testLeases(t *testing.T, open storeOpener) {
	dir := t.TempDir()
	s := open(t, dir)
	a, ctx := s.ApprovalQuestions(), t.Context()
	begin := time.Date(2026, 1, 15, 10, 30, 0, 1000, time.UTC)
	lease := ask.Lease{ID: "l1", Server: "github", Tools: "delete_*", Lane: auth.Write, Client: "cursor", Actor: "agent:cursor#1", Revision: "abc", Calls: 3, Left: 3,
		Given: begin, Until: begin.Add(time.Hour), By: "admin", Via: "ui"}
	if err := a.AddLease(ctx, lease); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	defer func() { _ = s.Close() }()
	a = s.ApprovalQuestions()
	if all, err := a.ActiveLeases(ctx, begin); err != nil || cmp.Diff([]ask.Lease{lease}, all) != "" {
		t.Errorf("%v: %s", err, cmp.Diff([]ask.Lease{lease}, all))
	}
	for name, c := range map[string]struct {
		call func(*ask.Call)
		lane auth.OperationLane
		at   time.Time
	}{
		"another server":        {func(c *ask.Call) { c.Server = "gitlab" }, auth.Write, begin},
		"another tool":          {func(c *ask.Call) { c.Tool = "create_repo" }, auth.Write, begin},
		"another client":        {func(c *ask.Call) { c.Principal = "agent:cursor#2" }, auth.Write, begin},
		"another configuration": {func(c *ask.Call) { c.Revision = "abd" }, auth.Write, begin},
		"a worse lane":          {func(*ask.Call) {}, auth.Destructive, begin},
		"no lane":               {func(*ask.Call) {}, 0, begin},
		"too late":              {func(*ask.Call) {}, auth.Write, begin.Add(time.Hour)},
		"a clock set back":      {func(*ask.Call) {}, auth.Write, begin.AddDate(0, 0, -2)},
	} {
		call := newCall("{}")
		c.call(&call)
		if id, _, err := a.UseLease(ctx, &call, call.Key(), c.lane, c.at, acceptAnyLease); id != "" || err != nil {
			t.Errorf("%s: UseLease gave %q, %v", name, id, err)
		}
	}
	call := newCall("{}")
	waits := newQuestion("q", "{}", begin)
	if _, fresh, err := a.AddQuestion(ctx, waits); err != nil || !fresh {
		t.Fatal(err)
	}
	var taken, closed atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			id, record, err := a.UseLease(ctx, &call, call.Key(), auth.Read, begin, acceptAnyLease)
			if err != nil {
				t.Error(err)
			} else if id == "l1" {
				taken.Add(1)
			}
			if record != "" {
				closed.Add(1)
			}
		})
	}
	if all.Wait(); taken.Load() != 3 {
		t.Errorf("the lease allowed %d calls, want 3", taken.Load())
	}
	if n, err := a.CountWaitingQuestions(ctx, begin); closed.Load() != 1 || n != 0 || err != nil {
		t.Errorf("the question about a call that a lease allows was closed %d times, want once; %d questions wait, want 0; error: %v", closed.Load(), n, err)
	}
	for i := range ask.MaxLeases + 1 {
		more := lease
		more.ID, more.Given = fmt.Sprint("m", i), begin
		if err := a.AddLease(ctx, more); (err == nil) != (i < ask.MaxLeases) {
			t.Fatalf("lease %d: %v", i, err)
		}
	}
	if l, err := a.RevokeLease(ctx, "m0", begin); err != nil || l.Revoked.IsZero() {
		t.Errorf("%+v, %v", l, err)
	}
	if _, err := a.RevokeLease(ctx, "m0", begin); problemCode(err) != problem.NotFound {
		t.Errorf("revoking a lease again gave %v", err)
	}
	if left, err := a.ActiveLeases(ctx, begin); err != nil || len(left) != ask.MaxLeases-1 {
		t.Errorf("%d leases are active, error: %v", len(left), err)
	}
}
