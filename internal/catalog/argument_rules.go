package catalog

import (
	"encoding/json"

	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/classify"
	"mcpproxy/internal/gate/policy"
)

// ArgumentRule returns the rule that classifies calls by an argument: the configured one,
// else the one that its schema implies; nil without one.
func (t *Tool) ArgumentRule() *classify.ArgumentRule {
	if t.laneRule != nil {
		return t.laneRule
	}
	return t.entry.classification.ArgumentRule()
}

// ClassifyArguments returns the effect of a call's arguments; the zero value without a rule.
func (t *Tool) ClassifyArguments(args json.RawMessage) policy.ArgumentEffect {
	rule := t.ArgumentRule()
	if rule == nil {
		return policy.ArgumentEffect{}
	}
	return rule.Classify(args)
}

// IsInLane reports whether the tool is in the lane of a call tool: the one of its hints, or one that its arguments
// may reach if a user has configured which argument decides, and arguments count.
func (t *Tool) IsInLane(v policy.CallToolVariant) bool {
	return t.CallWith == v || t.JudgeMode != policy.ArgumentsOff && t.laneRule != nil && t.laneRule.MayReach(v.Operation())
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
