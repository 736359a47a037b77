package scan

import (
	"slices"

	"mcpproxy/internal/catalog/tool"
)

var (
	ruleHint     = scanRule{name: "false-hint", severity: SeverityReview, reason: "has a destructive name but declares that it only reads"}
	ruleReserved = scanRule{name: "reserved-name", severity: SeverityReview, reason: "has the name of a built-in tool of MCPProxy"}
)

// checkHintContradictions finds contradictions between a tool's name and its hints.
func (s *scanner) checkHintContradictions(d tool.Definition) {
	k := slices.IndexFunc(s.fields, func(f scannedString) bool { return f.place == kindToolName })
	if k < 0 {
		return
	}
	f := &s.fields[k]
	n := &s.baseView.n
	n.normalize(f.text)
	words := n.splitWords(nil, defaultGrammar().lex, true)
	if wordLists().reserved[string(n.lower)] {
		s.addFinding(f, ruleReserved, 0, len(f.text), "")
	}
	if d.Hints.ReadOnly != tool.True {
		return
	}
	for _, w := range words[:min(2, len(words))] {
		if wordLists().destroying[string(n.lower[w.start:w.end])] {
			s.addFinding(f, ruleHint, n.originalOffset(int(w.start)), n.originalOffset(int(w.end)), "")
		}
	}
}
