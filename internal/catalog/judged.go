package catalog

import (
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/policy"
)

// Judged is what records say of the tool: made once, when it is first called.
func (t *Tool) Judged() tool.Facts {
	if j := t.judged.Load(); j != nil {
		return *j
	}
	j := tool.Facts{
		Hints: tool.JudgeHints(t.Effective, t.override, t.Hints), Overridden: tool.Overridden(t.override, t.Hints),
		CallWith: t.CallWith.String(), Fingerprint: t.Fingerprint().String(),
	}
	if policy.Silent(t.Hints) {
		in := t.entry.nature.Inferred()
		j.Inferred, j.Unsure = in.Operation.String(), in.Unsure
	}
	if t.pin != nil {
		j.ApprovedBy, j.ApprovedAt = t.pin.By, &t.pin.At
	}
	j = j.Prepared()
	t.judged.Store(&j)
	return j
}
