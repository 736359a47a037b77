package auth

import (
	"slices"
	"strconv"
	"strings"
)

// OperationLane is the lane of a tool: one of the operations of package policy, in the same order. The zero value is
// no lane, which no caller may use.
type OperationLane uint8

// The lanes.
const (
	Read OperationLane = iota + 1
	Write
	Destructive
)

var words = [...]string{Read: "read", Write: "write", Destructive: "destructive"}

// OperationLaneNames returns the names of the lanes.
func OperationLaneNames() []string { return slices.Clone(words[Read:]) }

// ParseOperationLane parses the exact name of a lane.
func ParseOperationLane(word string) (OperationLane, bool) {
	i := max(slices.Index(words[:], word), 0)
	return OperationLane(i), i > 0
}

// OperationLaneSet is a set of lanes. The zero value is empty.
type OperationLaneSet uint8

// AllLanes is the set of all lanes.
const AllLanes = OperationLaneSet(1<<Read | 1<<Write | 1<<Destructive)

// Has reports whether a lane is in the set.
func (s OperationLaneSet) Has(l OperationLane) bool { return s&AllLanes&(1<<l) != 0 }

// Words returns the names of the lanes in the set.
func (s OperationLaneSet) Words() (names []string) {
	for l := Read; l <= Destructive; l++ {
		if s.Has(l) {
			names = append(names, words[l])
		}
	}
	return names
}

// ToolPatterns limits the tools of the servers that a pattern matches.
type ToolPatterns struct {
	Server   string
	Patterns []string
}

// ScopeLimits are the limits of a rule. A nil field does not limit; an empty one allows nothing. Servers and tools
// are names or patterns: see MatchesPattern.
type ScopeLimits struct {
	Profile string // the profile that sets the limits, "" if there is none
	Servers []string
	Tools   []ToolPatterns // all entries that match a server apply
	Lanes   []string
}

// ScopeRule allows a subset of servers, tools and lanes. It is immutable.
type ScopeRule struct {
	profile string
	servers []string
	tools   []ToolPatterns
	lanes   OperationLaneSet
	key     string
}

// NewScopeRule returns a rule with these limits. It keeps their slices. Unknown lanes allow nothing.
func NewScopeRule(l ScopeLimits) *ScopeRule {
	r := &ScopeRule{profile: l.Profile, servers: l.Servers, tools: l.Tools, lanes: AllLanes}
	if l.Lanes != nil {
		r.lanes = 0
	}
	for _, word := range l.Lanes {
		if lane, ok := ParseOperationLane(word); ok {
			r.lanes |= 1 << lane
		}
	}
	r.key = r.canonicalText()
	return r
}

// DenyAllRule returns a rule that allows nothing, for a profile that does not exist. "" means that the rule belongs
// to no profile.
func DenyAllRule(profile string) *ScopeRule {
	return NewScopeRule(ScopeLimits{Profile: profile, Servers: []string{}, Lanes: []string{}})
}

// canonicalText returns the canonical text of the rule.
func (r *ScopeRule) canonicalText() string {
	var out []byte
	list := func(all []string) {
		out = strconv.AppendBool(out, all == nil)
		for _, one := range all {
			out = strconv.AppendQuote(out, one)
		}
		out = append(out, ';')
	}
	out = strconv.AppendQuote(out, r.profile)
	list(r.servers)
	for _, t := range r.tools {
		out = strconv.AppendQuote(out, t.Server)
		list(t.Patterns)
	}
	return string(strconv.AppendInt(out, int64(r.lanes), 10))
}

func (r *ScopeRule) allowsServer(name string) bool {
	return r.servers == nil || matchesAny(r.servers, name)
}

func (r *ScopeRule) allowsTool(server, name string) bool {
	if !r.allowsServer(server) {
		return false
	}
	for i := range r.tools {
		if t := &r.tools[i]; MatchesPattern(t.Server, server) && !matchesAny(t.Patterns, name) {
			return false
		}
	}
	return true
}

func matchesAny(patterns []string, name string) bool {
	for _, p := range patterns {
		if MatchesPattern(p, name) {
			return true
		}
	}
	return false
}

// maxRules is the maximum number of rules of a scope: the rules of a token, of its profile and of the address.
const maxRules = 3

// Scope is the set of servers and tools that a caller may use. The zero value is everything.
type Scope struct{ rules [maxRules]*ScopeRule }

// NewScope returns the intersection of at most three rules; a nil rule is ignored.
func NewScope(rules ...*ScopeRule) (s Scope) {
	n := 0
	for _, r := range rules {
		if r != nil {
			s.rules[n] = r
			n++
		}
	}
	return s
}

// IsBounded reports whether there is any rule.
func (s Scope) IsBounded() bool { return s.rules[0] != nil }

// AllowsServer reports whether a server name is in the scope, even if no such server exists.
func (s Scope) AllowsServer(name string) bool {
	for _, r := range s.rules {
		if r != nil && !r.allowsServer(name) {
			return false
		}
	}
	return true
}

// AllowsAllServers reports whether every server name is in the scope.
func (s Scope) AllowsAllServers() bool {
	for _, r := range s.rules {
		if r != nil && r.servers != nil {
			return false
		}
	}
	return true
}

// AllowsTool reports whether a tool name is in the scope, regardless of its lane, even if no such tool exists.
func (s Scope) AllowsTool(server, name string) bool {
	for _, r := range s.rules {
		if r != nil && !r.allowsTool(server, name) {
			return false
		}
	}
	return true
}

// Lanes returns the lanes in the scope.
func (s Scope) Lanes() OperationLaneSet {
	all := AllLanes
	for _, r := range s.rules {
		if r != nil {
			all &= r.lanes
		}
	}
	return all
}

// AllowsAllLanes reports whether every lane is in the scope.
func (s Scope) AllowsAllLanes() bool { return s.Lanes() == AllLanes }

// ProfileNames returns the names of the rules' profiles, separated by commas; "" if there are none.
func (s Scope) ProfileNames() string {
	out := ""
	for _, r := range s.rules {
		if r != nil && r.profile != "" && !slices.Contains(strings.Split(out, ","), r.profile) {
			out = strings.TrimPrefix(out+","+r.profile, ",")
		}
	}
	return out
}

// HasProfile reports whether the scope contains the rule of that profile.
func (s Scope) HasProfile(name string) bool {
	for _, r := range s.rules {
		if r != nil && r.profile == name {
			return true
		}
	}
	return false
}

// ScopeKey identifies a scope: equal rules in the same order have the same key.
type ScopeKey [maxRules]string

// Key returns the key of the scope.
func (s Scope) Key() (k ScopeKey) {
	for i, r := range s.rules {
		if r != nil {
			k[i] = r.key
		}
	}
	return k
}
