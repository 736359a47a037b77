package policy

import (
	"encoding/json"
	"fmt"

	"mcpproxy/internal/mcp/result"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
)

// ParseSelectParameter compiles the select parameter of a call, which is a JSON value. It returns nil if the
// parameter is missing.
func ParseSelectParameter(given json.RawMessage) (*result.Expression, *problem.Problem) {
	if len(given) == 0 || wirejson.Kind(given) == 'n' {
		return nil, nil
	}
	text, isText := wirejson.String(given)
	if !isText {
		return nil, invalidSelectionProblem("it is not a string")
	}
	return ParseSelection(text)
}

// ParseSelection compiles a selection. It returns nil if the text is empty.
func ParseSelection(text string) (*result.Expression, *problem.Problem) {
	if text == "" {
		return nil, nil
	}
	s, err := result.CompileExpression(text)
	if err != nil {
		return nil, invalidSelectionProblem(err.Error())
	}
	return s, nil
}

func invalidSelectionProblem(what string) *problem.Problem {
	return problem.New(problem.SelectInvalid, fmt.Sprintf("Invalid select: %s.", what),
		`Give an expression of jq for the result, without loops, recursion and definitions: "[.items[] | {id, name}]"; or leave select out.`).With("parameter", "select")
}
