package scan

import (
	"bytes"
	"math/bits"
	"strings"
)

// scanAllStrings scans all strings.
func (s *scanner) scanAllStrings() {
	for k := range s.fields {
		f := &s.fields[k]
		s.runRecoveringPanic("text", func() { s.scanField(f) })
	}
	s.runRecoveringPanic("split", s.scanStringBorders)
	if s.matcher.budget <= 0 {
		s.addTooLargeFinding("", "the definition takes too long to scan completely")
	}
}

// scanField scans one string and the texts hidden in it.
func (s *scanner) scanField(f *scannedString) {
	v := &s.baseView
	v.n.normalize(f.text)
	s.checkHiddenCharacters(f)
	s.applyRules(f, v)
	s.uncoverHiddenTexts(f, v)
}

// applyRules applies the rules to a view.
func (s *scanner) applyRules(f *scannedString, v *textView) {
	g := defaultGrammar()
	s.matcher.words = v.n.splitWords(s.matcher.words, g.lex, f.place == kindToolName || f.place == kindMemberName)
	s.cues = s.cues[:0]
	s.classifyPhrases(f, v, g)
	s.matchPatterns(f, v, g)
	s.findCueClusters(f, v, g)
	s.matchSentenceClasses(f, v)
	s.matchRegexpRules(f, v)
}

// matchPatterns finds the patterns of words.
func (s *scanner) matchPatterns(f *scannedString, v *textView, g *patternIndex) {
	for i := range s.matcher.words {
		w := &s.matcher.words[i]
		if w.id != 0 {
			s.tryPatterns(f, v, g, g.byWord[w.id], i)
		}
		if w.kind&g.kinds == 0 {
			continue
		}
		for kind := specialWordKind(1); kind != 0; kind <<= 1 {
			if w.kind&kind != 0 {
				s.tryPatterns(f, v, g, g.byKind[kind], i)
			}
		}
	}
}

func (s *scanner) tryPatterns(f *scannedString, v *textView, g *patternIndex, candidates []int32, i int) {
	for _, c := range candidates {
		p := &g.patterns[c]
		r := &g.rules[p.rule]
		if !r.places.has(f.place) && v.encoding == "" && !s.isSentenceLikeName(f) {
			continue
		}
		if end := s.matcher.matchAt(p, i); end > 0 && s.acceptsPattern(int(c)) {
			if p.rule >= g.firstCue {
				s.cues = append(s.cues, cueMatch{p.rule - g.firstCue, i, end})
				continue
			}
			mention := v.encoding == "" && (p.mayBeMention && s.in(v, g).isMentionNotInstruction(i, end) || s.in(v, g).isHonest(f, p, i, end))
			r := *r
			if r.weak && v.encoding == "" && !s.classifier.supportsWeakRule(i) {
				r.downgradeToNote()
			}
			s.addMatch(f, v, r, int(s.matcher.words[i].start), int(s.matcher.words[end-1].end), mention)
		}
	}
}

// isHonest reports whether the words from i to end, which a pattern matches, are not an instruction of an attack: they
// are forbidden, an example, the tool's own subject, or about its own server.
func (s textContext) isHonest(f *scannedString, p *rulePattern, i, end int) bool {
	r := &s.g.rules[p.rule]
	if f.place == kindToolName {
		return s.isForbidden(i)
	}
	start, stop := int(s.matcher.words[i].start), int(s.matcher.words[end-1].end)
	if s.isForbidden(i) || s.isReported(i) || s.isRefused(i, end) || s.isQuotedExample(start) || r.severity != SeverityBlock && s.isExample(start) || p.mayBeOwn && s.isOwnAction(i, end) {
		return true
	}
	switch r.name {
	case "override":
		return s.isOfText(end)
	case "shadowing", "preference":
		return s.isOfThisServer(end) || s.isAboutSubject(i, end)
	case "secret-file":
		return s.isDescribed(i)
	case "secret-file-taken":
		for k := i + 1; k < end; k++ {
			if s.matcher.words[k].begins && s.beginsWithProhibition(k) {
				return true
			}
		}
	case "prompt-leak":
		return s.isOwnStatement(start, stop) || s.isOwnQuestion(i, end) || s.subject.talks && r.weak
	case "exfiltration":
		return s.isOwnStatement(start, stop) || bytes.HasPrefix(s.v.n.lower[stop:], []byte(" manager")) || end-i <= 2 && bytes.HasSuffix(s.v.n.lower[start:s.matcher.words[i].end], []byte("ed")) // such as "leaked tokens"
	case "malware":
		return bytes.Contains(s.v.n.lower[start:stop], []byte("://")) && s.isInstaller(start) || s.isOwnStatement(start, stop)
	case "bypass-safety":
		if i > 0 && string(s.v.n.lower[s.matcher.words[i-1].start:s.matcher.words[i-1].end]) == "does" {
			return true // it describes
		}
		if s.isOfText(end) {
			return true
		}
		for k := max(0, i-2); k < i; k++ {
			if id := s.matcher.words[k].id; s.g.condition.has(id) || s.g.lifting.has(id) {
				return true // such as "if the user has agreed"
			}
		}
	case "covert", "kept-quiet":
		return s.isHonestSilence(i, end)
	}
	return false
}

// acceptsPattern reports whether a matching pattern counts.
func (s *scanner) acceptsPattern(pattern int) bool {
	return s.patternFilter == nil || s.patternFilter(pattern)
}

// isSentenceLikeName reports whether a name is long enough to be a sentence.
func (s *scanner) isSentenceLikeName(f *scannedString) bool {
	return (f.place == kindMemberName || f.place == kindToolName) && len(s.matcher.words) >= 4
}

// addMatch adds a finding in a view. Findings in hidden text are more severe.
func (s *scanner) addMatch(f *scannedString, v *textView, r scanRule, start, end int, mention bool) {
	from, to := v.fieldSpan(start, end)
	excerpt := ""
	if v.encoding != "" {
		r.severity = SeverityBlock
		r.reason += "; the text was hidden in " + v.encoding
		excerpt = string(v.n.cased[max(0, start-20):min(len(v.n.cased), end+20)])
	}
	if mention {
		s.addMentionNote(f, r, from, to)
		return
	}
	before := len(s.findings)
	s.addFinding(f, r, from, to, excerpt)
	if r.faint && v.encoding == "" && len(s.findings) > before {
		s.faint = append(s.faint, before)
	}
}

// scanStringBorders scans across the borders between strings, because a sentence may be split
// over several.
func (s *scanner) scanStringBorders() {
	g := defaultGrammar()
	const reach = 12 // words on each side
	var tail []textWord
	var text []byte
	ended := false // the text before ends with a sentence
	for k := range s.fields {
		f := &s.fields[k]
		if f.place == kindMemberName || f.place == kindToolName {
			continue
		}
		v := &s.baseView
		v.n.normalize(f.text)
		s.matcher.words = v.n.splitWords(s.matcher.words, g.lex, false)
		own := s.matcher.words
		if len(own) == 0 {
			continue
		}
		head := own[:min(len(own), reach)]
		if len(tail) > 0 {
			s.matchAcrossBorder(f, g, tail, text, head, v, ended)
		}
		if len(own) >= reach {
			tail, text = tail[:0], text[:0]
		}
		tail, text = copyTail(tail, text, own[max(0, len(own)-reach):], v.n.lower)
		ended = bytes.HasSuffix(bytes.TrimRight(v.n.lower, " \n"), []byte("."))
		if drop := len(tail) - reach; drop > 0 {
			tail = tail[drop:]
		}
	}
}

// copyTail copies words so that they outlive their text.
func copyTail(tail []textWord, text []byte, words []textWord, from []byte) ([]textWord, []byte) {
	for _, w := range words {
		start := int32(len(text))
		text = append(text, from[w.start:w.end]...)
		text = append(text, ' ')
		w.start, w.end = start, int32(len(text)-1)
		w.begins = false
		tail = append(tail, w)
	}
	return tail, text
}

// matchAcrossBorder matches the patterns that begin in tail and end in head.
func (s *scanner) matchAcrossBorder(f *scannedString, g *patternIndex, tail []textWord, text []byte, head []textWord, v *textView, ended bool) {
	both := append(append(make([]textWord, 0, len(tail)+len(head)), tail...), head...)
	both[len(tail)].begins = ended
	m := patternMatcher{words: both, budget: min(s.matcher.budget, 20000)}
	for i := range tail {
		for _, c := range g.byWord[both[i].id] {
			p := &g.patterns[c]
			r := g.rules[p.rule]
			if both[i].id == 0 || p.rule >= g.firstCue || r.severity < SeverityReview || !r.places.has(f.place) {
				continue
			}
			if end := m.matchAt(p, i); end > len(tail) && s.acceptsPattern(int(c)) {
				last := head[end-len(tail)-1].end
				if p.mayBeOwn && s.isOwnSubject(v.n.lower[head[end-len(tail)-1].start:last]) {
					continue
				}
				r.severity = SeverityReview
				r.reason += "; the text is split between two strings"
				s.addFinding(f, r, 0, v.n.originalOffset(int(last)), string(text[both[i].start:])+string(v.n.lower[:last]))
			}
		}
	}
}

// ruleCues is the rule for several kinds of cues close together.
var ruleCues = scanRule{name: "many-cues", severity: SeverityReview, weak: true, faint: true, reason: "steers the model in several ways"}

// findCueClusters finds several kinds of cues close together.
func (s *scanner) findCueClusters(f *scannedString, v *textView, g *patternIndex) {
	for i, c := range s.cues {
		kinds, end := uint64(0), c.end
		for _, other := range s.cues[i:] {
			if other.start-c.start > cueWindow { // they are sorted
				break
			}
			if other.end-c.start > cueWindow {
				continue
			}
			kinds |= 1 << other.kind
			end = max(end, other.end)
		}
		if bits.OnesCount64(kinds) < minCueKinds {
			continue
		}
		r := ruleCues
		var why []string
		for k, cue := range g.rules[g.firstCue:] {
			if kinds&(1<<k) != 0 {
				why = append(why, cue.reason)
			}
		}
		r.reason += ": it " + strings.Join(why, "; ")
		if v.encoding == "" && !s.classifier.supportsWeakRule(c.start) {
			r.downgradeToNote()
		}
		s.addMatch(f, v, r, int(s.matcher.words[c.start].start), int(s.matcher.words[end-1].end), v.encoding == "" && (s.in(v, g).isMentionNotInstruction(c.start, end) || s.in(v, g).isExample(int(s.matcher.words[c.start].start))))
		return
	}
}

// The size of a cluster, in words, and the minimum number of kinds.
const (
	cueWindow   = 25
	minCueKinds = 3
)
