package approval

import (
	"maps"

	"mcpproxy/internal/tool"
)

// View is what is decided about one server and its tools. It never changes. A
// nil View is that of a book that could not be read.
type View struct {
	tools  map[string]Entry
	launch *Launch
}

var nothing = &View{}

// Known says whether the decisions could be read. Without them nothing is
// approved.
func (v *View) Known() bool { return v != nil }

// Tool is what is decided about a tool.
func (v *View) Tool(name string) Entry {
	if v == nil {
		return Entry{}
	}
	return v.tools[name]
}

// Approves says whether this definition of a tool may be called as far as the
// book goes: it is approved, and the tool is not switched off.
func (v *View) Approves(name string, f tool.Fingerprint) bool {
	e := v.Tool(name)
	return e.Off == nil && e.Approves(f)
}

// Launch is the launch that a person approved, nil when none is.
func (v *View) Launch() *Launch {
	if v == nil {
		return nil
	}
	return v.launch
}

// state is the whole book. It never changes.
type state struct {
	servers   map[string]*View
	proposals []Proposal
	// lost says that there were approvals which could not be read any more.
	lost bool
}

func (s *state) view(server string) *View {
	if v := s.servers[server]; v != nil {
		return v
	}
	return nothing
}

// with is the state after a change.
func (s *state) with(c Change) *state {
	next := &state{servers: maps.Clone(s.servers), proposals: s.proposals, lost: s.lost}
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
	next := &View{tools: v.tools, launch: v.launch}
	if c.Forget {
		next = &View{}
	}
	if c.Unpin {
		next.launch = nil
	}
	if c.Launch != nil {
		next.launch = c.Launch
	}
	if len(c.Tools) > 0 {
		tools := make(map[string]Entry, len(next.tools)+len(c.Tools))
		maps.Copy(tools, next.tools)
		for _, row := range c.Tools {
			tools[row.Tool] = row.Entry
		}
		next.tools = tools
	}
	return next
}
