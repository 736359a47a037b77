package wirejson

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strconv"
	"unicode"
	"unicode/utf8"
)

// nameTableThreshold is the number of members from which on names are looked up in a hash table.
const nameTableThreshold = 64

// readUniqueName reads the member name between start and end for the object at level. It fails if the name equals
// one of the earlier names.
func (s *scanner) readUniqueName(start, end, level int, earlier []memberName) (memberName, bool) {
	raw := s.data[start:end]
	folded := raw
	if !IsUnescapedASCII(raw) {
		text := Unescape(raw)
		if bytes.IndexByte(text, 0) >= 0 {
			s.failAt(start-1, "a member name contains NUL")
			return memberName{}, false
		}
		folded = foldCase(text)
	}
	n := memberName{start, end, hashName(folded, s.seed)}
	twin := s.findDuplicate(n, level, earlier)
	if twin == nil {
		return n, true
	}
	s.failAt(start-1, duplicateNameReason(raw, s.data[twin.start:twin.end]))
	return memberName{}, false
}

// findDuplicate returns the earlier name that equals n, or nil.
func (s *scanner) findDuplicate(n memberName, level int, earlier []memberName) *memberName {
	if len(earlier) >= nameTableThreshold {
		return s.findDuplicateInTable(n, level, earlier)
	}
	for k := range earlier {
		if earlier[k].hash == n.hash && s.namesEqualFold(earlier[k], n) {
			return &earlier[k]
		}
	}
	return nil
}

// findDuplicateInTable is like findDuplicate, but uses a hash table. It also adds n to the table.
func (s *scanner) findDuplicateInTable(n memberName, level int, earlier []memberName) *memberName {
	top := len(s.tables) - 1
	switch {
	case top < 0 || s.tables[top].level != level:
		s.tables = append(s.tables, nameTable{level, buildNameTable(earlier, 4*nameTableThreshold)})
		top++
	case len(earlier) >= len(s.tables[top].slots)/2:
		s.tables[top].slots = buildNameTable(earlier, 2*len(s.tables[top].slots))
	}
	slots := s.tables[top].slots
	mask := uint64(len(slots) - 1)
	for h := n.hash & mask; ; h = (h + 1) & mask {
		if slots[h] == 0 {
			slots[h] = uint32(len(earlier)) + 1
			return nil
		}
		if m := &earlier[slots[h]-1]; m.hash == n.hash && s.namesEqualFold(*m, n) {
			return m
		}
	}
}

// dropNameTable removes the table of the object at level.
func (s *scanner) dropNameTable(level int) {
	if n := len(s.tables); n > 0 && s.tables[n-1].level == level {
		s.tables = s.tables[:n-1]
	}
}

func buildNameTable(names []memberName, size int) []uint32 {
	slots := make([]uint32, size)
	mask := uint64(size - 1)
	for k := range names {
		h := names[k].hash & mask
		for slots[h] != 0 {
			h = (h + 1) & mask
		}
		slots[h] = uint32(k) + 1
	}
	return slots
}

// namesEqualFold reports whether two names are equal after unescaping, in any case.
func (s *scanner) namesEqualFold(a, b memberName) bool {
	x, y := s.data[a.start:a.end], s.data[b.start:b.end]
	if !IsUnescapedASCII(x) || !IsUnescapedASCII(y) {
		x, y = Unescape(x), Unescape(y)
	}
	return bytes.EqualFold(x, y)
}

// duplicateNameReason returns the error text for a duplicate member name.
func duplicateNameReason(raw, earlier []byte) string {
	text, first := Unescape(raw), Unescape(earlier)
	if bytes.Equal(text, first) {
		return "duplicate member " + quoteClipped(text)
	}
	return "duplicate member " + quoteClipped(text) + ", which is " + quoteClipped(first) + " in another case"
}

// quoteClipped quotes at most 64 bytes of a name.
func quoteClipped(text []byte) string {
	const most = 64
	shown := strconv.QuoteToASCII(string(ClipText(text, most)))
	if len(text) > most {
		shown += "…"
	}
	return shown
}

// IsUnescapedASCII reports whether a raw string is ASCII without escapes.
func IsUnescapedASCII(raw []byte) bool {
	for ; len(raw) >= 8; raw = raw[8:] {
		if markSpecialBytes(binary.LittleEndian.Uint64(raw), high) != 0 {
			return false
		}
	}
	for _, c := range raw {
		if c == '\\' || c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// foldCase replaces every rune by one representative of all runes that differ only in case: the lower-case letter for
// ASCII, otherwise the smallest rune.
func foldCase(text []byte) []byte {
	out := make([]byte, 0, len(text)+8)
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		out = utf8.AppendRune(out, foldRuneCase(r))
		text = text[n:]
	}
	return out
}

func foldRuneCase(r rune) rune {
	for {
		next := unicode.SimpleFold(r)
		if next <= r { // end of the cycle: next is the smallest
			r = next
			break
		}
		r = next
	}
	if 'A' <= r && r <= 'Z' {
		r += 'a' - 'A'
	}
	return r
}

// hashName hashes a name. ASCII letters count as lower case.
func hashName(text []byte, seed [2]uint64) uint64 {
	h := seed[0] ^ uint64(len(text))
	for len(text) >= 8 {
		h = mixHash(h^lowerASCIIWord(binary.LittleEndian.Uint64(text)), seed[1])
		text = text[8:]
	}
	var x uint64
	for k, c := range text {
		x |= uint64(c) << (8 * k)
	}
	return mixHash(mixHash(h^lowerASCIIWord(x), seed[1]), seed[0])
}

func mixHash(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b|1)
	return hi ^ lo
}

// lowerASCIIWord converts the ASCII capitals in eight bytes to lower case.
func lowerASCIIWord(x uint64) uint64 {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	ascii := x &^ high
	fromA := ascii + ones*(0x80-'A') // high bit set if at least A
	aboveZ := ascii + ones*(0x80-'Z'-1)
	return x | (fromA&^aboveZ&^x&high)>>2
}
