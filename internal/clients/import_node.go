package clients

import (
	"fmt"
	"strconv"

	"mcpproxy/internal/mcp/wirejson"
)

// maxDepth is the maximum nesting depth of a text.
const maxDepth = 32

// position is a line and a column, from 1.
type position struct{ line, column int }

// syntaxError explains why a text cannot be parsed.
type syntaxError struct {
	at            position
	message, hint string
}

func (m *syntaxError) Error() string { return m.message }

// nodeKind is the kind of a node: the first byte of its JSON.
type nodeKind byte

const (
	objectNode nodeKind = '{'
	listNode   nodeKind = '['
	stringNode nodeKind = '"'
	numberNode nodeKind = '0'
	boolNode   nodeKind = 't'
	nullNode   nodeKind = 'n'
)

// node is a value in any format.
type node struct {
	kind    nodeKind
	text    string // text of a string, number or boolean
	members []nodeMember
	items   []*node
	at      position
}

// nodeMember is a member of an object. Names are unique.
type nodeMember struct {
	name  string
	at    position
	value *node
}

// addMember appends a member.
func (n *node) addMember(m nodeMember) { n.members = append(n.members, m) }

// checkDuplicates returns an error for duplicate member names.
func (n *node) checkDuplicates() error {
	first := map[string]position{}
	for _, m := range n.members {
		if at, twice := first[m.name]; twice {
			return &syntaxError{m.at, quoteClipped(m.name) + " is there twice", fmt.Sprintf("the first one is on line %d: remove one of them", at.line)}
		}
		first[m.name] = m.at
	}
	return nil
}

// memberValue returns a member's value, or nil if it is missing or null.
func (n *node) memberValue(name string) *node {
	if n == nil {
		return nil
	}
	for _, m := range n.members {
		if m.name == name && m.value.kind != nullNode {
			return m.value
		}
	}
	return nil
}

// isKind reports whether the node exists and has that kind.
func (n *node) isKind(k nodeKind) bool { return n != nil && n.kind == k }

// scalarText returns the text of a string, number or boolean.
func (n *node) scalarText() (string, bool) {
	if !n.isKind(stringNode) && !n.isKind(numberNode) && !n.isKind(boolNode) {
		return "", false
	}
	return n.text, true
}

// quoteClipped quotes and shortens a name for a message.
func quoteClipped(s string) string {
	if cut := wirejson.ClipText(s, 80); cut != s {
		s = cut + "…"
	}
	return strconv.Quote(s)
}

// checkDepth returns an error if brackets are nested too deep for recursive parsers. It also counts brackets in
// strings.
func checkDepth(data []byte) error {
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
			return newTooDeepError(position{line, column})
		}
	}
	return nil
}

func newTooDeepError(at position) error {
	return &syntaxError{at, fmt.Sprintf("the text is nested deeper than %d", maxDepth), "import only the part with the servers"}
}
