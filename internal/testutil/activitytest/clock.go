// Package activitytest provides a settable clock for tests and benchmarks of the activity log.
//
//   - clock.go: Clock, which does not advance until a test sets it
//
// A test may set the clock while the goroutines of the log read it. The package does not create records.
package activitytest

import (
	"sync/atomic"
	"time"
)

// Clock is a clock that stands still until a test sets it.
type Clock struct{ at atomic.Int64 } // nanoseconds since 1970

// NewClock returns a clock that is set to a time.
func NewClock(at time.Time) *Clock {
	c := &Clock{}
	c.Set(at)
	return c
}

// Now returns the time of the clock, in UTC.
func (c *Clock) Now() time.Time { return time.Unix(0, c.at.Load()).UTC() }

// Set sets the clock.
func (c *Clock) Set(at time.Time) { c.at.Store(at.UnixNano()) }

// Advance moves the clock forward by d, or back if d is negative.
func (c *Clock) Advance(d time.Duration) { c.at.Add(int64(d)) }
