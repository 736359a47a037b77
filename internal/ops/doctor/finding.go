package doctor

// State is how something is.
type State string

// The states, from well to wrong. A note is said and is no fault.
const (
	OK      State = "ok"
	Skipped State = "skipped" // it could not be looked at, and Finding.What says why
	Note    State = "note"
	Warn    State = "warn"
	Bad     State = "bad"
)

// Finding is what a check has to say about one subject.
type Finding struct {
	State   State    `json:"state"`
	Subject string   `json:"subject,omitempty"` // a server, a file, a client
	What    string   `json:"what"`              // what is wrong, a sentence
	Do      string   `json:"do,omitempty"`      // what to do, a sentence
	Command string   `json:"command,omitempty"` // for a shell; what it needs before stands in Do
	Lines   []string `json:"lines,omitempty"`   // as a server or the file has them, masked

	mend func() error // nil: only a person may
}
