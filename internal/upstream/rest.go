package upstream

import (
	"context"
	"errors"
	"time"
)

// pace is when a server runs. It can change while the server does.
type pace struct {
	idle time.Duration // stop it after that time without use; 0 = never
	lazy bool          // not started before it is used
}

// pace is what the spec says of it. A server in review runs: somebody looks at
// what it lists.
func (s Spec) pace() *pace {
	if s.Review {
		return &pace{}
	}
	p := &pace{lazy: s.Lazy}
	if s.Transport == Stdio {
		p.idle = s.IdleTimeout
	}
	return p
}

// setPace has the server run as the spec says from now on.
func (s *server) setPace(spec Spec) {
	s.pace.Store(spec.pace())
	signal(s.paced)
	signal(s.nudge)
}

// setShared has clients that come from now on share the connection, or not. Those
// that are there begin anew.
func (s *server) setShared(on bool) {
	if s.sharing.on.Swap(on) != on {
		s.talks.endAll(false)
	}
}

// enter and leave keep account of who needs the connection. Between them it is
// not ended for want of use.
func (s *server) enter() { s.uses.Add(1) }

func (s *server) leave() {
	s.noteUse()
	s.uses.Add(-1)
}

func (s *server) noteUse() { s.used.Store(int64(time.Since(s.born))) }

// inUse says whether somebody needs the server now: a request is in flight, or
// a client has a session of its own open, or waits to be told of a resource.
func (s *server) inUse() bool {
	return s.uses.Load() > 0 || s.talks.inUse() || s.sharing.subscribed()
}

// wake has the server started if it rests. It returns at once.
func (s *server) wake() {
	if s.live.Load() != nil {
		return
	}
	s.mu.Lock()
	s.wanted = true
	s.mu.Unlock()
	signal(s.nudge)
}

// takeWish says, once, whether a resting server is to be started.
func (s *server) takeWish() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	wish := s.waiters > 0 || s.wanted || s.again
	s.wanted, s.again = false, false
	s.hasty = wish
	return wish
}

var errIdle = errors.New("it was not used for idle_timeout")

// neverIdle is longer than any daemon runs.
const neverIdle = 100 * 365 * 24 * time.Hour

// untilIdle is the time after which the server has not been used for too long,
// if it is not used until then.
func (s *server) untilIdle() time.Duration {
	idle := s.pace.Load().idle
	switch {
	case idle <= 0:
		return neverIdle
	case s.inUse():
		return idle
	}
	return idle - (time.Since(s.born) - time.Duration(s.used.Load()))
}

// retire takes the connection out of use, unless somebody uses it. Who comes
// later waits for the next one.
func (s *server) retire(l *liveLink) bool {
	if s.untilIdle() > 0 {
		return false
	}
	// The order matters: who enters looks for the connection afterwards. Either
	// it is not found, or the use is seen here.
	s.live.Store(nil)
	if !s.inUse() {
		return true
	}
	s.live.Store(l)
	s.mu.Lock()
	close(s.changed) // somebody may have missed it meanwhile
	s.changed = make(chan struct{})
	s.mu.Unlock()
	return false
}

// sleep rests until the server is needed.
func (s *server) sleep(ctx context.Context) {
	s.slept = true
	s.update(func(st *State) {
		st.Phase, st.LastError, st.Failure, st.RetryAt, st.PID = Idle, "", Failure{}, time.Time{}, 0
		s.lastErr = nil
	})
	began := s.pace.Load()
	for !s.takeWish() {
		if p := s.pace.Load(); !p.lazy && (began.lazy || p.idle <= 0) {
			return // it is to run by now
		}
		select {
		case <-ctx.Done():
			return
		case <-s.nudge:
		}
	}
}
