package store

import "time"

// steadyClock returns the time and detects that the system clock was set.
type steadyClock struct {
	now   func() time.Time
	began time.Time // has a monotonic reading
}

// wallClockShift returns by how much the wall clock was set since the start; 0 below one second.
func (c *steadyClock) wallClockShift() time.Duration {
	d := c.now().Round(0).Sub(c.began.Round(0)) - time.Since(c.began)
	if d.Abs() < time.Second {
		return 0
	}
	return d
}

// steadyNow returns the wall clock as if it had not been set since the start. Results expire by it,
// so that a handle lives as long as promised.
func (c *steadyClock) steadyNow() time.Time { return c.now().Add(-c.wallClockShift()) }
