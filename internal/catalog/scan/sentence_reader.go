package scan

import (
	"bytes"
	"slices"
	"unicode"
	"unicode/utf8"
)

// classToken is a word with classes: its position in half words, and whether its script has no
// spaces, so that its verbs may come last.
type classToken struct {
	at, start, end int32
	classes        wordClasses
	last           bool
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

// forget drops the previous sentence, because a new paragraph begins.
func (r *sentenceReader) forget() {
	r.tokens, r.begin, r.before = r.tokens[:0], 0, 0
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
			if first < r.begin && (r.before&o.not != 0 || o.all&classSecretFile != 0 && o.within&verbClasses == 0) || r.isLedBy(o.leading, first, k) {
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
		if r.s.subjectOf().talks && (r.now|r.before)&(flows|classOtherTool) == 0 {
			return true
		}
	case "foothold":
		if r.s.isOwnSubject(r.v.n.lower[start:end]) && (r.now|r.before)&(flows&^classThisTool|classWords().names["file"]|classWords().names["backdoor"]|classHomeFile) == 0 {
			return true
		}
	case "secret-handed-over", "approval-switched-off":
	case "kept-from-user":
		first, last := r.s.wordsIn(start, end)
		return first < last && r.s.in(r.v, defaultGrammar()).isHonestSilence(first, last)
	case "put-first":
		return r.s.in(r.v, defaultGrammar()).isAboutSubjectAt(start, end)
	case "approval-waived":
		first, last := r.s.wordsIn(start, end)
		return first < last && r.s.in(r.v, defaultGrammar()).beginsWithProhibition(first)
	default:
		if r.around&classChosen == 0 {
			return false
		}
	}
	if leaves := flows | classWords().names["gives"] | classWords().names["sink"]; r.around == 0 && (r.now|r.before)&leaves == 0 && r.s.in(r.v, defaultGrammar()).isStatement(start, end) {
		return true // such as "Searches the user's messages"
	}
	return ((r.now|r.before)&flows == 0 || r.around&classChosen != 0) && r.s.in(r.v, defaultGrammar()).isOwnStatement(start, end)
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
	case w.kind&isURL != 0 && (bytes.HasSuffix(text, []byte(".sh")) || bytes.HasSuffix(text, []byte(".py")) || bytes.HasSuffix(text, []byte(".ps1"))):
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

// read reads the tokens of a sentence.
func (r *sentenceReader) read(t []byte, from, end int) {
	r.now = 0
	v := classWords()
	for i := from; i < end; {
		for len(r.words) > 0 && int(r.words[0].start) <= i {
			r.addToken(r.classesOfWord(0)&^exampleClasses(t, i), i, int(r.words[0].end), false)
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
				r.addToken(classNumber&^exampleClasses(t, i), i, i+n, false)
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
		n := longNumber(t[i:next])
		if n == 0 && next-i == 4 { // an IBAN may be in groups
			n = longNumber(t[i:end])
		}
		if n > 0 {
			r.addToken(classNumber&^exampleClasses(t, i), i, i+n, false)
			i += n
			continue
		}
		classes := r.classesOfText(v, t[:end], i, next) &^ optionClasses(t[from:end], i-from, next-from)
		if base, ok := bytes.CutSuffix(t[i:next], []byte("ing")); ok && bytes.HasSuffix(t[from:i], []byte(" by ")) {
			classes |= (v.whole[string(base)] | v.whole[string(base)+"e"]) & verbClasses // "by writing"
		}
		if followsArticle(t[from:i]) {
			classes &^= verbClasses // a noun, such as "the report"
		}
		r.addToken(classes, i, next, false)
		i = next
		r.at += 2
	}
}

// followsArticle reports whether the last word before a word is one that only nouns follow.
func followsArticle(before []byte) bool {
	before = bytes.TrimRight(before, " ")
	return wordLists().articles[string(before[bytes.LastIndexByte(before, ' ')+1:])]
}

// exampleClasses returns the classes that an example does not have: its value is not the one to use.
func exampleClasses(t []byte, i int) wordClasses {
	if followsExampleMark(t, i) || bytes.HasSuffix(t[:i], []byte("${")) {
		return classAddress | classMail | classNumber | classSecretVariable
	}
	return 0
}

// optionClasses returns the classes that a word of a sentence does not have as the option of a command, or as a proxy without an
// address.
func optionClasses(sentence []byte, i, next int) wordClasses {
	switch start := sentence[:i]; {
	case bytes.HasSuffix(start, []byte(" -")), bytes.HasSuffix(start, []byte(" --")):
		return ^(classWords().names["switch"] | classWords().names["option"])
	case bytes.HasSuffix(sentence[i:next], []byte("_proxy")) && (!bytes.Contains(sentence, []byte("://")) || followsExampleMark(sentence, i)):
		return classWords().names["switch"]
	}
	return 0
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
		if bytes.HasSuffix(r.v.n.lower[:not.start], []byte(" may ")) || bytes.HasSuffix(r.v.n.lower[:not.start], []byte(" might ")) {
			continue // "may not know" is no order
		}
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

// longNumber returns the length of a number of ten or more digits, which may begin like an IBAN ("de89", "gb29 nwbk"), or of the
// address of a wallet. It may be in groups with blanks, or in three or more short ones with dashes.
func longNumber(t []byte) int {
	if n := wordEnd(t, 0); bytes.HasPrefix(t, []byte("0x")) && n >= 42 || bytes.HasPrefix(t, []byte("bc1")) && n >= 22 {
		return n
	}
	bank := 2 // where letters end
	if len(t) > 4 && isDigit(t[2]) && isDigit(t[3]) {
		bank = len("gb29 nwbk")
	}
	digits, group, longest, dashes, n := 0, 0, 0, 0, 0
	for ; n < len(t) && (isDigit(t[n]) || n < bank && t[n] < utf8.RuneSelf || digits > 0 && (t[n] == ' ' || t[n] == '-')); n++ {
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
