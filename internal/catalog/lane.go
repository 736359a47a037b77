package catalog

import (
	"encoding/json"

	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/classify"
	"mcpproxy/internal/gate/policy"
)

// JudgedBy is by which argument the tool is judged: as a person has said, or as its schema
// shows; nil when by none.
func (t *Tool) JudgedBy() *classify.Rule {
	if t.declared != nil {
		return t.declared
	}
	return t.entry.nature.ArgumentRule()
}

// ClassifyArguments says what a call of the tool does by its arguments; nothing where it is
// judged by none.
func (t *Tool) ClassifyArguments(args json.RawMessage) policy.Arguments {
	rule := t.JudgedBy()
	if rule == nil {
		return policy.Arguments{}
	}
	return rule.Classify(args)
}

// declaredRule is the last of the rules of a server that is for a tool; nil without one.
func declaredRule(rules []config.LaneRule, name string) (found *classify.Rule) {
	for _, r := range rules {
		if policy.Matches(r.Pattern, name) {
			found = &classify.Rule{By: r.By, Argument: r.Argument, Read: r.Read, Destructive: r.Destructive, Declared: true, Program: classify.ProgramOf(name)}
		}
	}
	return found
}
