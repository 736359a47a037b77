package scan

import (
	"slices"

	"mcpproxy/internal/catalog/tool"
)

var ruleJudged = rule{name: RuleJudged, severity: SeverityReview, reason: "reads like what poisoned definitions say"}

// Phrases yields the phrases of a definition that have enough words, as the judge
// reads them. Each is valid until the next one.
func Phrases(d tool.Definition, yield func(p *Phrase)) {
	s := newScanner(Trial{})
	if !s.take(d.Raw) {
		return
	}
	for k := range s.fields {
		f := &s.fields[k]
		v := &s.base
		v.n.read(f.text)
		s.matcher.words = v.n.split(s.matcher.words, compiled().lex, f.place == placeName || f.place == placeKey)
		s.phrases(f, v, func(p *Phrase, _, _ int) {
			if p.Len() >= fewPhraseWords {
				yield(p)
			}
		})
	}
}

// phrases yields the phrases of a view, and the words that each is of. The first
// sentence of what is said of a parameter is also read with the parameter's name.
func (s *scanner) phrases(f *field, v *view, yield func(p *Phrase, first, end int)) {
	words := s.matcher.words
	k := &s.judging.key
	named := k.node > 0 && f.name == "" && f.place == placeProse && s.nodes[f.node].parent == k.node
	k.node = 0
	for first := 0; first < len(words); {
		end := first + 1
		for end < len(words) && end-first < maxPhraseWords && !(words[end].begins && end-first >= shortSentence || v.labels(words, end)) {
			end++
		}
		if first == 0 && named {
			yield(s.phrase(f, v, first, end, true), first, end)
		}
		yield(s.phrase(f, v, first, end, false), first, end)
		first = end
	}
	if f.place == placeKey && f.name == "" && v.depth == 0 {
		k.node, k.text = f.node, append(k.text[:0], v.n.lower...)
		k.words = append(k.words[:0], words[:min(len(words), longName)]...)
	}
}

// labels reports whether a word begins a line, and is what a colon stands behind:
// such are the lines of a docstring, one for each parameter.
func (v *view) labels(words []word, i int) bool {
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

func (s *scanner) phrase(f *field, v *view, first, end int, named bool) *Phrase {
	p, k := &s.judging.phrase, &s.judging.key
	p.Reset()
	if named {
		for _, w := range k.words {
			p.Add(k.text[w.start:w.end], false)
		}
		p.Add(wordKey, false)
	}
	prose := f.place == placeProse || f.place == placeValue
	for i := first; i < end; i++ {
		w := &s.matcher.words[i]
		p.Add(v.judged(w), prose && w.kind&isIdentifier != 0)
	}
	return p
}

// A sentence of fewer words is read with the next one; of a name that many words
// are read.
const (
	shortSentence = 3
	longName      = 6
)

// Words that stand for others.
var (
	wordKey    = []byte("#key")
	wordURL    = []byte("#url")
	wordEmail  = []byte("#email")
	wordSecret = []byte("#secret")
	wordPath   = []byte("#path")
	wordNumber = []byte("#number")
)

// judged returns a word as the judge reads it.
func (v *view) judged(w *word) []byte {
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

// judge scores the phrases of a view.
func (s *scanner) judge(f *field, v *view, g *grammar) {
	j := &s.judging
	if j.model == nil {
		return
	}
	j.spans = j.spans[:0]
	s.phrases(f, v, func(p *Phrase, first, end int) {
		score := j.model.Score(p)
		j.spans = append(j.spans, scored{first, end, score})
		if score <= j.best || p.Len() < fewPhraseWords || v.encoding == "" && score >= j.model.Agree && s.spokenOf(v, g, p, first, end) {
			return
		}
		j.best = score
		if score < j.model.Review {
			return
		}
		w := &j.worst
		from, to := s.matcher.words[first].start, s.matcher.words[end-1].end
		w.field, w.core = f, v.words(s.matcher.words, s.core(p, first, end))
		w.start, w.end = v.place(int(from), int(to))
		if w.excerpt = ""; v.encoding != "" {
			w.excerpt = string(v.n.cased[from:to])
		}
	})
}

// spokenOf reports whether what weighs the most in a phrase is only spoken of.
func (s *scanner) spokenOf(v *view, g *grammar, p *Phrase, first, end int) bool {
	core := s.core(p, first, end)
	return s.mentioned(v, g, core.start, core.end) || s.replied(v, first, end)
}

// core returns the words of the matcher, of those of a phrase, that weigh the most.
func (s *scanner) core(p *Phrase, first, end int) span {
	name := p.Len() - (end - first) // the words of a parameter's name stand before it
	from, to := s.judging.model.Heaviest(p, coreWords)
	return span{first + max(0, from-name), first + max(1, to-name)}
}

// words returns the text from the first to the last of some words.
func (v *view) words(words []word, of span) string {
	return string(v.n.cased[words[of.start].start:words[of.end-1].end])
}

// coreWords is how many words of a phrase are taken for what it is about.
const coreWords = 6

// verdict keeps what the judge found.
func (s *scanner) verdict() {
	if w := &s.judging.worst; w.field != nil {
		r := ruleJudged
		r.reason += `, most of all: "` + escape(w.core) + `"`
		s.found(w.field, r, w.start, w.end, w.excerpt)
	}
}

// agrees reports whether the phrase that has the word reads somewhat like poison,
// too.
func (j *judging) agrees(word int) bool {
	return j.model == nil || slices.ContainsFunc(j.spans, func(of scored) bool {
		return of.first <= word && word < of.end && of.score >= j.model.Agree
	})
}

// weaken has a weak rule say nothing by itself.
func (r *rule) weaken() {
	r.severity = SeverityNote
	r.reason += "; it alone says little, and the sentence does not read like poison"
}
