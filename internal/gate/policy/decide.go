package policy

import (
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/problem"
)

// Verdict is the outcome. The zero value rejects.
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
	JudgeArguments         JudgeMode
}

// Decision is the result of Decide. Problem is set if and only if the verdict is Reject, and then Check is
// the check that refused. Warnings are complete sentences for the record and the result.
type Decision struct {
	Verdict Verdict
	Check   Check
	Problem *problem.Problem
	Intent  Intent
	// Unsound reports whether the declaration is, or would be, refused: then Intent has only its valid
	// parts.
	Unsound  bool
	Warnings []string
}

// Decide decides about a call. The order of the checks is that of the contract: name, intent, selection,
// arguments, scope, existence, status, hints; the first failure is the problem. (Gate checks the argument
// schema afterwards, because it needs the definition; then DecideByArguments follows.) The path to Allow
// does not allocate.
func Decide(r Request, f Facts, rules Rules) Decision {
	intent, bad := checkIntent(r.Variant, &r.Declared, rules)
	d := Decision{Intent: intent, Unsound: bad != nil}
	switch {
	case r.Variant.Operation() == NoOperation:
		d.Check, d.Problem = CheckName, invalidVariant()
	case r.NameErr != nil || r.ID.Server == "" || r.ID.Tool == "":
		d.Check, d.Problem = CheckName, invalidName(r.Name, r.NameErr, f.Nearest)
	case bad != nil:
		d.Check, d.Problem = CheckIntent, bad
	case r.SelectErr != nil:
		d.Check, d.Problem = CheckSelect, r.SelectErr
	case r.ArgsErr != nil:
		d.Check, d.Problem = CheckArguments, r.ArgsErr
	case !f.InScope || !inLanes(r.Variant, &f):
		d.Check, d.Problem = CheckScope, outOfScope(r)
		if f.InScope && f.ByArguments {
			d.Problem = outsideByArguments(&r, &f.Arguments)
		}
	case f.Existence == NoTool:
		d.Check, d.Problem = CheckExists, toolNotFound(r, f.Nearest)
	case f.Existence == Unlisted && f.LoginNeeded:
		d.Check, d.Problem = CheckExists, loginNeeded(r.ID)
	case f.Existence == Unlisted:
		d.Check, d.Problem = CheckExists, serverUnlisted(r.ID, f.Unlisted)
	case f.Existence != Exists:
		d.Check, d.Problem = CheckExists, serverNotFound(r, f.Nearest)
	case f.Status != Callable:
		d.Check, d.Problem = CheckCallable, toolLocked(r, f.Status)
	default:
		checkHints(&d, r, &f, rules)
	}
	return d
}

// inLanes reports whether the caller has the lanes that a call needs: that of the tool, and that of the
// variant if it is worse. An unknown tool of a known server is in no lane, so that a restricted caller
// does not learn whether a tool exists.
func inLanes(v Variant, f *Facts) bool {
	switch {
	case f.Lanes == auth.AllLanes:
		return true
	case f.Lane == NoOperation:
		return f.Existence == NoServer || f.Existence == Unlisted
	}
	return f.Lanes.Has(auth.Lane(f.Lane)) && f.Lanes.Has(auth.Lane(max(f.Lane, v.Operation())))
}

// checkHints compares the variant with the declared and inferred hints of the tool. Only this function
// allows a call.
func checkHints(d *Decision, r Request, f *Facts, rules Rules) {
	h := Effective(f.Hints, f.Inferred, rules.InferHints)
	inferred := f.Inferred
	if rules.InferHints == InferOff {
		inferred = NoOperation
	}
	m := mismatch{of: contradictedHint(r.Variant, h), inferred: inferred}
	switch {
	case f.Arguments.loosens(r.Variant, rules.JudgeArguments):
		d.Verdict = Allow
	case m.of != agrees && rules.StrictServerValidation:
		d.Check, d.Problem = CheckHints, m.problem(r, f)
	case m.of != agrees:
		d.warn(m.warning(r, f))
	case r.Variant == CallToolWrite && CallWith(h) == CallToolRead:
		d.warn(warnOverlyCautious(r, f, inferred))
	case r.Variant.Operation() < inferred && !f.InferredUnsure:
		d.warn(warnInferred(r, f))
	default:
		d.Verdict = Allow
	}
}

// contradictedHint returns the hint that a variant contradicts. The result of CallWith for the same hints
// contradicts none.
func contradictedHint(v Variant, h tool.Hints) hint {
	switch {
	case h.Destructive == tool.True && v != CallToolDestructive:
		return saysDestructive
	case h.ReadOnly == tool.False && v == CallToolRead && h.Destructive != tool.True:
		return saysNotReadOnly
	}
	return agrees
}

func (d *Decision) warn(text string) {
	d.Verdict = AllowWithWarning
	d.Warnings = append(d.Warnings, text)
}

// checkIntent returns the valid parts of the intent, and its problem. Refusals are recorded with the
// intent, too.
func checkIntent(v Variant, d *Declared, rules Rules) (Intent, *problem.Problem) {
	in := Intent{Operation: v.Operation()}
	declared, known := ParseOperation(d.OperationType)
	known = known && d.HasOperation
	if known {
		in.Operation = declared
	}
	if d.HasSensitivity && ParseSensitivity(d.DataSensitivity) {
		in.Sensitivity = d.DataSensitivity
	}
	reasonFits := true
	if d.HasReason {
		in.Reason, reasonFits = cutReason(d.Reason)
	}
	switch {
	case d.Malformed != "":
		return in, malformedIntent(v, d.Malformed, rules.RequireIntent)
	case d.HasOperation && !known:
		return in, invalidOperation(d.OperationType, rules.RequireIntent)
	case known && declared != v.Operation():
		return in, intentMismatch(v, declared, rules.RequireIntent)
	case !d.HasOperation && rules.RequireIntent && !d.Present:
		return in, missingIntent(v)
	case !d.HasOperation && rules.RequireIntent:
		return in, missingOperation(v)
	case d.HasSensitivity && d.DataSensitivity != "" && in.Sensitivity == "":
		return in, invalidSensitivity(d.DataSensitivity)
	case !reasonFits:
		return in, reasonTooLong()
	}
	return in, nil
}

// cutReason returns the first MaxReason characters of a reason, and whether that is all of it.
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
