package presence

import (
	"fmt"
	"time"
)

// PlaceState is how one of the places of the fingerprint stands.
type PlaceState string

// The states. What is behind follows by itself.
const (
	Matches    PlaceState = "matches"
	Behind     PlaceState = "behind"
	Missing    PlaceState = "missing"
	Differs    PlaceState = "differs"
	Unreadable PlaceState = "unreadable"
)

// Words are all states.
func (PlaceState) Words() []string {
	return []string{string(Matches), string(Behind), string(Missing), string(Differs), string(Unreadable)}
}

// placeState says how a place stands in which a fingerprint was read, zero for none.
func placeState(c chain, read Digest, err error) PlaceState {
	switch {
	case err != nil:
		return Unreadable
	case read == c.head():
		return Matches
	case read == Digest{}:
		return Missing
	case c.grown(read):
		return Behind
	}
	return Differs
}

// verdict is what follows from everything that is known of the anchor.
type verdict struct {
	on     bool   // what widens needs a statement
	void   string // why no statement counts; "" when they do
	remedy string // what to do about that
	mayNew bool   // an anchor can be set that stands alone
	mayAdd bool   // the anchor in force can sign the next one
	join   bool   // the anchor in force can have its fingerprint put where it is missing
}

// judge says what counts. It is pure.
func judge(c chain, broken error, places map[string]PlaceState, demanded Kind, now time.Time) (v verdict) {
	bad := map[PlaceState]string{} // the name of a place in each state
	for name, state := range places {
		if bad[state] == "" || name < bad[state] {
			bad[state] = name
		}
	}
	last := c.last()
	v.on = last.Kind != None || demanded != None
	const reset = "`mcpproxy presence reset` makes all decisions void and takes another anchor 24 hours later"
	switch {
	case broken != nil:
		v.on, v.void = true, "The anchor in the database is not what was set: "+broken.Error()+"."
		v.remedy = "Put the database back as it was; " + reset + "."
	case bad[Differs] != "":
		v.on, v.void = true, "The anchor in the database is not the one whose fingerprint is in "+bad[Differs]+"."
		v.remedy = "Put back what was changed; " + reset + "."
	case bad[Unreadable] != "" && v.on:
		v.void = "The fingerprint of the anchor in " + bad[Unreadable] + " cannot be read."
		v.remedy = "Unlock the keyring, or see the log of the daemon, and restart MCPProxy."
	case last.Kind == None && demanded != None:
		v.mayNew = bad[Unreadable] == ""
		v.void, v.remedy = "The configuration demands presence, and no anchor is set.", "Set one: `mcpproxy presence set "+string(demanded)+"`."
	case last.Kind == None:
		v.mayNew = bad[Unreadable] == ""
	case bad[Missing] != "":
		v.join = last.proves()
		v.void = "The fingerprint of the anchor is missing in " + bad[Missing] + "."
		v.remedy = "If you have set this anchor, prove it: `mcpproxy presence join`."
		if !v.join {
			v.remedy = "Reset it once more: `mcpproxy presence reset`."
		}
	case !last.proves():
		until := last.Since.Add(ResetTime)
		if v.mayNew = !now.Before(until); v.mayNew {
			v.void, v.remedy = "Presence was reset.", "Set a new anchor: `mcpproxy presence set passphrase`."
		} else {
			v.void = fmt.Sprintf("Presence was reset: until %s nothing that widens counts.", until.UTC().Format(time.RFC3339))
			v.remedy = "If that was not you, call it off: `mcpproxy presence reset --cancel`."
		}
	default:
		v.mayAdd = true
	}
	return v
}
