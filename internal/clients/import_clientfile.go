package clients

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"strings"

	"mcpproxy/internal/problem"
)

// parseJSONOrYAML parses a text that looks like JSON. If its first key has no quotes and it contains servers when
// parsed as YAML, it is parsed as YAML. Otherwise the function returns the JSON error.
func parseJSONOrYAML(data []byte) (*node, error) {
	root, err := parseJSON(data)
	first := bytes.TrimLeft(data, "{ \t\r\n")
	if err == nil || bytes.HasPrefix(first, []byte(`"`)) {
		return root, err
	}
	again, wrong := parseYAML(data)
	if wrong != nil {
		return nil, err
	}
	if f, wrong := readServersNode(again, false); wrong != nil || len(f.Servers) == 0 {
		return nil, err
	}
	return again, nil
}

type fileFormat uint8

const (
	inJSON fileFormat = iota
	inTOML
	inYAML
)

// detectFormat determines the format from the first relevant line. An assignment or a table header means TOML. A key
// with a colon or a list means YAML. Everything else means JSON.
func detectFormat(text []byte) fileFormat {
	for line := range bytes.Lines(text) {
		s := strings.TrimSpace(string(line))
		colon, equals := strings.IndexByte(s, ':'), strings.IndexByte(s, '=')
		switch {
		case s == "" || s[0] == '#':
			continue
		case s[0] == '{' || strings.HasPrefix(s, "//") || strings.HasPrefix(s, "/*"):
			return inJSON
		case s[0] == '[':
			if inner := strings.TrimSpace(strings.TrimLeft(s, "[")); inner != "" && !strings.ContainsAny(inner[:1], `{]`) {
				return inTOML
			}
			return inJSON
		case equals > 0 && (colon < 0 || equals < colon):
			return inTOML
		case colon > 0 || s == "---" || strings.HasPrefix(s, "- ") || s[0] == '%':
			return inYAML
		}
		return inJSON
	}
	return inJSON
}

// toParseProblem returns the error for a text that cannot be parsed.
func toParseProblem(err error) error {
	var m *syntaxError
	if !errors.As(err, &m) {
		return problem.Newf(problem.InvalidConfig, "The text cannot be read: %v", err).WithHint("Copy the text again, exactly as it is in the client.")
	}
	text := m.message
	if m.at.line > 0 {
		text = fmt.Sprintf("line %d, column %d: %s", m.at.line, m.at.column, text)
	}
	hint := cmp.Or(m.hint, "copy the text again, exactly as it is in the client")
	return problem.New(problem.InvalidConfig, text, strings.ToUpper(hint[:1])+hint[1:]+".").With("line", m.at.line).With("column", m.at.column)
}
