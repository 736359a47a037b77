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

	report atomic.Pointer[Report]
	orders atomic.Pointer[[]nameKey] // about which tools it orders something
}

// Tool returns a tool's definition to be scanned.
func (x *CrossRefs) Tool(d *tool.Definition) *Scanned {
	return &Scanned{index: x, id: d.ID, raw: d.Raw, scan: func() Report { return Definition(*d) }}
}

// offer returns the definition of what a server offers beside tools.
func (x *CrossRefs) Offer(server string, o tool.Primitive) *Scanned {
	id := tool.ID{Server: server, Tool: o.Name}
	return &Scanned{index: x, id: id, kind: o.Kind, raw: o.Raw, scan: func() Report { return offer(o) }}
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
	return r.With(s.Across())
}

// Across returns what is found beside the tools that there are now, and not in the
// definition alone.
func (s *Scanned) Across() []Finding {
	if len(s.about()) == 0 {
		return nil
	}
	return s.index.findings(s.id, s.kind, s.raw)
}

// Orders reports whether the definition orders something about a tool of another
// server.
func (s *Scanned) Orders() bool { return s.index.others(s.id.Server, s.about()) }

// Beyond reports whether the definition orders something about what its server does
// not have among the tools that are known now. What does not, never will as long as
// these are the server's tools.
func (s *Scanned) Beyond() bool { return s.index.beyond(s.id.Server, s.about()) }

// about returns by which names the definition orders something about tools: each
// once, in order.
func (s *Scanned) about() []nameKey {
	if all := s.orders.Load(); all != nil {
		return *all
	}
	var all []nameKey
	read(s.raw, s.kind == tool.KindInstructions, func(_ *Passage, r reference) { all = append(all, keyOf(r.name)) })
	slices.Sort(all)
	all = slices.Clip(slices.Compact(all))
	s.orders.Store(&all)
	return all
}
