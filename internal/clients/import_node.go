package clients

import (
	"fmt"
	"strconv"

	"mcpproxy/internal/mcp/wirejson"
)

// maxDepth bounds the nesting of a text.
const maxDepth = 32

// place is a line and a column, from 1.
type place struct{ line, column int }

// mistake is why a text cannot be read.
type mistake struct {
	at            place
	message, hint string
}

func (m *mistake) Error() string { return m.message }

// kind is what a node is, by the first byte of its JSON.
type kind byte

const (
	fileObject kind = '{'
	list       kind = '['
	text       kind = '"'
	number     kind = '0'
	boolean    kind = 't'
	null       kind = 'n'
)

// node is a value, from whatever format.
type node struct {
	kind    kind
	text    string // of a text, a number, true or false
	members []fileMember
	items   []*node
	at      place
}

// fileMember is a member of an object. No object has two of one name.
type fileMember struct {
	name  string
	at    place
	value *node
}

// add appends a member.
func (n *node) add(m fileMember) { n.members = append(n.members, m) }

// distinct returns the mistake in an object that says something twice.
func (n *node) distinct() error {
	first := map[string]place{}
	for _, m := range n.members {
		if at, twice := first[m.name]; twice {
			return &mistake{m.at, quote(m.name) + " is there twice", fmt.Sprintf("the first one is on line %d: take one of them out", at.line)}
		}
		first[m.name] = m.at
	}
	return nil
}

// get returns a member's value, nil without one or when it is null.
func (n *node) get(name string) *node {
	if n == nil {
		return nil
	}
	for _, m := range n.members {
		if m.name == name && m.value.kind != null {
			return m.value
		}
	}
	return nil
}

// is reports whether there is a node of that kind.
func (n *node) is(k kind) bool { return n != nil && n.kind == k }

// scalar returns what a text, a number, true or false says.
func (n *node) scalar() (string, bool) {
	if !n.is(text) && !n.is(number) && !n.is(boolean) {
		return "", false
	}
	return n.text, true
}

// quote makes a name safe to read in a message, and not too long.
func quote(s string) string {
	if cut := wirejson.Clip(s, 80); cut != s {
		s = cut + "…"
	}
	return strconv.Quote(s)
}

// tooDeep returns the mistake of a text with too many brackets in one another. It
// is for parsers that recurse, and takes the brackets in strings for brackets.
func tooDeep(data []byte) error {
	depth, line, column := 0, 1, 0
	for _, c := range data {
		column++
		switch c {
		case '\n':
			line, column = line+1, 0
		case '[', '{':
			depth++
		case ']', '}':
			depth = max(depth-1, 0)
		}
		if depth > maxDepth {
			return errDeep(place{line, column})
		}
	}
	return nil
}

func errDeep(at place) error {
	return &mistake{at, fmt.Sprintf("the text is nested deeper than %d", maxDepth), "take over only the part with the servers"}
}
