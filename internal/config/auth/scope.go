package auth

import (
	"slices"
	"strconv"
	"strings"
)

// Lane is what a tool is used for: one of the operations of package policy, whose
// constants stand in the same order. The zero value is none, which nobody may use.
type Lane uint8

// The lanes.
const (
	Read Lane = iota + 1
	Write
	Destructive
)

var words = [...]string{Read: "read", Write: "write", Destructive: "destructive"}

// LaneWords are the names of the lanes, as files and commands have them.
func LaneWords() []string { return slices.Clone(words[Read:]) }

// ParseLane reads the exact name of a lane.
func ParseLane(word string) (Lane, bool) {
	i := max(slices.Index(words[:], word), 0)
	return Lane(i), i > 0
}

// Lanes is a set of lanes. The zero value is empty.
type Lanes uint8

// AllLanes is the set of all lanes.
const AllLanes = Lanes(1<<Read | 1<<Write | 1<<Destructive)

// Has reports whether a lane is in the set.
func (s Lanes) Has(l Lane) bool { return s&AllLanes&(1<<l) != 0 }

// LaneWords are the names of the lanes in the set.
func (s Lanes) Words() (names []string) {
	for l := Read; l <= Destructive; l++ {
		if s.Has(l) {
			names = append(names, words[l])
		}
	}
	return names
}

// Tools narrows what there is of the servers that a pattern fits to the tools that
// one of some patterns fits.
type Tools struct {
	Server   string
	Patterns []string
}

// Limits are what a rule follows from. What is nil does not limit; what is empty
// lets nothing through. Servers and tools are names or patterns: see Matches.
type Limits struct {
	Profile string // whose limits they are, "" if those of no profile
	Servers []string
	Tools   []Tools // of several that fit a server, all count
	Lanes   []string
}

// ScopeRule lets a part of what there is through. It is immutable.
type ScopeRule struct {
	profile string
	servers []string
	tools   []Tools
	lanes   Lanes
	key     string
}

// NewScopeRule makes the rule of some limits, and keeps them. A word that is no lane
// stands for none.
func NewScopeRule(l Limits) *ScopeRule {
	r := &ScopeRule{profile: l.Profile, servers: l.Servers, tools: l.Tools, lanes: AllLanes}
	if l.Lanes != nil {
		r.lanes = 0
	}
	for _, word := range l.Lanes {
		if lane, ok := ParseLane(word); ok {
			r.lanes |= 1 << lane
		}
	}
	r.key = r.text()
	return r
}

// NoScope is the rule that lets nothing through, in the name of a profile that does
// not exist (any more), or of none.
func NoScope(profile string) *ScopeRule {
	return NewScopeRule(Limits{Profile: profile, Servers: []string{}, Lanes: []string{}})
}

// text says all that the rule says: two that say the same have the same.
func (r *ScopeRule) text() string {
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

func (r *ScopeRule) server(name string) bool { return r.servers == nil || fits(r.servers, name) }

func (r *ScopeRule) tool(server, name string) bool {
	if !r.server(server) {
		return false
	}
	for i := range r.tools {
		if t := &r.tools[i]; MatchesPattern(t.Server, server) && !fits(t.Patterns, name) {
			return false
		}
	}
	return true
}

func fits(patterns []string, name string) bool {
	for _, p := range patterns {
		if MatchesPattern(p, name) {
			return true
		}
	}
	return false
}

// maxRules is how many rules a scope has at most: those of a token, of its profile
// and of the address.
const maxRules = 3

// Scope is what somebody may reach. The zero value is everything.
type Scope struct{ rules [maxRules]*ScopeRule }

// ScopeOf returns what all of the rules let through, at most three; nil is no rule.
func ScopeOf(rules ...*ScopeRule) (s Scope) {
	n := 0
	for _, r := range rules {
		if r != nil {
			s.rules[n] = r
			n++
		}
	}
	return s
}

// Bounded reports whether there is a rule at all.
func (s Scope) Bounded() bool { return s.rules[0] != nil }

// Server reports whether a server of that name is in the scope, whether there is
// one or not.
func (s Scope) Server(name string) bool {
	for _, r := range s.rules {
		if r != nil && !r.server(name) {
			return false
		}
	}
	return true
}

// AllServers reports whether no server is left out, whatever its name.
func (s Scope) AllServers() bool {
	for _, r := range s.rules {
		if r != nil && r.servers != nil {
			return false
		}
	}
	return true
}

// Tool reports whether a tool of that name is in the scope, whether there is one or
// not, as far as its lane allows.
func (s Scope) Tool(server, name string) bool {
	for _, r := range s.rules {
		if r != nil && !r.tool(server, name) {
			return false
		}
	}
	return true
}

// Lanes are the lanes in the scope.
func (s Scope) Lanes() Lanes {
	all := AllLanes
	for _, r := range s.rules {
		if r != nil {
			all &= r.lanes
		}
	}
	return all
}

// AllLanes reports whether no lane is left out.
func (s Scope) AllLanes() bool { return s.Lanes() == AllLanes }

// Profiles names the profiles whose rules there are, with commas between them; ""
// without any.
func (s Scope) Profiles() string {
	out := ""
	for _, r := range s.rules {
		if r != nil && r.profile != "" && !slices.Contains(strings.Split(out, ","), r.profile) {
			out = strings.TrimPrefix(out+","+r.profile, ",")
		}
	}
	return out
}

// InProfile reports whether there is the rule of a profile of that name.
func (s Scope) InProfile(name string) bool {
	for _, r := range s.rules {
		if r != nil && r.profile == name {
			return true
		}
	}
	return false
}

// ScopeKey stands for a scope: two that say the same, in the same order, have the same.
type ScopeKey [maxRules]string

// ScopeKey returns the key of the scope.
func (s Scope) Key() (k ScopeKey) {
	for i, r := range s.rules {
		if r != nil {
			k[i] = r.key
		}
	}
	return k
}
