package classify

import (
	"slices"

	"mcpproxy/internal/gate/policy"
)

// classifyAction classifies the name of an action by the lists of the rule.
func (r *ArgumentRule) classifyAction(name string) verdict {
	among := func(patterns []string) bool {
		return slices.ContainsFunc(patterns, func(p string) bool { return policy.MatchesPattern(p, name) })
	}
	switch {
	case among(r.Destructive):
		return destructiveVerdict(name)
	case among(r.Read):
		return readVerdict
	}
	return writeVerdict(name)
}
