package ops

import (
	"log/slog"

	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// journal has on record what is decided, and who decided.
type journal struct {
	log    Log
	logger *slog.Logger
}

// act does what only a person may do, and has it on record.
func (j journal) act(c Caller, r activity.Record, do func() error) error {
	return Journal{Log: j.log, Logger: j.logger}.Act(c, r, do)
}

// recorded does something between the beginning and the end of its record.
func (j journal) recorded(r activity.Record, do func() error) error {
	return Journal{Log: j.log, Logger: j.logger}.Recorded(r, do)
}

// same refuses what was decided about something else than what is there.
func same(what, current, given string) error {
	switch given {
	case current:
		return nil
	case "":
		return problem.New(problem.InvalidParameter, "The fingerprint is missing: it names what you have looked at.",
			"Look at it first, and give the fingerprint that stands there.").With("parameter", "fingerprint")
	}
	return problem.Newf(problem.Conflict, "%s is no longer what you have looked at.", what).
		WithHint("Look at it again, then decide.").With("fingerprint", current)
}
