package classify

import (
	"strconv"
	"strings"

	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/wirejson"
)

// Rule says by which argument a tool is judged, and how.
type Rule struct {
	By       policy.LaneBy
	Argument string // its path: $.sql
	// Read and Destructive are the actions, or patterns of them, that are such; every
	// other one is a write.
	Read, Destructive []string
	Declared          bool   // by a person
	Default           string // what it is when it is not given; "" when nobody says
	Program           string // what a command line without one is for
}

// path is the path of the argument.
func (r *Rule) path() []string {
	return strings.Split(strings.TrimPrefix(strings.TrimPrefix(r.Argument, "$"), "."), ".")
}

// each calls fn with the values at a path; what is in a list on the way counts, each.
func each(value []byte, path []string, fn func([]byte)) {
	switch {
	case len(path) == 0:
		if wirejson.Kind(value) != 'n' {
			fn(value)
		}
	case wirejson.Kind(value) == '[':
		_ = wirejson.Elements(value, func(e []byte) error { each(e, path, fn); return nil })
	case wirejson.Kind(value) == '{':
		if v := wirejson.Find(value, path[0]); v != nil {
			each(v, path[1:], fn)
		}
	}
}

// texts returns the texts of a list of them.
func texts(list []byte) (all []string, ok bool) {
	err := wirejson.Elements(list, func(e []byte) error {
		text, isText := wirejson.String(e)
		if !isText {
			return strconv.ErrSyntax
		}
		all = append(all, text)
		return nil
	})
	return all, err == nil
}

// quoted writes words as a shell line.
func quoted(words []string) string {
	line := make([]string, len(words))
	for i, w := range words {
		line[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	}
	return strings.Join(line, " ")
}

func (r *Rule) text(text string) verdict {
	switch r.By {
	case policy.BySQL:
		return readSQL(text)
	case policy.ByShell:
		return readShell(text)
	case policy.ByCLI:
		return readShell(r.lineOf(text))
	case policy.ByHTTP:
		return readMethod(text)
	case policy.ByGraphQL:
		return readGraphQL(text)
	case policy.ByAction:
		return r.action(text)
	}
	return unread("no kind that is known")
}

// lineOf puts the program before a command line that does not name it.
func (r *Rule) lineOf(text string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	if r.Program == "" || strings.Trim(first, "'") == r.Program {
		return text
	}
	return r.Program + " " + text
}
