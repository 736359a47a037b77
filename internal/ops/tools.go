package ops

import (
	"context"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/gate/policy"
)

// Tool returns one tool. If it does not exist, it returns SERVER_NOT_FOUND or TOOL_NOT_FOUND with similar names.
func (g *Gateway) Tool(_ context.Context, _ Caller, in ToolRef) (ToolView, error) {
	t, err := g.findTool(tool.ID(in))
	if err != nil {
		return ToolView{}, err
	}
	return g.toolViewWithDecisions(t), nil
}

// toToolView returns the view of a tool without the decisions about it. score is the score of a search, or 0.
func toToolView(t *catalog.Tool, score float64) ToolView {
	v := ToolView{
		Name: t.ID.String(), Server: t.ID.Server, Tool: t.ID.Tool, Title: t.Title,
		Description: t.Shown().Description, ShadowedBy: t.ShadowedBy(), InputSchema: t.InputSchema, OutputSchema: t.OutputSchema,
		Annotations: t.Effective.AppendJSON(nil), CallWith: t.CallWith.String(), Status: displayedToolStatus(t), Deprecated: t.IsDeprecated(), Score: score,
	}
	if v.Description != t.Description {
		v.DeclaredDescription = t.Description
	}
	if s := t.Settings(); s != nil {
		v.Settings = &ToolSettings{s.Alias, s.Description, s.AddDescription, s.Always}
	}
	if t.Effective != t.Hints {
		v.DeclaredAnnotations = t.Hints.AppendJSON(nil)
	}
	if in := t.InferredOperation(); in.Operation != policy.NoOperation {
		v.InferredOperation, v.InferredReason = in.Operation.String(), in.Reason
	}
	if v.LaneBy = laneArgument(t); v.LaneBy != "" {
		v.LaneDeclared = t.ArgumentRule().Declared
	}
	return v
}

// toolViewWithDecisions returns the view of a tool with the decisions about it.
func (g *Gateway) toolViewWithDecisions(t *catalog.Tool) ToolView {
	v, e := toToolView(t, 0), g.Book.ServerView(t.ID.Server).ToolDecisions(t.ID.Tool)
	v.Trust = &Trust{Fingerprint: t.Fingerprint().String(), Reason: approval.Evaluate(approval.EvaluationRules{}, e, t.ApprovalCandidate()).Why}
	if e.Pin != nil {
		v.Trust.Approved, v.Trust.ApprovedBy, v.Trust.ApprovedAt = e.Pin.Fingerprint.String(), e.Pin.By, &e.Pin.At
	}
	if e.Off != nil {
		v.Trust.OffBy, v.Trust.OffAt = e.Off.By, &e.Off.At
	}
	return v
}
