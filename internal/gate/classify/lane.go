package classify

import (
	"encoding/json"
	"strings"

	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/wirejson"
)

// Classify returns the effect of a call with these arguments, a JSON object that has passed
// wirejson.Check.
func (r *Rule) Classify(args json.RawMessage) policy.Arguments {
	v := r.verdict(args)
	if v.Operation == policy.NoOperation {
		v = unread("nothing to judge")
	}
	return policy.Arguments{Operation: v.Operation, Word: v.Word, By: r.By, Path: r.Argument, Declared: r.Declared, Unread: v.Unread}
}

func (r *Rule) verdict(args json.RawMessage) (worst verdict) {
	if len(args) > 4*maxText && (r.By == policy.ByShell || r.By == policy.ByCLI) {
		return tooLong
	}
	found := false
	each(args, r.path(), func(value []byte) {
		found = true
		worst = worst.worse(r.value(value))
	})
	switch {
	case !found && r.Default != "":
		worst = r.text(r.Default)
	case !found:
		return unread("no " + r.Argument)
	}
	return worst.worse(r.siblings(args))
}

// value classifies the value of the argument.
func (r *Rule) value(value []byte) (worst verdict) {
	if text, ok := wirejson.String(value); ok {
		return r.text(text)
	}
	if r.By == policy.ByGraphQL && len(value) <= maxText {
		return classifyGraphQLRequest(value, 0)
	}
	if wirejson.Kind(value) != '[' {
		return unread("no text in " + r.Argument)
	}
	words, ok := texts(value)
	switch {
	case !ok:
		return unread("no text in " + r.Argument)
	case r.By == policy.ByShell || r.By == policy.ByCLI:
		return r.text(quoted(words))
	}
	for i, w := range words {
		if i > 0 {
			worst = worst.worse(write("several statements"))
		}
		worst = worst.worse(r.text(w))
	}
	return worst
}

// siblings classifies other members that change the meaning of the argument.
func (r *Rule) siblings(args json.RawMessage) (worst verdict) {
	switch r.By {
	case policy.ByHTTP:
		if overridesMethod(strings.ToLower(string(args))) {
			return unread("a method that is overridden")
		}
	case policy.ByShell, policy.ByCLI:
		b := neighbours{rule: r, args: args}
		b.walk(args, r.path())
		return b.worst
	}
	return worst
}
