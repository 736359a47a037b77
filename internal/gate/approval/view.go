package approval

import (
	"maps"
	"slices"

	"mcpproxy/internal/catalog/tool"
)

// View has the decisions about one server. It is immutable. A nil View is that of a book that is not
// loaded.
type View struct {
	entries       map[entryKey]Entry
	tools, offers int // number of entries
	launch        *Launch
	// reviewed is the approved launch if the approval itself is lost.
	reviewed *tool.Fingerprint
	// unsigned is an approved launch that lacks a signature and does not count.
	unsigned *Launch
}

// entryKey identifies a tool, prompt or resource of a server.
type entryKey struct {
	kind tool.DefinitionKind
	name string
}

var emptyView = &View{}

// Known reports whether the decisions are loaded. Without them nothing is approved.
func (v *View) Known() bool { return v != nil }

// Tool returns the decisions about a tool.
func (v *View) Tool(name string) Entry { return v.Of(tool.KindTool, name) }

// Of returns the decisions about a tool, prompt, resource or the instructions.
func (v *View) Of(kind tool.DefinitionKind, name string) Entry {
	if v == nil {
		return Entry{}
	}
	return v.entries[entryKey{kind, name}]
}

// Launch returns the approved launch, or nil.
func (v *View) Launch() *Launch {
	if v == nil {
		return nil
	}
	return v.launch
}

// Reviewed returns the launch of the last review, or nil. It may be known although the approval is lost; a
// different launch needs a review in any case.
func (v *View) Reviewed() *tool.Fingerprint {
	switch {
	case v == nil:
		return nil
	case v.launch != nil:
		return &v.launch.Fingerprint
	}
	return v.reviewed
}

// rows returns all entries without definitions.
func (v *View) rows() []Row {
	rows := make([]Row, 0, len(v.entries))
	for n, e := range v.entries {
		rows = append(rows, Row{Kind: n.kind, Tool: n.name, Entry: e})
	}
	return rows
}

// state is the content of the book. It is immutable.
type state struct {
	servers   map[string]*View
	proposals []Proposal
	// lost: approvals are missing; gaps: restrictions may be missing, too.
	lost, gaps bool
}

func (s *state) view(server string) *View {
	if v := s.servers[server]; v != nil {
		return v
	}
	return emptyView
}

// with returns the state after a change.
func (s *state) with(c Change) *state {
	next := &state{servers: maps.Clone(s.servers), proposals: s.proposals, lost: s.lost, gaps: s.gaps}
	if c.Server != "" {
		next.servers[c.Server] = next.view(c.Server).with(c)
	}
	if c.Settle != "" || c.Propose != nil {
		next.proposals = slices.DeleteFunc(slices.Clone(s.proposals), func(p Proposal) bool { return p.Name == c.Settle })
	}
	if c.Propose != nil {
		next.proposals = append(next.proposals, *c.Propose)
	}
	return next
}

func (v *View) with(c Change) *View {
	next := *v
	if c.Forget {
		next = View{}
	}
	if c.Unpin {
		next.launch, next.reviewed, next.unsigned = nil, nil, nil
	}
	if c.Launch != nil {
		next.launch, next.reviewed, next.unsigned = c.Launch, nil, nil
	}
	if len(c.Tools) == 0 {
		return &next
	}
	before := next.entries
	next.entries = make(map[entryKey]Entry, len(before)+len(c.Tools))
	maps.Copy(next.entries, before)
	for i, row := range c.Tools { // one by one: several may concern the same entry
		next.tools, next.offers = next.count(c.Tools[i : i+1])
		next.entries[entryKey{row.Kind, row.Tool}] = row.Entry
	}
	return &next
}

// count returns the number of entries including these rows.
func (v *View) count(with []Row) (tools, offers int) {
	tools, offers = v.tools, v.offers
	for _, row := range with {
		_, there := v.entries[entryKey{row.Kind, row.Tool}]
		switch {
		case there:
		case row.Kind == tool.KindTool:
			tools++
		default:
			offers++
		}
	}
	return tools, offers
}
