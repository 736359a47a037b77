package ops

import (
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/presence"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// claimToSign is a statement that a user signs.
type claimToSign = presence.Claim

// newActionRecord returns the activity record for an action of the caller.
func newActionRecord(c Caller, kind activity.Type, id tool.ID, action, detail string) activity.Record {
	r := activity.Record{Type: kind, ServerName: id.Server, ToolName: id.Tool, Metadata: activity.Metadata{Action: action, Detail: detail}}
	r.SetCaller(&c)
	return r
}

// runConfigChange is like runUserAction, for a change to the configuration or other files.
func (g *Gateway) runConfigChange(c Caller, action, detail string, do func() error) error {
	return g.runUserAction(c, newActionRecord(c, activity.ConfigChange, tool.ID{}, action, detail), do)
}

// runUserAction runs an action that only a user may do. The record with its author is durable before anything changes.
// The outcome is recorded afterwards.
func (g *Gateway) runUserAction(c Caller, r activity.Record, do func() error) error {
	if c.IsUser() {
		return g.runAndRecord(r, do)
	}
	p := problem.New(problem.Forbidden, "Only the user can do this, with the mcpproxy command, the web UI, or the API key.",
		"Ask the user to do it.")
	r.Status, r.ErrorMessage, r.Metadata.ErrorCode = activity.Blocked, p.Message, string(p.Code)
	if err := g.Log.Append(&r); err != nil {
		g.Logger.Error("a refusal could not be recorded", "action", r.Metadata.Action, "error", err)
	}
	return p
}

// runAndRecord writes the begin record, runs do and writes the outcome, even if do panics.
func (g *Gateway) runAndRecord(r activity.Record, do func() error) error {
	started := time.Now()
	if err := g.Log.Begin(&r); err != nil {
		return err
	}
	outcome := activity.Outcome{Status: activity.Failed, ErrorCode: string(problem.Internal), ErrorMessage: "it panicked"}
	defer func() {
		outcome.Duration = time.Since(started)
		if err := g.Log.End(r.ID, outcome); err != nil {
			g.Logger.Error("the outcome of a decision could not be recorded", "id", r.ID, "error", err)
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
