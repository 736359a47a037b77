package policy

import (
	"strings"
	"time"

	"mcpproxy/internal/catalog/tool"
)

// AskMode determines whether a call needs an approval. Unknown values require one.
type AskMode string

// The modes.
const (
	AskOff AskMode = "off"
	AskOn  AskMode = "ask"
)

// AskModeNames returns the modes as they are written in configuration files.
func AskModeNames() []string { return []string{string(AskOff), string(AskOn)} }

// AskRules are the approval rules of one level of the configuration.
type AskRules struct {
	Write, Destructive AskMode // "": not set
	// Tools maps names or patterns to modes. They match server:tool, or the tool name in the rules of one server.
	Tools map[string]string
	Wait  time.Duration // maximum time to wait for an approval; 0: not set
}

// requiresApproval reports whether a mode requires an approval.
func (m AskMode) requiresApproval() bool { return m != AskOff && m != "" }

// RequiresAnyApproval reports whether the rules require any approval.
func (r *AskRules) RequiresAnyApproval() bool {
	if r.Write.requiresApproval() || r.Destructive.requiresApproval() {
		return true
	}
	for _, mode := range r.Tools {
		if AskMode(mode).requiresApproval() {
			return true
		}
	}
	return false
}

// ApprovalRule is the rule that requires an approval of a call. The zero value means that no rule requires one.
type ApprovalRule struct {
	Key     string // configuration key: ask.write, ask.destructive, ask.tools
	Pattern string // pattern in ask.tools
	Of      string // owner of the rule: "server NAME", "profile NAME"; "" for the global rules
}

// IsSet reports whether there is a rule.
func (c ApprovalRule) IsSet() bool { return c.Key != "" }

// String returns the rule as a path in the configuration.
func (c ApprovalRule) String() string {
	out := c.Key
	if c.Pattern != "" {
		out += ` "` + c.Pattern + `"`
	}
	if c.Of != "" {
		out += " of " + c.Of
	}
	return out
}

// FindApprovalRule returns the rule that requires an approval of a call in a lane. Patterns take precedence over
// lanes. If several patterns match, one that asks takes precedence. Lane rules of a server replace the global ones; a
// nil server has no rules of its own.
func FindApprovalRule(general, server *AskRules, id tool.ID, lane Operation) ApprovalRule {
	asked, off := general.matchingPattern(id, true)
	of := ""
	if server != nil {
		own, ownOff := server.matchingPattern(id, false)
		off = off || ownOff
		if asked == "" && own != "" {
			asked, of = own, "server "+id.Server
		}
	}
	switch {
	case asked != "":
		return ApprovalRule{"ask.tools", asked, of}
	case off:
		return ApprovalRule{}
	}
	key, mode := general.laneMode(lane)
	if server != nil {
		if _, own := server.laneMode(lane); own != "" {
			if mode = own; mode.requiresApproval() {
				of = "server " + id.Server
			}
		}
	}
	if !mode.requiresApproval() {
		return ApprovalRule{}
	}
	return ApprovalRule{Key: key, Of: of}
}

// FindProfileRule is FindApprovalRule for the rules of a profile, which only add to the other levels. "off" affects
// only the rules of the same profile.
func (r *AskRules) FindProfileRule(profile string, id tool.ID, lane Operation) ApprovalRule {
	c := FindApprovalRule(r, nil, id, lane)
	if c.IsSet() {
		c.Of = "profile " + profile
	}
	return c
}

// matchingPattern returns the first matching pattern that asks, in sorted order. off reports whether a pattern that
// does not ask matches. If whole is set, patterns match server:tool.
func (r *AskRules) matchingPattern(id tool.ID, whole bool) (asked string, off bool) {
	for pattern, mode := range r.Tools {
		if !patternMatchesTool(pattern, id, whole) {
			continue
		}
		if !AskMode(mode).requiresApproval() {
			off = true
		} else if asked == "" || pattern < asked {
			asked = pattern
		}
	}
	return asked, off
}

func patternMatchesTool(pattern string, id tool.ID, whole bool) bool {
	if !whole {
		return MatchesPattern(pattern, id.Tool)
	}
	server, name, ok := strings.Cut(pattern, ":")
	return ok && MatchesPattern(server, id.Server) && MatchesPattern(name, id.Tool)
}

// laneMode returns the key and mode of a lane. An unknown lane counts as destructive.
func (r *AskRules) laneMode(lane Operation) (key string, mode AskMode) {
	switch lane {
	case Read:
		return "", ""
	case Write:
		return "ask.write", r.Write
	}
	return "ask.destructive", r.Destructive
}
