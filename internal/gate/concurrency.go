package gate

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"mcpproxy/internal/config"
	"mcpproxy/internal/problem"
)

// concurrencyLimiter limits how many calls run at once, in total and per server, how many calls may wait, and for how
// long. A new limiter is created when the limits change.
type concurrencyLimiter struct {
	global     *slots
	perServer  map[string]*slots
	waiting    *atomic.Int64
	maxWaiting int64
	maxWait    time.Duration
}

// newConcurrencyLimiter returns the limiter of a configuration. A limit that has not changed keeps its slots, so that
// a reload does not reset it. before may be nil.
func newConcurrencyLimiter(cfg *config.Config, before *concurrencyLimiter) *concurrencyLimiter {
	a := &concurrencyLimiter{
		global: newSlots(cfg.MaxConcurrent), perServer: map[string]*slots{},
		maxWaiting: int64(cfg.QueueSize), maxWait: cfg.QueueTimeout, waiting: new(atomic.Int64),
	}
	for _, s := range cfg.Servers {
		a.perServer[s.Name] = newSlots(serverConcurrencyLimit(cfg, s))
	}
	if before == nil {
		return a
	}
	a.waiting = before.waiting
	a.global = a.global.reuseIfSameSize(before.global)
	for name, own := range a.perServer {
		a.perServer[name] = own.reuseIfSameSize(before.perServer[name])
	}
	return a
}

// serverConcurrencyLimit returns how many calls of one server may run at once. A server without its own limit gets a
// quarter of the total, so that a server that hangs leaves slots for the others.
func serverConcurrencyLimit(cfg *config.Config, s config.Server) int {
	if s.MaxConcurrent > 0 || cfg.MaxConcurrent <= 0 {
		return s.MaxConcurrent
	}
	return max(1, cfg.MaxConcurrent/4)
}

// slots limits how many calls run at once; nil means no limit.
type slots struct {
	*semaphore.Weighted
	n int
}

func newSlots(n int) *slots {
	if n <= 0 {
		return nil
	}
	return &slots{semaphore.NewWeighted(int64(n)), n}
}

// reuseIfSameSize returns before if it has as many slots as p, otherwise p.
func (p *slots) reuseIfSameSize(before *slots) *slots {
	if p != nil && before != nil && p.n == before.n {
		return before
	}
	return p
}

// acquireSlots takes a slot of the server and a slot of the total, and waits for them. It returns how long it has
// waited; 0 means that it did not wait. The error is OVERLOADED, or the error of ctx.
func (a *concurrencyLimiter) acquireSlots(ctx context.Context, server string) (leave func(), waited time.Duration, err error) {
	own := a.perServer[server]
	if a.global == nil && own == nil {
		return func() {}, 0, nil
	}
	waited, err = a.acquireSlot(ctx, own, server)
	if err != nil {
		return nil, waited, err
	}
	// Take the slot of the server first: a call that waits for a slow server must not take a slot that calls of other
	// servers could use.
	also, err := a.acquireSlot(ctx, a.global, server)
	if err != nil {
		releaseSlot(own)
		return nil, waited + also, err
	}
	return func() { releaseSlot(a.global); releaseSlot(own) }, waited + also, nil
}

// queueFullProblem returns the problem of a call for which there is neither a slot nor a position in the queue; nil
// if it may wait. It may overlook that the queue is full; acquireSlot checks again.
func (a *concurrencyLimiter) queueFullProblem(server string) *problem.Problem {
	if a.waiting.Load() < a.maxWaiting || !a.perServer[server].allTaken() && !a.global.allTaken() {
		return nil
	}
	return overloadedProblem(server, "the queue is full")
}

// allTaken reports whether all slots are taken at this moment.
func (p *slots) allTaken() bool {
	if p == nil || !p.TryAcquire(1) {
		return p != nil
	}
	p.Release(1)
	return false
}

// acquireSlot takes one slot, and waits for it while the queue has room.
func (a *concurrencyLimiter) acquireSlot(ctx context.Context, s *slots, server string) (waited time.Duration, err error) {
	if s == nil || s.TryAcquire(1) {
		return 0, nil
	}
	began := time.Now()
	if a.waiting.Add(1) > a.maxWaiting {
		a.waiting.Add(-1)
		return 1, overloadedProblem(server, "the queue is full")
	}
	defer a.waiting.Add(-1)
	waiting, cancel := context.WithTimeout(ctx, a.maxWait)
	defer cancel()
	if err = s.Acquire(waiting, 1); err != nil && ctx.Err() != nil {
		err = ctx.Err()
	} else if err != nil {
		err = overloadedProblem(server, "no slot became free within "+a.maxWait.String())
	}
	return max(1, time.Since(began)), err
}

func releaseSlot(s *slots) {
	if s != nil {
		s.Release(1)
	}
}

func overloadedProblem(server, why string) *problem.Problem {
	return problem.Newf(problem.Overloaded, "Too many calls at once: %s.", why).
		WithHint("Try again in a moment; max_concurrent_calls, queue_size and queue_timeout in mcp_config.json set the limits.").
		With("server", server)
}
