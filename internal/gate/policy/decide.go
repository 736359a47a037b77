package policy

import (
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/problem"
)

// Verdict is the outcome of a decision. The zero value rejects.
type Verdict uint8

// The verdicts.
const (
	Reject Verdict = iota
	Allow
	AllowWithWarning
)

// Rules is the part of the configuration that decisions use.
type Rules struct {
	StrictServerValidation bool
	RequireIntent          bool
	InferHints             InferMode
	JudgeArguments         ArgumentEffectMode
}

// Decision is the result of Decide. Problem is set if and only if the verdict is Reject, and then Check is
// the check that refused. Warnings are complete sentences for the record and the result.
type Decision struct {
	Verdict Verdict
	Check   Check
	Problem *problem.Problem
	Intent  Intent
	// InvalidDeclaration reports whether the declaration is, or would be, refused. If so, Intent contains only its valid parts.
	InvalidDeclaration bool
	Warnings           []string
}

// Decide decides about a call. The checks have the order of the contract: name, intent, selection, arguments, scope,
// existence, status, hints. The first failure is the problem. Afterwards package gate checks the argument schema,
// because that needs the definition, and calls DecideByArguments. The path to Allow does not allocate.
func Decide(r CallRequest, f Facts, rules Rules) Decision {
	intent, bad := checkIntent(&r, rules)
	d := Decision{Intent: intent, InvalidDeclaration: bad != nil}
	switch {
	case r.CallTool.Operation() == NoOperation:
		d.Check, d.Problem = CheckName, invalidCallToolProblem()
	case r.NameErr != nil || r.ID.Server == "" || r.ID.Tool == "":
		d.Check, d.Problem = CheckName, invalidNameProblem(r.Name, r.NameErr, f.Suggestions)
	case bad != nil:
		d.Check, d.Problem = CheckIntent, bad
	case r.SelectErr != nil:
		d.Check, d.Problem = CheckSelect, r.SelectErr
	case r.ArgsErr != nil:
		d.Check, d.Problem = CheckArguments, r.ArgsErr
	case !f.InScope || !hasRequiredLanes(r.CallTool, &f):
		d.Check, d.Problem = CheckScope, outOfScopeProblem(r)
		if f.InScope && f.ByArguments {
			d.Problem = outOfScopeByArgumentsProblem(&r, &f.Arguments)
		}
	case f.Existence == NoTool:
		d.Check, d.Problem = CheckExists, toolNotFoundProblem(r, f.Suggestions)
	case f.Existence == Unlisted && f.LoginNeeded:
		d.Check, d.Problem = CheckExists, loginNeededProblem(r.ID)
	case f.Existence == Unlisted:
		d.Check, d.Problem = CheckExists, serverUnlistedProblem(r.ID, f.Unlisted)
	case f.Existence != Exists:
		d.Check, d.Problem = CheckExists, serverNotFoundProblem(r, f.Suggestions)
	case f.Status != Callable:
		d.Check, d.Problem = CheckCallable, toolLockedProblem(r, f.Status, f.Blocked)
	default:
		checkHints(&d, r, &f, rules)
	}
	return d
}

// hasRequiredLanes reports whether the caller has the lanes that a call needs: the lane of the tool, and the lane of
// the variant if it is more dangerous. An unknown tool of a known server is in no lane, so that a restricted caller
// does not learn whether a tool exists.
func hasRequiredLanes(v CallToolVariant, f *Facts) bool {
	switch {
	case f.Lanes == auth.AllLanes:
		return true
	case f.Lane == NoOperation:
		return f.Existence == NoServer || f.Existence == Unlisted
	}
	return f.Lanes.Has(auth.OperationLane(f.Lane)) && f.Lanes.Has(auth.OperationLane(max(f.Lane, v.Operation())))
}

// checkHints compares the variant with the declared and inferred hints of the tool. Only this function
// allows a call.
func checkHints(d *Decision, r CallRequest, f *Facts, rules Rules) {
	h := EffectiveHints(f.Hints, f.Inferred, rules.InferHints)
	inferred := f.Inferred
	if rules.InferHints == InferOff {
		inferred = NoOperation
	}
	m := hintMismatch{of: contradictedHint(r.CallTool, h), inferred: inferred}
	switch {
	case f.Arguments.overridesHintsFor(r.CallTool, rules.JudgeArguments):
		d.Verdict = Allow
	case m.of != noContradiction && rules.StrictServerValidation:
		d.Check, d.Problem = CheckHints, m.problem(r, f)
	case m.of != noContradiction:
		d.allowWithWarning(m.warningText(r, f))
	case r.CallTool == CallToolWrite && CallToolForHints(h) == CallToolRead:
		d.allowWithWarning(overlyCautiousText(r, f, inferred))
	case r.CallTool.Operation() < inferred && !f.InferredUnsure:
		d.allowWithWarning(callLaneBelowInferredText(r, f))
	default:
		d.Verdict = Allow
	}
}

// contradictedHint returns the hint that a variant contradicts. The variant that CallToolForHints returns for the
// same hints contradicts none.
func contradictedHint(v CallToolVariant, h tool.Hints) contradictableHint {
	switch {
	case h.Destructive == tool.True && v != CallToolDestructive:
		return declaredDestructive
	case h.ReadOnly == tool.False && v == CallToolRead && h.Destructive != tool.True:
		return declaredNotReadOnly
	}
	return noContradiction
}

func (d *Decision) allowWithWarning(text string) {
	d.Verdict = AllowWithWarning
	d.Warnings = append(d.Warnings, text)
}

// checkIntent returns the valid parts of the intent, and its problem. The records of refusals contain the intent,
// too.
func checkIntent(r *CallRequest, rules Rules) (Intent, *problem.Problem) {
	v, d := r.CallTool, &r.Declared
	in := Intent{Operation: v.Operation()}
	declared, known := ParseOperation(d.OperationType)
	known = known && d.HasOperation
	if known {
		in.Operation = declared
	}
	if d.HasSensitivity && IsSensitivity(d.DataSensitivity) {
		in.Sensitivity = d.DataSensitivity
	}
	reasonFits := true
	if d.HasReason {
		in.Reason, reasonFits = cutReason(d.Reason)
	}
	switch {
	case d.Malformed != "":
		return in, malformedIntentProblem(v, d.Malformed, rules.RequireIntent)
	case d.HasOperation && !known:
		return in, invalidOperationProblem(d.OperationType, rules.RequireIntent)
	case known && declared != v.Operation():
		return in, intentMismatchProblem(v, declared, rules.RequireIntent)
	case !d.HasOperation && rules.RequireIntent && !d.Present:
		return in, missingIntentProblem(r)
	case !d.HasOperation && rules.RequireIntent:
		return in, missingOperationProblem(v)
	case d.HasSensitivity && d.DataSensitivity != "" && in.Sensitivity == "":
		return in, invalidSensitivityProblem(d.DataSensitivity)
	case !reasonFits:
		return in, reasonTooLongProblem()
	}
	return in, nil
}

// cutReason returns the first MaxReason characters of a reason, and whether these are the whole reason.
func cutReason(s string) (string, bool) {
	n := 0
	for i := range s {
		if n == MaxReason {
			return s[:i], false
		}
		n++
	}
	return s, true
}
