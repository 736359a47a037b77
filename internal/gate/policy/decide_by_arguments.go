package policy

import "mcpproxy/internal/catalog/tool"

// DecideByArguments checks a call that Decide allows against the effect of its arguments. It runs after the check of
// the argument schema, and never allows a refused call.
func DecideByArguments(d *Decision, r *CallRequest, f *Facts, rules *Rules) {
	a := &f.Arguments
	if d.Verdict == Reject || rules.JudgeArguments == ArgumentsOff || a.Operation <= expectedOperation(r, f, rules) {
		return
	}
	if rules.JudgeArguments == ArgumentsAdvise {
		d.allowWithWarning(argumentsWarningText(r, a))
		return
	}
	d.Verdict, d.Check, d.Problem = Reject, CheckLane, argumentMismatchProblem(r, a)
}

// expectedOperation returns the most dangerous operation that the caller has declared or can expect. A caller that
// does not choose a lane sees the hints of the tool. Unset hints mean the most dangerous operation.
func expectedOperation(r *CallRequest, f *Facts, rules *Rules) Operation {
	if r.ChoosesLane() {
		return r.CallTool.Operation()
	}
	switch h := EffectiveHints(f.Hints, f.Inferred, rules.InferHints); {
	case h.Destructive == tool.True:
		return Destructive
	case h.ReadOnly == tool.True:
		return Read
	case h.Destructive == tool.False:
		return Write
	}
	return Destructive
}
