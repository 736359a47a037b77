package store

import "time"

// pruneStep is the maximum number of records that one step of pruning removes. Such a step delays the projector by a
// few milliseconds, but no call.
const pruneStep = 512

// agePruneLimiter limits pruning by age to an eighth of the records per hour. In the long run, that is three times the
// number of records that can become too old. If the clock is wrong, users have days to notice it. Other retention
// limits are not delayed.
type agePruneLimiter struct {
	began time.Time
	upTo  int64 // records below this key may be pruned by age until an hour after began
}

// limit returns the key below which records may be pruned by age now. It is not greater than old, the key of the first
// record within the age limit.
func (p *agePruneLimiter) limit(old, first, next int64) int64 {
	if old <= first {
		return first
	}
	if p.began.IsZero() || time.Since(p.began) >= time.Hour {
		p.began, p.upTo = time.Now(), first+(next-first)/8+pruneStep
	}
	return min(old, p.upTo)
}
