package scan

import (
	"fmt"
	"slices"
)

// scanner is one scan: the strings, and what was found in them.
type scanner struct {
	fields   []field
	nodes    []node
	findings []Finding
	failed   bool
	decoded  int   // bytes decoded so far
	viewed   int   // bytes of texts uncovered so far
	cues     []cue // of the view that is looked at
	matcher  matcher
	base     view
	mentions []mentioned
}

func newScanner() *scanner { return &scanner{matcher: matcher{budget: budget}} }

func (s *scanner) add(f field) { s.fields = append(s.fields, f) }

// guard runs a part of the scan. One that panics makes the report incomplete.
func (s *scanner) guard(part string, run func()) {
	defer func() {
		if p := recover(); p != nil {
			s.broken(fmt.Sprintf("the rule %s failed: this definition could not be looked at in full", part))
		}
	}()
	run()
}

func (s *scanner) broken(reason string) {
	s.failed = true
	s.findings = append(s.findings, Finding{Rule: "incomplete", Severity: SeverityReview, Reason: reason})
}

func (s *scanner) tooLarge(path, reason string) {
	s.findings = append(s.findings, Finding{Rule: "too-large", Severity: SeverityReview, Path: path, Reason: reason})
}

// found keeps a finding in a field; start and end are bytes of its text. What
// the same rule found already at a place that overlaps, is not kept twice.
func (s *scanner) found(f *field, r rule, start, end int, excerpt string) {
	start, end = max(0, min(start, len(f.text))), max(0, min(end, len(f.text)))
	if excerpt == "" {
		excerpt = f.text[start:max(start, end)]
	}
	path := f.name
	if path == "" {
		path = s.pointer(f.node)
	}
	n := Finding{Rule: r.name, Severity: r.severity, Path: path, Start: start, End: end, Excerpt: escape(excerpt), Reason: r.reason}
	for k := range s.findings {
		old := &s.findings[k]
		if old.Rule == n.Rule && (old.Path == n.Path && old.Start < n.End && n.Start < old.End || old.Excerpt == n.Excerpt) {
			if n.Severity > old.Severity {
				*old = n
			}
			return
		}
	}
	if len(s.findings) < maxKept || n.Severity == SeverityBlock && len(s.findings) < 2*maxKept {
		s.findings = append(s.findings, n)
	}
}

// maxKept bounds the findings among which the worst are chosen.
const maxKept = 512

// weigh gives the verdict that findings amount to: two of different kinds that
// each ask for a review are more than an accident.
func weigh(findings []Finding) Verdict {
	verdict := Clean
	var kinds []string
	for _, f := range findings {
		switch f.Severity {
		case SeverityBlock:
			return Block
		case SeverityReview:
			verdict = Review
			if f.Rule != "incomplete" && f.Rule != "too-large" && !slices.Contains(kinds, f.Rule) {
				kinds = append(kinds, f.Rule)
			}
		}
	}
	if len(kinds) >= 2 {
		return Block
	}
	return verdict
}

// escape shows text in printable ASCII, at most maxExcerpt bytes of it.
func escape(text string) string {
	out := make([]byte, 0, min(len(text), maxExcerpt)+8)
	for _, r := range text {
		before := len(out)
		switch {
		case r == '\\':
			out = append(out, `\\`...)
		case r == '\n':
			out = append(out, `\n`...)
		case r == '\t':
			out = append(out, `\t`...)
		case r >= ' ' && r < 0x7f:
			out = append(out, byte(r))
		default:
			out = fmt.Appendf(out, `\u{%x}`, r)
		}
		if len(out) > maxExcerpt-3 {
			return string(append(out[:before], "..."...))
		}
	}
	return string(out)
}
