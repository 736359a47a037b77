package textedit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"mcpproxy/internal/problem"
)

// Bounds on TOML and YAML, whose decoders take ever longer for more.
const (
	maxKeys = 10_000
	maxYAML = 256 << 10
)

// formatEditor is what a format takes. tree returns what a text says: map[string]any,
// []any, string, bool, json.Number and nil, whatever the format; an empty text says
// an empty map. set and remove return the new text; set's value is JSON, and the
// entry may be there; remove's is there.
type formatEditor interface {
	tree(text []byte) (map[string]any, error)
	set(text []byte, path []string, value json.RawMessage) ([]byte, error)
	remove(text []byte, path []string) ([]byte, error)
}

// decodeJSON is what a value in JSON says, in the terms of a tree.
func decodeJSON(value json.RawMessage) (any, error) {
	if value == nil {
		return nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	return v, err
}

// normalizeValue is a decoded value in the terms of a tree.
func normalizeValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			v[name] = normalizeValue(inner)
		}
		return v
	case []any:
		for i, inner := range v {
			v[i] = normalizeValue(inner)
		}
		return v
	case nil, string, bool:
		return v
	case float64:
		return json.Number(strconv.FormatFloat(v, 'g', -1, 64))
	case int64, uint64:
		return json.Number(fmt.Sprint(v))
	}
	return fmt.Sprint(v) // dates and times
}

// parseError is the refusal of a text with a mistake.
func parseError(text []byte, offset int, message, hint string) error {
	line, column := Position(text, offset)
	return parseErrorAt(line, column, message, hint)
}

func parseErrorAt(line, column int, message, hint string) error {
	return problem.New(problem.InvalidConfig, fmt.Sprintf("line %d, column %d: %s", line, column, message), asSentence(hint)).
		With("line", line).With("column", column)
}

// asSentence is a hint as a sentence.
func asSentence(hint string) string {
	if hint == "" {
		hint = "correct the file first; nothing was changed"
	}
	return strings.ToUpper(hint[:1]) + strings.TrimSuffix(hint[1:], ".") + "."
}

// lineStart is where the line begins in which the byte at stands, lineEnd where the
// next one begins.
func lineStart(text []byte, at int) int { return bytes.LastIndexByte(text[:at], '\n') + 1 }

func lineEnd(text []byte, at int) int {
	if n := bytes.IndexByte(text[at:], '\n'); n >= 0 {
		return at + n + 1
	}
	return len(text)
}

// newlineOf is how the lines of a text end.
func newlineOf(text []byte) string {
	if bytes.Contains(text, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

// splice is a text with another one in the place of the bytes from, …, to-1.
func splice(text []byte, from, to int, with string) []byte {
	return slices.Concat(text[:from], []byte(with), text[to:])
}
