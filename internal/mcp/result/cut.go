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

// minLimit is the smallest limit of Cut, because the note needs room. Twice the length of the handle is added, and more
// for a handle that needs escapes.
const minLimit = 1024

// metaKey is the member of _meta of a cut result that describes the omitted parts.
const metaKey = "mcpproxy/truncated"

// Cut shortens a CallToolResult that is larger than limit bytes, and reports whether it did. If limit is 0 or less, it
// returns every result unchanged.
//
// A cut result is valid JSON of at most limit bytes. In text blocks, JSON loses array elements, and other text is cut
// between characters. Other blocks are kept or replaced by a note. structuredContent is omitted, or shown as cut text
// if there is no content. A last text block and _meta describe the omitted parts, and contain the handle for reading
// the rest.
func Cut(raw json.RawMessage, limit int, handle string) (cut json.RawMessage, was bool) {
	if limit <= 0 || len(raw) <= limit {
		return raw, false
	}
	c := cutter{total: len(raw), handle: handle, limit: effectiveLimit(limit, handle)}
	if len(raw) <= c.limit {
		return raw, false
	}
	if out := c.cutResult(raw); out != nil && len(out) <= c.limit && json.Valid(out) {
		return out, true
	}
	return c.cutAsText(raw), true
}

// effectiveLimit returns limit, or the minimum size of a cut result with this handle.
func effectiveLimit(limit int, handle string) int {
	return max(limit, minLimit+2*len(handle), minLimit/2+2*len(wirejson.AppendString(nil, handle)))
}

// cutter cuts one result.
type cutter struct {
	total, limit int
	handle       string
	kept         int // number of bytes of the original that are kept
	gaps         []omission
}

// cutResult cuts a result. It returns nil if raw is not a CallToolResult.
func (c *cutter) cutResult(raw []byte) []byte {
	e := parsedResult{room: c.limit}
	if !e.parseResult(trimSpace(raw)) {
		return nil
	}
	rest := c.appendFittingMembers(e.others)
	kept := c.appendFittingMeta(e.meta)
	room := c.limit - len(rest) - len(kept) - c.fixedSize()
	blocks := c.cutContent(&e, room)
	return c.assembleResult(rest, kept, blocks, c.continueText())
}

// fixedSize returns the maximum size of the fixed parts of a cut result.
func (c *cutter) fixedSize() int {
	return len(c.assembleResult(nil, nil, nil, "")) + 2*len(strconv.Itoa(c.total)) // the count may have more digits
}

// appendFittingMembers returns the unknown members that fit, isError and small ones first, each followed by a comma.
func (c *cutter) appendFittingMembers(members []rawMember) (out []byte) {
	left := c.limit / 4
	for _, m := range members {
		out = c.appendIfFits(out, m, &left)
	}
	return out
}

// appendFittingMeta returns the members of _meta that fit, each followed by a comma.
func (c *cutter) appendFittingMeta(meta []byte) (out []byte) {
	left := c.limit / 4
	if len(meta) == 0 || meta[0] != '{' {
		return nil
	}
	eachEntry(meta, func(_ int, e jsonEntry) bool {
		if string(e.name) != metaKey {
			out = c.appendIfFits(out, rawMember(e), &left)
		}
		return left > 0
	})
	return out
}

// appendIfFits appends a member and a comma if it fits.
func (c *cutter) appendIfFits(out []byte, m rawMember, left *int) []byte {
	need := len(m.name) + len(m.value) + len(`"":,`)
	if need > *left {
		return out
	}
	*left -= need
	c.kept += need
	return append(append(appendMemberName(out, m.name), m.value...), ',')
}

// assembleResult writes the cut result. A comma follows each block.
func (c *cutter) assembleResult(rest, meta, blocks []byte, goOn string) []byte {
	left := max(c.total-c.kept, 1)
	handle := wirejson.AppendString(nil, c.handle)
	out := make([]byte, 0, len(rest)+len(meta)+len(blocks)+512+2*len(handle))
	out = append(append(out, '{'), rest...)
	out = append(append(out, `"content":[`...), blocks...)
	out = appendTextBlock(out, fmt.Appendf(nil, "This result was too large: %d of %d bytes left out.%s", left, c.total, goOn))
	out = append(append(out, `],"_meta":{`...), meta...)
	return fmt.Appendf(out, `"%s":{"handle":%s,"total_bytes":%d,"left_out_bytes":%d}}}`, metaKey, handle, c.total, left)
}

// continueText returns the instructions for reading the omitted parts.
func (c *cutter) continueText() string {
	if len(c.gaps) == 0 && c.handle != "" {
		return fmt.Sprintf(` All of it is there with read_result {"handle": %s}`, wirejson.AppendString(nil, c.handle))
	}
	var lines strings.Builder
	for _, g := range c.gaps {
		lines.WriteString("\n" + g.continueLine(c.handle))
	}
	return lines.String()
}

// gapLineSize returns the maximum size of the line for a gap at path.
func (c *cutter) gapLineSize(path string) int { return gapLineSize(path, c.handle, c.total) }

// cutAsText returns the beginning of a value that is not a CallToolResult as text.
func (c *cutter) cutAsText(raw []byte) []byte {
	c.kept, c.gaps = 0, nil
	room := c.limit - c.fixedSize() - len(`{"type":"text","text":""},`) - c.gapLineSize("")
	kept := cutRawString(escapeText(raw[:characterStart(raw, room)]), room)
	c.kept = len(kept)
	c.gaps = []omission{{"", countCharacters(kept), utf8.RuneCount(raw), Characters}}
	block := append([]byte(`{"type":"text","text":"`), kept...)
	return c.assembleResult(nil, nil, append(block, `"},`...), c.continueText())
}

// cutContent returns the blocks that fit into room bytes, including the lines for their gaps. A comma follows each
// block.
func (c *cutter) cutContent(e *parsedResult, room int) []byte {
	data := e.firstJSONBlock()
	blocks := slices.Clone(e.blocks)
	if countEntries(e.structured) > 0 && (data == nil || !haveSameShape(e.structured, data.innerJSON())) {
		blocks = append(blocks, contentBlock{text: e.structured, structured: true})
	}
	for i := range blocks {
		b := &blocks[i]
		isData := data == nil && b.structured && !e.more || data != nil && b.kind == "text" && b.index == data.index && !b.structured
		b.path = func(at []pathStep) string {
			switch {
			case len(at) == 0 && b.structured:
				return formatPath(b.textPathSteps()...)
			case len(at) == 0 && isData:
				return "[*]"
			case len(at) == 0:
				return formatPath(append(b.textPathSteps(), pathStep{kind: all})...)
			case isData && e.canOmitDataPath(at[0]):
				return formatPath(at...)
			}
			return formatPath(append(b.textPathSteps(), at...)...)
		}
	}
	if !e.more {
		if out, ok := c.cutBlocksFairly(blocks, room); ok {
			return out
		}
	}
	return c.keepLeadingBlocks(blocks, e.total, room)
}

// cutBlocksFairly divides the room among the blocks that can be cut. It returns false if there are too many of them.
func (c *cutter) cutBlocksFairly(blocks []contentBlock, room int) (out []byte, ok bool) {
	before := *c
	needs := make([]int, len(blocks))
	for i := range blocks {
		needs[i] = blocks[i].neededSize() + 1
	}
	level := fairShare(needs, room)
	for i := range blocks { // blocks that cannot be cut are replaced first, which leaves more for the others
		if b := &blocks[i]; needs[i] > level && b.text == nil {
			b.replaced = true
			needs[i] = b.neededSize() + 1
		}
	}
	level = fairShare(needs, room)
	large := 0
	for i := range blocks {
		if needs[i] > level {
			large++
		}
		written, size := c.cutBlock(&blocks[i], min(level, room)-1)
		if written == nil || large > maxShared {
			*c = before
			return nil, false
		}
		out = append(append(out, written...), ',')
		room -= size + 1
	}
	return out, true
}

// keepLeadingBlocks keeps as many leading blocks as fit, of content with total elements. It keeps none if there is no
// room for a line about the rest.
func (c *cutter) keepLeadingBlocks(blocks []contentBlock, total, room int) (out []byte) {
	content := formatPath(pathStep{name: "content"})
	left := room - c.gapLineSize(content)
	n := len(blocks)
	if n > 0 && blocks[n-1].structured {
		n--
		left -= c.gapLineSize(blocks[n].path(nil))
	}
	if left < 0 {
		return nil
	}
	keep := func(b *contentBlock) bool {
		if b.replaced = b.text == nil && b.neededSize() >= left; b.neededSize() >= left && left < room/2 {
			return false
		}
		written, size := c.cutBlock(b, left-1)
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
		c.gaps = append(c.gaps, omission{content, next, total, elements})
	}
	if n < len(blocks) && !keep(&blocks[n]) {
		b := &blocks[n]
		c.gaps = append(c.gaps, omission{b.path(nil), 0, countEntries(b.text), entryUnit(b.text)})
	}
	return out
}

// cutBlock writes one block in at most n bytes. It returns the block and its size with the lines for its gaps, or nil
// if it does not fit.
func (c *cutter) cutBlock(b *contentBlock, n int) (out []byte, size int) {
	gaps := len(c.gaps)
	defer func() {
		if size = len(out); out == nil {
			c.gaps = c.gaps[:gaps]
		}
		for _, g := range c.gaps[gaps:] {
			size += c.gapLineSize(g.path)
		}
	}()
	switch {
	case b.neededSize() <= n && b.replaced:
		return appendTextBlock(nil, []byte(b.omissionNote())), 0
	case b.neededSize() <= n && b.structured:
		c.kept += len(b.text)
		return appendTextBlock(nil, b.text), 0
	case b.neededSize() <= n:
		c.kept += len(b.raw)
		return b.raw, 0
	case b.text == nil || b.replaced:
		return nil, 0
	case b.structured:
		small, ok := c.shrinkBlockJSON(b, b.text, n-len(`{"type":"text","text":""}`))
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
	text := c.cutBlockText(b, n-len(head)-len(tail))
	if text == nil {
		return nil, 0
	}
	c.kept += len(text) + len(head) + len(tail)
	return slices.Concat(head, text, tail), 0
}

// cutBlockText cuts the raw text of a block. It returns nil if there is no room.
func (c *cutter) cutBlockText(b *contentBlock, room int) []byte {
	if len(b.text) <= room {
		return b.text
	}
	inner := b.innerJSON()
	if b.kind == "resource" {
		inner = jsonInRawString(b.text)
	}
	if inner != nil {
		if small, ok := c.shrinkBlockJSON(b, inner, room); ok {
			return escapeText(small)
		}
	}
	path := formatPath(b.textPathSteps()...)
	kept := cutRawString(b.text, max(room-c.gapLineSize(path), 0))
	if len(kept) == 0 {
		return nil
	}
	c.gaps = append(c.gaps, omission{path, countCharacters(kept), countCharacters(b.text), Characters})
	return kept
}

// shrinkBlockJSON shrinks the JSON in a block.
func (c *cutter) shrinkBlockJSON(b *contentBlock, v []byte, room int) (small []byte, ok bool) {
	s := shrinker{path: b.path, handle: c.handle, most: c.total}
	small, gaps, ok := s.shrink(v, room)
	if ok {
		c.gaps = append(c.gaps, gaps...)
	}
	return small, ok
}

// haveSameShape reports whether two values have the same number of elements, or the same member names. Then it is
// assumed that a server sends the same data twice.
func haveSameShape(a, b []byte) bool {
	if wirejson.Kind(a) != wirejson.Kind(b) {
		return false
	}
	seed := maphash.MakeSeed()
	shape := func(v []byte) (n int, sum uint64) {
		eachEntry(v, func(_ int, e jsonEntry) bool {
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
