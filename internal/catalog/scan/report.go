package scan

import (
	"fmt"
	"slices"
)

// Verdict is the result of a scan. The zero value is Incomplete, because an unscanned definition is not clean.
type Verdict int8

// The verdicts.
const (
	Incomplete Verdict = iota // not scanned in full
	Clean                     // no findings
	Review                    // a user should review it
	Block                     // certainly poisoned
)

var verdicts = [...]string{Incomplete: "incomplete", Clean: "clean", Review: "review", Block: "block"}

// String returns the verdict in one word.
func (v Verdict) String() string { return verdicts[v] }

// Words returns all verdicts.
func (Verdict) Words() []string { return append(verdicts[Clean:], verdicts[Incomplete]) }

// MarshalText returns the verdict in one word.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads the output of MarshalText; any other text is Incomplete.
func (v *Verdict) UnmarshalText(text []byte) error {
	*v = Verdict(max(slices.Index(verdicts[:], string(text)), int(Incomplete)))
	return nil
}

// Severity is the effect of a finding on the verdict.
type Severity int8

// The severities. A note alone does not change the verdict; notes and findings of several
// kinds add up.
const (
	SeverityNote Severity = iota
	SeverityReview
	SeverityBlock
)

var severities = [...]string{SeverityNote: "note", SeverityReview: "review", SeverityBlock: "block"}

// String returns the severity in one word.
func (s Severity) String() string { return severities[s] }

// Words returns all severities.
func (Severity) Words() []string { return slices.Clone(severities[:]) }

// MarshalText returns the severity in one word.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the output of MarshalText.
func (s *Severity) UnmarshalText(text []byte) error {
	known := slices.Index(severities[:], string(text))
	if known < 0 {
		return fmt.Errorf("%.20q is not a severity: use note, review or block", text)
	}
	*s = Severity(known)
	return nil
}

// Finding is one match of a rule.
type Finding struct {
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	// Path is the JSON pointer of the string in the definition; for a member's name, of
	// the member. For plain text it is its name.
	Path string `json:"path"`
	// Start and End are byte offsets in the decoded string.
	Start int `json:"start"`
	End   int `json:"end"`
	// Excerpt is the matched or decoded text, with all but printable ASCII escaped.
	Excerpt string `json:"excerpt"`
	Reason  string `json:"reason"`
}

// RuleClassifier is the rule name of the classifier's findings.
const RuleClassifier = "reads-like-poison"

// Report is the result of a scan, in definition order.
type Report struct {
	Verdict  Verdict   `json:"verdict"`
	Findings []Finding `json:"findings"`
}

// Bounds. A definition that exceeds them needs a review.
const (
	maxText     = 256 << 10 // bytes of a text
	maxStrings  = 20000     // strings in a definition
	maxDepth    = 128       // levels in a definition
	maxDecoded  = 64 << 10  // bytes decoded from one definition
	maxFindings = 64        // findings in a report
	maxExcerpt  = 200       // bytes of an excerpt
)

// verdictOf returns the verdict of findings. Two findings of different kinds that each ask for a review block the definition,
// unless one is of a faint rule and both are about the same words.
func verdictOf(findings []Finding) Verdict {
	verdict := Clean
	var kinds []Finding
	for _, f := range findings {
		switch f.Severity {
		case SeverityBlock:
			return Block
		case SeverityReview:
			verdict = Review
			if f.Rule != "incomplete" && f.Rule != "too-large" && f.Rule != RuleClassifier {
				if slices.ContainsFunc(kinds, func(old Finding) bool { return old.Rule != f.Rule && !old.repeats(f) }) {
					return Block
				}
				kinds = append(kinds, f)
			}
		}
	}
	return verdict
}

// repeats reports whether two findings are about the same words, and one of them is from a faint rule in rules.txt.
// Such findings count once.
func (f Finding) repeats(other Finding) bool {
	faint := slices.ContainsFunc(defaultGrammar().rules, func(r scanRule) bool { return r.faint && (r.name == f.Rule || r.name == other.Rule) })
	return faint && f.Path == other.Path && f.Start < other.End && other.Start < f.End
}

// escapeExcerpt returns at most maxExcerpt bytes of printable ASCII.
func escapeExcerpt(text string) string {
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
