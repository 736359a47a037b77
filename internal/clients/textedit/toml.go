package textedit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

type tomlEditor struct{}

func (tomlEditor) decodeTree(text []byte) (map[string]any, error) {
	if wrong := CheckSizeAndEncoding(text); wrong != nil {
		return nil, newParseError(text, wrong.Offset, wrong.Message, wrong.Hint)
	}
	if _, err := parseStatements(text); err != nil {
		return nil, err
	}
	tree := map[string]any{}
	if err := toml.Unmarshal(text, &tree); err != nil {
		var wrong *toml.DecodeError
		if !errors.As(err, &wrong) {
			return nil, newParseErrorAt(1, 1, "the text is not TOML", "")
		}
		line, column := wrong.Position()
		return nil, newParseErrorAt(line, column, "the text is not TOML", "correct the line first; nothing was changed")
	}
	return normalizeValue(tree).(map[string]any), nil
}

// tomlStatement is a table header, a key with its value, or such a pair within an inline table.
type tomlStatement struct {
	path       []string
	start, end int
	head       bool // it is a table header
	value      int  // offset of the value of a pair
	table      []string
	inline     bool // the value is an inline table
	inside     bool // the pair is in an inline table
}

// listElement is the path element for an element of an array of tables. No name equals it.
const listElement = "\x00"

// parseStatements returns the statements of a text in order. It stops at a syntax error, which the decoder reports.
func parseStatements(text []byte) (all []tomlStatement, err error) {
	var p unstable.Parser
	p.Reset(text)
	var table []string
	for p.NextExpression() {
		switch e := p.Expression(); e.Kind {
		case unstable.Table, unstable.ArrayTable:
			names, first, end := dottedKey(e)
			table = names
			if e.Kind == unstable.ArrayTable {
				table = append(table, listElement)
			}
			start := bytes.LastIndexByte(text[:first], '[')
			if e.Kind == unstable.ArrayTable {
				start--
			}
			all = append(all, tomlStatement{path: table, start: start, end: end + bytes.IndexByte(text[end:], ']') + 1, head: true, table: table})
		case unstable.KeyValue:
			all = appendPairStatements(all, text, e, table, false)
		}
		if len(all) > maxKeys {
			return nil, newParseError(text, all[maxKeys].start, fmt.Sprintf("there are more than %d keys", maxKeys), "change the file by hand")
		}
	}
	return all, nil
}

// dottedKey returns the names of a key, and its start and end.
func dottedKey(e *unstable.Node) (names []string, start, end int) {
	start = -1
	for it := e.Key(); it.Next(); {
		k := it.Node()
		if start < 0 {
			start = int(k.Raw.Offset)
		}
		names, end = append(names, string(k.Data)), int(k.Raw.Offset+k.Raw.Length)
	}
	return names, start, end
}

func appendPairStatements(all []tomlStatement, text []byte, e *unstable.Node, table []string, inside bool) []tomlStatement {
	names, _, after := dottedKey(e)
	value := after + bytes.IndexByte(text[after:], '=') + 1
	value += len(text[value:]) - len(bytes.TrimLeft(text[value:], " \t"))
	s := tomlStatement{
		path: slices.Concat(table, names), start: int(e.Raw.Offset), end: int(e.Raw.Offset + e.Raw.Length),
		value: value, table: table, inline: e.Value().Kind == unstable.InlineTable, inside: inside,
	}
	s.end = s.start + len(bytes.TrimRight(text[s.start:s.end], " \t"))
	all = append(all, s)
	if s.inline {
		for it := e.Value().Children(); it.Next(); {
			if it.Node().Kind == unstable.KeyValue {
				all = appendPairStatements(all, text, it.Node(), s.path, true)
			}
		}
	}
	return all
}

// isAtOrBelow reports whether a statement is at or below a path.
func (s tomlStatement) isAtOrBelow(path []string) bool {
	return len(s.path) >= len(path) && slices.Equal(s.path[:len(path)], path)
}

func (t tomlEditor) setValue(text []byte, path []string, value json.RawMessage) ([]byte, error) {
	all, err := parseStatements(text)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(all, func(s tomlStatement) bool { return !s.head && slices.Equal(s.path, path) }); i >= 0 {
		inline, err := encodeTOMLInline(value)
		return replaceBytes(text, all[i].value, all[i].end, inline), err
	}
	place := -1 // previous position, if it exists
	if i := slices.IndexFunc(all, func(s tomlStatement) bool { return s.isAtOrBelow(path) }); i >= 0 {
		place = lineStart(text, all[i].start)
		if text, err = t.removeValue(text, path); err != nil {
			return nil, err
		}
		if all, err = parseStatements(text); err != nil {
			return nil, err
		}
	}
	parent := path[:len(path)-1]
	if i := slices.IndexFunc(all, func(s tomlStatement) bool { return s.inline && slices.Equal(s.path, parent) }); i >= 0 {
		return addToInlineTable(text, all[i], path[len(parent)], value)
	}
	decodedValue, err := decodeJSON(value)
	if err != nil {
		return nil, err
	}
	if _, isTable := decodedValue.(map[string]any); isTable {
		return addTable(text, path, decodedValue, place)
	}
	return addPair(text, all, path, value)
}

// addTable adds a table at its previous position, or at the end.
func addTable(text []byte, path []string, value any, place int) ([]byte, error) {
	var block strings.Builder
	if err := writeTOMLTable(&block, path, value.(map[string]any)); err != nil {
		return nil, err
	}
	newline := detectNewline(text)
	written := strings.ReplaceAll(block.String(), "\n", newline)
	if place >= 0 && place < len(text) {
		return replaceBytes(text, place, place, written+newline), nil
	}
	before := ""
	if len(text) > 0 {
		if text[len(text)-1] != '\n' {
			before = newline
		}
		if !endsWithBlankLine(text) {
			before += newline
		}
	}
	return replaceBytes(text, len(text), len(text), before+written), nil
}

// endsWithBlankLine reports whether the last line of a text is empty.
func endsWithBlankLine(text []byte) bool {
	return bytes.HasSuffix(text, []byte("\n\n")) || bytes.HasSuffix(text, []byte("\n\r\n"))
}

// addPair adds a key with its value to its table, which it creates if necessary.
func addPair(text []byte, all []tomlStatement, path []string, value json.RawMessage) ([]byte, error) {
	inline, err := encodeTOMLInline(value)
	if err != nil {
		return nil, err
	}
	parent, newline := path[:len(path)-1], detectNewline(text)
	line := encodeTOMLKey(path[len(path)-1]) + " = " + inline
	last := -1 // last statement of the table
	for i, s := range all {
		if !s.inside && slices.Equal(s.table, parent) {
			last = i
		}
	}
	switch {
	case last >= 0:
		at := nextLineStart(text, all[last].end)
		if at == len(text) && (at == 0 || text[at-1] != '\n') {
			return replaceBytes(text, at, at, newline+line), nil
		}
		indent := text[lineStart(text, all[last].start):all[last].start]
		return replaceBytes(text, at, at, string(indent)+line+newline), nil
	case len(parent) == 0:
		return replaceBytes(text, 0, 0, line+newline), nil
	}
	inner, err := decodeJSON(json.RawMessage(value))
	if err != nil {
		return nil, err
	}
	return addTable(text, parent, map[string]any{path[len(path)-1]: inner}, -1)
}

// addToInlineTable adds a pair to an inline table.
func addToInlineTable(text []byte, s tomlStatement, name string, value json.RawMessage) ([]byte, error) {
	inline, err := encodeTOMLInline(value)
	if err != nil {
		return nil, err
	}
	closing := s.end - 1
	at := s.value + len(bytes.TrimRight(text[s.value:closing], " \t"))
	pair := encodeTOMLKey(name) + " = " + inline
	if at == s.value+1 { // the inline table is empty
		return replaceBytes(text, at, closing, " "+pair+" "), nil
	}
	return replaceBytes(text, at, at, ", "+pair), nil
}

// removeValue removes the statements, starting with the last one.
func (tomlEditor) removeValue(text []byte, path []string) ([]byte, error) {
	for {
		all, err := parseStatements(text)
		if err != nil {
			return nil, err
		}
		last := -1
		for i, s := range all {
			if s.isAtOrBelow(path) && (!s.inside || slices.Equal(s.path, path)) {
				last = i
			}
		}
		if last < 0 {
			return text, nil
		}
		if all[last].inside {
			text = removeFromInlineTable(text, all[last])
		} else {
			text = removeStatementLines(text, all[last])
		}
	}
}

// removeFromInlineTable removes a pair and one comma from an inline table.
func removeFromInlineTable(text []byte, s tomlStatement) []byte {
	from, to := s.start, s.end
	rest := bytes.TrimLeft(text[to:], " \t")
	if len(rest) > 0 && rest[0] == ',' {
		to = len(text) - len(bytes.TrimLeft(rest[1:], " \t"))
		return replaceBytes(text, from, to, "")
	}
	before := bytes.TrimRight(text[:from], " \t")
	if n := len(before); n > 0 && before[n-1] == ',' {
		from = n - 1
	}
	return replaceBytes(text, from, to, "")
}

// removeStatementLines removes the lines of a statement, and one empty line next to a table head.
func removeStatementLines(text []byte, s tomlStatement) []byte {
	from, to := lineStart(text, s.start), nextLineStart(text, s.end)
	if s.head {
		switch {
		case len(bytes.TrimSpace(text[to:])) == 0 && endsWithBlankLine(text[:from]):
			from -= len(detectNewline(text))
		case len(text) > to && len(bytes.Trim(text[to:nextLineStart(text, to)], " \t\r\n")) == 0 && (from == 0 || endsWithBlankLine(text[:from])):
			to = nextLineStart(text, to)
		}
	}
	return replaceBytes(text, from, to, "")
}
