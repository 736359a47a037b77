package scan

import (
	"bytes"
	"slices"
)

// mentioned reports whether the words from i to end are spoken of and not said:
// a guard that detects 'ignore previous instructions' does not ask for it. Then
// the sentence says before what is done with such texts, and the words stand in
// quotes, after a colon, or in a clause of their own.
func (s *scanner) mentioned(v *view, g *grammar, i, end int) bool {
	words, text := s.matcher.words, v.n.lower
	first := i
	for first > 0 && !words[first].begins && i-first < 30 {
		first--
	}
	detects, labelled, clause := -1, -1, -1
	spoken := false
	for k := first; k < i; k++ {
		id := words[k].id
		spoken = spoken || g.detect.has(id) || g.label.has(id) || g.clause.has(id)
		switch {
		case g.detect.has(id):
			detects = k
		case g.label.has(id):
			labelled = k
		case g.clause.has(id):
			clause = k
		case g.conjunction.has(id) && i-k <= 3:
			clause, detects = -1, -1 // what follows is said anew
		}
	}
	if quoted(text, int(words[i].start), int(words[end-1].end)) {
		return spoken
	}
	if labelled >= 0 && bytes.IndexByte(text[words[labelled].end:words[i].start], ':') >= 0 {
		return true
	}
	return detects >= 0 && clause >= 0 && clause >= detects
}

// quoted reports whether quotes stand around what is between start and end, not
// far from it.
func quoted(text []byte, start, end int) bool {
	const far = 60
	for i := start - 1; i >= max(0, start-far); i-- {
		if c := text[i]; c == '\'' || c == '"' || c == '`' {
			for j := end; j < min(len(text), end+far); j++ {
				if text[j] == c {
					return true
				}
			}
			return false
		} else if c == '.' || c == '\n' {
			return false
		}
	}
	return false
}

// mention keeps a finding as a note. It counts in full when the definition has
// something worse, for then the guard may be a disguise.
func (s *scanner) mention(f *field, r rule, start, end int) {
	before := len(s.findings)
	full := r.severity
	r.severity = SeverityNote
	r.reason += "; spoken of, not said"
	s.found(f, r, start, end, "")
	if len(s.findings) > before {
		s.mentions = append(s.mentions, mentioned{before, full})
	}
}

// unmask sets the mentions to their full weight when a rule has found something else.
func (s *scanner) unmask() {
	if !slices.ContainsFunc(s.findings, func(f Finding) bool { return f.Severity > SeverityNote && f.Rule != RuleJudged }) {
		return
	}
	for _, m := range s.mentions {
		f := &s.findings[m.finding]
		f.Severity = max(f.Severity, m.severity)
	}
}
