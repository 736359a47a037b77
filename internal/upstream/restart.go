package upstream

import (
	"context"
	"time"

	"mcpproxy/internal/problem"
)

// restartQuietly is Set.RestartQuietly.
func (s *Server) restartQuietly(ctx context.Context, begin func() error) error {
	if err := s.wishes.claim(s.Spec.Name, s.presence.snapshot().Phase, time.Now()); err != nil {
		return err
	}
	defer s.wishes.release()
	c := s.presence.live.Load()
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
			s.presence.look()
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
	waiting := int64(s.presence.waiting()) // for the next connection
	return s.usage.uses.Load()-s.usage.listening.Load() <= waiting && !c.busy()
}
