package approval

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/mcp/wirejson"
)

// Difference is one difference of two definitions.
type Difference struct {
	// Path is a JSON pointer. Array indexes refer to the new definition, or to the old one for removed elements.
	Path string          `json:"path"`
	Kind string          `json:"kind" enum:"added,removed,changed"`
	Old  json.RawMessage `json:"old,omitempty"`
	New  json.RawMessage `json:"new,omitempty"`
	// Words is the difference of two texts by words; omitted if they are too long or have nothing in
	// common.
	Words    []Piece `json:"words,omitempty"`
	Hint     bool    `json:"hint,omitempty" doc:"Whether the member is a hint that affects the policy."`
	Loosened bool    `json:"loosened,omitempty" doc:"Whether the hint now claims less harmful effects."`
}

const maxDifferences = 500

// Diff returns the differences of two definitions in the order of their canonical forms; complete is false if there
// are more differences than it returns.
func Diff(was, is json.RawMessage) (all []Difference, complete bool, err error) {
	old, err := tool.CanonicalJSON(was)
	if err != nil {
		return nil, false, fmt.Errorf("the approved definition: %w", err)
	}
	now, err := tool.CanonicalJSON(is)
	if err != nil {
		return nil, false, fmt.Errorf("the new definition: %w", err)
	}
	d := diffCollector{complete: true, loosened: map[string]bool{}}
	for _, hint := range loosenedHints(parseHints(old), parseHints(now)) {
		d.loosened["/annotations/"+hint] = true
	}
	d.compareValues("", old, now)
	return d.all, d.complete, nil
}

func parseHints(definition []byte) tool.Hints {
	return tool.ParseHints(wirejson.Find(definition, "annotations"))
}

type diffCollector struct {
	all      []Difference
	complete bool
	loosened map[string]bool // pointers of loosened hints
}

func (d *diffCollector) addDifference(x Difference) {
	if len(d.all) == maxDifferences {
		d.complete = false
		return
	}
	switch x.Path {
	case "/annotations/readOnlyHint", "/annotations/destructiveHint", "/annotations/idempotentHint", "/annotations/openWorldHint":
		x.Hint = true
	}
	x.Loosened = d.loosened[x.Path]
	d.all = append(d.all, x)
}

// compareValues compares two values at a path. Either may be nil, which means missing.
func (d *diffCollector) compareValues(path string, old, now []byte) {
	switch {
	case bytes.Equal(old, now):
	case wirejson.Kind(old) == '{' && wirejson.Kind(now) == '{':
		d.compareObjects(path, old, now)
	case wirejson.Kind(old) == '[' && wirejson.Kind(now) == '[':
		d.compareArrays(path, old, now)
	case path == "/annotations" && (old == nil || now == nil):
		// Compare every hint separately, whether or not the others are set.
		d.compareObjects(path, objectOrEmpty(old), objectOrEmpty(now))
	case old == nil:
		d.addDifference(Difference{Path: path, Kind: Added, New: now})
	case now == nil:
		d.addDifference(Difference{Path: path, Kind: Removed, Old: old})
	default:
		x := Difference{Path: path, Kind: Replaced, Old: old, New: now}
		a, isText := wirejson.String(old)
		b, wasText := wirejson.String(now)
		if isText && wasText {
			x.Words = diffWords(a, b)
		}
		d.addDifference(x)
	}
}

func objectOrEmpty(value []byte) []byte {
	if wirejson.Kind(value) != '{' {
		return []byte("{}")
	}
	return value
}

type jsonMember struct {
	name  string
	value []byte
}

func parseMembers(object []byte) []jsonMember {
	var out []jsonMember
	_ = wirejson.EachMember(object, func(name, value []byte) error {
		out = append(out, jsonMember{string(name), value})
		return nil
	})
	return out
}

// compareObjects compares the members of two objects, which are sorted.
func (d *diffCollector) compareObjects(path string, old, now []byte) {
	was := map[string][]byte{}
	for _, m := range parseMembers(old) {
		was[m.name] = m.value
	}
	is := map[string]bool{}
	for _, m := range parseMembers(now) {
		is[m.name] = true
		d.compareValues(joinPointer(path, m.name), was[m.name], m.value)
	}
	for _, m := range parseMembers(old) {
		if !is[m.name] {
			d.compareValues(joinPointer(path, m.name), m.value, nil)
		}
	}
}

// compareArrays aligns equal elements. A different element at the same position counts as changed.
func (d *diffCollector) compareArrays(path string, old, now []byte) {
	a, b := parseElements(old), parseElements(now)
	equal := func(i, j int) bool { return bytes.Equal(a[i], b[j]) }
	i, j := 0, 0
	for _, run := range alignSequences(len(a), len(b), equal) {
		for ; run.old > 0 && run.now > 0; run.old, run.now, i, j = run.old-1, run.now-1, i+1, j+1 {
			d.compareValues(path+"/"+strconv.Itoa(j), a[i], b[j])
		}
		for ; run.old > 0; run.old, i = run.old-1, i+1 {
			d.addDifference(Difference{Path: path + "/" + strconv.Itoa(i), Kind: Removed, Old: a[i]})
		}
		for ; run.now > 0; run.now, j = run.now-1, j+1 {
			d.addDifference(Difference{Path: path + "/" + strconv.Itoa(j), Kind: Added, New: b[j]})
		}
		i, j = i+run.same, j+run.same
	}
}

func parseElements(array []byte) [][]byte {
	var out [][]byte
	_ = wirejson.EachElement(array, func(value []byte) error {
		out = append(out, value)
		return nil
	})
	return out
}

func joinPointer(path, name string) string { return path + "/" + wirejson.EscapePointerToken(name) }
