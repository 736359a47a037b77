package activity

import (
	"math"
	"time"
)

const (
	// clockSteady is how long the clock must have run evenly before records go by
	// their age: long enough for what sets the clock after a start to have done so.
	clockSteady = time.Hour
	clockDrift  = time.Minute // in that time
)

// clockMonitor compares the wall clock, which people and programs set, with the
// monotonic one. A clock that is set forward would make every record old.
type clockMonitor struct{ wall, monotonic time.Time }

// isSteady reports whether the wall clock has run evenly for long enough.
// monotonic must come from time.Now.
func (c *clockMonitor) isSteady(wall, monotonic time.Time) bool {
	wall = wall.Round(0) // without its monotonic reading
	ran := monotonic.Sub(c.monotonic)
	if off := wall.Sub(c.wall) - ran; c.monotonic.IsZero() || off.Abs() > clockDrift {
		c.wall, c.monotonic = wall, monotonic
		return false
	}
	if ran < clockSteady {
		return false
	}
	if ran >= 2*clockSteady { // a clock that drifts slowly is not set
		c.wall, c.monotonic = wall.Add(-clockSteady), monotonic.Add(-clockSteady)
	}
	return true
}

func newStoppedTimer() *time.Timer {
	t := time.NewTimer(math.MaxInt64)
	t.Stop()
	return t
}
