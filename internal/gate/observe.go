package gate

import (
	"time"

	"mcpproxy/internal/store/activity"
)

// Observer is told how calls go, to count and to trace them. It waits for nothing and
// keeps nothing of a call's arguments or answer.
type Observer interface {
	// Follow begins to follow a call that began at a time. parent and state are the
	// trace context of its client, "" where there is none. nil: nothing is followed.
	Follow(began time.Time, parent, state string) Trace
	// Ended is told how a call went. t is what Follow returned, nil for a call that was
	// refused before anybody followed it.
	Ended(o CallStats, t Trace)
}

// Trace is a call that is followed.
type Trace interface {
	// Asking is called when the server is about to be asked. It returns the trace
	// parent that the server gets.
	Asking() (parent string)
	// Answered is called when the server has answered, or nobody waits any longer.
	Answered()
}

// CallStats is how a call went.
type CallStats struct {
	// Server and Tool are "" where the catalog has none of that name: what was asked
	// for in their place is a client's text.
	Server, Tool string
	Operation    string // of the lane; "" where none is known
	Status       activity.Status
	Code         string // of a refusal or a failure
	Record       string // its id; "" when there is none
	Took, Own    time.Duration
}
