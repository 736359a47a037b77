package result

import (
	"bytes"
	"fmt"
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
	if len(raw) == 0 || raw[0] != '{' {
		return false
	}
	return walk(raw, 0, func(name []byte, at int) int {
		if string(name) == "content" && raw[at] == '[' {
			e.blocks, e.size = nil, 0
			return walk(raw, at, func(_ []byte, at int) int { return e.block(raw, at) })
		}
		end := skip(raw, at)
		if end < 0 {
			return -1
		}
		switch value := raw[at:end]; string(name) {
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
		return end
	}) == len(raw)
}

// block reads the content block at i. What is no object is no block.
func (e *envelope) block(raw []byte, i int) int {
	if raw[i] != '{' {
		return skip(raw, i)
	}
	var b block
	end := walk(raw, i, func(name []byte, at int) int { return b.member(raw, name, at, false) })
	if end < 0 {
		return -1
	}
	if e.size <= e.room || len(e.blocks) <= e.room/leastBlock {
		b.raw = raw[i:end]
		b.textAt -= i
		if b.kind != "text" && b.kind != "resource" {
			b.text = nil
		}
		e.blocks = append(e.blocks, b)
	}
	e.size += end - i + 1
	return end
}

// member reads a member of a block, or of the resource in it.
func (b *block) member(raw, name []byte, at int, resource bool) int {
	if string(name) == "resource" && raw[at] == '{' && !resource {
		return walk(raw, at, func(name []byte, at int) int { return b.member(raw, name, at, true) })
	}
	end := skip(raw, at)
	if end < 0 {
		return -1
	}
	switch value := raw[at:end]; string(name) {
	case "type":
		if !resource {
			b.kind = label(value)
		}
	case "mimeType":
		b.mime = label(value)
	case "text":
		if value[0] == '"' {
			b.text, b.textAt = value[1:len(value)-1], at+1
		}
	}
	return end
}

// content gives the blocks to keep something of within room bytes: of very many
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

// label gives a short plain string of a block, for a note.
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

// block writes one block within n bytes, nil when that cannot be.
func (c *cutter) block(b *block, n int) []byte {
	if !b.replaced && b.need() <= n && !b.json {
		c.kept += len(b.raw)
		return b.raw
	}
	if b.text == nil {
		if note := appendTextBlock(nil, []byte(b.note())); len(note) <= n {
			return note
		}
		return nil
	}
	if b.json {
		return c.structured(b.text, n)
	}
	head, tail := b.raw[:b.textAt], b.raw[b.textAt+len(b.text):]
	if b.kind == "text" && len(head)+len(tail) > n/2 { // annotations of that size are not worth it
		head, tail = []byte(`{"type":"text","text":"`), []byte(`"}`)
	}
	room := n - len(head) - len(tail)
	if room < 0 {
		return nil
	}
	text := c.text(b.text, room)
	c.kept += len(text) + len(head) + len(tail)
	return append(append(append(make([]byte, 0, n), head...), text...), tail...)
}

// text cuts a string as it is written.
func (c *cutter) text(written []byte, room int) []byte {
	if len(written) <= room {
		return written
	}
	if looksLikeJSON(head(written)) {
		if small := shrinkJSON(trim(unescape(written)), room); small != nil {
			return appendWritten(make([]byte, 0, room), small)
		}
	}
	return cutWritten(written, room)
}

// head gives the first characters of a string as it is written.
func head(written []byte) []byte {
	return unescape(cutWritten(written, 64))
}

func (c *cutter) structured(v []byte, n int) []byte {
	small := shrinkJSON(v, n-len(`{"type":"text","text":""}`))
	if small == nil {
		return nil
	}
	c.kept += len(small)
	return appendTextBlock(nil, small)
}
