package textedit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
)

type yamlEditor struct{}

func (yamlEditor) decodeTree(text []byte) (tree map[string]any, err error) {
	if wrong := CheckSizeAndEncoding(text); wrong != nil {
		return nil, newParseError(text, wrong.Offset, wrong.Message, wrong.Hint)
	}
	if len(text) > maxYAML {
		return nil, newParseErrorAt(1, 1, fmt.Sprintf("the file is larger than %d bytes", maxYAML), "change the file by hand")
	}
	// The text is untrusted, and the parser may panic.
	defer func() {
		if recover() != nil {
			tree, err = nil, newParseErrorAt(1, 1, "the text is not YAML", "")
		}
	}()
	if _, err := parseYAML(text); err != nil {
		return nil, err
	}
	tree = map[string]any{}
	if err := yaml.Unmarshal(toLineFeeds(text), &tree); err != nil {
		return nil, newYAMLError(err)
	}
	if tree == nil {
		tree = map[string]any{}
	}
	return normalizeValue(tree).(map[string]any), nil
}

// newYAMLError returns the error for a syntax error. It omits the parser's message, which contains text of the file
// that may be secret.
func newYAMLError(err error) error {
	line, column := 1, 1
	var wrong yaml.Error
	if errors.As(err, &wrong) {
		if t := wrong.GetToken(); t != nil && t.Position != nil {
			line, column = t.Position.Line, t.Position.Column
		}
	}
	return newParseErrorAt(line, column, "the text is not a YAML mapping", "correct the line first; nothing was changed")
}

// toLineFeeds returns a text with LF line endings, for which the parser's offsets are right.
func toLineFeeds(text []byte) []byte { return bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")) }

// parseYAML returns the body of the only document, or nil if it is empty.
func parseYAML(text []byte) (ast.Node, error) {
	file, err := parser.ParseBytes(toLineFeeds(text), 0)
	if err != nil {
		return nil, newYAMLError(err)
	}
	var bodies []ast.Node
	for _, doc := range file.Docs {
		if doc.Body != nil {
			bodies = append(bodies, doc.Body)
		}
	}
	switch len(bodies) {
	case 0:
		return nil, nil
	case 1:
		return bodies[0], nil
	}
	return nil, newParseErrorAt(1, 1, fmt.Sprintf("the text has %d YAML documents", len(bodies)), "change the file by hand")
}

// mappingPairs returns the members of a mapping, and whether the node is a mapping.
func mappingPairs(n ast.Node) (pairs []*ast.MappingValueNode, flow, ok bool) {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values, n.IsFlowStyle, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}, n.IsFlowStyle, true
	}
	return nil, false, false
}

func indexOfPair(pairs []*ast.MappingValueNode, name string) int {
	return slices.IndexFunc(pairs, func(p *ast.MappingValueNode) bool {
		if s, ok := p.Key.(*ast.StringNode); ok {
			return s.Value == name
		}
		return p.Key.GetToken().Value == name
	})
}

// yamlLines is a text split into lines with their line endings.
type yamlLines [][]byte

func splitLines(text []byte) yamlLines { return slices.Collect(bytes.Lines(text)) }

// indentWidth returns the indentation of a line, or -1 if it is empty.
func indentWidth(line []byte) int {
	if len(bytes.TrimSpace(line)) == 0 {
		return -1
	}
	return len(line) - len(bytes.TrimLeft(line, " "))
}

// memberLineRange returns the lines of a member. Trailing empty lines and comments are
// excluded.
func (l yamlLines) memberLineRange(p *ast.MappingValueNode) (from, to int) {
	at := p.Key.GetToken().Position
	from, to = at.Line-1, at.Line
	for i := to; i < len(l); i++ {
		deep, line := indentWidth(l[i]), bytes.TrimSpace(l[i])
		switch {
		case deep < 0 || line[0] == '#' && deep < at.Column:
			continue
		case deep >= at.Column, deep == at.Column-1 && bytes.HasPrefix(line, []byte("-")) && !bytes.HasPrefix(line, []byte("---")):
			to = i + 1
		default:
			return from, to
		}
	}
	return from, to
}

// replaceLines returns the text with the lines [from, to) replaced.
func (l yamlLines) replaceLines(from, to int, with []byte) []byte {
	before := bytes.Join(l[:from], nil)
	if n := len(before); n > 0 && before[n-1] != '\n' && len(with) > 0 {
		before = append(before, detectNewline(before)...)
	}
	return slices.Concat(before, with, bytes.Join(l[to:], nil))
}

// encodeYAMLMember encodes a member as an indented block.
func encodeYAMLMember(name string, value json.RawMessage, depth int, newline string) ([]byte, error) {
	object, err := wirejson.MarshalWithoutHTMLEscape(map[string]json.RawMessage{name: value})
	if err != nil {
		return nil, err
	}
	block, err := yaml.JSONToYAML(object)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for line := range strings.Lines(string(block)) {
		if line = strings.TrimSuffix(line, "\n"); line != "" {
			out.WriteString(strings.Repeat(" ", depth) + line)
		}
		out.WriteString(newline)
	}
	return out.Bytes(), nil
}

func (yamlEditor) setValue(text []byte, path []string, value json.RawMessage) ([]byte, error) {
	here, err := parseYAML(text)
	if err != nil {
		return nil, err
	}
	l, newline := splitLines(text), detectNewline(text)
	end, depth := len(l), 0
	for i, name := range path {
		pairs, flow, ok := mappingPairs(here)
		at := -1
		switch {
		case flow && len(pairs) > 0, !ok && here != nil && here.Type() != ast.NullType && here.Type() != ast.CommentType:
			return nil, newFlowStyleError(path[:i])
		case len(pairs) > 0:
			depth = pairs[0].Key.GetToken().Position.Column - 1
			_, end = l.memberLineRange(pairs[len(pairs)-1])
			at = indexOfPair(pairs, name)
		}
		if at >= 0 && i < len(path)-1 {
			here, end, depth = pairs[at].Value, pairs[at].Key.GetToken().Position.Line, depth+2
			if _, empty, object := mappingPairs(here); object && empty {
				l[end-1] = bytes.Replace(l[end-1], []byte("{}"), nil, 1)
				l[end-1] = append(bytes.TrimRight(l[end-1], " \r\n"), newline...)
			}
			continue
		}
		inner, err := nestValue(path[i+1:], value)
		if err != nil {
			return nil, err
		}
		block, err := encodeYAMLMember(name, inner, depth, newline)
		if err != nil {
			return nil, err
		}
		from, to := end, end
		if at >= 0 {
			from, to = l.memberLineRange(pairs[at])
		}
		return l.replaceLines(from, to, block), nil
	}
	return text, nil
}

func newFlowStyleError(path []string) error {
	return problem.Newf(problem.InvalidConfig, "%s is written on one line, or is not an object.", strings.Join(path, ".")).
		WithHint("Write it as a block, or change it by hand; nothing was changed.")
}

func (yamlEditor) removeValue(text []byte, path []string) ([]byte, error) {
	here, err := parseYAML(text)
	if err != nil {
		return nil, err
	}
	for i, name := range path {
		pairs, flow, _ := mappingPairs(here)
		at := indexOfPair(pairs, name)
		switch {
		case flow || at < 0:
			return nil, newFlowStyleError(path[:i])
		case i < len(path)-1:
			here = pairs[at].Value
			continue
		}
		l := splitLines(text)
		from, to := l.memberLineRange(pairs[at])
		if len(pairs) > 1 || len(path) == 1 {
			return l.replaceLines(from, to, nil), nil
		}
		// This is the last member, so its parent is kept as an empty mapping.
		holder := from - 1
		for holder > 0 && (indentWidth(l[holder]) < 0 || indentWidth(l[holder]) >= indentWidth(l[from])) {
			holder--
		}
		l[holder] = append(bytes.TrimRight(l[holder], " \r\n"), (" {}" + detectNewline(text))...)
		return l.replaceLines(from, to, nil), nil
	}
	return text, nil
}
