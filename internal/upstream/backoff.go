package upstream

import (
	"context"
	"math/rand/v2"
	"time"
)

// longestPause is what the pause after a try is at most for the time that the
// try took.
const longestPause = time.Minute

// demandPause is how long a caller waits for the next try, the last one of
// which began at start: not at all but after one that has just been. One that
// took long and failed is dear, and callers may come without end.
func (s *server) demandPause(start time.Time, failed bool) time.Duration {
	pause := max(0, demandPause-time.Since(start))
	if at := s.snapshot().FailedAt; failed {
		took := at.Sub(time.Unix(0, s.began.Load()))
		pause = max(pause, min(took, maxDemandPause)-time.Since(at))
	}
	return pause
}

// lose puts the state to Failed and settles when the next try is due.
func (s *server) lose(err error, failed bool, bo *backoff) {
	wait := bo.next()
	if failed { // what starts slowly and fails is dear
		wait = max(wait, min(time.Since(time.Unix(0, s.began.Load())), longestPause))
	}
	err = s.mask.Err(err)
	failure := failureOf(err).masked(s.mask)
	asked := false
	s.update(func(st *State) {
		asked = s.again
		if asked { // by a person: no failure, and nothing to wait for
			s.lastErr = errRestart
			st.Phase, st.LastError, st.Failure, st.RetryAt, st.PID = Connecting, "", Failure{}, time.Time{}, 0
			return
		}
		if failed {
			s.failures++
		}
		s.lastErr = err
		st.Phase, st.LastError, st.Failure, st.FailedAt = Failed, failure.Detail, failure, time.Now()
		st.RetryAt, st.PID = st.FailedAt.Add(wait), 0
		s.failed = *st
	})
	if asked {
		return
	}
	s.opt.Logger.Info("server not connected", "server", s.spec.Name, "error", err, "retry_in", wait)
}

// waitToRetry waits until the next try is due, or a caller needs the server,
// or Restart asks for it. start is when the last try began, which may have
// failed.
func (s *server) waitToRetry(ctx context.Context, start time.Time, failed bool, bo *backoff) {
	due := time.NewTimer(time.Until(s.snapshot().RetryAt))
	defer due.Stop()
	var demanded <-chan time.Time
	for {
		s.mu.Lock()
		needed, again := s.waiters > 0, s.again
		s.again, s.hasty = false, s.hasty || again
		s.mu.Unlock()
		if again {
			bo.reset()
			return
		}
		if needed && demanded == nil {
			demanded = time.After(s.demandPause(start, failed))
		}
		select {
		case <-ctx.Done():
			return
		case <-due.C:
			return
		case <-demanded:
			return
		case <-s.nudge:
		}
	}
}

// backoff is the pause before the next try: doubling, with jitter.
type backoff struct{ tries int }

func (b *backoff) reset() { b.tries = 0 }

func (b *backoff) next() time.Duration {
	d := maxBackoff
	if b.tries < 10 {
		d = min(minBackoff<<b.tries, maxBackoff)
	}
	b.tries++
	return d/2 + rand.N(d/2)
}
