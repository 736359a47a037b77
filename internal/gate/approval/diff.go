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
	// Path is a JSON pointer. Array indexes count in the new definition, for removed elements in the old
	// one.
	Path string          `json:"path"`
	Kind string          `json:"kind" enum:"added,removed,changed"`
	Old  json.RawMessage `json:"old,omitempty"`
	New  json.RawMessage `json:"new,omitempty"`
	// Words is the difference of two texts by words; omitted if they are too long or have nothing in
	// common.
	Words    []Piece `json:"words,omitempty"`
	Hint     bool    `json:"hint,omitempty" doc:"It is one of the hints that calls are judged by."`
	Loosened bool    `json:"loosened,omitempty" doc:"The hint now claims more harmless effects."`
}

const maxDifferences = 500

// Diff returns the differences of two definitions in the order of their canonical forms; complete is false
// if there are more than it returns.
func Diff(was, is json.RawMessage) (all []Difference, complete bool, err error) {
	old, err := tool.Canonical(was)
	if err != nil {
		return nil, false, fmt.Errorf("the approved definition: %w", err)
	}
	now, err := tool.Canonical(is)
	if err != nil {
		return nil, false, fmt.Errorf("the new definition: %w", err)
	}
	d := differ{complete: true, loosened: map[string]bool{}}
	for _, hint := range loosened(hintsOf(old), hintsOf(now)) {
		d.loosened["/annotations/"+hint] = true
	}
	d.values("", old, now)
	return d.all, d.complete, nil
}

func hintsOf(definition []byte) tool.Hints {
	return tool.ParseHints(wirejson.Find(definition, "annotations"))
}

type differ struct {
	all      []Difference
	complete bool
	loosened map[string]bool // pointers of loosened hints
}

func (d *differ) add(x Difference) {
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

// values compares two values at a path. Either may be nil: missing.
func (d *differ) values(path string, old, now []byte) {
	switch {
	case bytes.Equal(old, now):
	case wirejson.Kind(old) == '{' && wirejson.Kind(now) == '{':
		d.objects(path, old, now)
	case wirejson.Kind(old) == '[' && wirejson.Kind(now) == '[':
		d.arrays(path, old, now)
	case path == "/annotations" && (old == nil || now == nil):
		// Every hint separately, whether or not the others are set.
		d.objects(path, orEmpty(old), orEmpty(now))
	case old == nil:
		d.add(Difference{Path: path, Kind: Added, New: now})
	case now == nil:
		d.add(Difference{Path: path, Kind: Removed, Old: old})
	default:
		x := Difference{Path: path, Kind: Replaced, Old: old, New: now}
		a, isText := wirejson.String(old)
		b, wasText := wirejson.String(now)
		if isText && wasText {
			x.Words = words(a, b)
		}
		d.add(x)
	}
}

func orEmpty(value []byte) []byte {
	if wirejson.Kind(value) != '{' {
		return []byte("{}")
	}
	return value
}

type member struct {
	name  string
	value []byte
}

func members(object []byte) []member {
	var out []member
	_ = wirejson.EachMember(object, func(name, value []byte) error {
		out = append(out, member{string(name), value})
		return nil
	})
	return out
}

// objects compares the members of both, which are sorted.
func (d *differ) objects(path string, old, now []byte) {
	was := map[string][]byte{}
	for _, m := range members(old) {
		was[m.name] = m.value
	}
	is := map[string]bool{}
	for _, m := range members(now) {
		is[m.name] = true
		d.values(pointer(path, m.name), was[m.name], m.value)
	}
	for _, m := range members(old) {
		if !is[m.name] {
			d.values(pointer(path, m.name), m.value, nil)
		}
	}
}

// arrays aligns equal elements. A different element at the same position counts as changed.
func (d *differ) arrays(path string, old, now []byte) {
	a, b := elements(old), elements(now)
	equal := func(i, j int) bool { return bytes.Equal(a[i], b[j]) }
	i, j := 0, 0
	for _, run := range align(len(a), len(b), equal) {
		for ; run.old > 0 && run.now > 0; run.old, run.now, i, j = run.old-1, run.now-1, i+1, j+1 {
			d.values(path+"/"+strconv.Itoa(j), a[i], b[j])
		}
		for ; run.old > 0; run.old, i = run.old-1, i+1 {
			d.add(Difference{Path: path + "/" + strconv.Itoa(i), Kind: Removed, Old: a[i]})
		}
		for ; run.now > 0; run.now, j = run.now-1, j+1 {
			d.add(Difference{Path: path + "/" + strconv.Itoa(j), Kind: Added, New: b[j]})
		}
		i, j = i+run.same, j+run.same
	}
}

func elements(array []byte) [][]byte {
	var out [][]byte
	_ = wirejson.EachElement(array, func(value []byte) error {
		out = append(out, value)
		return nil
	})
	return out
}

func pointer(path, name string) string { return path + "/" + wirejson.EscapePointerToken(name) }
