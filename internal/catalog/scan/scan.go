package scan

import (
	"encoding/json"
	"fmt"
	"slices"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/mcp/wirejson"
)

// ScanDefinition scans a tool definition.
func ScanDefinition(d tool.Definition) Report {
	return Options{Classifier: EmbeddedModel()}.ScanDefinition(d)
}

// ScanDefinition scans a tool definition.
func (t Options) ScanDefinition(d tool.Definition) Report {
	return runScan("definition", t, func(s *scanner) {
		if s.collectStrings(d.Raw) {
			s.runRecoveringPanic("hints", func() { s.checkHintContradictions(d) })
			s.scanAllStrings()
		}
	})
}

// ScanText scans a text that a client could see, such as a server's instructions. Its name is
// the path of findings.
func ScanText(name, text string) Report {
	return runScan("text", Options{Classifier: EmbeddedModel()}, func(s *scanner) {
		if len(text) > maxText {
			s.addTooLargeFinding(name, fmt.Sprintf("the text is longer than %d bytes; only its beginning was scanned", maxText))
			text = text[:maxText]
		}
		s.addField(scannedString{place: kindProse, name: name, text: text})
		s.scanAllStrings()
	})
}

// scanPrimitive scans the definition of a primitive.
func scanPrimitive(o tool.Primitive) Report {
	if o.Kind == tool.KindInstructions {
		var text string
		if json.Unmarshal(o.Raw, &text) == nil { // else it is scanned as it is
			return ScanText("instructions", text)
		}
	}
	return runScan("definition", Options{Classifier: EmbeddedModel()}, func(s *scanner) {
		if s.collectStrings(o.Raw) {
			s.scanAllStrings()
		}
	})
}

// runScan runs a scan.
func runScan(what string, t Options, scan func(s *scanner)) Report {
	s := newScanner(t)
	defer s.takeBuffers()()
	s.runRecoveringPanic(what, func() { scan(s) })
	return s.buildReport()
}

// collectStrings collects the strings of a definition, and reports whether there is
// anything to scan.
func (s *scanner) collectStrings(raw []byte) bool {
	if wirejson.Check(raw, wirejson.Limits{}) != nil && !json.Valid(raw) { // Check is faster and stricter
		s.markIncomplete("the definition is not JSON")
		return false
	}
	if len(raw) > tool.MaxDefinition {
		s.addTooLargeFinding("", fmt.Sprintf("the definition is longer than %d bytes and was not scanned", tool.MaxDefinition))
		return false
	}
	if reason := s.walkDefinition(raw); reason != "" {
		s.addTooLargeFinding("", reason)
	}
	return true
}

// buildReport sorts the findings and sets the verdict.
func (s *scanner) buildReport() Report {
	s.addClassifierFinding()
	s.dropFaintFinding()
	s.restoreMentionSeverities()
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
