package httpserver

import "time"

const (
	// slack is how much earlier than requested a deadline may be, if it is at least farAway. So not every request has
	// to set a deadline.
	slack, farAway = time.Second, 4 * time.Second
	// lingerTime is the time for which an unread body is drained. If the connection were closed earlier, a client that
	// still sends would lose the reply.
	lingerTime = 500 * time.Millisecond
)

// past is a deadline that unblocks all reads and writes.
var past = time.Unix(1, 0)

// isDeadlineCloseEnough reports whether the current deadline is close enough to the requested one. Zero means no
// deadline.
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
