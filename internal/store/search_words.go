package store

import (
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The text search knows words: runs of letters and digits, in lower case. Words
// that one of -_./:@ joins, as in create_issue, needle-7 or src/main.go, are
// also kept in pairs (create_issue; src/main, main.go), so that a joined word is
// found as it was written and not as its parts somewhere. Chinese and Japanese
// characters are words of their own, each joined to the next.

const (
	maxWord = 64 // bytes; what is longer is cut, in texts and in searches alike
	joiners = "-_./:@"
)

// wordSplitter takes texts apart. emit gets every word and every pair; the slice is
// valid until it returns.
type wordSplitter struct {
	emit func(word []byte, pair bool)

	word  []byte // the word that is being read
	pair  []byte // the word before, and what joins it to this one; empty when nothing does
	whole []byte // scratch
}

// splitText splits plain text.
func (s *wordSplitter) splitText(t []byte) { s.split(t, false) }

// splitJSON splits JSON: names and values, with the escapes of its strings undone.
// Text inside of text has its escapes twice, so what could be the letter of one
// (the n of \n) is left out of the word as well as taken into it.
func (s *wordSplitter) splitJSON(t []byte) { s.split(t, true) }

func (s *wordSplitter) split(t []byte, escapes bool) {
	for i := 0; i < len(t); {
		c := t[i]
		switch {
		case c == '\\' && escapes && i+1 < len(t):
			i += s.readEscape(t[i:])
		case c < utf8.RuneSelf:
			s.addASCII(c)
			i++
		default:
			r, size := utf8.DecodeRune(t[i:])
			s.addRune(r)
			i += size
		}
	}
	s.endWord()
}

// readEscape reads an escape of JSON, and returns how long it is.
func (s *wordSplitter) readEscape(t []byte) int {
	switch c := t[1]; c {
	case 'u':
		if len(t) < 6 {
			s.endWord()
			return len(t)
		}
		var b [2]byte
		if _, err := hex.Decode(b[:], t[2:6]); err != nil {
			s.endWord()
			return 2
		}
		s.addRune(rune(b[0])<<8 | rune(b[1]))
		return 6
	case '\\':
		return 2 + s.readInnerEscape(t[2:])
	case '/':
		s.addASCII('/')
	default: // a control character, or a quote
		s.endWord()
	}
	return 2
}

// readInnerEscape reads what follows an escaped backslash: an escape of the text inside,
// perhaps.
func (s *wordSplitter) readInnerEscape(t []byte) int {
	s.endWord()
	if len(t) == 0 || !strings.ContainsRune("nrtbf", rune(t[0])) {
		return 0
	}
	n := 1
	for n < len(t) && isWordByte(t[n]) {
		n++
	}
	for _, c := range t[:n] { // as in C:\new
		s.addASCII(c)
	}
	s.endWord()
	return 1 // and the rest again, as in \nnew
}

func isWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

func (s *wordSplitter) addASCII(c byte) {
	switch {
	case c >= 'A' && c <= 'Z':
		s.addByte(c + 'a' - 'A')
	case isWordByte(c):
		s.addByte(c)
	case strings.IndexByte(joiners, c) >= 0:
		s.endWordAtJoiner(c)
	default:
		s.endWord()
	}
}

func (s *wordSplitter) addByte(c byte) {
	if len(s.word) < maxWord {
		s.word = append(s.word, c)
	}
}

func (s *wordSplitter) addRune(r rune) {
	switch {
	case r < utf8.RuneSelf:
		s.addASCII(byte(r))
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana):
		s.startPair() // joined to what was before, with nothing between
		s.word = utf8.AppendRune(s.word, r)
		s.startPair()
	case unicode.IsLetter(r), unicode.IsDigit(r), unicode.IsMark(r):
		if len(s.word) < maxWord {
			s.word = utf8.AppendRune(s.word, unicode.ToLower(r))
		}
	default:
		s.endWord()
	}
}

// endWordAtJoiner ends a word that c joins to the next.
func (s *wordSplitter) endWordAtJoiner(c byte) {
	if len(s.word) == 0 { // a joiner at the beginning, or two in a row
		s.pair = s.pair[:0]
		return
	}
	s.startPair()
	s.pair = append(s.pair, c)
}

// nextRecords ends a word and makes it the first of a pair.
func (s *wordSplitter) startPair() {
	if len(s.word) == 0 {
		return
	}
	s.emitWord()
	s.pair = append(s.pair[:0], s.word...)
	s.word = s.word[:0]
}

// prefixEnd ends a word that nothing follows.
func (s *wordSplitter) endWord() {
	if len(s.word) > 0 {
		s.emitWord()
		s.word = s.word[:0]
	}
	s.pair = s.pair[:0]
}

func (s *wordSplitter) emitWord() {
	s.emit(s.word, false)
	if len(s.pair) > 0 {
		s.whole = append(append(s.whole[:0], s.pair...), s.word...)
		s.emit(s.whole, true)
	}
}

// searchTerm is one thing that a search asks for: a word or a pair, or everything that
// begins like it.
type searchTerm struct {
	word   string
	prefix bool
}

func (t searchTerm) matches(word []byte) bool {
	if t.prefix {
		return strings.HasPrefix(string(word), t.word)
	}
	return string(word) == t.word
}

// requiredBytes returns bytes that a text must have, in lower case, to have the term;
// nil when there are none. Joiners can be escaped, letters of other scripts
// have more than one lower case, and a long word is cut.
func (t searchTerm) requiredBytes() []byte {
	longest := ""
	for _, part := range strings.FieldsFunc(t.word, func(r rune) bool { return r < utf8.RuneSelf && !isWordByte(byte(r)) }) {
		if len(part) > len(longest) {
			longest = part
		}
	}
	if longest == "" || strings.IndexFunc(longest, func(r rune) bool { return r >= utf8.RuneSelf }) >= 0 {
		return nil
	}
	return []byte(longest)
}

// maxTerms bounds the work of one search.
const maxTerms = 32

// parseSearchTerms takes a search apart. All its words must be in a record. A word
// that ends in * stands for all that begin with it.
func parseSearchTerms(search string) []searchTerm {
	var terms []searchTerm
	for _, w := range strings.Fields(search) {
		stem, prefix := strings.CutSuffix(w, "*")
		terms = append(terms, termsOfWord(stem, prefix)...)
	}
	return terms[:min(len(terms), maxTerms)]
}

// termsOfWord returns the terms of one word of a search: the word itself, or the
// pairs of a joined one, which say more than its parts.
func termsOfWord(word string, prefix bool) []searchTerm {
	var parts, pairs []searchTerm
	s := wordSplitter{emit: func(w []byte, pair bool) {
		if pair {
			pairs = append(pairs, searchTerm{word: string(w)})
		} else {
			parts = append(parts, searchTerm{word: string(w)})
		}
	}}
	s.splitText([]byte(word))
	terms := append(parts, pairs...)
	if len(pairs) > 0 && len(pairs) == len(parts)-1 {
		terms = pairs
	}
	if prefix && len(terms) > 0 {
		terms[len(terms)-1].prefix = true
	}
	return terms
}
