package gateway

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// maxEnum is how many values of an enum a signature shows.
const maxEnum = 8

// property is what a signature tells of a parameter.
type property struct {
	Type    json.RawMessage   `json:"type"`
	Enum    []json.RawMessage `json:"enum"`
	Const   json.RawMessage   `json:"const"`
	Default json.RawMessage   `json:"default"`
	Items   *property         `json:"items"`
	AnyOf   []property        `json:"anyOf"`
	OneOf   []property        `json:"oneOf"`
}

// signature is a tool on one line: parameters with their types, optional ones
// with "?", enums and defaults. It is what detail compact gives instead of the
// schema. Required parameters come first, then the others, each by name.
func signature(name string, inputSchema json.RawMessage) string {
	var schema struct {
		Properties map[string]property `json:"properties"`
		Required   []string            `json:"required"`
	}
	if len(inputSchema) > 0 && json.Unmarshal(inputSchema, &schema) != nil {
		return name + "(…)"
	}
	names := make([]string, 0, len(schema.Properties))
	for n := range schema.Properties {
		names = append(names, n)
	}
	optional := func(n string) bool { return !slices.Contains(schema.Required, n) }
	slices.SortFunc(names, func(a, b string) int {
		if optional(a) != optional(b) {
			if optional(b) {
				return -1
			}
			return 1
		}
		return cmp.Compare(a, b)
	})
	parts := make([]string, len(names))
	for i, n := range names {
		p := schema.Properties[n]
		mark, byDefault := "", ""
		if optional(n) {
			mark = "?"
		}
		if len(p.Default) > 0 {
			byDefault = " = " + string(p.Default)
		}
		parts[i] = n + mark + ": " + p.describe() + byDefault
	}
	return name + "(" + strings.Join(parts, ", ") + ")"
}

func (p property) describe() string {
	switch {
	case len(p.Const) > 0:
		return string(p.Const)
	case len(p.Enum) > 0:
		return enum(p.Enum)
	case len(p.AnyOf) > 0:
		return union(p.AnyOf)
	case len(p.OneOf) > 0:
		return union(p.OneOf)
	}
	var one string
	var several []string
	switch {
	case json.Unmarshal(p.Type, &one) == nil && one != "":
	case json.Unmarshal(p.Type, &several) == nil && len(several) > 0:
		return strings.Join(several, "|")
	default:
		return "any"
	}
	if one == "array" && p.Items != nil {
		return p.Items.describe() + "[]"
	}
	return one
}

func enum(values []json.RawMessage) string {
	texts := make([]string, 0, maxEnum)
	for i, v := range values {
		if i == maxEnum {
			texts = append(texts, "…")
			break
		}
		texts = append(texts, string(v))
	}
	return strings.Join(texts, "|")
}

func union(choices []property) string {
	texts := make([]string, 0, len(choices))
	for _, c := range choices {
		if t := c.describe(); !slices.Contains(texts, t) {
			texts = append(texts, t)
		}
	}
	return strings.Join(texts, "|")
}
