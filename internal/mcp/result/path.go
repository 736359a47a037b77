package result

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"mcpproxy/internal/mcp/wirejson"
)

// place is a value in a result and its path.
type place struct {
	value []byte
	at    []step
}

func (p place) path() string {
	path := formatPath(p.at...)
	if path == "" || path[0] == '[' {
		return "$" + path
	}
	return "$." + path
}

// allowed lists the possible next steps of a path, for an error.
func (p place) allowed() string {
	switch wirejson.Kind(p.value) {
	case '[':
		if n := count(p.value); n > 0 {
			return fmt.Sprintf("an element from [0] to [%d]", n-1)
		}
		return "a path that ends at " + p.path() + ", an array without elements"
	case '{':
		if names := memberNames(p.value); names != "" {
			return "one of the members " + names
		}
		return "a path that ends at " + p.path() + ", an object without members"
	}
	return "a path that ends at " + p.path()
}

// memberNames lists the first member names of an object.
func memberNames(object []byte) string {
	var names []string
	each(object, func(_ int, m entry) bool {
		if len(names) == 20 {
			names = append(names, "…")
			return false
		}
		names = append(names, string(wirejson.Clip(wirejson.Unescape(m.name), 60)))
		return true
	})
	return strings.Join(names, ", ")
}

// Value returns the one raw value at a path; without a path the data: the structured content, else the
// first text that is JSON.
func Value(raw json.RawMessage, path string) ([]byte, error) {
	if path == "" || path == "$" {
		if roots := dataRoots(raw); len(roots) > 0 {
			return roots[len(roots)-1].value, nil
		}
		return nil, badParameter("path", path, "The result holds no JSON.", "a path, such as content[0].text")
	}
	to, err := lookUp(raw, path)
	if err != nil {
		return nil, err
	}
	if !to.one() {
		return nil, badParameter("path", path, "The path leads to several values.", "a path to one")
	}
	at, err := to.value(path)
	return at.value, err
}

func count(v []byte) (n int) {
	each(v, func(int, entry) bool { n++; return true })
	return n
}

// dataRoots returns the values where the data may be: the JSON of the first text block with JSON, and
// structuredContent. An agent has seen the text of a cut result.
func dataRoots(raw []byte) (roots []place) {
	each(wirejson.Find(raw, "content"), func(i int, m entry) bool {
		text := jsonIn(wirejson.Find(m.value, "text"))
		if text != nil {
			roots = append(roots, place{text, []step{{name: "content"}, m.step(i), {name: "text"}}})
		}
		return text == nil
	})
	if v := wirejson.Find(raw, "structuredContent"); v != nil {
		roots = append(roots, place{v, []step{{name: "structuredContent"}}})
	}
	return roots
}

// within reports whether the step matches in v.
func (s step) within(v []byte) bool {
	return s.kind == all || s.kind == slice && wirejson.Kind(v) == '[' || child(v, &s) != nil
}

// selection is the target of a path.
type selection struct {
	root  place
	steps []step // from root
}

// lookUp resolves a path. If its first step does not match at the top, it starts at the data, so that
// paths into what the agent saw work without the envelope.
func lookUp(raw []byte, path string) (selection, error) {
	steps, err := parsePath(path)
	if err != nil {
		return selection{}, err
	}
	if raw = trim(raw); len(raw) == 0 {
		return selection{}, badParameter("path", path, "The result is empty, so there is nothing at "+path+".", "no path")
	}
	top := place{value: raw}
	if len(steps) == 0 || !steps[0].many() && steps[0].within(raw) {
		return selection{top, steps}, nil
	}
	roots := dataRoots(raw)
	for _, root := range roots {
		if steps[0].within(root.value) {
			return selection{root, steps}, nil
		}
	}
	if steps[0].kind == all || len(roots) == 0 {
		return selection{top, steps}, nil
	}
	allowed := top.allowed()
	for _, root := range roots {
		allowed += "; in " + root.path() + " " + root.allowed()
	}
	return selection{}, nothingAt(path, steps[0], top, allowed)
}

func nothingAt(path string, s step, p place, allowed string) error {
	return badParameter("path", path, fmt.Sprintf("There is no %s at %s.", s, p.path()), allowed)
}

// one reports whether the path selects a single value; a last [*] counts as one.
func (s selection) one() bool {
	i := slices.IndexFunc(s.steps, step.many)
	return i < 0 || i == len(s.steps)-1 && s.steps[i].kind == all
}

// value returns the single value of the path.
func (s selection) value(path string) (found place, err error) {
	steps := s.steps
	open := len(steps) > 0 && steps[len(steps)-1].kind == all
	if open {
		steps = steps[:len(steps)-1]
	}
	w := walk{at: slices.Clip(s.root.at), fn: func(p place) bool {
		found = place{p.value, slices.Clone(p.at)}
		return true
	}}
	w.from(s.root.value, steps)
	if found.value == nil {
		return found, w.nothing(path)
	}
	if open {
		if found.value = opened(found.value); found.value[0] != '[' && found.value[0] != '{' {
			return found, nothingAt(path, step{kind: all}, found, found.allowed())
		}
	}
	return found, nil
}

// walk follows steps and calls fn for each value until it returns false. The place is valid only during
// the call.
type walk struct {
	at []step
	fn func(p place) bool

	any      bool  // a value was found, or an empty container searched
	lost     place // the deepest place without a match
	lostStep step
}

// from follows the steps from v. It returns false if fn stopped.
func (w *walk) from(v []byte, steps []step) bool {
	if len(steps) == 0 {
		w.any = true
		return w.fn(place{v, w.at})
	}
	s := steps[0]
	v = opened(v)
	if !s.many() {
		next := child(v, &s)
		if next == nil {
			w.lose(v, s)
			return true
		}
		return w.into(next, s, steps[1:])
	}
	kind := wirejson.Kind(v)
	if kind != '[' && (kind != '{' || s.kind == slice) {
		w.lose(v, s)
		return true
	}
	first, end := 0, math.MaxInt
	if s.kind == slice {
		n := count(v)
		first, end = fromStart(s.from, n), fromStart(s.to, n)
	}
	more := true
	w.any = w.any || len(steps) == 1
	looked := false
	each(v, func(i int, m entry) bool {
		if i >= first && i < end {
			looked = true
			more = w.into(m.value, m.step(i), steps[1:])
		}
		return more && i < end
	})
	w.any = w.any || !looked
	return more
}

func (w *walk) into(v []byte, s step, steps []step) bool {
	w.at = append(w.at, s)
	more := w.from(v, steps)
	w.at = w.at[:len(w.at)-1]
	return more
}

func (w *walk) lose(v []byte, s step) {
	if w.lost.value == nil || len(w.at) > len(w.lost.at) {
		w.lost, w.lostStep = place{v, slices.Clone(w.at)}, s
	}
}

// nothing returns the error of a path without a match, otherwise nil.
func (w *walk) nothing(path string) error {
	if w.any {
		return nil
	}
	return nothingAt(path, w.lostStep, w.lost, w.lost.allowed())
}

// fromStart converts a negative index to one from the start.
func fromStart(i, n int) int {
	if i < 0 {
		i += n
	}
	return max(i, 0)
}

// opened returns the object or array in a JSON string, otherwise v.
func opened(v []byte) []byte {
	if inner := jsonIn(v); inner != nil {
		return inner
	}
	return v
}

// jsonIn returns the object or array in a JSON string, or nil.
func jsonIn(v []byte) []byte {
	if len(v) < 2 || v[0] != '"' {
		return nil
	}
	return jsonText(v[1 : len(v)-1])
}

// child returns the member or element of v that s names, or nil. It converts a negative index of s.
func child(v []byte, s *step) (found []byte) {
	if len(v) == 0 || s.many() || (s.kind == element) != (v[0] == '[') {
		return nil
	}
	from := s.from
	if from < 0 {
		from += count(v)
	}
	each(v, func(i int, e entry) bool {
		if s.kind == element && i == from || s.kind == member && string(wirejson.Unescape(e.name)) == s.name {
			found, s.from = e.value, from
		}
		return found == nil
	})
	return found
}
