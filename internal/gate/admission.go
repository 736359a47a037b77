package gate

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"mcpproxy/internal/config"
	"mcpproxy/internal/problem"
)

// admission bounds how many calls run at once, in all and for each server, and
// how many may wait for how long. It is made anew when the limits change.
type admission struct {
	all      *places
	servers  map[string]*places
	waiting  *atomic.Int64
	queue    int64
	patience time.Duration
}

// newAdmission follows the configuration. Limits that are as before keep their
// places (before may be nil), so that no reload lifts them.
func newAdmission(cfg *config.Config, before *admission) *admission {
	a := &admission{
		all: newPlaces(cfg.MaxConcurrent), servers: map[string]*places{},
		queue: int64(cfg.QueueSize), patience: cfg.QueueTimeout, waiting: new(atomic.Int64),
	}
	for _, s := range cfg.Servers {
		a.servers[s.Name] = newPlaces(serverLimit(cfg, s))
	}
	if before == nil {
		return a
	}
	a.waiting = before.waiting
	a.all = a.all.orSame(before.all)
	for name, own := range a.servers {
		a.servers[name] = own.orSame(before.servers[name])
	}
	return a
}

// serverLimit is how many calls of one server may run at once. Without a limit
// of its own it is a quarter of all, so that a server that hangs leaves places
// for the others.
func serverLimit(cfg *config.Config, s config.Server) int {
	if s.MaxConcurrent > 0 || cfg.MaxConcurrent <= 0 {
		return s.MaxConcurrent
	}
	return max(1, cfg.MaxConcurrent/4)
}

// places are how many calls may run at once; nil is no limit.
type places struct {
	*semaphore.Weighted
	n int
}

func newPlaces(n int) *places {
	if n <= 0 {
		return nil
	}
	return &places{semaphore.NewWeighted(int64(n)), n}
}

// orSame is before when it has as many places.
func (p *places) orSame(before *places) *places {
	if p != nil && before != nil && p.n == before.n {
		return before
	}
	return p
}

// enter takes a place for a call of the server, waiting if it must, and returns for
// how long it has waited: 0 only if it has not. The error is OVERLOADED, or ctx's.
func (a *admission) enter(ctx context.Context, server string) (leave func(), waited time.Duration, err error) {
	own := a.servers[server]
	if a.all == nil && own == nil {
		return func() {}, 0, nil
	}
	waited, err = a.take(ctx, own, server)
	if err != nil {
		return nil, waited, err
	}
	// The server's place first: who waits for a slow server takes no place
	// that calls of others could use.
	also, err := a.take(ctx, a.all, server)
	if err != nil {
		give(own)
		return nil, waited + also, err
	}
	return func() { give(a.all); give(own) }, waited + also, nil
}

// full refuses a call of the server for which there is neither a place nor room
// to wait for one. It may err in favour of the call: take has the last word.
func (a *admission) full(server string) *problem.Problem {
	if a.waiting.Load() < a.queue || !a.servers[server].taken() && !a.all.taken() {
		return nil
	}
	return overloaded(server, "the queue is full")
}

// taken reports whether all places are taken at this moment.
func (p *places) taken() bool {
	if p == nil || !p.TryAcquire(1) {
		return p != nil
	}
	p.Release(1)
	return false
}

func (a *admission) take(ctx context.Context, s *places, server string) (waited time.Duration, err error) {
	if s == nil || s.TryAcquire(1) {
		return 0, nil
	}
	began := time.Now()
	if a.waiting.Add(1) > a.queue {
		a.waiting.Add(-1)
		return 1, overloaded(server, "the queue is full")
	}
	defer a.waiting.Add(-1)
	waiting, cancel := context.WithTimeout(ctx, a.patience)
	defer cancel()
	if err = s.Acquire(waiting, 1); err != nil && ctx.Err() != nil {
		err = ctx.Err()
	} else if err != nil {
		err = overloaded(server, "no place became free in "+a.patience.String())
	}
	return max(1, time.Since(began)), err
}

func give(s *places) {
	if s != nil {
		s.Release(1)
	}
}

func overloaded(server, why string) *problem.Problem {
	return problem.Newf(problem.Overloaded, "Too many calls at once: %s.", why).
		WithHint("Try again in a moment; max_concurrent_calls, queue_size and queue_timeout in mcp_config.json set the limits.").
		With("server", server)
}
