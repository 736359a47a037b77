package gate

import (
	"mcpproxy/internal/catalog"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/upstream"
)

// verdict is the result of decide: the decision, and the call to which it applies.
type verdict struct {
	resolvedCall
	policy.Decision
	argumentEffect policy.ArgumentEffect // the effect of the arguments; zero if they were not classified
	status         policy.ToolStatus     // status of the tool; Callable if the tool is unknown
	schemaFit      activity.SchemaFit    // schema fit of the arguments; "" if they were not checked
}

// withRefusal returns the verdict, refused by a later check.
func (v verdict) withRefusal(check policy.Check, p *problem.Problem) verdict {
	v.Check, v.Problem = check, p
	return v
}

// decide evaluates the policy, validates the arguments against the tool's schema, and compares their
// effect with the lane. It does no I/O.
func (g *Gate) decide(c *call, s resolvedCall, now *catalog.Snapshot) verdict {
	v := verdict{resolvedCall: s, status: policy.Callable}
	rules := PolicyRulesFor(s.cfg, s.tool)
	v.argumentEffect = s.classifyArgumentsIfNeeded(c, &rules)
	facts := g.policyFacts(c, &v.resolvedCall, now, v.argumentEffect)
	v.Decision = policy.Decide(s.request, facts, rules)
	if facts.Existence == policy.Exists {
		v.status = facts.Status
	}
	if v.Problem != nil || s.args.refs != nil { // the arguments are not known until the results are inserted
		return v
	}
	v.Intent.Sensitivity = policy.StricterSensitivity(v.Intent.Sensitivity, s.args.sensitivity)
	if c.ValidatesArguments {
		if p := v.validateArguments(c.unknown); p != nil {
			v.Check, v.Problem = policy.CheckSchema, p
			return v
		}
	}
	policy.DecideByArguments(&v.Decision, &v.request, &facts, &rules)
	if p := v.missingScopeProblem(c, &v.argumentEffect); v.Problem == nil && p != nil {
		return v.withRefusal(policy.CheckScope, p)
	}
	return v
}

// missingScopeProblem returns the problem of a call in a lane that the caller's access token does not allow.
func (s *resolvedCall) missingScopeProblem(c *call, does *policy.ArgumentEffect) *problem.Problem {
	granted := c.caller.GrantedLanes()
	if granted == auth.AllLanes || s.tool == nil {
		return nil
	}
	lane := auth.OperationLane(WorstLane(s.tool, &s.request, does))
	if granted.Has(lane) {
		return nil
	}
	c.caller.MissLane(lane)
	return problem.Newf(problem.InsufficientScope, "The access token does not have the scope %s, which this call needs", auth.ScopeOf(lane)).
		WithHint("Sign in again with this scope, then call again with the same arguments.").With("scope", auth.ScopeOf(lane))
}

// validateArguments checks the arguments against the tool's schema.
func (v *verdict) validateArguments(unknown []UnknownArgument) *problem.Problem {
	if p := misplacedArgsProblem(unknown, v.tool, v.args.sent); p != nil {
		return p
	}
	fit, warnings, p := checkAgainstSchema(v.tool, v.args.sent, v.cfg.ArgumentValidationMode(v.request.ID.Server))
	v.schemaFit = fit
	v.Warnings = append(v.Warnings, warnings...)
	return p
}

// classifyArgumentsIfNeeded returns the effect of the arguments if a rule depends on it.
func (s *resolvedCall) classifyArgumentsIfNeeded(c *call, rules *policy.Rules) policy.ArgumentEffect {
	if s.tool == nil || s.args.refs != nil || rules.JudgeArguments == policy.ArgumentsOff && !s.dependsOnArgumentLane(c) {
		return policy.ArgumentEffect{}
	}
	return s.classifyArguments()
}

// classifyArguments returns the effect of the arguments.
func (s *resolvedCall) classifyArguments() policy.ArgumentEffect {
	if s.args.unknown || s.request.ArgsErr != nil {
		return policy.ArgumentEffect{}
	}
	return s.tool.ClassifyArguments(s.args.sent)
}

// dependsOnArgumentLane reports whether the caller's lanes or an approval rule depend on the effect of
// the arguments.
func (s *resolvedCall) dependsOnArgumentLane(c *call) bool {
	within := c.caller.Scope()
	return !within.AllowsAllLanes() || c.caller.GrantedLanes() != auth.AllLanes || s.cfg.MayAskUser(s.request.ID.Server, within)
}

// PolicyRulesFor returns the configured rules for a call of a tool; t is nil if there is no such tool. Whether
// inferred hints apply is taken from the snapshot.
func PolicyRulesFor(cfg *config.Config, t *catalog.Tool) policy.Rules {
	rules := cfg.Intent
	if t != nil {
		rules.InferHints = t.InferMode
	}
	return rules
}

// policyFacts returns the facts about the call from a snapshot and the current decisions of users.
func (g *Gate) policyFacts(c *call, s *resolvedCall, now *catalog.Snapshot, does policy.ArgumentEffect) policy.Facts {
	within := c.caller.Scope()
	id, t := s.request.ID, s.tool
	facts := policy.Facts{InScope: within.AllowsTool(id.Server, id.Tool), Lanes: within.Lanes()}
	switch {
	case s.request.NameErr != nil:
		facts.Suggestions = now.ScopedTo(within).SuggestByToolName(s.request.Name)
		return facts
	case !facts.InScope:
		return facts
	case t == nil:
		server := now.Server(id.Server)
		if facts.Status = g.serverLockStatus(server, id.Server); facts.Status != policy.Callable {
			facts.Existence = policy.Exists // irrelevant: no tool of this server can be called
			return facts
		}
		facts.Existence, facts.Unlisted = missingToolReason(server)
		facts.LoginNeeded = facts.Existence == policy.Unlisted && g.Logins.NeedsLogin(server.Name)
		facts.Suggestions = now.ScopedTo(within).SuggestIDs(id)
		return facts
	}
	return PolicyFactsOfTool(t, within, now.Server(t.ID.Server).Quarantined, g.Catalog.CurrentStatus(t), does)
}

// PolicyFactsOfTool returns the facts about an existing tool for a caller with this scope. quarantined reports
// whether its server is quarantined. does is the effect of the arguments.
func PolicyFactsOfTool(t *catalog.Tool, within policy.Scope, quarantined bool, status policy.ToolStatus, does policy.ArgumentEffect) policy.Facts {
	facts := policy.Facts{InScope: true, Lanes: within.Lanes(), Existence: policy.Exists, Status: status, Blocked: t.Blocked, Hints: t.Effective, ServerHints: t.Hints}
	if !within.AllowsAllLanes() && !quarantined { // the hints of a quarantined server are not shown
		facts.Lane = t.OperationLane()
		if does.Operation != policy.NoOperation {
			own := t.BaseOperationLane()
			facts.Lane = policy.LaneWithArguments(own, &does)
			facts.ByArguments = facts.Lane == does.Operation && (does.Declared || does.Operation > own)
		}
	}
	facts.Arguments = does
	in := t.InferredOperation()
	facts.Inferred, facts.InferenceReason, facts.InferredUnsure = in.Operation, in.Reason, in.Unsure
	return facts
}

// serverLockStatus returns the reason why no tool of a server can be called; Callable if at most the tool itself is
// locked. A server that an agent has proposed counts as quarantined.
func (g *Gate) serverLockStatus(s *catalog.Server, name string) policy.ToolStatus {
	if s == nil {
		return policy.StatusOf(policy.StatusFacts{Known: true, ServerEnabled: true, Quarantined: g.Proposed(name), Approved: true})
	}
	return policy.StatusOf(policy.StatusFacts{Known: true, ServerEnabled: s.Enabled, Quarantined: s.Quarantined, Approved: true})
}

// missingToolReason returns whether the server, its tool list or the tool is missing. unlisted is the reason why
// there is no list.
func missingToolReason(s *catalog.Server) (what policy.ToolExistence, unlisted string) {
	switch {
	case s == nil:
		return policy.NoServer, ""
	case s.Listed:
		return policy.NoTool, ""
	case s.State.Phase == upstream.Idle:
		return policy.Unlisted, "it is lazy and was never started; upstream_servers with operation restart, or `mcpproxy upstream restart " + s.Name + "`, starts it"
	case s.State.Failure.Code != "":
		return policy.Unlisted, s.State.Failure.Said // the text is safe for agents
	}
	return policy.Unlisted, "it is connecting"
}

// OutOfScopeProblem returns the problem of a server outside the caller's scope, whether or not the server exists; nil
// if it is in scope.
func OutOfScopeProblem(c *auth.Caller, server string) *problem.Problem {
	if within := c.Scope(); within.AllowsServer(server) {
		return nil
	}
	return problem.Newf(problem.OutOfScope, "Server '%s' is outside what this client may use", problem.ClipName(server)).
		WithHint("Only the user can extend the scope of an agent token.")
}

// hasReadLane reports whether a caller may use prompts and resources.
func hasReadLane(c *auth.Caller) bool {
	return policy.ScopeIncludes(c.Scope(), policy.Read) && c.GrantedLanes().Has(auth.Read)
}

// CheckReachable returns the problem that prevents the caller from using a server; nil if the caller can use it.
func (g *Gate) CheckReachable(server string, c *auth.Caller) *problem.Problem {
	snapshot := g.Catalog.Current()
	s := snapshot.Server(server)
	p := OutOfScopeProblem(c, server)
	switch {
	case p != nil:
		return p
	case s == nil:
		return ServerNotFoundProblem(snapshot.ScopedTo(c.Scope()), server)
	case !s.Enabled:
		return problem.Newf(problem.ServerUnavailable, "Server '%s' is disabled", server).
			WithHint("The user must enable the server first.").With("server", server)
	case s.Quarantined:
		return problem.Newf(problem.ServerUnavailable, "Server '%s' is quarantined", server).
			WithHint(policy.ServerQuarantined.Remedy()).With("server", server)
	}
	return nil
}

// ServerNotFoundProblem is the problem of an unknown server name.
func ServerNotFoundProblem(s *catalog.Snapshot, name string) *problem.Problem {
	p := problem.Newf(problem.ServerNotFound, "Server '%s' not found", problem.ClipName(name)).
		WithHint("See the configured servers with `mcpproxy upstream list`.")
	if near := s.SuggestIDs(tool.ID{Server: name}); len(near) > 0 {
		p.With("nearest", near)
	}
	return p
}
