package catalog

import (
	"encoding/json"

	"mcpproxy/internal/config"
	"mcpproxy/internal/lane"
	"mcpproxy/internal/policy"
)

// JudgedBy is by which argument the tool is judged: as a person has said, or as its schema
// shows; nil when by none.
func (t *Tool) JudgedBy() *lane.Rule {
	if t.declared != nil {
		return t.declared
	}
	return t.entry.nature.JudgedBy()
}

// JudgeArguments says what a call of the tool does by its arguments; nothing where it is
// judged by none.
func (t *Tool) JudgeArguments(args json.RawMessage) policy.Arguments {
	rule := t.JudgedBy()
	if rule == nil {
		return policy.Arguments{}
	}
	return rule.Judge(args)
}

// declaredRule is the last of the rules of a server that is for a tool; nil without one.
func declaredRule(rules []config.LaneRule, name string) (found *lane.Rule) {
	for _, r := range rules {
		if policy.Matches(r.Pattern, name) {
			found = &lane.Rule{By: r.By, Argument: r.Argument, Read: r.Read, Destructive: r.Destructive, Declared: true, Program: lane.ProgramOf(name)}
		}
	}
	return found
}
