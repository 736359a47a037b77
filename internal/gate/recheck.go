package gate

import (
	"sync/atomic"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/problem"
)

// rechecker decides again about a call that has waited. A connection may use it when the call itself
// is over.
type rechecker struct {
	gate     *Gate
	call     *call
	verdict  *verdict
	approval *approvalOutcome // nil: none was needed
	failed   atomic.Uint32    // the policy.Check that refused the call
}

// initFor makes r the recheck of a call.
func (r *rechecker) initFor(g *Gate, c *call, v *verdict, a *approvalOutcome) {
	r.gate, r.call, r.verdict, r.approval = g, c, v, a
}

// failedCheck returns the check that refused the call, if one did.
func (r *rechecker) failedCheck() policy.Check { return policy.Check(r.failed.Load()) }

// decideAgain returns why the call may not be sent any more.
func (r *rechecker) decideAgain() error {
	v, now := r.verdict, r.gate.Catalog.Current()
	s := v.resolvedCall
	s.tool = now.Tool(s.request.ID)
	rules, does := PolicyRulesFor(s.cfg, s.tool, r.call.Declares), v.does
	if s.tool != nil && s.tool != v.tool { // it may be classified differently by now
		does = s.classifyArgumentsIfNeeded(r.call, &rules)
	}
	facts := r.gate.policyFacts(r.call, &s, now, does)
	d := policy.Decide(s.request, facts, rules)
	policy.DecideByArguments(&d, &s.request, &facts, &rules)
	if d.Problem != nil {
		r.failed.Store(uint32(d.Check))
		return d.Problem
	}
	if p := r.outdatedApprovalProblem(s); p != nil {
		r.failed.Store(uint32(policy.CheckAsk))
		return p
	}
	return nil
}

// outdatedApprovalProblem refuses a call that by now needs an approval, or another one than it has. s has
// the tool of this moment.
func (r *rechecker) outdatedApprovalProblem(s resolvedCall) *problem.Problem {
	cfg := r.gate.Config()
	if cfg == s.cfg && s.tool == r.verdict.tool {
		return nil
	}
	if r.approval != nil {
		if !r.approval.isOutdated(cfg, s.tool, s.request.OwnNames) {
			return nil
		}
	} else if s.cfg = cfg; !s.needsApproval(r.call) {
		return nil
	}
	return problem.Newf(problem.ApprovalPending, "The call of '%s' was not made: while it waited for its turn, something has changed that a person is to be asked about.", s.request.ID).
		WithHint("Call again with the same arguments: the user is asked then.")
}

// needsApproval reports whether a rule asks for an approval of the call, whether its arguments
// were read before or not.
func (s *resolvedCall) needsApproval(c *call) bool {
	rule, _ := s.approvalRule(c, s.classifyArguments())
	return rule.Asked()
}

// isOutdated reports whether an approval is not about the call in a configuration and with a tool.
func (a *approvalOutcome) isOutdated(cfg *config.Config, t *catalog.Tool, ownNames bool) bool {
	return cfg.SharedRevision() != a.call.Revision || t.Fingerprint() != a.call.Fingerprint || ownNames && t.CallWith.String() != a.call.Variant
}
