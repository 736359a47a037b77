package permission

import (
	"slices"
	"strings"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/clients"
)

// Target contains MCPProxy's entries in a client, to which the rules apply.
type Target struct {
	Surface clients.Surface
	Entries []clients.ProxyEntry
}

// anyTool represents, in a probe and in rules, the tools of an entry that no rule names.
const anyTool = "*"

// newTarget returns the entries of a surface as connect writes them.
func (c clientPermissions) newTarget(s clients.Surface) Target {
	return Target{s, c.NewProxyEntries(s)}
}

// findTarget returns MCPProxy's entries in the files. For a client without entries, it returns the entries that connect
// would write.
func (c clientPermissions) findTarget(all clientDocs) (t Target, connected bool) {
	var read []clients.ClientDoc
	for _, d := range all.withKind(fileServers) {
		read = append(read, d.ClientDoc)
	}
	at, found := clients.FindProxyRegistration(read, nil)
	if !found {
		return c.newTarget(c.SurfaceFacts().Surface), false
	}
	return Target{at.Surface, at.Entries}, true
}

// serverNames returns the names of the entries.
func (t Target) serverNames() (names []string) {
	for _, e := range t.Entries {
		names = append(names, e.Name)
	}
	return names
}

// serverName returns the name of the first entry.
func (t Target) serverName() string { return t.Entries[0].Name }

// probe asks whether a client runs the tools of an entry without asking the user.
type probe struct {
	label, server, lane string
	tool                ProxyTool
	wanted              Verdict
	either              bool // running and asking are both right
	cautious            bool // asking and denying are both right
}

// isRight reports whether a verdict is as recommended.
func (p probe) isRight(v Verdict) bool {
	return v == p.wanted || p.either && (v == Runs || v == Asks) || p.cautious && (v == Asks || v == Denied)
}

// Limits of possibleTools.
const maxPossibleTools, maxToolName = 500, 200

// possibleTools returns the texts of the files that may name single tools of an entry, or patterns for some of them. The
// client's rules tell which of them do.
func (all clientDocs) possibleTools(entry string) (names []string) {
	seen := map[string]bool{"": true, anyTool: true}
	add := func(name string) {
		if !seen[name] && len(name) <= maxToolName && len(names) < maxPossibleTools {
			seen[name], names = true, append(names, name)
		}
	}
	spellings := []string{entry, sanitizeName(entry), strings.ReplaceAll(entry, "-", "_")}
	for _, d := range all {
		whole := d.kind == fileRules // a rule can name the entry in one place and the tool in another
		d.Value.EachText(func(text string) {
			for _, spelling := range spellings {
				if _, rest, found := strings.Cut(text, spelling); found {
					add(strings.TrimSuffix(strings.TrimLeft(rest, "_:-.(/"), ")"))
				}
			}
			if whole {
				add(text)
			}
		})
		if d.kind == fileServers {
			d.ServerEntry(entry).EachText(add)
		}
	}
	return names
}

// laneHints contains, for each lane, the hints of a tool with which clients ask least often.
var laneHints = map[string]tool.Hints{
	"read":        {ReadOnly: tool.True, Destructive: tool.False},
	"write":       {ReadOnly: tool.False, Destructive: tool.False, OpenWorld: tool.False},
	"destructive": {ReadOnly: tool.False, Destructive: tool.True},
}

// callToolLanes contains the lane of each call tool.
var callToolLanes = map[string]string{"call_tool_read": "read", "call_tool_write": "write", "call_tool_destructive": "destructive"}

// probes returns the probes for the entries: for search, one for each of MCPProxy's tools, otherwise one for each lane.
func (t Target) probes(tools []ProxyTool) (all []probe) {
	if t.Surface == clients.SurfaceSearch {
		for _, one := range tools {
			all = append(all, probe{label: one.Name, server: t.serverName(), lane: callToolLanes[one.Name], tool: one, wanted: one.recommendedVerdict()})
		}
		return all
	}
	for _, e := range t.Entries {
		lanes := []string{e.Lane}
		if e.Lane == "" {
			lanes = clients.LaneNames()
		}
		for _, lane := range lanes {
			p := probe{label: e.Name + ":" + anyTool, server: e.Name, lane: lane, tool: ProxyTool{anyTool, laneHints[lane]}, wanted: Asks}
			if e.Lane == "" {
				p.label, p.either = p.label+" ("+lane+")", lane == "read"
			} else if lane == "read" {
				p.wanted = Runs
			}
			all = append(all, p)
		}
	}
	return all
}

// wantedRule is the recommendation for a tool of an entry, or for all of its tools (anyTool). A mixed entry has tools of
// all lanes.
type wantedRule struct {
	entry, tool string
	wanted      Verdict
	mixed       bool
}

// wantedRules returns the recommendations for the entries: for search one for each tool, otherwise one for each entry.
func (t Target) wantedRules(tools []ProxyTool) (rules []wantedRule) {
	if t.Surface == clients.SurfaceSearch {
		return toolRules(t.serverName(), tools)
	}
	for _, e := range t.Entries {
		r := wantedRule{entry: e.Name, tool: anyTool, wanted: Asks, mixed: e.Lane == ""}
		if e.Lane == "read" {
			r.wanted = Runs
		}
		rules = append(rules, r)
	}
	return rules
}

// toolRules returns the recommendations for the tools of one entry.
func toolRules(entry string, tools []ProxyTool) (rules []wantedRule) {
	for _, t := range tools {
		rules = append(rules, wantedRule{entry: entry, tool: t.Name, wanted: t.recommendedVerdict()})
	}
	return rules
}

// editsFor returns the edits that write the recommended rules for the entries. It returns none if no rule can express
// them.
func (c clientPermissions) editsFor(t Target, tools []ProxyTool) []fileEdit {
	if c.edits == nil || t.Surface != clients.SurfaceSearch && !c.wholeEntries {
		return nil
	}
	return c.edits(t.wantedRules(tools))
}

// writes reports whether any of the edits writes a rule, instead of only removing rules.
func writes(edits []fileEdit) bool {
	return slices.ContainsFunc(edits, func(e fileEdit) bool { return e.op != opDrop })
}
