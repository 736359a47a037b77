package admin

import (
	"time"

	"mcpproxy/internal/activity"
	"mcpproxy/internal/problem"
)

// act does what only a person may do, and has it on record: who asked is
// durable before anything changes, and how it went after.
func (a *Admin) act(c Caller, r activity.Record, do func() error) error {
	if c.Person() {
		return a.recorded(r, do)
	}
	p := problem.New(problem.Forbidden, "Only a person can do this: with the mcpproxy command, the web UI, or the API key.",
		"Ask the user to do it.")
	r.Status, r.ErrorMessage, r.Metadata.ErrorCode = activity.Blocked, p.Message, string(p.Code)
	if err := a.Log.Append(&r); err != nil {
		a.Logger.Error("a refusal could not be recorded", "action", r.Metadata.Action, "error", err)
	}
	return p
}

// recorded does something between the beginning and the end of its record.
func (a *Admin) recorded(r activity.Record, do func() error) error {
	started := time.Now()
	if err := a.Log.Begin(&r); err != nil {
		return err
	}
	outcome := activity.Outcome{Status: activity.Failed, ErrorCode: string(problem.Internal), ErrorMessage: "it ended in a panic"}
	defer func() {
		outcome.Duration = time.Since(started)
		if err := a.Log.End(r.ID, outcome); err != nil {
			a.Logger.Error("the outcome of a decision could not be recorded", "id", r.ID, "error", err)
		}
	}()
	err := do()
	if err != nil {
		p := problem.From(err)
		outcome.ErrorCode, outcome.ErrorMessage = string(p.Code), p.Message
		return p
	}
	outcome.Status, outcome.ErrorCode, outcome.ErrorMessage = activity.Success, "", ""
	return nil
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
