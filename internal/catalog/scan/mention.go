package scan

import (
	"bytes"
	"slices"
)

// isMentionNotInstruction reports whether the words from i to end are mentioned and are not an instruction. For example, a
// guard that detects 'ignore previous instructions' does not instruct that. In a mention, the sentence first describes the
// handling of such texts, and the words are in quotes, after a colon, or in their own clause.
func (s *scanner) isMentionNotInstruction(v *textView, g *patternIndex, i, end int) bool {
	words, text := s.matcher.words, v.n.lower
	first := i
	for first > 0 && !words[first].begins && i-first < 30 {
		first--
	}
	detects, labelled, clause := -1, -1, -1
	spoken, detected := false, false
	for k := first; k < i; k++ {
		id := words[k].id
		detected = detected || g.detect.has(id)
		spoken = spoken || g.detect.has(id) || g.label.has(id) || g.clause.has(id)
		switch {
		case g.detect.has(id):
			detects = k
		case g.label.has(id):
			labelled = k
		case g.clause.has(id):
			clause = k
		case g.conjunction.has(id) && i-k <= 3:
			clause, detects = -1, -1 // a new clause begins
		}
	}
	if detected && s.followsRequestNoun(v, first, i) {
		return true
	}
	if isInsideQuotes(text, int(words[i].start), int(words[end-1].end)) {
		return spoken
	}
	if labelled >= 0 && bytes.IndexByte(text[words[labelled].end:words[i].start], ':') >= 0 {
		return true
	}
	return detects >= 0 && clause >= 0 && clause >= detects
}

// followsRequestNoun reports whether a noun precedes the words from i on: "requests to
// read" is a mention.
func (s *scanner) followsRequestNoun(v *textView, first, i int) bool {
	words, text := s.matcher.words, v.n.lower
	if i-first < 3 || string(text[words[i-1].start:words[i-1].end]) != "to" {
		return false
	}
	switch string(text[words[i-2].start:words[i-2].end]) {
	case "requests", "orders", "attempts", "instructions", "commands", "demands":
		return true
	}
	return false
}

// isInsideQuotes reports whether there are quotes around start and end, close by.
func isInsideQuotes(text []byte, start, end int) bool {
	const far = 60
	for i := start - 1; i >= max(0, start-far); i-- {
		if c := text[i]; c == '/' && isInsideRegexp(text, i, end) {
			return true
		} else if c == '\'' || c == '"' || c == '`' {
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

// isInsideRegexp reports whether a regular expression between slashes, starting at open,
// contains end. A path has more slashes, or continues after the last one.
func isInsideRegexp(text []byte, open, end int) bool {
	const far = 60
	size := bytes.IndexByte(text[open+1:], '/')
	last := open + 1 + size
	if open == 0 || text[open-1] != ' ' || size < 0 || last < end || last-end > far {
		return false
	}
	return last+1 == len(text) || bytes.IndexByte([]byte(" .,;:)\n"), text[last+1]) >= 0
}

// isQuotedReply reports whether the words are in quotes after "respond with": the text of a reply is not an instruction to the
// reader.
func (s *scanner) isQuotedReply(v *textView, first, end int) bool {
	words, text := s.matcher.words, v.n.lower
	const far = 400
	start := int(words[first].start)
	open := bytes.LastIndexByte(text[:start], '"')
	if open < 0 || start-open > far || bytes.IndexByte(text[words[end-1].end:], '"') < 0 {
		return false
	}
	for _, w := range words[first:end] {
		if t := text[w.start:w.end]; w.kind&(isURL|isEmail|isSecretFile) != 0 || bytes.HasPrefix(t, []byte("you")) || bytes.HasPrefix(t, []byte("ignor")) {
			return false
		}
	}
	before := bytes.Fields(text[max(0, open-40):open])
	if len(before) < 2 || string(before[len(before)-1]) != "with" {
		return false
	}
	switch string(before[len(before)-2]) {
	case "respond", "reply", "answer":
		return true
	}
	return false
}

// addMentionNote adds a finding as a note. It counts in full if the definition has a worse
// finding, because the guard may be a disguise.
func (s *scanner) addMentionNote(f *scannedString, r scanRule, start, end int) {
	before := len(s.findings)
	full := r.severity
	r.severity = SeverityNote
	r.reason += "; mentioned, not an instruction"
	s.addFinding(f, r, start, end, "")
	if len(s.findings) > before {
		s.mentions = append(s.mentions, downgradedFinding{before, full})
	}
}

// restoreMentionSeverities gives mentions their full severity if a rule has found something else.
func (s *scanner) restoreMentionSeverities() {
	if !slices.ContainsFunc(s.findings, func(f Finding) bool { return f.Severity > SeverityNote && f.Rule != RuleClassifier }) {
		return
	}
	for _, m := range s.mentions {
		f := &s.findings[m.finding]
		f.Severity = max(f.Severity, m.severity)
	}
}
