package scan

import (
	"encoding/json"
	"slices"
	"sync/atomic"

	"mcpproxy/internal/catalog/tool"
)

// ScannedDefinition is a definition with its scan results. The results of the definition alone are
// computed at the first use; concurrent first uses may compute them twice.
type ScannedDefinition struct {
	index *CrossRefIndex
	id    tool.ID // of a primitive the name or URI
	kind  tool.DefinitionKind
	raw   json.RawMessage
	scan  func() Report

	report          atomic.Pointer[Report]
	referencesCache atomic.Pointer[[]nameKey] // names of the tools that it refers to
}

// NewScannedTool returns a tool's definition to be scanned.
func (x *CrossRefIndex) NewScannedTool(d *tool.Definition) *ScannedDefinition {
	return &ScannedDefinition{index: x, id: d.ID, raw: d.Raw, scan: func() Report { return ScanDefinition(*d) }}
}

// NewScannedPrimitive returns a primitive's definition to be scanned.
func (x *CrossRefIndex) NewScannedPrimitive(server string, o tool.Primitive) *ScannedDefinition {
	id := tool.ID{Server: server, Tool: o.Name}
	return &ScannedDefinition{index: x, id: id, kind: o.Kind, raw: o.Raw, scan: func() Report { return scanPrimitive(o) }}
}

// Report returns the findings in the definition, and those for its references to
// currently known tools.
func (s *ScannedDefinition) Report() Report {
	r := s.report.Load()
	if r == nil {
		made := s.scan()
		r = &made
		s.report.Store(r)
	}
	return r.WithFindings(s.CrossFindings())
}

// CrossFindings returns only the findings for references to currently known tools.
func (s *ScannedDefinition) CrossFindings() []Finding {
	if len(s.referencedNames()) == 0 {
		return nil
	}
	return s.index.crossReferenceFindings(s.id, s.kind, s.raw)
}

// RefersToOtherServer reports whether the definition gives instructions about a tool of
// another server.
func (s *ScannedDefinition) RefersToOtherServer() bool {
	return s.index.namesOtherServersTool(s.id.Server, s.referencedNames())
}

// RefersToUnlistedTool reports whether the definition gives instructions about anything but
// its server's listed tools. If not, it cannot refer to another server while that list
// stays.
func (s *ScannedDefinition) RefersToUnlistedTool() bool {
	return s.index.namesUnlistedTool(s.id.Server, s.referencedNames())
}

// referencedNames returns the keys of the tools that the definition refers to, sorted and
// unique.
func (s *ScannedDefinition) referencedNames() []nameKey {
	if all := s.referencesCache.Load(); all != nil {
		return *all
	}
	var all []nameKey
	findReferences(s.raw, s.kind == tool.KindInstructions, func(_ *Passage, r toolReference) { all = append(all, nameKeyOf(r.name)) })
	slices.Sort(all)
	all = slices.Clip(slices.Compact(all))
	s.referencesCache.Store(&all)
	return all
}
