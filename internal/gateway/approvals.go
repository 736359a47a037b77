package gateway

import (
	"context"

	"mcpproxy/internal/activity"
	"mcpproxy/internal/approval"
	"mcpproxy/internal/catalog"
	"mcpproxy/internal/scan"
	"mcpproxy/internal/tool"
)

// maxWaiting is how many waiting tools Approvals gives.
const maxWaiting = 500

// SwitchTool switches a tool on or off, in the name of a person.
func (g *Gateway) SwitchTool(ctx context.Context, id tool.ID, on bool, c Caller) (ToolView, error) {
	action := "switch_tool_off"
	if on {
		action = "switch_tool_on"
	}
	return g.decideTool(id, about(activity.Approval, id, action, ""), c, func(*catalog.Tool) error {
		return g.Book.Switch(ctx, id, on, c.Actor.String())
	})
}

// ApproveTool approves the definition of a tool that has this fingerprint, if
// it is still the one that the server lists.
func (g *Gateway) ApproveTool(ctx context.Context, id tool.ID, fingerprint string, c Caller) (ToolView, error) {
	return g.decideTool(id, about(activity.Approval, id, "approve_tool", clip(fingerprint)), c, func(t *catalog.Tool) error {
		if err := same("The definition of '"+id.String()+"'", t.Fingerprint().String(), fingerprint); err != nil {
			return err
		}
		return g.Book.Approve(ctx, id.Server, c.Actor.String(), []approval.Candidate{t.Candidate()}, nil)
	})
}

// BlockTool refuses the definition of a tool that has this fingerprint, if it
// is still the one that the server lists. When it was approved it is not any
// more.
func (g *Gateway) BlockTool(ctx context.Context, id tool.ID, fingerprint string, c Caller) (ToolView, error) {
	return g.decideTool(id, about(activity.Approval, id, "block_tool", clip(fingerprint)), c, func(t *catalog.Tool) error {
		if err := same("The definition of '"+id.String()+"'", t.Fingerprint().String(), fingerprint); err != nil {
			return err
		}
		return g.Book.Block(ctx, id, t.Fingerprint(), c.Actor.String())
	})
}

// decideTool has a person decide about a tool that is there, and gives how it
// is then.
func (g *Gateway) decideTool(id tool.ID, r activity.Record, c Caller, decide func(*catalog.Tool) error) (ToolView, error) {
	err := g.act(c, r, func() error {
		t, err := g.findTool(id)
		if err != nil {
			return err
		}
		if err := decide(t); err != nil {
			return err
		}
		g.Catalog.Refresh()
		return nil
	})
	if err != nil {
		return ToolView{}, err
	}
	t, err := g.findTool(id)
	if err != nil {
		return ToolView{}, err
	}
	return g.viewTrusted(t), nil
}

// DiffTool gives a tool's approved definition beside the one that its server
// lists.
func (g *Gateway) DiffTool(ctx context.Context, id tool.ID) (ToolDiff, error) {
	t, err := g.findTool(id)
	if err != nil {
		return ToolDiff{}, err
	}
	e := g.Book.View(id.Server).Tool(id.Tool)
	j, report := waits(e, t), t.Candidate().Report()
	d := ToolDiff{
		Name: id.String(), Server: id.Server, Tool: id.Tool, Status: t.Status.String(),
		Reason: j.Why, Loosened: j.Loosened, Fingerprint: t.Fingerprint().String(), Definition: t.Raw,
		Changes: []approval.Difference{}, Verdict: report.Verdict, Findings: findings(report),
	}
	if e.Pin == nil {
		return d, nil
	}
	raw, err := g.Book.Definition(ctx, id)
	if err != nil {
		return ToolDiff{}, err
	}
	if was, err := tool.ParseDefinition(id.Server, raw); err != nil || was.Fingerprint() != e.Pin.Fingerprint {
		// Lost with a damaged database, or approved no more at this very moment.
		// There is nothing to hold the new one against: all of it is new.
		return d, nil
	}
	d.Approved = &ApprovedView{Fingerprint: e.Pin.Fingerprint.String(), Definition: raw, By: e.Pin.By, At: e.Pin.At}
	changes, complete, err := approval.Diff(raw, t.Raw)
	if err != nil {
		return ToolDiff{}, err
	}
	d.Changes, d.Truncated = append(d.Changes, changes...), !complete
	return d, nil
}

// findings is never null in JSON.
func findings(r scan.Report) []scan.Finding {
	if r.Findings == nil {
		return []scan.Finding{}
	}
	return r.Findings
}

// Approvals gives everything that waits for a person.
func (g *Gateway) Approvals(context.Context) (Waiting, error) {
	w := Waiting{Servers: []WaitingServer{}, Tools: []WaitingTool{}}
	for _, s := range g.reviewed() {
		w.Servers = append(w.Servers, s.waiting())
	}
	for _, s := range g.Catalog.Current().Servers() {
		if s.Quarantined {
			continue
		}
		decided := g.Book.View(s.Name)
		for _, t := range s.Tools {
			e := decided.Tool(t.ID.Tool)
			if !decided.Known() || e.Approves(t.Fingerprint()) {
				continue
			}
			if w.TotalTools++; w.TotalTools <= maxWaiting {
				w.Tools = append(w.Tools, waitingTool(e, t))
			}
		}
	}
	return w, nil
}

func waitingTool(e approval.Entry, t *catalog.Tool) WaitingTool {
	j, report := waits(e, t), t.Candidate().Report()
	v := WaitingTool{
		Name: t.ID.String(), Server: t.ID.Server, Tool: t.ID.Tool, Reason: j.Why, Loosened: j.Loosened,
		Fingerprint: t.Fingerprint().String(), Verdict: report.Verdict, Findings: findings(report),
	}
	if e.Pin != nil {
		v.Approved = e.Pin.Fingerprint.String()
	}
	return v
}
