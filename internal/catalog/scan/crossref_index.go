package scan

import (
	"encoding/json"
	"slices"
	"sync"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/mcp/wirejson"
)

// CrossRefIndex is an index of all tool names by server. It is safe for concurrent use.
type CrossRefIndex struct {
	mu           sync.RWMutex // guards the fields below
	servers      map[string]*toolNames
	serverCounts map[nameKey]int32 // number of servers with that key
}

// toolNames are the tool names of a server. They are immutable.
type toolNames struct {
	listed  []nameKey // sorted, unique
	aliases []nameKey // names by which the server may mean its own tools; sorted
}

// NewCrossRefIndex returns an empty index.
func NewCrossRefIndex() *CrossRefIndex {
	return &CrossRefIndex{servers: map[string]*toolNames{}, serverCounts: map[nameKey]int32{}}
}

// SetToolNames sets the tool names of a server.
func (x *CrossRefIndex) SetToolNames(server string, tools []string) {
	n := &toolNames{}
	prefix := normalizedNameBytes(server)
	for _, t := range tools {
		tool := normalizedNameBytes(t)
		n.listed = appendNameKeys(n.listed, prefix, tool)
		n.aliases = appendSuffixKeys(n.aliases, tool)
	}
	n.aliases = append(n.aliases, n.listed...)
	slices.Sort(n.listed)
	slices.Sort(n.aliases)
	n.listed, n.aliases = slices.Clip(slices.Compact(n.listed)), slices.Clip(slices.Compact(n.aliases))
	x.mu.Lock()
	defer x.mu.Unlock()
	x.removeServer(server)
	x.servers[server] = n
	for _, k := range n.listed {
		x.serverCounts[k]++
	}
}

// SetDefinitions sets the tool names from a server's definitions.
func (x *CrossRefIndex) SetDefinitions(server string, raws []json.RawMessage) {
	tools := make([]string, 0, len(raws))
	for _, raw := range raws {
		if name, ok := wirejson.String(wirejson.Find(raw, "name")); ok {
			tools = append(tools, name)
		}
	}
	x.SetToolNames(server, tools)
}

// RemoveServer removes a server.
func (x *CrossRefIndex) RemoveServer(server string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.removeServer(server)
}

func (x *CrossRefIndex) removeServer(server string) {
	old := x.servers[server]
	if old == nil {
		return
	}
	delete(x.servers, server)
	for _, k := range old.listed {
		if x.serverCounts[k]--; x.serverCounts[k] == 0 {
			delete(x.serverCounts, k)
		}
	}
}

// namesOtherServersTool reports whether one of the names is a tool of another server, and
// not of this one.
func (x *CrossRefIndex) namesOtherServersTool(server string, names []nameKey) bool {
	if len(names) == 0 {
		return false
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	own := x.servers[server]
	return slices.ContainsFunc(names, func(k nameKey) bool { return x.serverCounts[k] > 0 && !own.mayMeanOwnTool(k) })
}

// namesUnlistedTool reports whether one of the names is no tool of the server.
func (x *CrossRefIndex) namesUnlistedTool(server string, names []nameKey) bool {
	if len(names) == 0 {
		return false
	}
	x.mu.RLock()
	own := x.servers[server]
	x.mu.RUnlock()
	return slices.ContainsFunc(names, func(k nameKey) bool { return !own.mayMeanOwnTool(k) })
}

// mayMeanOwnTool reports whether the server may mean its own tool by a name.
func (n *toolNames) mayMeanOwnTool(k nameKey) bool { return n != nil && containsKey(n.aliases, k) }

func containsKey(all []nameKey, k nameKey) bool {
	_, ok := slices.BinarySearch(all, k)
	return ok
}

// crossReferenceFindings returns the findings for instructions about other tools in a definition.
func (x *CrossRefIndex) crossReferenceFindings(id tool.ID, kind tool.DefinitionKind, raw []byte) []Finding {
	x.mu.RLock()
	own := x.servers[id.Server]
	x.mu.RUnlock()
	self := nameKeyOf(normalizedNameBytes(id.Tool))
	var all []Finding
	complete := findReferences(raw, kind == tool.KindInstructions, func(t *Passage, r toolReference) {
		if len(all) == maxCrossFindings {
			return
		}
		rule, reason := "", ""
		key := nameKeyOf(r.name)
		switch other := ""; {
		case key == self:
		case own.mayMeanOwnTool(key):
			if own.listsTool(key) && kind == tool.KindTool && r.changesArguments() && !containsJSONString(raw, r.name) {
				rule, reason = ruleSibling, reasonSibling
			}
		case x.findServerWithTool(key, &other):
			rule, reason = ruleOther, crossReferenceReason(&r)+", "+other
		case r.likelyTool && kind == tool.KindTool && !own.mayMeanOwnToolSuffix(r.name) && !containsJSONString(raw, r.name):
			rule, reason = ruleUnknown, reasonUnknown
		}
		if rule != "" {
			all = append(all, t.NewFinding(rule, SeverityReview, reason, r.start, r.end))
		}
	})
	if !complete {
		all = append(all, Finding{Rule: "too-large", Severity: SeverityReview, Reason: "names more tools than are checked"})
	}
	return all
}

// maxCrossFindings bounds the findings in a definition.
const maxCrossFindings = 8

// The rules and the reasons of their findings.
const (
	ruleOther         = "other-tool"
	reasonOther       = "gives an instruction about a tool of another server"
	reasonChange      = "changes the arguments of a tool of another server"
	reasonReplacement = "replaces a tool of another server"

	ruleSibling   = "sibling-arguments"
	reasonSibling = "changes the arguments of another tool of its server"

	ruleUnknown   = "unknown-tool"
	reasonUnknown = "gives an instruction about a tool that its server does not have"
)

func crossReferenceReason(r *toolReference) string {
	switch {
	case r.changesArguments():
		return reasonChange
	case r.cues&cueReplacement != 0:
		return reasonReplacement
	}
	return reasonOther
}

// listsTool reports whether the server has a tool of that name.
func (n *toolNames) listsTool(k nameKey) bool { return n != nil && containsKey(n.listed, k) }

// mayMeanOwnToolSuffix reports whether the server may mean its own tool by a suffix of its name.
func (n *toolNames) mayMeanOwnToolSuffix(name []byte) bool {
	return n != nil && slices.ContainsFunc(appendSuffixKeys(nil, name), func(k nameKey) bool { return containsKey(n.aliases, k) })
}

// findServerWithTool finds the first server by name that has that tool.
func (x *CrossRefIndex) findServerWithTool(k nameKey, server *string) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.serverCounts[k] == 0 {
		return false
	}
	for name, n := range x.servers {
		if containsKey(n.listed, k) && (*server == "" || name < *server) {
			*server = name
		}
	}
	return true
}
