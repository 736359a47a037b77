package gateway

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
	all      *semaphore.Weighted // nil = no limit
	servers  map[string]*semaphore.Weighted
	waiting  atomic.Int64
	queue    int64
	patience time.Duration
}

func newAdmission(cfg *config.Config) *admission {
	a := &admission{
		all: limit(cfg.MaxConcurrent), servers: map[string]*semaphore.Weighted{},
		queue: int64(cfg.QueueSize), patience: cfg.QueueTimeout,
	}
	for _, s := range cfg.Servers {
		if s.MaxConcurrent > 0 {
			a.servers[s.Name] = limit(s.MaxConcurrent)
		}
	}
	return a
}

func limit(n int) *semaphore.Weighted {
	if n <= 0 {
		return nil
	}
	return semaphore.NewWeighted(int64(n))
}

// enter takes a place for a call of the server, waiting if it must. The error
// is OVERLOADED, or ctx's.
func (a *admission) enter(ctx context.Context, server string) (release func(), err error) {
	own := a.servers[server]
	if a.all == nil && own == nil {
		return func() {}, nil
	}
	if err := a.take(ctx, own, server); err != nil {
		return nil, err
	}
	// The server's place first: who waits for a slow server takes no place
	// that calls of others could use.
	if err := a.take(ctx, a.all, server); err != nil {
		give(own)
		return nil, err
	}
	return func() { give(a.all); give(own) }, nil
}

func (a *admission) take(ctx context.Context, s *semaphore.Weighted, server string) error {
	if s == nil || s.TryAcquire(1) {
		return nil
	}
	if a.waiting.Add(1) > a.queue {
		a.waiting.Add(-1)
		return overloaded(server, "the queue is full")
	}
	defer a.waiting.Add(-1)
	waiting, cancel := context.WithTimeout(ctx, a.patience)
	defer cancel()
	if err := s.Acquire(waiting, 1); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return overloaded(server, "no place became free in "+a.patience.String())
	}
	return nil
}

func give(s *semaphore.Weighted) {
	if s != nil {
		s.Release(1)
	}
}

func overloaded(server, why string) *problem.Problem {
	return problem.Newf(problem.Overloaded, "Too many calls at once: %s.", why).
		WithHint("Try again in a moment; max_concurrent_calls, queue_size and queue_timeout in mcp_config.json set the limits.").
		With("server", server)
}
