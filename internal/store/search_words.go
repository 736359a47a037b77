package store

import (
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The text search finds words, which are runs of letters and digits in lower case. Words that one of -_./:@ joins, as
// in create_issue, needle-7 or src/main.go, are also indexed as pairs (create_issue; src/main, main.go). So a search
// for a joined word does not match records that contain its parts in different places. Each Chinese or Japanese
// character is a word that is joined to the next one.

const (
	maxWord = 64 // bytes; longer words are cut, in texts and in searches
	joiners = "-_./:@"
)

// wordSplitter splits texts into words. It passes every word and every pair to emit. The slice is valid until emit
// returns.
type wordSplitter struct {
	emit func(word []byte, pair bool)

	word  []byte // the current word
	pair  []byte // the previous word and its joiner; empty if the current word is not joined to it
	whole []byte // reused memory
}

// splitText splits plain text.
func (s *wordSplitter) splitText(t []byte) { s.split(t, false) }

// splitJSON splits the names and values of JSON, and decodes the escapes of strings. JSON inside a string is escaped
// twice, so a letter after a backslash may belong to an escape such as \n or to a word. Words with and without this
// letter are indexed.
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

// readEscape reads a JSON escape and returns its length.
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
	default: // a control character or a quote
		s.endWord()
	}
	return 2
}

// readInnerEscape reads the text after an escaped backslash. It may be an escape of JSON inside the string.
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
	return 1 // the rest is read again, as in \nnew
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
		s.startPair() // joined to the previous word without a joining character
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

// endWordAtJoiner ends a word that the joiner c connects to the next word.
func (s *wordSplitter) endWordAtJoiner(c byte) {
	if len(s.word) == 0 { // a leading joiner, or two joiners in a row
		s.pair = s.pair[:0]
		return
	}
	s.startPair()
	s.pair = append(s.pair, c)
}

// startPair ends a word, and uses it as the first half of a pair.
func (s *wordSplitter) startPair() {
	if len(s.word) == 0 {
		return
	}
	s.emitWord()
	s.pair = append(s.pair[:0], s.word...)
	s.word = s.word[:0]
}

// endWord ends a word that is not joined to the next word.
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

// searchTerm is one term of a search: a word or a pair, or a prefix of words or pairs.
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

// requiredBytes returns bytes that the lower case form of each matching text contains, or nil if there are none. They
// are only a part of the term, because joiners can be escaped, other scripts can have several lower case forms, and
// long words are cut.
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

// maxTerms limits the work of one search.
const maxTerms = 32

// parseSearchTerms parses a search. A record must contain all of its words. A word that ends with * is a prefix.
func parseSearchTerms(search string) []searchTerm {
	var terms []searchTerm
	for _, w := range strings.Fields(search) {
		stem, prefix := strings.CutSuffix(w, "*")
		terms = append(terms, termsOfWord(stem, prefix)...)
	}
	return terms[:min(len(terms), maxTerms)]
}

// termsOfWord returns the terms for one word of a search. For a joined word, the terms are its pairs, which are more
// specific than its parts. Otherwise the term is the word itself.
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
