package result

import (
	"bytes"
	"fmt"

	"mcpproxy/internal/rawjson"
)

// envelope is a CallToolResult taken apart, in one pass over its text.
type envelope struct {
	room       int // bytes that there are for it when it is cut
	blocks     []block
	size       int // of the blocks
	structured []byte
	meta       []byte
	others     []member
}

// leastBlock is what a block must get for the room to be shared out.
const leastBlock = 256

// read takes raw apart, and is false when it is no object. Of very many blocks
// it takes no more than could be kept.
func (e *envelope) read(raw []byte) bool {
	c := rawjson.Cursor{Text: raw}
	end := c.Open('{')
	for c.More(end) {
		name := c.Name()
		if string(name) == "content" && c.Peek() == '[' {
			e.blocks, e.size = nil, 0
			for end := c.Open('['); c.More(end); {
				e.block(&c)
			}
			continue
		}
		switch value := c.Value(); string(name) {
		case "content":
		case "structuredContent":
			e.structured = value
		case "_meta":
			e.meta = value
		default:
			if len(e.others) < e.room/4 {
				e.others = append(e.others, member{name, value})
			}
		}
	}
	return end != 0 && c.Finish() == nil
}

// block reads the content block that comes next. What is no object is no block.
func (e *envelope) block(c *rawjson.Cursor) {
	if c.Peek() != '{' {
		c.Value()
		return
	}
	start := c.At()
	var b block
	b.members(c, false)
	if e.size <= e.room || len(e.blocks) <= e.room/leastBlock {
		b.raw = c.Text[start:c.At()]
		b.textAt -= start
		if b.kind != "text" && b.kind != "resource" {
			b.text = nil
		}
		e.blocks = append(e.blocks, b)
	}
	e.size += c.At() - start + 1
}

// members reads a block, or the resource in it.
func (b *block) members(c *rawjson.Cursor, resource bool) {
	for end := c.Open('{'); c.More(end); {
		name := c.Name()
		if string(name) == "resource" && c.Peek() == '{' && !resource {
			b.members(c, true)
			continue
		}
		switch value := c.Value(); string(name) {
		case "type":
			if !resource {
				b.kind = label(value)
			}
		case "mimeType":
			b.mime = label(value)
		case "text":
			if rawjson.Kind(value) == '"' {
				b.text, b.textAt = value[1:len(value)-1], c.At()-len(value)+1
			}
		}
	}
}

// content returns the blocks to keep something of within room bytes: of very many
// only the first. When there are none, structured content is shown instead.
func (e *envelope) content(room int) []block {
	sum := 0
	for i := range e.blocks {
		if sum += len(e.blocks[i].raw) + 1; i >= max(room/leastBlock, 1) && sum > room {
			return e.blocks[:i]
		}
	}
	if len(e.blocks) == 0 && e.structured != nil {
		return []block{{text: e.structured, json: true}}
	}
	return e.blocks
}

// block is one content block. text is what may be cut of it, as it is written;
// nil when nothing may.
type block struct {
	raw, text []byte
	textAt    int    // where text begins in raw
	json      bool   // text is structured content that is shown as text: there is no raw
	kind      string // "text", "image", …
	mime      string
	replaced  bool // by a note
}

// label returns a short plain string of a block, for a note.
func label(v []byte) string {
	if len(v) < 2 || len(v) > 80 || v[0] != '"' || bytes.IndexByte(v, '\\') >= 0 {
		return ""
	}
	return string(v[1 : len(v)-1])
}

func (b *block) need() int {
	switch {
	case b.replaced:
		return len(appendTextBlock(nil, []byte(b.note())))
	case b.json:
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
	return fmt.Sprintf("[%s of %d bytes left out]", what, len(b.raw))
}

// head returns the first characters of a string as it is written.
func head(written []byte) []byte {
	return rawjson.Unescape(cutWritten(written, 64))
}
