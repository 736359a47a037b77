package clients

import (
	"github.com/tailscale/hujson"

	"mcpproxy/internal/clients/textedit"
)

// fromJSON reads JSON, with or without comments and trailing commas.
func fromJSON(data []byte) (*node, error) {
	tree, wrong := textedit.Parse(data)
	if wrong != nil {
		line, column := textedit.Position(data, wrong.Offset)
		return nil, &mistake{place{line, column}, wrong.Message, wrong.Hint}
	}
	return jsonNode(tree, newLines(data))
}

func jsonNode(v hujson.Value, l *lines) (*node, error) {
	n := &node{kind: kind(v.Value.Kind()), at: l.at(v.StartOffset)}
	switch value := v.Value.(type) {
	case hujson.Literal:
		switch n.kind {
		case text:
			n.text = value.String()
		case number:
			n.text = string(value)
		case 't', 'f':
			n.kind, n.text = boolean, string(value)
		}
	case *hujson.Array:
		for _, e := range value.Elements {
			item, err := jsonNode(e, l)
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, item)
		}
	case *hujson.Object:
		for _, m := range value.Members {
			name, _ := m.Name.Value.(hujson.Literal)
			at := l.at(m.Name.StartOffset)
			inner, err := jsonNode(m.Value, l)
			if err != nil {
				return nil, err
			}
			n.add(fileMember{name.String(), at, inner})
		}
		return n, n.distinct()
	}
	return n, nil
}
