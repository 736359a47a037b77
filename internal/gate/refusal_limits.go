package gate

import (
	"context"
	"sync"
	"time"
)

// refusalRate is the number of refusals per second that are answered without a delay, after a burst.
type refusalRate struct{ rate, burst float64 }

// The rates. Normal clients stay far below them, because they do not repeat a refused call.
var (
	originLimit = refusalRate{rate: 200, burst: 2_000}    // per connection
	actorLimit  = refusalRate{rate: 5_000, burst: 20_000} // for all connections of one actor
)

const (
	// maxRateLimitWait limits the delay of an answer.
	maxRateLimitWait = time.Second
	// maxRateLimited is the minimum number of connections and actors that are remembered.
	maxRateLimited = 4_096
)

// refusalLimiter delays the answers to refusals above a rate. A client in a loop, or one that tries to fill the log,
// therefore leaves CPU time for others.
type refusalLimiter struct {
	mu            sync.Mutex // guards the following fields
	newer, before map[string]*tokenBucket
}

// tokenBucket is the number of refusals that are still answered without a delay, at a certain time.
type tokenBucket struct {
	left float64
	at   time.Time
}

func newRefusalLimiter() *refusalLimiter { return &refusalLimiter{newer: map[string]*tokenBucket{}} }

// countRefusal counts a refusal and returns how long its answer has to wait.
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
	// The deficit is limited to the longest delay.
	if b.left--; b.left < -at.rate*maxRateLimitWait.Seconds() {
		b.left = -at.rate * maxRateLimitWait.Seconds()
	}
	if b.left >= 0 {
		return 0
	}
	return time.Duration(-b.left / at.rate * float64(time.Second))
}

// waitOutDelay waits until the delay is over or ctx ends.
func (p *refusalLimiter) waitOutDelay(ctx context.Context, d time.Duration) {
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
