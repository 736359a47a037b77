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

// maxKeys bounds the keys of a text: the decoder takes ever longer for more.
const maxKeys = 10_000

// fromTOML reads TOML. What a text means is the library's business; the places
// and the order of the keys are taken from its syntax.
func fromTOML(data []byte) (*node, error) {
	if err := tooDeep(data); err != nil {
		return nil, err
	}
	places := &tomlPlaces{lines: newLines(data), root: &tomlPlace{}}
	if err := places.read(data); err != nil {
		return nil, err
	}
	var tree map[string]any
	if err := toml.Unmarshal(data, &tree); err != nil {
		var wrong *toml.DecodeError
		if !errors.As(err, &wrong) {
			return nil, &mistake{place{1, 1}, "the text is not TOML", "copy the file once more, as the client has it"}
		}
		line, column := wrong.Position()
		return nil, &mistake{place{line, column}, "the text is not TOML: " + strings.TrimPrefix(wrong.Error(), "toml: "), "correct the line, or copy the file once more"}
	}
	return places.node(tree, places.root), nil
}

// tomlPlace is where a key stands, and those within it.
type tomlPlace struct {
	offset int
	inner  map[string]*tomlPlace
}

// to returns the place of a key, which is at the offset if nothing was known of
// it.
func (p *tomlPlace) to(key string, offset int) *tomlPlace {
	if p.inner[key] == nil {
		if p.inner == nil {
			p.inner = map[string]*tomlPlace{}
		}
		p.inner[key] = &tomlPlace{offset: offset}
	}
	return p.inner[key]
}

// tomlPlaces gathers the places of keys.
type tomlPlaces struct {
	lines *lines
	root  *tomlPlace
	keys  int
}

// read reads a text. A mistake in the syntax ends it: it is told by who decodes.
func (p *tomlPlaces) read(data []byte) error {
	var parser unstable.Parser
	parser.Reset(data)
	table, depth := p.root, 0
	for parser.NextExpression() {
		var err error
		switch e := parser.Expression(); e.Kind {
		case unstable.Table, unstable.ArrayTable:
			table, depth, err = p.dotted(e, p.root, 0)
		case unstable.KeyValue:
			err = p.pair(e, table, depth)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// pair reads a key with its value.
func (p *tomlPlaces) pair(n *unstable.Node, table *tomlPlace, depth int) error {
	at, depth, err := p.dotted(n, table, depth)
	if err != nil {
		return err
	}
	if value := n.Value(); value.Kind == unstable.InlineTable {
		for it := value.Children(); it.Next(); {
			if err := p.pair(it.Node(), at, depth); err != nil {
				return err
			}
		}
	}
	return nil
}

// dotted reads a dotted key, and returns where it leads.
func (p *tomlPlaces) dotted(n *unstable.Node, to *tomlPlace, depth int) (*tomlPlace, int, error) {
	for it := n.Key(); it.Next(); {
		key := it.Node()
		at := p.lines.at(int(key.Raw.Offset))
		if depth++; depth > maxDepth {
			return nil, 0, errDeep(at)
		}
		if p.keys++; p.keys > maxKeys {
			return nil, 0, &mistake{at, fmt.Sprintf("there are more than %d keys", maxKeys), "take over only the part with the servers"}
		}
		to = to.to(string(key.Data), int(key.Raw.Offset))
	}
	return to, depth, nil
}

// node makes a node of a decoded value. What stands in a list has the place of the
// first that has its name.
func (p *tomlPlaces) node(v any, at *tomlPlace) *node {
	n := &node{kind: text, at: p.lines.at(at.offset)}
	switch v := v.(type) {
	case map[string]any:
		n.kind = fileObject
		names := slices.SortedFunc(maps.Keys(v), func(a, b string) int { return at.to(a, at.offset).offset - at.to(b, at.offset).offset })
		for _, name := range names {
			inner := at.to(name, at.offset)
			n.add(fileMember{name, p.lines.at(inner.offset), p.node(v[name], inner)})
		}
	case []any:
		n.kind = list
		for _, e := range v {
			n.items = append(n.items, p.node(e, at))
		}
	case string:
		n.text = v
	case bool:
		n.kind, n.text = boolean, strconv.FormatBool(v)
	case int64, float64:
		n.kind, n.text = number, fmt.Sprint(v)
	default: // dates and times
		n.text = fmt.Sprint(v)
	}
	return n
}
