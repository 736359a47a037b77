package config

import (
	"fmt"
	"slices"
	"strings"

	"mcpproxy/internal/problem"
)

// FileName is what the file is called unless its path says otherwise.
const FileName = "mcp_config.json"

// maxMistakes bounds what is told of one file. It is soft: what concerns the
// file as a whole is always told.
const maxMistakes = 100

// Mistake is one thing that is wrong with a configuration file. Line and
// Column count from 1, Column in characters; they are 0 when the mistake is
// not in the file. Path is the key: "mcpServers.github.args[0]".
type Mistake struct {
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// ofFlag says that the mistake is in a flag of the command line.
func (m Mistake) ofFlag() bool { return strings.HasPrefix(m.Path, "--") }

// text is the line that a person reads.
func (m Mistake) text(file string) string {
	s := file + ": "
	switch {
	case m.Line > 0:
		s = fmt.Sprintf("%s:%d:%d: ", file, m.Line, m.Column)
	case m.ofFlag():
		s = ""
	}
	s += m.Message
	if m.Hint != "" {
		s += " (" + m.Hint + ")"
	}
	return s
}

// refused makes the error for a file with mistakes, in the order of the file,
// and more that are only counted.
func refused(file string, mistakes []Mistake, more int) *problem.Problem {
	slices.SortStableFunc(mistakes, func(a, b Mistake) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	var lines []string
	for _, m := range mistakes {
		lines = append(lines, m.text(file))
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("%s: and %d more", file, more))
	}
	hint := "Correct the file; until then nothing of it is applied."
	if !slices.ContainsFunc(mistakes, func(m Mistake) bool { return !m.ofFlag() }) {
		hint = "Correct the flag."
	}
	return problem.New(problem.InvalidConfig, strings.Join(lines, "\n"), hint).With("problems", mistakes)
}

// maxWarnings bounds what is told of a file that is right.
const maxWarnings = 20

// warnings are what is not wrong with a file but should be otherwise.
type warnings struct {
	list []Mistake
	more int // beyond the bound, which are only counted
}

func (w warnings) texts(file string) []string {
	var out []string
	for _, m := range w.list {
		out = append(out, m.text(file))
	}
	if w.more > 0 {
		out = append(out, fmt.Sprintf("%s: and %d more of this kind", file, w.more))
	}
	return out
}
