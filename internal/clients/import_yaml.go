package clients

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Limits for the YAML parser, which is recursive and slow for many keys.
const (
	maxYAML   = 256 << 10
	maxIndent = 100
)

// parseYAML parses YAML with aliases and merge keys, up to maxExpanded.
func parseYAML(data []byte) (root *node, err error) {
	if len(data) > maxYAML {
		return nil, &syntaxError{position{1, 1}, fmt.Sprintf("the text is larger than %d bytes", maxYAML), "import only the part with the servers"}
	}
	if err := checkDepth(data); err != nil {
		return nil, err
	}
	if err := checkMaxIndentation(data); err != nil {
		return nil, err
	}
	// The text is untrusted, and the parser may panic.
	defer func() {
		if recover() != nil {
			root, err = nil, &syntaxError{position{1, 1}, "the text is not YAML", "copy the file again, exactly as it is in the client"}
		}
	}()
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, newYAMLError(err)
	}
	var bodies []ast.Node
	for _, doc := range file.Docs {
		if doc.Body != nil {
			bodies = append(bodies, doc.Body)
		}
	}
	if len(bodies) != 1 {
		return nil, &syntaxError{position{1, 1}, fmt.Sprintf("the text has %d YAML documents", len(bodies)), "import only the document with the servers"}
	}
	r := yamlReader{anchors: map[string]yamlAnchor{}}
	return r.convertNode(bodies[0], 0)
}

func newYAMLError(err error) error {
	at, message := position{1, 1}, ""
	var wrong yaml.Error
	if errors.As(err, &wrong) {
		message = ": " + wrong.GetMessage()
		at = tokenPosition(wrong.GetToken())
	}
	return &syntaxError{at, "the text is not YAML" + message, "correct the line, or copy the file again"}
}

func tokenPosition(t *token.Token) position {
	if t == nil || t.Position == nil {
		return position{1, 1}
	}
	return position{t.Position.Line, t.Position.Column}
}

// checkMaxIndentation rejects lines with very long indentation, because every character may be a level.
func checkMaxIndentation(data []byte) error {
	line := 0
	for text := range bytes.Lines(data) {
		line++
		if n := len(text) - len(bytes.TrimLeft(text, " \t-?!&*")); n > maxIndent && n < len(bytes.TrimRight(text, "\r\n")) {
			return &syntaxError{position{line, maxIndent + 1}, fmt.Sprintf("the line is indented by more than %d characters", maxIndent), "import only the part with the servers"}
		}
	}
	return nil
}

// maxExpanded is the maximum number of values that aliases and merge keys repeat. It prevents exponential expansion.
const maxExpanded = 10_000

// yamlAnchor is an anchored value, with its number of values and its depth.
type yamlAnchor struct {
	node          *node
	values, depth int
}

// yamlReader converts the parsed text into nodes.
type yamlReader struct {
	anchors map[string]yamlAnchor
	aliases int // number of repeated values
}

// treeSize returns the number of values in a tree and its depth.
func treeSize(n *node) (values, depth int) {
	count := func(inner *node) {
		v, d := treeSize(inner)
		values, depth = values+v, max(depth, d)
	}
	for _, m := range n.members {
		count(m.value)
	}
	for _, item := range n.items {
		count(item)
	}
	return values + 1, depth + 1
}

// readAnchor reads a value and stores it for aliases.
func (r *yamlReader) readAnchor(v *ast.AnchorNode, depth int) (*node, error) {
	n, err := r.convertNode(v.Value, depth+1)
	if err != nil {
		return nil, err
	}
	a := yamlAnchor{node: n}
	a.values, a.depth = treeSize(n)
	r.anchors[v.Name.GetToken().Value] = a
	return n, nil
}

// readAlias returns the value of an alias.
func (r *yamlReader) readAlias(v *ast.AliasNode, depth int) (*node, error) {
	at := tokenPosition(v.GetToken())
	name := v.Value.GetToken().Value
	a, known := r.anchors[name]
	if !known {
		return nil, &syntaxError{at, "no anchor above this line has the name " + quoteClipped(name), "write the value itself here"}
	}
	if r.aliases += a.values; r.aliases > maxExpanded {
		return nil, &syntaxError{at, fmt.Sprintf("aliases repeat more than %d values", maxExpanded), "write the values themselves here"}
	}
	if depth+a.depth > maxDepth {
		return nil, newTooDeepError(at)
	}
	same := *a.node
	same.at = at
	return &same, nil
}

func (r *yamlReader) convertNode(v ast.Node, depth int) (*node, error) {
	at := tokenPosition(v.GetToken())
	if depth > maxDepth {
		return nil, newTooDeepError(at)
	}
	n := &node{kind: stringNode, at: at}
	switch v := v.(type) {
	case *ast.MappingNode:
		return r.convertMapping(v.Values, n, depth)
	case *ast.MappingValueNode:
		return r.convertMapping([]*ast.MappingValueNode{v}, n, depth)
	case *ast.SequenceNode:
		n.kind = listNode
		for _, e := range v.Values {
			item, err := r.convertNode(e, depth+1)
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, item)
		}
	case *ast.AnchorNode:
		return r.readAnchor(v, depth)
	case *ast.TagNode:
		return r.convertNode(v.Value, depth+1)
	case *ast.AliasNode:
		return r.readAlias(v, depth)
	case *ast.NullNode:
		n.kind = nullNode
	case *ast.BoolNode:
		n.kind, n.text = boolNode, strconv.FormatBool(v.Value)
	case *ast.IntegerNode:
		n.kind, n.text = numberNode, fmt.Sprint(v.Value)
	case *ast.FloatNode:
		n.kind, n.text = numberNode, v.Token.Value
	case *ast.StringNode:
		n.text = v.Value
	case *ast.LiteralNode:
		n.text = v.Value.Value
	default:
		n.text = v.GetToken().Value
	}
	return n, nil
}

func (r *yamlReader) convertMapping(values []*ast.MappingValueNode, n *node, depth int) (*node, error) {
	n.kind = objectNode
	var merged []*node
	for _, m := range values {
		token := m.Key.GetToken()
		at := tokenPosition(token)
		inner, err := r.convertNode(m.Value, depth+1)
		if err != nil {
			return nil, err
		}
		if m.Key.IsMergeKey() {
			objects, err := mergeKeyObjects(inner, at)
			if err != nil {
				return nil, err
			}
			merged = append(merged, objects...)
			continue
		}
		name := token.Value
		if s, ok := m.Key.(*ast.StringNode); ok {
			name = s.Value
		}
		n.addMember(nodeMember{name, at, inner})
	}
	if err := n.checkDuplicates(); err != nil {
		return nil, err
	}
	n.addMissingMembers(merged)
	return n, nil
}

// mergeKeyObjects returns the objects of a merge key, which is a single object or a list.
func mergeKeyObjects(n *node, at position) ([]*node, error) {
	objects := []*node{n}
	if n.isKind(listNode) {
		objects = n.items
	}
	for _, o := range objects {
		if !o.isKind(objectNode) {
			return nil, &syntaxError{at, "the merge key (<<) names something that is not an object", "write the values out in its place"}
		}
	}
	return objects, nil
}

// addMissingMembers adds the members that n does not have. If several objects have the same member, the first one wins,
// as in YAML.
func (n *node) addMissingMembers(objects []*node) {
	has := map[string]bool{}
	for _, m := range n.members {
		has[m.name] = true
	}
	for _, o := range objects {
		for _, m := range o.members {
			if !has[m.name] {
				has[m.name] = true
				n.addMember(m)
			}
		}
	}
}
