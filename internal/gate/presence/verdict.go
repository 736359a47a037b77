package presence

import (
	"fmt"
	"time"
)

// storedFingerprint is the state of one place, with its mark.
type storedFingerprint struct {
	state FingerprintState
	mark  FingerprintMark
}

// verdict says which signatures are valid, according to the anchors, their copies and the configuration.
type verdict struct {
	on             bool   // grants of access need a statement
	invalidReason  string // why no statement is valid; "" if they are valid
	remedy         string // how to make statements valid
	canSetRoot     bool   // a root anchor can be set
	canSetNext     bool   // the current anchor can sign the next one
	canJoin        bool   // the current anchor can write its fingerprint where it is missing
	canCancelReset bool   // a reset can be cancelled by the previous anchor
}

// evaluateVerdict returns the verdict. It has no side effects.
func evaluateVerdict(c anchorChain, broken error, places map[string]storedFingerprint, demanded ProofKind, now time.Time) (v verdict) {
	bad := map[FingerprintState]string{} // the name of a place in each state
	last, before := c.lastAnchor(), c.beforeReset()
	at := last.Since // the time of the last known reset
	v.canCancelReset = broken == nil && before.lastAnchor().canVerifyStatements()
	for name, p := range places {
		if bad[p.state] == "" || name < bad[p.state] {
			bad[p.state] = name
		}
		if p.mark.At.After(at) {
			at = p.mark.At
		}
		// An attacker that replaced the anchor must not be able to cancel the reset with the new one.
		v.canCancelReset = v.canCancelReset && p.mark.Anchor == before.headFingerprint()
	}
	v.canCancelReset = v.canCancelReset && (last.Kind == reset || bad[WasReset] != "") && bad[Unreadable] == ""
	v.on = last.Kind != None || demanded != None
	until := at.Add(resetTime)
	const again = "`mcpproxy presence reset` makes all decisions invalid and accepts a new anchor after 24 hours"
	const cancel = "If you did not do this, cancel it: `mcpproxy presence reset --cancel`."
	switch {
	case broken != nil:
		v.on, v.invalidReason = true, "The anchor in the database was changed: "+broken.Error()+"."
		v.remedy = "Restore the database; " + again + "."
	case bad[Differs] != "":
		v.on, v.invalidReason = true, "The anchor in the database is not the one whose fingerprint is in "+bad[Differs]+"."
		v.remedy = "Restore the changed anchor; " + again + "."
	case bad[Unreadable] != "" && v.on:
		v.invalidReason = "The fingerprint of the anchor in " + bad[Unreadable] + " cannot be read."
		v.remedy = "Unlock the keyring, or see the log of the daemon, and restart MCPProxy."
	case bad[WasReset] != "" && v.canCancelReset:
		v.on, v.invalidReason = true, "Presence was reset, as "+bad[WasReset]+" has it, and the database has no reset."
		v.remedy = "If you cancelled the reset, cancel it here too: `mcpproxy presence reset --cancel`."
	case bad[WasReset] != "":
		v.on, v.invalidReason = true, fmt.Sprintf("Presence was reset. Until %s, decisions that grant more access are not valid here.", until.UTC().Format(time.RFC3339))
		v.remedy = "If you have set a new anchor since, prove it after that: `mcpproxy presence join`."
	case last.Kind == None:
		if v.canSetRoot = bad[Unreadable] == ""; demanded != None {
			v.invalidReason, v.remedy = "The configuration requires presence, but no anchor is set.", "Set one: `mcpproxy presence set "+string(demanded)+"`."
		}
	case last.Kind == reset:
		if v.canSetRoot = !now.Before(until); v.canSetRoot {
			v.invalidReason, v.remedy = "Presence was reset.", "Set a new anchor: `mcpproxy presence set passphrase`."
			break
		}
		v.invalidReason, v.remedy = fmt.Sprintf("Presence was reset. Until %s, decisions that grant more access are not valid.", until.UTC().Format(time.RFC3339)), cancel
		if !v.canCancelReset {
			v.remedy = "The reset cannot be cancelled, because the anchor was not valid in all locations. When the reset ends, set a new anchor."
		}
	case bad[Missing] != "":
		v.canJoin = true
		v.invalidReason = "The fingerprint of the anchor is missing in " + bad[Missing] + "."
		v.remedy = "If you set this anchor, confirm it with `mcpproxy presence join`."
	default:
		v.canSetNext = true
	}
	return v
}
