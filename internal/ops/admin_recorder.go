package ops

import (
	"log/slog"

	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// adminRecorder is an ActionRecorder whose methods are not part of the API of Admin.
type adminRecorder struct {
	log    ActivityLog
	logger *slog.Logger
}

// runUserOnlyAction runs an action that only a user may do, and records it.
func (j adminRecorder) runUserOnlyAction(c Caller, r activity.Record, do func() error) error {
	return ActionRecorder{Log: j.log, Logger: j.logger}.RunUserOnlyAction(c, r, do)
}

// runAndRecord writes the begin record, runs do, and writes the end record.
func (j adminRecorder) runAndRecord(r activity.Record, do func() error) error {
	return ActionRecorder{Log: j.log, Logger: j.logger}.RunAndRecord(r, do)
}

// checkFingerprint rejects a decision whose fingerprint is missing or is not the current one.
func checkFingerprint(what, current, given string) error {
	switch given {
	case current:
		return nil
	case "":
		return problem.New(problem.InvalidParameter, "The fingerprint of the reviewed definition is missing.",
			"Review the definition first, and send its fingerprint.").With("parameter", "fingerprint")
	}
	return problem.Newf(problem.Conflict, "%s has changed since you reviewed it.", what).
		WithHint("Review it again, then decide.").With("fingerprint", current)
}
