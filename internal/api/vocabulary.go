package api

import (
	"strings"

	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
)

// vocabularyWords returns the allowed values for a name in the struct tag "words".
func vocabularyWords(name string) []string {
	switch name {
	case "status":
		return toolStatusWords()
	case "shown status":
		return ops.Counts{}.Words()[1:]
	case "status or callable":
		return ops.Counts{}.Words()
	case "variant":
		return callToolVariantWords()
	case "operation":
		return operationTypeWords()
	case "check":
		return policy.CheckNames()
	case "sensitivity":
		return policy.Sensitivities()
	case "trust":
		return config.TrustValues()
	case "lane_by":
		return policy.ArgumentKindNames()
	case "infer":
		return config.InferValues()
	}
	panic("there is no vocabulary " + name)
}

func toolStatusWords() (words []string) {
	for _, s := range policy.Statuses() {
		words = append(words, s.String())
	}
	return words
}

func operationTypeWords() []string {
	return []string{policy.Read.String(), policy.Write.String(), policy.Destructive.String()}
}

func callToolVariantWords() []string {
	return []string{policy.CallToolRead.String(), policy.CallToolWrite.String(), policy.CallToolDestructive.String()}
}

// newInvalidValueError returns an error with the parameter, the value and the allowed values.
func newInvalidValueError(name, value string, allowed ...string) *problem.Problem {
	return problem.Newf(problem.InvalidParameter, "Invalid value '%s' for %s: must be %s", problem.ClipName(value), name, joinOr(allowed)).
		With("parameter", name).With("value", problem.ClipName(value)).With("allowed", emptyIfNil(allowed))
}

func joinOr(words []string) string {
	switch len(words) {
	case 0:
		return "left out"
	case 1:
		return words[0]
	case 2:
		return words[0] + " or " + words[1]
	}
	return strings.Join(words[:len(words)-1], ", ") + ", or " + words[len(words)-1]
}

// displayValue returns a JSON value for an error: a string without quotes.
func displayValue(value []byte) string {
	if s, ok := wirejson.String(value); ok {
		return s
	}
	return string(value)
}

func emptyIfNil[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}
