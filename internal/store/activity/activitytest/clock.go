// Package activitytest has the clock of a test of the activity log.
//
// It guarantees that a test may set its clock while the log's own work reads it. It knows
// nothing of records. It is used by tests and measurements only.
package activitytest

import (
	"sync/atomic"
	"time"
)

// Clock is a clock that stands still, and is set by a test.
type Clock struct{ at atomic.Int64 } // nanoseconds since 1970

// NewClock returns a clock that stands at a time.
func NewClock(at time.Time) *Clock {
	c := &Clock{}
	c.Set(at)
	return c
}

// Now returns the time of the clock, in UTC.
func (c *Clock) Now() time.Time { return time.Unix(0, c.at.Load()).UTC() }

// Set sets the clock.
func (c *Clock) Set(at time.Time) { c.at.Store(at.UnixNano()) }

// Advance sets the clock forward, or back.
func (c *Clock) Advance(d time.Duration) { c.at.Add(int64(d)) }
