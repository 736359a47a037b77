package policy

import (
	"encoding/json"
	"fmt"

	"mcpproxy/internal/mcp/result"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
)

// Selection is what is to be shown of results. What may stand in one is package result's.
type Selection = result.Expression

// CompileSelection compiles a selection. Its error says where it is wrong.
func CompileSelection(text string) (*Selection, error) { return result.Compile(text) }

// ReadSelection compiles what a call says of its result, a JSON value; nil where it says
// nothing.
func ReadSelection(given json.RawMessage) (*Selection, *problem.Problem) {
	if len(given) == 0 || wirejson.Kind(given) == 'n' {
		return nil, nil
	}
	text, isText := wirejson.String(given)
	if !isText {
		return nil, invalidSelection("it is not a string")
	}
	return ParseSelection(text)
}

// ParseSelection compiles what is said of a result; nil where nothing is.
func ParseSelection(text string) (*Selection, *problem.Problem) {
	if text == "" {
		return nil, nil
	}
	s, err := CompileSelection(text)
	if err != nil {
		return nil, invalidSelection(err.Error())
	}
	return s, nil
}

func invalidSelection(what string) *problem.Problem {
	return problem.New(problem.SelectInvalid, fmt.Sprintf("Invalid select: %s.", what),
		`Give an expression of jq for the result, without loops, recursion and definitions: "[.items[] | {id, name}]"; or leave select out.`).With("parameter", "select")
}
