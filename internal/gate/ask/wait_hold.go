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
	// Lease takes a call from a lease that covers it, and of which counts says that it counts.
	Lease(ctx context.Context, c *Call, k Key, lane auth.Lane, now time.Time, counts func(*Lease) bool) (id, record string, err error)
}

// HeldCall is a call that a person is asked about, as its gate has it.
type HeldCall struct {
	Question               // to be asked, where the same one is not open
	Worst    auth.Lane     // that the call counts as
	Wait     time.Duration // for the answer
	// Begin and End are the record of the call that is held: it begins before the question
	// is stored, and ends when it is, or with the reason why it is not.
	Begin func() (record string, err error)
	End   func(err error)
	// Still returns why the call is not any more what was asked about.
	Still func() error
	// Tell is called every TellEvery while the call waits; nil: nobody is told.
	Tell func(waited time.Duration)
	// Ask has the client itself asked, with a question that the call waits for, until done;
	// nil: it cannot be. Where waits is false the call ends, so that the client can answer.
	Ask func(q *Question) (done func(), waits bool)
}

// TellEvery is how often a caller is told that its call still waits.
const TellEvery = 10 * time.Second

// storeTime is how long the store may take.
const storeTime = 10 * time.Second

// Pass is what lets a call go on.
type Pass struct {
	ID     string // of the question, or of the lease
	Record string // of the call when it was held; "" when it never was
}

// Waiter has calls wait.
type Waiter struct {
	keeper  Store
	gate    *presence.Gate
	now     func() time.Time
	changed func() // is told that a question was asked, or used, or a lease

	mu      sync.Mutex // guards what follows
	stopped bool
	all     int
	actors  map[string]int
	waiting map[Key]*waiters
}

// waiters are the calls with one key that wait.
type waiters struct {
	n    int
	wake chan struct{} // closed when there may be an answer
}

// NewWaiter makes a Holder. The gate says which approvals and leases count, nil is all; changed is
// called when what waits is not what it was.
func NewWaiter(k Store, gate *presence.Gate, now func() time.Time, changed func()) *Waiter {
	return &Waiter{keeper: k, gate: gate, now: now, changed: changed, actors: map[string]int{}, waiting: map[Key]*waiters{}}
}

// Answered wakes the calls with a key.
func (h *Waiter) Answered(k Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if w := h.waiting[k]; w != nil {
		w.again()
	}
}

// Look wakes all calls: there may be other answers, or leases.
func (h *Waiter) Look() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range h.waiting {
		w.again()
	}
}

func (w *waiters) again() {
	close(w.wake)
	w.wake = make(chan struct{})
}

// Stop ends every wait, those that are to come, too.
func (h *Waiter) Stop() {
	h.mu.Lock()
	h.stopped = true
	h.mu.Unlock()
	h.Look()
}

// enter takes a place among those who wait.
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

// awake returns what is closed at the next change, and whether waiting is over for all.
func (h *Waiter) awake(k Key) (wake <-chan struct{}, stopped bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.waiting[k].wake, h.stopped
}

// Hold returns when the call may go on. Its errors are problems, what Still has returned,
// or ctx's; of a denial the pass has the record alone.
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
		wake, stopped := h.awake(c.Key) // before the store is asked
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

// consult looks for what lets the call go on, and asks where nobody has been asked. asked
// is the question that the call waits with, "" for none. It returns neither a pass nor an
// error when it has to wait for the question.
func (h *Waiter) consult(ctx context.Context, c *HeldCall, asked string) (Pass, Question, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	for {
		if err := c.Still(); err != nil {
			return Pass{}, Question{}, err
		}
		lease, record, err := h.keeper.Lease(ctx, &c.Call, c.Key, c.Worst, h.now(), func(l *Lease) bool { return h.gate.Spend(LeaseClaim(l), int(l.Calls)) })
		if err != nil || lease != "" {
			h.told(lease != "")
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
				if err := h.keeper.Void(ctx, q.ID); err != nil {
					return Pass{}, q, unreadable(ctx, err)
				}
				break
			}
			used, err := h.keeper.Use(ctx, q.ID, c.Key, h.now())
			if used = used && h.gate.Spend(approval, 1); err != nil || used {
				h.told(used)
				return Pass{ID: q.ID, Record: q.Record}, q, unreadable(ctx, err)
			}
		}
		asked = "" // it is used up, or over
		if ctx.Err() != nil {
			return Pass{}, q, unreadable(ctx, ctx.Err())
		}
	}
}

func (h *Waiter) told(something bool) {
	if something {
		h.changed()
	}
}

// question is the one that the call waits with, or has an answer by; or a new one.
func (h *Waiter) question(ctx context.Context, c *HeldCall, asked string) (Question, error) {
	if asked != "" {
		return h.keeper.Question(ctx, asked)
	}
	q, found, err := h.keeper.Find(ctx, c.Key, h.now())
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
	q, fresh, err := h.keeper.Add(ctx, q)
	err = unreadable(ctx, err)
	c.End(err)
	h.told(fresh)
	return q, err
}

// unreadable makes what is wrong with the store a problem, of a call that is not made.
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
		text += " The reason: " + problem.Shown(q.Why, MaxReason)
	}
	return problem.New(problem.ApprovalDenied, text, "Do not make this call again as it is: do as the user says, or ask what to do instead.").With("approval_id", q.ID)
}

// Knows reports whether there is or was a question with the id, as far as that can be told.
func (h *Waiter) Knows(ctx context.Context, id string) bool {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	_, err := h.keeper.Question(ctx, id)
	return err == nil
}

// Waiting returns how many calls wait.
func (h *Waiter) Waiting() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.all
}
