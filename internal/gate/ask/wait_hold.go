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

// Store stores questions and leases: see store.Asks.
type Store interface {
	Find(ctx context.Context, k Key, now time.Time) (q Question, found bool, err error)
	Add(ctx context.Context, q Question) (stored Question, fresh bool, err error)
	Question(ctx context.Context, id string) (Question, error)
	Use(ctx context.Context, id string, k Key, now time.Time) (ok bool, err error)
	// Void ends an approval that does not count.
	Void(ctx context.Context, id string) error
	// Lease uses a call of a lease that covers it and that counts accepts.
	Lease(ctx context.Context, c *Call, k Key, lane auth.Lane, now time.Time, counts func(*Lease) bool) (id, record string, err error)
}

// HeldCall is a call that needs an approval.
type HeldCall struct {
	Question               // the new question, if none is open
	Worst    auth.Lane     // lane of the call
	Wait     time.Duration // limit for the answer
	// Begin and End record the held call: Begin before the question is stored, End when it is, or with the
	// reason why it is not.
	Begin func() (record string, err error)
	End   func(err error)
	// Still returns an error if the call no longer matches the question.
	Still func() error
	// Tell is called every TellEvery while the call waits; may be nil.
	Tell func(waited time.Duration)
	// Ask asks the calling client itself while the call waits, until done; nil if that is impossible. If
	// waits is false the call ends, so that the client can answer.
	Ask func(q *Question) (done func(), waits bool)
}

// TellEvery is the interval of progress notifications to the caller.
const TellEvery = 10 * time.Second

// storeTime limits a store operation.
const storeTime = 10 * time.Second

// Pass allows a call to continue.
type Pass struct {
	ID     string // of the question or the lease
	Record string // of the held call; "" if it was not held
}

// Waiter holds calls until they are approved.
type Waiter struct {
	store   Store
	gate    *presence.Gate
	now     func() time.Time
	changed func() // called when a question or a lease has changed

	mu      sync.Mutex // guards the following fields
	stopped bool
	all     int
	actors  map[string]int
	waiting map[Key]*waiters
}

// waiters are the waiting calls with one key.
type waiters struct {
	n    int
	wake chan struct{} // closed when there may be an answer
}

// NewWaiter returns a Waiter. The gate says which approvals and leases count, nil: all; changed is called
// when the open questions change.
func NewWaiter(k Store, gate *presence.Gate, now func() time.Time, changed func()) *Waiter {
	return &Waiter{store: k, gate: gate, now: now, changed: changed, actors: map[string]int{}, waiting: map[Key]*waiters{}}
}

// Answered wakes the calls with a key.
func (h *Waiter) Answered(k Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if w := h.waiting[k]; w != nil {
		w.wakeAll()
	}
}

// WakeAll wakes all calls: there may be new answers or leases.
func (h *Waiter) WakeAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range h.waiting {
		w.wakeAll()
	}
}

func (w *waiters) wakeAll() {
	close(w.wake)
	w.wake = make(chan struct{})
}

// Stop ends all current and future waits.
func (h *Waiter) Stop() {
	h.mu.Lock()
	h.stopped = true
	h.mu.Unlock()
	h.WakeAll()
}

// enter registers a waiting call.
func (h *Waiter) enter(k Key, actor string) (leave func(), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all >= maxHeld || h.actors[actor] >= MaxOfActor {
		return nil, TooMany()
	}
	w := h.waiting[k]
	if w == nil {
		w = &waiters{wake: make(chan struct{})}
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

// awake returns a channel that is closed at the next change, and whether the Waiter is stopped.
func (h *Waiter) awake(k Key) (wake <-chan struct{}, stopped bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.waiting[k].wake, h.stopped
}

// Hold returns when the call may continue. Its errors are problems, that of Still, or that of ctx; after a
// denial the pass has only the record.
func (h *Waiter) Hold(ctx context.Context, c HeldCall) (Pass, error) {
	leave, err := h.enter(c.Key, c.Principal)
	if err != nil {
		return Pass{}, err
	}
	defer leave()
	began := time.Now()
	over := time.NewTimer(c.Wait)
	defer over.Stop()
	tell := time.NewTicker(TellEvery)
	defer tell.Stop()
	done := func() {}
	defer func() { done() }()
	for asked, shown := "", ""; ; {
		wake, stopped := h.awake(c.Key) // before the store is read
		pass, q, err := h.consult(ctx, &c, asked)
		switch asked = q.ID; {
		case err != nil || pass.ID != "":
			return pass, err
		case stopped:
			return Pass{}, pending(&q, "MCPProxy is being stopped, so the call waits no longer.")
		}
		if c.Ask != nil && shown != q.ID {
			done()
			waits := false
			if done, waits = c.Ask(&q); !waits {
				return Pass{}, pending(&q, "Your client is asked now.")
			}
			shown = q.ID
		}
		for waits := true; waits; {
			select {
			case <-wake:
				waits = false
			case <-tell.C:
				if c.Tell != nil {
					c.Tell(time.Since(began))
				}
			case <-over.C:
				return Pass{}, pending(&q, "Nobody has answered yet.")
			case <-ctx.Done():
				return Pass{}, ctx.Err()
			}
		}
	}
}

// consult looks for an approval or lease, and stores a question if there is none. asked is the current
// question of the call, "" for none. It returns neither a pass nor an error if the call has to wait.
func (h *Waiter) consult(ctx context.Context, c *HeldCall, asked string) (Pass, Question, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	for {
		if err := c.Still(); err != nil {
			return Pass{}, Question{}, err
		}
		lease, record, err := h.store.Lease(ctx, &c.Call, c.Key, c.Worst, h.now(), func(l *Lease) bool { return h.gate.Spend(LeaseClaim(l), int(l.Calls)) })
		if err != nil || lease != "" {
			h.notifyChanged(lease != "")
			return Pass{ID: lease, Record: record}, Question{}, unreadable(ctx, err)
		}
		q, err := h.question(ctx, c, asked)
		if err != nil {
			return Pass{}, q, unreadable(ctx, err)
		}
		switch q.At(h.now()) {
		case Waiting:
			return Pass{}, q, nil
		case Denied:
			return Pass{Record: q.Record}, q, denied(&q)
		case Approved:
			approval := CallClaim(q.ID, q.Until, &c.Question)
			if !h.gate.Holds(approval, 1) {
				if err := h.store.Void(ctx, q.ID); err != nil {
					return Pass{}, q, unreadable(ctx, err)
				}
				break
			}
			used, err := h.store.Use(ctx, q.ID, c.Key, h.now())
			if used = used && h.gate.Spend(approval, 1); err != nil || used {
				h.notifyChanged(used)
				return Pass{ID: q.ID, Record: q.Record}, q, unreadable(ctx, err)
			}
		}
		asked = "" // it is used or expired
		if ctx.Err() != nil {
			return Pass{}, q, unreadable(ctx, ctx.Err())
		}
	}
}

func (h *Waiter) notifyChanged(something bool) {
	if something {
		h.changed()
	}
}

// question returns the question of the call: the current one, an answered one, or a new one.
func (h *Waiter) question(ctx context.Context, c *HeldCall, asked string) (Question, error) {
	if asked != "" {
		return h.store.Question(ctx, asked)
	}
	q, found, err := h.store.Find(ctx, c.Key, h.now())
	if err != nil || found {
		return q, err
	}
	record, err := c.Begin()
	if err != nil {
		return q, err
	}
	q = c.Question
	q.ID, q.Record, q.State, q.Asked = strings.ToLower(rand.Text()[:16]), record, Waiting, h.now()
	q.Last, q.Until = q.Asked, q.Asked.Add(Life)
	q, fresh, err := h.store.Add(ctx, q)
	err = unreadable(ctx, err)
	c.End(err)
	h.notifyChanged(fresh)
	return q, err
}

// unreadable returns the problem of a call that is not sent because the store failed.
func unreadable(ctx context.Context, err error) error {
	if _, said := errors.AsType[*problem.Problem](err); err == nil || said || errors.Is(context.Cause(ctx), context.Canceled) {
		return err
	}
	return problem.New(problem.ServerUnavailable, "The call has to be approved by a person, and the approvals cannot be read or stored now, so it was not made.",
		"Try again in a moment; see `mcpproxy status`.").Because(err)
}

func pending(q *Question, why string) *problem.Problem {
	return problem.Newf(problem.ApprovalPending, "The call of '%s' waits for the user's approval, and was not made. %s", q.Call.ID.String(), why).
		WithHint("Ask the user; then call again with the same arguments.").With("approval_id", q.ID)
}

func denied(q *Question) *problem.Problem {
	text := "The user has denied the call of '" + q.Call.ID.String() + "', so it was not made."
	if q.Why != "" {
		text += " The reason: " + problem.ClipForDisplay(q.Why, MaxReason)
	}
	return problem.New(problem.ApprovalDenied, text, "Do not make this call again as it is: do as the user says, or ask what to do instead.").With("approval_id", q.ID)
}

// Knows reports whether a question with this ID exists or existed, as far as known.
func (h *Waiter) Knows(ctx context.Context, id string) bool {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	_, err := h.store.Question(ctx, id)
	return err == nil
}

// Waiting returns the number of waiting calls.
func (h *Waiter) Waiting() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.all
}
