package gate

import (
	"sync/atomic"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/problem"
)

// rechecker decides again about a call that has waited. A connection may still use it after the call has ended.
type rechecker struct {
	gate     *Gate
	call     *call
	verdict  *verdict
	approval *approvalOutcome // nil if no approval was needed
	failed   atomic.Uint32    // the policy.Check that refused the call
}

// initFor makes r the rechecker of a call.
func (r *rechecker) initFor(g *Gate, c *call, v *verdict, a *approvalOutcome) {
	r.gate, r.call, r.verdict, r.approval = g, c, v, a
}

// failedCheck returns the check that refused the call, if one did.
func (r *rechecker) failedCheck() policy.Check { return policy.Check(r.failed.Load()) }

// decideAgain returns an error if the call must no longer be sent.
func (r *rechecker) decideAgain() error {
	v, now := r.verdict, r.gate.Catalog.Current()
	s := v.resolvedCall
	s.tool = now.Tool(s.request.ID)
	rules, does := PolicyRulesFor(s.cfg, s.tool), v.argumentEffect
	if s.tool != nil && s.tool != v.tool { // the arguments may be classified differently for the new definition
		does = s.classifyArgumentsIfNeeded(r.call, &rules)
	}
	facts := r.gate.policyFacts(r.call, &s, now, does)
	d := policy.Decide(s.request, facts, rules)
	policy.DecideByArguments(&d, &s.request, &facts, &rules)
	if d.Problem != nil {
		r.failed.Store(uint32(d.Check))
		return d.Problem
	}
	if p := s.missingScopeProblem(r.call, &does); p != nil {
		r.failed.Store(uint32(policy.CheckScope))
		return p
	}
	if p := r.outdatedApprovalProblem(s); p != nil {
		r.failed.Store(uint32(policy.CheckAsk))
		return p
	}
	return nil
}

// outdatedApprovalProblem returns a problem if the call now needs an approval, or a different one than it has. s
// contains the current tool.
func (r *rechecker) outdatedApprovalProblem(s resolvedCall) *problem.Problem {
	cfg := r.gate.Config()
	if cfg == s.cfg && s.tool == r.verdict.tool {
		return nil
	}
	if r.approval != nil {
		if !r.approval.isOutdated(cfg, s.tool, &s.request) {
			return nil
		}
	} else if s.cfg = cfg; !s.needsApproval(r.call) {
		return nil
	}
	return problem.Newf(problem.ApprovalPending, "The call to '%s' was not sent: a change while it was queued requires the user's approval.", s.request.ID).
		WithHint("Call again with the same arguments: MCPProxy then asks the user.")
}

// needsApproval reports whether a rule requires an approval of the call. It classifies the arguments if they were not
// classified yet.
func (s *resolvedCall) needsApproval(c *call) bool {
	rule, _ := s.approvalRule(c, s.classifyArguments())
	return rule.IsSet()
}

// isOutdated reports whether the configuration or the tool differs from the one for which the approval was given.
func (a *approvalOutcome) isOutdated(cfg *config.Config, t *catalog.Tool, r *policy.CallRequest) bool {
	return cfg.RevisionWithoutRestartKeys() != a.call.Revision || t.Fingerprint() != a.call.Fingerprint || !r.ChoosesLane() && t.CallWith.String() != a.call.Variant
}
