package gateway

import (
	"slices"
	"time"

	"mcpproxy/internal/activity"
	"mcpproxy/internal/approval"
	"mcpproxy/internal/auth"
	"mcpproxy/internal/catalog"
	"mcpproxy/internal/door"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/tool"
)

// scopeFilter keeps the tools in an actor's scope; nil keeps all.
func scopeFilter(a auth.Actor) func(*catalog.Tool) bool {
	if a.Kind != auth.Nobody {
		return nil
	}
	return func(t *catalog.Tool) bool { return door.InScope(a, t.ID.Server) }
}

// act does what only a person may do, and has it on record: who asked is
// durable before anything changes, and how it went after.
func (g *Gateway) act(c Caller, r activity.Record, do func() error) error {
	if !c.Person() {
		p := problem.New(problem.Forbidden, "Only a person can do this: with the mcpproxy command, the web UI, or the API key.",
			"Ask the user to do it.")
		r.Status, r.ErrorMessage, r.Metadata.ErrorCode = activity.Blocked, p.Message, string(p.Code)
		if err := g.Log.Append(&r); err != nil {
			g.Logger.Error("a refusal could not be recorded", "action", r.Metadata.Action, "error", err)
		}
		return p
	}
	return g.recorded(&r, do)
}

// recorded does something between the beginning and the end of its record.
func (g *Gateway) recorded(r *activity.Record, do func() error) error {
	started := time.Now()
	if err := g.Log.Begin(r); err != nil {
		return err
	}
	outcome := activity.Outcome{Status: activity.Failed, ErrorCode: string(problem.Internal), ErrorMessage: "it ended in a panic"}
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
		return p
	}
	outcome.Status, outcome.ErrorCode, outcome.ErrorMessage = activity.Success, "", ""
	return nil
}

// about is the beginning of a record of what a caller does.
func about(c Caller, kind activity.Type, id tool.ID, action, detail string) activity.Record {
	return activity.Record{Type: kind, ServerName: id.Server, ToolName: id.Tool,
		Source: c.Source, Actor: c.Actor.String(), SessionID: c.SessionID, RequestID: c.RequestID,
		ClientName: c.ClientName, ClientVersion: c.ClientVersion,
		Metadata: activity.Metadata{Action: action, Detail: detail}}
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

// waits says why a definition waits for a person, if it does.
func waits(e approval.Entry, t *catalog.Tool) approval.Judgement {
	return approval.Judge(approval.Rules{}, e, t.Candidate())
}

// viewTrusted is viewTool with what is decided.
func (g *Gateway) viewTrusted(t *catalog.Tool) ToolView {
	v, e := viewTool(t, 0), g.Book.View(t.ID.Server).Tool(t.ID.Tool)
	v.Trust = &Trust{Fingerprint: t.Fingerprint().String(), Reason: waits(e, t).Why}
	if e.Pin != nil {
		v.Trust.Approved, v.Trust.ApprovedBy, v.Trust.ApprovedAt = e.Pin.Fingerprint.String(), e.Pin.By, &e.Pin.At
	}
	if e.Off != nil {
		v.Trust.OffBy, v.Trust.OffAt = e.Off.By, &e.Off.At
	}
	return v
}

// findTool returns a tool, or SERVER_NOT_FOUND or TOOL_NOT_FOUND with the nearest
// names.
func (g *Gateway) findTool(id tool.ID) (*catalog.Tool, error) {
	snapshot := g.Catalog.Current()
	t := snapshot.Tool(id)
	switch {
	case t != nil:
		return t, nil
	case snapshot.Server(id.Server) == nil:
		return nil, door.NoServer(snapshot, id.Server)
	}
	p := problem.Newf(problem.ToolNotFound, "Tool '%s' not found", clip(id.String())).
		WithHint("See the tools with `mcpproxy tools list --server " + id.Server + "`.")
	if near := snapshot.Nearest(id); len(near) > 0 {
		p.With("nearest", near)
	}
	return nil, p
}

// trustWarnings say why nothing is approved, where that is no person's decision.
func (g *Gateway) trustWarnings() []string {
	const lost = "The database of this data directory is not the first one: the approvals of an earlier one, which was damaged or removed, are not known any more. "
	unacquainted := func(s *catalog.Server) bool { // nobody has approved it
		return !s.Quarantined && g.Book.View(s.Name).Launch() == nil
	}
	switch {
	case g.Book.RestrictionsLost():
		return []string{lost + restrictionsLost + " Every tool that you have not approved since waits for you, new ones, too."}
	case g.Book.Lost() && slices.ContainsFunc(g.Catalog.Current().Servers(), unacquainted):
		return []string{lost + "What was blocked or switched off stays so. " +
			"Nothing is accepted at first sight until you have approved a server again with `mcpproxy upstream approve`."}
	}
	select {
	case <-g.Book.Loaded():
		return nil
	default:
		return []string{"The approvals are not read yet, so no tool can be called. If it stays so, see the log of the daemon."}
	}
}
