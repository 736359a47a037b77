package httpserver

import "time"

const (
	// slack is by how much a deadline may be earlier than asked for, so that it
	// need not be set for every request, when it is further away than farAway.
	slack, farAway = time.Second, 4 * time.Second
	// lingerTime is how long a body that nobody reads is thrown away: to close the
	// connection before would take the answer from a client that is still sending.
	lingerTime = 500 * time.Millisecond
)

// past makes whatever waits for the connection return.
var past = time.Unix(1, 0)

// near reports whether the deadline that is set will do for the one asked for;
// zero is none.
func near(set, by, now time.Time) bool {
	if set.IsZero() || by.IsZero() {
		return set.Equal(by)
	}
	return !set.After(by) && by.Sub(set) <= slack && by.Sub(now) > farAway
}

func sooner(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
