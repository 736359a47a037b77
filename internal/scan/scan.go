// Package scan finds poisoned definitions, of tools and of what else servers
// offer: instructions to the model, hidden and confusable Unicode, shadowing of
// other tools, exfiltration, secrets and encoded payloads. It looks at every
// string that a client could see, after normalising and decoding it, and
// explains each finding with the span that caused it.
//
// It guarantees that the same definition gives the same report, byte for byte;
// that its work is bounded; and that what it could not look at in full, or
// where a rule failed, is never called clean. It does no I/O and keeps no
// state. It is a sieve and no proof: it does not see what a server's code does,
// and decides nothing itself, for what follows from a verdict is the business
// of approval.
package scan

import (
	"encoding/json"
	"fmt"
	"slices"

	"mcpproxy/internal/tool"
)

// Verdict is the result of a scan. The zero value is Incomplete: what was not
// looked at is not clean.
type Verdict int8

// The verdicts.
const (
	Incomplete Verdict = iota // could not be looked at in full
	Clean                     // nothing was found
	Review                    // a person should read it before it is used
	Block                     // nothing but poison was seen to look so
)

// String gives the verdict in one word.
func (v Verdict) String() string {
	switch v {
	case Clean:
		return "clean"
	case Review:
		return "review"
	case Block:
		return "block"
	}
	return "incomplete"
}

// Words are all verdicts.
func (Verdict) Words() []string {
	return []string{Clean.String(), Review.String(), Block.String(), Incomplete.String()}
}

// MarshalText gives the verdict in one word.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads what MarshalText wrote; anything else is Incomplete.
func (v *Verdict) UnmarshalText(text []byte) error {
	*v = Incomplete
	for _, known := range []Verdict{Clean, Review, Block} {
		if string(text) == known.String() {
			*v = known
		}
	}
	return nil
}

// Severity says what a finding alone does to the verdict.
type Severity int8

// The severities. A note does not change the verdict by itself; notes and
// findings of several kinds together weigh more than each alone.
const (
	SeverityNote Severity = iota
	SeverityReview
	SeverityBlock
)

// String gives the severity in one word.
func (s Severity) String() string {
	switch s {
	case SeverityReview:
		return "review"
	case SeverityBlock:
		return "block"
	}
	return "note"
}

// Words are all severities.
func (Severity) Words() []string {
	return []string{SeverityNote.String(), SeverityReview.String(), SeverityBlock.String()}
}

// MarshalText gives the severity in one word.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (s *Severity) UnmarshalText(text []byte) error {
	for _, known := range []Severity{SeverityNote, SeverityReview, SeverityBlock} {
		if string(text) == known.String() {
			*s = known
			return nil
		}
	}
	return fmt.Errorf("%.20q is no severity: use note, review or block", text)
}

// Finding is one place that a rule found.
type Finding struct {
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	// Path is the JSON pointer of the string in the definition; that of a
	// member's name is the pointer of the member. For a text it is its name.
	Path string `json:"path"`
	// Start and End are the bytes in that string, decoded from JSON.
	Start int `json:"start"`
	End   int `json:"end"`
	// Excerpt is what stands there, or what was decoded from it, with all but
	// printable ASCII characters escaped.
	Excerpt string `json:"excerpt"`
	Reason  string `json:"reason"`
}

// Report is what a scan found, in the order of the definition.
type Report struct {
	Verdict  Verdict   `json:"verdict"`
	Findings []Finding `json:"findings"`
}

// The bounds. What is beyond them is reviewed by a person.
const (
	MaxText     = 256 << 10 // bytes of a text
	maxStrings  = 20000     // strings in a definition
	maxDepth    = 128       // levels in a definition
	maxDecoded  = 64 << 10  // bytes decoded from one definition
	maxFindings = 64        // findings in a report
	maxExcerpt  = 200       // bytes of an excerpt
)

// Definition looks at all that a definition says.
func Definition(d tool.Definition) Report {
	s := newScanner()
	s.guard("definition", func() { s.definition(d) })
	return s.report()
}

// Text looks at a text that a client could see, such as the instructions of a
// server. The path of its findings is its name.
func Text(name, text string) Report {
	s := newScanner()
	s.guard("text", func() {
		if len(text) > MaxText {
			s.tooLarge(name, fmt.Sprintf("the text is longer than %d bytes; only its beginning was looked at", MaxText))
			text = text[:MaxText]
		}
		s.add(field{place: placeProse, name: name, text: text})
		s.scan()
	})
	return s.report()
}

// Offer looks at all that the definition of an offer says.
func Offer(o tool.Offer) Report {
	if o.Kind == tool.KindInstructions {
		var text string
		if json.Unmarshal(o.Raw, &text) == nil { // else it is looked at as what it is
			return Text("instructions", text)
		}
	}
	s := newScanner()
	s.guard("definition", func() {
		if s.take(o.Raw) {
			s.scan()
		}
	})
	return s.report()
}

func (s *scanner) definition(d tool.Definition) {
	if !s.take(d.Raw) {
		return
	}
	s.guard("hints", func() { s.hints(d) })
	s.scan()
}

// take collects the strings of a definition. It reports whether there is
// something to look at.
func (s *scanner) take(raw []byte) bool {
	if !json.Valid(raw) {
		s.broken("the definition is not JSON")
		return false
	}
	if len(raw) > tool.MaxDefinition {
		s.tooLarge("", fmt.Sprintf("the definition is longer than %d bytes: it was not looked at", tool.MaxDefinition))
		return false
	}
	if reason := s.collect(raw); reason != "" {
		s.tooLarge("", reason)
	}
	return true
}

// report sorts what was found and weighs it.
func (s *scanner) report() Report {
	s.unmask()
	r := Report{Verdict: Clean, Findings: s.findings}
	if r.Findings == nil {
		r.Findings = []Finding{}
	}
	r.Verdict = weigh(r.Findings)
	if s.failed && r.Verdict != Block {
		r.Verdict = Incomplete
	}
	if len(r.Findings) > maxFindings {
		slices.SortStableFunc(r.Findings, func(a, b Finding) int { return int(b.Severity) - int(a.Severity) })
		r.Findings = slices.Clip(r.Findings[:maxFindings])
	}
	return r
}
