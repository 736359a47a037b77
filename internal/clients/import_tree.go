package clients

import (
	"bytes"
	"iter"

	"mcpproxy/internal/clients/textedit"
)

// Tree is a value in a text of any format, with its line. The zero Tree is the one
// that is not there: it has nothing in it.
type Tree struct {
	n    *node
	line int
}

// ParseTree reads a whole text. An empty one is the zero Tree; the error is a
// *problem.Problem INVALID_CONFIG with line and column, and repeats no string of
// the text.
func ParseTree(text []byte, f textedit.Format) (Tree, error) {
	text = bytes.TrimPrefix(text, []byte(textedit.ByteOrderMark))
	if len(bytes.TrimSpace(text)) == 0 {
		return Tree{}, nil
	}
	if wrong := textedit.CheckText(text); wrong != nil {
		line, column := textedit.Position(text, wrong.Offset)
		return Tree{}, parseError(&syntaxError{position{line, column}, wrong.Message, wrong.Hint})
	}
	n, err := map[textedit.Format]func([]byte) (*node, error){textedit.JSON: fromJSON, textedit.TOML: fromTOML, textedit.YAML: fromYAML}[f](text)
	if err != nil {
		return Tree{}, parseError(err)
	}
	return Tree{n, n.at.line}, nil
}

// Exists reports whether there is a value, be it null.
func (t Tree) Exists() bool { return t.n != nil }

// Line is where the value stands, or the key of a member: from 1; 0 when nothing
// is there.
func (t Tree) Line() int { return t.line }

// Get returns what stands under the keys.
func (t Tree) Get(keys ...string) Tree {
	for _, key := range keys {
		t = t.member(key)
	}
	return t
}

func (t Tree) member(key string) Tree {
	for name, value := range t.Members() {
		if name == key {
			return value
		}
	}
	return Tree{}
}

// Servers reads the value as the servers of a client, by its name, of which it is
// known that it wrote them; project is where it has them, "" for everywhere. Where
// nothing stands there are none. The error is as of Parse.
func (t Tree) Servers(client, project string) (*ServersFile, error) {
	r := importReader{file: &ServersFile{Client: client}, taken: ServerNames{}}
	if !t.IsObject() && !t.IsList() {
		return r.file, nil
	}
	if err := r.section(serverSection{client, t.n, project}); err != nil {
		return nil, parseError(err)
	}
	return r.file, nil
}

// Members are those of an object, in their order.
func (t Tree) Members() iter.Seq2[string, Tree] {
	return func(yield func(string, Tree) bool) {
		if !t.n.is(objectNode) {
			return
		}
		for _, m := range t.n.members {
			if !yield(m.name, Tree{m.value, m.at.line}) {
				return
			}
		}
	}
}

// Items are those of a list.
func (t Tree) Items() []Tree {
	if !t.n.is(listNode) {
		return nil
	}
	items := make([]Tree, len(t.n.items))
	for i, n := range t.n.items {
		items[i] = Tree{n, n.at.line}
	}
	return items
}

// IsList and IsObject report what the value is.
func (t Tree) IsList() bool   { return t.n.is(listNode) }
func (t Tree) IsObject() bool { return t.n.is(objectNode) }

// Text returns a text; anything else is none.
func (t Tree) Text() string {
	if !t.n.is(stringNode) {
		return ""
	}
	return t.n.text
}

// Number returns a number as it is written, "" for anything else.
func (t Tree) Number() string {
	if !t.n.is(numberNode) {
		return ""
	}
	return t.n.text
}

// Bool returns true or false, and whether the value is one.
func (t Tree) Bool() (value, ok bool) {
	if !t.n.is(boolNode) {
		return false, false
	}
	return t.n.text == "true", true
}

// Texts are the texts of a list, or the one that stands in its place.
func (t Tree) Texts() []Tree {
	if t.n.is(stringNode) {
		return []Tree{t}
	}
	var texts []Tree
	for _, item := range t.Items() {
		if item.n.is(stringNode) {
			texts = append(texts, item)
		}
	}
	return texts
}
