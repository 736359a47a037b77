package scan

import (
	"slices"
	"strconv"
	"strings"

	"mcpproxy/internal/mcp/wirejson"
)

// Passage is a string of a definition as a model reads it: without what is
// invisible, in plain letters. It is valid until the next one is looked at.
type Passage struct {
	Cased []byte // what it says
	Lower []byte // the same in small letters; as long

	n     normalText
	text  string
	steps []pathStep
	name  string // stands for the path when there is none
}

// pathStep is one step of the way to a string: into a member, or into an element.
type pathStep struct {
	member []byte // as it is written; nil for an element
	index  int
}

// eachString has look look at the strings of JSON whose grammar is checked: all
// values, in their order, at most maxStrings of them and not deeper than
// maxDepth. Names of members are none. What JSON may not be is left out by skip,
// which sees a string as it is written between its quotes; nil leaves out nothing.
func eachString(raw []byte, skip func(written []byte) bool, look func(*Passage)) {
	w := stringWalker{Cursor: wirejson.Cursor{Text: raw}, left: maxStrings, skip: skip, look: look}
	w.value(0)
}

// ScanProse has look look at a text that is no JSON; the path of its findings is its
// name.
func ScanProse(name, text string, look func(*Passage)) {
	t := Passage{name: name}
	t.read(text[:min(len(text), maxText)])
	look(&t)
}

// Finding returns the finding that a rule has in the text between two places.
func (t *Passage) Finding(rule string, severity Severity, reason string, start, end int) Finding {
	start, end = min(t.n.origin(start), len(t.text)), min(t.n.origin(end), len(t.text))
	return Finding{Rule: rule, Severity: severity, Path: t.path(), Start: start, End: max(start, end), Excerpt: escapeExcerpt(t.text[start:max(start, end)]), Reason: reason}
}

func (t *Passage) path() string {
	var b strings.Builder
	b.WriteString(t.name)
	for _, s := range t.steps {
		b.WriteByte('/')
		if s.member != nil {
			b.WriteString(wirejson.PointerToken(decodeJSONString(s.member)))
		} else {
			b.WriteString(strconv.Itoa(s.index))
		}
	}
	return b.String()
}

func (t *Passage) read(text string) {
	t.text = text
	t.n.normalize(text)
	t.Cased, t.Lower = t.n.cased, t.n.lower
}

// NormalizeName returns a name as a Passage has it.
func NormalizeName(name string) string {
	if isPlain(name) {
		return name
	}
	var n normalText
	n.normalize(name)
	return string(n.cased)
}

// stringWalker goes through JSON and keeps the way in its text.
type stringWalker struct {
	wirejson.Cursor
	text Passage
	left int // strings
	skip func([]byte) bool
	look func(*Passage)
}

func (w *stringWalker) value(depth int) {
	if depth > maxDepth || w.left <= 0 {
		w.Value()
		return
	}
	at := len(w.text.steps)
	switch w.Peek() {
	case '{':
		w.text.steps = append(w.text.steps, pathStep{})
		for end := w.Open('{'); w.More(end); {
			w.text.steps[at].member = slices.Clip(w.Name())
			w.value(depth + 1)
		}
		w.text.steps = w.text.steps[:at]
	case '[':
		w.text.steps = append(w.text.steps, pathStep{})
		for end := w.Open('['); w.More(end); w.text.steps[at].index++ {
			w.value(depth + 1)
		}
		w.text.steps = w.text.steps[:at]
	case '"':
		w.left--
		written := w.Value()
		if len(written) < 2 {
			return
		}
		if written = written[1 : len(written)-1]; w.skip == nil || !w.skip(written) {
			w.text.read(decodeJSONString(written))
			w.look(&w.text)
		}
	default:
		w.Value()
	}
}

// WithFindings returns the report with what was found besides, by what looks beyond the
// definition. It is no cleaner than before.
func (r Report) WithFindings(more []Finding) Report {
	if len(more) == 0 {
		return r
	}
	all := append(slices.Clone(r.Findings[:min(len(r.Findings), max(0, maxFindings-len(more)))]), more...)
	if verdict := verdictOf(all); r.Verdict == Clean || r.Verdict == Review {
		r.Verdict = verdict
	} else if verdict == Block {
		r.Verdict = Block
	}
	r.Findings = all
	return r
}

// WordForms returns the words that an entry of a list of words stands for (of a verb
// marked by *, of a noun marked by +), as the small letters of a Passage have them.
func WordForms(entry string) []string {
	all := wordForms(entry)
	for i, form := range all {
		all[i] = strings.ToLower(NormalizeName(form))
	}
	return all
}
