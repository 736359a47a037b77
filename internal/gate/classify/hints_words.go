package classify

import (
	_ "embed"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"mcpproxy/internal/sectionfile"
)

// wordEffect is the effect that a word implies.
type wordEffect uint8

// The effects, from the least to the most dangerous. A word has one effect, in one form.
const (
	noRole   wordEffect = iota
	reads               // get, list: reads only
	mayWrite            // post, update, order: changes something as a verb, not as a noun
	writes              // create, send: changes something
	runs                // execute, eval: runs its input
	destroys            // delete, purge: deletes or is irreversible
)

// roleNames are the headings of the verb sections in hints.txt.
var roleNames = [...]string{reads: "reads", mayWrite: "may write", writes: "writes", runs: "runs", destroys: "destroys"}

// verbForm is the form of a verb. A participle describes a thing rather than the tool.
type verbForm uint8

const (
	base       verbForm = iota // delete
	third                      // deletes
	gerund                     // deleting
	participle                 // deleted
)

// wordTrait is another property of a word. Each trait is a section of hints.txt.
type wordTrait uint8

const (
	codeWord wordTrait = iota
	language
	scripting
	written
	vessel
	plain
	harmlessWords
	joining
	spoken
	namespace
	asking
	listLike
	changer
	making
	filler
	subject
	leader
	passive
	negation
	final
	adjective
	state
	smallChange
	neutral
	changing
	action
)

// traitNames are the headings of the trait sections.
var traitNames = [...]string{
	codeWord: "code", language: "language", scripting: "scripting", written: "written", vessel: "vessel", plain: "plain", harmlessWords: "harmless", joining: "joining", spoken: "spoken", namespace: "namespace", asking: "asking", listLike: "list-like",
	changer: "changer", making: "making", filler: "filler", subject: "subject", leader: "leader", passive: "passive", negation: "negation",
	final: "final", adjective: "adjective", state: "state", smallChange: "small change", neutral: "neutral", changing: "changing", action: "action",
}

// lexiconEntry is the lexicon entry of a word.
type lexiconEntry struct {
	role   wordEffect
	form   verbForm
	traits uint32 // bit set
}

func (w lexiconEntry) has(t wordTrait) bool { return w.traits>>t&1 == 1 }

// hasTrait reports whether a word has a trait.
func hasTrait(w string, t wordTrait) bool { return lexicon().words[w].has(t) }

// vocabulary is the parsed hints.txt.
type vocabulary struct {
	words       map[string]lexiconEntry
	participles map[string]string

	deletions, shortDeletions, identifying, idioms []string
}

//go:embed hints.txt
var wordsText string

// lexicon contains all forms of all verbs. If entries conflict, the more dangerous one counts.
var lexicon = sync.OnceValue(func() *vocabulary {
	file := sectionfile.Parse(wordsText)
	l := &vocabulary{
		words: map[string]lexiconEntry{}, participles: map[string]string{}, identifying: file.SectionByHead("identifying").Words(), idioms: file.SectionByHead("idioms").Lines,
		deletions: file.SectionByHead("deletions").Words(), shortDeletions: file.SectionByHead("short deletions").Words(),
	}
	for _, line := range file.SectionByHead("participles").Lines {
		verb, participle, _ := strings.Cut(line, " ")
		l.participles[verb] = participle
	}
	for r := reads; r <= destroys; r++ { // the last entry takes precedence
		for _, v := range file.SectionByHead(roleNames[r]).Words() {
			l.words[v] = lexiconEntry{role: r, form: base}
			l.words[thirdPersonOf(v)] = lexiconEntry{role: r, form: third}
			l.words[gerundOf(v)] = lexiconEntry{role: r, form: gerund}
			if p := l.participleOf(v); p != v {
				l.words[p] = lexiconEntry{role: r, form: participle}
			}
		}
	}
	for i, head := range traitNames {
		for _, v := range file.SectionByHead(head).Words() {
			w := l.words[v]
			w.traits |= 1 << i
			l.words[v] = w
		}
	}
	return l
})

func thirdPersonOf(v string) string {
	switch {
	case strings.HasSuffix(v, "y") && !strings.ContainsAny(v[len(v)-2:len(v)-1], "aeiou"):
		return v[:len(v)-1] + "ies"
	case strings.HasSuffix(v, "s"), strings.HasSuffix(v, "sh"), strings.HasSuffix(v, "ch"), strings.HasSuffix(v, "x"), strings.HasSuffix(v, "z"):
		return v + "es"
	}
	return v + "s"
}

func gerundOf(v string) string {
	switch {
	case doublesLastLetter(v):
		return v + v[len(v)-1:] + "ing"
	case strings.HasSuffix(v, "e") && !strings.HasSuffix(v, "ee"):
		return v[:len(v)-1] + "ing"
	}
	return v + "ing"
}

func (l *vocabulary) participleOf(v string) string {
	switch p, ok := l.participles[v]; {
	case ok:
		return p
	case doublesLastLetter(v):
		return v + v[len(v)-1:] + "ed"
	case strings.HasSuffix(v, "e"):
		return v + "d"
	case strings.HasSuffix(v, "y") && !strings.ContainsAny(v[len(v)-2:len(v)-1], "aeiou"):
		return v[:len(v)-1] + "ied"
	}
	return v + "ed"
}

// doublesLastLetter reports whether a verb doubles its last letter: drop, dropping.
func doublesLastLetter(v string) bool {
	const vowels = "aeiou"
	n := len(v)
	if n < 3 || strings.ContainsAny(v[n-1:], "aeiouwxy") || !strings.ContainsAny(v[n-2:n-1], vowels) || strings.ContainsAny(v[n-3:n-2], vowels) {
		return false
	}
	short := n <= 4 && v != "open" && v != "edit" && v != "join"
	return short || strings.HasSuffix(v, "set") || strings.HasSuffix(v, "submit") || strings.HasSuffix(v, "get") && n > 3
}

// splitIdentifier splits an identifier into lower-case words: snake_case, kebab-case, camelCase, HTTPServer,
// name.space, path/to, v2.
func splitIdentifier(s string, words []string) []string {
	start := -1
	var before rune
	cut := func(end int) {
		if start >= 0 {
			words = append(words, strings.ToLower(s[start:end]))
		}
		start = -1
	}
	for i, r := range s {
		if !unicode.IsLetter(r) && !unicode.Is(unicode.Mn, r) {
			cut(i)
			before = r
			if len(words) >= maxNameWords {
				return words
			}
			continue
		}
		if start >= 0 && unicode.IsUpper(r) && (!unicode.IsUpper(before) || nextIsLower(s[i+utf8.RuneLen(r):])) {
			cut(i)
		}
		if start < 0 {
			start = i
		}
		before = r
	}
	cut(len(s))
	return words
}

// nextIsLower reports whether a lower-case letter follows, so that a new word starts, as at the S of HTTPServer. A
// final plural s, as in URLs, does not count.
func nextIsLower(rest string) bool {
	r, n := utf8.DecodeRuneInString(rest)
	if !unicode.IsLower(r) {
		return false
	}
	after, _ := utf8.DecodeRuneInString(rest[n:])
	return r != 's' || unicode.IsLetter(after)
}

// maxNameWords limits the analyzed words of a name; tool names rarely have more than 6. A tool with a longer name
// does not count as read-only.
const maxNameWords = 32

func hasNonASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return true
		}
	}
	return false
}

// lowerInto writes a word in lower case to scratch. A word that does not fit is not in the lexicon.
func lowerInto(w string, scratch []byte) []byte {
	if len(w) > len(scratch) {
		return nil
	}
	for i := range len(w) {
		c := w[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		scratch[i] = c
	}
	return scratch[:len(w)]
}

func isLetterByte(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' || c >= utf8.RuneSelf }
