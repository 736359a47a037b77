package scan

import (
	"bytes"
	"slices"
)

// A textContext decides from the text around a match whether the match is an instruction to the model.
type textContext struct {
	*scanner
	v *textView
	g *patternIndex
}

// in returns the context of matches in a text.
func (s *scanner) in(v *textView, g *patternIndex) textContext { return textContext{s, v, g} }

// isMentionNotInstruction reports whether the words from i to end are mentioned and are not an instruction. For example, a
// guard that detects 'ignore previous instructions' does not instruct that. In a mention, the sentence first describes the
// handling of such texts, and the words are in quotes, after a colon, or in their own clause.
func (s textContext) isMentionNotInstruction(i, end int) bool {
	words, text := s.matcher.words, s.v.n.lower
	quote := openingQuote(text, int(words[i].start), int(words[end-1].end))
	for quote >= 0 && i > 0 && int(words[i-1].start) > quote {
		i-- // what leads to the quotation says what it is
	}
	first := i
	if quote >= 0 && i > 0 {
		first--
	}
	for first > 0 && !words[first].begins && i-first < 30 {
		first--
	}
	detects, labelled, clause := -1, -1, -1
	spoken, detected := false, false
	for k := first; k < i; k++ {
		id := words[k].id
		detected = detected || s.g.detect.has(id)
		spoken = spoken || s.g.detect.has(id) || s.g.label.has(id) || s.g.clause.has(id)
		switch {
		case s.g.detect.has(id) && detects < 0:
			detects = k
		case s.g.label.has(id):
			labelled = k
		case s.g.clause.has(id):
			clause = k
		case s.g.conjunction.has(id) && i-k <= 3:
			clause, detects = -1, -1 // a new clause begins
		}
	}
	if (detected || s.isListOfDetected(first)) && s.followsRequestNoun(first, i) {
		return true
	}
	if quote >= 0 {
		return spoken || s.g.detect.has(words[0].id)
	}
	if labelled >= 0 && bytes.IndexByte(text[words[labelled].end:words[i].start], ':') >= 0 {
		return true
	}
	return detects >= 0 && clause >= 0 && clause >= detects
}

// isListOfDetected reports whether the sentence that begins at first is an item in a list of detected things. The
// sentence above, or the first word of the text, says that it is such a list.
func (s textContext) isListOfDetected(first int) bool {
	const far = 120 // words
	words, text := s.matcher.words, s.v.n.lower
	for k := first - 1; k >= max(0, first-far); k-- {
		if bytes.IndexByte(text[words[k].end:words[k+1].start], ':') < 0 {
			continue
		}
		for ; k >= 0; k-- {
			if s.g.detect.has(words[k].id) {
				return true
			} else if words[k].begins {
				return s.g.detect.has(words[0].id)
			}
		}
	}
	return false
}

// followsRequestNoun reports whether a noun precedes the words from i on, closely: "requests
// to read" is a mention.
func (s textContext) followsRequestNoun(first, i int) bool {
	words, text := s.matcher.words, s.v.n.lower
	for k := i - 1; k >= max(first+1, i-8); k-- { // the words in between may say of what
		if string(text[words[k].start:words[k].end]) == "to" {
			switch string(text[words[k-1].start:words[k-1].end]) {
			case "requests", "request", "orders", "order", "attempts", "attempt", "instructions", "instruction", "commands", "demands", "tries", "trying":
				return true
			}
		}
	}
	return false
}

// openingQuote returns the position of the opening quote of the quotation that contains start and end, or -1 if there
// is none nearby. Only double quotes may have several sentences in them.
func openingQuote(text []byte, start, end int) int {
	const far = 60
	sentences := false
	for i := start - 1; i >= max(0, start-far); i-- {
		switch c := text[i]; {
		case c == '\n':
			return -1
		case c == '.':
			sentences = true
		case c == '/' && !sentences && isInsideRegexp(text, i, end):
			return i
		case c == '\'' && i > 0 && isWordByte(text[i-1]) && isWordByte(text[i+1]): // an apostrophe
		case c == '\'' || c == '"' || c == '`':
			if bytes.IndexByte(text[end:min(len(text), end+far)], c) < 0 || sentences && (c != '"' || bytes.Count(text[:start], text[i:i+1])%2 == 0) {
				return -1
			}
			return i
		}
	}
	return -1
}

// isInsideRegexp reports whether a regular expression between slashes, starting at open,
// contains end. A path has more slashes, or continues after the last one.
func isInsideRegexp(text []byte, open, end int) bool {
	const far = 60
	size := bytes.IndexByte(text[open+1:], '/')
	last := open + 1 + size
	for flags := 0; flags < 3 && last+1 < len(text) && bytes.IndexByte([]byte("gimsu"), text[last+1]) >= 0; flags++ {
		last++
	}
	if open == 0 || text[open-1] != ' ' || size < 0 || last < end || last-end > far {
		return false
	}
	return last+1 == len(text) || bytes.IndexByte([]byte(" .,;:)\n"), text[last+1]) >= 0
}

// isQuotedReply reports whether the words are in quotes after "respond with": the text of a reply is not an instruction to the
// reader.
func (s textContext) isQuotedReply(first, end int) bool {
	words, text := s.matcher.words, s.v.n.lower
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

// addMentionNote adds a finding as a note. If the definition has a worse finding, this finding counts in full, because
// the harmless context may be a disguise.
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

// isOwnAction reports whether the words from i to end say what the tool itself does: they begin its
// description ("Reads the file"), or its name has one of them.
func (s textContext) isOwnAction(i, end int) bool {
	words, text := s.matcher.words, s.v.n.lower
	return i == 0 && text[words[0].end-1] == 's' || s.isOwnStatement(int(words[i].start), int(words[end-1].end))
}
