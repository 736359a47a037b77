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

// verdict is what decide returns: the decision, and what it is about.
type verdict struct {
	subject
	policy.Decision
	does   policy.Arguments // what the call does by its arguments; zero where they were not read
	status policy.Status    // that counted; Callable where it is not known which tool is meant
	fit    activity.Fit     // of the arguments; "" where they were not checked
}

// refused returns the verdict as the refusal by a later check.
func (v verdict) refused(check policy.Check, p *problem.Problem) verdict {
	v.Check, v.Problem = check, p
	return v
}

// decide gives the facts to policy, checks the arguments against the tool's schema, and lets policy
// compare what they do with the lane. It does no I/O.
func (g *Gate) decide(c *call, s subject, now *catalog.Snapshot) verdict {
	v := verdict{subject: s, status: policy.Callable}
	rules := RulesFor(s.cfg, s.tool, c.Declares)
	v.does = s.classifyArguments(c, &rules)
	facts := g.facts(c, &v.subject, now, v.does)
	v.Decision = policy.Decide(s.request, facts, rules)
	if facts.Existence == policy.Exists {
		v.status = facts.Status
	}
	if v.Problem != nil || s.args.refs != nil { // with results to insert the arguments are not known yet
		return v
	}
	v.Intent.Sensitivity = policy.Stricter(v.Intent.Sensitivity, s.args.sensitivity)
	if c.Validates {
		if p := v.validate(c.unknown); p != nil {
			v.Check, v.Problem = policy.CheckSchema, p
			return v
		}
	}
	policy.DecideByArguments(&v.Decision, &v.request, &facts, &rules)
	return v
}

// validate checks the arguments against the tool's schema.
func (v *verdict) validate(unknown []UnknownArgument) *problem.Problem {
	if p := misplaced(unknown, v.tool, v.args.sent); p != nil {
		return p
	}
	fit, warnings, p := checkArguments(v.tool, v.args.sent, v.cfg.Validation(v.request.ID.Server))
	v.fit = fit
	v.Warnings = append(v.Warnings, warnings...)
	return p
}

// classifyArguments returns what the call does by its arguments, where a rule depends on it.
func (s *subject) classifyArguments(c *call, rules *policy.Rules) policy.Arguments {
	if s.tool == nil || s.args.refs != nil || rules.JudgeArguments == policy.JudgeOff && !s.lanesCount(c) {
		return policy.Arguments{}
	}
	return s.readArguments()
}

// readArguments returns what the call does by its arguments.
func (s *subject) readArguments() policy.Arguments {
	if s.args.unknown || s.request.ArgsErr != nil {
		return policy.Arguments{}
	}
	return s.tool.ClassifyArguments(s.args.sent)
}

// lanesCount reports whether the caller's lanes or a rule about approvals depend on what the
// arguments do.
func (s *subject) lanesCount(c *call) bool {
	within := c.caller.Scope()
	return !within.AllLanes() || s.cfg.MayAsk(s.request.ID.Server, within)
}

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

// facts returns what a snapshot, and what users have decided by now, say about the call.
func (g *Gate) facts(c *call, s *subject, now *catalog.Snapshot, does policy.Arguments) policy.Facts {
	within := c.caller.Scope()
	id, t := s.request.ID, s.tool
	facts := policy.Facts{InScope: within.Tool(id.Server, id.Tool), Lanes: within.Lanes()}
	switch {
	case s.request.NameErr != nil:
		facts.Nearest = now.Within(within).SuggestByToolName(s.request.Name)
		return facts
	case !facts.InScope:
		return facts
	case t == nil:
		server := now.Server(id.Server)
		if facts.Status = g.lockOf(server, id.Server); facts.Status != policy.Callable {
			facts.Existence = policy.Exists // or not: nothing of this server can be called
			return facts
		}
		facts.Existence, facts.Unlisted = missing(server)
		facts.LoginNeeded = facts.Existence == policy.Unlisted && g.NeedsLogin(server.Name)
		facts.Nearest = now.Within(within).SuggestIDs(id)
		return facts
	}
	return FactsOf(t, within, now.Server(t.ID.Server).Quarantined, g.Catalog.CurrentStatus(t), does)
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
	return problem.Newf(problem.OutOfScope, "Server '%s' is outside what this client may use", problem.ClipName(server)).
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
	p := problem.Newf(problem.ServerNotFound, "Server '%s' not found", problem.ClipName(name)).
		WithHint("See the configured servers with `mcpproxy upstream list`.")
	if near := s.SuggestIDs(tool.ID{Server: name}); len(near) > 0 {
		p.With("nearest", near)
	}
	return p
}
