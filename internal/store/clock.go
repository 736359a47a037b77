package store

import "time"

// steadyClock returns the time, and detects changes of the system clock.
type steadyClock struct {
	now   func() time.Time
	began time.Time // start time, with a monotonic reading
}

// wallClockShift returns by how much the wall clock was changed since the start. A change of less than one second
// counts as 0.
func (c *steadyClock) wallClockShift() time.Duration {
	d := c.now().Round(0).Sub(c.began.Round(0)) - time.Since(c.began)
	if d.Abs() < time.Second {
		return 0
	}
	return d
}

// steadyNow returns the time as if the wall clock had not been changed since the start. Results expire by this time, so
// that a handle is valid as long as promised.
func (c *steadyClock) steadyNow() time.Time { return c.now().Add(-c.wallClockShift()) }
