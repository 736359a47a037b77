package ops

import (
	"log/slog"
	"time"

	"mcpproxy/internal/gate/presence"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// ActionRecorder records user actions with their authors.
type ActionRecorder struct {
	Log    ActivityLog
	Logger *slog.Logger
}

// claimToSign is a statement that a user signs.
type claimToSign = presence.Claim

// RunUserOnlyAction runs an action that only a user may do. The record with its author is durable before anything changes; the outcome is recorded after.
func (j ActionRecorder) RunUserOnlyAction(c Caller, r activity.Record, do func() error) error {
	if c.IsUser() {
		return j.RunAndRecord(r, do)
	}
	p := problem.New(problem.Forbidden, "Only the user can do this, with the mcpproxy command, the web UI, or the API key.",
		"Ask the user to do it.")
	r.Status, r.ErrorMessage, r.Metadata.ErrorCode = activity.Blocked, p.Message, string(p.Code)
	if err := j.Log.Append(&r); err != nil {
		j.Logger.Error("a refusal could not be recorded", "action", r.Metadata.Action, "error", err)
	}
	return p
}

// RunAndRecord writes the begin record, runs do, and writes the outcome, also when do panics.
func (j ActionRecorder) RunAndRecord(r activity.Record, do func() error) error {
	started := time.Now()
	if err := j.Log.Begin(&r); err != nil {
		return err
	}
	outcome := activity.Outcome{Status: activity.Failed, ErrorCode: string(problem.Internal), ErrorMessage: "it ended in a panic"}
	defer func() {
		outcome.Duration = time.Since(started)
		if err := j.Log.End(r.ID, outcome); err != nil {
			j.Logger.Error("the outcome of a decision could not be recorded", "id", r.ID, "error", err)
		}
	}()
	err := do()
	if err != nil {
		p := problem.From(err)
		outcome.ErrorCode, outcome.ErrorMessage = string(p.Code), p.Message
		if p.Code == problem.PresenceRequired {
			outcome.Status = activity.Blocked
		}
		return p
	}
	outcome.Status, outcome.ErrorCode, outcome.ErrorMessage = activity.Success, "", ""
	return nil
}
