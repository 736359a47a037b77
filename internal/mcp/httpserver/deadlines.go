package httpserver

import "time"

const (
	// slack is how much earlier than requested a deadline may be, so that not every request sets one, if
	// it is at least farAway.
	slack, farAway = time.Second, 4 * time.Second
	// lingerTime is how long an unread body is drained: an earlier close would discard the reply at a
	// client that still sends.
	lingerTime = 500 * time.Millisecond
)

// past is a deadline that unblocks all reads and writes.
var past = time.Unix(1, 0)

// isDeadlineCloseEnough reports whether the current deadline is close enough to the requested one; zero is none.
func isDeadlineCloseEnough(set, by, now time.Time) bool {
	if set.IsZero() || by.IsZero() {
		return set.Equal(by)
	}
	return !set.After(by) && by.Sub(set) <= slack && by.Sub(now) > farAway
}

func earlierTime(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
