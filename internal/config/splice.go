package config

import (
	"bytes"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"mcpproxy/internal/jsonc"
)

// document is the text of a valid file with what edits need to know of it.
// Edits are splices of the text, so that everything else stays as it is, byte
// for byte: comments, order, alignment, line ends.
type document struct {
	text []byte
	root hujson.Value

	// How its author writes.
	newline  string
	unit     string // one step of indentation
	colon    string // between a name and its value
	space    string // between two values on one line
	trailing bool   // a comma after the last member
}

// splice puts text in the place of the bytes from, …, to-1.
type splice struct {
	from, to int
	text     string
}

// item is a member of an object or an element of an array.
type item struct {
	name       string // of a member
	start, end int
	comma      int // where the comma after it stands, -1 without one
	value      hujson.Value
}

// container is an object or an array by the places of its parts.
type container struct {
	open, close int // where its brackets stand
	items       []item
}

// newDocument parses a file without byte order mark that is known to be valid.
func newDocument(text []byte) (*document, *Mistake) {
	root, mistake := source{text}.parse()
	if mistake != nil {
		return nil, mistake
	}
	d := &document{text: text, root: root, newline: "\n", unit: "  ", colon: ": ", space: " "}
	if bytes.Contains(text, []byte("\r\n")) {
		d.newline = "\r\n"
	}
	top := parts(root)
	if len(top.items) == 0 {
		return d, nil
	}
	first, last := top.items[0], top.items[len(top.items)-1]
	d.trailing = last.comma >= 0
	if indent, own := d.ownLine(first); own && indent != "" {
		d.unit = indent
	}
	if m := member(root, first.name); m != nil {
		if colon := string(m.Name.AfterExtra) + ":" + string(m.Value.BeforeExtra); strings.Trim(colon, " ") == ":" {
			d.colon = colon
		}
	}
	d.space = strings.TrimPrefix(strings.TrimLeft(d.colon, " "), ":")
	return d, nil
}

// parts returns the container that v is; it has no items when v is not one.
func parts(v hujson.Value) container {
	c := container{open: v.StartOffset, close: v.EndOffset - 1}
	add := func(name string, start int, value hujson.Value, last bool) {
		comma := -1
		if !last || value.AfterExtra != nil {
			comma = value.EndOffset + len(value.AfterExtra)
		}
		c.items = append(c.items, item{name, start, value.EndOffset, comma, value})
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

// lineStart is where the line begins in which the byte at stands.
func (d *document) lineStart(at int) int { return bytes.LastIndexByte(d.text[:at], '\n') + 1 }

// indentation is the white space at the beginning of the line of the byte at.
func (d *document) indentation(at int) string {
	line := d.text[d.lineStart(at):at]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// ownLine reports whether an item is the first on its line, and after what white
// space.
func (d *document) ownLine(it item) (indent string, own bool) {
	start := d.lineStart(it.start)
	before := d.text[start:it.start]
	return string(before), start > 0 && len(bytes.Trim(before, " \t")) == 0
}

// spread reports whether the items of c stand on lines of their own, and how far
// they are indented. A line break inside an item says nothing.
func (d *document) spread(c container) (indent string, lines bool) {
	indent = d.indentation(c.open) + d.unit
	from := c.open
	for _, it := range c.items {
		lines = lines || bytes.IndexByte(d.text[from:it.start], '\n') >= 0
		if own, ok := d.ownLine(it); ok {
			indent = own
		}
		from = it.end
	}
	lines = lines || bytes.IndexByte(d.text[from:c.close], '\n') >= 0
	if len(c.items) == 0 && !lines {
		_, lines = d.spreadTop()
	}
	return indent, lines
}

// spreadTop is spread of the file itself, which is spread as long as nothing
// speaks against it.
func (d *document) spreadTop() (indent string, lines bool) {
	top := parts(d.root)
	if len(top.items) == 0 {
		return d.unit, true
	}
	return d.spread(top)
}

// insert adds an item at the end of c, after all comments. write returns its
// text, for an item on a line of its own with that indentation, or for one
// among others.
func (d *document) insert(c container, write func(indent string, lines bool) string) []splice {
	indent, lines := d.spread(c)
	body := write(indent, lines)
	at := c.open + 1 + len(bytes.TrimRight(d.text[c.open+1:c.close], " \t\r\n"))
	var splices []splice
	comma := lines && d.trailing
	if n := len(c.items); n > 0 {
		comma = c.items[n-1].comma >= 0
		if !comma {
			splices = append(splices, splice{c.items[n-1].end, c.items[n-1].end, ","})
		}
	}
	if comma {
		body += ","
	}
	switch {
	case !lines && len(c.items) == 0:
		return append(splices, splice{at, c.close, body})
	case !lines:
		return append(splices, splice{at, at, d.space + body})
	case bytes.IndexByte(d.text[at:c.close], '\n') < 0 && len(c.items) == 0:
		return append(splices, splice{at, c.close, d.newline + indent + body + d.newline + d.indentation(c.open)})
	}
	return append(splices, splice{at, at, d.newline + indent + body})
}

// remove takes out the item i of c with what else its lines hold. Comments on
// lines of their own stay, since nobody can tell what they are about.
func (d *document) remove(c container, i int) []splice {
	it := c.items[i]
	from, to := it.start, max(it.end, it.comma+1)
	around := string(d.text[c.open+1:from]) + string(d.text[to:c.close])
	if len(c.items) == 1 && strings.TrimSpace(around) == "" {
		return []splice{{c.open + 1, c.close, ""}}
	}
	var splices []splice
	if it.comma < 0 && i > 0 {
		comma := c.items[i-1].comma
		splices = append(splices, splice{comma, comma + 1, ""})
	}
	_, own := d.ownLine(it)
	if rest, ends := d.restOfLine(to, c.close); own && ends {
		return append(splices, splice{d.lineStart(from), rest, ""})
	}
	// Others stand on its line: one white space stays between them, none
	// before the closing bracket.
	blank := func(at int) bool { return at > c.open && at < c.close && strings.IndexByte(" \t", d.text[at]) >= 0 }
	if i < len(c.items)-1 {
		for blank(to) {
			to++
		}
		return append(splices, splice{from, to, ""})
	}
	for blank(from - 1) {
		from--
	}
	return append(splices, splice{from, to, ""})
}

// restOfLine returns the beginning of the next line when between the byte at and
// it there is nothing but white space and comments.
func (d *document) restOfLine(at, end int) (next int, ok bool) {
	for at < end {
		n := jsonc.Extent(d.text[at:])
		switch {
		case d.text[at] == '\n':
			return at + 1, true
		case n > 1 && d.text[at] == '/':
			if bytes.IndexByte(d.text[at:at+n], '\n') >= 0 {
				return 0, false // it belongs to the next line, too
			}
		case strings.IndexByte(" \t\r", d.text[at]) < 0:
			return 0, false
		}
		at += n
	}
	return 0, false
}

// replace puts a value in the place of another one, in its form.
func (d *document) replace(it item, value hujson.Value) splice {
	old := d.text[it.value.StartOffset:it.value.EndOffset]
	depth := 0
	if bytes.IndexByte(old, '\n') >= 0 {
		depth = 1
	}
	return splice{it.value.StartOffset, it.value.EndOffset, d.render(value, d.indentation(it.start), depth)}
}

// apply makes the splices, which must not overlap, and returns the new text.
func (d *document) apply(splices []splice) []byte {
	slices.SortStableFunc(splices, func(a, b splice) int { return a.from - b.from })
	var out []byte
	at := 0
	for _, s := range splices {
		out = append(append(out, d.text[at:s.from]...), s.text...)
		at = s.to
	}
	return append(out, d.text[at:]...)
}

// render writes a value as the author of the file would, spread over lines
// down to the given depth.
func (d *document) render(v hujson.Value, indent string, depth int) string {
	c := parts(v)
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
	if depth > 0 && len(c.items) > 0 {
		start, between, end = d.newline+inner, ","+d.newline+inner, d.newline+indent
	}
	var texts []string
	for _, it := range c.items {
		text := d.render(it.value, inner, max(depth-1, 0))
		if isObject {
			text = string(hujson.String(it.name)) + d.colon + text
		}
		texts = append(texts, text)
	}
	if d.trailing && start != "" {
		end = "," + end
	}
	return brackets[:1] + start + strings.Join(texts, between) + end + brackets[1:]
}
