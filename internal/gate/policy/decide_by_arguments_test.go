package policy_test

import (
	"testing"

	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/problem"
)

// TestLanesOfAScope compares all combinations of lanes, call tools and tools with the written rule: the caller needs
// the lane of the tool, and the lane of the call tool if that is more dangerous. Everything outside the scope gets
// the same answer.
func TestLanesOfAScope(t *testing.T) {
	outside := map[string]bool{}
	for lanes := range auth.OperationLaneSet(auth.AllLanes + 1) {
		for _, v := range variants {
			for _, lane := range operations {
				for _, f := range []policy.Facts{{Existence: policy.Exists, Status: policy.Callable}, {Existence: policy.Exists, Status: policy.DisabledByUser}, {Existence: policy.NoTool}} {
					if (lane == policy.NoOperation) != (f.Existence == policy.NoTool) {
						continue // a missing tool has no lane
					}
					r, _ := sound(v, policy.DeclaredIntent{})
					f.InScope, f.Lanes, f.Lane = true, lanes, lane
					d := policy.Decide(r, f, policy.Rules{})
					worst := max(lane, v.Operation())
					has := func(o policy.Operation) bool {
						for _, word := range lanes.Words() {
							if word == o.String() {
								return true
							}
						}
						return false
					}
					want := lanes&auth.AllLanes == auth.AllLanes || lane != policy.NoOperation && has(lane) && has(worst)
					if got := d.Check != policy.CheckScope; got != want {
						t.Errorf("lanes %v, %v on a tool of %v: in scope %v, want %v", lanes.Words(), v, lane, got, want)
					}
					if !want {
						outside[string(d.Problem.Code)+d.Problem.Message+d.Problem.Hint] = true
					}
				}
			}
		}
	}
	if len(outside) != 1 {
		t.Errorf("refusals outside the scope differ: %v", outside)
	}
}

// TestMissingServersRevealNoTools checks that the refusal for a server that does not exist, or has not listed its
// tools, reveals nothing about a tool.
func TestMissingServersRevealNoTools(t *testing.T) {
	for existence, want := range map[policy.ToolExistence]problem.Code{
		policy.NoServer: problem.ServerNotFound, policy.Unlisted: problem.ServerUnavailable, policy.NoTool: problem.OutOfScope,
	} {
		r, f := sound(policy.CallToolRead, policy.DeclaredIntent{})
		f.Existence, f.Lanes = existence, 1<<auth.Read
		if d := policy.Decide(r, f, policy.Rules{}); d.Problem == nil || d.Problem.Code != want {
			t.Errorf("existence %d: %v, want %s", existence, d.Problem, want)
		}
	}
}
