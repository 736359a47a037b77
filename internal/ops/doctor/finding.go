package doctor

import "mcpproxy/internal/ops"

// CheckState is the result of a check.
type CheckState = ops.CheckState

// The states by severity. A note is no fault.
const (
	OK      CheckState = "ok"
	Skipped CheckState = "skipped" // the check could not run; Finding.What says why
	Note    CheckState = "note"
	Warn    CheckState = "warn"
	Bad     CheckState = "bad"
)

// Finding is the result of a check for one subject.
type Finding struct {
	State   CheckState `json:"state"`
	Subject string     `json:"subject,omitempty"` // a server, a file, a client
	What    string     `json:"what"`              // what is wrong, a sentence
	Do      string     `json:"do,omitempty"`      // what to do, a sentence
	Command string     `json:"command,omitempty"` // a shell command; prerequisites are in Do
	Lines   []string   `json:"lines,omitempty"`   // of a server's log or the file, masked

	fix func() error // nil: only the user can fix it
}
