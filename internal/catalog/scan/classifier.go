package scan

import (
	"bytes"
	"slices"

	"mcpproxy/internal/catalog/tool"
)

var ruleClassifier = scanRule{name: RuleClassifier, severity: SeverityReview, reason: "resembles poisoned definitions"}

// EachClassifierPhrase yields the phrases of a definition that have enough words, as the
// classifier reads them. A phrase is valid until yield returns.
func EachClassifierPhrase(d tool.Definition, yield func(p *PhraseFeatures)) {
	s := newScanner(Options{})
	if !s.collectStrings(d.Raw) {
		return
	}
	for k := range s.fields {
		f := &s.fields[k]
		v := &s.baseView
		v.n.normalize(f.text)
		s.matcher.words = v.n.splitWords(s.matcher.words, defaultGrammar().lex, f.place == kindToolName || f.place == kindMemberName)
		s.eachPhrase(f, v, func(p *PhraseFeatures, _, _ int) {
			if p.Len() >= minPhraseWords {
				yield(p)
			}
		})
	}
}

// eachPhrase yields the phrases of a view with their word ranges. The first sentence
// about a parameter is also read with the parameter's name.
func (s *scanner) eachPhrase(f *scannedString, v *textView, yield func(p *PhraseFeatures, first, end int)) {
	words := s.matcher.words
	k := &s.classifier.key
	named := k.node > 0 && f.name == "" && f.place == kindProse && s.nodes[f.node].parent == k.node
	k.node = 0
	for first := 0; first < len(words); {
		end := first + 1
		for end < len(words) && end-first < maxPhraseWords && !(words[end].begins && end-first >= shortSentence || v.isParameterLabel(words, end)) {
			end++
		}
		if first == 0 && named {
			yield(s.buildPhrase(f, v, first, end, true), first, end)
		}
		yield(s.buildPhrase(f, v, first, end, false), first, end)
		first = end
	}
	if f.place == kindMemberName && f.name == "" && v.depth == 0 {
		k.node, k.text = f.node, append(k.text[:0], v.n.lower...)
		k.words = append(k.words[:0], words[:min(len(words), longName)]...)
	}
}

// isParameterLabel reports whether a word begins a line and is followed by a colon, like the
// parameters of a docstring.
func (v *textView) isParameterLabel(words []textWord, i int) bool {
	t := v.n.lower
	for k := words[i-1].end; k < words[i].start; k++ {
		if t[k] == '\n' {
			for i+1 < len(words) && words[i+1].inner {
				i++
			}
			end := words[i].end
			return int(end) < len(t) && t[end] == ':'
		}
	}
	return false
}

func (s *scanner) buildPhrase(f *scannedString, v *textView, first, end int, named bool) *PhraseFeatures {
	p, k := &s.classifier.phrase, &s.classifier.key
	p.Reset()
	if named {
		for _, w := range k.words {
			p.AddWord(k.text[w.start:w.end], false)
		}
		p.AddWord(wordKey, false)
	}
	prose := f.place == kindProse || f.place == kindValue
	for i := first; i < end; i++ {
		w := &s.matcher.words[i]
		p.AddWord(v.wordForClassifier(w), prose && w.kind&isIdentifier != 0)
	}
	if prose {
		s.addClassFeatures(f, v, first, end)
	}
	return p
}

// addClassFeatures adds features for the word classes of the words from first to end, and of the phrase before them.
func (s *scanner) addClassFeatures(f *scannedString, v *textView, first, end int) {
	p, words, to := &s.classifier.phrase, s.matcher.words, len(v.n.lower)
	if end < len(words) {
		to = int(words[end].start)
	}
	if first == 0 {
		s.classifier.previous = 0
	}
	r := sentenceReader{s: s, v: v, f: f, own: s.toolAndParameterNames(), words: words[first:], around: s.classesOfPlace(f)}
	if r.around != 0 {
		r.tokens, r.begin = []classToken{{classes: r.around, start: words[first].start, end: words[first].end}}, 1
	}
	r.read(v.n.lower, int(words[first].start), to)
	r.negate()
	named := p.Len() - min(end-first, p.Len()) // the words of a parameter's name come first
	p.addClasses(r.tokens, s.classifier.previous, func(t classToken) int {
		i, _ := s.wordsIn(int(t.start), int(t.end))
		return min(named+max(0, i-first), maxPhraseWords-1)
	})
	s.classifier.previous = p.classes
}

// A shorter sentence is joined with the next one; of a name that many words are read.
const (
	shortSentence = 3
	longName      = 6
)

// Placeholders for words.
var (
	wordKey    = []byte("#key")
	wordURL    = []byte("#url")
	wordEmail  = []byte("#email")
	wordSecret = []byte("#secret")
	wordPath   = []byte("#path")
	wordNumber = []byte("#number")
)

// wordForClassifier returns a word as the classifier reads it.
func (v *textView) wordForClassifier(w *textWord) []byte {
	switch {
	case w.kind&isURL != 0:
		return wordURL
	case w.kind&isEmail != 0:
		return wordEmail
	case w.kind&isSecretFile != 0:
		return wordSecret
	case w.kind&isPath != 0:
		return wordPath
	}
	text := v.n.lower[w.start:w.end]
	for _, c := range text {
		if c < '0' || c > '9' {
			return text
		}
	}
	return wordNumber
}

// classifyPhrases scores the phrases of a view.
func (s *scanner) classifyPhrases(f *scannedString, v *textView, g *patternIndex) {
	j := &s.classifier
	if j.model == nil {
		return
	}
	j.spans = j.spans[:0]
	s.eachPhrase(f, v, func(p *PhraseFeatures, first, end int) {
		score := j.model.ScorePhrase(p)
		j.spans = append(j.spans, scoredPhrase{first, end, score})
		if score <= j.best || p.Len() < minPhraseWords || v.encoding == "" && score >= j.model.Support && s.in(v, g).isOnlyMentioned(f, p, first, end) {
			return
		}
		j.best = score
		if score < j.model.Review && (v.encoding == "" || score < j.model.Support) { // hidden text is suspect
			return
		}
		w := &j.worst
		from, to := s.matcher.words[first].start, s.matcher.words[end-1].end
		w.field, w.core = f, v.textOfWords(s.matcher.words, s.heaviestWords(p, first, end))
		w.start, w.end = v.fieldSpan(int(from), int(to))
		if w.excerpt = ""; v.encoding != "" {
			w.excerpt = string(v.n.cased[from:to])
		}
	})
}

// isOnlyMentioned reports whether the heaviest part of a phrase is only mentioned, not an
// instruction.
func (s textContext) isOnlyMentioned(f *scannedString, p *PhraseFeatures, first, end int) bool {
	core := s.heaviestWords(p, first, end)
	if last := s.matcher.words[core.end-1]; openingQuote(s.v.n.lower, int(last.start), int(last.end)) >= 0 {
		core.start = core.end - 1 // what leads to the quotation is not in it
	}
	if f.place != kindToolName && s.isInFirstSentence(int(s.matcher.words[core.start].start)) && s.isDescribed(0) && s.isOwnSubject(s.v.n.lower[s.matcher.words[core.start].start:s.matcher.words[core.end-1].end]) {
		return true
	}
	return s.isMentionNotInstruction(core.start, core.end) || s.isOfThisServer(core.end) || s.isQuotedReply(first, end) ||
		s.isPartOfProhibition(first, end, core) || s.isUseOfThisTool(first, end) ||
		s.isLeftToUser(first, end) || s.isSeenByUser(first, end) || s.isReported(core.start) || s.isExample(int(s.matcher.words[core.start].start)) || s.isQuotedExample(int(s.matcher.words[core.end-1].start))
}

// isPartOfProhibition reports whether a phrase is a prohibition of one clause, or one begins closely before its heaviest words or
// in them.
func (s textContext) isPartOfProhibition(first, end int, core span) bool {
	words := s.matcher.words
	if s.beginsWithProhibition(first) && !bytes.ContainsAny(s.v.n.lower[words[first].start:words[end-1].end], ",;:") {
		return true
	}
	for k := max(first, core.start-3); k < core.end-1; k++ {
		if s.g.negation.has(words[k].id) {
			return s.isProhibition(k)
		}
	}
	return false
}

// isUseOfThisTool reports whether a phrase asks to call "this" or "it" for one subject, or to call the tool again.
func (s textContext) isUseOfThisTool(first, end int) bool {
	words := s.matcher.words
	for k := first; k+2 < end; k++ {
		if !s.g.calling.has(words[k].id) {
			continue
		}
		next := string(s.v.n.lower[words[k+1].start:words[k+2].end])
		switch {
		case len(next) > 5 && next[:5] == "this ", len(next) > 3 && next[:3] == "it ":
			return s.isAboutSubject(first, end) || s.isCondition(k+2, end) || s.isCondition(k+3, end)
		case next == "the tool" && k+3 < end:
			return string(s.v.n.lower[words[k+3].start:words[k+3].end]) == "again"
		}
	}
	return false
}

// isCondition reports whether the words from i to end say when a tool is of use, and ask for nothing else.
func (s textContext) isCondition(i, end int) bool {
	words, text := s.matcher.words, s.v.n.lower
	if i >= end {
		return false
	}
	switch string(text[words[i].start:words[i].end]) {
	case "when", "if", "once", "after":
	default:
		return false
	}
	wanted := classTake | classGive | classChange | classWords().names["secret"] | classWords().names["untold"]
	return !slices.ContainsFunc(words[i:end], func(w textWord) bool {
		return w.kind != 0 || classWords().classesOfWord(text[w.start:w.end])&wanted != 0
	})
}

// heaviestWords returns the words of a phrase that weigh the most.
func (s *scanner) heaviestWords(p *PhraseFeatures, first, end int) span {
	name := p.Len() - (end - first) // the words of a parameter's name come first
	from, to := s.classifier.model.HeaviestWords(p, coreWords)
	return span{first + max(0, from-name), first + max(1, to-name)}
}

// textOfWords returns the text from the first to the last of some words.
func (v *textView) textOfWords(words []textWord, of span) string {
	return string(v.n.cased[words[of.start].start:words[of.end-1].end])
}

// coreWords is the maximum number of heaviest words.
const coreWords = 6

// addClassifierFinding adds the classifier's finding.
func (s *scanner) addClassifierFinding() {
	if w := &s.classifier.worst; w.field != nil {
		r := ruleClassifier
		r.reason += `, most of all: "` + escapeExcerpt(w.core) + `"`
		s.addFinding(w.field, r, w.start, w.end, w.excerpt)
	}
}

// supportsWeakRule reports whether the classifier scores the phrase of a word high enough to
// support a weak rule.
func (j *classifierState) supportsWeakRule(word int) bool {
	return j.model == nil || slices.ContainsFunc(j.spans, func(of scoredPhrase) bool {
		return of.first <= word && word < of.end && of.score >= j.model.Support
	})
}

// downgradeToNote makes a weak rule's finding have no effect.
func (r *scanRule) downgradeToNote() {
	r.severity = SeverityNote
	r.reason += "; it is weak evidence, and the sentence does not read like poison"
}

// dropFaintFinding makes the finding of a faint rule have no effect if it is the only one, and the classifier does not almost
// ask for a review.
func (s *scanner) dropFaintFinding() {
	var only []int
	for i, f := range s.findings {
		switch {
		case f.Severity == SeverityNote:
		case f.Severity == SeverityBlock || !slices.Contains(s.faint, i) || len(only) > 0 && f.Rule != s.findings[only[0]].Rule:
			return
		default:
			only = append(only, i)
		}
	}
	if j := &s.classifier; j.model == nil || j.best >= j.model.Review-faintMargin {
		return
	}
	for _, i := range only {
		s.findings[i].Severity = SeverityNote
		s.findings[i].Reason += "; it is weak evidence, and the only finding"
	}
}

// faintMargin is how far below the threshold for a review the score may be that supports a faint rule alone.
const faintMargin = ModelUnit - 4
