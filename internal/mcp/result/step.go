package result

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
)

// The limits of a path.
const (
	maxPath  = 4096 // bytes
	maxSteps = 64
)

type stepKind int

const (
	member  stepKind = iota // one member, by name
	element                 // one element, by index, from the end if negative
	all                     // all members or elements
	slice                   // elements of a range
)

// pathStep is one step of a path.
type pathStep struct {
	kind     stepKind
	name     string
	from, to int
}

const plainName = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

func (s pathStep) String() string {
	switch {
	case s.kind == element:
		return "[" + strconv.Itoa(s.from) + "]"
	case s.kind == all:
		return "[*]"
	case s.kind == slice && s.to == math.MaxInt:
		return "[" + strconv.Itoa(s.from) + ":]"
	case s.kind == slice:
		return "[" + strconv.Itoa(s.from) + ":" + strconv.Itoa(s.to) + "]"
	case s.name != "" && strings.Trim(s.name, plainName) == "":
		return "." + s.name
	}
	return "['" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s.name) + "']"
}

// matchesMany reports whether the step can match several values.
func (s pathStep) matchesMany() bool { return s.kind == all || s.kind == slice }

// formatPath formats steps as a path.
func formatPath(steps ...pathStep) string {
	var b strings.Builder
	for _, s := range steps {
		b.WriteString(s.String())
	}
	return strings.TrimPrefix(b.String(), ".")
}

const pathForm = "a path such as items[0].name, with .name, ['name'], [number], [from:to] and [*]"

// parsePath parses a path: $.a.b[0], a.b[-1], $['a']["b"][2:5], a[*].b. In quotes, a backslash escapes a quote or a
// backslash.
func parsePath(path string) ([]pathStep, error) {
	if len(path) > maxPath {
		return nil, newParameterError("path", wirejson.ClipText(path, 100), fmt.Sprintf("The path has %d bytes, more than the %d that are read.", len(path), maxPath), pathForm)
	}
	rest := strings.TrimSpace(path)
	if after, ok := strings.CutPrefix(rest, "$"); ok && (after == "" || after[0] == '.' || after[0] == '[') {
		rest = after
	} else if rest != "" && rest[0] != '.' && rest[0] != '[' {
		rest = "." + rest
	}
	var steps []pathStep
	for rest != "" {
		if len(steps) == maxSteps {
			return nil, newParameterError("path", path, fmt.Sprintf("The path has more than %d steps.", maxSteps), pathForm)
		}
		s, after, ok := parseStep(rest)
		if !ok {
			return nil, newParameterError("path", path, fmt.Sprintf("The path cannot be read at %q.", rest), pathForm)
		}
		steps, rest = append(steps, s), after
	}
	return steps, nil
}

func parseStep(s string) (st pathStep, rest string, ok bool) {
	if strings.HasPrefix(s, ".[") {
		s = s[1:]
	}
	if s[0] == '.' {
		end := 1 + strings.IndexAny(s[1:]+".", ".[")
		if s[1:end] == "*" {
			return pathStep{kind: all}, s[end:], true
		}
		return pathStep{name: s[1:end]}, s[end:], end > 1
	}
	if s[0] != '[' || len(s) < 3 {
		return st, "", false
	}
	if s[1] == '\'' || s[1] == '"' {
		name, rest, ok := parseQuotedName(s[1:])
		return pathStep{name: name}, rest, ok
	}
	inside, rest, ok := strings.Cut(s[1:], "]")
	if inside = strings.TrimSpace(inside); !ok || inside == "*" {
		return pathStep{kind: all}, rest, ok
	}
	from, to, sliced := strings.Cut(inside, ":")
	if !sliced {
		n, err := strconv.Atoi(inside)
		return pathStep{kind: element, from: n}, rest, err == nil
	}
	st = pathStep{kind: slice, to: math.MaxInt}
	return st, rest, parseSliceBound(from, &st.from) && parseSliceBound(to, &st.to)
}

// parseSliceBound parses one end of a slice. An empty end leaves n unchanged.
func parseSliceBound(s string, n *int) (ok bool) {
	if s = strings.TrimSpace(s); s == "" {
		return true
	}
	v, err := strconv.Atoi(s)
	*n = v
	return err == nil
}

// parseQuotedName parses a quoted name and the closing bracket. A quote without a following bracket is part of
// the name.
func parseQuotedName(s string) (name, rest string, ok bool) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && strings.IndexByte(`\'"`, s[i+1]) >= 0:
			i++
		case s[i] == s[0] && strings.HasPrefix(s[i+1:], "]"):
			return b.String(), s[i+2:], true
		}
		b.WriteByte(s[i])
	}
	return "", "", false
}

// newParameterError returns the error for an invalid parameter.
func newParameterError(parameter string, value any, message, allowed string) error {
	return problem.New(problem.InvalidParameter, message, "Give "+allowed+".").
		With("parameter", parameter).With("value", value).With("allowed", allowed)
}
