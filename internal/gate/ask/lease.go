package ask

import (
	"time"

	"mcpproxy/internal/config/auth"
)

// The limits of leases.
const (
	ShortestLease = time.Minute
	LongestLease  = 24 * time.Hour
	MaxCalls      = 10_000
	MaxLeases     = 100 // at the same time
)

// Lease approves calls in advance for some time.
type Lease struct {
	ID       string
	Server   string
	Tools    string // name or pattern; "" for all
	Lane     auth.OperationLane
	Client   string // name of a token; "" for every client
	Actor    string // principal of that token
	Revision string // revision of the configuration when the lease was created
	Calls    int64  // allowed number of calls
	Left     int64
	Given    time.Time
	Until    time.Time
	By, Via  string
	Revoked  time.Time // zero: not revoked
}

// EndReason is the reason why a lease has ended.
type EndReason string

// The reasons.
const (
	Runs        EndReason = ""
	WasRevoked  EndReason = "revoked"
	TimeIsOver  EndReason = "time"
	NoCallsLeft EndReason = "calls"
	OtherConfig EndReason = "configuration"
)

// EndReason returns the reason why the lease has ended; Runs if it has not ended.
func (l *Lease) EndReason(now time.Time, revision string) EndReason {
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

// Covers reports whether a running lease covers a call in a lane: the lane of the lease or a less dangerous one.
func (l *Lease) Covers(c *Call, lane auth.OperationLane) bool {
	return l.Server == c.Server && (l.Tools == "" || auth.MatchesPattern(l.Tools, c.Tool)) && lane != 0 && lane <= l.Lane &&
		(l.Client == "" || l.Actor == c.Principal) && l.Revision == c.Revision
}
