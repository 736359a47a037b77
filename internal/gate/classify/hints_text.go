package classify

import (
	"strings"
	"unicode/utf8"
)

// maxHintText limits the analyzed part of a description, in bytes; real ones have up to 10 KB. A tool with
// a longer one does not count as read-only.
const maxHintText = 16 << 10

// text is the analysis of a description.
type text struct {
	lead role   // effect of its first verb
	verb string // the verb
	// deletes and changes are words that contradict a read-only tool.
	deletes, changes string
	final            bool   // it says that something is irreversible
	readOnly         bool   // it says that it changes nothing
	code             string // it mentions code of a query language: "SQL query"
	long             bool
	words            int
}

// readText analyzes a description.
func readText(s string) text {
	t := text{long: len(s) > maxHintText}
	if t.long {
		s = s[:maxHintText]
	}
	r := reader{text: &t, known: lexicon().words, start: true, opening: true}
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
		r.take(s[from:i])
	}
	t.foreign(s)
	return t
}

// reader is the state of readText between two words.
type reader struct {
	*text
	known   map[string]word
	scratch [2][24]byte
	before  []byte // the previous word and its lexicon entry
	was     word
	start   bool // at the start of a sentence
	opening bool // in the first sentence
	strange int  // number of unknown words before the first verb
}

// take analyzes one word.
func (r *reader) take(raw string) {
	w := lower(raw, r.scratch[r.words%2][:]) // the other buffer has the previous word
	v := r.known[string(w)]
	if r.opening && r.lead == noRole {
		r.leading(w, v)
	}
	if r.opening && r.code == "" && v.is(written) && r.was.is(language) {
		r.code = string(r.before) + " " + string(w)
	}
	r.remarks(w, v)
	r.contrary(w, v)
	r.before, r.was = w, v
	r.start, r.words = false, r.words+1
}

// leading checks whether a word is the first verb.
func (r *reader) leading(w []byte, v word) {
	const mostStrange = 3
	switch {
	case v.is(filler):
	case v.role == noRole || v.form == participle:
		r.strange++
	case v.form == third && r.strange <= mostStrange && (v.role != mayWrite || r.start || r.was.is(subject)),
		v.form != third && (r.strange == 0 || r.start || string(r.before) == "to"):
		r.lead, r.verb = v.role, string(w)
	default:
		r.strange++
	}
}

// remarks checks for statements about the whole tool, such as "read-only".
func (r *reader) remarks(w []byte, v word) {
	r.final = r.final || v.is(final) && !r.was.is(negation)
	r.readOnly = r.readOnly || string(w) == "readonly" || string(w) == "only" && string(r.before) == "read"
}

// contrary checks for words that contradict a read-only tool.
func (r *reader) contrary(w []byte, v word) {
	switch v.role {
	case destroys:
		passive := v.form == participle && r.was.is(passive)
		if r.deletes == "" && !v.is(state) && (passive || v.form != participle && !(v.form == base && v.is(adjective))) {
			r.deletes = string(w)
		}
	case writes, mayWrite, runs:
		if r.changes == "" && !r.was.is(negation) && r.acts(v) {
			r.changes = string(w)
		}
	}
}

// acts reports whether a verb is at a position where it says what the tool does.
func (r *reader) acts(v word) bool {
	led := r.was.is(leader)
	switch v.role {
	case writes:
		return !v.is(smallChange) && (v.form == third || v.form == base && (r.start || led))
	case mayWrite:
		return v.form == base && led && string(r.before) != "can" && string(r.before) != "may" && v.is(changer)
	default:
		return v.form == third && led
	}
}

// foreign checks for deletion words in scripts without spaces, and others outside of the lexicon.
func (t *text) foreign(s string) {
	if t.deletes != "" || !hasForeign(s) {
		return
	}
	for _, stem := range lexicon().deletions {
		if stem[0] >= utf8.RuneSelf && strings.Contains(s, stem) {
			t.deletes = stem
			return
		}
	}
}
