package scan

import (
	"encoding/json"
	"fmt"
	"slices"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/mcp/wirejson"
)

// Definition scans a tool definition.
func Definition(d tool.Definition) Report { return Options{Classifier: EmbeddedModel()}.Definition(d) }

// Definition scans a tool definition.
func (t Options) Definition(d tool.Definition) Report {
	return runScan("definition", t, func(s *scanner) {
		if s.collectStrings(d.Raw) {
			s.recoverPanic("hints", func() { s.checkHints(d) })
			s.scan()
		}
	})
}

// Text scans a text that a client could see, such as a server's instructions. Its name is
// the path of findings.
func Text(name, text string) Report {
	return runScan("text", Options{Classifier: EmbeddedModel()}, func(s *scanner) {
		if len(text) > maxText {
			s.tooLarge(name, fmt.Sprintf("the text is longer than %d bytes; only its beginning was looked at", maxText))
			text = text[:maxText]
		}
		s.add(field{place: kindProse, name: name, text: text})
		s.scan()
	})
}

// scanPrimitive scans the definition of a primitive.
func scanPrimitive(o tool.Primitive) Report {
	if o.Kind == tool.KindInstructions {
		var text string
		if json.Unmarshal(o.Raw, &text) == nil { // else it is scanned as it is
			return Text("instructions", text)
		}
	}
	return runScan("definition", Options{Classifier: EmbeddedModel()}, func(s *scanner) {
		if s.collectStrings(o.Raw) {
			s.scan()
		}
	})
}

// runScan runs a scan.
func runScan(what string, t Options, scan func(s *scanner)) Report {
	s := newScanner(t)
	defer s.takeBuffers()()
	s.recoverPanic(what, func() { scan(s) })
	return s.report()
}

// collectStrings collects the strings of a definition, and reports whether there is
// anything to scan.
func (s *scanner) collectStrings(raw []byte) bool {
	if wirejson.Check(raw, wirejson.Limits{}) != nil && !json.Valid(raw) { // Check is faster and stricter
		s.markIncomplete("the definition is not JSON")
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

// report sorts the findings and sets the verdict.
func (s *scanner) report() Report {
	s.reportClassifier()
	s.restoreMentions()
	r := Report{Verdict: verdictOf(s.findings), Findings: s.findings}
	if r.Findings == nil {
		r.Findings = []Finding{}
	}
	if s.failed && r.Verdict != Block {
		r.Verdict = Incomplete
	}
	if len(r.Findings) > maxFindings {
		slices.SortStableFunc(r.Findings, func(a, b Finding) int { return int(b.Severity) - int(a.Severity) })
		r.Findings = slices.Clip(r.Findings[:maxFindings])
	}
	return r
}
