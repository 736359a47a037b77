package textedit

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"mcpproxy/internal/mcp/wirejson"
)

// Document is the text of a valid file with its formatting style. Edits are splices of the text, so that all other
// bytes are kept.
type Document struct {
	text []byte
	Root hujson.Value

	// The author's style.
	newline  string
	unit     string // one level of indentation
	colon    string // between a name and its value
	space    string // between two values on one line
	trailing bool   // a trailing comma
}

// Splice replaces the bytes [from, to) by text.
type Splice struct {
	from, to int
	text     string
}

// ContainerItem is a member of an object or an element of an array.
type ContainerItem struct {
	Name       string // name of a member
	Start, end int
	comma      int // offset of the comma after it, -1 if there is none
	Value      hujson.Value
}

// Container is an object or array with the offsets of its parts.
type Container struct {
	open, close int // offsets of its brackets
	Items       []ContainerItem
}

// NewDocument parses a valid file without byte order mark.
func NewDocument(text []byte) (*Document, *SyntaxError) {
	root, mistake := ParseJSONC(text)
	if mistake != nil {
		return nil, mistake
	}
	d := &Document{text: text, Root: root, newline: detectNewline(text), unit: "  ", colon: ": ", space: " "}
	top := ContainerOf(root)
	if len(top.Items) == 0 {
		return d, nil
	}
	first, last := top.Items[0], top.Items[len(top.Items)-1]
	d.trailing = last.comma >= 0
	if indent, own := d.isOnOwnLine(first); own && indent != "" {
		d.unit = indent
	}
	if o, ok := root.Value.(*hujson.Object); ok {
		m := o.Members[0]
		if colon := string(m.Name.AfterExtra) + ":" + string(m.Value.BeforeExtra); strings.Trim(colon, " ") == ":" {
			d.colon = colon
		}
	}
	d.space = strings.TrimPrefix(strings.TrimLeft(d.colon, " "), ":")
	return d, nil
}

// ContainerOf returns v as a container. If v is not a container, the result has no items.
func ContainerOf(v hujson.Value) Container {
	c := Container{open: v.StartOffset, close: v.EndOffset - 1}
	add := func(name string, start int, value hujson.Value, last bool) {
		comma := -1
		if !last || value.AfterExtra != nil {
			comma = value.EndOffset + len(value.AfterExtra)
		}
		c.Items = append(c.Items, ContainerItem{name, start, value.EndOffset, comma, value})
	}
	switch composite := v.Value.(type) {
	case *hujson.Object:
		for i, m := range composite.Members {
			name, _ := m.Name.Value.(hujson.Literal)
			add(name.String(), m.Name.StartOffset, m.Value, i == len(composite.Members)-1)
		}
	case *hujson.Array:
		for i, e := range composite.Elements {
			add("", e.StartOffset, e, i == len(composite.Elements)-1)
		}
	}
	return c
}

// indentation returns the white space at the start of the line of a byte.
func (d *Document) indentation(at int) string {
	line := d.text[lineStart(d.text, at):at]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// isOnOwnLine reports whether an item is the first on its line, and returns its indentation.
func (d *Document) isOnOwnLine(it ContainerItem) (indent string, own bool) {
	start := lineStart(d.text, it.Start)
	before := d.text[start:it.Start]
	return string(before), start > 0 && len(bytes.Trim(before, " \t")) == 0
}

// isMultiline reports whether the items of c are on separate lines, and returns their indentation. A line break inside
// an item does not count.
func (d *Document) isMultiline(c Container) (indent string, lines bool) {
	indent = d.indentation(c.open) + d.unit
	from := c.open
	for _, it := range c.Items {
		lines = lines || bytes.IndexByte(d.text[from:it.Start], '\n') >= 0
		if own, ok := d.isOnOwnLine(it); ok {
			indent = own
		}
		from = it.end
	}
	lines = lines || bytes.IndexByte(d.text[from:c.close], '\n') >= 0
	if top := ContainerOf(d.Root); len(c.Items) == 0 && !lines && len(top.Items) > 0 {
		_, lines = d.isMultiline(top)
		return indent, lines
	}
	return indent, lines || len(c.Items) == 0
}

// SplicesToInsert returns the splices that add an item at the end of c, after all comments. write returns the text of
// the item, either for a separate line with that indentation or for a line with other items.
func (d *Document) SplicesToInsert(c Container, write func(indent string, lines bool) string) []Splice {
	indent, lines := d.isMultiline(c)
	body := write(indent, lines)
	at := c.open + 1 + len(bytes.TrimRight(d.text[c.open+1:c.close], " \t\r\n"))
	var splices []Splice
	comma := lines && d.trailing
	if n := len(c.Items); n > 0 {
		comma = c.Items[n-1].comma >= 0
		if !comma {
			splices = append(splices, Splice{c.Items[n-1].end, c.Items[n-1].end, ","})
		}
	}
	if comma {
		body += ","
	}
	switch {
	case !lines && len(c.Items) == 0:
		return append(splices, Splice{at, c.close, body})
	case !lines:
		return append(splices, Splice{at, at, d.space + body})
	case bytes.IndexByte(d.text[at:c.close], '\n') < 0 && len(c.Items) == 0:
		return append(splices, Splice{at, c.close, d.newline + indent + body + d.newline + d.indentation(c.open)})
	}
	return append(splices, Splice{at, at, d.newline + indent + body})
}

// SplicesToRemove returns the splices that remove item i of c with the rest of its lines. Comments on separate lines
// are kept, because they may belong to other items.
func (d *Document) SplicesToRemove(c Container, i int) []Splice {
	it := c.Items[i]
	from, to := it.Start, max(it.end, it.comma+1)
	around := string(d.text[c.open+1:from]) + string(d.text[to:c.close])
	if len(c.Items) == 1 && strings.TrimSpace(around) == "" {
		return []Splice{{c.open + 1, c.close, ""}}
	}
	var splices []Splice
	if it.comma < 0 && i > 0 {
		comma := c.Items[i-1].comma
		splices = append(splices, Splice{comma, comma + 1, ""})
	}
	_, own := d.isOnOwnLine(it)
	if rest, ends := d.nextLineIfBlank(to, c.close); own && ends {
		return append(splices, Splice{lineStart(d.text, from), rest, ""})
	}
	// Other items are on the same line. Keep one space between them, and none before the closing bracket.
	blank := func(at int) bool { return at > c.open && at < c.close && strings.IndexByte(" \t", d.text[at]) >= 0 }
	if i < len(c.Items)-1 {
		for blank(to) {
			to++
		}
		return append(splices, Splice{from, to, ""})
	}
	for blank(from - 1) {
		from--
	}
	return append(splices, Splice{from, to, ""})
}

// nextLineIfBlank returns the start of the next line if only white space and comments precede it.
func (d *Document) nextLineIfBlank(at, end int) (next int, ok bool) {
	for at < end {
		n := TokenLength(d.text[at:])
		switch {
		case d.text[at] == '\n':
			return at + 1, true
		case n > 1 && d.text[at] == '/':
			if bytes.IndexByte(d.text[at:at+n], '\n') >= 0 {
				return 0, false // the comment extends to the next line
			}
		case strings.IndexByte(" \t\r", d.text[at]) < 0:
			return 0, false
		}
		at += n
	}
	return 0, false
}

// SpliceToReplace returns the splice that replaces a value and keeps its formatting.
func (d *Document) SpliceToReplace(it ContainerItem, value hujson.Value) Splice {
	old := d.text[it.Value.StartOffset:it.Value.EndOffset]
	depth := 0
	if bytes.IndexByte(old, '\n') >= 0 {
		depth = 1
	}
	return Splice{it.Value.StartOffset, it.Value.EndOffset, d.ValueText(value, d.indentation(it.Start), depth)}
}

// IsOnOneLine reports whether an item's value has no line break.
func (d *Document) IsOnOneLine(it ContainerItem) bool {
	return bytes.IndexByte(d.text[it.Value.StartOffset:it.Value.EndOffset], '\n') < 0
}

// MemberText returns the text of an object member. If lines is set, its value is on several lines down to depth.
func (d *Document) MemberText(name string, value hujson.Value, indent string, depth int, lines bool) string {
	if !lines {
		depth = 0
	}
	return string(hujson.String(name)) + d.colon + d.ValueText(value, indent, depth)
}

// SplicesToSetMember returns the splices that set member i of an object, or add the member name if i is -1. A nil value
// removes the member.
func (d *Document) SplicesToSetMember(object Container, i int, name string, value json.RawMessage) ([]Splice, error) {
	switch {
	case value == nil && i < 0:
		return nil, nil
	case value == nil:
		return d.SplicesToRemove(object, i), nil
	}
	v, err := hujson.Parse(value)
	if err != nil {
		return nil, err
	}
	if i >= 0 {
		return []Splice{d.SpliceToReplace(object.Items[i], v)}, nil
	}
	return d.SplicesToInsert(object, func(indent string, lines bool) string { return d.MemberText(name, v, indent, 0, lines) }), nil
}

// SplicesToSetAtPath returns the splices that set the value at a path of names in an object. They create missing
// objects: on several lines if lines is set, except next to siblings on one line.
func (d *Document) SplicesToSetAtPath(object Container, path []string, value json.RawMessage, lines bool) ([]Splice, error) {
	i := object.IndexOf(path[0])
	if i >= 0 && len(path) > 1 {
		return d.SplicesToSetAtPath(ContainerOf(object.Items[i].Value), path[1:], value, lines)
	}
	value, err := nestValue(path[1:], value)
	if err != nil {
		return nil, err
	}
	if i >= 0 || !lines {
		return d.SplicesToSetMember(object, i, path[0], value)
	}
	v, err := hujson.Parse(value)
	if err != nil {
		return nil, err
	}
	depth := len(path)
	if n := len(object.Items); n > 0 && len(path) == 1 && isContainer(object.Items[n-1]) && d.IsOnOneLine(object.Items[n-1]) {
		depth = 0
	}
	return d.SplicesToInsert(object, func(indent string, lines bool) string { return d.MemberText(path[0], v, indent, depth, lines) }), nil
}

// nestValue returns a value inside nested objects.
func nestValue(path []string, value json.RawMessage) (json.RawMessage, error) {
	for _, name := range slices.Backward(path) {
		var err error
		if value, err = wirejson.MarshalWithoutHTMLEscape(map[string]json.RawMessage{name: value}); err != nil {
			return nil, err
		}
	}
	return value, nil
}

// IndexOf returns the index of the member with that name, or -1 if there is none.
func (c Container) IndexOf(name string) int {
	return slices.IndexFunc(c.Items, func(it ContainerItem) bool { return it.Name == name })
}

// EditJSON applies the splices of an edit to a valid text. An empty text counts as an empty object. A byte order mark is
// kept.
func EditJSON(text []byte, edit func(*Document) ([]Splice, error)) ([]byte, error) {
	in, ending := trimByteOrderMark(text), ""
	mark := text[:len(text)-len(in)]
	if len(bytes.TrimSpace(in)) == 0 {
		in, ending = []byte("{}"), "\n"
	}
	d, wrong := NewDocument(in)
	if wrong != nil {
		return nil, errors.New(wrong.Message)
	}
	splices, err := edit(d)
	if err != nil {
		return nil, err
	}
	return slices.Concat(mark, d.applySplices(splices), []byte(ending)), nil
}

// applySplices applies the splices, which must not overlap, and returns the new text.
func (d *Document) applySplices(splices []Splice) []byte {
	slices.SortStableFunc(splices, func(a, b Splice) int { return a.from - b.from })
	var out []byte
	at := 0
	for _, s := range splices {
		out = append(append(out, d.text[at:s.from]...), s.text...)
		at = s.to
	}
	return append(out, d.text[at:]...)
}

// ValueText formats a value in the author's style, on several lines down to depth.
func (d *Document) ValueText(v hujson.Value, indent string, depth int) string {
	c := ContainerOf(v)
	_, isObject := v.Value.(*hujson.Object)
	_, isArray := v.Value.(*hujson.Array)
	if !isObject && !isArray {
		l, _ := v.Value.(hujson.Literal)
		return string(l)
	}
	brackets := "[]"
	if isObject {
		brackets = "{}"
	}
	inner, between, end := indent+d.unit, ","+d.space, ""
	start := ""
	if depth > 0 && len(c.Items) > 0 {
		start, between, end = d.newline+inner, ","+d.newline+inner, d.newline+indent
	}
	var texts []string
	for _, it := range c.Items {
		text := d.ValueText(it.Value, inner, max(depth-1, 0))
		if isObject {
			text = string(hujson.String(it.Name)) + d.colon + text
		}
		texts = append(texts, text)
	}
	if d.trailing && start != "" {
		end = "," + end
	}
	return brackets[:1] + start + strings.Join(texts, between) + end + brackets[1:]
}

func isContainer(it ContainerItem) bool {
	kind := it.Value.Value.Kind()
	return kind == '{' || kind == '['
}
