package store

import "time"

// pruneStep is how many records one step of pruning takes. It holds up the projector
// for a few milliseconds, and no call.
const pruneStep = 512

// agePruning bounds what goes by age: in an hour at most an eighth of the records. In
// the long run that is three times what can become old; when the clock is wrong
// it leaves days to notice. Other limits are not bounded.
type agePruneLimiter struct {
	began time.Time
	upTo  int64 // in the hour from began on, records may go by age up to this key
}

func (p *agePruneLimiter) limit(old, first, next int64) int64 {
	if old <= first {
		return first
	}
	if p.began.IsZero() || time.Since(p.began) >= time.Hour {
		p.began, p.upTo = time.Now(), first+(next-first)/8+pruneStep
	}
	return min(old, p.upTo)
}
