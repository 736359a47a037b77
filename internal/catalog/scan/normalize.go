package scan

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// normalText is a text as a model reads it: without invisible characters, with
// look-alikes replaced, in lower case. Most of it is ASCII.
type normalText struct {
	lower []byte
	cased []byte  // with upper case; of the same length
	at    []int32 // original offset of each byte of lower; nil if unchanged
	marks normalizationMarks
}

// normalizationMarks records what the normalization removed.
type normalizationMarks struct {
	hidden   []hiddenRun // invisible characters
	smuggled []byte      // text spelled by tag characters and variation selectors
	folded   []span      // words that mix alphabets; original offsets
}

// hiddenRun is a run of invisible characters.
type hiddenRun struct {
	start, end int
	kinds      hiddenCharacterKind
	runes      int
}

type hiddenCharacterKind uint8

const (
	zeroWidth hiddenCharacterKind = 1 << iota
	bidi                          // changes the display order of text
	tags                          // Unicode tags: spell ASCII
	selectors                     // variation selectors
	private                       // private use
	control                       // control characters
)

type span struct{ start, end int }

// originalOffset returns the original offset of an offset in the normal form.
func (n *normalText) originalOffset(i int) int { return originalOffset(n.at, i) }

// originalOffset returns the original offset of byte i; unchanged if at is nil.
func originalOffset(at []int32, i int) int {
	switch {
	case at == nil:
		return i
	case i < len(at):
		return int(at[i])
	case len(at) > 0:
		return int(at[len(at)-1]) + 1
	}
	return 0
}

// normalize normalizes a text.
func (n *normalText) normalize(text string) {
	n.lower, n.cased, n.at = n.lower[:0], n.cased[:0], n.at[:0]
	n.marks = normalizationMarks{}
	if isPrintableASCII(text) {
		n.cased = append(n.cased, text...)
		n.lower = append(n.lower, text...)
		lowerASCIIInPlace(n.lower)
		n.at = nil
		return
	}
	if n.at == nil {
		n.at = make([]int32, 0, len(text))
	}
	w := mixedScriptDetector{}
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if kind := hiddenCharacterKindOf(r); kind != 0 {
			n.addHidden(r, kind, i, size)
		} else {
			n.appendRune(r, i)
			w.addRune(n, r, i, size)
		}
		i += size
	}
	w.endWord(n)
	n.lower = append(n.lower, n.cased...)
	lowerASCIIInPlace(n.lower)
}

func (n *normalText) addHidden(r rune, kind hiddenCharacterKind, i, size int) {
	m := &n.marks
	if last := len(m.hidden) - 1; last >= 0 && m.hidden[last].end == i {
		m.hidden[last].end += size
		m.hidden[last].kinds |= kind
		m.hidden[last].runes++
	} else {
		m.hidden = append(m.hidden, hiddenRun{i, i + size, kind, 1})
	}
	switch {
	case r >= 0xE0020 && r <= 0xE007E:
		m.smuggled = append(m.smuggled, byte(r-0xE0000))
	case r >= 0xFE00 && r <= 0xFE0E:
		m.smuggled = append(m.smuggled, byte(r-0xFE00))
	case r >= 0xE0100 && r <= 0xE01EF:
		m.smuggled = append(m.smuggled, byte(r-0xE0100+16))
	}
}

// hiddenCharacterKindOf returns the kind of an invisible character, 0 for a visible one.
func hiddenCharacterKindOf(r rune) hiddenCharacterKind {
	switch {
	case r == '\n' || r == '\t' || r == '\r' || r >= ' ' && r < 0x7f:
		return 0
	case r < ' ' || r >= 0x7f && r < 0xa0:
		return control
	case r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x200e || r == 0x200f || r == 0x61c:
		return bidi
	case r >= 0x200b && r <= 0x200d || r >= 0x2060 && r <= 0x2065 || r == 0xfeff || r == 0xad || r == 0x180e || r == 0x34f,
		r >= 0x206a && r <= 0x206f, r == 0x115f || r == 0x1160 || r == 0x3164 || r == 0xffa0 || r == 0x17b4 || r == 0x17b5,
		r >= 0xfff9 && r <= 0xfffb, r >= 0x1d173 && r <= 0x1d17a:
		return zeroWidth
	case r >= 0xE0000 && r <= 0xE007F:
		return tags
	case r >= 0xFE00 && r <= 0xFE0F || r >= 0xE0100 && r <= 0xE01EF || r >= 0x180b && r <= 0x180d:
		return selectors
	case r >= 0xE000 && r <= 0xF8FF || r >= 0xF0000 && r <= 0x10FFFD:
		return private
	}
	return 0
}

// appendRune appends the look-alike of a character.
func (n *normalText) appendRune(r rune, i int) {
	if r < utf8.RuneSelf {
		n.appendBothCases(r, i)
		return
	}
	if folded := latinLookAlike(r); folded != 0 {
		n.appendBothCases(folded, i)
		return
	}
	if unicode.IsSpace(r) || unicode.Is(unicode.Zs, r) {
		n.appendBothCases(' ', i)
		return
	}
	if unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Me, r) {
		return
	}
	var buf [utf8.UTFMax]byte
	size := utf8.EncodeRune(buf[:], r)
	parts := norm.NFKD.Properties(buf[:size]).Decomposition()
	if parts == nil || unicode.Is(unicode.Hangul, r) {
		n.appendBothCases(r, i)
		return
	}
	for len(parts) > 0 {
		p, size := utf8.DecodeRune(parts)
		parts = parts[size:]
		if folded := latinLookAlike(p); folded != 0 {
			p = folded
		}
		if !unicode.Is(unicode.Mn, p) {
			n.appendBothCases(p, i)
		}
	}
}

func (n *normalText) appendBothCases(r rune, i int) {
	if r >= utf8.RuneSelf {
		r = unicode.ToLower(r)
	}
	n.cased = utf8.AppendRune(n.cased, r)
	for len(n.at) < len(n.cased) {
		n.at = append(n.at, int32(i))
	}
}

// mixedScriptDetector finds words in which letters of other alphabets replace Latin ones.
type mixedScriptDetector struct {
	start                     int
	latin, lookalike, foreign int // numbers of letters: Latin, look-alikes of another alphabet, others
	last                      int
}

func (w *mixedScriptDetector) addRune(n *normalText, r rune, i, size int) {
	if !unicode.IsLetter(r) && !unicode.Is(unicode.So, r) || unicode.Is(unicode.Han, r) {
		w.endWord(n)
		return
	}
	if w.latin+w.lookalike+w.foreign == 0 {
		w.start = i
	}
	w.last = i + size
	switch {
	case r < utf8.RuneSelf:
		w.latin++
	case !unicode.Is(unicode.Latin, r) && latinLookAlike(r) != 0:
		w.lookalike++
	case !unicode.Is(unicode.Latin, r):
		w.foreign++
	}
}

func (w *mixedScriptDetector) endWord(n *normalText) {
	if w.lookalike > 0 && w.latin > 0 && w.latin+w.lookalike > 2 && w.foreign == 0 {
		n.marks.folded = append(n.marks.folded, span{w.start, w.last})
	}
	*w = mixedScriptDetector{}
}
