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

// splitter takes texts apart. emit gets every word and every pair; the slice is
// valid until it returns.
type splitter struct {
	emit func(word []byte, pair bool)

	word  []byte // the word that is being read
	pair  []byte // the word before, and what joins it to this one; empty when nothing does
	whole []byte // scratch
}

// text splits plain text.
func (s *splitter) text(t []byte) { s.split(t, false) }

// json splits JSON: names and values, with the escapes of its strings undone.
// Text inside of text has its escapes twice, so what could be the letter of one
// (the n of \n) is left out of the word as well as taken into it.
func (s *splitter) json(t []byte) { s.split(t, true) }

func (s *splitter) split(t []byte, escapes bool) {
	for i := 0; i < len(t); {
		c := t[i]
		switch {
		case c == '\\' && escapes && i+1 < len(t):
			i += s.escape(t[i:])
		case c < utf8.RuneSelf:
			s.ascii(c)
			i++
		default:
			r, size := utf8.DecodeRune(t[i:])
			s.rune(r)
			i += size
		}
	}
	s.end()
}

// escape reads an escape of JSON, and returns how long it is.
func (s *splitter) escape(t []byte) int {
	switch c := t[1]; c {
	case 'u':
		if len(t) < 6 {
			s.end()
			return len(t)
		}
		var b [2]byte
		if _, err := hex.Decode(b[:], t[2:6]); err != nil {
			s.end()
			return 2
		}
		s.rune(rune(b[0])<<8 | rune(b[1]))
		return 6
	case '\\':
		return 2 + s.inner(t[2:])
	case '/':
		s.ascii('/')
	default: // a control character, or a quote
		s.end()
	}
	return 2
}

// inner reads what follows an escaped backslash: an escape of the text inside,
// perhaps.
func (s *splitter) inner(t []byte) int {
	s.end()
	if len(t) == 0 || !strings.ContainsRune("nrtbf", rune(t[0])) {
		return 0
	}
	n := 1
	for n < len(t) && isWord(t[n]) {
		n++
	}
	for _, c := range t[:n] { // as in C:\new
		s.ascii(c)
	}
	s.end()
	return 1 // and the rest again, as in \nnew
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

func (s *splitter) ascii(c byte) {
	switch {
	case c >= 'A' && c <= 'Z':
		s.add(c + 'a' - 'A')
	case isWord(c):
		s.add(c)
	case strings.IndexByte(joiners, c) >= 0:
		s.join(c)
	default:
		s.end()
	}
}

func (s *splitter) add(c byte) {
	if len(s.word) < maxWord {
		s.word = append(s.word, c)
	}
}

func (s *splitter) rune(r rune) {
	switch {
	case r < utf8.RuneSelf:
		s.ascii(byte(r))
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana):
		s.next() // joined to what was before, with nothing between
		s.word = utf8.AppendRune(s.word, r)
		s.next()
	case unicode.IsLetter(r), unicode.IsDigit(r), unicode.IsMark(r):
		if len(s.word) < maxWord {
			s.word = utf8.AppendRune(s.word, unicode.ToLower(r))
		}
	default:
		s.end()
	}
}

// join ends a word that c joins to the next.
func (s *splitter) join(c byte) {
	if len(s.word) == 0 { // a joiner at the beginning, or two in a row
		s.pair = s.pair[:0]
		return
	}
	s.next()
	s.pair = append(s.pair, c)
}

// next ends a word and makes it the first of a pair.
func (s *splitter) next() {
	if len(s.word) == 0 {
		return
	}
	s.emitWord()
	s.pair = append(s.pair[:0], s.word...)
	s.word = s.word[:0]
}

// end ends a word that nothing follows.
func (s *splitter) end() {
	if len(s.word) > 0 {
		s.emitWord()
		s.word = s.word[:0]
	}
	s.pair = s.pair[:0]
}

func (s *splitter) emitWord() {
	s.emit(s.word, false)
	if len(s.pair) > 0 {
		s.whole = append(append(s.whole[:0], s.pair...), s.word...)
		s.emit(s.whole, true)
	}
}

// term is one thing that a search asks for: a word or a pair, or everything that
// begins like it.
type term struct {
	word   string
	prefix bool
}

func (t term) matches(word []byte) bool {
	if t.prefix {
		return strings.HasPrefix(string(word), t.word)
	}
	return string(word) == t.word
}

// probe returns bytes that a text must have, in lower case, to have the term;
// nil when there are none. Joiners can be escaped, letters of other scripts
// have more than one lower case, and a long word is cut.
func (t term) probe() []byte {
	longest := ""
	for _, part := range strings.FieldsFunc(t.word, func(r rune) bool { return r < utf8.RuneSelf && !isWord(byte(r)) }) {
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

// parseSearch takes a search apart. All its words must be in a record. A word
// that ends in * stands for all that begin with it.
func parseSearch(search string) []term {
	var terms []term
	for _, w := range strings.Fields(search) {
		stem, prefix := strings.CutSuffix(w, "*")
		terms = append(terms, termsOf(stem, prefix)...)
	}
	return terms[:min(len(terms), maxTerms)]
}

// termsOf returns the terms of one word of a search: the word itself, or the
// pairs of a joined one, which say more than its parts.
func termsOf(word string, prefix bool) []term {
	var parts, pairs []term
	s := splitter{emit: func(w []byte, pair bool) {
		if pair {
			pairs = append(pairs, term{word: string(w)})
		} else {
			parts = append(parts, term{word: string(w)})
		}
	}}
	s.text([]byte(word))
	terms := append(parts, pairs...)
	if len(pairs) > 0 && len(pairs) == len(parts)-1 {
		terms = pairs
	}
	if prefix && len(terms) > 0 {
		terms[len(terms)-1].prefix = true
	}
	return terms
}
