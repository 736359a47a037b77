package scan

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// textWord is one word of a text, or an address, path or identifier.
type textWord struct {
	start, end int32  // in the normal form
	id         uint16 // in the lexicon; 0 if unknown
	kind       specialWordKind
	begins     bool // a sentence
	inner      bool // a further part of an identifier
}

type specialWordKind uint8

const (
	isURL specialWordKind = 1 << iota
	isEmail
	isSecretFile // a file with secrets
	isPath
	isIdentifier // a tool-like name: two words joined by an underscore
)

// splitWords splits the normal form into words. Names (camel) are also split at upper-case
// letters.
func (n *normalText) splitWords(words []textWord, lex *lexicon, camel bool) []textWord {
	p := wordSplitter{n: n, lex: lex, camel: camel, words: words[:0], begins: true}
	for p.i < len(n.lower) {
		p.splitNext()
	}
	return p.words
}

type wordSplitter struct {
	n      *normalText
	lex    *lexicon
	camel  bool
	words  []textWord
	i      int
	begins bool
}

func (p *wordSplitter) splitNext() {
	t := p.n.lower
	c := t[p.i]
	if p.i == 0 || isChunkStart(t[p.i-1]) {
		if p.readChunk() {
			return
		}
	}
	switch {
	case isWordByte(c):
		p.readWord()
	case c == '.' || c == '!' || c == '?' || c == ';':
		if p.i++; p.i == len(t) || t[p.i] == ' ' || t[p.i] == '\n' || t[p.i] == '\t' {
			p.begins = p.begins || p.i < 4 || t[p.i-3] != '.' // e.g., i.e.
		}
	case c == '\n':
		p.i++
		next := bytes.TrimLeft(t[p.i:], " ")
		p.begins = p.begins || len(next) > 0 && bytes.IndexByte([]byte("\n-*<"), next[0]) >= 0
	default:
		p.i++
	}
}

// isChunkStart reports whether a chunk (text between spaces or quotes) may begin after c.
func isChunkStart(c byte) bool {
	return c <= ' ' || c == '"' || c == '\'' || c == '`' || c == '(' || c == '<' || c == '[' || c == '=' || c == ':' || c == ',' || c == '{' || c == '|' || c == '>'
}

func isChunkEnd(c byte) bool {
	return c <= ' ' || c == '"' || c == '\'' || c == '`' || c == '(' || c == ')' || c == '<' || c == '>' || c == ']' || c == ',' || c == ';' || c == '}' || c == '|'
}

// maxChunk bounds one address or path.
const maxChunk = 256

// readChunk reads an address or path as one word.
func (p *wordSplitter) readChunk() bool {
	t := p.n.lower
	end, special := p.i, false
	for ; end < min(len(t), p.i+maxChunk) && !isChunkEnd(t[end]); end++ {
		switch t[end] {
		case '/', '\\', '.', '@', '~', '_', '$':
			special = true
		}
	}
	if !special {
		return false
	}
	for end > p.i && (t[end-1] == '.' || t[end-1] == ':' || t[end-1] == '!' || t[end-1] == '?') {
		end--
	}
	kind := addressOrPathKind(t[p.i:end])
	if kind == 0 {
		return false
	}
	p.emitWord(p.i, end, 0, kind, false)
	p.i = end
	return true
}

// readWord reads a word; an identifier gives its parts.
func (p *wordSplitter) readWord() {
	t := p.n.lower
	start := p.i
	parts := 0
	for p.i < len(t) && isWordByte(t[p.i]) {
		if t[p.i] >= utf8.RuneSelf {
			r, size := utf8.DecodeRune(t[p.i:])
			if unicode.Is(unicode.Han, r) || unicode.Is(unicode.Hiragana, r) || unicode.Is(unicode.Katakana, r) || unicode.Is(unicode.Hangul, r) {
				p.emitPart(start, p.i, &parts)
				p.readUnspaced(size)
				start = p.i
				continue
			}
			if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
				p.emitPart(start, p.i, &parts)
				p.i += size
				start = p.i
				continue
			}
			p.i += size
			continue
		}
		if p.camel && p.i > start && isUpper(p.n.cased[p.i]) && !isUpper(p.n.cased[p.i-1]) {
			p.emitPart(start, p.i, &parts)
			start = p.i
		}
		p.i++
		if p.i+1 < len(t) && t[p.i] == '\'' && isWordByte(t[p.i+1]) && !p.isQuoteEnd(p.i+1) {
			p.i++
		}
		if p.i+1 < len(t) && t[p.i] == '_' && isWordByte(t[p.i+1]) {
			p.emitPart(start, p.i, &parts)
			p.i++
			start = p.i
		}
	}
	p.emitPart(start, p.i, &parts)
}

// isQuoteEnd reports whether the text after an apostrophe is longer than a suffix ('s, 't,
// 're).
func (p *wordSplitter) isQuoteEnd(i int) bool {
	n := 0
	for i+n < len(p.n.lower) && isWordByte(p.n.lower[i+n]) {
		n++
	}
	return n > 2
}

func (p *wordSplitter) emitPart(start, end int, parts *int) {
	if end <= start {
		return
	}
	if *parts++; *parts == 2 && len(p.words) > 0 {
		p.words[len(p.words)-1].kind |= isIdentifier
	}
	p.emitWord(start, end, p.lex.idOf(p.n.lower[start:end]), 0, *parts > 1)
}

// readUnspaced reads a word of a script without spaces: a known word, or a single character.
func (p *wordSplitter) readUnspaced(size int) {
	rest := p.n.lower[p.i:]
	for n := min(len(rest), p.lex.longest); n > size; n-- {
		if id := p.lex.idOf(rest[:n]); id != 0 {
			p.emitWord(p.i, p.i+n, id, 0, false)
			p.i += n
			return
		}
	}
	p.emitWord(p.i, p.i+size, p.lex.idOf(rest[:size]), 0, true)
	p.i += size
}

func (p *wordSplitter) emitWord(start, end int, id uint16, kind specialWordKind, inner bool) {
	p.words = append(p.words, textWord{int32(start), int32(end), id, kind, p.begins, inner})
	p.begins = false
}

// lexicon has the words of all patterns.
type lexicon struct {
	ids       map[string]uint16
	longest   int // longest word of a script without spaces, in bytes
	disguised map[string]disguiseKind
}

// disguiseKind is how a lexicon word is disguised.
type disguiseKind uint8

const (
	reversedWord disguiseKind = iota + 1
	rotatedWord
)

// addDisguisedSpellings fills disguised.
func (l *lexicon) addDisguisedSpellings() {
	l.disguised = map[string]disguiseKind{}
	for w := range l.ids {
		if len(w) < 4 || !isPrintableASCII(w) {
			continue
		}
		back, turned := []byte(w), []byte(w)
		slices.Reverse(back)
		for k, c := range turned {
			turned[k] = rot13Letter(c)
		}
		if l.ids[string(back)] == 0 {
			l.disguised[string(back)] = reversedWord
		}
		if l.ids[string(turned)] == 0 && l.disguised[string(turned)] == 0 {
			l.disguised[string(turned)] = rotatedWord
		}
	}
}

func (l *lexicon) idOf(word []byte) uint16 { return l.ids[string(word)] }

func (l *lexicon) addWord(word string) uint16 {
	if id, ok := l.ids[word]; ok {
		return id
	}
	id := uint16(len(l.ids) + 1)
	l.ids[word] = id
	if word[0] >= 0xe3 {
		l.longest = max(l.longest, len(word))
	}
	return id
}

// addressOrPathKind returns the kind of an address or path, or 0.
func addressOrPathKind(c []byte) specialWordKind {
	for _, scheme := range wordLists().schemes {
		if bytes.HasPrefix(c, []byte(scheme)) && len(c) > len(scheme) {
			return isURL
		}
	}
	if at := bytes.IndexByte(c, '@'); at > 0 && bytes.IndexByte(c[at:], '.') > 1 {
		return isEmail
	}
	if isSecretPath(c) {
		return isSecretFile
	}
	if len(c) > 2 && (c[0] == '/' && isWordByte(c[1]) && bytes.IndexByte(c[1:], '/') > 0 || c[0] == '~' && c[1] == '/' && (c[2] == '.' || bytes.IndexByte(c[2:], '/') > 0)) {
		return isPath
	}
	return 0
}

// isSecretPath reports whether a path is a file with credentials.
func isSecretPath(c []byte) bool {
	for _, public := range []string{".pub", ".example", ".sample", ".template"} {
		if bytes.HasSuffix(c, []byte(public)) {
			return false
		}
	}
	for _, f := range wordLists().certain {
		if bytes.Contains(c, []byte(f)) {
			return true
		}
	}
	for _, f := range wordLists().secretFiles {
		if strings.HasSuffix(f, "/") {
			if bytes.Contains(c, []byte(f)) {
				return true
			}
		} else if bytes.HasSuffix(c, []byte(f)) {
			rest := len(c) - len(f)
			if rest == 0 || f[0] == '/' || f[0] == '.' && (c[rest-1] == '/' || f == ".pem" || f == ".p12" || f == ".pfx" || f == ".kdbx") || c[rest-1] == '/' || c[rest-1] == '.' {
				return true
			}
		}
	}
	return false
}
