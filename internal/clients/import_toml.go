package clients

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// maxKeys is the maximum number of keys in a text, because the decoder is slow for more.
const maxKeys = 10_000

// parseTOML parses TOML. The library decodes the values. Positions and order come from the syntax tree.
func parseTOML(data []byte) (*node, error) {
	if err := checkDepth(data); err != nil {
		return nil, err
	}
	places := &tomlPositions{lines: newLineIndex(data), root: &tomlPosition{}}
	if err := places.readKeys(data); err != nil {
		return nil, err
	}
	var tree map[string]any
	if err := toml.Unmarshal(data, &tree); err != nil {
		var wrong *toml.DecodeError
		if !errors.As(err, &wrong) {
			return nil, &syntaxError{position{1, 1}, "the text is not TOML", "copy the file again, exactly as it is in the client"}
		}
		line, column := wrong.Position()
		return nil, &syntaxError{position{line, column}, "the text is not TOML: " + strings.TrimPrefix(wrong.Error(), "toml: "), "correct the line, or copy the file again"}
	}
	return places.convertValue(tree, places.root), nil
}

// tomlPosition is the position of a key and of the keys below it.
type tomlPosition struct {
	offset int
	inner  map[string]*tomlPosition
}

// childPosition returns the position of a key below p. If the key is new, its position is the offset.
func (p *tomlPosition) childPosition(key string, offset int) *tomlPosition {
	if p.inner[key] == nil {
		if p.inner == nil {
			p.inner = map[string]*tomlPosition{}
		}
		p.inner[key] = &tomlPosition{offset: offset}
	}
	return p.inner[key]
}

// tomlPositions collects the positions of keys.
type tomlPositions struct {
	lines *lineIndex
	root  *tomlPosition
	keys  int
}

// readKeys reads the keys of a text. It stops at a syntax error, which the decoder reports.
func (p *tomlPositions) readKeys(data []byte) error {
	var parser unstable.Parser
	parser.Reset(data)
	table, depth := p.root, 0
	for parser.NextExpression() {
		var err error
		switch e := parser.Expression(); e.Kind {
		case unstable.Table, unstable.ArrayTable:
			table, depth, err = p.readDottedKey(e, p.root, 0)
		case unstable.KeyValue:
			err = p.readPair(e, table, depth)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readPair reads a key with its value.
func (p *tomlPositions) readPair(n *unstable.Node, table *tomlPosition, depth int) error {
	at, depth, err := p.readDottedKey(n, table, depth)
	if err != nil {
		return err
	}
	if value := n.Value(); value.Kind == unstable.InlineTable {
		for it := value.Children(); it.Next(); {
			if err := p.readPair(it.Node(), at, depth); err != nil {
				return err
			}
		}
	}
	return nil
}

// readDottedKey reads a dotted key, and returns the position of its last part.
func (p *tomlPositions) readDottedKey(n *unstable.Node, to *tomlPosition, depth int) (*tomlPosition, int, error) {
	for it := n.Key(); it.Next(); {
		key := it.Node()
		at := p.lines.position(int(key.Raw.Offset))
		if depth++; depth > maxDepth {
			return nil, 0, newTooDeepError(at)
		}
		if p.keys++; p.keys > maxKeys {
			return nil, 0, &syntaxError{at, fmt.Sprintf("there are more than %d keys", maxKeys), "import only the part with the servers"}
		}
		to = to.childPosition(string(key.Data), int(key.Raw.Offset))
	}
	return to, depth, nil
}

// convertValue converts a decoded value. A key of several elements of a list has the position of its first occurrence.
func (p *tomlPositions) convertValue(v any, at *tomlPosition) *node {
	n := &node{kind: stringNode, at: p.lines.position(at.offset)}
	switch v := v.(type) {
	case map[string]any:
		n.kind = objectNode
		names := slices.SortedFunc(maps.Keys(v), func(a, b string) int {
			return at.childPosition(a, at.offset).offset - at.childPosition(b, at.offset).offset
		})
		for _, name := range names {
			inner := at.childPosition(name, at.offset)
			n.addMember(nodeMember{name, p.lines.position(inner.offset), p.convertValue(v[name], inner)})
		}
	case []any:
		n.kind = listNode
		for _, e := range v {
			n.items = append(n.items, p.convertValue(e, at))
		}
	case string:
		n.text = v
	case bool:
		n.kind, n.text = boolNode, strconv.FormatBool(v)
	case int64, float64:
		n.kind, n.text = numberNode, fmt.Sprint(v)
	default: // dates and times
		n.text = fmt.Sprint(v)
	}
	return n
}
