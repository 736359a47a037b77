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

// classRule is a combination of classes that is a finding. All must be within a window,
// any of some in the same or the previous sentence, none of others in it.
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

// classToken is a word with classes: its position in half words, and whether its script has no
// spaces, so that its verbs may come last.
type classToken struct {
	at, start, end int32
	classes        wordClasses
	last           bool
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
			s.addMatch(f, v, scanRule{name: o.name, severity: SeverityReview, reason: o.reason}, start, last, v.encoding == "" && (s.isMentionedText(v, start, last) || r.isOwn(&o, start, last) || s.isQuotedExample(v, start)))
			return
		}
	}
}

// isMentionedText reports whether a part of the text is a mention, not an instruction.
func (s *scanner) isMentionedText(v *textView, start, end int) bool {
	first, last := s.wordsIn(start, end)
	return first < last && s.isMentionNotInstruction(v, defaultGrammar(), first, last)
}

// wordsIn returns the range of the words in a part of the text.
func (s *scanner) wordsIn(start, end int) (first, last int) {
	first, _ = slices.BinarySearchFunc(s.matcher.words, start, func(w textWord, at int) int { return int(w.end) - 1 - at })
	last, _ = slices.BinarySearchFunc(s.matcher.words, end, func(w textWord, at int) int { return int(w.start) - at })
	return first, last
}

// sentenceReader reads the tokens of a sentence, after those of the previous one.
type sentenceReader struct {
	s                   *scanner
	v                   *textView
	f                   *scannedString
	own                 map[string]bool
	words               []textWord // those from the sentence on
	tokens              []classToken
	begin               int // the first token of the sentence
	at                  int32
	now, before, around wordClasses
}

// startNext makes the sentence the previous one.
func (r *sentenceReader) startNext() {
	r.tokens = append(r.tokens[:0], r.tokens[r.begin:]...)
	r.begin, r.before = len(r.tokens), r.now
}

// matchWindow returns where the classes of a rule are, in a window that reaches into the
// sentence. If the previous sentence is needed, it must not have what excludes the rule.
func (r *sentenceReader) matchWindow(o *classRule) (start, end int, ok bool) {
	for first := range r.tokens {
		if r.tokens[first].classes&o.within == 0 {
			continue
		}
		found := r.around
		for k := first; k < len(r.tokens) && r.tokens[k].at-r.tokens[first].at <= o.window; k++ {
			if found |= r.tokens[k].classes; k < r.begin || k == first && o.within&(o.within-1) != 0 || !o.isMetBy(found) {
				continue // a word that is of two classes says too little alone
			}
			if first < r.begin && (r.before&o.not != 0 || o.all&classSecretFile != 0 && (o.within|o.any)&verbClasses == 0) || r.isLedBy(o.leading, first, k) {
				break
			}
			return int(r.tokens[first].start), int(r.tokens[k].end), true
		}
	}
	return 0, 0, false
}

// isOwn reports whether a rule has found nothing but the tool's own subject, which does not go to others.
func (r *sentenceReader) isOwn(o *classRule, start, end int) bool {
	flows := classParameter | classUntold | classAddress | classThisTool
	switch o.name {
	case "private-handed-over":
		flows &^= classParameter // of a tool for conversations
	case "secret-handed-over", "foothold", "approval-switched-off":
	case "put-first":
		return r.s.isAboutSubjectAt(start, end)
	case "approval-waived":
		first, last := r.s.wordsIn(start, end)
		return first < last && r.s.beginsWithProhibition(r.v, defaultGrammar(), first)
	default:
		if r.around&classChosen == 0 {
			return false
		}
	}
	if leaves := flows | classWords().names["gives"] | classWords().names["sink"]; r.around == 0 && (r.now|r.before)&leaves == 0 && r.s.isInFirstSentence(end) && r.s.isDescribed(r.v, 0) && !r.s.isOrder(r.v, end) {
		return true // such as "Searches the user's messages"
	}
	return ((r.now|r.before)&flows == 0 || r.around&classChosen != 0) && r.s.isOwnStatement(r.v, start, end)
}

// isLedBy reports whether one of some classes precedes the last of some tokens in their
// sentences.
func (r *sentenceReader) isLedBy(leading wordClasses, first, last int) bool {
	start := 0
	if first >= r.begin {
		start = r.begin
	}
	for k, t := range r.tokens[start:] {
		if t.classes&leading != 0 && (start+k < last || t.last) {
			return true
		}
	}
	return false
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

// classesOfWord returns the classes of an identifier, a path or an address.
func (r *sentenceReader) classesOfWord(i int) (a wordClasses) {
	w := r.words[i]
	text := r.v.n.lower[w.start:w.end]
	switch {
	case w.inner:
		return 0
	case w.kind&isSecretFile != 0:
		return classSecretFile
	case bytes.HasPrefix(text, []byte("~/.")):
		return classHomeFile
	case w.kind&isEmail != 0:
		return classAddress | classMail
	case w.kind&isURL != 0 && bytes.HasSuffix(text, []byte(".sh")):
		return classAddress | classScript
	case w.kind&isURL != 0:
		return classAddress
	case w.kind&isPath != 0:
		return classWords().whole[string(text)]
	case w.kind&isIdentifier != 0:
		for i+1 < len(r.words) && r.words[i+1].inner {
			i++
		}
		return r.s.classesOfIdentifier(r.v.n.cased[w.start:r.words[i].end], r.own)
	}
	if of, known := r.own[string(text)]; known && !of && !isCredentialName(string(text)) && (w.start > 0 && r.v.n.lower[w.start-1] == '`' || r.isAfterUnspaced(int(w.start)) || len(r.tokens) > 0 && r.tokens[len(r.tokens)-1].classes&classInto != 0) {
		return classParameter
	}
	return 0
}

// isAfterUnspaced reports whether the last letter before i is of a script without spaces.
func (r *sentenceReader) isAfterUnspaced(i int) bool {
	c, _ := utf8.DecodeLastRune(bytes.TrimRight(r.v.n.lower[:i], " "))
	return unicode.IsLetter(c) && isUnspaced(c)
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

// read reads the tokens of a sentence.
func (r *sentenceReader) read(t []byte, from, end int) {
	r.now = 0
	v := classWords()
	for i := from; i < end; {
		for len(r.words) > 0 && int(r.words[0].start) <= i {
			r.addToken(r.classesOfWord(0), i, int(r.words[0].end), false)
			r.words = r.words[1:]
		}
		if n := placeholderLength(t[i:end]); n > 0 {
			for i += n; len(r.words) > 0 && int(r.words[0].start) < i; {
				r.words = r.words[1:]
			}
			continue
		}
		c, size := utf8.DecodeRune(t[i:end])
		if !unicode.IsLetter(c) {
			if n := longNumber(t[i:end]); n > 0 {
				r.addToken(classNumber, i, i+n, false)
				i += n
				continue
			}
			if c == ',' || c == ':' || c == '(' || c == '、' || c == '，' || c == '-' && i > from && t[i-1] == ' ' {
				r.at += 3 // words are farther away beyond it
			}
			i += size
			continue
		}
		if n := addressLength(t[i:end]); n > 0 {
			i += n
			r.at += 2
			continue
		}
		if n := settingLength(t[i:end]); n > 0 {
			r.addToken(v.names["option"], i, i+n, false)
		}
		if isUnspaced(c) {
			r.addToken(v.classesOfStems(t[i:end]), i, i+size, true)
			i += size
			r.at++
			continue
		}
		next := wordEnd(t[:end], i)
		if longNumber(t[i:next]) > 0 || next-i == 4 && longNumber(t[i:end]) > 0 { // an IBAN may be in groups
			r.addToken(classNumber, i, next, false)
		}
		r.addToken(r.classesOfText(v, t[:end], i, next), i, next, false)
		i = next
		r.at += 2
	}
}

// classesOfText returns the classes of the word from i to next, of what follows an elided article
// in it, and of the phrases that begin with it.
func (r *sentenceReader) classesOfText(v *classVocabulary, t []byte, i, next int) wordClasses {
	a := v.whole[string(t[i:next])] | v.classesOfStems(t[i:next]) | v.classesOfPhrase(t, i, next)
	if article := bytes.IndexByte(t[i:next], '\''); article > 0 && article < next-i-2 {
		a |= v.whole[string(t[i+article+1:next])] | v.classesOfStems(t[i+article+1:next])
	}
	if r.v.n.at != nil && r.v == &r.s.baseView && r.f.text[r.v.n.originalOffset(i)] >= utf8.RuneSelf {
		a |= v.folded[string(t[i:next])]
	}
	return a
}

func (r *sentenceReader) addToken(classes wordClasses, start, end int, last bool) {
	if classes != 0 {
		r.tokens = append(r.tokens, classToken{r.at, int32(start), int32(end), classes, last})
		r.now |= classes
	}
}

// negate marks verbs that the sentence denies: "do not tell", "do not send".
func (r *sentenceReader) negate() {
	verbs := verbClasses | classWords().names["gives"]
	own := r.tokens[r.begin:]
	for k, not := range own {
		for i := k + 1; not.classes&(classNot|classNotAfter|classWithout) != 0 && i < len(own) && own[i].at-not.at <= 6; i++ {
			if own[i].classes&(classNot|classNotAfter) != 0 {
				break
			}
			if own[i].classes&(verbs|classTell) != 0 {
				verb := own[i].classes
				if verb&classTell != 0 || not.classes&classWithout == 0 {
					own[i].deny(verbs)
				}
				if verb&classTell == 0 && not.classes&classNot != 0 {
					own[k].classes &^= classNot | classNotAfter
					r.forbid(own[i:], verb)
				}
				break
			}
		}
		for i := k - 1; not.classes&classNotAfter != 0 && i >= 0 && not.at-own[i].at <= 12; i-- {
			if own[i].classes&classTell != 0 || own[i].classes&verbs != 0 && own[i].last && not.at-own[i].at <= 6 {
				own[i].deny(verbs)
				break
			}
		}
	}
	r.now = 0
	for _, t := range own {
		r.now |= t.classes
	}
}

// forbid drops what a prohibition is about from the clause that the tokens begin: what must not be sent or be done without an
// approval is not an order.
func (r *sentenceReader) forbid(clause []classToken, verb wordClasses) {
	text := r.v.n.lower
	keep := classWords().forbidden
	if verb&(classDo|classChange) == 0 {
		keep &^= classWords().names["other"] | classWords().names["rival"]
	}
	for i := range clause {
		if i > 0 {
			between := text[clause[i-1].end:max(clause[i-1].end, clause[i].start)]
			if bytes.ContainsAny(between, ",;:(") || bytes.Contains(between, []byte("、")) || bytes.Contains(between, []byte("，")) || isLifted(between) ||
				isLifted(text[clause[i].start:clause[i].end]) {
				return
			}
		}
		if clause[i].classes&(classNotAfter|classUntold) != 0 {
			return
		}
		clause[i].classes &= keep
	}
}

// isLifted reports whether a text has a word that ends a prohibition.
func isLifted(text []byte) bool {
	return slices.ContainsFunc(bytes.FieldsFunc(text, func(c rune) bool { return !unicode.IsLetter(c) }), func(word []byte) bool {
		return wordLists().lifting[string(word)]
	})
}

func (t *classToken) deny(verbs wordClasses) {
	if t.classes&classTell != 0 {
		t.classes |= classUntold
	}
	t.classes &^= verbs
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

// longNumber returns the length of a number of ten or more digits, which may begin with two letters.
// It may be in groups with blanks, or in three or more short ones with dashes.
func longNumber(t []byte) int {
	digits, group, longest, dashes, n := 0, 0, 0, 0, 0
	for ; n < len(t) && (isDigit(t[n]) || n < 2 || digits > 0 && (t[n] == ' ' || t[n] == '-')); n++ {
		if !isDigit(t[n]) {
			group = 0
			if t[n] == '-' {
				dashes++
			}
			continue
		}
		digits++
		group++
		longest = max(longest, group)
	}
	if digits < 10 || dashes > 0 && (dashes < 2 || longest > 7) {
		return 0
	}
	return n
}

// settingLength returns the length of a parameter that is set to a truth value, such as force=true.
func settingLength(t []byte) int {
	name := wordEnd(t, 0)
	if name == len(t) || t[name] != '=' {
		return 0
	}
	switch end := wordEnd(t, name+1); string(t[name+1 : end]) {
	case "true", "false", "yes", "no", "1", "0":
		return end
	}
	return 0
}

// placeholderLength returns the length of a placeholder of a template, such as {{ $env.KEY }}.
func placeholderLength(t []byte) int {
	if !bytes.HasPrefix(t, []byte("{{")) {
		return 0
	}
	size := bytes.Index(t[:min(len(t), maxPlaceholder)], []byte("}}"))
	if size < 0 || len(bytes.Fields(t[2:size])) > 1 {
		return 0
	}
	return size + 2
}

const maxPlaceholder = 64

// addressLength returns the length of a web or mail address.
func addressLength(t []byte) int {
	end := 0
	for end < min(len(t), maxChunk) && !isChunkEnd(t[end]) && t[end] < utf8.RuneSelf {
		end++
	}
	scheme := bytes.Index(t[:end], []byte("://"))
	if scheme >= 0 && bytes.IndexByte(t[:scheme], '=') < 0 || bytes.IndexByte(t[:end], '@') > 0 {
		return end
	}
	return 0
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

func wordEnd(t []byte, i int) int {
	for i < len(t) {
		r, size := utf8.DecodeRune(t[i:])
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '\'' && r != '_' && !unicode.IsMark(r) {
			return i
		}
		i += size
	}
	return i
}
