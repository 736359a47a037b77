package result

import (
	"bytes"
	"fmt"
	"slices"

	"mcpproxy/internal/mcp/wirejson"
)

// envelope is a CallToolResult taken apart, in one pass over its text.
type envelope struct {
	room       int // bytes that there are for it when it is cut
	blocks     []block
	size       int  // of the blocks
	total      int  // elements of content
	more       bool // than blocks has
	structured []byte
	meta       []byte
	others     []named
	names      []string // of the members, as far as they are few
}

// named is a member of the result or of its _meta, as it is written.
type named struct{ name, value []byte }

const (
	leastBlock = 256 // bytes that a block must get for the room to be shared out
	mostNames  = 32
)

// read takes raw apart, and is false when it is no object. Of very many blocks
// it takes no more than could be kept.
func (e *envelope) read(raw []byte) bool {
	c := wirejson.Cursor{Text: raw}
	end := c.Open('{')
	for c.More(end) {
		name := c.Name()
		if len(e.names) < mostNames {
			e.names = append(e.names, string(wirejson.Unescape(name)))
		}
		if string(name) == "content" && c.Peek() == '[' && e.total == 0 {
			for end := c.Open('['); c.More(end); e.total++ {
				e.block(&c)
			}
			continue
		}
		switch value := c.Value(); string(name) {
		case "content":
		case "structuredContent":
			if e.structured == nil { // read_result finds the first
				e.structured = value
			}
		case "_meta":
			e.meta = value
		default:
			if len(e.others) < e.room/4 {
				e.others = append(e.others, named{name, value})
			}
		}
	}
	return end != 0 && c.Finish() == nil
}

// block reads the content block that comes next. What is no object is no block.
func (e *envelope) block(c *wirejson.Cursor) {
	if c.Peek() != '{' {
		c.Value()
		return
	}
	start := c.At()
	b := block{index: e.total}
	b.members(c, false)
	if e.size <= e.room || len(e.blocks) <= e.room/leastBlock {
		b.raw = c.Text[start:c.At()]
		switch b.kind {
		case "text":
			b.text, b.textAt = b.own, b.ownAt-start
		case "resource":
			b.textAt -= start
		default:
			b.text = nil
		}
		e.blocks = append(e.blocks, b)
	} else {
		e.more = true
	}
	e.size += c.At() - start + 1
}

// members reads a block, or the resource in it.
func (b *block) members(c *wirejson.Cursor, resource bool) {
	for end := c.Open('{'); c.More(end); {
		name := c.Name()
		if string(name) == "resource" && c.Peek() == '{' && !resource {
			b.members(c, true)
			continue
		}
		value := c.Value()
		switch at := c.At() - len(value) + 1; string(name) {
		case "type":
			if !resource {
				b.kind = label(value)
			}
		case "mimeType":
			b.mime = label(value)
		case "text":
			if wirejson.Kind(value) != '"' {
				continue
			}
			if inner := value[1 : len(value)-1]; resource {
				b.text, b.textAt = inner, at
			} else {
				b.own, b.ownAt = inner, at
			}
		}
	}
}

// data returns the block whose JSON is where read_result follows a path from that
// leads nowhere from the top; nil when there is none.
func (e *envelope) data() *block {
	for i := range e.blocks {
		if b := &e.blocks[i]; b.json() != nil {
			return b
		}
	}
	return nil
}

// json returns the JSON that the block's own text is, nil when it is none.
func (b *block) json() []byte {
	if !b.opened {
		b.opened, b.inner = true, jsonText(b.own)
	}
	return b.inner
}

// short reports whether read_result finds what a path begins with where the data
// is, since it is not at the top.
func (e *envelope) short(first step) bool {
	return len(e.names) < mostNames && (first.kind == element || !slices.Contains(e.names, first.name))
}

// block is one content block. text is what may be cut of it, as it is written;
// nil when nothing may.
type block struct {
	index      int // in content
	raw, text  []byte
	textAt     int    // where text begins in raw
	own        []byte // its member text, which is where the text of a text block is
	ownAt      int
	inner      []byte                 // the JSON in own
	opened     bool                   // and looked for
	path       func(at []step) string // by which read_result finds a value in the JSON that text is
	structured bool                   // text is structured content that is shown as text: there is no raw
	kind       string                 // "text", "image", …
	mime       string
	replaced   bool // by a note
}

// label returns a short plain string of a block, for a note.
func label(v []byte) string {
	if len(v) < 2 || len(v) > 80 || v[0] != '"' || bytes.IndexByte(v, '\\') >= 0 {
		return ""
	}
	return string(v[1 : len(v)-1])
}

// at returns the steps to the text of the block.
func (b *block) at() []step {
	switch {
	case b.structured:
		return []step{{name: "structuredContent"}}
	case b.kind == "resource":
		return []step{{name: "content"}, {kind: element, from: b.index}, {name: "resource"}, {name: "text"}}
	}
	return []step{{name: "content"}, {kind: element, from: b.index}, {name: "text"}}
}

func (b *block) need() int {
	switch {
	case b.replaced:
		return len(appendTextBlock(nil, []byte(b.note())))
	case b.structured:
		return writtenSize(b.text) + len(`{"type":"text","text":""}`)
	}
	return len(b.raw)
}

func (b *block) note() string {
	what := "block"
	if b.kind != "" {
		what = b.kind
	}
	if b.mime != "" {
		what += " " + b.mime
	}
	return fmt.Sprintf("[%s of %d bytes left out: content[%d]]", what, len(b.raw), b.index)
}
