package ask

import (
	"time"

	"mcpproxy/internal/config/auth"
)

// The bounds of leases.
const (
	ShortestLease = time.Minute
	LongestLease  = 24 * time.Hour
	MaxCalls      = 10_000
	MaxLeases     = 100 // that run at a time
)

// Lease is for calls that are not asked about for a while.
type Lease struct {
	ID       string
	Server   string
	Tools    string // a name or pattern of its tools; "" for all
	Lane     auth.Lane
	Client   string // the name of a token; "" for everybody
	Actor    string // the principal of that token
	Revision string // of the configuration under which it was given
	Calls    int64  // that it is for
	Left     int64
	Given    time.Time
	Until    time.Time
	By, Via  string
	Revoked  time.Time // zero: not
}

// Ended is why a lease covers nothing any more.
type Ended string

// The reasons.
const (
	Runs        Ended = ""
	WasRevoked  Ended = "revoked"
	TimeIsOver  Ended = "time"
	NoCallsLeft Ended = "calls"
	OtherConfig Ended = "configuration"
)

// Ended returns why the lease has ended; Runs when it has not.
func (l *Lease) Ended(now time.Time, revision string) Ended {
	switch {
	case !l.Revoked.IsZero():
		return WasRevoked
	case !now.Before(l.Until) || l.Until.After(now.Add(LongestLease+Skew)):
		return TimeIsOver
	case l.Left <= 0:
		return NoCallsLeft
	case l.Revision != revision:
		return OtherConfig
	}
	return Runs
}

// Covers reports whether a call that counts as a lane is covered as long as the lease runs:
// up to its own lane, which includes what does less.
func (l *Lease) Covers(c *Call, lane auth.Lane) bool {
	return l.Server == c.Server && (l.Tools == "" || auth.MatchesPattern(l.Tools, c.Tool)) && lane != 0 && lane <= l.Lane &&
		(l.Client == "" || l.Actor == c.Principal) && l.Revision == c.Revision
}
