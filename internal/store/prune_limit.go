package store

import "time"

// pruneStep is how many records one step of pruning removes. It delays the projector for a few
// milliseconds, and no call.
const pruneStep = 512

// agePruneLimiter limits pruning by age to an eighth of the records in an hour. In the long run
// that is three times what can become old. If the clock is wrong, it leaves days to notice. Other
// limits of the retention are not slowed down.
type agePruneLimiter struct {
	began time.Time
	upTo  int64 // until an hour after began, records below this key may be pruned by age
}

// limit returns the key below which records may be pruned by age now: at most old, the key of the first record that
// is not too old.
func (p *agePruneLimiter) limit(old, first, next int64) int64 {
	if old <= first {
		return first
	}
	if p.began.IsZero() || time.Since(p.began) >= time.Hour {
		p.began, p.upTo = time.Now(), first+(next-first)/8+pruneStep
	}
	return min(old, p.upTo)
}
