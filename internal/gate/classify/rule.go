package classify

import (
	"strconv"
	"strings"

	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/wirejson"
)

// Rule says which argument determines the effect of a tool, and how it is classified.
type Rule struct {
	By       policy.LaneBy
	Argument string // its path: $.sql
	// Read and Destructive are actions or patterns; every other action is a write.
	Read, Destructive []string
	Declared          bool   // by a user
	Default           string // value if the argument is missing; "" if unknown
	Program           string // program for a command line without one
}

// path returns the path of the argument.
func (r *Rule) path() []string {
	return strings.Split(strings.TrimPrefix(strings.TrimPrefix(r.Argument, "$"), "."), ".")
}

// each calls fn with the values at a path, and with each element of lists on the way.
func each(value []byte, path []string, fn func([]byte)) {
	switch {
	case len(path) == 0:
		if wirejson.Kind(value) != 'n' {
			fn(value)
		}
	case wirejson.Kind(value) == '[':
		_ = wirejson.EachElement(value, func(e []byte) error { each(e, path, fn); return nil })
	case wirejson.Kind(value) == '{':
		if v := wirejson.Find(value, path[0]); v != nil {
			each(v, path[1:], fn)
		}
	}
}

// texts returns the elements of a list of strings.
func texts(list []byte) (all []string, ok bool) {
	err := wirejson.EachElement(list, func(e []byte) error {
		text, isText := wirejson.String(e)
		if !isText {
			return strconv.ErrSyntax
		}
		all = append(all, text)
		return nil
	})
	return all, err == nil
}

// quoted quotes words as a shell line.
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
		return classifySQL(text)
	case policy.ByShell:
		return classifyShell(text)
	case policy.ByCLI:
		return classifyShell(r.lineOf(text))
	case policy.ByHTTP:
		return classifyMethod(text)
	case policy.ByGraphQL:
		return classifyGraphQL(text)
	case policy.ByAction:
		return r.action(text)
	}
	return unread("no kind that is known")
}

// lineOf prepends the program to a command line without it.
func (r *Rule) lineOf(text string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	if r.Program == "" || strings.Trim(first, "'") == r.Program {
		return text
	}
	return r.Program + " " + text
}
