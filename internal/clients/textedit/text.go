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

// Limits for TOML and YAML, because their decoders are slow for larger texts.
const (
	maxKeys = 10_000
	maxYAML = 256 << 10
)

// formatEditor edits one format. decodeTree decodes a text into map[string]any, []any, string, bool, json.Number and
// nil. An empty text is an empty map. setValue and removeValue return the new text. The value for setValue is JSON, and
// the entry may exist. For removeValue, the entry must exist.
type formatEditor interface {
	decodeTree(text []byte) (map[string]any, error)
	setValue(text []byte, path []string, value json.RawMessage) ([]byte, error)
	removeValue(text []byte, path []string) ([]byte, error)
}

// decodeJSON decodes a JSON value into the types of a tree.
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

// normalizeValue converts a decoded value to the types of a tree.
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

// newParseError returns the error for a text with a syntax error.
func newParseError(text []byte, offset int, message, hint string) error {
	line, column := LineAndColumn(text, offset)
	return newParseErrorAt(line, column, message, hint)
}

func newParseErrorAt(line, column int, message, hint string) error {
	return problem.New(problem.InvalidConfig, fmt.Sprintf("line %d, column %d: %s", line, column, message), hintSentence(hint)).
		With("line", line).With("column", column)
}

// hintSentence returns a hint as a sentence.
func hintSentence(hint string) string {
	if hint == "" {
		hint = "correct the file first; nothing was changed"
	}
	return strings.ToUpper(hint[:1]) + strings.TrimSuffix(hint[1:], ".") + "."
}

// lineStart returns the start of the line that contains a byte. nextLineStart returns the start of the next line.
func lineStart(text []byte, at int) int { return bytes.LastIndexByte(text[:at], '\n') + 1 }

func nextLineStart(text []byte, at int) int {
	if n := bytes.IndexByte(text[at:], '\n'); n >= 0 {
		return at + n + 1
	}
	return len(text)
}

// detectNewline returns the line ending of a text.
func detectNewline(text []byte) string {
	if bytes.Contains(text, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

// replaceBytes replaces the bytes [from, to) of a text.
func replaceBytes(text []byte, from, to int, with string) []byte {
	return slices.Concat(text[:from], []byte(with), text[to:])
}
