package result

import (
	"fmt"
	"strconv"
	"strings"

	"mcpproxy/internal/problem"
	"mcpproxy/internal/rawjson"
)

// step is one step of a path: a member by name, or an element by number.
type step struct {
	name    string
	index   int
	element bool
}

func (s step) String() string {
	switch {
	case s.element:
		return "[" + strconv.Itoa(s.index) + "]"
	case s.name != "" && strings.Trim(s.name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == "":
		return "." + s.name
	}
	return "[" + strconv.Quote(s.name) + "]"
}

const pathForm = "a path such as $.content[0].text.items, with .name, ['name'] and [number]"

// parsePath reads a path: $.a.b[0], a.b[0], $['a']["b"][0]. A last [*] is
// read as nothing: the elements are what an array is read by.
func parsePath(path string) ([]step, error) {
	rest := strings.TrimSuffix(strings.TrimPrefix(path, "$"), "[*]")
	var steps []step
	if rest != "" && rest[0] != '.' && rest[0] != '[' {
		rest = "." + rest
	}
	for rest != "" {
		s, after, ok := readStep(rest)
		if !ok || len(steps) == 64 {
			return nil, badParameter("path", path, fmt.Sprintf("The path cannot be read at %q.", rest), pathForm)
		}
		steps, rest = append(steps, s), after
	}
	return steps, nil
}

func readStep(s string) (st step, rest string, ok bool) {
	if s[0] == '.' {
		end := 1 + strings.IndexAny(s[1:]+".", ".[")
		return step{name: s[1:end]}, s[end:], end > 1
	}
	if s[0] != '[' || len(s) < 3 {
		return st, "", false
	}
	if quote := s[1]; quote == '\'' || quote == '"' {
		end := strings.Index(s[2:], string(quote)+"]")
		if end < 0 {
			return st, "", false
		}
		return step{name: s[2 : 2+end]}, s[2+end+2:], true
	}
	number, rest, ok := strings.Cut(s[1:], "]")
	n, err := strconv.Atoi(number)
	return step{index: n, element: true}, rest, ok && err == nil && n >= 0
}

// badParameter is the error of a parameter with a value that is not allowed.
func badParameter(parameter string, value any, message, allowed string) error {
	return problem.New(problem.InvalidParameter, message, "Give "+allowed+".").
		With("parameter", parameter).With("value", value).With("allowed", allowed)
}

// place is a value found by a path, and the path that led there.
type place struct {
	value []byte
	path  strings.Builder
}

// lookUp follows the path from the result. A path whose first step is not
// there is followed from where the data of a result is: structuredContent, and
// the first text block that holds JSON. So a path into what the agent saw
// works without the envelope around it.
func lookUp(raw []byte, path string) (*place, error) {
	steps, err := parsePath(path)
	if err != nil {
		return nil, err
	}
	if raw = trim(raw); len(raw) == 0 {
		return nil, badParameter("path", path, "The result is empty, so there is nothing at "+path+".", "no path")
	}
	roots := []*place{newPlace(raw, "$")}
	if len(steps) == 0 && strings.HasSuffix(path, "[*]") || len(steps) > 0 && !roots[0].has(steps[0]) {
		roots = append(roots, dataRoots(raw)...)
	}
	for _, root := range roots[1:] {
		if len(steps) == 0 || root.has(steps[0]) {
			return root, root.follow(path, steps)
		}
	}
	return roots[0], roots[0].follow(path, steps)
}

func newPlace(value []byte, path string) *place {
	p := &place{value: value}
	p.path.WriteString(path)
	return p
}

// dataRoots returns the places where the data of a result is.
func dataRoots(raw []byte) (roots []*place) {
	if v := rawjson.Find(raw, "structuredContent"); v != nil {
		roots = append(roots, newPlace(v, "$.structuredContent"))
	}
	i := 0
	content := rawjson.Find(raw, "content")
	each(content, func(m member) bool {
		if text := jsonIn(rawjson.Find(m.value, "text")); text != nil {
			roots = append(roots, newPlace(text, fmt.Sprintf("$.content[%d].text", i)))
			return false
		}
		i++
		return true
	})
	return roots
}

// jsonIn returns the object or array that a string holds as text, nil when it
// holds none.
func jsonIn(v []byte) []byte {
	if len(v) < 2 || v[0] != '"' || !looksLikeJSON(head(v[1:len(v)-1])) {
		return nil
	}
	return whole(rawjson.Unescape(v[1 : len(v)-1]))
}

func (p *place) has(s step) bool {
	_, ok := child(p.value, s)
	return ok
}

func (p *place) follow(path string, steps []step) error {
	for _, s := range steps {
		v, ok := child(p.value, s)
		if !ok {
			if inner := jsonIn(p.value); inner != nil {
				p.value = inner
				v, ok = child(inner, s)
			}
		}
		if !ok {
			return badParameter("path", path, fmt.Sprintf("There is no %s at %s.", s, p.path.String()), p.allowed())
		}
		p.value = v
		p.path.WriteString(s.String())
	}
	if inner := jsonIn(p.value); inner != nil && strings.HasSuffix(path, "[*]") {
		p.value = inner
	}
	return nil
}

// child returns the member or element of v.
func child(v []byte, s step) (found []byte, ok bool) {
	if len(v) == 0 || s.element != (v[0] == '[') {
		return nil, false
	}
	i := 0
	each(v, func(m member) bool {
		if s.element && i == s.index || !s.element && string(rawjson.Unescape(m.name)) == s.name {
			found, ok = m.value, true
		}
		i++
		return !ok
	})
	return found, ok
}

// allowed says what could stand where the path went wrong.
func (p *place) allowed() string {
	v := p.value
	if len(v) > 0 && v[0] == '[' {
		return fmt.Sprintf("an element from [0] to [%d]", max(count(v)-1, 0))
	}
	if len(v) == 0 || v[0] != '{' {
		return "a path that ends at " + p.path.String()
	}
	var names []string
	each(v, func(m member) bool {
		if len(names) == 20 {
			names = append(names, "…")
			return false
		}
		names = append(names, string(rawjson.Clip(rawjson.Unescape(m.name), 60)))
		return true
	})
	return "one of the members " + strings.Join(names, ", ")
}

func count(v []byte) (n int) {
	each(v, func(member) bool { n++; return true })
	return n
}
