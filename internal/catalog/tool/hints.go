package tool

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strconv"

	"mcpproxy/internal/mcp/wirejson"
)

// TriBool is a three-state boolean. The zero value is unset.
type TriBool int8

// The states of a TriBool.
const (
	Unset TriBool = iota
	False
	True
)

// ToTriBool returns True or False.
func ToTriBool(b bool) TriBool {
	if b {
		return True
	}
	return False
}

// Hints contains the annotations of a tool that MCP defines. Title is empty if unset. All other annotations stay in
// Definition.Raw.
type Hints struct {
	Title       string
	ReadOnly    TriBool
	Destructive TriBool
	Idempotent  TriBool
	OpenWorld   TriBool
}

// WithDefaults returns h with its unset hints taken from base, so that h overrides base.
func (h Hints) WithDefaults(base Hints) Hints {
	if h.Title == "" {
		h.Title = base.Title
	}
	of := base.boolHints()
	for i, b := range h.boolHints() {
		*b.value = cmp.Or(*b.value, *of[i].value)
	}
	return h
}

// boolHint is a boolean hint with its name in MCP.
type boolHint struct {
	name  string
	value *TriBool
}

func (h *Hints) boolHints() [4]boolHint {
	return [...]boolHint{{"readOnlyHint", &h.ReadOnly}, {"destructiveHint", &h.Destructive}, {"idempotentHint", &h.Idempotent}, {"openWorldHint", &h.OpenWorld}}
}

// ParseHints parses MCP annotations. Missing values and values of the wrong type are unset. Ambiguous annotations set
// no hint.
func ParseHints(annotations json.RawMessage) Hints {
	if _, err := CanonicalJSON(annotations); err != nil {
		return Hints{}
	}
	return parseHints(bytes.TrimSpace(annotations))
}

func parseHints(annotations []byte) Hints {
	var h Hints
	_ = wirejson.EachMember(annotations, func(name, value []byte) error {
		if string(name) == "title" {
			h.Title = stringOrEmpty(value)
		}
		for _, b := range h.boolHints() {
			if is, ok := wirejson.Bool(value); ok && b.name == string(name) {
				*b.value = ToTriBool(is)
			}
		}
		return nil
	})
	return h
}

// AppendJSON appends the hints that are set to dst as MCP annotations, or {} if none is set.
func (h Hints) AppendJSON(dst []byte) []byte {
	dst = append(dst, '{')
	empty := len(dst)
	if h.Title != "" {
		dst = append(wirejson.AppendString(append(dst, `"title":`...), h.Title), ',')
	}
	for _, b := range h.boolHints() {
		if *b.value != Unset {
			dst = append(append(append(dst, '"'), b.name...), `":`...)
			dst = append(strconv.AppendBool(dst, *b.value == True), ',')
		}
	}
	if len(dst) > empty {
		dst = dst[:len(dst)-1] // removes the last comma
	}
	return append(dst, '}')
}

// ReplaceHintsIn returns a tool's definition with its declared hints replaced by h. Everything else keeps the server's
// bytes.
func (h Hints) ReplaceHintsIn(definition json.RawMessage, stated Hints) json.RawMessage {
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
		was, now TriBool
	}{
		{"readOnlyHint", stated.ReadOnly, h.ReadOnly},
		{"destructiveHint", stated.Destructive, h.Destructive},
		{"idempotentHint", stated.Idempotent, h.Idempotent},
		{"openWorldHint", stated.OpenWorld, h.OpenWorld},
	} {
		if hint.was != hint.now && hint.now != Unset {
			annotations = wirejson.SetMember(annotations, hint.name, strconv.AppendBool(nil, hint.now == True))
		}
	}
	return wirejson.SetMember(definition, "annotations", annotations)
}

// MarshalJSON implements json.Marshaler.
func (h Hints) MarshalJSON() ([]byte, error) { return h.AppendJSON(nil), nil }

// UnmarshalJSON implements json.Unmarshaler.
func (h *Hints) UnmarshalJSON(data []byte) error {
	*h = ParseHints(data)
	return nil
}

// stringOrEmpty decodes a JSON string. It returns "" for other values.
func stringOrEmpty(value []byte) string {
	if value[0] != '"' {
		return ""
	}
	return string(wirejson.Unescape(value[1 : len(value)-1]))
}
