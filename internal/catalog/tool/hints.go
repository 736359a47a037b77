package tool

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strconv"

	"mcpproxy/internal/mcp/wirejson"
)

// Tri is a statement with three states. The zero value is "not said".
type Tri int8

// The states of a Tri.
const (
	Unsaid Tri = iota
	False
	True
)

// TriOf returns True or False.
func TriOf(b bool) Tri {
	if b {
		return True
	}
	return False
}

// Hints are a tool's MCP annotations as far as MCP names them. Title is empty
// when not said. Everything else a server puts into annotations stays in
// Definition.Raw.
type Hints struct {
	Title       string
	ReadOnly    Tri
	Destructive Tri
	Idempotent  Tri
	OpenWorld   Tri
}

// Over returns h where h says something, else base: the override rule.
func (h Hints) Over(base Hints) Hints {
	if h.Title == "" {
		h.Title = base.Title
	}
	of := base.booleans()
	for i, b := range h.booleans() {
		*b.said = cmp.Or(*b.said, *of[i].said)
	}
	return h
}

// boolean is a hint that is true or false, by its name in MCP.
type boolean struct {
	name string
	said *Tri
}

func (h *Hints) booleans() [4]boolean {
	return [...]boolean{{"readOnlyHint", &h.ReadOnly}, {"destructiveHint", &h.Destructive}, {"idempotentHint", &h.Idempotent}, {"openWorldHint", &h.OpenWorld}}
}

// ParseHints reads MCP annotations. What is missing, or is not a boolean (a
// title: a string), is not said; what has no single meaning says nothing.
func ParseHints(annotations json.RawMessage) Hints {
	if _, err := Canonical(annotations); err != nil {
		return Hints{}
	}
	return readHints(bytes.TrimSpace(annotations))
}

func readHints(annotations []byte) Hints {
	var h Hints
	_ = wirejson.Members(annotations, func(name, value []byte) error {
		if string(name) == "title" {
			h.Title = text(value)
		}
		for _, b := range h.booleans() {
			if is, ok := wirejson.Bool(value); ok && b.name == string(name) {
				*b.said = TriOf(is)
			}
		}
		return nil
	})
	return h
}

// AppendJSON appends the hints to dst as MCP annotations: only what is said,
// {} when nothing is.
func (h Hints) AppendJSON(dst []byte) []byte {
	dst = append(dst, '{')
	empty := len(dst)
	if h.Title != "" {
		dst = append(wirejson.AppendString(append(dst, `"title":`...), h.Title), ',')
	}
	for _, b := range h.booleans() {
		if *b.said != Unsaid {
			dst = append(append(append(dst, '"'), b.name...), `":`...)
			dst = append(strconv.AppendBool(dst, *b.said == True), ',')
		}
	}
	if len(dst) > empty {
		dst = dst[:len(dst)-1] // the last comma
	}
	return append(dst, '}')
}

// In returns a tool's definition with the hints h in the place of those that it
// states. Everything else stays the server's bytes.
func (h Hints) In(definition json.RawMessage, stated Hints) json.RawMessage {
	if h == stated {
		return definition
	}
	annotations := json.RawMessage(wirejson.Find(definition, "annotations"))
	if wirejson.Kind(annotations) != '{' {
		annotations = nil
	}
	if h.Title != stated.Title {
		annotations = wirejson.SetMember(annotations, "title", wirejson.AppendString(nil, h.Title))
	}
	for _, hint := range []struct {
		name     string
		was, now Tri
	}{
		{"readOnlyHint", stated.ReadOnly, h.ReadOnly},
		{"destructiveHint", stated.Destructive, h.Destructive},
		{"idempotentHint", stated.Idempotent, h.Idempotent},
		{"openWorldHint", stated.OpenWorld, h.OpenWorld},
	} {
		if hint.was != hint.now && hint.now != Unsaid {
			annotations = wirejson.SetMember(annotations, hint.name, strconv.AppendBool(nil, hint.now == True))
		}
	}
	return wirejson.SetMember(definition, "annotations", annotations)
}

// MarshalJSON is AppendJSON.
func (h Hints) MarshalJSON() ([]byte, error) { return h.AppendJSON(nil), nil }

// UnmarshalJSON is ParseHints.
func (h *Hints) UnmarshalJSON(data []byte) error {
	*h = ParseHints(data)
	return nil
}

// text decodes a string; what is none is "".
func text(value []byte) string {
	if value[0] != '"' {
		return ""
	}
	return string(wirejson.Unescape(value[1 : len(value)-1]))
}
