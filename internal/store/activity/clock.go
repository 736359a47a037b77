package activity

import (
	"math"
	"time"
)

const (
	// clockSteady is how long the clock must run evenly before records are pruned by age. Programs that correct the
	// clock after a start need less time than that.
	clockSteady = time.Hour
	clockDrift  = time.Minute // allowed deviation within clockSteady
)

// clockMonitor compares the wall clock, which users and programs can set, with the monotonic clock. If the
// wall clock is set forward, every record looks old.
type clockMonitor struct{ wall, monotonic time.Time }

// isSteady reports whether the wall clock has run evenly for clockSteady. The monotonic argument must come from
// time.Now.
func (c *clockMonitor) isSteady(wall, monotonic time.Time) bool {
	wall = wall.Round(0) // removes the monotonic reading
	ran := monotonic.Sub(c.monotonic)
	if off := wall.Sub(c.wall) - ran; c.monotonic.IsZero() || off.Abs() > clockDrift {
		c.wall, c.monotonic = wall, monotonic
		return false
	}
	if ran < clockSteady {
		return false
	}
	if ran >= 2*clockSteady { // start again, so that a slow drift is not mistaken for a change of the clock
		c.wall, c.monotonic = wall.Add(-clockSteady), monotonic.Add(-clockSteady)
	}
	return true
}

func newStoppedTimer() *time.Timer {
	t := time.NewTimer(math.MaxInt64)
	t.Stop()
	return t
}
