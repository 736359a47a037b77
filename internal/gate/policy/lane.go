package policy

import "mcpproxy/internal/catalog/tool"

// DecideByArguments checks a call that Decide allows against the effect of its arguments. It follows the
// argument schema, and never allows a refused call.
func DecideByArguments(d *Decision, r *Request, f *Facts, rules *Rules) {
	a := &f.Arguments
	if d.Verdict == Reject || rules.JudgeArguments == JudgeOff || a.Operation <= expectedOperation(r, f, rules) {
		return
	}
	if rules.JudgeArguments == JudgeAdvise {
		d.warn(warnArguments(r, a))
		return
	}
	d.Verdict, d.Check, d.Problem = Reject, CheckLane, argumentMismatch(r, a)
}

// expectedOperation returns the worst operation that the caller knows of or has declared. A caller that
// calls a tool by its own name sees its hints, where silence means the worst.
func expectedOperation(r *Request, f *Facts, rules *Rules) Operation {
	if !r.OwnNames {
		return r.Variant.Operation()
	}
	switch h := Effective(f.Hints, f.Inferred, rules.InferHints); {
	case h.Destructive == tool.True:
		return Destructive
	case h.ReadOnly == tool.True:
		return Read
	case h.Destructive == tool.False:
		return Write
	}
	return Destructive
}
