package policy

import (
	"strings"
	"time"

	"mcpproxy/internal/catalog/tool"
)

// AskMode is whether a person is asked about a call before it is made. What is none of the
// words asks.
type AskMode string

// The modes.
const (
	AskOff AskMode = "off"
	AskOn  AskMode = "ask"
)

// AskWords are the modes, as files have them.
func AskWords() []string { return []string{string(AskOff), string(AskOn)} }

// AskRules are what one level of the configuration says of what a person is asked about.
type AskRules struct {
	Write, Destructive AskMode // "": not said
	// Tools is for names or patterns: of server:tool, or of the tools of a server where
	// they are the rules of one.
	Tools map[string]string
	Wait  time.Duration // for how long a call waits for the answer; 0: not said
}

// asks reports whether a mode that is said has a person asked.
func (m AskMode) asks() bool { return m != AskOff && m != "" }

// Any reports whether anything is asked by the rules.
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

// AskedBy is the rule by which a person is asked about a call. The zero value is none.
type AskedBy struct {
	Key     string // of the configuration: ask.write, ask.destructive, ask.tools
	Pattern string // in ask.tools
	Of      string // whose rule it is: "server NAME", "profile NAME"; "" for the general ones
}

// Asked reports whether there is a rule.
func (c AskedBy) Asked() bool { return c.Key != "" }

// String is the rule as a person finds it in the file.
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

// Catch says by which rule a person is asked about a call that counts as a lane.
// Of the patterns that fit, one that asks goes before those that do not, and any of them
// before the lane. What a server says of a lane takes the place of what is said in general;
// nil are no rules of its own.
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

// Add is Catch by the rules of a profile, which add to those of the levels above: what is
// off there is off for its own rules alone.
func (r *AskRules) Add(profile string, id tool.ID, lane Operation) AskedBy {
	c := Catch(r, nil, id, lane)
	if c.Asked() {
		c.Of = "profile " + profile
	}
	return c
}

// named returns the first pattern, in their order as texts, that fits the tool and asks, and whether one fits that
// does not. whole says that the patterns are of server:tool.
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

// lane returns the key of a lane and its mode. A lane that is not known is the worst.
func (r *AskRules) lane(lane Operation) (key string, mode AskMode) {
	switch lane {
	case Read:
		return "", ""
	case Write:
		return "ask.write", r.Write
	}
	return "ask.destructive", r.Destructive
}
