package doctor

import "mcpproxy/internal/ops"

// CheckState is the result of a check.
type CheckState = ops.CheckState

// The states, by severity. A note is not a fault.
const (
	OK      CheckState = "ok"
	Skipped CheckState = "skipped" // the check could not run; Finding.What contains the reason
	Note    CheckState = "note"
	Warn    CheckState = "warn"
	Bad     CheckState = "bad"
)

// Finding is the result of a check for one subject.
type Finding struct {
	State   CheckState `json:"state"`
	Subject string     `json:"subject,omitempty"` // such as a server, a file or a client
	What    string     `json:"what"`              // sentence that describes the fault
	Do      string     `json:"do,omitempty"`      // sentence that tells the user what to do
	Command string     `json:"command,omitempty"` // shell command; Do names its prerequisites
	Lines   []string   `json:"lines,omitempty"`   // lines of a server's log or of the file, with secrets masked

	fix func() error // nil if only the user can fix it
}
