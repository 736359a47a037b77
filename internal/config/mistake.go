package config

import (
	"fmt"
	"slices"
	"strings"

	"mcpproxy/internal/problem"
)

// FileName is the default name of the file.
const FileName = "mcp_config.json"

// maxMistakes limits the reported mistakes of a file, not counting those about the whole file.
const maxMistakes = 100

// Mistake is one error in a configuration file. Line and Column count from 1, Column in
// characters; they are 0 if the mistake is not in the file. Path is the key:
// "mcpServers.github.args[0]".
type Mistake struct {
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// isInFlag reports whether the mistake is in a command line flag.
func (m Mistake) isInFlag() bool { return strings.HasPrefix(m.Path, "--") }

// formatText returns the mistake as a readable line.
func (m Mistake) formatText(file string) string {
	s := file + ": "
	switch {
	case m.Line > 0:
		s = fmt.Sprintf("%s:%d:%d: ", file, m.Line, m.Column)
	case m.isInFlag():
		s = ""
	}
	s += m.Message
	if m.Hint != "" {
		s += " (" + m.Hint + ")"
	}
	return s
}

// newMistakesError returns the error for a file with mistakes, in file order. more is the number of further mistakes
// that were only counted.
func newMistakesError(file string, mistakes []Mistake, more int) *problem.Problem {
	slices.SortStableFunc(mistakes, func(a, b Mistake) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	var lines []string
	for _, m := range mistakes {
		lines = append(lines, m.formatText(file))
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("%s: and %d more", file, more))
	}
	code, hint := problem.InvalidConfig, "Correct the file. Until then, it is not applied."
	if !slices.ContainsFunc(mistakes, func(m Mistake) bool { return !m.isInFlag() }) {
		code, hint = problem.Usage, "Correct the flag."
	}
	return problem.New(code, strings.Join(lines, "\n"), hint).With("problems", mistakes)
}

// maxWarnings limits the warnings about a valid file.
const maxWarnings = 20

// warnings are warnings about a valid file.
type warnings struct {
	list []Mistake
	more int // number of warnings beyond the limit
}

func (w warnings) toTexts(file string) []string {
	var out []string
	for _, m := range w.list {
		out = append(out, m.formatText(file))
	}
	if w.more > 0 {
		out = append(out, fmt.Sprintf("%s: and %d more of this kind", file, w.more))
	}
	return out
}
