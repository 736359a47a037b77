package upstream

import (
	"context"
	"math/rand/v2"
	"time"
)

// waitToRetry waits until the next try is due, or a caller needs the server,
// or Restart asks for it. start is when the last try began.
func (s *server) waitToRetry(ctx context.Context, start time.Time, bo *backoff) {
	due := time.NewTimer(time.Until(s.snapshot().RetryAt))
	defer due.Stop()
	var demanded <-chan time.Time
	for {
		s.mu.Lock()
		needed, again := s.waiters > 0, s.again
		s.again = false
		s.mu.Unlock()
		if again {
			bo.reset()
			return
		}
		if needed && demanded == nil {
			demanded = time.After(max(0, demandPause-time.Since(start)))
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
