package scan

import (
	"slices"
	"strconv"
	"strings"

	"mcpproxy/internal/mcp/wirejson"
)

// Passage is a normalized string of a definition. It is valid until the next one.
type Passage struct {
	Cased []byte // normalized text
	Lower []byte // in lower case; of the same length

	n     normalText
	text  string
	steps []pathStep
	name  string // used instead of the path, if set
}

// pathStep is one step of the path to a string: a member or an element.
type pathStep struct {
	member []byte // as written; nil for an element
	index  int
}

// eachStringValue calls look with the string values of valid JSON in order, at most maxStrings
// and up to maxDepth. It omits member names, and strings for which skip, given the raw
// text, returns true. skip may be nil.
func eachStringValue(raw []byte, skip func(written []byte) bool, look func(*Passage)) {
	w := stringWalker{Cursor: wirejson.Cursor{Text: raw}, left: maxStrings, skip: skip, look: look}
	w.walkValue(0)
}

// VisitPlainText calls look with a text that is not JSON; its name is the path of findings.
func VisitPlainText(name, text string, look func(*Passage)) {
	t := Passage{name: name}
	t.setText(text[:min(len(text), maxText)])
	look(&t)
}

// NewFinding returns a finding for the text between two offsets.
func (t *Passage) NewFinding(rule string, severity Severity, reason string, start, end int) Finding {
	start, end = min(t.n.originalOffset(start), len(t.text)), min(t.n.originalOffset(end), len(t.text))
	return Finding{Rule: rule, Severity: severity, Path: t.jsonPath(), Start: start, End: max(start, end), Excerpt: escapeExcerpt(t.text[start:max(start, end)]), Reason: reason}
}

func (t *Passage) jsonPath() string {
	var b strings.Builder
	b.WriteString(t.name)
	for _, s := range t.steps {
		b.WriteByte('/')
		if s.member != nil {
			b.WriteString(wirejson.EscapePointerToken(decodeJSONString(s.member)))
		} else {
			b.WriteString(strconv.Itoa(s.index))
		}
	}
	return b.String()
}

func (t *Passage) setText(text string) {
	t.text = text
	t.n.normalize(text)
	t.Cased, t.Lower = t.n.cased, t.n.lower
}

// NormalizeName returns a name normalized like a Passage.
func NormalizeName(name string) string {
	if isPrintableASCII(name) {
		return name
	}
	var n normalText
	n.normalize(name)
	return string(n.cased)
}

// stringWalker walks JSON and tracks the path.
type stringWalker struct {
	wirejson.Cursor
	text Passage
	left int // remaining strings
	skip func([]byte) bool
	look func(*Passage)
}

func (w *stringWalker) walkValue(depth int) {
	if depth > maxDepth || w.left <= 0 {
		w.ReadValue()
		return
	}
	at := len(w.text.steps)
	switch w.Peek() {
	case '{':
		w.text.steps = append(w.text.steps, pathStep{})
		for end := w.Enter('{'); w.More(end); {
			w.text.steps[at].member = slices.Clip(w.ReadName())
			w.walkValue(depth + 1)
		}
		w.text.steps = w.text.steps[:at]
	case '[':
		w.text.steps = append(w.text.steps, pathStep{})
		for end := w.Enter('['); w.More(end); w.text.steps[at].index++ {
			w.walkValue(depth + 1)
		}
		w.text.steps = w.text.steps[:at]
	case '"':
		w.left--
		written := w.ReadValue()
		if len(written) < 2 {
			return
		}
		if written = written[1 : len(written)-1]; w.skip == nil || !w.skip(written) {
			w.text.setText(decodeJSONString(written))
			w.look(&w.text)
		}
	default:
		w.ReadValue()
	}
}

// WithFindings returns the report with further findings. Its verdict is no better than
// before.
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

// NormalizedWordForms returns the forms of a word list entry (of a verb marked by *, of a noun
// marked by +), in normalized lower case.
func NormalizedWordForms(entry string) []string {
	all := wordForms(entry)
	for i, form := range all {
		all[i] = strings.ToLower(NormalizeName(form))
	}
	return all
}
