package upstream

import (
	"context"
	"math"
	"time"

	"mcpproxy/internal/problem"
)

// The bounds of restarts that agents ask for.
const (
	restartPause = 10 * time.Second // after the last one, whoever asked for that
	quietTime    = 3 * time.Second  // how long calls in flight are waited for, and new ones wait
	quietLook    = 5 * time.Millisecond
)

// restartQuietly is Set.RestartQuietly.
func (s *Server) restartQuietly(ctx context.Context, begin func() error) error {
	if err := s.availability.claim(); err != nil {
		return err
	}
	defer s.availability.release()
	c := s.availability.live.Load()
	var err error
	if c != nil {
		c.leaving.Store(true)
		err = s.untilQuiet(ctx, c)
	}
	if err == nil {
		err = begin()
	}
	if err != nil {
		if c != nil { // back into use
			c.leaving.Store(false)
			s.availability.look()
		}
		return err
	}
	s.Clients.End(Spare)
	s.restart()
	return nil
}

// untilQuiet waits until nothing is in flight on c, to which nothing new goes
// since it is leaving.
func (s *Server) untilQuiet(ctx context.Context, c *Connection) error {
	limit, look := time.NewTimer(quietTime), time.NewTicker(quietLook)
	defer limit.Stop()
	defer look.Stop()
	for !s.quiet(c) {
		select {
		case <-look.C:
		case <-c.link.Done():
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-limit.C:
			return problem.Newf(problem.Overloaded, "Server '%s' is not restarted: calls are in flight, which a restart would end.", s.Spec.Name).
				WithHint("Ask again when they have ended, or ask the user to restart it with `mcpproxy upstream restart "+s.Spec.Name+"`.").
				With("server", s.Spec.Name).With("retry_after", int(restartPause.Seconds()))
		}
	}
	return nil
}

// quiet reports whether all who use the server wait for its connection. Who
// only listens goes on with the next one.
func (s *Server) quiet(c *Connection) bool {
	waiting := int64(s.availability.waiting()) // for the next connection
	return s.usage.uses.Load()-s.usage.listening.Load() <= waiting && !c.busy()
}

// claim takes the turn of a restart that an agent asks for, or says when it may
// be asked for.
func (p *availability) claim() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, phase := time.Now(), p.state.Phase
	wait := p.restarted.Add(restartPause).Sub(now)
	refused := func(why string, wait time.Duration) error {
		seconds := int(math.Ceil(wait.Seconds()))
		return problem.Newf(problem.Overloaded, "Server '%s' is not restarted: %s.", p.state.Name, why).
			WithHint("Ask again in "+(time.Duration(seconds)*time.Second).String()+" if it is still needed; calls reach the server without a restart.").
			With("server", p.state.Name).With("retry_after", seconds)
	}
	switch {
	case p.restarting || p.again:
		return refused("it is being restarted already", max(wait, quietTime))
	case phase == Connecting || phase == Stopped:
		return refused("it is being started", max(wait, restartPause))
	case wait > 0:
		return refused("it was a moment ago", wait)
	}
	p.restarting, p.restarted = true, now
	return nil
}

// release ends the turn.
func (p *availability) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.restarting = false
}
