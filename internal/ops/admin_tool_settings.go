package ops

import (
	"context"
	"strings"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

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
