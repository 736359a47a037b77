package upstream

import (
	"context"
	"math"
	"time"

	"mcpproxy/internal/problem"
)

// Limits of restarts that agents request.
const (
	minRestartInterval = 10 * time.Second // minimum time since the last restart
	drainTimeout       = 3 * time.Second  // wait for calls in flight, during which new calls wait
	drainPollInterval  = 5 * time.Millisecond
	quietPollInterval  = 500 * time.Millisecond
)

// restartWhenDrained waits until no call is in flight, calls begin, and restarts the server; see
// Set.RestartWhenDrained.
func (s *Server) restartWhenDrained(ctx context.Context, begin func() error) error {
	if err := s.availability.reserveRestart(); err != nil {
		return err
	}
	defer s.availability.releaseRestart()
	c := s.availability.live.Load()
	var err error
	if c != nil {
		c.leaving.Store(true)
		err = s.waitDrained(ctx, c)
	}
	if err == nil {
		err = begin()
	}
	if err != nil {
		if c != nil { // accept requests again
			c.leaving.Store(false)
			s.availability.wakeWaiters()
		}
		return err
	}
	s.Clients.EndSessions(EndIdle)
	s.restartNow()
	return nil
}

// restartWhenQuiet restarts the server as soon as nothing is in flight on c. It gives up when c ends.
func (s *Server) restartWhenQuiet(ctx context.Context, c *Connection) {
	look := time.NewTicker(quietPollInterval)
	defer look.Stop()
	for {
		if s.isDrained(c) && s.restartWhenDrained(ctx, func() error { return ctx.Err() }) == nil {
			return
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
	}
}

// waitDrained waits until nothing is in flight on c, which accepts no new requests.
func (s *Server) waitDrained(ctx context.Context, c *Connection) error {
	limit, look := time.NewTimer(drainTimeout), time.NewTicker(drainPollInterval)
	defer limit.Stop()
	defer look.Stop()
	for !s.isDrained(c) {
		select {
		case <-look.C:
		case <-c.link.Done():
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-limit.C:
			return problem.Newf(problem.Overloaded, "Server '%s' was not restarted: calls are in flight, which a restart would end.", s.Spec.Name).
				WithHint("Ask again when they have ended, or ask the user to restart it with `mcpproxy upstream restart "+s.Spec.Name+"`.").
				With("server", s.Spec.Name).With("retry_after", int(minRestartInterval.Seconds()))
		}
	}
	return nil
}

// isDrained reports whether all users of the server wait for the next connection.
// Subscriptions continue on it.
func (s *Server) isDrained(c *Connection) bool {
	waiting := int64(s.availability.waiterCount()) // for the next connection
	return s.usageTracker.uses.Load()-s.usageTracker.listening.Load() <= waiting && !c.isBusy()
}

// reserveRestart reserves a restart for an agent. If none is allowed now, its error reports the earliest time.
func (p *availability) reserveRestart() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, phase := time.Now(), p.state.Phase
	wait := p.restarted.Add(minRestartInterval).Sub(now)
	refused := func(why string, wait time.Duration) error {
		seconds := int(math.Ceil(wait.Seconds()))
		return problem.Newf(problem.Overloaded, "Server '%s' was not restarted: %s.", p.state.Name, why).
			WithHint("Ask again in "+(time.Duration(seconds)*time.Second).String()+" if it is still needed; calls reach the server without a restart.").
			With("server", p.state.Name).With("retry_after", seconds)
	}
	switch {
	case p.restarting || p.restartRequested:
		return refused("it is being restarted already", max(wait, drainTimeout))
	case phase == Connecting || phase == Stopped:
		return refused("it is being started", max(wait, minRestartInterval))
	case wait > 0:
		return refused("it was restarted a moment ago", wait)
	}
	p.restarting, p.restarted = true, now
	return nil
}

// releaseRestart ends the reservation.
func (p *availability) releaseRestart() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.restarting = false
}
