package approval

import (
	"maps"
	"slices"
	"strings"

	"mcpproxy/internal/mcp/wirejson"
)

// ChangeSummary counts the differences of two definitions.
type ChangeSummary struct {
	Description *WordCount `json:"description,omitempty" doc:"The change of the description. Absent if it did not change."`
	Parameters  int        `json:"parameters,omitempty" doc:"The number of parameters that were added, removed or changed."`
	Hints       bool       `json:"hints,omitempty" doc:"Whether a hint that affects the policy changed."`
	Other       []string   `json:"other,omitempty" doc:"The names of the other members that changed."`
}

// WordCount counts added and removed words.
type WordCount struct {
	Added   int `json:"added"`
	Removed int `json:"removed"`
}

// SummarizeDifferences summarizes the result of Diff.
func SummarizeDifferences(all []Difference) ChangeSummary {
	var s ChangeSummary
	parameters, other := map[string]bool{}, map[string]bool{}
	for _, d := range all {
		rest, isParameter := strings.CutPrefix(d.Path, "/inputSchema/properties")
		switch {
		case d.Path == "/description":
			s.Description = d.countChangedWords()
		case d.Hint:
			s.Hints = true
		case isParameter && rest == "": // all parameters
			for _, m := range append(parseMembers(d.Old), parseMembers(d.New)...) {
				parameters[wirejson.EscapePointerToken(m.name)] = true
			}
		case isParameter && rest[0] == '/':
			name, _, _ := strings.Cut(rest[1:], "/")
			parameters[name] = true
		case strings.HasPrefix(d.Path, "/inputSchema/required"):
			for _, name := range requiredNames(d) {
				parameters[wirejson.EscapePointerToken(name)] = true
			}
		default:
			name, _, _ := strings.Cut(strings.TrimPrefix(d.Path, "/"), "/")
			other[name] = true
		}
	}
	s.Parameters, s.Other = len(parameters), slices.Sorted(maps.Keys(other))
	return s
}

// requiredNames returns the names in a difference of "required".
func requiredNames(d Difference) (names []string) {
	for _, value := range [][]byte{d.Old, d.New} {
		if name, ok := wirejson.String(value); ok {
			names = append(names, name)
		}
		for _, e := range parseElements(value) {
			if name, ok := wirejson.String(e); ok {
				names = append(names, name)
			}
		}
	}
	return names
}

// countChangedWords counts the words of a text difference.
func (d Difference) countChangedWords() *WordCount {
	var n WordCount
	for _, p := range d.Words {
		switch p.Kind {
		case Added:
			n.Added += len(strings.Fields(p.Text))
		case Removed:
			n.Removed += len(strings.Fields(p.Text))
		}
	}
	if d.Words == nil { // the whole text changed
		was, _ := wirejson.String(d.Old)
		is, _ := wirejson.String(d.New)
		n = WordCount{len(strings.Fields(is)), len(strings.Fields(was))}
	}
	return &n
}
