package approval

import (
	"maps"
	"slices"

	"mcpproxy/internal/catalog/tool"
)

// View is what is decided about one server, its tools and its offers. It never
// changes. A nil View is that of a book that could not be read.
type View struct {
	entries       map[named]Entry
	tools, offers int // how many of them are about
	launch        *Launch
	// reviewed is the launch that was approved, when that approval is lost.
	reviewed *tool.Fingerprint
	// unsigned is the launch that does not count, since a person has to sign it.
	unsigned *Launch
}

// named tells a tool or an offer from the others of its server.
type named struct {
	kind tool.Kind
	name string
}

var nothing = &View{}

// Known reports whether the decisions could be read. Without them nothing is
// approved.
func (v *View) Known() bool { return v != nil }

// Tool is what is decided about a tool.
func (v *View) Tool(name string) Entry { return v.Of(tool.KindTool, name) }

// Of returns what is decided about a tool or an offer.
func (v *View) Of(kind tool.Kind, name string) Entry {
	if v == nil {
		return Entry{}
	}
	return v.entries[named{kind, name}]
}

// Launch is the launch that a person approved, nil when none is.
func (v *View) Launch() *Launch {
	if v == nil {
		return nil
	}
	return v.launch
}

// Reviewed is the launch with which the review of the server has ended, nil when
// there was none. It may be known when its approval is lost; another launch has
// to be reviewed either way.
func (v *View) Reviewed() *tool.Fingerprint {
	switch {
	case v == nil:
		return nil
	case v.launch != nil:
		return &v.launch.Fingerprint
	}
	return v.reviewed
}

// rows is everything that is decided, without the definitions.
func (v *View) rows() []Row {
	rows := make([]Row, 0, len(v.entries))
	for n, e := range v.entries {
		rows = append(rows, Row{Kind: n.kind, Tool: n.name, Entry: e})
	}
	return rows
}

// state is the whole book. It never changes.
type state struct {
	servers   map[string]*View
	proposals []Proposal
	// lost reports whether there were approvals which could not be read any more, gaps
	// that refusals are among them, perhaps.
	lost, gaps bool
}

func (s *state) view(server string) *View {
	if v := s.servers[server]; v != nil {
		return v
	}
	return nothing
}

// with is the state after a change.
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
	next.entries = make(map[named]Entry, len(before)+len(c.Tools))
	maps.Copy(next.entries, before)
	for i, row := range c.Tools { // one by one: some may be about the same
		next.tools, next.offers = next.count(c.Tools[i : i+1])
		next.entries[named{row.Kind, row.Tool}] = row.Entry
	}
	return &next
}

// count returns of how many tools and offers something is decided with these rows.
func (v *View) count(with []Row) (tools, offers int) {
	tools, offers = v.tools, v.offers
	for _, row := range with {
		_, there := v.entries[named{row.Kind, row.Tool}]
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
