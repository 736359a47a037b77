package search

import (
	"slices"
	"unicode"
	"unicode/utf8"
)

// maxText is the maximum length of one text, in bytes. The longest real descriptions have 10 KB.
const maxText = 16 << 10

// maxWord is the maximum length of an indexed word, in bytes. Longer words are keys, hashes and data.
const maxWord = 48

// splitter splits text into words: runs of letters and digits, in lower case without
// diacritics, split where an identifier changes case. It is reused to avoid allocations.
type splitter struct {
	run  []rune // the current run of letters and digits, as written
	word []byte // the word for emit
	emit func(word []byte)
	// plain emits every letter once, without compounds.
	plain bool
	// plurals keeps the s of PRs and VMs.
	plurals bool
}

// splitText emits every word of s.
func (sp *splitter) splitText(s string) {
	sp.run = sp.run[:0]
	for i := 0; i < len(s); {
		r, size := rune(s[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(s[i:])
		}
		i += size
		switch {
		case r < utf8.RuneSelf:
			if isASCIIWordByte(byte(r)) {
				sp.run = append(sp.run, r)
				continue
			}
			if r == '\'' && len(sp.run) > 0 {
				i = skipPossessive(s, i)
			}
		case isInvisible(r):
			continue
		default:
			if r = foldWide(r); isWordRune(r) {
				sp.run = append(sp.run, r)
				continue
			}
		}
		sp.emitRun()
	}
	sp.emitRun()
}

func isASCIIWordByte(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || 'A' <= c && c <= 'Z'
}

func isWordRune(r rune) bool {
	if r < utf8.RuneSelf {
		return isASCIIWordByte(byte(r))
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r)
}

// skipPossessive skips the s of "user's" and the endings of "don't" and "I'm".
func skipPossessive(s string, i int) int {
	j := i
	for j < len(s) && j-i < 3 && isASCIIWordByte(s[j]) {
		j++
	}
	if j < len(s) && isASCIIWordByte(s[j]) {
		return i
	}
	return j
}

// isInvisible reports whether r is invisible (marks, joiners, directions, tags) and must
// not split or hide a word.
func isInvisible(r rune) bool {
	return unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Mn, r)
}

// foldWide converts full-width forms to ASCII.
func foldWide(r rune) rune {
	if 0xFF01 <= r && r <= 0xFF5E {
		return r - 0xFEE0
	}
	return r
}

// emitRun splits the current run into words, and also emits it as one word: GitHub becomes "git", "hub" and "github".
func (sp *splitter) emitRun() {
	run := sp.run
	sp.run = sp.run[:0]
	if len(run) == 0 {
		return
	}
	start := 0
	for i := 1; i < len(run); i++ {
		if isWordBoundary(run, i) {
			sp.emitPiece(run[start:i])
			start = i
		}
	}
	sp.emitPiece(run[start:])
	if start > 0 && !sp.plain && hasCaseBoundary(run) {
		sp.emitWord(run)
	}
}

// isWordBoundary reports whether a new word begins at i: as in getUser and HTTPServer, and between a script with spaces
// and one without.
func isWordBoundary(run []rune, i int) bool {
	a, b := run[i-1], run[i]
	if a < utf8.RuneSelf && b < utf8.RuneSelf && !isUpper(b) {
		return false
	}
	if isUpper(b) {
		if !isUpper(a) {
			return true
		}
		return i+1 < len(run) && isLower(run[i+1]) && !(i+2 == len(run) && run[i+1] == 's') // IDs
	}
	return isUnspacedScript(a) != isUnspacedScript(b)
}

// hasCaseBoundary reports whether a change of case splits a run.
func hasCaseBoundary(run []rune) bool {
	for i := 1; i < len(run); i++ {
		if isWordBoundary(run, i) && !isUnspacedScript(run[i]) && !isUnspacedScript(run[i-1]) {
			return true
		}
	}
	return false
}

func isUpper(r rune) bool {
	if r < utf8.RuneSelf {
		return 'A' <= r && r <= 'Z'
	}
	return unicode.IsUpper(r)
}

func isLower(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z'
	}
	return unicode.IsLower(r)
}

// isUnspacedScript reports whether r belongs to a script without spaces.
func isUnspacedScript(r rune) bool {
	return r >= 0x2E80 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}

// emitPiece emits one word, or the character pairs of a text in a script without spaces. A mix of letters and digits is
// emitted as a whole (base64, s3, v2). Its letters are also emitted if they are a word.
func (sp *splitter) emitPiece(p []rune) {
	if isUnspacedScript(p[0]) {
		if len(p) == 1 {
			sp.emitWord(p)
		}
		for i := 0; i+1 < len(p); i++ {
			sp.emitWord(p[i : i+2])
		}
		return
	}
	if !sp.plurals && isAcronymPlural(p) {
		p = p[:len(p)-1]
	}
	sp.emitWord(p)
	if sp.plain {
		return
	}
	if digit := slices.IndexFunc(p, func(r rune) bool { return '0' <= r && r <= '9' }); digit >= 3 {
		sp.emitWord(p[:digit])
	}
}

func (sp *splitter) emitWord(p []rune) {
	w := sp.word[:0]
	for _, r := range p {
		switch {
		case 'A' <= r && r <= 'Z':
			w = append(w, byte(r)+'a'-'A')
		case r < utf8.RuneSelf:
			w = append(w, byte(r))
		default:
			w = appendFolded(w, unicode.ToLower(r))
		}
	}
	sp.word = w
	if len(w) <= maxWord {
		sp.emit(w)
	}
}

// plainLatin contains the plain letters for U+00DF to U+017F. A space means that the character is kept.
const plainLatin = " aaaaaa ceeeeiiiidnooooo ouuuuy y" +
	"aaaaaaccccccccddddeeeeeeeeeegggggggghhhhiiiiiiiiii  jjkk llllllllll" +
	"nnnnnn   oooooo  rrrrrrssssssssttttttuuuuuuuuuuuuwwyyyzzzzzzs"

func appendFolded(w []byte, r rune) []byte {
	switch i := int(r) - 0xDF; {
	case r == 'ß':
		return append(w, "ss"...)
	case r == 'æ':
		return append(w, "ae"...)
	case i >= 0 && i < len(plainLatin) && plainLatin[i] != ' ':
		return append(w, plainLatin[i])
	}
	return utf8.AppendRune(w, r)
}

func isLowerASCIILetters(word string) bool {
	for i := 0; i < len(word); i++ {
		if word[i] < 'a' || word[i] > 'z' {
			return false
		}
	}
	return true
}

// isAcronymPlural reports whether a word is the plural of an acronym: PRs, VMs.
func isAcronymPlural(p []rune) bool {
	last := len(p) - 1
	return last >= 2 && p[last] == 's' && !slices.ContainsFunc(p[:last], func(r rune) bool { return !isUpper(r) })
}
