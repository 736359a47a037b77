package effect

import (
	"strings"
	"unicode/utf8"
)

// maxText is how much of a description is read, in bytes; real ones have up to
// 10 KB. A longer one is not taken for reading.
const maxText = 16 << 10

// text is what a description says.
type text struct {
	lead role   // what its first verb does
	verb string // that verb
	// deletes and changes are words that speak against a tool that only reads.
	deletes, changes string
	final            bool // it says that something cannot be undone
	readOnly         bool // it says that it changes nothing
	long             bool
	words            int
}

func (t *text) empty() bool { return t.words == 0 }

// mattering are the words that change what the next one says.
var mattering = same(`and or then also will can may automatically optionally it this tool that which be is are being gets get
	non not no without never cannot read to`)

// passives stand before what is done to a thing; negations before what is not.
var (
	passives  = set(`be is are being get gets`)
	negations = set(`non not no without never cannot`)
)

func same(words string) map[string]string {
	m := map[string]string{}
	for w := range set(words) {
		m[w] = w
	}
	return m
}

// fillers may stand before the first verb: "This tool can be used to list …".
var fillers = set(`a an the this that it tool tools function api endpoint method command use used using uses to you your
	allows allow lets let enables enable helps help will can be is are for which mcp server agent agents user users
	call when if optionally quickly easily efficiently safely first beta deprecated experimental new
	simple simply directly automatically performs perform`)

// subjects stand before what a tool does: "this tool posts".
var subjects = set(`this tool that it which also and`)

// adjectives are words about deleting which say in a description how a thing
// is, as a rule.
var adjectives = set(`empty clear clean drain strip trash scrap kick ban abort void expire`)

// states are forms which say what happens to a text or a token.
var states = set(`expires expired truncating truncated dropping drops reset resets`)

// harmlessVerbs change something in a name, but say little in a description.
var harmlessVerbs = set(`accept accepts enable enables increment increments decrement decrements leave leaves compose composes
	navigate navigates generate generates compress make makes put puts disable disables`)

// neutral are verbs with which the description of a reading tool may begin.
var neutral = set(`track tracks capture captures process processes respond responds convert converts pull pulls use uses filter
	filters sort sorts group groups match matches map maps sample transform interact test tests simulate simulates render
	renders plot call calls request requests report stream streams run runs execute executes generate generates review
	select selects access accesses load loads resolve resolves log logs`)

// changers are verbs which can be nouns, but not after "and" or "or".
var changers = set(`set update change store submit cancel merge push transfer restore install deploy import move`)

// leaders may stand before a verb that tells what a tool does, in the middle
// of a sentence.
var leaders = set(`and or then also will can may automatically optionally it`)

// readText goes through the words of a description.
func readText(s string) text {
	t := text{long: len(s) > maxText}
	if t.long {
		s = s[:maxText]
	}
	r := reader{text: &t, known: lexicon(), start: true, opening: true}
	for i := 0; i < len(s); {
		if c := s[i]; !letter(c) {
			switch c {
			case ':':
				r.start, r.strange = true, 0 // "GitHub: list issues"
			case '.', '\n', ';', '!', '?':
				r.start = true
				r.opening = r.opening && t.empty()
			}
			i++
			continue
		}
		from := i
		for i < len(s) && letter(s[i]) {
			i++
		}
		r.take(s[from:i])
	}
	t.foreign(s)
	return t
}

func letter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' || c >= utf8.RuneSelf }

// lower gives a word in lower case, in scratch; one that is too long for it is
// none of the lexicon.
func lower(w string, scratch []byte) []byte {
	if len(w) > len(scratch) {
		return nil
	}
	for i := range len(w) {
		c := w[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		scratch[i] = c
	}
	return scratch[:len(w)]
}

// reader is the state between two words.
type reader struct {
	*text
	known   map[string]word
	scratch [24]byte
	before  string // the word before, when it is one that matters
	start   bool   // a sentence begins
	opening bool   // it is the first sentence
	strange int    // how many words before the first verb are unknown
}

// take judges one word.
func (r *reader) take(raw string) {
	w := lower(raw, r.scratch[:])
	v := r.known[string(w)]
	if r.opening && r.lead == noRole {
		r.leading(w, v)
	}
	r.remarks(w)
	r.contrary(w, v)
	r.before = mattering[string(w)]
	r.start, r.words = false, r.words+1
}

// leading looks whether a word is the first verb.
func (r *reader) leading(w []byte, v word) {
	const mostStrange = 3
	switch {
	case fillers[string(w)]:
	case v.role == noRole || v.form == participle:
		r.strange++
	case v.form == third && r.strange <= mostStrange && (v.role != mayWrite || r.start || subjects[r.before]),
		v.form != third && (r.strange == 0 || r.start || r.before == "to"):
		r.lead, r.verb = v.role, string(w)
	default:
		r.strange++
	}
}

// remarks looks for words that say something about all that the tool does.
func (r *reader) remarks(w []byte) {
	switch string(w) {
	case "irreversible", "irreversibly", "undone", "destructive", "irrevocably", "irrecoverable", "permanently":
		r.final = r.final || !negations[r.before]
	case "only":
		r.readOnly = r.readOnly || r.before == "read"
	case "readonly":
		r.readOnly = true
	}
}

// contrary looks for words that speak against a tool that only reads.
func (r *reader) contrary(w []byte, v word) {
	switch v.role {
	case destroys:
		passive := v.form == participle && passives[r.before]
		if r.deletes == "" && !states[string(w)] && (passive || v.form != participle && !(v.form == base && adjectives[string(w)])) {
			r.deletes = string(w)
		}
	case writes, mayWrite, runs:
		if r.changes == "" && !negations[r.before] && r.acts(w, v) {
			r.changes = string(w)
		}
	}
}

// acts says whether a verb stands where it says what the tool does.
func (r *reader) acts(w []byte, v word) bool {
	leader := leaders[r.before]
	switch v.role {
	case writes:
		return !harmlessVerbs[string(w)] && (v.form == third || v.form == base && (r.start || leader))
	case mayWrite:
		return v.form == base && leader && r.before != "can" && r.before != "may" && changers[string(w)]
	default:
		return v.form == third && leader
	}
}

// foreign looks for words about deleting in scripts without spaces, and others
// that the lexicon does not hold.
func (t *text) foreign(s string) {
	if t.deletes != "" || !hasForeign(s) {
		return
	}
	for _, stem := range deletions {
		if stem[0] >= utf8.RuneSelf && strings.Contains(s, stem) {
			t.deletes = stem
			return
		}
	}
}

func hasForeign(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return true
		}
	}
	return false
}
