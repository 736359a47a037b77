package ops

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
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

// ChangeTool changes the user's name and texts for a tool in the configuration. Settings of a tool that the server no
// longer lists can still be removed.
func (a *Admin) ChangeTool(ctx context.Context, c Caller, in ToolChange) (ToolView, error) {
	id := tool.ID(in.ToolRef)
	var keys []string
	for _, one := range in.Changes {
		keys = append(keys, one.Key)
	}
	err := a.runUserAction(c, newActionRecord(c, activity.ConfigChange, id, "set_tool", strings.Join(keys, ", ")), func() error {
		if err := a.checkToolChange(id, in); err != nil {
			return err
		}
		return a.editor.SetToolSettings(a.configConfirmFunc(ctx), id.Server, id.Tool, in.Changes)
	})
	if err != nil {
		return ToolView{}, err
	}
	if t := a.Catalog.Current().Tool(id); t != nil {
		return a.toolViewWithDecisions(t), nil
	}
	return ToolView{Name: id.String(), Server: id.Server, Tool: id.Tool}, nil
}

// checkToolChange returns an error if the server has no such tool, or if an alias is the name of another one.
func (a *Admin) checkToolChange(id tool.ID, in ToolChange) error {
	switch proposed, err := a.isProposed(id.Server); {
	case err != nil:
		return err
	case proposed:
		return onlyProposedError(id.Server)
	}
	if a.Config().Server(id.Server).ToolSettingsOf(id.Tool) == nil {
		if _, err := a.findTool(id); err != nil {
			return err
		}
	}
	for _, one := range in.Changes {
		alias, _ := wirejson.String(one.Value)
		if other := (tool.ID{Server: id.Server, Tool: alias}); one.Key == "alias" && other != id && a.Catalog.Current().Tool(other) != nil {
			return problem.Newf(problem.Conflict, "The server has a tool with the name '%s'.", problem.ClipName(alias)).
				WithHint("Choose another alias.").With("parameter", "alias")
		}
	}
	return nil
}

// Unhinted counts the tools of a server that would benefit from enforcing inferred hints.
type Unhinted struct {
	Server string `json:"server"`
	Tools  int    `json:"tools" doc:"The number of callable tools that declare neither readOnlyHint nor destructiveHint."`
	Reads  int    `json:"reads" doc:"The number of these tools that are inferred to be reads."`
}

// countUnhintedTools counts a server's usable tools without hints, and how many of them look like reads. It returns nil
// if the user has configured infer_hints or if no tool would become a read.
func countUnhintedTools(s *catalog.Server, c *config.Server) *Unhinted {
	if c == nil || c.InferHints != "" {
		return nil
	}
	u := Unhinted{Server: s.Name}
	for _, t := range s.Tools {
		if t.InferMode != policy.InferAdvise || displayedToolStatus(t) != "" {
			continue
		}
		switch t.InferredOperation().Operation {
		case policy.NoOperation:
			continue
		case policy.Read:
			u.Reads++
		}
		u.Tools++
	}
	if u.Reads == 0 {
		return nil
	}
	return &u
}

// listServersWithUnhintedTools returns the servers that would benefit from enforcing inferred hints, with the largest
// benefit first.
func listServersWithUnhintedTools(servers []*catalog.Server, cfg *config.Config) (all []Unhinted) {
	for _, s := range servers {
		if u := countUnhintedTools(s, cfg.Server(s.Name)); u != nil {
			all = append(all, *u)
		}
	}
	slices.SortStableFunc(all, func(a, b Unhinted) int { return cmp.Compare(b.Reads, a.Reads) })
	return all
}

// UsableServer is a server whose tools a caller may use.
type UsableServer struct {
	Name   string
	Listed bool // whether its tools are known
	Tools  int  // number of callable tools
}

// UsableServers returns the enabled and approved servers in the caller's scope, sorted by name. It also returns a
// channel that is closed when they may have changed.
func (g *Gateway) UsableServers(c *auth.Caller) (all []UsableServer, changed <-chan struct{}) {
	snapshot := g.Catalog.Current().ScopedTo(c.Scope())
	for _, s := range snapshot.Servers() {
		if s.Enabled && !s.Quarantined {
			all = append(all, UsableServer{s.Name, s.Listed, s.Callable})
		}
	}
	return all, snapshot.ReplacedChan()
}

// CallsPerServer returns the number of calls of each server in the last 30 days, as of the last count. It returns nil
// before the first count. It also returns nil for a caller with a limited scope, because most of the calls are from
// other clients. Callers must not modify the map.
func (g *Gateway) CallsPerServer(c *auth.Caller) map[string]int64 {
	if calls := g.calls.Load(); calls != nil && !c.Scope().IsBounded() {
		return *calls
	}
	return nil
}
