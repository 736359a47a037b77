package policy

import "mcpproxy/internal/catalog/tool"

// DecideByArguments holds the variant of a call that Decide allows against what its
// arguments do. It comes after the argument schema, and it never allows what was refused.
func DecideByArguments(d *Decision, r *Request, f *Facts, rules *Rules) {
	a := &f.Arguments
	if d.Verdict == Reject || rules.JudgeArguments == JudgeOff || a.Operation <= told(r, f, rules) {
		return
	}
	if rules.JudgeArguments == JudgeAdvise {
		d.warn(warnArguments(r, a))
		return
	}
	d.Verdict, d.Check, d.Problem = Reject, CheckLane, argumentMismatch(r, a)
}

// told is what the caller has been told, or has said, that the call does at worst. Who
// calls a tool by its own name goes by its hints, where silence means the worst.
func told(r *Request, f *Facts, rules *Rules) Operation {
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
