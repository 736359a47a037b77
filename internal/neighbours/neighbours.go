// Package neighbours finds what a definition orders about tools that are not its
// own: that something is to be done with, before or instead of a tool of another
// server, what a tool is to be given, calls of tools that its server does not have.
// An Index has the names of all tools, by server. What a definition names is read
// from it alone, so that it is read once, however often servers come and go.
//
// It guarantees that the same definition beside the same names gives the same
// findings; that the work grows with what is new and not with what there is: names
// are looked up, definitions not read again; that what a definition names has a
// bound, beyond which a person is asked; and that spellings do not matter
// (send_mail, send-mail, sendMail, mailer:send_mail, letters that look alike). It
// does no I/O, holds no definition and decides nothing: what follows from a finding
// is the business of approval. What a server orders about its own tools, other than
// what they are given, is no finding.
//
// name has the spellings, refer reads definitions, neighbours holds one against the
// other, and scanned puts it beside what package scan says.
package neighbours

import (
	"encoding/json"
	"slices"
	"sync"

	"mcpproxy/internal/rawjson"
	"mcpproxy/internal/scan"
	"mcpproxy/internal/tool"
)

// Index has the names of all tools, by server. It is safe for concurrent use.
type Index struct {
	mu      sync.RWMutex // guards the fields below
	servers map[string]*names
	held    map[Key]int32 // by how many servers
}

// names are the tools of a server. They never change.
type names struct {
	keys []Key // in order, none twice
	own  []Key // by which the server may mean its own tools; in order
}

// New returns an empty index.
func New() *Index { return &Index{servers: map[string]*names{}, held: map[Key]int32{}} }

// Set says what the tools of a server are called.
func (x *Index) Set(server string, tools []string) {
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
func (x *Index) SetListed(server string, raws []json.RawMessage) {
	tools := make([]string, 0, len(raws))
	for _, raw := range raws {
		if name, ok := rawjson.String(rawjson.Find(raw, "name")); ok {
			tools = append(tools, name)
		}
	}
	x.Set(server, tools)
}

// Remove says that a server is there no more.
func (x *Index) Remove(server string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.remove(server)
}

func (x *Index) remove(server string) {
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
func (x *Index) others(server string, names []Key) bool {
	if len(names) == 0 {
		return false
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	own := x.servers[server]
	return slices.ContainsFunc(names, func(k Key) bool { return x.held[k] > 0 && !own.means(k) })
}

// beyond reports whether the server has no tool that it may mean by one of the names.
func (x *Index) beyond(server string, names []Key) bool {
	if len(names) == 0 {
		return false
	}
	x.mu.RLock()
	own := x.servers[server]
	x.mu.RUnlock()
	return slices.ContainsFunc(names, func(k Key) bool { return !own.means(k) })
}

// means reports whether the server may mean a tool of its own by a name.
func (n *names) means(k Key) bool { return n != nil && has(n.own, k) }

func has(all []Key, k Key) bool {
	_, ok := slices.BinarySearch(all, k)
	return ok
}

// findings returns what a definition of a server orders about tools that are not
// its own, and how it changes what others of its server are given.
func (x *Index) findings(id tool.ID, kind tool.Kind, raw []byte) []scan.Finding {
	x.mu.RLock()
	own := x.servers[id.Server]
	x.mu.RUnlock()
	self := keyOf(plain(id.Tool))
	var all []scan.Finding
	complete := read(raw, kind == tool.KindInstructions, func(t *scan.Passage, r reference) {
		if len(all) == maxFindings {
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
			all = append(all, t.Finding(rule, scan.SeverityReview, reason, r.start, r.end))
		}
	})
	if !complete {
		all = append(all, scan.Finding{Rule: "too-large", Severity: scan.SeverityReview, Reason: "names so many tools that not all could be looked at"})
	}
	return all
}

// maxFindings bounds the findings in a definition.
const maxFindings = 8

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
func (n *names) has(k Key) bool { return n != nil && has(n.keys, k) }

// meansEnd reports whether the server may mean a tool of its own by an end of a name.
func (n *names) meansEnd(name []byte) bool {
	return n != nil && slices.ContainsFunc(ends(nil, name), func(k Key) bool { return has(n.own, k) })
}

// find returns the first server by name that has a tool of that name.
func (x *Index) find(k Key, server *string) bool {
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
