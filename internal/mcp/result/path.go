package result

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"mcpproxy/internal/mcp/wirejson"
)

// locatedValue is a value in a result and its path.
type locatedValue struct {
	value []byte
	at    []pathStep
}

func (p locatedValue) pathText() string {
	path := formatPath(p.at...)
	if path == "" || path[0] == '[' {
		return "$" + path
	}
	return "$." + path
}

// allowedStepsText lists the possible next steps of a path, for an error.
func (p locatedValue) allowedStepsText() string {
	switch wirejson.Kind(p.value) {
	case '[':
		if n := countEntries(p.value); n > 0 {
			return fmt.Sprintf("an element from [0] to [%d]", n-1)
		}
		return "a path that ends at " + p.pathText() + ", an array without elements"
	case '{':
		if names := memberNamesText(p.value); names != "" {
			return "one of the members " + names
		}
		return "a path that ends at " + p.pathText() + ", an object without members"
	}
	return "a path that ends at " + p.pathText()
}

// memberNamesText lists the first member names of an object.
func memberNamesText(object []byte) string {
	var names []string
	eachEntry(object, func(_ int, m jsonEntry) bool {
		if len(names) == 20 {
			names = append(names, "…")
			return false
		}
		names = append(names, string(wirejson.ClipText(wirejson.Unescape(m.name), 60)))
		return true
	})
	return strings.Join(names, ", ")
}

// ValueAt returns the one raw value at a path. Without a path it returns the data: the structured content, or else the
// first text that is JSON.
func ValueAt(raw json.RawMessage, path string) ([]byte, error) {
	if path == "" || path == "$" {
		if roots := dataRoots(raw); len(roots) > 0 {
			return roots[len(roots)-1].value, nil
		}
		return nil, newParameterError("path", path, "The result holds no JSON.", "a path, such as content[0].text")
	}
	to, err := resolvePath(raw, path)
	if err != nil {
		return nil, err
	}
	if !to.isSingleValue() {
		return nil, newParameterError("path", path, "The path leads to several values.", "a path to one")
	}
	at, err := to.singleValue(path)
	return at.value, err
}

func countEntries(v []byte) (n int) {
	eachEntry(v, func(int, jsonEntry) bool { n++; return true })
	return n
}

// dataRoots returns the values that may contain the data: first the JSON of the first text block with JSON, because an
// agent has seen the text of a cut result, then structuredContent.
func dataRoots(raw []byte) (roots []locatedValue) {
	eachEntry(wirejson.Find(raw, "content"), func(i int, m jsonEntry) bool {
		text := jsonInString(wirejson.Find(m.value, "text"))
		if text != nil {
			roots = append(roots, locatedValue{text, []pathStep{{name: "content"}, m.toStep(i), {name: "text"}}})
		}
		return text == nil
	})
	if v := wirejson.Find(raw, "structuredContent"); v != nil {
		roots = append(roots, locatedValue{v, []pathStep{{name: "structuredContent"}}})
	}
	return roots
}

// matchesIn reports whether the step matches in v.
func (s pathStep) matchesIn(v []byte) bool {
	return s.kind == all || s.kind == slice && wirejson.Kind(v) == '[' || childValue(v, &s) != nil
}

// pathTarget is the target of a path.
type pathTarget struct {
	root  locatedValue
	steps []pathStep // steps from root
}

// resolvePath resolves a path. If its first step does not match at the top, the path starts at the data. So paths into
// the shown data work without the steps through the envelope.
func resolvePath(raw []byte, path string) (pathTarget, error) {
	steps, err := parsePath(path)
	if err != nil {
		return pathTarget{}, err
	}
	if raw = trimSpace(raw); len(raw) == 0 {
		return pathTarget{}, newParameterError("path", path, "The result is empty, so there is nothing at "+path+".", "no path")
	}
	top := locatedValue{value: raw}
	if len(steps) == 0 || !steps[0].matchesMany() && steps[0].matchesIn(raw) {
		return pathTarget{top, steps}, nil
	}
	roots := dataRoots(raw)
	for _, root := range roots {
		if steps[0].matchesIn(root.value) {
			return pathTarget{root, steps}, nil
		}
	}
	if steps[0].kind == all || len(roots) == 0 {
		return pathTarget{top, steps}, nil
	}
	allowed := top.allowedStepsText()
	for _, root := range roots {
		allowed += "; in " + root.pathText() + " " + root.allowedStepsText()
	}
	return pathTarget{}, newNoMatchError(path, steps[0], top, allowed)
}

func newNoMatchError(path string, s pathStep, p locatedValue, allowed string) error {
	return newParameterError("path", path, fmt.Sprintf("There is no %s at %s.", s, p.pathText()), allowed)
}

// isSingleValue reports whether the path selects a single value. A final [*] also counts as a single value.
func (s pathTarget) isSingleValue() bool {
	i := slices.IndexFunc(s.steps, pathStep.matchesMany)
	return i < 0 || i == len(s.steps)-1 && s.steps[i].kind == all
}

// singleValue returns the single value of the path.
func (s pathTarget) singleValue(path string) (found locatedValue, err error) {
	steps := s.steps
	open := len(steps) > 0 && steps[len(steps)-1].kind == all
	if open {
		steps = steps[:len(steps)-1]
	}
	w := pathWalker{at: slices.Clip(s.root.at), fn: func(p locatedValue) bool {
		found = locatedValue{p.value, slices.Clone(p.at)}
		return true
	}}
	w.walkFrom(s.root.value, steps)
	if found.value == nil {
		return found, w.noMatchError(path)
	}
	if open {
		if found.value = unwrapJSONString(found.value); found.value[0] != '[' && found.value[0] != '{' {
			return found, newNoMatchError(path, pathStep{kind: all}, found, found.allowedStepsText())
		}
	}
	return found, nil
}

// pathWalker follows steps and calls fn for each value until fn returns false. The location that fn receives is valid
// only during the call.
type pathWalker struct {
	at []pathStep
	fn func(p locatedValue) bool

	any      bool         // a value was found, or an empty container was searched
	lost     locatedValue // the deepest location without a match
	lostStep pathStep
}

// walkFrom follows the steps from v. It returns false if fn stopped.
func (w *pathWalker) walkFrom(v []byte, steps []pathStep) bool {
	if len(steps) == 0 {
		w.any = true
		return w.fn(locatedValue{v, w.at})
	}
	s := steps[0]
	v = unwrapJSONString(v)
	if !s.matchesMany() {
		next := childValue(v, &s)
		if next == nil {
			w.recordMiss(v, s)
			return true
		}
		return w.walkInto(next, s, steps[1:])
	}
	kind := wirejson.Kind(v)
	if kind != '[' && (kind != '{' || s.kind == slice) {
		w.recordMiss(v, s)
		return true
	}
	first, end := 0, math.MaxInt
	if s.kind == slice {
		n := countEntries(v)
		first, end = toIndexFromStart(s.from, n), toIndexFromStart(s.to, n)
	}
	more := true
	w.any = w.any || len(steps) == 1
	looked := false
	eachEntry(v, func(i int, m jsonEntry) bool {
		if i >= first && i < end {
			looked = true
			more = w.walkInto(m.value, m.toStep(i), steps[1:])
		}
		return more && i < end
	})
	w.any = w.any || !looked
	return more
}

func (w *pathWalker) walkInto(v []byte, s pathStep, steps []pathStep) bool {
	w.at = append(w.at, s)
	more := w.walkFrom(v, steps)
	w.at = w.at[:len(w.at)-1]
	return more
}

func (w *pathWalker) recordMiss(v []byte, s pathStep) {
	if w.lost.value == nil || len(w.at) > len(w.lost.at) {
		w.lost, w.lostStep = locatedValue{v, slices.Clone(w.at)}, s
	}
}

// noMatchError returns the error for a path without a match, or nil if there was a match.
func (w *pathWalker) noMatchError(path string) error {
	if w.any {
		return nil
	}
	return newNoMatchError(path, w.lostStep, w.lost, w.lost.allowedStepsText())
}

// toIndexFromStart converts a negative index to one from the start.
func toIndexFromStart(i, n int) int {
	if i < 0 {
		i += n
	}
	return max(i, 0)
}

// unwrapJSONString returns the object or array in a JSON string. For other values it returns v.
func unwrapJSONString(v []byte) []byte {
	if inner := jsonInString(v); inner != nil {
		return inner
	}
	return v
}

// jsonInString returns the object or array in a JSON string, or nil.
func jsonInString(v []byte) []byte {
	if len(v) < 2 || v[0] != '"' {
		return nil
	}
	return jsonInRawString(v[1 : len(v)-1])
}

// childValue returns the member or element of v that s selects, or nil. It converts a negative index of s.
func childValue(v []byte, s *pathStep) (found []byte) {
	if len(v) == 0 || s.matchesMany() || (s.kind == element) != (v[0] == '[') {
		return nil
	}
	from := s.from
	if from < 0 {
		from += countEntries(v)
	}
	eachEntry(v, func(i int, e jsonEntry) bool {
		if s.kind == element && i == from || s.kind == member && string(wirejson.Unescape(e.name)) == s.name {
			found, s.from = e.value, from
		}
		return found == nil
	})
	return found
}
