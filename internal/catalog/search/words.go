package search

import (
	"slices"
	"unicode"
	"unicode/utf8"
)

// maxText bounds what is read of one text, in bytes. Real ones stay far below: the
// longest descriptions have 10 KB.
const maxText = 16 << 10

// maxWord is the longest word that is indexed, in bytes: longer ones are keys,
// hashes and data, which nobody searches for.
const maxWord = 48

// splitter cuts text into words: runs of letters and digits, in lower case
// and without diacritics, split where an identifier changes case. It is reused,
// so that cutting allocates nothing.
type splitter struct {
	run  []rune // the current run of letters and digits, as written
	word []byte // the word being handed out
	emit func(word []byte)
	// plain hands out every letter once: no word also as a whole.
	plain bool
	// plurals keeps the s of PRs and VMs.
	plurals bool
}

// splitText hands every word of s to emit.
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
			if isASCIIWord(byte(r)) {
				sp.run = append(sp.run, r)
				continue
			}
			if r == '\'' && len(sp.run) > 0 {
				i = skipPossessive(s, i)
			}
		case isInvisible(r):
			continue
		default:
			if r = foldWide(r); isWord(r) {
				sp.run = append(sp.run, r)
				continue
			}
		}
		sp.flush()
	}
	sp.flush()
}

func isASCIIWord(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || 'A' <= c && c <= 'Z'
}

func isWord(r rune) bool {
	if r < utf8.RuneSelf {
		return isASCIIWord(byte(r))
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r)
}

// skipPossessive steps over the s of "user's", and over what an apostrophe
// cuts off in "don't" and "I'm".
func skipPossessive(s string, i int) int {
	j := i
	for j < len(s) && j-i < 3 && isASCIIWord(s[j]) {
		j++
	}
	if j < len(s) && isASCIIWord(s[j]) {
		return i
	}
	return j
}

// isInvisible reports whether r is not seen by a reader and so must not hide a word
// from the index: marks, joiners, directions, tags.
func isInvisible(r rune) bool {
	return unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Mn, r)
}

// foldWide makes full-width forms of ASCII plain.
func foldWide(r rune) rune {
	if 0xFF01 <= r && r <= 0xFF5E {
		return r - 0xFEE0
	}
	return r
}

// flush cuts the current run into words. A run that was cut is also handed out
// as one word: GitHub is "git", "hub" and "github".
func (sp *splitter) flush() {
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

// isWordBoundary reports whether an identifier has a new word at i: getUser, HTTPServer
// and between scripts that are written without spaces and others.
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

// hasCaseBoundary reports whether an identifier was cut where it changes case.
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

// isUnspacedScript reports whether r belongs to a script that is written without spaces.
func isUnspacedScript(r rune) bool {
	return r >= 0x2E80 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}

// partWord hands out one word, or the pairs of characters of a dense script. A
// word that mixes letters and digits is handed out whole (base64, s3, v2) and
// also by its letters when they are a word of their own.
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

// plainLatin has the plain letters of U+00DF to U+017F; a space keeps the
// character as it is.
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

func isLetters(word string) bool {
	for i := 0; i < len(word); i++ {
		if word[i] < 'a' || word[i] > 'z' {
			return false
		}
	}
	return true
}

// isAcronymPlural reports whether a word is written as the plural of an acronym: PRs, VMs.
func isAcronymPlural(p []rune) bool {
	last := len(p) - 1
	return last >= 2 && p[last] == 's' && !slices.ContainsFunc(p[:last], func(r rune) bool { return !isUpper(r) })
}
