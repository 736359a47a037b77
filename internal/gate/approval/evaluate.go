package approval

import (
	"mcpproxy/internal/catalog/scan"
	"mcpproxy/internal/catalog/tool"
)

// EvaluationRules are the rules of Evaluate. The zero value accepts nothing.
type EvaluationRules struct {
	Trust Trust
	// Quarantined reports whether the server waits for review. If so, none of its definitions is accepted.
	Quarantined bool
	// UnknownIsNew reports whether unknown tools of the server are new. After a loss of approvals they may be known
	// tools, and none is accepted automatically.
	UnknownIsNew bool
}

// Evaluation is the result for one definition.
type Evaluation struct {
	Kind tool.DefinitionKind
	Tool string
	// Accepted reports whether the definition is to be approved automatically.
	Accepted bool
	// Why is the reason why the definition waits; "" if it is approved or accepted.
	Why WaitReason
	// Loosened are the hints that a changed definition loosens.
	Loosened []string
}

// Evaluate evaluates a definition of a tool with the entry e. It has no side effects, and calls c.Report only if the
// result depends on it.
func Evaluate(r EvaluationRules, e DefinitionDecisions, c CandidateDefinition) Evaluation {
	if e.Approves(c.Fingerprint) {
		return Evaluation{Kind: c.Kind, Tool: c.Tool}
	}
	j := Evaluation{Kind: c.Kind, Tool: c.Tool, Why: New}
	switch base := e.ComparisonBase(); {
	case base != nil && base.Fingerprint != c.Fingerprint:
		j.Why, j.Loosened = Changed, loosenedHints(base.Hints, c.Hints)
	case e.Was != nil && *e.Was != c.Fingerprint:
		j.Why = Changed
	}
	if e.Block != nil {
		// A refused tool is not accepted with slightly different text.
		if e.Block.Fingerprint == c.Fingerprint {
			j.Why = Blocked
		}
		return j
	}
	if isAcceptable(r, e, c, len(j.Loosened) > 0) {
		return Evaluation{Kind: c.Kind, Tool: c.Tool, Accepted: true}
	}
	return j
}

// isAcceptable reports whether the server's trust setting accepts the definition.
func isAcceptable(r EvaluationRules, e DefinitionDecisions, c CandidateDefinition, loosens bool) bool {
	switch {
	case r.Quarantined:
		return false
	case e.Pin != nil:
		return r.Trust == Auto && !loosens
	case e.Was != nil && *e.Was != c.Fingerprint, !r.UnknownIsNew:
		return false
	case r.Trust == Auto:
		return true
	}
	return r.Trust == Scan && c.Report != nil && c.Report().Verdict == scan.Clean
}

// loosenedHints returns the hints that claim less dangerous effects than the approved ones.
func loosenedHints(was, is tool.Hints) []string {
	var out []string
	becomes := func(name string, from, to, harmless tool.TriBool) {
		if from != harmless && to == harmless {
			out = append(out, name)
		}
	}
	if was.Destructive == tool.True && is.Destructive == tool.Unset {
		out = append(out, "destructiveHint")
	}
	if was.ReadOnly == tool.False && is.ReadOnly == tool.Unset { // would open the read lane
		out = append(out, "readOnlyHint")
	}
	becomes("destructiveHint", was.Destructive, is.Destructive, tool.False)
	becomes("readOnlyHint", was.ReadOnly, is.ReadOnly, tool.True)
	becomes("idempotentHint", was.Idempotent, is.Idempotent, tool.True)
	becomes("openWorldHint", was.OpenWorld, is.OpenWorld, tool.False)
	return out
}
