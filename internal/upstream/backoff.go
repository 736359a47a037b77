package upstream

import (
	"math/rand/v2"
	"time"
)

// The pauses between tries.
const (
	minBackoff     = time.Second
	maxBackoff     = 5 * time.Minute
	demandPause    = time.Second      // that callers ask for
	maxDemandPause = 10 * time.Second // the same where tries take long
	longestPause   = time.Minute      // for the time that a try took
)

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
