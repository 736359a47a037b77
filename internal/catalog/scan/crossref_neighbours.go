package scan

import (
	"encoding/json"
	"slices"
	"sync"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/mcp/wirejson"
)

// CrossRefs has the names of all tools, by server. It is safe for concurrent use.
type CrossRefs struct {
	mu      sync.RWMutex // guards the fields below
	servers map[string]*names
	held    map[nameKey]int32 // by how many servers
}

// names are the tools of a server. They never change.
type names struct {
	keys []nameKey // in order, none twice
	own  []nameKey // by which the server may mean its own tools; in order
}

// NewCrossRefs returns an empty index.
func NewCrossRefs() *CrossRefs {
	return &CrossRefs{servers: map[string]*names{}, held: map[nameKey]int32{}}
}

// Set says what the tools of a server are called.
func (x *CrossRefs) Set(server string, tools []string) {
	n := &names{}
	prefix := plain(server)
	for _, t := range tools {
		tool := plain(t)
		n.keys = keys(n.keys, prefix, tool)
		n.own = ends(n.own, tool)
	}
	n.own = append(n.own, n.keys...)
	slices.Sort(n.keys)
	slices.Sort(n.own)
	n.keys, n.own = slices.Clip(slices.Compact(n.keys)), slices.Clip(slices.Compact(n.own))
	x.mu.Lock()
	defer x.mu.Unlock()
	x.remove(server)
	x.servers[server] = n
	for _, k := range n.keys {
		x.held[k]++
	}
}

// SetListed is Set with definitions as the server gave them.
func (x *CrossRefs) SetListed(server string, raws []json.RawMessage) {
	tools := make([]string, 0, len(raws))
	for _, raw := range raws {
		if name, ok := wirejson.String(wirejson.Find(raw, "name")); ok {
			tools = append(tools, name)
		}
	}
	x.Set(server, tools)
}

// Remove says that a server is there no more.
func (x *CrossRefs) Remove(server string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.remove(server)
}

func (x *CrossRefs) remove(server string) {
	old := x.servers[server]
	if old == nil {
		return
	}
	delete(x.servers, server)
	for _, k := range old.keys {
		if x.held[k]--; x.held[k] == 0 {
			delete(x.held, k)
		}
	}
}

// others reports whether one of the names is that of a tool of another server, and
// of none that the server has itself.
func (x *CrossRefs) others(server string, names []nameKey) bool {
	if len(names) == 0 {
		return false
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	own := x.servers[server]
	return slices.ContainsFunc(names, func(k nameKey) bool { return x.held[k] > 0 && !own.means(k) })
}

// beyond reports whether the server has no tool that it may mean by one of the names.
func (x *CrossRefs) beyond(server string, names []nameKey) bool {
	if len(names) == 0 {
		return false
	}
	x.mu.RLock()
	own := x.servers[server]
	x.mu.RUnlock()
	return slices.ContainsFunc(names, func(k nameKey) bool { return !own.means(k) })
}

// means reports whether the server may mean a tool of its own by a name.
func (n *names) means(k nameKey) bool { return n != nil && has(n.own, k) }

func has(all []nameKey, k nameKey) bool {
	_, ok := slices.BinarySearch(all, k)
	return ok
}

// findings returns what a definition of a server orders about tools that are not
// its own, and how it changes what others of its server are given.
func (x *CrossRefs) findings(id tool.ID, kind tool.Kind, raw []byte) []Finding {
	x.mu.RLock()
	own := x.servers[id.Server]
	x.mu.RUnlock()
	self := keyOf(plain(id.Tool))
	var all []Finding
	complete := read(raw, kind == tool.KindInstructions, func(t *Passage, r reference) {
		if len(all) == maxCrossFindings {
			return
		}
		rule, reason := "", ""
		key := keyOf(r.name)
		switch other := ""; {
		case key == self:
		case own.means(key):
			if own.has(key) && kind == tool.KindTool && r.changes() && !isMember(raw, r.name) {
				rule, reason = ruleSibling, reasonSibling
			}
		case x.find(key, &other):
			rule, reason = ruleOther, reasonsOther(&r)+", "+other
		case r.called && kind == tool.KindTool && !own.meansEnd(r.name) && !isMember(raw, r.name):
			rule, reason = ruleUnknown, reasonUnknown
		}
		if rule != "" {
			all = append(all, t.Finding(rule, SeverityReview, reason, r.start, r.end))
		}
	})
	if !complete {
		all = append(all, Finding{Rule: "too-large", Severity: SeverityReview, Reason: "names so many tools that not all could be looked at"})
	}
	return all
}

// maxCrossFindings bounds the findings in a definition.
const maxCrossFindings = 8

// The rules, and the reasons of their findings.
const (
	ruleOther         = "other-tool"
	reasonOther       = "orders something about a tool of another server"
	reasonChange      = "changes what a tool of another server is given"
	reasonReplacement = "puts something in the place of a tool of another server"

	ruleSibling   = "sibling-arguments"
	reasonSibling = "changes what another tool of its server is given"

	ruleUnknown   = "unknown-tool"
	reasonUnknown = "orders something about a tool that its server does not have"
)

func reasonsOther(r *reference) string {
	switch {
	case r.changes():
		return reasonChange
	case r.says&cueReplacement != 0:
		return reasonReplacement
	}
	return reasonOther
}

// has reports whether the server has a tool of that name.
func (n *names) has(k nameKey) bool { return n != nil && has(n.keys, k) }

// meansEnd reports whether the server may mean a tool of its own by an end of a name.
func (n *names) meansEnd(name []byte) bool {
	return n != nil && slices.ContainsFunc(ends(nil, name), func(k nameKey) bool { return has(n.own, k) })
}

// find returns the first server by name that has a tool of that name.
func (x *CrossRefs) find(k nameKey, server *string) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.held[k] == 0 {
		return false
	}
	for name, n := range x.servers {
		if has(n.keys, k) && (*server == "" || name < *server) {
			*server = name
		}
	}
	return true
}
