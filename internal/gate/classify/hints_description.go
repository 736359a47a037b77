package classify

import (
	"strings"
	"unicode/utf8"
)

// maxHintText limits the analyzed part of a description, in bytes; real ones have up to 10 KB. A tool with a longer
// description does not count as read-only.
const maxHintText = 16 << 10

// textAnalysis is the analysis of a description.
type textAnalysis struct {
	lead wordEffect // effect of its first verb
	verb string     // the verb
	// deletes and changes are words that contradict a read-only tool.
	deletes, changes string
	final            bool   // the description states that something is irreversible
	readOnly         bool   // the description states that the tool changes nothing
	code             string // mentions code of a query language: "SQL query"
	long             bool
	words            int
}

// analyzeText analyzes a description.
func analyzeText(s string) textAnalysis {
	t := textAnalysis{long: len(s) > maxHintText}
	if t.long {
		s = s[:maxHintText]
	}
	r := descriptionAnalyzer{textAnalysis: &t, known: lexicon().words, start: true, opening: true}
	for i := 0; i < len(s); {
		if c := s[i]; !isLetterByte(c) {
			switch c {
			case ':':
				r.start, r.strange = true, 0 // "GitHub: list issues"
			case '.', '\n', ';', '!', '?':
				r.start = true
				r.opening = r.opening && t.words == 0
			}
			i++
			continue
		}
		from := i
		for i < len(s) && isLetterByte(s[i]) {
			i++
		}
		r.analyzeWord(s[from:i])
	}
	t.findNonASCIIDeletionWord(s)
	return t
}

// descriptionAnalyzer is the state of analyzeText between two words.
type descriptionAnalyzer struct {
	*textAnalysis
	known   map[string]lexiconEntry
	scratch [2][24]byte
	before  []byte // the previous word and its lexicon entry
	was     lexiconEntry
	start   bool // at the start of a sentence
	opening bool // in the first sentence
	strange int  // number of unknown words before the first verb
}

// analyzeWord analyzes one word.
func (r *descriptionAnalyzer) analyzeWord(raw string) {
	w := lowerInto(raw, r.scratch[r.words%2][:]) // the other buffer contains the previous word
	v := r.known[string(w)]
	if r.opening && r.lead == noRole {
		r.checkLeadVerb(w, v)
	}
	if r.opening && r.code == "" && v.has(written) && r.was.has(language) {
		r.code = string(r.before) + " " + string(w)
	}
	r.noteReadOnlyOrFinal(w, v)
	r.noteReadOnlyContradiction(w, v)
	r.before, r.was = w, v
	r.start, r.words = false, r.words+1
}

// checkLeadVerb checks whether a word is the first verb.
func (r *descriptionAnalyzer) checkLeadVerb(w []byte, v lexiconEntry) {
	const mostStrange = 3
	switch {
	case v.has(filler):
	case v.role == noRole || v.form == participle:
		r.strange++
	case v.form == third && r.strange <= mostStrange && (v.role != mayWrite || r.start || r.was.has(subject)),
		v.form != third && (r.strange == 0 || r.start || string(r.before) == "to"):
		r.lead, r.verb = v.role, string(w)
	default:
		r.strange++
	}
}

// noteReadOnlyOrFinal checks for statements about the whole tool, such as "read-only".
func (r *descriptionAnalyzer) noteReadOnlyOrFinal(w []byte, v lexiconEntry) {
	r.final = r.final || v.has(final) && !r.was.has(negation)
	r.readOnly = r.readOnly || string(w) == "readonly" || string(w) == "only" && string(r.before) == "read"
}

// noteReadOnlyContradiction checks for words that contradict a read-only tool.
func (r *descriptionAnalyzer) noteReadOnlyContradiction(w []byte, v lexiconEntry) {
	switch v.role {
	case destroys:
		passive := v.form == participle && r.was.has(passive)
		if r.deletes == "" && !v.has(state) && (passive || v.form != participle && !(v.form == base && v.has(adjective))) {
			r.deletes = string(w)
		}
	case writes, mayWrite, runs:
		if r.changes == "" && !r.was.has(negation) && r.describesToolAction(v) {
			r.changes = string(w)
		}
	}
}

// describesToolAction reports whether a verb is at a position where it describes the action of the tool.
func (r *descriptionAnalyzer) describesToolAction(v lexiconEntry) bool {
	led := r.was.has(leader)
	switch v.role {
	case writes:
		return !v.has(smallChange) && (v.form == third || v.form == base && (r.start || led))
	case mayWrite:
		return v.form == base && led && string(r.before) != "can" && string(r.before) != "may" && v.has(changer)
	default:
		return v.form == third && led
	}
}

// findNonASCIIDeletionWord checks for non-ASCII deletion words anywhere in the text, because some scripts have no
// spaces between words.
func (t *textAnalysis) findNonASCIIDeletionWord(s string) {
	if t.deletes != "" || !hasNonASCII(s) {
		return
	}
	for _, stem := range lexicon().deletions {
		if stem[0] >= utf8.RuneSelf && strings.Contains(s, stem) {
			t.deletes = stem
			return
		}
	}
}
