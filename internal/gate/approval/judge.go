package approval

import (
	"mcpproxy/internal/catalog/scan"
	"mcpproxy/internal/catalog/tool"
)

// Rules are what a definition is judged by. The zero value accepts nothing.
type Rules struct {
	Trust Trust
	// Quarantined is a server that waits for review: nothing of it is accepted.
	Quarantined bool
	// Acquainted reports whether the tools of the server that nothing is known of are
	// new. When approvals were lost they need not be, and nothing is accepted
	// at first sight.
	Acquainted bool
}

// Evaluation is what comes of a definition.
type Evaluation struct {
	Kind tool.Kind
	Tool string
	// Accepted reports whether the definition was not approved until now and is to
	// be, without a person.
	Accepted bool
	// Why is why it waits; "" when it is approved or accepted.
	Why Why
	// Loosened are the hints that a changed definition loosens.
	Loosened []string
}

// Evaluate says what comes of a definition of a tool about which e is decided. It
// is pure; report is asked only when the answer depends on it.
func Evaluate(r Rules, e Entry, c Candidate) Evaluation {
	if e.Approves(c.Fingerprint) {
		return Evaluation{Kind: c.Kind, Tool: c.Tool}
	}
	j := Evaluation{Kind: c.Kind, Tool: c.Tool, Why: New}
	switch {
	case e.Pin != nil:
		j.Why, j.Loosened = Changed, loosened(e.Pin.Hints, c.Hints)
	case e.Was != nil && *e.Was != c.Fingerprint:
		j.Why = Changed
	}
	if e.Block != nil {
		// Who was refused once is not accepted by a slightly different text.
		if e.Block.Fingerprint == c.Fingerprint {
			j.Why = Blocked
		}
		return j
	}
	if acceptable(r, e, c, len(j.Loosened) > 0) {
		return Evaluation{Kind: c.Kind, Tool: c.Tool, Accepted: true}
	}
	return j
}

// acceptable reports whether the trust in the server is enough.
func acceptable(r Rules, e Entry, c Candidate, loosens bool) bool {
	switch {
	case r.Quarantined:
		return false
	case e.Pin != nil:
		return r.Trust == Auto && !loosens
	case e.Was != nil && *e.Was != c.Fingerprint, !r.Acquainted:
		return false
	case r.Trust == Auto:
		return true
	}
	return r.Trust == Scan && c.Report != nil && c.Report().Verdict == scan.Clean
}

// loosened names the hints by which a tool that was approved with the one set
// claims more harmless effects with the other.
func loosened(was, is tool.Hints) []string {
	var out []string
	becomes := func(name string, from, to, harmless tool.Tri) {
		if from != harmless && to == harmless {
			out = append(out, name)
		}
	}
	if was.Destructive == tool.True && is.Destructive == tool.Unset {
		out = append(out, "destructiveHint")
	}
	if was.ReadOnly == tool.False && is.ReadOnly == tool.Unset { // the read lane opens
		out = append(out, "readOnlyHint")
	}
	becomes("destructiveHint", was.Destructive, is.Destructive, tool.False)
	becomes("readOnlyHint", was.ReadOnly, is.ReadOnly, tool.True)
	becomes("idempotentHint", was.Idempotent, is.Idempotent, tool.True)
	becomes("openWorldHint", was.OpenWorld, is.OpenWorld, tool.False)
	return out
}
