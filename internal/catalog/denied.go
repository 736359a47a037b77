package catalog

import (
	"slices"

	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/policy"
)

// isDeniedByConfig reports whether the server's allow and deny lists exclude the tool.
func isDeniedByConfig(server config.Server, name string) bool {
	fits := func(pattern string) bool { return policy.MatchesPattern(pattern, name) }
	if len(server.EnabledTools) > 0 {
		return !slices.ContainsFunc(server.EnabledTools, fits)
	}
	return slices.ContainsFunc(server.DisabledTools, fits)
}
