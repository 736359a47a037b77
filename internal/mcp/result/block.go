package result

import (
	"bytes"
	"fmt"
	"slices"

	"mcpproxy/internal/mcp/wirejson"
)

// parsedResult is a parsed CallToolResult.
type parsedResult struct {
	room       int // maximum size of the cut result, in bytes
	blocks     []contentBlock
	size       int  // total size of the blocks, in bytes
	total      int  // number of elements of content
	more       bool // blocks is incomplete
	structured []byte
	meta       []byte
	others     []rawMember
	names      []string // names of the members, at most maxNames
}

// rawMember is a member of the result or of its _meta, as raw JSON.
type rawMember struct{ name, value []byte }

const (
	minBlock = 256 // smallest share of a block
	maxNames = 32
)

// parseResult parses raw, and returns false if it is not an object. It stores no more blocks than could fit.
func (e *parsedResult) parseResult(raw []byte) bool {
	c := wirejson.Cursor{Text: raw}
	end := c.Enter('{')
	for c.More(end) {
		name := c.ReadName()
		if len(e.names) < maxNames {
			e.names = append(e.names, string(wirejson.Unescape(name)))
		}
		if string(name) == "content" && c.Peek() == '[' && e.total == 0 {
			for end := c.Enter('['); c.More(end); e.total++ {
				e.parseBlock(&c)
			}
			continue
		}
		switch value := c.ReadValue(); string(name) {
		case "content":
		case "structuredContent":
			if e.structured == nil { // read_result uses the first one
				e.structured = value
			}
		case "_meta":
			e.meta = value
		default:
			if len(e.others) < e.room/4 {
				e.others = append(e.others, rawMember{name, value})
			}
		}
	}
	return end != 0 && c.Finish() == nil
}

// parseBlock parses the next content block. It ignores values that are not objects.
func (e *parsedResult) parseBlock(c *wirejson.Cursor) {
	if c.Peek() != '{' {
		c.ReadValue()
		return
	}
	start := c.Offset()
	b := contentBlock{index: e.total}
	b.parseMembers(c, false)
	if e.size <= e.room || len(e.blocks) <= e.room/minBlock {
		b.raw = c.Text[start:c.Offset()]
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
	e.size += c.Offset() - start + 1
}

// parseMembers parses a block, or the resource in it.
func (b *contentBlock) parseMembers(c *wirejson.Cursor, resource bool) {
	for end := c.Enter('{'); c.More(end); {
		name := c.ReadName()
		if string(name) == "resource" && c.Peek() == '{' && !resource {
			b.parseMembers(c, true)
			continue
		}
		value := c.ReadValue()
		switch at := c.Offset() - len(value) + 1; string(name) {
		case "type":
			if !resource {
				b.kind = unquotedIfPlain(value)
			}
		case "mimeType":
			b.mime = unquotedIfPlain(value)
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

// firstJSONBlock returns the first block whose text is JSON, or nil if there is none. Paths of read_result start from
// its JSON if they do not match at the top.
func (e *parsedResult) firstJSONBlock() *contentBlock {
	for i := range e.blocks {
		if b := &e.blocks[i]; b.innerJSON() != nil {
			return b
		}
	}
	return nil
}

// innerJSON returns the JSON in the block's own text, or nil if there is none.
func (b *contentBlock) innerJSON() []byte {
	if !b.opened {
		b.opened, b.inner = true, jsonInRawString(b.own)
	}
	return b.inner
}

// canOmitDataPath reports whether a path may omit the steps to the data, because its first step does not match at the
// top.
func (e *parsedResult) canOmitDataPath(first pathStep) bool {
	return len(e.names) < maxNames && (first.kind == element || !slices.Contains(e.names, first.name))
}

// contentBlock is one content block. text is the raw text that may be cut, or nil if it may not be cut.
type contentBlock struct {
	index      int // index in content
	raw, text  []byte
	textAt     int    // offset of text in raw
	own        []byte // raw member text, which is the text of a text block
	ownAt      int
	inner      []byte                     // JSON in own
	opened     bool                       // inner was parsed
	path       func(at []pathStep) string // returns the read_result path of a value in the JSON text
	structured bool                       // text is structured content shown as text; raw is nil
	kind       string                     // "text", "image", …
	mime       string
	replaced   bool // the block was replaced by a note
}

// unquotedIfPlain returns a short plain string of a block, for a note.
func unquotedIfPlain(v []byte) string {
	if len(v) < 2 || len(v) > 80 || v[0] != '"' || bytes.IndexByte(v, '\\') >= 0 {
		return ""
	}
	return string(v[1 : len(v)-1])
}

// textPathSteps returns the steps of the path to the text of the block.
func (b *contentBlock) textPathSteps() []pathStep {
	switch {
	case b.structured:
		return []pathStep{{name: "structuredContent"}}
	case b.kind == "resource":
		return []pathStep{{name: "content"}, {kind: element, from: b.index}, {name: "resource"}, {name: "text"}}
	}
	return []pathStep{{name: "content"}, {kind: element, from: b.index}, {name: "text"}}
}

func (b *contentBlock) neededSize() int {
	switch {
	case b.replaced:
		return len(appendTextBlock(nil, []byte(b.omissionNote())))
	case b.structured:
		return escapedSize(b.text) + len(`{"type":"text","text":""}`)
	}
	return len(b.raw)
}

func (b *contentBlock) omissionNote() string {
	what := "block"
	if b.kind != "" {
		what = b.kind
	}
	if b.mime != "" {
		what += " " + b.mime
	}
	return fmt.Sprintf("[%s of %d bytes left out: content[%d]]", what, len(b.raw), b.index)
}
