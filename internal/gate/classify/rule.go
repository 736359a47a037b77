package classify

import (
	"strconv"
	"strings"

	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/wirejson"
)

// ArgumentRule defines which argument determines the effect of a tool, and how it is classified.
type ArgumentRule struct {
	By       policy.ArgumentKind
	Argument string // path of the argument: $.sql
	// Read and Destructive are actions or patterns; every other action is a write.
	Read, Destructive []string
	Declared          bool   // configured by a user
	Default           string // value if the argument is missing; "" if unknown
	Program           string // program for a command line that contains only arguments
}

// MayReach reports whether some value of the argument can have this effect.
func (r *ArgumentRule) MayReach(o policy.Operation) bool {
	return r.By != policy.ByAction || o == policy.Write || o == policy.Read && len(r.Read) > 0 || o == policy.Destructive && len(r.Destructive) > 0
}

// argumentPath returns the path of the argument.
func (r *ArgumentRule) argumentPath() []string {
	return strings.Split(strings.TrimPrefix(strings.TrimPrefix(r.Argument, "$"), "."), ".")
}

// forEachValueAtPath calls fn with each value at a path. It follows the path into every element of a list.
func forEachValueAtPath(value []byte, path []string, fn func([]byte)) {
	switch {
	case len(path) == 0:
		if wirejson.Kind(value) != 'n' {
			fn(value)
		}
	case wirejson.Kind(value) == '[':
		_ = wirejson.EachElement(value, func(e []byte) error { forEachValueAtPath(e, path, fn); return nil })
	case wirejson.Kind(value) == '{':
		if v := wirejson.Find(value, path[0]); v != nil {
			forEachValueAtPath(v, path[1:], fn)
		}
	}
}

// parseStrings returns the elements of a list of strings.
func parseStrings(list []byte) (all []string, ok bool) {
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

// quoteShellWords quotes words as a shell line.
func quoteShellWords(words []string) string {
	line := make([]string, len(words))
	for i, w := range words {
		line[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	}
	return strings.Join(line, " ")
}

func (r *ArgumentRule) classifyText(text string) verdict {
	switch r.By {
	case policy.BySQL:
		return classifySQL(text)
	case policy.ByShell:
		return classifyShell(text)
	case policy.ByCLI:
		return classifyShell(r.withProgram(text))
	case policy.ByHTTP:
		return classifyHTTPMethod(text)
	case policy.ByGraphQL:
		return classifyGraphQL(text)
	case policy.ByAction:
		return r.classifyAction(text)
	}
	return unparseableVerdict("no kind that is known")
}

// withProgram prepends the program to a command line that does not start with it.
func (r *ArgumentRule) withProgram(text string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	if r.Program == "" || strings.Trim(first, "'") == r.Program {
		return text
	}
	return r.Program + " " + text
}
