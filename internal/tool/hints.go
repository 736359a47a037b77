package tool

import (
	"bytes"
	"encoding/json"
	"strconv"

	"mcpproxy/internal/rawjson"
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
	h.ReadOnly = over(h.ReadOnly, base.ReadOnly)
	h.Destructive = over(h.Destructive, base.Destructive)
	h.Idempotent = over(h.Idempotent, base.Idempotent)
	h.OpenWorld = over(h.OpenWorld, base.OpenWorld)
	return h
}

func over(t, base Tri) Tri {
	if t == Unsaid {
		return base
	}
	return t
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
	eachMember(annotations, func(name string, value []byte) {
		switch name {
		case "title":
			h.Title = text(value)
		case "readOnlyHint":
			h.ReadOnly = readTri(value)
		case "destructiveHint":
			h.Destructive = readTri(value)
		case "idempotentHint":
			h.Idempotent = readTri(value)
		case "openWorldHint":
			h.OpenWorld = readTri(value)
		}
	})
	return h
}

func readTri(value []byte) Tri {
	switch string(value) {
	case "true":
		return True
	case "false":
		return False
	}
	return Unsaid
}

// AppendJSON appends the hints to dst as MCP annotations: only what is said,
// {} when nothing is.
func (h Hints) AppendJSON(dst []byte) []byte {
	dst = append(dst, '{')
	empty := len(dst)
	if h.Title != "" {
		dst = append(appendText(append(dst, `"title":`...), h.Title), ',')
	}
	dst = appendTri(dst, `"readOnlyHint":`, h.ReadOnly)
	dst = appendTri(dst, `"destructiveHint":`, h.Destructive)
	dst = appendTri(dst, `"idempotentHint":`, h.Idempotent)
	dst = appendTri(dst, `"openWorldHint":`, h.OpenWorld)
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
	annotations := json.RawMessage(rawjson.Find(definition, "annotations"))
	if rawjson.Kind(annotations) != '{' {
		annotations = nil
	}
	if h.Title != stated.Title {
		annotations = rawjson.SetMember(annotations, "title", rawjson.AppendString(nil, h.Title))
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
			annotations = rawjson.SetMember(annotations, hint.name, strconv.AppendBool(nil, hint.now == True))
		}
	}
	return rawjson.SetMember(definition, "annotations", annotations)
}

func appendTri(dst []byte, name string, t Tri) []byte {
	switch t {
	case True:
		return append(append(dst, name...), "true,"...)
	case False:
		return append(append(dst, name...), "false,"...)
	}
	return dst
}

// appendText appends s as a JSON string; what is not UTF-8 becomes U+FFFD.
func appendText(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for _, r := range s {
		dst = appendRune(dst, r)
	}
	return append(dst, '"')
}

// MarshalJSON is AppendJSON.
func (h Hints) MarshalJSON() ([]byte, error) { return h.AppendJSON(nil), nil }

// UnmarshalJSON is ParseHints.
func (h *Hints) UnmarshalJSON(data []byte) error {
	*h = ParseHints(data)
	return nil
}
