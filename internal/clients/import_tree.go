package clients

import (
	"bytes"
	"iter"

	"mcpproxy/internal/clients/textedit"
)

// ParsedValue is a value in a text of any format, with its line. The zero ParsedValue represents a missing value.
type ParsedValue struct {
	n    *node
	line int
}

// ParseText parses a whole text. For an empty text, it returns the zero ParsedValue. The error is a *problem.Problem
// INVALID_CONFIG with line and column. It contains no string of the text.
func ParseText(text []byte, f textedit.Format) (ParsedValue, error) {
	text = bytes.TrimPrefix(text, []byte(textedit.ByteOrderMark))
	if len(bytes.TrimSpace(text)) == 0 {
		return ParsedValue{}, nil
	}
	if wrong := textedit.CheckSizeAndEncoding(text); wrong != nil {
		line, column := textedit.LineAndColumn(text, wrong.Offset)
		return ParsedValue{}, toParseProblem(&syntaxError{position{line, column}, wrong.Message, wrong.Hint})
	}
	n, err := map[textedit.Format]func([]byte) (*node, error){textedit.JSON: parseJSON, textedit.TOML: parseTOML, textedit.YAML: parseYAML}[f](text)
	if err != nil {
		return ParsedValue{}, toParseProblem(err)
	}
	return ParsedValue{n, n.at.line}, nil
}

// Exists reports whether there is a value, including null.
func (t ParsedValue) Exists() bool { return t.n != nil }

// Line returns the line of the value, or of its key, counted from 1. It returns 0 if the value is missing.
func (t ParsedValue) Line() int { return t.line }

// Get returns the value at a path of keys.
func (t ParsedValue) Get(keys ...string) ParsedValue {
	for _, key := range keys {
		t = t.memberByName(key)
	}
	return t
}

func (t ParsedValue) memberByName(key string) ParsedValue {
	for name, value := range t.Members() {
		if name == key {
			return value
		}
	}
	return ParsedValue{}
}

// ReadServers reads the value as the servers of a known client. project is the project that they belong to, or "" if
// they belong to none. A missing value contains no servers. The errors are those of ParseText.
func (t ParsedValue) ReadServers(client, project string) (*ImportedServers, error) {
	r := importReader{file: &ImportedServers{Client: client}, taken: UsedServerNames{}}
	if !t.IsObject() && !t.IsList() {
		return r.file, nil
	}
	if err := r.readSection(serverSection{client, t.n, project}); err != nil {
		return nil, toParseProblem(err)
	}
	return r.file, nil
}

// Members iterates over an object's members in order.
func (t ParsedValue) Members() iter.Seq2[string, ParsedValue] {
	return func(yield func(string, ParsedValue) bool) {
		if !t.n.isKind(objectNode) {
			return
		}
		for _, m := range t.n.members {
			if !yield(m.name, ParsedValue{m.value, m.at.line}) {
				return
			}
		}
	}
}

// EachText calls f for each text in the value: names of members and strings.
func (t ParsedValue) EachText(f func(text string)) {
	for name, member := range t.Members() {
		f(name)
		member.EachText(f)
	}
	for _, item := range t.Items() {
		item.EachText(f)
	}
	if text := t.Text(); text != "" {
		f(text)
	}
}

// Items returns the elements of a list.
func (t ParsedValue) Items() []ParsedValue {
	if !t.n.isKind(listNode) {
		return nil
	}
	items := make([]ParsedValue, len(t.n.items))
	for i, n := range t.n.items {
		items[i] = ParsedValue{n, n.at.line}
	}
	return items
}

// IsList and IsObject report the kind of the value.
func (t ParsedValue) IsList() bool   { return t.n.isKind(listNode) }
func (t ParsedValue) IsObject() bool { return t.n.isKind(objectNode) }

// Text returns the string, or "" if the value is not a string.
func (t ParsedValue) Text() string {
	if !t.n.isKind(stringNode) {
		return ""
	}
	return t.n.text
}

// Number returns the number as written, or "" if the value is not a number.
func (t ParsedValue) Number() string {
	if !t.n.isKind(numberNode) {
		return ""
	}
	return t.n.text
}

// Bool returns the boolean, and whether the value is one.
func (t ParsedValue) Bool() (value, ok bool) {
	if !t.n.isKind(boolNode) {
		return false, false
	}
	return t.n.text == "true", true
}

// StringItems returns the strings of a list, or a single string as the only item.
func (t ParsedValue) StringItems() []ParsedValue {
	if t.n.isKind(stringNode) {
		return []ParsedValue{t}
	}
	var texts []ParsedValue
	for _, item := range t.Items() {
		if item.n.isKind(stringNode) {
			texts = append(texts, item)
		}
	}
	return texts
}
