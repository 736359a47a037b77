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

	"mcpproxy/internal/sectionfile"
)

// wordSet is a set of words of the lexicon.
type wordSet []uint64

func (s *wordSet) add(id uint16) {
	for len(*s) <= int(id>>6) {
		*s = append(*s, 0)
	}
	(*s)[id>>6] |= 1 << (id & 63)
}

func (s wordSet) has(id uint16) bool {
	return int(id>>6) < len(s) && s[id>>6]&(1<<(id&63)) != 0
}

// patternElement is one word of a pattern.
type patternElement struct {
	words    wordSet
	kinds    specialWordKind
	gap      int // maximum words before it
	optional bool
}

func (e *patternElement) matchesWord(w *textWord) bool {
	return w.id != 0 && e.words.has(w.id) || w.kind&e.kinds != 0
}

// rulePattern is a sequence of words that a rule matches.
type rulePattern struct {
	rule            int
	elements        []patternElement
	acrossSentences bool // may continue in the next sentence
	mayBeMention    bool // may be a mention rather than an instruction
	mayBeOwn        bool // may be what the tool says of itself with its first word
}

// A patternIndex has the patterns of all rules, indexed by first word.
type patternIndex struct {
	lex      *lexicon
	rules    []scanRule
	firstCue int // index of the first cue rule
	patterns []rulePattern
	byWord   map[uint16][]int32
	byKind   map[specialWordKind][]int32
	kinds    specialWordKind

	detect, label, clause, conjunction wordSet // for mentions
	negation, lifting, telling         wordSet // for prohibitions
	condition, calling, user           wordSet
	quantity, universal                wordSet // for the tools and questions that an order is about
}

var (
	//go:embed concepts.txt
	conceptsText string
	//go:embed rules.txt
	rulesText string
)

// defaultGrammar is the grammar of all rules, compiled at the first scan.
var defaultGrammar = sync.OnceValue(func() *patternIndex { return compilePatternIndex(conceptsText, rulesText) })

// compilePatternIndex compiles concepts and rules. It panics on an error, because its input is
// embedded.
func compilePatternIndex(concepts, rules string) *patternIndex {
	g := &patternIndex{lex: &lexicon{ids: map[string]uint16{}}, byWord: map[uint16][]int32{}, byKind: map[specialWordKind][]int32{}}
	sets := map[string]patternElement{}
	for _, concept := range sectionfile.Parse(concepts) {
		var e patternElement
		for _, w := range concept.Words() {
			g.addAlternative(&e, w, sets)
		}
		sets["@"+concept.Head] = e
	}
	g.detect, g.label = sets["@detect"].words, sets["@label"].words
	g.clause, g.conjunction = sets["@clause"].words, sets["@conjunction"].words
	g.negation, g.lifting, g.condition = sets["@negation"].words, sets["@lifting"].words, sets["@condition"].words
	g.calling, g.user = sets["@call"].words, sets["@user"].words
	g.telling, g.quantity, g.universal = sets["@telling"].words, sets["@quantity"].words, sets["@universal"].words
	for _, patterns := range sectionfile.Parse(rules) {
		head, reason := splitRuleHead(patterns.Head)
		where, ok := stringKindsByName[head[2]]
		if !ok {
			panic("scan: no place is named " + head[2])
		}
		r := scanRule{name: head[0], reason: reason, places: where}
		switch head[1] {
		case "cue":
		case "weak", "faint":
			r.severity, r.weak, r.faint = SeverityReview, true, head[1] == "faint"
			g.firstCue++
		default:
			r.severity = parseSeverity(head[1])
			g.firstCue++
		}
		for _, line := range patterns.Lines {
			g.addRuleLine(len(g.rules), line, sets)
		}
		g.rules = append(g.rules, r)
	}
	g.lex.addDisguisedSpellings()
	return g
}

func (e *patternElement) mergeWith(other patternElement) {
	for len(e.words) < len(other.words) {
		e.words = append(e.words, 0)
	}
	for k, w := range other.words {
		e.words[k] |= w
	}
	e.kinds |= other.kinds
}

// addAlternative adds one word of a concept or pattern to an element.
func (g *patternIndex) addAlternative(e *patternElement, text string, sets map[string]patternElement) {
	switch text[0] {
	case '@':
		concept, ok := sets[text]
		if !ok {
			panic("scan: no concept is named " + text)
		}
		e.mergeWith(concept)
	case '#':
		kind := kindsByName[text]
		if kind == 0 {
			panic("scan: no kind of word is named " + text)
		}
		e.kinds |= kind
	default:
		for _, form := range wordForms(text) {
			if isPrintableASCII(form) { // already normalized
				e.words.add(g.lex.addWord(form))
				continue
			}
			var n normalText
			for _, spelling := range []string{form, capitalize(form)} { // an upper-case letter may resemble another character
				n.normalize(spelling)
				e.words.add(g.lex.addWord(string(n.lower)))
			}
		}
	}
}

// kindsByName are the word kinds by their names in patterns.
var kindsByName = map[string]specialWordKind{
	"#url": isURL, "#email": isEmail, "#secret": isSecretFile, "#path": isPath | isSecretFile, "#ident": isIdentifier,
}

func capitalize(word string) string {
	r, size := utf8.DecodeRuneInString(word)
	return string(unicode.ToUpper(r)) + word[size:]
}

// wordForms returns the forms of a word: of a verb (marked by *) and of a noun (marked by
// +).
func wordForms(text string) []string {
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

func (g *patternIndex) addRuleLine(rule int, line string, sets map[string]patternElement) {
	p := rulePattern{rule: rule}
	gap := 0
	scratch := make(wordSet, 0, 128) // grows only here
	for _, text := range strings.Fields(line) {
		switch text {
		case "^":
			p.acrossSentences = true
			continue
		case "~":
			p.mayBeMention = true
			continue
		case "=":
			p.mayBeOwn = true
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
		e := patternElement{gap: gap, optional: optional, words: scratch[:0]}
		for a := range strings.SplitSeq(strings.TrimPrefix(text, "?"), "|") {
			g.addAlternative(&e, a, sets)
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
	for kind := specialWordKind(1); kind != 0; kind <<= 1 {
		if first.kinds&kind != 0 {
			g.byKind[kind] = append(g.byKind[kind], index)
			g.kinds |= kind
		}
	}
}

// patternMatcher matches patterns. Its budget bounds backtracking.
type patternMatcher struct {
	words  []textWord
	budget int
}

// matchAt returns the end of a pattern that begins at words[i], or 0.
func (m *patternMatcher) matchAt(p *rulePattern, i int) int {
	return m.matchRest(indexAfterWord(m.words, i, &p.elements[0]), p.elements[1:], p.acrossSentences)
}

func (m *patternMatcher) matchRest(i int, rest []patternElement, across bool) int {
	if len(rest) == 0 {
		return i
	}
	e := &rest[0]
	gap := e.gap
	for k := i; k < len(m.words) && (across || !m.words[k].begins) && m.budget > 0; k++ {
		m.budget--
		if e.matchesWord(&m.words[k]) {
			if end := m.matchRest(indexAfterWord(m.words, k, e), rest[1:], across); end > 0 {
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
		return m.matchRest(i, rest[1:], across)
	}
	return 0
}

// indexAfterWord returns the index after words[i], which an element matched: an identifier is
// matched as a whole.
func indexAfterWord(words []textWord, i int, e *patternElement) int {
	whole := words[i].kind&e.kinds&isIdentifier != 0
	for i++; whole && i < len(words) && words[i].inner; i++ {
	}
	return i
}
