package result

import (
	"encoding/json"
	"fmt"
	"hash/maphash"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"mcpproxy/internal/mcp/wirejson"
)

// minLimit is the smallest limit of Cut: less leaves no room for the note. Twice the length of the handle
// is added, and more for a handle that needs escapes.
const minLimit = 1024

// metaKey is the member of _meta of a cut result that describes what was omitted.
const metaKey = "mcpproxy/truncated"

// Cut shortens a CallToolResult that is larger than limit bytes, and reports whether it did. With a limit
// of 0 or less it returns every result unchanged.
//
// A cut result is valid JSON of at most limit bytes. In text blocks, JSON loses array elements and other
// text is cut between characters. Other blocks are kept or replaced by a note. structuredContent is
// omitted; without content it is shown, cut, as text. A last text block and _meta say how much was
// omitted, and name the handle for reading the rest.
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

// leastLimit returns limit, or the minimum size of a cut result with this handle.
func leastLimit(limit int, handle string) int {
	return max(limit, minLimit+2*len(handle), minLimit/2+2*len(wirejson.AppendString(nil, handle)))
}

// cutter cuts one result.
type cutter struct {
	total, limit int
	handle       string
	kept         int // bytes of the original that are kept
	gaps         []gap
}

// result cuts a result; nil if raw is no CallToolResult.
func (c *cutter) result(raw []byte) []byte {
	e := envelope{room: c.limit}
	if !e.read(trim(raw)) {
		return nil
	}
	rest := c.others(e.others)
	kept := c.meta(e.meta)
	room := c.limit - len(rest) - len(kept) - c.frame()
	blocks := c.content(&e, room)
	return c.assemble(rest, kept, blocks, c.goOn())
}

// frame returns the maximum size of the fixed parts of a cut result.
func (c *cutter) frame() int {
	return len(c.assemble(nil, nil, nil, "")) + 2*len(strconv.Itoa(c.total)) // the count may have more digits
}

// others returns the unknown members that fit, isError and small ones first, each followed by a comma.
func (c *cutter) others(members []rawMember) (out []byte) {
	left := c.limit / 4
	for _, m := range members {
		out = c.keep(out, m, &left)
	}
	return out
}

// meta returns the members of _meta that fit, each followed by a comma.
func (c *cutter) meta(meta []byte) (out []byte) {
	left := c.limit / 4
	if len(meta) == 0 || meta[0] != '{' {
		return nil
	}
	each(meta, func(_ int, e entry) bool {
		if string(e.name) != metaKey {
			out = c.keep(out, rawMember(e), &left)
		}
		return left > 0
	})
	return out
}

// keep appends a member and a comma if it fits.
func (c *cutter) keep(out []byte, m rawMember, left *int) []byte {
	need := len(m.name) + len(m.value) + len(`"":,`)
	if need > *left {
		return out
	}
	*left -= need
	c.kept += need
	return append(append(appendName(out, m.name), m.value...), ',')
}

// assemble writes the cut result. A comma follows each block.
func (c *cutter) assemble(rest, meta, blocks []byte, goOn string) []byte {
	left := max(c.total-c.kept, 1)
	handle := wirejson.AppendString(nil, c.handle)
	out := make([]byte, 0, len(rest)+len(meta)+len(blocks)+512+2*len(handle))
	out = append(append(out, '{'), rest...)
	out = append(append(out, `"content":[`...), blocks...)
	out = appendTextBlock(out, fmt.Appendf(nil, "This result was too large: %d of %d bytes left out.%s", left, c.total, goOn))
	out = append(append(out, `],"_meta":{`...), meta...)
	return fmt.Appendf(out, `"%s":{"handle":%s,"total_bytes":%d,"left_out_bytes":%d}}}`, metaKey, handle, c.total, left)
}

// goOn returns the instructions for reading what was omitted.
func (c *cutter) goOn() string {
	if len(c.gaps) == 0 && c.handle != "" {
		return fmt.Sprintf(` All of it is there with read_result {"handle": %s}`, wirejson.AppendString(nil, c.handle))
	}
	var lines strings.Builder
	for _, g := range c.gaps {
		lines.WriteString("\n" + g.line(c.handle))
	}
	return lines.String()
}

// lineSize returns the maximum size of the line of a gap at path.
func (c *cutter) lineSize(path string) int { return lineSize(path, c.handle, c.total) }

// opaque shows the beginning of a value that is no CallToolResult as text.
func (c *cutter) opaque(raw []byte) []byte {
	c.kept, c.gaps = 0, nil
	room := c.limit - c.frame() - len(`{"type":"text","text":""},`) - c.lineSize("")
	kept := cutRaw(escape(raw[:boundary(raw, room)]), room)
	c.kept = len(kept)
	c.gaps = []gap{{"", characters(kept), utf8.RuneCount(raw), Characters}}
	block := append([]byte(`{"type":"text","text":"`), kept...)
	return c.assemble(nil, nil, append(block, `"},`...), c.goOn())
}

// content returns the blocks that fit into room bytes with the lines of their gaps, each followed by a
// comma.
func (c *cutter) content(e *envelope, room int) []byte {
	data := e.dataBlock()
	blocks := slices.Clone(e.blocks)
	if count(e.structured) > 0 && (data == nil || !sameShape(e.structured, data.json())) {
		blocks = append(blocks, block{text: e.structured, structured: true})
	}
	for i := range blocks {
		b := &blocks[i]
		isData := data == nil && b.structured && !e.more || data != nil && b.kind == "text" && b.index == data.index && !b.structured
		b.path = func(at []step) string {
			switch {
			case len(at) == 0 && b.structured:
				return formatPath(b.at()...)
			case len(at) == 0 && isData:
				return "[*]"
			case len(at) == 0:
				return formatPath(append(b.at(), step{kind: all})...)
			case isData && e.short(at[0]):
				return formatPath(at...)
			}
			return formatPath(append(b.at(), at...)...)
		}
	}
	if !e.more {
		if out, ok := c.shared(blocks, room); ok {
			return out
		}
	}
	return c.first(blocks, e.total, room)
}

// shared divides the room among the blocks that can be cut. It returns false if they are too many.
func (c *cutter) shared(blocks []block, room int) (out []byte, ok bool) {
	before := *c
	needs := make([]int, len(blocks))
	for i := range blocks {
		needs[i] = blocks[i].need() + 1
	}
	level := fillLevel(needs, room)
	for i := range blocks { // blocks that cannot be cut are replaced first, which leaves more for the others
		if b := &blocks[i]; needs[i] > level && b.text == nil {
			b.replaced = true
			needs[i] = b.need() + 1
		}
	}
	level = fillLevel(needs, room)
	large := 0
	for i := range blocks {
		if needs[i] > level {
			large++
		}
		written, size := c.block(&blocks[i], min(level, room)-1)
		if written == nil || large > maxShared {
			*c = before
			return nil, false
		}
		out = append(append(out, written...), ',')
		room -= size + 1
	}
	return out, true
}

// first keeps as many leading blocks as fit, of content with total elements. It keeps none if there is no
// room to mention the rest.
func (c *cutter) first(blocks []block, total, room int) (out []byte) {
	content := formatPath(step{name: "content"})
	left := room - c.lineSize(content)
	n := len(blocks)
	if n > 0 && blocks[n-1].structured {
		n--
		left -= c.lineSize(blocks[n].path(nil))
	}
	if left < 0 {
		return nil
	}
	keep := func(b *block) bool {
		if b.replaced = b.text == nil && b.need() >= left; b.need() >= left && left < room/2 {
			return false
		}
		written, size := c.block(b, left-1)
		if written == nil {
			return false
		}
		out = append(append(out, written...), ',')
		left -= size + 1
		return true
	}
	next := 0
	for i := range n {
		if !keep(&blocks[i]) {
			break
		}
		next = blocks[i].index + 1
	}
	if next < total {
		c.gaps = append(c.gaps, gap{content, next, total, elements})
	}
	if n < len(blocks) && !keep(&blocks[n]) {
		b := &blocks[n]
		c.gaps = append(c.gaps, gap{b.path(nil), 0, count(b.text), unit(b.text)})
	}
	return out
}

// block writes one block in at most n bytes, and returns its size with the lines of its gaps; nil if it
// does not fit.
func (c *cutter) block(b *block, n int) (out []byte, size int) {
	gaps := len(c.gaps)
	defer func() {
		if size = len(out); out == nil {
			c.gaps = c.gaps[:gaps]
		}
		for _, g := range c.gaps[gaps:] {
			size += c.lineSize(g.path)
		}
	}()
	switch {
	case b.need() <= n && b.replaced:
		return appendTextBlock(nil, []byte(b.note())), 0
	case b.need() <= n && b.structured:
		c.kept += len(b.text)
		return appendTextBlock(nil, b.text), 0
	case b.need() <= n:
		c.kept += len(b.raw)
		return b.raw, 0
	case b.text == nil || b.replaced:
		return nil, 0
	case b.structured:
		small, ok := c.json(b, b.text, n-len(`{"type":"text","text":""}`))
		if !ok {
			return nil, 0
		}
		c.kept += len(small)
		return appendTextBlock(nil, small), 0
	}
	head, tail := b.raw[:b.textAt], b.raw[b.textAt+len(b.text):]
	if b.kind == "text" && len(head)+len(tail) > n/2 { // such large annotations are not worth keeping
		head, tail = []byte(`{"type":"text","text":"`), []byte(`"}`)
	}
	text := c.text(b, n-len(head)-len(tail))
	if text == nil {
		return nil, 0
	}
	c.kept += len(text) + len(head) + len(tail)
	return slices.Concat(head, text, tail), 0
}

// text cuts the raw text of a block; nil if there is no room.
func (c *cutter) text(b *block, room int) []byte {
	if len(b.text) <= room {
		return b.text
	}
	inner := b.json()
	if b.kind == "resource" {
		inner = jsonText(b.text)
	}
	if inner != nil {
		if small, ok := c.json(b, inner, room); ok {
			return escape(small)
		}
	}
	path := formatPath(b.at()...)
	kept := cutRaw(b.text, max(room-c.lineSize(path), 0))
	if len(kept) == 0 {
		return nil
	}
	c.gaps = append(c.gaps, gap{path, characters(kept), characters(b.text), Characters})
	return kept
}

// json shrinks the JSON in a block.
func (c *cutter) json(b *block, v []byte, room int) (small []byte, ok bool) {
	s := shrinker{path: b.path, handle: c.handle, most: c.total}
	small, gaps, ok := s.shrink(v, room)
	if ok {
		c.gaps = append(c.gaps, gaps...)
	}
	return small, ok
}

// sameShape reports whether two values have the same number of elements, or the same member names: then a
// server sends the same data twice.
func sameShape(a, b []byte) bool {
	if wirejson.Kind(a) != wirejson.Kind(b) {
		return false
	}
	seed := maphash.MakeSeed()
	shape := func(v []byte) (n int, sum uint64) {
		each(v, func(_ int, e entry) bool {
			n++
			sum += maphash.Bytes(seed, wirejson.Unescape(e.name))
			return true
		})
		return n, sum
	}
	n, sum := shape(a)
	m, other := shape(b)
	return n == m && sum == other
}
