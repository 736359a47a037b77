package classify

import (
	"encoding/json"
	"strings"

	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/wirejson"
)

// Classify returns the effect of a call with these arguments, a JSON object that has passed
// wirejson.Check.
func (r *ArgumentRule) Classify(args json.RawMessage) policy.ArgumentEffect {
	v := r.classifyArguments(args)
	if v.Operation == policy.NoOperation {
		v = unparseableVerdict("nothing to judge")
	}
	return policy.ArgumentEffect{Operation: v.Operation, Word: v.Word, By: r.By, Path: r.Argument, Declared: r.Declared, Unread: v.Unread}
}

func (r *ArgumentRule) classifyArguments(args json.RawMessage) (worst verdict) {
	if len(args) > 4*maxText && (r.By == policy.ByShell || r.By == policy.ByCLI) {
		return tooLong
	}
	found := false
	forEachValueAtPath(args, r.argumentPath(), func(value []byte) {
		found = true
		worst = worst.worseOf(r.classifyValue(value))
	})
	switch {
	case !found && r.Default != "":
		worst = r.classifyText(r.Default)
	case !found:
		return unparseableVerdict("no " + r.Argument)
	}
	return worst.worseOf(r.classifySiblings(args))
}

// classifyValue classifies the value of the argument.
func (r *ArgumentRule) classifyValue(value []byte) (worst verdict) {
	if text, ok := wirejson.String(value); ok {
		return r.classifyText(text)
	}
	if r.By == policy.ByGraphQL && len(value) <= maxText {
		return classifyGraphQLRequest(value, 0)
	}
	if wirejson.Kind(value) != '[' {
		return unparseableVerdict("no text in " + r.Argument)
	}
	words, ok := parseStrings(value)
	switch {
	case !ok:
		return unparseableVerdict("no text in " + r.Argument)
	case r.By == policy.ByShell || r.By == policy.ByCLI:
		return r.classifyText(quoteShellWords(words))
	}
	for i, w := range words {
		if i > 0 {
			worst = worst.worseOf(writeVerdict("several statements"))
		}
		worst = worst.worseOf(r.classifyText(w))
	}
	return worst
}

// classifySiblings classifies other members that change the meaning of the argument.
func (r *ArgumentRule) classifySiblings(args json.RawMessage) (worst verdict) {
	switch r.By {
	case policy.BySQL:
		return r.classifyOtherTexts(args, "sql")
	case policy.ByGraphQL:
		return r.classifyOtherTexts(args, "graphql")
	case policy.ByHTTP:
		if mayOverrideMethod(strings.ToLower(string(args))) {
			return unparseableVerdict("a method that is overridden")
		}
	case policy.ByShell, policy.ByCLI:
		b := siblingClassifier{rule: r, args: args}
		b.walk(args, r.argumentPath())
		return b.worst
	}
	return worst
}

// classifyOtherTexts classifies other members that, by their names, contain such a text too.
func (r *ArgumentRule) classifyOtherTexts(args json.RawMessage, kind string) (worst verdict) {
	if wirejson.Kind(args) != '{' {
		return worst
	}
	own, judged := r.argumentPath()[0], 0
	_ = wirejson.EachMember(args, func(name, value []byte) error {
		lower := strings.ToLower(string(name))
		if string(name) == own || len(value) <= 2 || !detectWords()[kind][lower] && !detectWords()[kind+" perhaps"][lower] {
			return nil
		}
		if texts, ok := textOrTexts(value); ok {
			if judged += len(texts); judged > maxNeighbours {
				worst = worst.worseOf(tooManyNeighbours)
				return nil
			}
			for _, text := range texts {
				worst = worst.worseOf(r.classifyText(text))
			}
		}
		return nil
	})
	return worst
}
