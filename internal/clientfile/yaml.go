package clientfile

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

// Bounds for the parser of YAML, which recurses, and takes ever longer for more
// keys.
const (
	maxYAML   = 256 << 10
	maxIndent = 100
)

// fromYAML reads YAML. Aliases are refused: a text that repeats itself can be
// larger than memory, and a client's file has no need of them.
func fromYAML(data []byte) (root *node, err error) {
	if len(data) > maxYAML {
		return nil, &mistake{place{1, 1}, fmt.Sprintf("the text is larger than %d bytes", maxYAML), "take over only the part with the servers"}
	}
	if err := tooDeep(data); err != nil {
		return nil, err
	}
	if err := tooIndented(data); err != nil {
		return nil, err
	}
	// The text is anybody's, and the parser is known to panic on odd ones.
	defer func() {
		if recover() != nil {
			root, err = nil, &mistake{place{1, 1}, "the text is not YAML", "copy the file once more, as the client has it"}
		}
	}()
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, yamlMistake(err)
	}
	var bodies []ast.Node
	for _, doc := range file.Docs {
		if doc.Body != nil {
			bodies = append(bodies, doc.Body)
		}
	}
	if len(bodies) != 1 {
		return nil, &mistake{place{1, 1}, fmt.Sprintf("the text has %d YAML documents", len(bodies)), "take over only the one with the servers"}
	}
	return yamlNode(bodies[0], 0)
}

func yamlMistake(err error) error {
	at, message := place{1, 1}, ""
	var wrong yaml.Error
	if errors.As(err, &wrong) {
		message = ": " + wrong.GetMessage()
		at = yamlPlace(wrong.GetToken())
	}
	return &mistake{at, "the text is not YAML" + message, "correct the line, or copy the file once more"}
}

func yamlPlace(t *token.Token) place {
	if t == nil || t.Position == nil {
		return place{1, 1}
	}
	return place{t.Position.Line, t.Position.Column}
}

// tooIndented refuses lines that begin with more white space, dashes and question
// marks than a person writes: each may be a level.
func tooIndented(data []byte) error {
	line := 0
	for text := range bytes.Lines(data) {
		line++
		if n := len(text) - len(bytes.TrimLeft(text, " \t-?!&*")); n > maxIndent && n < len(bytes.TrimRight(text, "\r\n")) {
			return &mistake{place{line, maxIndent + 1}, fmt.Sprintf("the line is indented by more than %d characters", maxIndent), "take over only the part with the servers"}
		}
	}
	return nil
}

func yamlNode(v ast.Node, depth int) (*node, error) {
	at := yamlPlace(v.GetToken())
	if depth > maxDepth {
		return nil, errDeep(at)
	}
	n := &node{kind: text, at: at}
	switch v := v.(type) {
	case *ast.MappingNode:
		return yamlObject(v.Values, n, depth)
	case *ast.MappingValueNode:
		return yamlObject([]*ast.MappingValueNode{v}, n, depth)
	case *ast.SequenceNode:
		n.kind = list
		for _, e := range v.Values {
			item, err := yamlNode(e, depth+1)
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, item)
		}
	case *ast.AnchorNode:
		return yamlNode(v.Value, depth+1)
	case *ast.TagNode:
		return yamlNode(v.Value, depth+1)
	case *ast.AliasNode:
		return nil, &mistake{at, "aliases (*name) are not read", "write the value out in its place"}
	case *ast.NullNode:
		n.kind = null
	case *ast.BoolNode:
		n.kind, n.text = boolean, strconv.FormatBool(v.Value)
	case *ast.IntegerNode:
		n.kind, n.text = number, fmt.Sprint(v.Value)
	case *ast.FloatNode:
		n.kind, n.text = number, v.Token.Value
	case *ast.StringNode:
		n.text = v.Value
	case *ast.LiteralNode:
		n.text = v.Value.Value
	default:
		n.text = v.GetToken().Value
	}
	return n, nil
}

func yamlObject(values []*ast.MappingValueNode, n *node, depth int) (*node, error) {
	n.kind = object
	for _, m := range values {
		token := m.Key.GetToken()
		at := yamlPlace(token)
		if m.Key.IsMergeKey() {
			return nil, &mistake{at, "merge keys (<<) are not read", "write the values out in its place"}
		}
		name := token.Value
		if s, ok := m.Key.(*ast.StringNode); ok {
			name = s.Value
		}
		inner, err := yamlNode(m.Value, depth+1)
		if err != nil {
			return nil, err
		}
		n.add(member{name, at, inner})
	}
	return n, n.distinct()
}
