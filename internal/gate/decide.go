package gate

import (
	"context"
	"encoding/json"
	"time"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/upstream"
)

// decide brings the facts to the policy, checks the arguments against the tool's
// schema, and has policy hold what they do against the lane. It does no I/O.
func (g *Gate) decide(c *call, s *catalog.Snapshot) *problem.Problem {
	rules := c.rules(c.tool)
	c.arguments = c.classifyArguments(c.tool, &rules)
	facts := g.facts(c, c.tool, s)
	c.decision, c.status = policy.Decide(c.policyRequest, facts, rules), policy.Callable
	if facts.Existence == policy.Exists {
		c.status = facts.Status
	}
	if c.decision.Verdict == policy.Reject {
		return c.decision.Problem
	}
	if c.resultRefs != nil { // what the arguments are is not known yet
		return nil
	}
	c.decision.Intent.Sensitivity = policy.Stricter(c.decision.Intent.Sensitivity, c.sensitivity)
	if p := c.validate(); p != nil {
		c.decision.Check = policy.CheckSchema
		return p
	}
	policy.DecideByArguments(&c.decision, &c.policyRequest, &facts, &rules)
	return c.decision.Problem
}

// validate holds the arguments to the tool's schema, where that is the way.
func (c *call) validate() *problem.Problem {
	if !c.Validates {
		return nil
	}
	if p := misplaced(c); p != nil {
		return p
	}
	fit, warnings, p := checkArguments(c.tool, c.parts.Arguments, c.cfg.Validation(c.policyRequest.ID.Server))
	c.fit = fit
	c.decision.Warnings = append(c.decision.Warnings, warnings...)
	return p
}

// classifyArguments says what the call does by its arguments, where that counts.
func (c *call) classifyArguments(t *catalog.Tool, rules *policy.Rules) policy.Arguments {
	if t == nil || c.supposed || c.resultRefs != nil || c.policyRequest.ArgsErr != nil || rules.JudgeArguments == policy.JudgeOff && c.uncounted() {
		return policy.Arguments{}
	}
	return t.ClassifyArguments(c.parts.Arguments)
}

// uncounted reports whether neither the lanes of the caller nor what a person is asked
// depend on what the arguments do.
func (c *call) uncounted() bool {
	within := c.caller.Scope()
	return within.AllLanes() && !c.cfg.MayAsk(c.policyRequest.ID.Server, within)
}

// recheck decides about the call once more, after it has waited. Connections call it,
// too, perhaps when the call itself is over.
func (c *call) recheck() error {
	s := c.gate.Catalog.Current()
	t := s.Tool(c.policyRequest.ID)
	rules, facts := c.rules(t), c.gate.facts(c, t, s)
	d := policy.Decide(c.policyRequest, facts, rules)
	policy.DecideByArguments(&d, &c.policyRequest, &facts, &rules)
	if d.Verdict == policy.Reject {
		c.failedRecheck.Store(uint32(d.Check))
		return d.Problem
	}
	if p := c.consented(t); p != nil {
		c.failedRecheck.Store(uint32(policy.CheckAsk))
		return p
	}
	return nil
}

// rules are the rules that hold for the call.
func (c *call) rules(t *catalog.Tool) policy.Rules { return RulesFor(c.cfg, t, c.Declares) }

// RulesFor returns the rules of a configuration that hold for a call of a tool (nil: there
// is none): who cannot declare an intent does not have to, and what is made of what seems
// so is what was made of the tool.
func RulesFor(cfg *config.Config, t *catalog.Tool, declares bool) policy.Rules {
	rules := cfg.Intent
	if t != nil {
		rules.InferHints = t.InferMode
	}
	if !declares {
		rules.RequireIntent = false
	}
	return rules
}

// facts is what a snapshot, which has the tool or not, and what is decided at
// this moment say about the call.
func (g *Gate) facts(c *call, t *catalog.Tool, s *catalog.Snapshot) policy.Facts {
	within := c.caller.Scope()
	facts := policy.Facts{InScope: within.Tool(c.policyRequest.ID.Server, c.policyRequest.ID.Tool), Lanes: within.Lanes()}
	switch {
	case c.policyRequest.NameErr != nil:
		facts.Nearest = s.Within(within).SuggestByToolName(c.policyRequest.Name)
		return facts
	case !facts.InScope:
		return facts
	case t == nil:
		server := s.Server(c.policyRequest.ID.Server)
		if facts.Status = g.lockOf(server, c.policyRequest.ID.Server); facts.Status != policy.Callable {
			facts.Existence = policy.Exists // or not: nothing of this server can be called
			return facts
		}
		facts.Existence, facts.Unlisted = missing(server)
		facts.LoginNeeded = facts.Existence == policy.Unlisted && g.NeedsLogin(server.Name)
		facts.Nearest = s.Within(within).SuggestIDs(c.policyRequest.ID)
		return facts
	}
	does := c.arguments
	if t != c.tool { // it has waited, and by now the tool may be judged otherwise
		rules := c.rules(t)
		does = c.classifyArguments(t, &rules)
	}
	return FactsOf(t, within, s.Server(t.ID.Server).Quarantined, g.Catalog.CurrentStatus(t), does)
}

// FactsOf returns the facts about a tool that is there, for who may reach it as far as
// its lane allows. quarantined says that its server is; does
// is what the call does by its arguments.
func FactsOf(t *catalog.Tool, within policy.Scope, quarantined bool, status policy.Status, does policy.Arguments) policy.Facts {
	facts := policy.Facts{InScope: true, Lanes: within.Lanes(), Existence: policy.Exists, Status: status, Hints: t.Effective, ServerHints: t.Hints}
	if !within.AllLanes() && !quarantined { // nothing is told of what is quarantined
		facts.Lane = t.Lane()
		if does.Operation != policy.NoOperation {
			own := t.BaseLane()
			facts.Lane = policy.LaneOf(own, &does)
			facts.ByArguments = facts.Lane == does.Operation && (does.Declared || does.Operation > own)
		}
	}
	facts.Arguments = does
	in := t.Inferred()
	facts.Inferred, facts.InferredWhy, facts.InferredUnsure = in.Operation, in.Reason, in.Unsure
	return facts
}

// lockOf is why nothing of a server can be called, whatever it is named; Callable
// when only what is known of its tools can stand against it. One that an agent has
// proposed is quarantined.
func (g *Gate) lockOf(s *catalog.Server, name string) policy.Status {
	if s == nil {
		return policy.StatusOf(policy.StatusFacts{Known: true, ServerEnabled: true, Quarantined: g.Proposed(name), Approved: true})
	}
	return policy.StatusOf(policy.StatusFacts{Known: true, ServerEnabled: s.Enabled, Quarantined: s.Quarantined, Approved: true})
}

// missing returns what is not there: the server, its list, or the tool.
func missing(s *catalog.Server) (what policy.Existence, unlisted string) {
	switch {
	case s == nil:
		return policy.NoServer, ""
	case s.Listed:
		return policy.NoTool, ""
	case s.State.Phase == upstream.Idle:
		return policy.Unlisted, "it is lazy and was never started; upstream_servers with operation restart, or `mcpproxy upstream restart " + s.Name + "`, starts it"
	case s.State.Failure.Code != "":
		return policy.Unlisted, s.State.Failure.Said // an agent may have asked
	}
	return policy.Unlisted, "it is connecting"
}

// OutOfScope refuses what is about a server that a caller may not reach, whether
// there is one or not; nil when the caller may.
func OutOfScope(c *auth.Caller, server string) *problem.Problem {
	if within := c.Scope(); within.Server(server) {
		return nil
	}
	return problem.Newf(problem.OutOfScope, "Server '%s' is outside what this client may use", problem.Brief(server)).
		WithHint("Only the user can widen the scope of an agent token.")
}

// mayRead reports whether a caller may use what servers offer beside tools.
func mayRead(c *auth.Caller) bool { return policy.Within(c.Scope(), policy.Read) }

// Reachable returns why a server cannot be spoken to, nil when it can.
func (g *Gate) Reachable(server string, c *auth.Caller) *problem.Problem {
	snapshot := g.Catalog.Current()
	s := snapshot.Server(server)
	p := OutOfScope(c, server)
	switch {
	case p != nil:
		return p
	case s == nil:
		return NoServer(snapshot.Within(c.Scope()), server)
	case !s.Enabled:
		return problem.Newf(problem.ServerUnavailable, "Server '%s' is disabled", server).
			WithHint("A person must enable the server first.").With("server", server)
	case s.Quarantined:
		return problem.Newf(problem.ServerUnavailable, "Server '%s' is quarantined", server).
			WithHint(policy.ServerQuarantined.Remedy()).With("server", server)
	}
	return nil
}

// NoServer is the problem of a name that no server has.
func NoServer(s *catalog.Snapshot, name string) *problem.Problem {
	p := problem.Newf(problem.ServerNotFound, "Server '%s' not found", problem.Brief(name)).
		WithHint("See the configured servers with `mcpproxy upstream list`.")
	if near := s.SuggestIDs(tool.ID{Server: name}); len(near) > 0 {
		p.With("nearest", near)
	}
	return p
}

// describe fills the record with what is known before the call. refused is the check
// that it has not passed, if any.
func (g *Gate) describe(c *call, kind activity.Type, refused policy.Check) {
	operation := c.decision.Intent.Operation
	if operation == policy.NoOperation {
		operation = c.policyRequest.Variant.Operation()
	}
	g.recordDecision(c, refused)
	c.record = activity.Record{
		Type:         kind,
		ServerName:   c.policyRequest.ID.Server,
		ToolName:     c.policyRequest.ID.Tool,
		Arguments:    c.forRecord(),
		RequestBytes: int64(c.request.Size),
		Metadata: activity.Metadata{
			Intent: &activity.Intent{
				OperationType:   operation.String(),
				DataSensitivity: c.decision.Intent.Sensitivity,
				Reason:          c.decision.Intent.Reason,
			},
			ToolVariant: c.policyRequest.Variant.String(),
			Warnings:    c.decision.Warnings,
			Decision:    &c.recordedDecision,
		},
	}
	if c.pending != nil {
		c.recordedDecision.Approval, c.record.ParentID = c.pending.pass.ID, c.pending.pass.Record
	}
	if c.decision.Unsound {
		c.record.Metadata.Intent.Declared = c.policyRequest.Declared.Letter()
	}
	c.record.By(&c.caller)
	if c.Declares {
		c.record.Metadata.Search = g.searches.found(c.caller.SessionID, c.policyRequest.ID)
	}
}

// forRecord returns the arguments as the record has them.
func (c *call) forRecord() json.RawMessage {
	if c.recorded != nil {
		return c.recorded
	}
	return c.parts.Arguments
}

// recordDecision notes the facts that have decided.
func (g *Gate) recordDecision(c *call, refused policy.Check) {
	c.recordedDecision = activity.Decision{
		Outcome: activity.Allowed, Check: refused.String(), Called: activity.ByName, Declared: c.policyRequest.Declared.HasOperation,
		Status: c.status.String(), Arguments: c.fit, ConfigRevision: c.cfg.Revision(),
	}
	if c.Declares {
		c.recordedDecision.Called = activity.InLane
	}
	switch {
	case refused != policy.NoCheck:
		c.recordedDecision.Outcome = activity.Refused
	case len(c.decision.Warnings) > 0:
		c.recordedDecision.Outcome = activity.Warned
	}
	if a := &c.arguments; a.Operation != policy.NoOperation {
		c.recordedDecision.Lane = &activity.ArgumentLane{Operation: a.Operation.String(), Word: a.Word, By: string(a.By), Argument: a.Path, Declared: a.Declared, Unread: a.Unread}
	}
	if within := c.caller.Scope(); within.Bounded() {
		c.recordedDecision.Profile = within.Profiles()
	}
	if c.tool != nil {
		c.recordedDecision.Facts = c.tool.Facts()
	}
	if c.tool != nil && refused != policy.NoCheck && refused <= policy.CheckCallable {
		for _, s := range g.Catalog.LockReasons(c.tool) { // the one that counted hides them, or an earlier check
			if word := s.String(); c.recordedDecision.Status == "" {
				c.recordedDecision.Status = word
			} else if word != c.recordedDecision.Status {
				c.recordedDecision.Further = append(c.recordedDecision.Further, word)
			}
		}
	}
}

// refuse records a refusal and returns the id of the record.
func (g *Gate) refuse(ctx context.Context, c *call, p *problem.Problem) string {
	g.describe(c, activity.PolicyDecision, c.decision.Check)
	c.record.ErrorMessage = p.Message
	c.record.Metadata.ErrorCode = string(p.Code)
	if p.Code == problem.ApprovalPending {
		c.recordedDecision.Outcome = activity.Asked
	}
	took := time.Since(c.started)
	own := took - c.waited
	c.record.DurationMS, c.record.OwnUS = took.Milliseconds(), max(1, own.Microseconds())
	if c.policyRequest.ID.Server == "" {
		c.record.ToolName = problem.Brief(c.policyRequest.Name)
	}
	c.id = g.keep(ctx, &c.record)
	c.observed(activity.Blocked, string(p.Code), took, own)
	return c.id
}

// time is how long the call may take: as its caller asks for, if that is shorter
// than what the configuration allows.
func (c *call) time() time.Duration {
	allowed := timeout(c.cfg, c.policyRequest.ID.Server)
	if c.limit > 0 && c.limit < allowed {
		return c.limit
	}
	return allowed
}

func timeout(cfg *config.Config, server string) time.Duration {
	if s := cfg.Server(server); s != nil && s.CallTimeout > 0 {
		return s.CallTimeout
	}
	return cfg.CallTimeout
}
