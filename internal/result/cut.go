package result

import (
	"encoding/json"
	"fmt"
	"strconv"

	"mcpproxy/internal/rawjson"
)

// MinLimit is the least limit that Cut works with: a smaller one leaves no room
// to say that something was left out. Twice the length of the handle comes on
// top, and more for one that takes more than its length in a JSON string.
const MinLimit = 1024

// MetaKey is the member of a cut result's _meta that says what was left out.
const MetaKey = "mcpproxy/truncated"

// Cut makes a CallToolResult that is larger than limit bytes smaller, and says
// whether it did. A result that is not, and any when limit is 0 or less, is
// returned as it is.
//
// A cut result is valid JSON of at most limit bytes. Text blocks are cut: JSON
// by leaving out elements of its arrays, other text between characters. Any
// other block is whole or replaced by a note. structuredContent is left out;
// when there is no content it is shown, cut, as text. A last text block and
// _meta say how much was left out, and name the handle to read the rest by.
func Cut(raw json.RawMessage, limit int, handle string) (cut json.RawMessage, was bool) {
	if limit <= 0 || len(raw) <= limit {
		return raw, false
	}
	c := cutter{total: len(raw), handle: handle, limit: leastLimit(limit, handle)}
	if len(raw) <= c.limit {
		return raw, false
	}
	if out := c.result(raw); out != nil && len(out) <= c.limit && json.Valid(out) {
		return out, true
	}
	return c.opaque(raw), true
}

// leastLimit returns limit, or what a cut result takes at least when that is
// more. A handle of control characters is written six times as long as it is.
func leastLimit(limit int, handle string) int {
	return max(limit, MinLimit+2*len(handle), MinLimit/2+2*len(rawjson.AppendString(nil, handle)))
}

// cutter cuts one result.
type cutter struct {
	total, limit int
	handle       string
	kept         int // bytes of the result that are in the cut one
}

// result cuts a result; nil when it is no such object.
func (c *cutter) result(raw []byte) []byte {
	e := envelope{room: c.limit}
	if !e.read(trim(raw)) {
		return nil
	}
	rest := c.others(e.others)
	kept := c.meta(e.meta)
	room := c.limit - len(rest) - len(kept) - c.frame()
	blocks := c.content(e.content(room), room)
	return c.assemble(rest, kept, blocks)
}

// frame returns the bytes of what is always in a cut result, at most.
func (c *cutter) frame() int {
	return len(c.assemble(nil, nil, nil)) + 2*len(strconv.Itoa(c.total)) // the count may have more digits
}

// others returns the members beside the known ones, isError and small ones first
// of all, each with a comma after it.
func (c *cutter) others(members []member) (out []byte) {
	left := c.limit / 4
	for _, m := range members {
		out = c.keep(out, m, &left)
	}
	return out
}

// meta returns the members of _meta that are kept, each with a comma after it.
func (c *cutter) meta(meta []byte) (out []byte) {
	left := c.limit / 4
	if len(meta) == 0 || meta[0] != '{' {
		return nil
	}
	each(meta, func(m member) bool {
		if string(m.name) != MetaKey {
			out = c.keep(out, m, &left)
		}
		return left > 0
	})
	return out
}

// keep appends a member and a comma, if there is room left for it.
func (c *cutter) keep(out []byte, m member, left *int) []byte {
	need := len(m.name) + len(m.value) + len(`"":,`)
	if need > *left {
		return out
	}
	*left -= need
	c.kept += need
	return append(append(appendName(out, m.name), m.value...), ',')
}

// assemble writes the cut result. The blocks have a comma after each.
func (c *cutter) assemble(rest, meta, blocks []byte) []byte {
	left := max(c.total-c.kept, 1)
	handle := rawjson.AppendString(nil, c.handle)
	out := make([]byte, 0, len(rest)+len(meta)+len(blocks)+512+2*len(handle))
	out = append(append(out, '{'), rest...)
	out = append(append(out, `"content":[`...), blocks...)
	out = appendTextBlock(out, []byte(c.note(left)))
	out = append(append(out, `],"_meta":{`...), meta...)
	return fmt.Appendf(out, `"%s":{"handle":%s,"total_bytes":%d,"left_out_bytes":%d}}}`, MetaKey, handle, c.total, left)
}

func (c *cutter) note(left int) string {
	note := fmt.Sprintf("This result was too large: %d of %d bytes left out", left, c.total)
	if c.handle == "" {
		return note + "."
	}
	return note + fmt.Sprintf("; call read_result with handle '%s' to get the rest.", c.handle)
}

// opaque shows the beginning of what is no CallToolResult as text.
func (c *cutter) opaque(raw []byte) []byte {
	c.kept = 0
	room := c.limit - c.frame() - len(`{"type":"text","text":""},`)
	kept := raw[:min(len(raw), room)]
	written := cutWritten(escape(kept), room)
	c.kept = len(written)
	block := append([]byte(`{"type":"text","text":"`), written...)
	return c.assemble(nil, nil, append(block, `"},`...))
}

// content returns the blocks as far as they fit into room bytes, with a comma
// after each.
func (c *cutter) content(blocks []block, room int) (out []byte) {
	if len(blocks) == 0 {
		return nil
	}
	needs := make([]int, len(blocks))
	for i := range blocks {
		needs[i] = blocks[i].need() + 1
	}
	level := fillLevel(needs, room)
	for i := range blocks { // what cannot be cut makes way, which leaves more for the others
		if needs[i] > level && blocks[i].text == nil {
			blocks[i].replaced = true
			needs[i] = min(blocks[i].need()+1, level)
		}
	}
	level = fillLevel(needs, room)
	for i := range blocks {
		if block := c.block(&blocks[i], min(level, room)-1); block != nil {
			out = append(append(out, block...), ',')
			room -= len(block) + 1
		}
	}
	return out
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
		if small := shrinkJSON(trim(rawjson.Unescape(written)), room); small != nil {
			return escape(small)
		}
	}
	return cutWritten(written, room)
}

func (c *cutter) structured(v []byte, n int) []byte {
	small := shrinkJSON(v, n-len(`{"type":"text","text":""}`))
	if small == nil {
		return nil
	}
	c.kept += len(small)
	return appendTextBlock(nil, small)
}
