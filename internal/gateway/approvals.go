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

// EnableTool switches a tool on, in the name of a person.
func (g *Gateway) EnableTool(ctx context.Context, c Caller, in ToolRef) (ToolView, error) {
	return g.decideTool(in, "switch_tool_on", nil, c, func(t *catalog.Tool) error {
		return g.Book.Switch(ctx, t.ID, true, c.Actor.String())
	})
}

// DisableTool switches a tool off, in the name of a person.
func (g *Gateway) DisableTool(ctx context.Context, c Caller, in ToolRef) (ToolView, error) {
	return g.decideTool(in, "switch_tool_off", nil, c, func(t *catalog.Tool) error {
		return g.Book.Switch(ctx, t.ID, false, c.Actor.String())
	})
}

// ApproveTool approves the definition of a tool that was seen, if it is still the
// one that the server lists.
func (g *Gateway) ApproveTool(ctx context.Context, c Caller, in ToolDecision) (ToolView, error) {
	return g.decideTool(in.ToolRef, "approve_tool", &in.Seen, c, func(t *catalog.Tool) error {
		return g.Book.Approve(ctx, in.Server, c.Actor.String(), []approval.Candidate{t.Candidate()}, nil)
	})
}

// BlockTool refuses the definition of a tool that was seen, if it is still the one
// that the server lists. When it was approved it is not any more.
func (g *Gateway) BlockTool(ctx context.Context, c Caller, in ToolDecision) (ToolView, error) {
	return g.decideTool(in.ToolRef, "block_tool", &in.Seen, c, func(t *catalog.Tool) error {
		return g.Book.Block(ctx, t.ID, t.Fingerprint(), c.Actor.String())
	})
}

// decideTool has a person decide about a tool that is there, if what was seen is
// still its definition, and returns how it is then. Without seen it is about the
// tool, whatever its definition.
func (g *Gateway) decideTool(in ToolRef, action string, seen *Seen, c Caller, decide func(*catalog.Tool) error) (ToolView, error) {
	id, detail := tool.ID(in), ""
	if seen != nil {
		detail = clip(seen.Fingerprint)
	}
	err := g.act(c, about(c, activity.Approval, id, action, detail), func() error {
		t, err := g.findTool(id)
		if err == nil && seen != nil {
			err = same("The definition of '"+id.String()+"'", t.Fingerprint().String(), seen.Fingerprint)
		}
		if err == nil {
			err = decide(t)
		}
		return err
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

// DiffTool returns a tool's approved definition beside the one that its server
// lists.
func (g *Gateway) DiffTool(ctx context.Context, _ Caller, in ToolRef) (ToolDiff, error) {
	id := tool.ID(in)
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
	raw, err := g.Book.Definition(ctx, tool.KindTool, id)
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

// Approvals returns everything that waits for a person.
func (g *Gateway) Approvals(context.Context, Caller, Nothing) (Waiting, error) {
	w := Waiting{Servers: []WaitingServer{}, Tools: []WaitingTool{}, Offers: []WaitingOffer{}}
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
		g.addWaiting(&w, s, decided)
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
