package scan

import (
	"encoding/json"
	"slices"
	"sync/atomic"

	"mcpproxy/internal/catalog/tool"
)

// Scanned is a definition with what is found in it. What is read of the definition
// alone is read once, when somebody first asks; who asks at the same time as another
// may have it read twice, with the same result.
type Scanned struct {
	index *CrossRefs
	id    tool.ID // of an offer the name or address
	kind  tool.Kind
	raw   json.RawMessage
	scan  func() Report

	report          atomic.Pointer[Report]
	referencesCache atomic.Pointer[[]nameKey] // about which tools it orders something
}

// Tool returns a tool's definition to be scanned.
func (x *CrossRefs) Tool(d *tool.Definition) *Scanned {
	return &Scanned{index: x, id: d.ID, raw: d.Raw, scan: func() Report { return Definition(*d) }}
}

// offer returns the definition of what a server offers beside tools.
func (x *CrossRefs) Primitive(server string, o tool.Primitive) *Scanned {
	id := tool.ID{Server: server, Tool: o.Name}
	return &Scanned{index: x, id: id, kind: o.Kind, raw: o.Raw, scan: func() Report { return scanPrimitive(o) }}
}

// Report returns what the scanner finds in the definition, and what is found beside
// the tools that there are now.
func (s *Scanned) Report() Report {
	r := s.report.Load()
	if r == nil {
		made := s.scan()
		r = &made
		s.report.Store(r)
	}
	return r.WithFindings(s.CrossFindings())
}

// CrossFindings returns what is found beside the tools that there are now, and not in the
// definition alone.
func (s *Scanned) CrossFindings() []Finding {
	if len(s.referencedNames()) == 0 {
		return nil
	}
	return s.index.findings(s.id, s.kind, s.raw)
}

// RefersToOtherServer reports whether the definition orders something about a tool of another
// server.
func (s *Scanned) RefersToOtherServer() bool {
	return s.index.isOtherServersTool(s.id.Server, s.referencedNames())
}

// RefersToUnlisted reports whether the definition orders something about what its server does
// not have among the tools that are known now. What does not, never will as long as
// these are the server's tools.
func (s *Scanned) RefersToUnlisted() bool {
	return s.index.isUnlisted(s.id.Server, s.referencedNames())
}

// referencedNames returns by which names the definition orders something about tools: each
// once, in order.
func (s *Scanned) referencedNames() []nameKey {
	if all := s.referencesCache.Load(); all != nil {
		return *all
	}
	var all []nameKey
	findReferences(s.raw, s.kind == tool.KindInstructions, func(_ *Passage, r reference) { all = append(all, nameKeyOf(r.name)) })
	slices.Sort(all)
	all = slices.Clip(slices.Compact(all))
	s.referencesCache.Store(&all)
	return all
}
