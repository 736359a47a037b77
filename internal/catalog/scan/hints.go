package scan

import (
	"slices"

	"mcpproxy/internal/catalog/tool"
)

var (
	ruleHint     = rule{name: "false-hint", severity: SeverityReview, reason: "is named as what destroys and says that it only reads"}
	ruleReserved = rule{name: "reserved-name", severity: SeverityReview, reason: "has the name of a tool of MCPProxy itself"}
)

// hints finds what a name and the hints beside it do not say alike.
func (s *scanner) hints(d tool.Definition) {
	k := slices.IndexFunc(s.fields, func(f field) bool { return f.place == placeName })
	if k < 0 {
		return
	}
	f := &s.fields[k]
	n := &s.base.n
	n.read(f.text)
	words := n.split(nil, compiled().lex, true)
	if known().reserved[string(n.lower)] {
		s.found(f, ruleReserved, 0, len(f.text), "")
	}
	if d.Hints.ReadOnly != tool.True {
		return
	}
	for _, w := range words[:min(2, len(words))] {
		if known().destroying[string(n.lower[w.start:w.end])] {
			s.found(f, ruleHint, n.origin(int(w.start)), n.origin(int(w.end)), "")
		}
	}
}
