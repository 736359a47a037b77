package catalog

import (
	"encoding/json"

	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/classify"
	"mcpproxy/internal/gate/policy"
)

// ArgumentRule returns the rule that classifies calls by an argument: the configured rule, or else the rule that the
// tool's schema implies. It returns nil if there is neither.
func (t *Tool) ArgumentRule() *classify.ArgumentRule {
	if t.laneRule != nil {
		return t.laneRule
	}
	return t.entry.classification.ArgumentRule()
}

// ClassifyArguments returns the effect of a call's arguments. It returns the zero value if the tool has no argument
// rule.
func (t *Tool) ClassifyArguments(args json.RawMessage) policy.ArgumentEffect {
	rule := t.ArgumentRule()
	if rule == nil {
		return policy.ArgumentEffect{}
	}
	return rule.Classify(args)
}

// IsInLane reports whether the tool is in the lane of a call tool. That is the lane of its hints. If a user has
// configured an argument rule and the effects of arguments are used, a lane that the arguments may reach counts too.
func (t *Tool) IsInLane(v policy.CallToolVariant) bool {
	return t.CallWith == v || t.ArgumentEffects != policy.ArgumentsOff && t.laneRule != nil && t.laneRule.MayReach(v.Operation())
}

// configuredArgumentRule returns the last of a server's rules that matches a tool, or nil.
func configuredArgumentRule(rules []config.ArgumentLaneRule, name string) (found *classify.ArgumentRule) {
	for _, r := range rules {
		if policy.MatchesPattern(r.Pattern, name) {
			found = &classify.ArgumentRule{By: r.By, Argument: r.Argument, Read: r.Read, Destructive: r.Destructive, Declared: true, Program: classify.ProgramInToolName(name)}
		}
	}
	return found
}
