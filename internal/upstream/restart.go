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

// Restart ends the server's connection, if any, and makes a new one at once.
// What is in flight ends with it: it is for a person.
func (s *Set) Restart(server string) error {
	sv := s.find(server)
	if sv == nil {
		return notStarted(server)
	}
	sv.restart()
	sv.talks.endWithConnection()
	return nil
}

// RestartQuietly does the same for an agent, who must not disturb others: it
// ends no call in flight and no client's own session, and is refused while the
// server is being started and for a while after a restart. Calls that come
// meanwhile wait for the new connection. begin is called right before the
// connection is ended: when it fails nothing is done.
func (s *Set) RestartQuietly(ctx context.Context, server string, begin func() error) error {
	sv := s.find(server)
	if sv == nil {
		return notStarted(server)
	}
	if err := sv.claimRestart(time.Now()); err != nil {
		return err
	}
	defer sv.endRestart()
	l := sv.live.Load()
	if l != nil {
		l.leaving.Store(true)
		if err := sv.untilQuiet(ctx, l); err != nil {
			sv.stay(l)
			return err
		}
	}
	if err := begin(); err != nil {
		if l != nil {
			sv.stay(l)
		}
		return err
	}
	sv.newer.drop()
	sv.restart()
	return nil
}

// claimRestart takes the turn of a restart that an agent asks for, or says when
// it may be asked for.
func (s *server) claimRestart(now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	wait := s.restarted.Add(restartPause).Sub(now)
	refused := func(why string, wait time.Duration) error {
		seconds := int(math.Ceil(wait.Seconds()))
		return problem.Newf(problem.Overloaded, "Server '%s' is not restarted: %s.", s.spec.Name, why).
			WithHint("Ask again in "+(time.Duration(seconds)*time.Second).String()+" if it is still needed; calls reach the server without a restart.").
			With("server", s.spec.Name).With("retry_after", seconds)
	}
	switch phase := s.state.Phase; {
	case s.restarting || s.again:
		return refused("it is being restarted already", max(wait, quietTime))
	case phase == Connecting || phase == Stopped:
		return refused("it is being started", max(wait, restartPause))
	case wait > 0:
		return refused("it was a moment ago", wait)
	}
	s.restarting, s.restarted = true, now
	return nil
}

func (s *server) endRestart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.restarting = false
}

// untilQuiet waits until nothing is in flight on l, to which nothing new goes
// since it is leaving.
func (s *server) untilQuiet(ctx context.Context, l *liveLink) error {
	limit, look := time.NewTimer(quietTime), time.NewTicker(quietLook)
	defer limit.Stop()
	defer look.Stop()
	for !s.quiet(l) {
		select {
		case <-look.C:
		case <-l.link.Done():
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-limit.C:
			return problem.Newf(problem.Overloaded, "Server '%s' is not restarted: calls are in flight, which a restart would end.", s.spec.Name).
				WithHint("Ask again when they have ended, or ask the user to restart it with `mcpproxy upstream restart "+s.spec.Name+"`.").
				With("server", s.spec.Name).With("retry_after", int(restartPause.Seconds()))
		}
	}
	return nil
}

// quiet reports whether all who use the server wait for its connection. Who
// only listens goes on with the next one.
func (s *server) quiet(l *liveLink) bool {
	s.mu.Lock()
	waiters := int64(s.waiters) // for the next connection
	s.mu.Unlock()
	return s.uses.Load()-s.listening.Load() <= waiters && !l.busy()
}

// stay takes a connection back into use that was leaving.
func (s *server) stay(l *liveLink) {
	l.leaving.Store(false)
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changed)
	s.changed = make(chan struct{})
}

// restart ends the connection, or the try, and makes a new one at once. Clients
// that share the connection go on with the new one.
func (s *server) restart() {
	s.mu.Lock()
	s.again, s.learnt, s.restarted = true, nil, time.Now()
	if s.interrupt != nil {
		s.interrupt()
	}
	s.mu.Unlock()
	signal(s.nudge)
}
