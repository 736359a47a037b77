package gateway

import (
	"context"
	"encoding/json"
	"slices"

	"mcpproxy/internal/activity"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/tool"
)

// ChangeableKeys are the keys of a server that ChangeServer sets. How a server
// is launched is none of them: that is a new server, with a review of its own.
func ChangeableKeys() []string {
	return []string{"trust", "enabled_tools", "disabled_tools", "hint_overrides"}
}

// EnableServer enables a server in the configuration.
func (g *Gateway) EnableServer(ctx context.Context, c Caller, in ServerRef) (ServerView, error) {
	return g.ChangeServer(ctx, c, ServerChange{in, "enabled", json.RawMessage("true")})
}

// DisableServer disables a server in the configuration.
func (g *Gateway) DisableServer(ctx context.Context, c Caller, in ServerRef) (ServerView, error) {
	return g.ChangeServer(ctx, c, ServerChange{in, "enabled", json.RawMessage("false")})
}

// ChangeServer sets one key of a server in the configuration, or takes it out.
// That it is enabled or not, and that it is quarantined, is on record under the
// names of the operations that do only that.
func (g *Gateway) ChangeServer(ctx context.Context, c Caller, in ServerChange) (ServerView, error) {
	key, detail := in.Key, clip(string(in.Value))
	if in.Value == nil {
		detail = "taken out"
	}
	record, allowed := about(c, activity.ConfigChange, tool.ID{Server: in.Name}, "set_"+clip(key), detail), slices.Contains(ChangeableKeys(), key)
	switch key + " " + detail {
	case "quarantined true":
		return g.QuarantineServer(ctx, c, in.ServerRef)
	case "enabled true":
		record, allowed = about(c, activity.ServerChange, tool.ID{Server: in.Name}, "enable", ""), true
	case "enabled false":
		record, allowed = about(c, activity.ServerChange, tool.ID{Server: in.Name}, "disable", ""), true
	}
	err := g.act(c, record, func() error {
		if !allowed {
			return problem.Newf(problem.InvalidParameter, "The key '%s' of a server cannot be changed like this.", clip(key)).
				WithHint("Edit mcp_config.json.").With("parameter", "key").With("allowed", ChangeableKeys())
		}
		s, err := g.subject(in.Name)
		if err != nil {
			return err
		}
		if err := s.notProposed(); err != nil {
			return err
		}
		return g.Editor.SetServer(in.Name, key, in.Value)
	})
	if err != nil {
		return ServerView{}, err
	}
	return g.Server(ctx, c, in.ServerRef)
}

// notProposed refuses what only a server of the configuration has.
func (s *subject) notProposed() error {
	if s.proposal == nil {
		return nil
	}
	return problem.Newf(problem.Conflict, "Server '%s' is only proposed: it waits for review.", s.name).
		WithHint("Review it with `mcpproxy upstream approve " + s.name + "`, or take it away with `mcpproxy upstream remove " + s.name + "`.")
}
