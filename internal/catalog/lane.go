package catalog

import (
	"encoding/json"

	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/classify"
	"mcpproxy/internal/gate/policy"
)

// LaneRule returns the rule that classifies calls by an argument: the configured one,
// else the one that its schema implies; nil without one.
func (t *Tool) LaneRule() *classify.Rule {
	if t.laneRule != nil {
		return t.laneRule
	}
	return t.entry.classification.ArgumentRule()
}

// ClassifyArguments returns what a call does according to its arguments; the zero value
// without a rule.
func (t *Tool) ClassifyArguments(args json.RawMessage) policy.Arguments {
	rule := t.LaneRule()
	if rule == nil {
		return policy.Arguments{}
	}
	return rule.Classify(args)
}

// configuredLaneRule returns the last of a server's rules that matches a tool, or nil.
func configuredLaneRule(rules []config.LaneRule, name string) (found *classify.Rule) {
	for _, r := range rules {
		if policy.Matches(r.Pattern, name) {
			found = &classify.Rule{By: r.By, Argument: r.Argument, Read: r.Read, Destructive: r.Destructive, Declared: true, Program: classify.ProgramOf(name)}
		}
	}
	return found
}
