package catalog

import (
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/policy"
)

// FactsForActivityRecord returns the facts about the tool for activity records. It is computed at the first call.
func (t *Tool) FactsForActivityRecord() tool.DecisionFacts {
	if j := t.factsCache.Load(); j != nil {
		return *j
	}
	j := tool.DecisionFacts{
		Hints: tool.ResolveHints(t.Effective, t.override, t.Hints, t.proven), Overridden: tool.OverriddenHints(t.override, t.Hints),
		CallWith: t.CallWith.String(), Fingerprint: t.Fingerprint().String(),
	}
	if policy.HintsUnset(t.Hints) {
		in := t.entry.classification.InferredHints()
		j.Inferred, j.Unsure = in.Operation.String(), in.Unsure
	}
	if t.pin != nil {
		j.ApprovedBy, j.ApprovedAt = t.pin.By, &t.pin.At
	}
	j = j.WithEncodedBytes()
	t.factsCache.Store(&j)
	return j
}
