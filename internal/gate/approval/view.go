package approval

import (
	"maps"
	"slices"

	"mcpproxy/internal/catalog/tool"
)

// ServerView contains the decisions about one server. It is immutable. A nil *ServerView means that the book is not
// loaded.
type ServerView struct {
	entries       map[definitionKey]DefinitionDecisions
	tools, offers int // number of entries
	launch        *ApprovedLaunch
	// reviewed is the approved launch if the approval itself is lost.
	reviewed *tool.Fingerprint
	// unsigned is an approved launch that lacks a signature and is not valid.
	unsigned *ApprovedLaunch
}

// definitionKey identifies a tool, prompt or resource of a server.
type definitionKey struct {
	kind tool.DefinitionKind
	name string
}

var emptyView = &ServerView{}

// IsLoaded reports whether the decisions are loaded. Without them nothing is approved.
func (v *ServerView) IsLoaded() bool { return v != nil }

// ToolDecisions returns the decisions about a tool.
func (v *ServerView) ToolDecisions(name string) DefinitionDecisions {
	return v.DecisionsOn(tool.KindTool, name)
}

// DecisionsOn returns the decisions about a tool, prompt, resource or the instructions.
func (v *ServerView) DecisionsOn(kind tool.DefinitionKind, name string) DefinitionDecisions {
	if v == nil {
		return DefinitionDecisions{}
	}
	return v.entries[definitionKey{kind, name}]
}

// ApprovedLaunch returns the approved launch, or nil.
func (v *ServerView) ApprovedLaunch() *ApprovedLaunch {
	if v == nil {
		return nil
	}
	return v.launch
}

// ReviewedLaunch returns the launch of the last review, or nil. It may be known even if the approval is lost. A
// different launch always needs a review.
func (v *ServerView) ReviewedLaunch() *tool.Fingerprint {
	switch {
	case v == nil:
		return nil
	case v.launch != nil:
		return &v.launch.Fingerprint
	}
	return v.reviewed
}

// toRows returns all entries without definitions.
func (v *ServerView) toRows() []DecisionRow {
	rows := make([]DecisionRow, 0, len(v.entries))
	for n, e := range v.entries {
		rows = append(rows, DecisionRow{Kind: n.kind, Tool: n.name, DefinitionDecisions: e})
	}
	return rows
}

// bookState is the content of the book. It is immutable.
type bookState struct {
	servers   map[string]*ServerView
	proposals []ServerProposal
	// lost reports whether approvals are missing, restrictionsLost whether restrictions may be missing, too.
	lost, restrictionsLost bool
}

func (s *bookState) serverView(server string) *ServerView {
	if v := s.servers[server]; v != nil {
		return v
	}
	return emptyView
}

// withChange returns the state after a change.
func (s *bookState) withChange(c ChangeSet) *bookState {
	next := &bookState{servers: maps.Clone(s.servers), proposals: s.proposals, lost: s.lost, restrictionsLost: s.restrictionsLost}
	if c.Server != "" {
		next.servers[c.Server] = next.serverView(c.Server).withChange(c)
	}
	if c.RemoveProposal != "" || c.Propose != nil {
		next.proposals = slices.DeleteFunc(slices.Clone(s.proposals), func(p ServerProposal) bool { return p.Name == c.RemoveProposal })
	}
	if c.Propose != nil {
		next.proposals = append(next.proposals, *c.Propose)
	}
	return next
}

func (v *ServerView) withChange(c ChangeSet) *ServerView {
	next := *v
	if c.Forget {
		next = ServerView{}
	}
	if c.RevokeLaunch {
		next.launch, next.reviewed, next.unsigned = nil, nil, nil
	}
	if c.Launch != nil {
		next.launch, next.reviewed, next.unsigned = c.Launch, nil, nil
	}
	if len(c.Tools) == 0 {
		return &next
	}
	before := next.entries
	next.entries = make(map[definitionKey]DefinitionDecisions, len(before)+len(c.Tools))
	maps.Copy(next.entries, before)
	for i, row := range c.Tools { // one by one, because several rows may change the same entry
		next.tools, next.offers = next.countEntriesWith(c.Tools[i : i+1])
		next.entries[definitionKey{row.Kind, row.Tool}] = row.DefinitionDecisions
	}
	return &next
}

// countEntriesWith returns the number of entries including these rows.
func (v *ServerView) countEntriesWith(with []DecisionRow) (tools, offers int) {
	tools, offers = v.tools, v.offers
	for _, row := range with {
		_, there := v.entries[definitionKey{row.Kind, row.Tool}]
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
