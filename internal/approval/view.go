package approval

import (
	"maps"

	"mcpproxy/internal/tool"
)

// View is what is decided about one server, its tools and its offers. It never
// changes. A nil View is that of a book that could not be read.
type View struct {
	tools  map[string]Entry
	offers map[named]Entry
	launch *Launch
	// reviewed is the launch that was approved, when that approval is lost.
	reviewed *tool.Fingerprint
}

// named tells an offer from the others of its server.
type named struct {
	kind tool.Kind
	name string
}

var nothing = &View{}

// Known reports whether the decisions could be read. Without them nothing is
// approved.
func (v *View) Known() bool { return v != nil }

// Tool is what is decided about a tool.
func (v *View) Tool(name string) Entry {
	if v == nil {
		return Entry{}
	}
	return v.tools[name]
}

// Of returns what is decided about a tool or an offer.
func (v *View) Of(kind tool.Kind, name string) Entry {
	if kind == tool.KindTool || v == nil {
		return v.Tool(name)
	}
	return v.offers[named{kind, name}]
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
	rows := make([]Row, 0, len(v.tools)+len(v.offers))
	for name, e := range v.tools {
		rows = append(rows, Row{Tool: name, Entry: e})
	}
	for n, e := range v.offers {
		rows = append(rows, Row{Kind: n.kind, Tool: n.name, Entry: e})
	}
	return rows
}

// state is the whole book. It never changes.
type state struct {
	servers   map[string]*View
	proposals []Proposal
	// lost says that there were approvals which could not be read any more, gaps
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
		next.proposals = nil
		for _, p := range s.proposals {
			if p.Name != c.Settle {
				next.proposals = append(next.proposals, p)
			}
		}
		if c.Propose != nil {
			next.proposals = append(next.proposals, *c.Propose)
		}
	}
	return next
}

func (v *View) with(c Change) *View {
	next := &View{tools: v.tools, offers: v.offers, launch: v.launch, reviewed: v.reviewed}
	if c.Forget {
		next = &View{}
	}
	if c.Unpin {
		next.launch, next.reviewed = nil, nil
	}
	if c.Launch != nil {
		next.launch, next.reviewed = c.Launch, nil
	}
	var tools, offers int
	for _, row := range c.Tools {
		if row.Kind == tool.KindTool {
			tools++
		} else {
			offers++
		}
	}
	if tools > 0 {
		next.tools = grown(next.tools, tools)
	}
	if offers > 0 {
		next.offers = grown(next.offers, offers)
	}
	for _, row := range c.Tools {
		if row.Kind == tool.KindTool {
			next.tools[row.Tool] = row.Entry
		} else {
			next.offers[named{row.Kind, row.Tool}] = row.Entry
		}
	}
	return next
}

// grown is a copy with room for more.
func grown[K comparable](m map[K]Entry, more int) map[K]Entry {
	next := make(map[K]Entry, len(m)+more)
	maps.Copy(next, m)
	return next
}
