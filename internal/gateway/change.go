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

// ChangeServer sets one key of a server in the configuration, or takes it out
// when value is nil.
func (g *Gateway) ChangeServer(ctx context.Context, name, key string, value json.RawMessage, c Caller) (ServerView, error) {
	detail := clip(string(value))
	if value == nil {
		detail = "taken out"
	}
	err := g.act(c, about(activity.ConfigChange, tool.ID{Server: name}, "set_"+clip(key), detail), func() error {
		if !slices.Contains(ChangeableKeys(), key) {
			return problem.Newf(problem.InvalidParameter, "The key '%s' of a server cannot be changed like this.", clip(key)).
				WithHint("Edit mcp_config.json.").With("parameter", "key").With("allowed", ChangeableKeys())
		}
		s, err := g.subject(name)
		if err != nil {
			return err
		}
		if err := s.notProposed(); err != nil {
			return err
		}
		return g.Editor.SetServer(name, key, value)
	})
	if err != nil {
		return ServerView{}, err
	}
	return g.Server(ctx, name)
}

// notProposed refuses what only a server of the configuration has.
func (s *subject) notProposed() error {
	if s.proposal == nil {
		return nil
	}
	return problem.Newf(problem.Conflict, "Server '%s' is only proposed: it waits for review.", s.name).
		WithHint("Review it with `mcpproxy upstream approve " + s.name + "`, or take it away with `mcpproxy upstream remove " + s.name + "`.")
}
