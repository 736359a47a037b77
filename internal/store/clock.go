package store

import "time"

// clock tells the time, and whether somebody has set it.
type clock struct {
	now   func() time.Time
	began time.Time // by the monotonic clock, too
}

// jumped returns by how much the wall clock was set since it began. Below a second
// it counts as not set.
func (c *clock) jumped() time.Duration {
	d := c.now().Round(0).Sub(c.began.Round(0)) - time.Since(c.began)
	if d.Abs() < time.Second {
		return 0
	}
	return d
}

// evenly returns the time by which results expire: what the wall clock would
// say if nobody had set it. A handle lives as long as it is said to.
func (c *clock) evenly() time.Time { return c.now().Add(-c.jumped()) }
