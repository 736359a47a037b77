package admin

import (
	"log/slog"
	"time"

	"mcpproxy/internal/activity"
	"mcpproxy/internal/gateway"
	"mcpproxy/internal/problem"
)

// Caller is who calls and from where.
type Caller = gateway.Caller

// journal has on record what is decided, and who decided.
type journal struct {
	log    gateway.Log
	logger *slog.Logger
}

// act does what only a person may do, and has it on record: who asked is
// durable before anything changes, and how it went after.
func (j journal) act(c Caller, r activity.Record, do func() error) error {
	if c.Person() {
		return j.recorded(r, do)
	}
	p := problem.New(problem.Forbidden, "Only a person can do this: with the mcpproxy command, the web UI, or the API key.",
		"Ask the user to do it.")
	r.Status, r.ErrorMessage, r.Metadata.ErrorCode = activity.Blocked, p.Message, string(p.Code)
	if err := j.log.Append(&r); err != nil {
		j.logger.Error("a refusal could not be recorded", "action", r.Metadata.Action, "error", err)
	}
	return p
}

// recorded does something between the beginning and the end of its record.
func (j journal) recorded(r activity.Record, do func() error) error {
	started := time.Now()
	if err := j.log.Begin(&r); err != nil {
		return err
	}
	outcome := activity.Outcome{Status: activity.Failed, ErrorCode: string(problem.Internal), ErrorMessage: "it ended in a panic"}
	defer func() {
		outcome.Duration = time.Since(started)
		if err := j.log.End(r.ID, outcome); err != nil {
			j.logger.Error("the outcome of a decision could not be recorded", "id", r.ID, "error", err)
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
