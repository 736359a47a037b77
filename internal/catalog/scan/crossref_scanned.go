package scan

import (
	"encoding/json"
	"slices"
	"sync/atomic"

	"mcpproxy/internal/catalog/tool"
)

// Scanned is a definition with its scan results. The results of the definition alone are
// computed at the first use; concurrent first uses may compute them twice.
type Scanned struct {
	index *CrossRefs
	id    tool.ID // of a primitive the name or URI
	kind  tool.Kind
	raw   json.RawMessage
	scan  func() Report

	report          atomic.Pointer[Report]
	referencesCache atomic.Pointer[[]nameKey] // names of the tools that it refers to
}

// Tool returns a tool's definition to be scanned.
func (x *CrossRefs) Tool(d *tool.Definition) *Scanned {
	return &Scanned{index: x, id: d.ID, raw: d.Raw, scan: func() Report { return Definition(*d) }}
}

// Primitive returns a primitive's definition to be scanned.
func (x *CrossRefs) Primitive(server string, o tool.Primitive) *Scanned {
	id := tool.ID{Server: server, Tool: o.Name}
	return &Scanned{index: x, id: id, kind: o.Kind, raw: o.Raw, scan: func() Report { return scanPrimitive(o) }}
}

// Report returns the findings in the definition, and those for its references to
// currently known tools.
func (s *Scanned) Report() Report {
	r := s.report.Load()
	if r == nil {
		made := s.scan()
		r = &made
		s.report.Store(r)
	}
	return r.WithFindings(s.CrossFindings())
}

// CrossFindings returns only the findings for references to currently known tools.
func (s *Scanned) CrossFindings() []Finding {
	if len(s.referencedNames()) == 0 {
		return nil
	}
	return s.index.findings(s.id, s.kind, s.raw)
}

// RefersToOtherServer reports whether the definition gives instructions about a tool of
// another server.
func (s *Scanned) RefersToOtherServer() bool {
	return s.index.isOtherServersTool(s.id.Server, s.referencedNames())
}

// RefersToUnlisted reports whether the definition gives instructions about anything but
// its server's listed tools. If not, it cannot refer to another server while that list
// stays.
func (s *Scanned) RefersToUnlisted() bool {
	return s.index.isUnlisted(s.id.Server, s.referencedNames())
}

// referencedNames returns the keys of the tools that the definition refers to, sorted and
// unique.
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
