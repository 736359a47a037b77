package policy

import (
	"strings"
	"time"

	"mcpproxy/internal/catalog/tool"
)

// AskMode says whether a call needs an approval. Unknown values do.
type AskMode string

// The modes.
const (
	AskOff AskMode = "off"
	AskOn  AskMode = "ask"
)

// AskWords returns the modes as configuration files spell them.
func AskWords() []string { return []string{string(AskOff), string(AskOn)} }

// AskRules are the approval rules of one level of the configuration.
type AskRules struct {
	Write, Destructive AskMode // "": not set
	// Tools maps names or patterns to modes: of server:tool, or of tools in the rules of one server.
	Tools map[string]string
	Wait  time.Duration // how long a call waits for the approval; 0: not set
}

// asks reports whether a mode requires an approval.
func (m AskMode) asks() bool { return m != AskOff && m != "" }

// Any reports whether the rules require any approval.
func (r *AskRules) Any() bool {
	if r.Write.asks() || r.Destructive.asks() {
		return true
	}
	for _, mode := range r.Tools {
		if AskMode(mode).asks() {
			return true
		}
	}
	return false
}

// AskedBy is the rule that requires an approval of a call. The zero value is none.
type AskedBy struct {
	Key     string // configuration key: ask.write, ask.destructive, ask.tools
	Pattern string // in ask.tools
	Of      string // owner of the rule: "server NAME", "profile NAME"; "" for the global rules
}

// Asked reports whether there is a rule.
func (c AskedBy) Asked() bool { return c.Key != "" }

// String returns the rule as a path in the configuration.
func (c AskedBy) String() string {
	out := c.Key
	if c.Pattern != "" {
		out += ` "` + c.Pattern + `"`
	}
	if c.Of != "" {
		out += " of " + c.Of
	}
	return out
}

// Catch returns the rule that requires an approval of a call in a lane. Patterns precede lanes, and of
// several matching patterns one that asks wins. Lane rules of a server replace the global ones; nil: no
// rules of its own.
func Catch(general, server *AskRules, id tool.ID, lane Operation) AskedBy {
	asked, off := general.named(id, true)
	of := ""
	if server != nil {
		own, ownOff := server.named(id, false)
		off = off || ownOff
		if asked == "" && own != "" {
			asked, of = own, "server "+id.Server
		}
	}
	switch {
	case asked != "":
		return AskedBy{"ask.tools", asked, of}
	case off:
		return AskedBy{}
	}
	key, mode := general.lane(lane)
	if server != nil {
		if _, own := server.lane(lane); own != "" {
			if mode = own; mode.asks() {
				of = "server " + id.Server
			}
		}
	}
	if !mode.asks() {
		return AskedBy{}
	}
	return AskedBy{Key: key, Of: of}
}

// Add is Catch for the rules of a profile, which only add to the other levels: "off" concerns only its own
// rules.
func (r *AskRules) Add(profile string, id tool.ID, lane Operation) AskedBy {
	c := Catch(r, nil, id, lane)
	if c.Asked() {
		c.Of = "profile " + profile
	}
	return c
}

// named returns the first matching pattern that asks, in sorted order, and whether one matches that does
// not. whole: the patterns match server:tool.
func (r *AskRules) named(id tool.ID, whole bool) (asked string, off bool) {
	for pattern, mode := range r.Tools {
		if !fits(pattern, id, whole) {
			continue
		}
		if !AskMode(mode).asks() {
			off = true
		} else if asked == "" || pattern < asked {
			asked = pattern
		}
	}
	return asked, off
}

func fits(pattern string, id tool.ID, whole bool) bool {
	if !whole {
		return Matches(pattern, id.Tool)
	}
	server, name, ok := strings.Cut(pattern, ":")
	return ok && Matches(server, id.Server) && Matches(name, id.Tool)
}

// lane returns the key and mode of a lane. An unknown lane counts as destructive.
func (r *AskRules) lane(lane Operation) (key string, mode AskMode) {
	switch lane {
	case Read:
		return "", ""
	case Write:
		return "ask.write", r.Write
	}
	return "ask.destructive", r.Destructive
}
