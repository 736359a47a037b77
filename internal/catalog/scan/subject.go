package scan

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
)

// subject is the purpose that a definition states in its name and in the first sentence of its description.
type subject struct {
	known    bool
	name     []string // words of the name that say more than "get" or "file"
	attacks  bool     // it finds or explains attacks
	prompts  bool     // it handles prompts or assistants
	talks    bool     // it talks to people or models
	words    []string // all words of the name
	installs bool     // it installs something
}

// subjectOf returns the subject of the definition.
func (s *scanner) subjectOf() *subject {
	a := &s.subject
	if a.known {
		return a
	}
	a.known = true
	lists := wordLists()
	separates := func(r rune) bool { return !unicode.IsLetter(r) }
	finds, named := false, false
	for i := range s.fields {
		f := &s.fields[i]
		isName := f.place == kindToolName
		if f.name != "" || !isName && (f.place != kindProse || s.nodes[f.node].parent != 0 || s.nodes[f.node].member != "description") {
			continue
		}
		for k, word := range strings.FieldsFunc(strings.ToLower(firstSentence(f.text)), separates) {
			if isName && !lists.generic[word] {
				a.name = append(a.name, word)
			}
			if isName {
				a.words = append(a.words, word)
				a.talks = a.talks || hasStem(lists.talking, word)
			}
			a.attacks = a.attacks || (k == 0 || isName) && hasStem(lists.detecting, word)
			a.prompts = a.prompts || isName && hasStem(lists.prompts, word)
			a.installs = a.installs || isName && hasStem(lists.installing, word) || strings.HasPrefix(word, "install")
			finds = finds || hasStem(lists.detecting, word) || hasStem(lists.examining, word)
			named = named || hasStem(lists.attacks, word)
		}
	}
	a.attacks = a.attacks || finds && named
	return a
}

func hasStem(stems []string, word string) bool {
	return slices.ContainsFunc(stems, func(stem string) bool { return strings.HasPrefix(word, stem) })
}

// firstSentence returns a text up to the end of its first sentence.
func firstSentence(text string) string {
	for _, end := range []string{"\n", ". ", ": "} {
		text, _, _ = strings.Cut(text, end)
	}
	return text
}

// isOwnSubject reports whether a text has a word of the tool's name.
func (s *scanner) isOwnSubject(text []byte) bool {
	separates := func(r rune) bool { return !unicode.IsLetter(r) }
	words := bytes.FieldsFunc(text, separates)
	return slices.ContainsFunc(s.subjectOf().name, func(name string) bool {
		return slices.ContainsFunc(words, func(word []byte) bool {
			return string(word) == name || len(name) >= minStem && bytes.Contains(word, []byte(name))
		})
	})
}

// minStem is the minimum length of a word of a name that is found within longer words.
const minStem = 4

// isQuotedExample reports whether a text that begins at start is a quoted example in a definition about attacks or prompts.
func (s textContext) isQuotedExample(start int) bool {
	return (s.subjectOf().attacks || s.subject.prompts) && isInQuotes(s.v.n.lower, start, start+1)
}

// isExample reports whether a text is a quoted example, or a part of a sentence that gives no order, in a definition about
// attacks or with words for an example.
func (s textContext) isExample(start int) bool {
	return s.isQuotedExample(start) || s.subjectOf().attacks && !s.isOrder(start) || isInQuotes(s.v.n.lower, start, start+1) && s.namesExample(start)
}

// namesExample reports whether a sentence has words for an example before the quote that an offset is in, and gives no order there.
func (s textContext) namesExample(start int) bool {
	text := s.v.n.lower
	quote := max(bytes.LastIndexByte(text[:start], '`'), bytes.LastIndexByte(text[:start], '"'), bytes.LastIndexByte(text[:start], '('))
	i, _ := s.wordsIn(quote, quote)
	if quote < 0 || i == 0 || s.isOrder(int(s.matcher.words[i-1].start)) {
		return false
	}
	before := text[s.matcher.words[s.firstOfSentence(i-1)].start:quote]
	if text[quote] == '(' {
		before = text[quote:start]
	}
	return slices.ContainsFunc(wordLists().exemplary, func(mark string) bool { return bytes.Contains(before, []byte(mark)) })
}

// firstOfSentence returns the first word of the sentence of the word i, or one farWords before it.
func (s textContext) firstOfSentence(i int) int {
	first := min(i, len(s.matcher.words)-1)
	for first > 0 && !s.matcher.words[first].begins && i-first < farWords {
		first--
	}
	return first
}

// followsExampleMark reports whether a text is directly after words for an example.
func followsExampleMark(text []byte, start int) bool {
	before := bytes.TrimRight(text[max(0, start-40):start], "`\"'")
	if bytes.HasSuffix(before, []byte("=")) {
		before = before[:bytes.LastIndexByte(before, ' ')+1]
	}
	before = bytes.TrimRight(before, " .,:(`\"'")
	return slices.ContainsFunc(wordLists().exemplary, func(mark string) bool { return bytes.HasSuffix(before, []byte(mark)) })
}

// isRefused reports whether the sentence with the words from i to end then says that they are refused or not shown, and
// gives no order before that.
func (s textContext) isRefused(i, end int) bool {
	words, text := s.matcher.words, s.v.n.lower
	for k := end; k+1 < len(words) && !words[k].begins && k-end < farWords; k++ {
		switch string(text[words[k].start:words[k].end]) {
		case "is", "are", "be":
			if wordLists().refusing[string(text[words[k+1].start:words[k+1].end])] {
				return !s.isOrder(int(words[k].start))
			}
		}
	}
	return false
}

// isReported reports whether the sentence says, before the word i, that a text and not the user gives the order: "a
// page that tells you to ignore your instructions".
func (s textContext) isReported(i int) bool {
	words, text := s.matcher.words, s.v.n.lower
	for k := s.firstOfSentence(i) + 2; k < i; k++ {
		by := words[k-1]
		if word := string(text[by.start:by.end]); word == "that" || word == "which" {
			by = words[k-2]
		}
		if wordLists().requesting[string(text[words[k].start:words[k].end])] && wordLists().texts[string(text[by.start:by.end])] {
			switch string(text[words[k+1].start:words[k+1].end]) {
			case "you", "it", "them", "agents", "assistants", "models", "the":
				return true
			}
		}
	}
	return false
}

// isOfText reports whether the instructions before the word end are instructions in another text, as in "ignore any
// instructions in it".
func (s textContext) isOfText(end int) bool {
	words := s.matcher.words
	word := func(k int) string {
		if k >= len(words) || words[k].begins {
			return ""
		}
		return string(s.v.n.lower[words[k].start:words[k].end])
	}
	switch word(end) {
	case "in", "inside", "within":
	default:
		return false
	}
	for k := end + 1; k <= end+3; k++ {
		if w := word(k); w == "it" || w == "them" || w != "prompt" && wordLists().texts[w] {
			return true
		}
	}
	return false
}

// isSeenByUser reports whether the sentence with the words from i to end, or a clause after it, says that the user
// already sees the text that the model must not repeat: "don't repeat it, for the user has seen it".
func (s textContext) isSeenByUser(i, end int) bool {
	words, text := s.matcher.words, s.v.n.lower
	for k := s.firstOfSentence(i); k < len(words) && k-end < farWords; k++ {
		if k >= end && words[k].begins && bytes.IndexByte(text[words[k-1].end:words[k].start], ';') < 0 {
			break
		}
		if !s.g.user.has(words[k].id) && string(text[words[k].start:words[k].end]) != "they" {
			continue
		}
		for n := k + 1; n < min(k+4, len(words)) && !s.g.negation.has(words[n].id); n++ {
			switch string(text[words[n].start:words[n].end]) {
			case "see", "sees", "seen":
				return n+1 == len(words) || string(text[words[n+1].start:words[n+1].end]) != "only"
			case "not", "only", "just":
				n = len(words)
			}
		}
	}
	return false
}

// isHonestSilence reports whether the words from i to end keep something from the user for an honest reason: the user
// decides or sees it, it is a secret, technical or for others, or it is not true yet ("don't tell the user that it is
// done before the status says so").
func (s textContext) isHonestSilence(i, end int) bool {
	words, lists := s.matcher.words, wordLists()
	word := func(k int) string { return string(s.v.n.lower[words[k].start:words[k].end]) }
	if s.isLeftToUser(i, end) || s.isSeenByUser(i, end) {
		return true
	}
	for k := i + 1; k < min(end+3, len(words)); k++ {
		if k < end && classWords().classesOfWord([]byte(word(k)))&classWords().names["secret"] != 0 || lists.technical[word(k)] && k < end || k >= end && lists.others[word(k)] {
			return true
		}
	}
	if end < len(words) && word(end) == "that" {
		for k := end + 1; k < len(words) && !words[k].begins && k-end < farWords; k++ {
			switch word(k) {
			case "before", "until", "unless":
				return true
			}
		}
	}
	return false
}

// isOwnQuestion reports whether the words from i to end refer to the user's request, and the tool has a parameter or a
// name for this request.
func (s textContext) isOwnQuestion(i, end int) bool {
	own := false
	for _, w := range s.matcher.words[i:end] {
		word := string(s.v.n.lower[w.start:w.end])
		if classWords().whole[word]&(classWords().names["talk"]|classWords().names["whole"]) != 0 && word != "verbatim" {
			return false
		}
		_, known := s.toolAndParameterNames()[word]
		own = own || wordLists().asked[word] && (known || slices.Contains(s.subjectOf().words, word))
	}
	return own
}

// isInQuotes reports whether quotes or parentheses around a part of a line begin before start and end after end.
func isInQuotes(text []byte, start, end int) bool {
	line := text[max(0, start-farText):start]
	line = line[bytes.LastIndexByte(line, '\n')+1:]
	rest, _, _ := bytes.Cut(text[end:min(len(text), end+farText)], []byte("\n"))
	for _, quote := range []string{`"`, "`"} {
		if bytes.Count(line, []byte(quote))%2 == 1 && bytes.Contains(rest, []byte(quote)) {
			return true
		}
	}
	return bytes.LastIndexByte(line, '(') > bytes.LastIndexByte(line, ')') && bytes.IndexByte(rest, ')') >= 0 || openingQuote(text, start, end) >= 0
}

// How far around a match its sentence and its quotes are looked for.
const (
	farText  = 1000 // bytes
	farWords = 100
)

// isOrder reports whether the sentence gives an order to its reader before or at an offset: it addresses the reader, or it, or
// a part of it after a comma, begins with a verb in the imperative.
func (s textContext) isOrder(start int) bool {
	words, text := s.matcher.words, s.v.n.lower
	i, _ := s.wordsIn(start, start)
	for k := min(i, len(words)-1); k >= max(0, i-farWords); k-- {
		word := text[words[k].start:words[k].end]
		if wordLists().orders[string(word)] {
			return true
		}
		first := k == 0 || words[k].begins
		if (first || bytes.IndexByte(text[words[k-1].end:words[k].start], ',') >= 0) && (classWords().whole[string(word)]&verbClasses != 0 || wordLists().imperatives[string(word)]) {
			return true
		}
		if first {
			break
		}
	}
	return false
}

// isInstaller reports whether a command that downloads a script only describes an installation, and is not an order to
// run it.
func (s textContext) isInstaller(start int) bool {
	first, _ := s.wordsIn(start, start)
	ordered := false
	for k := max(0, first-1); k <= first && k < len(s.matcher.words); k++ {
		w := s.matcher.words[k]
		ordered = ordered || classWords().whole[string(s.v.n.lower[w.start:w.end])]&classDo != 0
	}
	return s.subjectOf().installs && !ordered
}

// isForbidden reports whether a negation governs the word i: what must not be sent is not an order.
func (s textContext) isForbidden(i int) bool {
	const far = 8
	words, text := s.matcher.words, s.v.n.lower
	for k := i - 1; k >= 0 && i-k <= far && !words[k+1].begins; k-- {
		if bytes.ContainsAny(text[words[k].end:words[k+1].start], ",;:") && string(text[words[k+1].start:words[k+1].end]) != "such" {
			return false
		}
		if s.g.lifting.has(words[k].id) {
			return false
		}
		if s.g.negation.has(words[k].id) {
			for c := k - 1; c >= max(0, k-4) && !words[c+1].begins; c-- {
				if s.g.condition.has(words[c].id) {
					return false
				}
			}
			return true
		}
	}
	return false
}

// isProhibition reports whether the word k is a negation that begins a prohibition which protects the user: it forbids something
// other than to tell the user about it.
func (s textContext) isProhibition(k int) bool {
	words := s.matcher.words
	if k+1 >= len(words) || !s.g.negation.has(words[k].id) {
		return false
	}
	next := words[k+1].id
	return !s.g.telling.has(next) && !s.g.lifting.has(next) && s.isForbidden(k+1)
}

// beginsWithProhibition reports whether the sentence of a word begins with a prohibition.
func (s textContext) beginsWithProhibition(i int) bool {
	words := s.matcher.words
	for last := i; i > 0 && !words[i].begins; i-- {
		if last-i == farWords {
			return false
		}
	}
	return s.isProhibition(i) || i+1 < len(words) && s.isProhibition(i+1) && string(s.v.n.lower[words[i].start:words[i].end]) == "do"
}

// isDescribed reports whether the word i describes the tool and is not an order: it is in the third person, a
// participle or in the passive voice.
func (s textContext) isDescribed(i int) bool {
	words, text := s.matcher.words, s.v.n.lower
	if i >= len(words) {
		return false
	}
	word := text[words[i].start:words[i].end]
	if bytes.HasSuffix(word, []byte("ed")) || bytes.HasSuffix(word, []byte("ing")) {
		return true
	}
	if i == 0 || words[i].begins {
		return bytes.HasSuffix(word, []byte("s")) && !bytes.HasSuffix(word, []byte("ss")) && !bytes.HasSuffix(word, []byte("us")) && !wordLists().adverbs[string(word)]
	}
	switch string(text[words[i-1].start:words[i-1].end]) {
	case "is", "are", "was", "were":
		return true
	}
	return false
}

// isStatement reports whether a part of a sentence belongs to a sentence that describes the tool and gives no order
// before end.
func (s textContext) isStatement(start, end int) bool {
	i, last := s.wordsIn(start, end)
	first := s.firstOfSentence(i)
	return i < last && first == s.firstOfSentence(last-1) && (s.isDescribed(first) || first == 0 && s.isNamed(0)) && !s.isOrder(end)
}

// isNamed reports whether the word i is a word of the tool's name.
func (s textContext) isNamed(i int) bool {
	words := s.matcher.words
	s.subjectOf()
	return i < len(words) && slices.Contains(s.subject.words, string(s.v.n.lower[words[i].start:words[i].end]))
}

// isOfThisServer reports whether the words before end are about the tools of the tool's own
// server, whose order it may say.
func (s textContext) isOfThisServer(end int) bool {
	text := s.v.n.lower[s.matcher.words[end-1].end:]
	text = text[:min(len(text), 60)]
	if stop := bytes.IndexByte(text, '.'); stop >= 0 {
		text = text[:stop]
	}
	return bytes.Contains(text, []byte(" this server")) || bytes.Contains(text, []byte(" this session"))
}

// isAboutSubject reports whether the words from i to end, which ask for an order of calls, are about one subject, as in "for any
// question about Azure" or "before other Azure tools".
func (s textContext) isAboutSubject(i, end int) bool {
	words := s.matcher.words
	for k := end - 1; k > i; k-- {
		if !s.g.quantity.has(words[k].id) {
			continue
		}
		for k++; k < len(words) && !words[k].begins; k++ {
			if !s.g.quantity.has(words[k].id) {
				return !s.g.universal.has(words[k].id) && words[k].kind&isIdentifier == 0
			}
		}
		break
	}
	return false
}

// isOwnStatement reports whether the text from start, which contains a word of the tool's name, describes the tool: it
// is in the first sentence, or gives no order.
func (s textContext) isOwnStatement(start, end int) bool {
	return s.isOwnSubject(s.v.n.lower[start:end]) && (s.isInFirstSentence(start) || !s.isOrder(start))
}

func (s *scanner) isInFirstSentence(start int) bool {
	for k := 1; k < len(s.matcher.words) && int(s.matcher.words[k].start) <= start; k++ {
		if s.matcher.words[k].begins || k > farWords {
			return false
		}
	}
	return true
}

// isAboutSubjectAt is isAboutSubject for the words in a part of the text.
func (s textContext) isAboutSubjectAt(start, end int) bool {
	first, last := s.wordsIn(start, end)
	return s.isAboutSubject(first-1, last)
}

// isLeftToUser reports whether the words from i to end say that the user decides, as in "unless the user asks".
func (s textContext) isLeftToUser(i, end int) bool {
	words := s.matcher.words
	for k := i; k+2 < min(end+3, len(words)); k++ {
		switch string(s.v.n.lower[words[k].start:words[k].end]) {
		case "unless", "until", "before":
			for u := k + 1; u <= k+2 && u+1 < len(words); u++ {
				if s.g.user.has(words[u].id) {
					return !wordLists().objecting[string(s.v.n.lower[words[u+1].start:words[u+1].end])]
				}
			}
		}
	}
	return false
}
