package policy_test

import (
	"testing"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/problem"
)

// judged decides about a call with all functions of the package.
func judged(r policy.CallRequest, f policy.Facts, rules policy.Rules) policy.Decision {
	d := policy.Decide(r, f, rules)
	policy.DecideByArguments(&d, &r, &f, &rules)
	return d
}

// TestArgumentMismatch compares the message with the contract, character by character.
func TestArgumentMismatch(t *testing.T) {
	r, f := sound(policy.CallToolRead, policy.DeclaredIntent{})
	f.Arguments = policy.ArgumentEffect{Operation: policy.Destructive, Word: "DROP TABLE", By: policy.BySQL, Path: "$.sql"}
	d := judged(r, f, policy.Rules{StrictServerValidation: true, JudgeArguments: policy.ArgumentsEnforce})
	if d.Verdict != policy.Reject || d.Check != policy.CheckLane || d.Problem.Code != problem.ArgumentMismatch ||
		d.Problem.Message != "These arguments make 'github:delete_repo' destructive (DROP TABLE), use call_tool_destructive instead of call_tool_read" {
		t.Errorf("%+v", d)
	}
	d = judged(r, f, policy.Rules{StrictServerValidation: true, JudgeArguments: policy.ArgumentsAdvise})
	if d.Verdict != policy.AllowWithWarning || len(d.Warnings) != 1 || d.Warnings[0] != "These arguments make 'github:delete_repo' destructive (DROP TABLE): call_tool_destructive fits better than call_tool_read" {
		t.Errorf("%+v", d)
	}
}

// TestArgumentCrossProduct compares the results for every combination of the inputs for arguments with a second
// implementation of the contract's rules.
func TestArgumentCrossProduct(t *testing.T) {
	operations := []policy.Operation{policy.NoOperation, policy.Read, policy.Write, policy.Destructive}
	tris := []tool.TriBool{tool.Unset, tool.True, tool.False}
	n := 0
	for _, v := range []policy.CallToolVariant{policy.CallToolRead, policy.CallToolWrite, policy.CallToolDestructive} {
		for _, does := range operations {
			for _, mode := range []policy.ArgumentEffectMode{policy.ArgumentsOff, policy.ArgumentsAdvise, policy.ArgumentsEnforce, ""} {
				for bits := range 8 {
					for _, readOnly := range tris {
						for _, destructive := range tris {
							n++
							declared, unread, byName := bits&1 > 0, bits&2 > 0, bits&4 > 0
							if unread && does == policy.Read {
								continue // unread arguments are never a read
							}
							h := hints(readOnly, destructive)
							r, f := sound(v, policy.DeclaredIntent{})
							if byName {
								r.OwnNames, r.CallTool = true, policy.CallToolForHints(h)
							}
							f.Hints, f.ServerHints = h, h
							rules := policy.Rules{StrictServerValidation: true, JudgeArguments: mode}
							plain := judged(r, f, rules) // without a verdict on the arguments
							f.Arguments = policy.ArgumentEffect{Operation: does, Word: "W", By: policy.BySQL, Path: "$.a", Declared: declared, Unread: unread}
							got := judged(r, f, rules)
							where := []any{r.CallTool, does, mode, declared, unread, byName, h}
							enforced := mode != policy.ArgumentsOff && mode != policy.ArgumentsAdvise
							loose := plain.Verdict == policy.Reject && got.Verdict != policy.Reject
							switch {
							case loose && (!declared || unread || mode == policy.ArgumentsOff || does == policy.NoOperation):
								t.Fatalf("loosened by an argument that is not configured: %v", where)
							case loose && does > r.CallTool.Operation():
								t.Fatalf("loosened although the arguments do more: %v", where)
							case (mode == policy.ArgumentsOff || does == policy.NoOperation) && got.Verdict != plain.Verdict:
								t.Fatalf("arguments that must be ignored changed the decision: %v", where)
							case enforced && !byName && does > r.CallTool.Operation() && got.Verdict != policy.Reject:
								t.Fatalf("allowed more than the variant permits: %v", where)
							case enforced && byName && readOnly == tool.True && destructive != tool.True && does > policy.Read && got.Verdict != policy.Reject:
								t.Fatalf("allowed more than the hints permit: %v", where)
							case mode == policy.ArgumentsAdvise && plain.Verdict != policy.Reject && got.Verdict == policy.Reject:
								t.Fatalf("mode advise refuses: %v", where)
							case (got.Verdict == policy.Reject) != (got.Problem != nil):
								t.Fatalf("a refusal without a problem, or a problem without a refusal: %v", where)
							}
							if declared && !unread && !byName && enforced && does != policy.NoOperation && (got.Verdict == policy.Reject) != (does > r.CallTool.Operation()) {
								t.Fatalf("a configured argument must decide alone: %v: %+v", where, got)
							}
						}
					}
				}
			}
		}
	}
	t.Logf("%d combinations", n)
}

// TestArgumentsAndScope checks that a caller that may only read cannot write by arguments, in any mode.
func TestArgumentsAndScope(t *testing.T) {
	for _, mode := range []policy.ArgumentEffectMode{policy.ArgumentsOff, policy.ArgumentsAdvise, policy.ArgumentsEnforce} {
		r, f := sound(policy.CallToolRead, policy.DeclaredIntent{})
		f.Lanes, f.Arguments = 1<<auth.Read, policy.ArgumentEffect{Operation: policy.Write, Word: "INSERT", By: policy.BySQL, Path: "$.sql"}
		f.Lane, f.ByArguments = policy.LaneWithArguments(policy.Read, &f.Arguments), true
		d := judged(r, f, policy.Rules{JudgeArguments: mode})
		if d.Problem == nil || d.Problem.Code != problem.OutOfScope || d.Problem.Message != "These arguments make 'github:delete_repo' write (INSERT), which is outside the scope of this caller" {
			t.Errorf("%s: %+v", mode, d.Problem)
		}
	}
	declared := policy.ArgumentEffect{Operation: policy.Read, Declared: true}
	if got := policy.LaneWithArguments(policy.Destructive, &declared); got != policy.Read {
		t.Errorf("a read by a configured argument has the lane %s", got)
	}
	declared.Unread = true
	if got := policy.LaneWithArguments(policy.Destructive, &declared); got != policy.Destructive {
		t.Errorf("an unparsed argument has the lane %s", got)
	}
}
