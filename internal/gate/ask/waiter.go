package ask

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"time"

	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate/presence"
	"mcpproxy/internal/problem"
)

// Store stores questions and leases. See store.ApprovalQuestionStore.
type Store interface {
	FindQuestion(ctx context.Context, k CallKey, now time.Time) (q Question, found bool, err error)
	AddQuestion(ctx context.Context, q Question) (stored Question, fresh bool, err error)
	LoadQuestion(ctx context.Context, id string) (Question, error)
	UseApproval(ctx context.Context, id string, k CallKey, now time.Time) (ok bool, err error)
	// VoidApproval ends an approval that is not valid.
	VoidApproval(ctx context.Context, id string) error
	// UseLease consumes one call of a lease that covers c and that counts accepts.
	UseLease(ctx context.Context, c *Call, k CallKey, lane auth.OperationLane, now time.Time, counts func(*Lease) bool) (id, record string, err error)
}

// HeldCall is a call that needs an approval.
type HeldCall struct {
	Question                    // the new question, if none is open
	CallLane auth.OperationLane // lane of the call
	Wait     time.Duration      // limit for the answer
	// BeginRecord and EndRecord record the held call. BeginRecord is called before the question is stored. EndRecord
	// is called when it is stored, or with the error if that failed.
	BeginRecord func() (record string, err error)
	EndRecord   func(err error)
	// Recheck returns an error if the call no longer matches the question.
	Recheck func() error
	// NotifyWaiting is called every NotifyInterval while the call waits. It may be nil.
	NotifyWaiting func(waited time.Duration)
	// AskClient asks the calling client itself while the call waits, until done is called. It is nil if the client
	// cannot be asked. If waits is false, the call ends, so that the client can answer.
	AskClient func(q *Question) (done func(), waits bool)
}

// NotifyInterval is the interval of progress notifications to the caller.
const NotifyInterval = 10 * time.Second

// storeTime is the time limit of a store operation.
const storeTime = 10 * time.Second

// Approval allows a call to continue.
type Approval struct {
	ID     string // ID of the question or the lease
	Record string // record of the held call; "" if it was not held
}

// Waiter makes calls wait until they are approved.
type Waiter struct {
	store   Store
	gate    *presence.Gate
	now     func() time.Time
	changed func() // called when a question or a lease has changed

	mu      sync.Mutex // guards the following fields
	stopped bool
	all     int
	actors  map[string]int
	waiting map[CallKey]*waitersForKey
}

// waitersForKey are the waiting calls with one key.
type waitersForKey struct {
	n    int
	wake chan struct{} // closed when there may be an answer
}

// NewWaiter returns a Waiter. The gate determines which approvals and leases are valid; nil means all. changed is
// called when the open questions change.
func NewWaiter(k Store, gate *presence.Gate, now func() time.Time, changed func()) *Waiter {
	return &Waiter{store: k, gate: gate, now: now, changed: changed, actors: map[string]int{}, waiting: map[CallKey]*waitersForKey{}}
}

// WakeCalls wakes the calls with a key.
func (h *Waiter) WakeCalls(k CallKey) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if w := h.waiting[k]; w != nil {
		w.wakeAll()
	}
}

// WakeAll wakes all calls, because there may be new answers or leases.
func (h *Waiter) WakeAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range h.waiting {
		w.wakeAll()
	}
}

func (w *waitersForKey) wakeAll() {
	close(w.wake)
	w.wake = make(chan struct{})
}

// EndAllWaits ends all current and future waits.
func (h *Waiter) EndAllWaits() {
	h.mu.Lock()
	h.stopped = true
	h.mu.Unlock()
	h.WakeAll()
}

// registerWaiter registers a waiting call.
func (h *Waiter) registerWaiter(k CallKey, actor string) (leave func(), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all >= maxHeld || h.actors[actor] >= MaxOfActor {
		return nil, TooManyWaitingProblem()
	}
	w := h.waiting[k]
	if w == nil {
		w = &waitersForKey{wake: make(chan struct{})}
		h.waiting[k] = w
	}
	w.n++
	h.all++
	h.actors[actor]++
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.all--
		if h.actors[actor]--; h.actors[actor] == 0 {
			delete(h.actors, actor)
		}
		if w.n--; w.n == 0 {
			delete(h.waiting, k)
		}
	}, nil
}

// wakeChannel returns a channel that is closed at the next change, and whether the Waiter is stopped.
func (h *Waiter) wakeChannel(k CallKey) (wake <-chan struct{}, stopped bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.waiting[k].wake, h.stopped
}

// AwaitApproval returns when the call may continue. Its errors are problems, the error of Recheck, or the error of
// ctx. After a denial the Approval contains only the record.
func (h *Waiter) AwaitApproval(ctx context.Context, c HeldCall) (Approval, error) {
	leave, err := h.registerWaiter(c.Key, c.Principal)
	if err != nil {
		return Approval{}, err
	}
	defer leave()
	began := time.Now()
	over := time.NewTimer(c.Wait)
	defer over.Stop()
	tell := time.NewTicker(NotifyInterval)
	defer tell.Stop()
	done := func() {}
	defer func() { done() }()
	for asked, shown := "", ""; ; {
		wake, stopped := h.wakeChannel(c.Key) // get it before reading the store, so that no change is missed
		pass, q, err := h.useApprovalOrAsk(ctx, &c, asked)
		switch asked = q.ID; {
		case err != nil || pass.ID != "":
			return pass, err
		case stopped:
			return Approval{}, pendingProblem(&q, "MCPProxy is stopping, so the call no longer waits.")
		}
		if c.AskClient != nil && shown != q.ID {
			done()
			waits := false
			if done, waits = c.AskClient(&q); !waits {
				return Approval{}, pendingProblem(&q, "Your client is asked now.")
			}
			shown = q.ID
		}
		for waits := true; waits; {
			select {
			case <-wake:
				waits = false
			case <-tell.C:
				if c.NotifyWaiting != nil {
					c.NotifyWaiting(time.Since(began))
				}
			case <-over.C:
				return Approval{}, pendingProblem(&q, "No one has answered yet.")
			case <-ctx.Done():
				return Approval{}, ctx.Err()
			}
		}
	}
}

// useApprovalOrAsk looks for an approval or lease, and stores a question if there is none. asked is the current
// question of the call, "" if there is none. If the call has to wait, it returns neither an approval nor an error.
func (h *Waiter) useApprovalOrAsk(ctx context.Context, c *HeldCall, asked string) (Approval, Question, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	for {
		if err := c.Recheck(); err != nil {
			return Approval{}, Question{}, err
		}
		lease, record, err := h.store.UseLease(ctx, &c.Call, c.Key, c.CallLane, h.now(), func(l *Lease) bool { return h.gate.SpendUse(LeaseClaim(l), int(l.Calls)) })
		if err != nil || lease != "" {
			h.notifyIfChanged(lease != "")
			return Approval{ID: lease, Record: record}, Question{}, storeFailedProblem(ctx, err)
		}
		q, err := h.currentOrNewQuestion(ctx, c, asked)
		if err != nil {
			return Approval{}, q, storeFailedProblem(ctx, err)
		}
		switch q.StateAt(h.now()) {
		case Waiting:
			return Approval{}, q, nil
		case Denied:
			return Approval{Record: q.Record}, q, deniedProblem(&q)
		case Approved:
			approval := CallClaim(q.ID, q.Until, &c.Question)
			if !h.gate.HasUsesLeft(approval, 1) {
				if err := h.store.VoidApproval(ctx, q.ID); err != nil {
					return Approval{}, q, storeFailedProblem(ctx, err)
				}
				break
			}
			used, err := h.store.UseApproval(ctx, q.ID, c.Key, h.now())
			if used = used && h.gate.SpendUse(approval, 1); err != nil || used {
				h.notifyIfChanged(used)
				return Approval{ID: q.ID, Record: q.Record}, q, storeFailedProblem(ctx, err)
			}
		}
		asked = "" // the question is used or expired
		if ctx.Err() != nil {
			return Approval{}, q, storeFailedProblem(ctx, ctx.Err())
		}
	}
}

func (h *Waiter) notifyIfChanged(something bool) {
	if something {
		h.changed()
	}
}

// currentOrNewQuestion returns the question of the call: the current one, an answered one, or a new one.
func (h *Waiter) currentOrNewQuestion(ctx context.Context, c *HeldCall, asked string) (Question, error) {
	if asked != "" {
		return h.store.LoadQuestion(ctx, asked)
	}
	q, found, err := h.store.FindQuestion(ctx, c.Key, h.now())
	if err != nil || found {
		return q, err
	}
	record, err := c.BeginRecord()
	if err != nil {
		return q, err
	}
	q = c.Question
	q.ID, q.Record, q.State, q.Asked = strings.ToLower(rand.Text()[:16]), record, Waiting, h.now()
	q.Last, q.Until = q.Asked, q.Asked.Add(Life)
	q, fresh, err := h.store.AddQuestion(ctx, q)
	err = storeFailedProblem(ctx, err)
	c.EndRecord(err)
	h.notifyIfChanged(fresh)
	return q, err
}

// storeFailedProblem returns the problem of a call that is not sent because the store failed.
func storeFailedProblem(ctx context.Context, err error) error {
	if _, said := errors.AsType[*problem.Problem](err); err == nil || said || errors.Is(context.Cause(ctx), context.Canceled) {
		return err
	}
	return problem.New(problem.ServerUnavailable, "The call requires the user's approval, but approvals cannot be read or stored now. The call was not sent.",
		"Try again in a moment; see `mcpproxy status`.").Because(err)
}

func pendingProblem(q *Question, why string) *problem.Problem {
	return problem.Newf(problem.ApprovalPending, "The call to '%s' waits for the user's approval, and was not made. %s", q.Call.ID.String(), why).
		WithHint("Ask the user; then call again with the same arguments.").With("approval_id", q.ID)
}

func deniedProblem(q *Question) *problem.Problem {
	text := "The user has denied the call to '" + q.Call.ID.String() + "', so it was not made."
	if q.Why != "" {
		text += " The reason: " + problem.ClipForDisplay(q.Why, MaxReason)
	}
	return problem.New(problem.ApprovalDenied, text, "Do not repeat this call: follow the user's answer, or ask the user what to do instead.").With("approval_id", q.ID)
}

// KnowsQuestion reports whether a question with this ID exists or existed, as far as known.
func (h *Waiter) KnowsQuestion(ctx context.Context, id string) bool {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	_, err := h.store.LoadQuestion(ctx, id)
	return err == nil
}

// CountWaitingCalls returns the number of waiting calls.
func (h *Waiter) CountWaitingCalls() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.all
}
