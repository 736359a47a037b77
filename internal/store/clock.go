package store

import "time"

// steadyClock tells the time, and whether somebody has set it.
type steadyClock struct {
	now   func() time.Time
	began time.Time // by the monotonic clock, too
}

// wallClockShift returns by how much the wall clock was set since it began. Below a second
// it counts as not set.
func (c *steadyClock) wallClockShift() time.Duration {
	d := c.now().Round(0).Sub(c.began.Round(0)) - time.Since(c.began)
	if d.Abs() < time.Second {
		return 0
	}
	return d
}

// steadyNow returns the time by which results expire: what the wall clock would
// say if nobody had set it. A handle lives as long as it is said to.
func (c *steadyClock) steadyNow() time.Time { return c.now().Add(-c.wallClockShift()) }
