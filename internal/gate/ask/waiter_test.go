package ask

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/problem"
)

// memory stores questions for tests that depend on time. Package gate tests with a database.
type memory struct {
	mu  sync.Mutex // guards the following fields
	all map[string]*Question
	err error
}

// answer answers all waiting questions.
func (m *memory) answer(a Answer) (keys []CallKey, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, q := range m.all {
		if p := q.RecordAnswer(a); p != nil {
			return nil, p
		}
		keys = append(keys, q.Key)
	}
	return keys, nil
}

func (m *memory) FindQuestion(_ context.Context, k CallKey, now time.Time) (Question, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, q := range m.all {
		if state := q.StateAt(now); q.Key == k && state != Expired && state != Used {
			return *q, true, m.err
		}
	}
	return Question{}, false, m.err
}

func (m *memory) AddQuestion(_ context.Context, q Question) (Question, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return q, false, m.err
	}
	m.all[q.ID] = &q
	return q, true, nil
}

func (m *memory) LoadQuestion(_ context.Context, id string) (Question, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all[id] == nil {
		return Question{}, errors.New("no such question")
	}
	return *m.all[id], m.err
}

func (m *memory) UseApproval(_ context.Context, id string, k CallKey, now time.Time) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	q := m.all[id]
	if m.err != nil || q.Key != k || q.StateAt(now) != Approved {
		return false, m.err
	}
	q.State = Used
	return true, nil
}

func (m *memory) VoidApproval(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all[id].State = Expired
	return m.err
}

func (m *memory) UseLease(context.Context, *Call, CallKey, auth.OperationLane, time.Time, func(*Lease) bool) (id, record string, err error) {
	return "", "", m.err
}

func held(actor string, told *[]time.Duration) HeldCall {
	h := HeldCall{CallLane: auth.Write, Wait: 45 * time.Second, BeginRecord: func() (string, error) { return "record", nil }, EndRecord: func(error) {}, Recheck: func() error { return nil }}
	h.Call = Call{Principal: actor, ID: tool.ID{Server: "s", Tool: "t"}, Arguments: []byte("{}")}
	h.Key = h.Call.Key()
	if told != nil {
		h.NotifyWaiting = func(waited time.Duration) { *told = append(*told, waited) }
	}
	return h
}

// TestWaiting checks that a waiting call reports progress every ten seconds until its time limit, and continues at
// once when there is an answer.
func TestWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{all: map[string]*Question{}}
		changes := 0
		h := NewWaiter(m, nil, time.Now, func() { changes++ })
		var told []time.Duration
		began := time.Now()
		_, err := h.AwaitApproval(t.Context(), held("a", &told))
		if p := problem.From(err); p.Code != problem.ApprovalPending || time.Since(began) != 45*time.Second || changes != 1 {
			t.Errorf("%v after %v, %d changes", err, time.Since(began), changes)
		}
		if want := []time.Duration{10 * time.Second, 20 * time.Second, 30 * time.Second, 40 * time.Second}; !slices.Equal(told, want) {
			t.Errorf("progress was reported after %v", told)
		}
		var pass Approval
		go func() { pass, err = h.AwaitApproval(t.Context(), held("a", nil)) }()
		time.Sleep(7 * time.Second)
		keys, bad := m.answer(Answer{Approve: true, By: "admin", At: time.Now()})
		if bad != nil {
			t.Fatal(bad)
		}
		for _, k := range keys {
			h.WakeCalls(k)
		}
		synctest.Wait()
		if err != nil || pass.Record != "record" || m.all[pass.ID] == nil || h.CountWaitingCalls() != 0 || len(h.waiting)+len(h.actors) != 0 {
			t.Errorf("%+v, %v, %d calls wait", pass, err, h.CountWaitingCalls())
		}
	})
}

// TestAnswerBeforeTheWait checks that an answer is not missed if it arrives when the question is stored, before the
// call waits for it.
func TestAnswerBeforeTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{all: map[string]*Question{}}
		var h *Waiter
		h = NewWaiter(m, nil, time.Now, sync.OnceFunc(func() { // the question is stored
			keys, err := m.answer(Answer{Approve: true, By: "admin", At: time.Now()})
			if err != nil {
				t.Error(err)
			}
			for _, k := range keys {
				h.WakeCalls(k)
			}
		}))
		began := time.Now()
		if pass, err := h.AwaitApproval(t.Context(), held("a", nil)); err != nil || pass.ID == "" || time.Since(began) != 0 {
			t.Errorf("%+v, %v after %v", pass, err, time.Since(began))
		}
	})
}

// TestClientIsAskedOnce checks that a client is asked once for each question, until the call continues or ends. An
// answer that ends the call does so at once.
func TestClientIsAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{all: map[string]*Question{}}
		h := NewWaiter(m, nil, time.Now, func() {})
		var shown []string
		done := 0
		c := held("a", nil)
		waits := true
		c.AskClient = func(q *Question) (func(), bool) {
			shown = append(shown, q.ID)
			return func() { done++ }, waits
		}
		began := time.Now()
		if _, err := h.AwaitApproval(t.Context(), c); problem.From(err).Code != problem.ApprovalPending || time.Since(began) != c.Wait || len(shown) != 1 || done != 1 || m.all[shown[0]] == nil {
			t.Errorf("%v: asked %q, %d done", err, shown, done)
		}
		if !h.KnowsQuestion(t.Context(), shown[0]) || h.KnowsQuestion(t.Context(), "another") {
			t.Error("KnowsQuestion does not know a question")
		}
		c.Wait = time.Hour
		ended := make(chan error)
		go func() { _, err := h.AwaitApproval(t.Context(), c); ended <- err }()
		time.Sleep(Life + time.Minute) // the question has expired
		h.WakeAll()
		synctest.Wait()
		if len(shown) != 3 || shown[1] != shown[0] || shown[2] == shown[0] || done != 2 {
			t.Errorf("asked %q, %d done", shown, done)
		}
		h.EndAllWaits()
		if err := <-ended; problem.From(err).Code != problem.ApprovalPending || done != 3 {
			t.Errorf("%v, %d done", err, done)
		}
		h = NewWaiter(m, nil, time.Now, func() {})
		began, waits = time.Now(), false
		if _, err := h.AwaitApproval(t.Context(), c); problem.From(err).Code != problem.ApprovalPending || time.Since(began) != 0 || done != 4 {
			t.Errorf("%v after %v, %d done", err, time.Since(began), done)
		}
	})
}

// TestBounds checks that the number of waiting calls is limited, in total and per actor, and that a call that stops
// waiting frees its slot.
func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewWaiter(&memory{all: map[string]*Question{}}, nil, time.Now, func() {})
		ctx, leave := context.WithCancel(t.Context())
		for actor := range maxHeld / MaxOfActor {
			for range MaxOfActor {
				go func() { _, _ = h.AwaitApproval(ctx, held(strings.Repeat("x", actor+1), nil)) }()
			}
		}
		synctest.Wait()
		for _, actor := range []string{"x", "another"} {
			if _, err := h.AwaitApproval(t.Context(), held(actor, nil)); problem.From(err).Code != problem.Overloaded {
				t.Errorf("one more call of %s: %v", actor, err)
			}
		}
		leave()
		synctest.Wait()
		if _, err := h.AwaitApproval(t.Context(), held("x", nil)); problem.From(err).Code != problem.ApprovalPending {
			t.Errorf("a call when there is room: %v", err)
		}
	})
}

// TestUnstoredQuestionRefuses checks that a call whose question cannot be stored is refused, and that its record
// contains the reason.
func TestUnstoredQuestionRefuses(t *testing.T) {
	h := NewWaiter(&memory{err: errors.New("the disk is full")}, nil, time.Now, func() { t.Error("changed was called") })
	c := held("a", nil)
	if _, err := h.AwaitApproval(t.Context(), c); problem.From(err).Code != problem.ServerUnavailable {
		t.Errorf("%v", err)
	}
	m := &memory{all: map[string]*Question{}}
	h = NewWaiter(m, nil, time.Now, func() {})
	var ended error
	c.BeginRecord = func() (string, error) { m.err = TooManyWaitingProblem(); return "record", nil }
	c.EndRecord = func(err error) { ended = err }
	if _, err := h.AwaitApproval(t.Context(), c); problem.From(err).Code != problem.Overloaded || ended == nil {
		t.Errorf("%v, recorded: %v", err, ended)
	}
	c.BeginRecord = func() (string, error) { return "", problem.New(problem.AuditUnavailable, "no log", "") }
	m.err = nil
	if _, err := h.AwaitApproval(t.Context(), c); problem.From(err).Code != problem.AuditUnavailable || len(m.all) != 0 {
		t.Errorf("%v, and %d questions", err, len(m.all))
	}
	c.Recheck = func() error { return errors.ErrUnsupported }
	if _, err := h.AwaitApproval(t.Context(), c); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("%v", err)
	}
}
