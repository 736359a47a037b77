package gate

import (
	"context"
	"sync"
	"time"
)

// refusalRate is how fast one may be refused: so many times a second, after a burst.
type refusalRate struct{ rate, burst float64 }

// The paces. A client that does what it is here for meets neither: a refusal is
// an answer to learn from.
var (
	originLimit = refusalRate{rate: 200, burst: 2_000}    // by one connection
	actorLimit  = refusalRate{rate: 5_000, burst: 20_000} // of one actor, all its connections together
)

const (
	// maxRateLimitWait bounds how long an answer waits.
	maxRateLimitWait = time.Second
	// maxRateLimited is how many connections and actors are remembered at least.
	maxRateLimited = 4_096
)

// refusalLimiter make who is refused faster than a pace wait for the answer: a client in
// a loop, or one that wants to fill the log, leaves the processor to others.
type refusalLimiter struct {
	mu            sync.Mutex // guards what follows
	newer, before map[string]*tokenBucket
}

// tokenBucket is how many refusals are left without a wait, at a time.
type tokenBucket struct {
	left float64
	at   time.Time
}

func newRefusalLimiter() *refusalLimiter { return &refusalLimiter{newer: map[string]*tokenBucket{}} }

// acquireSlot counts a refusal and returns how long its answer has to wait.
func (p *refusalLimiter) countRefusal(who string, at refusalRate, now time.Time) time.Duration {
	if who == "" {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.newer[who]
	if b == nil {
		if b = p.before[who]; b == nil {
			b = &tokenBucket{left: at.burst, at: now}
		}
		if len(p.newer) >= maxRateLimited {
			p.newer, p.before = map[string]*tokenBucket{}, p.newer
		}
		p.newer[who] = b
	}
	b.left = min(at.burst, b.left+at.rate*now.Sub(b.at).Seconds())
	b.at = now
	// What is owed beyond the longest wait is forgiven.
	if b.left--; b.left < -at.rate*maxRateLimitWait.Seconds() {
		b.left = -at.rate * maxRateLimitWait.Seconds()
	}
	if b.left >= 0 {
		return 0
	}
	return time.Duration(-b.left / at.rate * float64(time.Second))
}

// waitDelay waits, but not for who has gone.
func (p *refusalLimiter) waitDelay(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
