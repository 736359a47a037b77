package scan

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"mcpproxy/internal/wordlist"
)

// set is a set of words of the lexicon.
type set []uint64

func (s *set) add(id uint16) {
	for len(*s) <= int(id>>6) {
		*s = append(*s, 0)
	}
	(*s)[id>>6] |= 1 << (id & 63)
}

func (s set) has(id uint16) bool {
	return int(id>>6) < len(s) && s[id>>6]&(1<<(id&63)) != 0
}

// element is one word of a pattern.
type element struct {
	words    set
	kinds    wordKind
	gap      int // words that may stand before it
	optional bool
}

func (e *element) matches(w *word) bool {
	return w.id != 0 && e.words.has(w.id) || w.kind&e.kinds != 0
}

// pattern is a sequence of words that a rule looks for.
type pattern struct {
	rule     int
	elements []element
	across   bool // may go on in the next sentence
	mention  bool // is no news where such texts are the subject
}

// A grammar is the patterns of all rules, by the word they begin with.
type grammar struct {
	lex      *lexicon
	rules    []rule
	firstCue int // of the rules; those from here on are cues
	patterns []pattern
	byWord   map[uint16][]int32
	byKind   map[wordKind][]int32
	kinds    wordKind

	detect, label, clause, conjunction set // of mentions
}

var (
	//go:embed concepts.txt
	conceptsText string
	//go:embed rules.txt
	rulesText string
)

// compiled is the grammar of all rules. It is made at the first scan.
var compiled = sync.OnceValue(func() *grammar { return compile(conceptsText, rulesText) })

// compile reads concepts and rules. Its input is the program's own, so that a
// fault is a fault of the program.
func compile(concepts, rules string) *grammar {
	g := &grammar{lex: &lexicon{ids: map[string]uint16{}}, byWord: map[uint16][]int32{}, byKind: map[wordKind][]int32{}}
	sets := map[string]element{}
	for _, concept := range wordlist.Read(concepts) {
		var e element
		for _, w := range concept.Words() {
			g.alternative(&e, w, sets)
		}
		sets["@"+concept.Head] = e
	}
	g.detect, g.label = sets["@detect"].words, sets["@label"].words
	g.clause, g.conjunction = sets["@clause"].words, sets["@conjunction"].words
	for _, patterns := range wordlist.Read(rules) {
		head, reason := parts(patterns.Head)
		where, ok := placesNamed[head[2]]
		if !ok {
			panic("scan: no place is named " + head[2])
		}
		r := rule{name: head[0], reason: reason, places: where}
		switch head[1] {
		case "cue":
		case "weak":
			r.severity, r.weak = SeverityReview, true
			g.firstCue++
		default:
			r.severity = severityNamed(head[1])
			g.firstCue++
		}
		for _, line := range patterns.Lines {
			g.add(len(g.rules), line, sets)
		}
		g.rules = append(g.rules, r)
	}
	g.lex.spell()
	return g
}

func (e *element) join(other element) {
	for len(e.words) < len(other.words) {
		e.words = append(e.words, 0)
	}
	for k, w := range other.words {
		e.words[k] |= w
	}
	e.kinds |= other.kinds
}

// alternative adds one word of a concept or a pattern to an element.
func (g *grammar) alternative(e *element, text string, sets map[string]element) {
	switch text[0] {
	case '@':
		concept, ok := sets[text]
		if !ok {
			panic("scan: no concept is named " + text)
		}
		e.join(concept)
	case '#':
		kind := kindsNamed[text]
		if kind == 0 {
			panic("scan: no kind of word is named " + text)
		}
		e.kinds |= kind
	default:
		for _, form := range forms(text) {
			if isPlain(form) { // and small: its own normal form
				e.words.add(g.lex.intern(form))
				continue
			}
			var n normal
			for _, spelling := range []string{form, capitalized(form)} { // a capital may look like another letter than the small one
				n.read(spelling)
				e.words.add(g.lex.intern(string(n.lower)))
			}
		}
	}
}

// kindsNamed are the kinds of what stands for a word, by the names that patterns
// use.
var kindsNamed = map[string]wordKind{
	"#url": isURL, "#email": isEmail, "#secret": isSecretFile, "#path": isPath | isSecretFile, "#ident": isIdentifier,
}

func capitalized(word string) string {
	r, size := utf8.DecodeRuneInString(word)
	return string(unicode.ToUpper(r)) + word[size:]
}

// forms returns the forms of a word: of a verb (marked by *) and of a noun
// (marked by +).
func forms(text string) []string {
	stem := strings.TrimRight(text, "*+")
	short := strings.TrimSuffix(stem, "e")
	consonantY := strings.HasSuffix(stem, "y") && !strings.ContainsAny(stem[len(stem)-2:len(stem)-1], "aeiou")
	hisses := strings.HasSuffix(stem, "s") || strings.HasSuffix(stem, "sh") || strings.HasSuffix(stem, "ch") || strings.HasSuffix(stem, "x")
	plural := stem + "s"
	switch {
	case consonantY:
		plural = stem[:len(stem)-1] + "ies"
	case hisses:
		plural = stem + "es"
	}
	switch {
	case strings.HasSuffix(text, "+"):
		return []string{stem, plural}
	case !strings.HasSuffix(text, "*"):
		return []string{text}
	case consonantY:
		return []string{stem, plural, stem[:len(stem)-1] + "ied", stem + "ing"}
	}
	double := stem + stem[len(stem)-1:]
	return []string{stem, plural, short + "ed", short + "ing", double + "ed", double + "ing"}
}

func (g *grammar) add(rule int, line string, sets map[string]element) {
	p := pattern{rule: rule}
	gap := 0
	scratch := make(set, 0, 128) // grows but here
	for _, text := range strings.Fields(line) {
		switch text {
		case "^":
			p.across = true
			continue
		case "~":
			p.mention = true
			continue
		}
		if n, ok := strings.CutPrefix(text, ".."); ok {
			var err error
			if gap, err = strconv.Atoi(n); err != nil {
				panic(fmt.Sprintf("scan: pattern %q: %v", line, err))
			}
			continue
		}
		optional := text[0] == '?'
		e := element{gap: gap, optional: optional, words: scratch[:0]}
		for a := range strings.SplitSeq(strings.TrimPrefix(text, "?"), "|") {
			g.alternative(&e, a, sets)
		}
		e.words = slices.Clone(e.words)
		p.elements = append(p.elements, e)
		gap = 0
	}
	index := int32(len(g.patterns))
	g.patterns = append(g.patterns, p)
	first := p.elements[0]
	for id := range uint16(len(first.words) * 64) {
		if first.words.has(id) {
			g.byWord[id] = append(g.byWord[id], index)
		}
	}
	for kind := wordKind(1); kind != 0; kind <<= 1 {
		if first.kinds&kind != 0 {
			g.byKind[kind] = append(g.byKind[kind], index)
			g.kinds |= kind
		}
	}
}

// matcher tries patterns. Its budget bounds the work: words can be arranged so
// that trying all ways takes for ever.
type matcher struct {
	words  []word
	budget int
}

// match returns where a pattern that begins at words[i] ends, or 0.
func (m *matcher) match(p *pattern, i int) int {
	return m.rest(after(m.words, i, &p.elements[0]), p.elements[1:], p.across)
}

func (m *matcher) rest(i int, rest []element, across bool) int {
	if len(rest) == 0 {
		return i
	}
	e := &rest[0]
	gap := e.gap
	for k := i; k < len(m.words) && (across || !m.words[k].begins) && m.budget > 0; k++ {
		m.budget--
		if e.matches(&m.words[k]) {
			if end := m.rest(after(m.words, k, e), rest[1:], across); end > 0 {
				return end
			}
		}
		if !m.words[k].inner {
			if gap--; gap < 0 {
				break
			}
		}
	}
	if e.optional {
		return m.rest(i, rest[1:], across)
	}
	return 0
}

// after returns the number of the word after words[i], which an element
// matched: an identifier is matched as a whole.
func after(words []word, i int, e *element) int {
	whole := words[i].kind&e.kinds&isIdentifier != 0
	for i++; whole && i < len(words) && words[i].inner; i++ {
	}
	return i
}
