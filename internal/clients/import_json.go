package clients

import (
	"github.com/tailscale/hujson"

	"mcpproxy/internal/clients/textedit"
)

// parseJSON parses JSON with optional comments and trailing commas.
func parseJSON(data []byte) (*node, error) {
	tree, wrong := textedit.ParseJSONC(data)
	if wrong != nil {
		line, column := textedit.LineAndColumn(data, wrong.Offset)
		return nil, &syntaxError{position{line, column}, wrong.Message, wrong.Hint}
	}
	return convertJSONValue(tree, newLineIndex(data))
}

func convertJSONValue(v hujson.Value, l *lineIndex) (*node, error) {
	n := &node{kind: nodeKind(v.Value.Kind()), at: l.position(v.StartOffset)}
	switch value := v.Value.(type) {
	case hujson.Literal:
		switch n.kind {
		case stringNode:
			n.text = value.String()
		case numberNode:
			n.text = string(value)
		case 't', 'f':
			n.kind, n.text = boolNode, string(value)
		}
	case *hujson.Array:
		for _, e := range value.Elements {
			item, err := convertJSONValue(e, l)
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, item)
		}
	case *hujson.Object:
		for _, m := range value.Members {
			name, _ := m.Name.Value.(hujson.Literal)
			at := l.position(m.Name.StartOffset)
			inner, err := convertJSONValue(m.Value, l)
			if err != nil {
				return nil, err
			}
			n.addMember(nodeMember{name.String(), at, inner})
		}
		return n, n.checkDuplicates()
	}
	return n, nil
}
