package gateway

import (
	"cmp"
	"context"

	"mcpproxy/internal/approval"
	"mcpproxy/internal/catalog"
	"mcpproxy/internal/policy"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/search"
	"mcpproxy/internal/tool"
)

// Tools returns the known tools that a filter selects, by server and in the
// server's order.
func (g *Gateway) Tools(_ context.Context, _ Caller, f ToolFilter) (ToolList, error) {
	views, servers := []ToolView{}, []*catalog.Server{}
	for _, s := range g.Catalog.Current().Servers() {
		if f.Server != "" && s.Name != f.Server {
			continue
		}
		servers = append(servers, s)
		for _, t := range s.Tools {
			if (f.CallWith == "" || t.CallWith.String() == f.CallWith) && (f.Operation == "" || t.CallWith.Operation().String() == f.Operation) &&
				(f.Status == "" || cmp.Or(statusOf(t), policy.Callable.Word()) == f.Status) {
				views = append(views, g.viewTrusted(t))
			}
		}
	}
	return ToolList{views, len(views), allUnhinted(servers, g.Config())}, nil
}

// Tool returns one tool, or SERVER_NOT_FOUND or TOOL_NOT_FOUND with the nearest
// names.
func (g *Gateway) Tool(_ context.Context, _ Caller, in ToolRef) (ToolView, error) {
	t, err := g.FindTool(tool.ID(in))
	if err != nil {
		return ToolView{}, err
	}
	return g.viewTrusted(t), nil
}

// SearchTools is Retrieve for people: the same ranking, as views.
func (g *Gateway) SearchTools(_ context.Context, _ Caller, q SearchQuery) (SearchAnswer, error) {
	operation, _ := policy.ParseOperation(q.Operation) // which the surface has checked
	snapshot, text, used := g.Catalog.Current(), problem.Shown(q.Query, maxQuery), g.learned()
	hits, total := snapshot.SearchUsed(used, text, clamp(q.Limit, g.Config().ToolsLimit), calledFor(operation, nil))
	answer := SearchAnswer{Query: q.Query, Total: total, Tools: make([]ToolView, len(hits))}
	for i, h := range hits {
		answer.Tools[i] = viewTool(h.Tool, h.Score)
		if q.Explain {
			answer.Tools[i].Why = viewReasons(snapshot.Explain(used, text, h))
		}
	}
	return answer, nil
}

func viewReasons(reasons []search.Reason) []Why {
	out := make([]Why, len(reasons))
	for i, r := range reasons {
		out[i] = Why{Asked: r.Asked, Found: r.Found, How: r.How.String(), Fields: r.Fields, Share: r.Share}
	}
	return out
}

func viewTool(t *catalog.Tool, score float64) ToolView {
	v := ToolView{
		Name: t.ID.String(), Server: t.ID.Server, Tool: t.ID.Tool, Title: t.Title,
		Description: t.Description, InputSchema: t.InputSchema, OutputSchema: t.OutputSchema,
		Annotations: t.Effective.AppendJSON(nil), CallWith: t.CallWith.String(), Status: statusOf(t), Deprecated: t.Deprecated(), Score: score,
	}
	if t.Effective != t.Hints {
		v.DeclaredAnnotations = t.Hints.AppendJSON(nil)
	}
	if in := t.Inferred(); in.Operation != policy.NoOperation {
		v.InferredOperation, v.InferredReason = in.Operation.String(), in.Reason
	}
	return v
}

// viewTrusted is viewTool with what is decided.
func (g *Gateway) viewTrusted(t *catalog.Tool) ToolView {
	v, e := viewTool(t, 0), g.Book.View(t.ID.Server).Tool(t.ID.Tool)
	v.Trust = &Trust{Fingerprint: t.Fingerprint().String(), Reason: approval.Judge(approval.Rules{}, e, t.Candidate()).Why}
	if e.Pin != nil {
		v.Trust.Approved, v.Trust.ApprovedBy, v.Trust.ApprovedAt = e.Pin.Fingerprint.String(), e.Pin.By, &e.Pin.At
	}
	if e.Off != nil {
		v.Trust.OffBy, v.Trust.OffAt = e.Off.By, &e.Off.At
	}
	return v
}
