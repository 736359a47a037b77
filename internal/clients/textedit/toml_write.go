package textedit

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
)

var bareKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// encodeTOMLKey encodes a key.
func encodeTOMLKey(name string) string {
	if bareKey.MatchString(name) {
		return name
	}
	return encodeTOMLString(name)
}

// encodeTOMLString encodes a basic string as in JSON, but also escapes DEL.
func encodeTOMLString(s string) string {
	return strings.ReplaceAll(string(wirejson.AppendString(nil, s)), "\x7f", `\u007f`)
}

// writeTOMLTable writes a table and its nested tables, each with its own header.
func writeTOMLTable(to *strings.Builder, path []string, table map[string]any) error {
	var head []string
	for _, name := range path {
		head = append(head, encodeTOMLKey(name))
	}
	to.WriteString("[" + strings.Join(head, ".") + "]\n")
	names := slices.Sorted(maps.Keys(table))
	for _, name := range names {
		if _, inner := table[name].(map[string]any); inner {
			continue
		}
		value, err := encodeTOMLValue(table[name])
		if err != nil {
			return err
		}
		to.WriteString(encodeTOMLKey(name) + " = " + value + "\n")
	}
	for _, name := range names {
		if inner, ok := table[name].(map[string]any); ok {
			to.WriteString("\n")
			if err := writeTOMLTable(to, append(slices.Clone(path), name), inner); err != nil {
				return err
			}
		}
	}
	return nil
}

// encodeTOMLInline encodes a JSON value on one line.
func encodeTOMLInline(value json.RawMessage) (string, error) {
	v, err := decodeJSON(value)
	if err != nil {
		return "", err
	}
	return encodeTOMLValue(v)
}

func encodeTOMLValue(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return encodeTOMLString(v), nil
	case bool:
		if v {
			return "true", nil
		}
		return "false", nil
	case json.Number:
		return v.String(), nil
	case []any:
		var items []string
		for _, inner := range v {
			item, err := encodeTOMLValue(inner)
			if err != nil {
				return "", err
			}
			items = append(items, item)
		}
		return "[" + strings.Join(items, ", ") + "]", nil
	case map[string]any:
		var pairs []string
		for _, name := range slices.Sorted(maps.Keys(v)) {
			inner, err := encodeTOMLValue(v[name])
			if err != nil {
				return "", err
			}
			pairs = append(pairs, encodeTOMLKey(name)+" = "+inner)
		}
		if len(pairs) == 0 {
			return "{}", nil
		}
		return "{ " + strings.Join(pairs, ", ") + " }", nil
	}
	return "", problem.New(problem.InvalidConfig, "TOML has no null.", "Leave the key out.")
}
