package classify

import (
	"strings"
	"unicode/utf8"
)

// maxHintText is how much of a description is read, in bytes; real ones have up to
// 10 KB. A longer one is not taken for reading.
const maxHintText = 16 << 10

// text is what a description says.
type text struct {
	lead role   // what its first verb does
	verb string // that verb
	// deletes and changes are words that speak against a tool that only reads.
	deletes, changes string
	final            bool   // it says that something cannot be undone
	readOnly         bool   // it says that it changes nothing
	code             string // it speaks of what is written in a language of queries: "SQL query"
	long             bool
	words            int
}

// readText goes through the words of a description.
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

// reader is the state between two words.
type reader struct {
	*text
	known   map[string]word
	scratch [2][24]byte
	before  []byte // the word before, and what the lexicon knows of it
	was     word
	start   bool // a sentence begins
	opening bool // it is the first sentence
	strange int  // how many words before the first verb are unknown
}

// take judges one word.
func (r *reader) take(raw string) {
	w := lower(raw, r.scratch[r.words%2][:]) // the word before is in the other one
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

// leading looks whether a word is the first verb.
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

// remarks looks for words that say something about all that the tool does.
func (r *reader) remarks(w []byte, v word) {
	r.final = r.final || v.is(final) && !r.was.is(negation)
	r.readOnly = r.readOnly || string(w) == "readonly" || string(w) == "only" && string(r.before) == "read"
}

// contrary looks for words that speak against a tool that only reads.
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

// acts reports whether a verb stands where it says what the tool does.
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

// foreign looks for words about deleting in scripts without spaces, and others
// that the lexicon does not hold.
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
