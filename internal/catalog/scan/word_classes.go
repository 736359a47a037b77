package scan

import (
	"bytes"
	_ "embed"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"mcpproxy/internal/sectionfile"
)

// Classes of words (orders.txt) reveal the intents of a sentence, in any language. Examples are taking or giving something, a
// secret, a parameter of the tool, hiding something from the user, or an approval given in advance. Only combinations of
// classes that are close together (intents.txt), in a sentence or in two consecutive ones, are findings. A sentence that
// describes what a tool detects, or quotes a text, has no intent.

var (
	//go:embed orders.txt
	classesText string
	//go:embed intents.txt
	intentsText string
)

// wordClasses is a set of word classes.
type wordClasses uint64

// specialClasses are the classes that are not lists of words, by which the code finds them.
var specialClasses = []string{"this-tool", "home-file", "secret-file", "secret-variable", "address", "script", "other-tool", "parameter", "described", "untold", "number", "chosen", "mail",
	"take", "give", "change", "do", "tell", "not", "not-after", "without", "into"}

// The classes of specialClasses; the classes of orders.txt follow.
const (
	classThisTool       wordClasses = 1 << iota // the name of this tool
	classHomeFile                               // a configuration file in the home directory
	classSecretFile                             // a file with secrets
	classSecretVariable                         // a variable with a secret
	classAddress                                // a web or mail address
	classScript                                 // the address of a script
	classOtherTool                              // the name of another tool
	classParameter                              // the name of a parameter
	classDescribed                              // the string describes a parameter
	classUntold                                 // what is not to be told
	classNumber                                 // a number as long as that of an account
	classChosen                                 // the string is a default or one of the allowed values
	classMail                                   // a mail address
	classTake
	classGive
	classChange
	classDo
	classTell
	classNot
	classNotAfter // a word for not that follows the verb
	classWithout
	classInto
)

const verbClasses = classTake | classGive | classChange | classDo

// classVocabulary has the classes of words and word stems.
type classVocabulary struct {
	whole, stems map[string]wordClasses
	folded       map[string]wordClasses // words of other alphabets that look like Latin ones
	lengths      [256]uint64            // of the stems by their first byte, a bit for each
	rules        []classRule
	names        map[string]wordClasses
	forbidden    wordClasses // the classes that a prohibition does not concern
}

var classWords = sync.OnceValue(func() *classVocabulary {
	v := &classVocabulary{whole: map[string]wordClasses{}, folded: map[string]wordClasses{}, stems: map[string]wordClasses{}}
	names := map[string]wordClasses{}
	for _, name := range specialClasses {
		names[name] = 1 << len(names)
	}
	for _, s := range sectionfile.Parse(classesText) {
		if names[s.Head] == 0 {
			names[s.Head] = 1 << len(names)
		}
		for _, w := range s.Words() {
			v.addWord(w, names[s.Head])
		}
	}
	v.names = names
	for _, name := range []string{"caution", "option", "tell", "not", "not-after", "other", "rival", "tool", "this-tool", "model", "orders", "detect", "need", "waived", "regardless"} {
		v.forbidden |= names[name]
	}
	for _, s := range sectionfile.Parse(intentsText) {
		name, reason := splitRuleHead(s.Head)
		for _, line := range s.Lines {
			v.rules = append(v.rules, parseClassRule(name[0], reason, line, names))
		}
	}
	return v
})

func (v *classVocabulary) addWord(w string, class wordClasses) {
	to := v.whole
	first, _ := utf8.DecodeRuneInString(w)
	if stem, ok := strings.CutSuffix(w, "*"); ok {
		w, to = stem, v.stems
	} else if isUnspaced(first) {
		w, to = strings.ReplaceAll(w, "-", " "), v.stems
	}
	for _, form := range []string{w, capitalize(w)} { // an upper-case letter may resemble another character
		form = strings.ToLower(NormalizeName(form))
		if first > unicode.MaxLatin1 && len(form) <= 4 && isPrintableASCII(form) {
			v.folded[form] |= class // it looks like a Latin word
			continue
		}
		if to[form] |= class; v.stems[form] != 0 {
			v.lengths[form[0]] |= 1 << len(form)
		}
	}
}

// isUnspaced reports whether words of the letter's script are found within longer ones: it
// has no spaces, or puts particles before words.
func isUnspaced(r rune) bool {
	return r >= 0x3000 || r >= 0x590 && r <= 0x6ff || r >= 0xe00 && r <= 0xeff
}

// classRule is a combination of classes that is a finding. Some classes must all occur within a window. Of others, at
// least one must occur in the same or the previous sentence. Of the rest, none may occur in the window.
type classRule struct {
	name, reason           string
	all, any, not, leading wordClasses
	choices                []wordClasses // one of each must be in the window, too
	within                 wordClasses   // all and the choices
	window                 int32         // in half words
}

// parseClassRule parses a line of intents.txt.
func parseClassRule(name, reason, line string, names map[string]wordClasses) classRule {
	r := classRule{name: name, reason: reason, window: math.MaxInt32}
	for text := range strings.FieldsSeq(line) {
		var classes wordClasses
		to := &r.all
		switch text[0] {
		case '+':
			to = &r.any
		case '-':
			to = &r.not
		case '<':
			to = &r.leading
		case '@':
			n, err := strconv.Atoi(text[1:])
			if err != nil {
				panic("scan: intents.txt: " + err.Error())
			}
			r.window = int32(2 * n)
			continue
		}
		for class := range strings.SplitSeq(strings.TrimLeft(text, "+-<"), "|") {
			if names[class] == 0 {
				panic("scan: no class is named " + class + ", or there are more than 64")
			}
			classes |= names[class]
		}
		if to == &r.all && classes&(classes-1) != 0 {
			r.choices, r.within = append(r.choices, classes), r.within|classes
			continue
		}
		*to |= classes
		r.within |= r.all
	}
	return r
}

// isMetBy reports whether classes have all that must be in the window.
func (r *classRule) isMetBy(classes wordClasses) bool {
	return classes&r.all == r.all && !slices.ContainsFunc(r.choices, func(some wordClasses) bool { return classes&some == 0 })
}

// matchSentenceClasses checks the sentences of a view, each with the previous one.
func (s *scanner) matchSentenceClasses(f *scannedString, v *textView) {
	if f.place == kindMemberName || f.place == kindToolName {
		return
	}
	t := v.n.lower
	r := sentenceReader{s: s, v: v, f: f, own: s.toolAndParameterNames(), words: s.matcher.words}
	r.around = s.classesOfPlace(f)
	from := 0
	for i, w := range s.matcher.words {
		last := i+1 == len(s.matcher.words)
		if !last && !s.matcher.words[i+1].begins && !hasSentenceEnd(t, int(w.end), int(s.matcher.words[i+1].start)) && !v.isParameterLabel(s.matcher.words, i+1) {
			continue
		}
		end := len(t)
		if !last {
			end = int(s.matcher.words[i+1].start)
		}
		r.read(t, from, end)
		r.negate()
		s.matchClassRules(f, v, &r)
		r.startNext()
		if bytes.Contains(t[w.end:end], []byte("\n\n")) {
			r.forget()
		}
		from = end
	}
}

// classesOfPlace returns the classes of where a string is.
func (s *scanner) classesOfPlace(f *scannedString) wordClasses {
	if f.name != "" {
		return 0
	}
	n := s.nodes[f.node]
	up := s.nodes[n.parent]
	switch {
	case n.member == "default" || n.member == "const" || n.index >= 0 && up.member == "enum":
		return classChosen
	case n.index < 0 && s.nodes[up.parent].member == "properties" && !isCredentialName(up.member):
		return classDescribed
	}
	return 0
}

// isCredentialName reports whether a parameter's name says that it is for a credential.
func isCredentialName(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(wordLists().credentials, func(part string) bool { return strings.Contains(name, part) })
}

// hasSentenceEnd reports whether a sign ends a sentence in scripts without spaces.
func hasSentenceEnd(t []byte, from, to int) bool {
	between := t[from:to]
	for _, sign := range []string{"。", "！", "।", "؟", "؛"} {
		if bytes.Contains(between, []byte(sign)) {
			return true
		}
	}
	return false
}

// matchClassRules matches the rules against a sentence, and against it with the previous
// one.
func (s *scanner) matchClassRules(f *scannedString, v *textView, r *sentenceReader) {
	if len(r.tokens) == r.begin {
		return
	}
	both := r.now | r.before | r.around
	for i, o := range classWords().rules {
		if !o.isMetBy(both) || r.now&o.not != 0 || o.any != 0 && both&o.any == 0 {
			continue
		}
		start, last, ok := r.matchWindow(&o)
		if ok && s.acceptsPattern(len(defaultGrammar().patterns)+len(spellingRules())+i) {
			s.addMatch(f, v, scanRule{name: o.name, severity: SeverityReview, reason: o.reason}, start, last, v.encoding == "" && (s.in(v, defaultGrammar()).isMentionedText(start, last) || s.in(v, defaultGrammar()).isRefusedText(start, last) || r.isOwn(&o, start, last) || s.in(v, defaultGrammar()).isQuotedExample(start)))
			return
		}
	}
}

// isMentionedText reports whether a part of the text is a mention, not an instruction.
func (s textContext) isMentionedText(start, end int) bool {
	first, last := s.wordsIn(start, end)
	return first < last && s.isMentionNotInstruction(first, last)
}

// isRefusedText reports whether a part of the text is refused, or only reported.
func (s textContext) isRefusedText(start, end int) bool {
	first, last := s.wordsIn(start, end)
	return first < last && (s.isRefused(first, last) || s.isReported(first))
}

// wordsIn returns the range of the words in a part of the text.
func (s *scanner) wordsIn(start, end int) (first, last int) {
	first, _ = slices.BinarySearchFunc(s.matcher.words, start, func(w textWord, at int) int { return int(w.end) - 1 - at })
	last, _ = slices.BinarySearchFunc(s.matcher.words, end, func(w textWord, at int) int { return int(w.start) - at })
	return first, last
}

// toolAndParameterNames returns the tool's names (true) and its parameters' (false).
func (s *scanner) toolAndParameterNames() map[string]bool {
	if s.own == nil {
		s.own = map[string]bool{}
		for i := range s.fields {
			switch f := &s.fields[i]; f.place {
			case kindToolName:
				s.own[strings.ToLower(f.text)] = true
			case kindMemberName:
				s.own[strings.ToLower(f.text)] = false
			}
		}
	}
	return s.own
}

// classesOfIdentifier returns the class of an identifier.
func (s *scanner) classesOfIdentifier(text []byte, own map[string]bool) wordClasses {
	if bytes.Equal(text, bytes.ToUpper(text)) {
		return s.classOfUnrelatedSecretVariable(string(text))
	}
	self, known := own[strings.ToLower(string(text))]
	switch {
	case self:
		return classThisTool
	case known && isCredentialName(string(text)):
		return 0
	case known:
		return classParameter
	}
	return classOtherTool
}

// classOfUnrelatedSecretVariable returns classSecretVariable for a secret's variable of a product
// that the definition does not mention otherwise.
func (s *scanner) classOfUnrelatedSecretVariable(name string) wordClasses {
	owner, rest, _ := strings.Cut(name, "_")
	for _, end := range []string{"KEY", "TOKEN", "SECRET", "PASSWORD"} {
		if !strings.HasSuffix(rest, end) {
			continue
		}
		others := 0
		for i := range s.fields {
			text := strings.ReplaceAll(s.fields[i].text, name, "")
			others += strings.Count(strings.ToLower(text), strings.ToLower(owner))
		}
		if others == 0 {
			return classSecretVariable
		}
	}
	return 0
}

// classesOfWord returns the classes of a word.
func (v *classVocabulary) classesOfWord(word []byte) wordClasses {
	return v.whole[string(word)] | v.classesOfStems(word)
}

// classesOfStems returns the classes of the stems that a text begins with.
func (v *classVocabulary) classesOfStems(t []byte) (a wordClasses) {
	for lengths := v.lengths[t[0]]; lengths != 0; lengths &= lengths - 1 {
		n := bits.TrailingZeros64(lengths)
		if n > len(t) {
			break
		}
		a |= v.stems[string(t[:n])]
	}
	return a
}

// classesOfPhrase returns the classes of two to four consecutive words, which the list
// joins by dashes.
func (v *classVocabulary) classesOfPhrase(t []byte, from, end int) (a wordClasses) {
	var joined [48]byte
	n := copy(joined[:], t[from:end])
	for range 3 {
		next := end
		for next < len(t) && (t[next] == ' ' || t[next] == '-' || t[next] == '.' && next == end && next+1 < len(t) && isWordByte(t[next+1])) {
			next++
		}
		if next == end || next == len(t) {
			return a
		}
		end = wordEnd(t, next)
		if end == next || n+1+end-next > len(joined) {
			return a
		}
		joined[n] = '-'
		n += 1 + copy(joined[n+1:], t[next:end])
		a |= v.whole[string(joined[:n])]
	}
	return a
}
