package clients

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"strings"

	"mcpproxy/internal/clients/textedit"
	"mcpproxy/internal/problem"
)

// parseServers reads the text of a client's file. The error is a *problem.Problem
// INVALID_CONFIG with line and column.
func parseServers(text []byte) (*ServersFile, error) {
	text = bytes.TrimPrefix(text, []byte(textedit.ByteOrderMark))
	root, err := read(text)
	if err != nil {
		return nil, clientfileRefused(err)
	}
	found, err := sectionsOf(root)
	if err != nil {
		return nil, clientfileRefused(err)
	}
	r := reader{file: &ServersFile{}, taken: Names{}}
	for _, s := range found {
		r.file.Client = s.client
		if err := r.section(s); err != nil {
			return nil, clientfileRefused(err)
		}
	}
	return r.file, nil
}

// read makes a tree of the text, in the format that it looks like.
func read(text []byte) (*node, error) {
	if wrong := textedit.Bounded(text); wrong != nil {
		line, column := textedit.Position(text, wrong.Offset)
		return nil, &mistake{place{line, column}, wrong.Message, wrong.Hint}
	}
	switch formatOf(text) {
	case inTOML:
		return fromTOML(text)
	case inYAML:
		return fromYAML(text)
	}
	return fromJSONOrYAML(text)
}

// fromJSONOrYAML reads a text that looks like JSON, and is YAML if its first key has
// no quotes and it has servers as YAML. Else the mistake is that of the JSON.
func fromJSONOrYAML(data []byte) (*node, error) {
	root, err := fromJSON(data)
	first := bytes.TrimLeft(data, "{ \t\r\n")
	if err == nil || bytes.HasPrefix(first, []byte(`"`)) {
		return root, err
	}
	again, wrong := fromYAML(data)
	if wrong != nil {
		return nil, err
	}
	if f, wrong := fileOf(again, false); wrong != nil || len(f.Servers) == 0 {
		return nil, err
	}
	return again, nil
}

type format uint8

const (
	inJSON format = iota
	inTOML
	inYAML
)

// formatOf looks at the first line that says something: an assignment or the head
// of a table is TOML, a key with a colon or a list YAML, everything else is read,
// or refused, as JSON.
func formatOf(text []byte) format {
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

// clientfileRefused makes the error for a text that cannot be read.
func clientfileRefused(err error) error {
	var m *mistake
	if !errors.As(err, &m) {
		return problem.Newf(problem.InvalidConfig, "The text cannot be read: %v", err).WithHint("Copy the text once more, as the client has it.")
	}
	text := m.message
	if m.at.line > 0 {
		text = fmt.Sprintf("line %d, column %d: %s", m.at.line, m.at.column, text)
	}
	hint := cmp.Or(m.hint, "copy the text once more, as the client has it")
	return problem.New(problem.InvalidConfig, text, strings.ToUpper(hint[:1])+hint[1:]+".").With("line", m.at.line).With("column", m.at.column)
}
