package ops

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/store/redact"
)

// trialEvaluator evaluates recorded calls under another configuration.
type trialEvaluator struct {
	live, next *config.Config
	catalog    *catalog.Catalog
	snapshot   *catalog.Snapshot
	tokens     map[string]tokenScope // scopes by actor
	tools      map[definitionKey]*catalog.Tool
}

// tokenScope is the scope of a token and its creation time.
type tokenScope struct {
	rule    *policy.ScopeRule
	created time.Time
}

// definitionKey identifies a definition of a tool.
type definitionKey struct {
	id          tool.ID
	fingerprint string
}

// maxTrialTools limits the number of cached tools.
const maxTrialTools = 50_000

// trialVerdict is the simulated outcome of a call. For a refusal, it contains the check and the problem. For an unknown
// outcome, it contains the reason.
type trialVerdict struct {
	would   Outcome
	check   policy.Check
	problem *problem.Problem
	status  policy.ToolStatus
	why     string
}

func allowedVerdict() trialVerdict { return trialVerdict{would: Allowed, status: policy.Callable} }
func unknownVerdict(why string) trialVerdict {
	return trialVerdict{would: Unknown, status: policy.Callable, why: why}
}

// Reasons why a verdict is unknown.
const (
	whyEarlier     = "The record is from a version of MCPProxy that did not store enough to evaluate it again."
	whyName        = "The name of the tool is masked in the record."
	whyTool        = "The tools that the server would have listed are unknown."
	whyApproval    = "Whether the definition would have been accepted is unknown."
	whyStatus      = "The decision about the tool was unknown at that time."
	whyToken       = "The token was revoked or replaced, and its scope decides."
	whyMasked      = "The arguments are masked, cut or erased in the record, and the tool's schema decides."
	whyLane        = "The arguments decide, and they are masked, cut or erased in the record, or the record combines several rejected calls."
	whySchema      = "The definition is no longer stored, and its schema decides."
	whyQueueLimits = "It was rejected because too many calls were waiting, and the limits have changed."
	whyWaited      = "It was rejected after it had waited, because of a change in the meantime."
)

// evaluateCall returns the outcome of a recorded call under the candidate configuration.
func (c *trialEvaluator) evaluateCall(r *activity.Record) trialVerdict {
	d := r.Metadata.Decision
	switch {
	case d == nil || d.Called == "":
		return unknownVerdict(whyEarlier)
	case redact.HasMask([]byte(r.ServerName)) || redact.HasMask([]byte(r.ToolName)):
		return unknownVerdict(whyName)
	}
	id := tool.ID{Server: r.ServerName, Tool: r.ToolName}
	server := c.next.Server(id.Server)
	t := c.recordedTool(id, d, server)
	asked := rebuildRequest(r, d, id, t)
	rules := gate.PolicyRulesFor(c.next, t)
	does, why := c.argumentEffect(r, d, t, rules)
	facts, doubt := c.policyFacts(r, d, id, server, t, does)
	decided := policy.Decide(asked, facts, rules)
	switch {
	case decided.Verdict == policy.Reject && doubt.check == decided.Check && doubt.check != policy.NoCheck:
		return unknownVerdict(doubt.why)
	case decided.Verdict == policy.Reject && why != "" && (decided.Check == policy.CheckScope || decided.Check == policy.CheckHints) && t.ArgumentRule().Declared:
		return unknownVerdict(why) // the lane determined by the arguments could decide instead
	case decided.Verdict == policy.Reject:
		return trialVerdict{Refused, decided.Check, decided.Problem, refusingToolStatus(decided.Check, facts.Status), ""}
	case doubt.why != "":
		return unknownVerdict(doubt.why)
	}
	if v := c.schemaVerdict(r, d, t); v.would != Allowed {
		return v
	}
	policy.DecideByArguments(&decided, &asked, &facts, &rules)
	switch {
	case why != "":
		return unknownVerdict(why)
	case decided.Verdict == policy.Reject:
		return trialVerdict{Refused, decided.Check, decided.Problem, policy.Callable, ""}
	}
	switch {
	case d.Check == policy.CheckQueue.String():
		if c.areQueueLimitsUnchanged(id.Server) {
			return trialVerdict{Refused, policy.CheckQueue, problem.New(problem.Overloaded, r.ErrorMessage, ""), policy.Callable, ""}
		}
		return unknownVerdict(whyQueueLimits)
	case r.Type == activity.ToolCall && d.Outcome == activity.Refused:
		return unknownVerdict(whyWaited)
	}
	return c.approvalVerdict(r, d, t, does, asked)
}

// approvalVerdict determines whether an allowed call would first wait for approval.
func (c *trialEvaluator) approvalVerdict(r *activity.Record, d *activity.Decision, t *catalog.Tool, does policy.ArgumentEffect, asked policy.CallRequest) trialVerdict {
	if t == nil {
		return allowedVerdict()
	}
	within, _ := c.callerScope(r, d)
	caught := c.next.AskRuleFor(t.ID, within, gate.WorstLane(t, &asked, &does))
	if !caught.IsSet() {
		return allowedVerdict()
	}
	return trialVerdict{would: Asked, check: policy.CheckAsk, status: policy.Callable, why: caught.String() + " would require approval first."}
}

// refusingToolStatus returns the tool's status if it was the reason for the refusal, otherwise Callable.
func refusingToolStatus(check policy.Check, s policy.ToolStatus) policy.ToolStatus {
	if check == policy.CheckCallable {
		return s
	}
	return policy.Callable
}

// recordedTool returns the tool with the recorded definition, under the candidate configuration. It returns nil if
// there is no definition or no server.
func (c *trialEvaluator) recordedTool(id tool.ID, d *activity.Decision, server *config.Server) *catalog.Tool {
	if d.Fingerprint == "" || server == nil {
		return nil
	}
	key := definitionKey{id, d.Fingerprint}
	if t := c.tools[key]; t != nil {
		return t
	}
	t := c.snapshot.Tool(id)
	if t == nil || t.Fingerprint().String() != d.Fingerprint {
		t = catalog.ToolFromActivityRecord(id, &d.DecisionFacts)
	}
	if len(c.tools) >= maxTrialTools {
		clear(c.tools)
	}
	t = t.WithConfig(c.next, *server)
	c.tools[key] = t
	return t
}

var errRecorded = errors.New("unchanged")

// rebuildRequest rebuilds a request from its record. It includes recorded errors that do not depend on the
// configuration.
func rebuildRequest(r *activity.Record, d *activity.Decision, id tool.ID, t *catalog.Tool) policy.CallRequest {
	asked := policy.CallRequest{Name: id.String(), ID: id, OwnNames: d.Called == activity.CalledByName}
	asked.CallTool, _ = policy.ParseCallToolName(r.Metadata.ToolVariant)
	if asked.OwnNames && t != nil {
		asked.CallTool = t.CallWith
	}
	said := policy.DeclaredIntent{Present: d.Declared, HasOperation: d.Declared, OperationType: asked.CallTool.Operation().String()}
	switch policy.ParseCheck(d.Check) {
	case policy.CheckName:
		asked.NameErr = errRecorded
	case policy.CheckIntent:
		switch problem.Code(r.Metadata.ErrorCode) {
		case problem.MissingIntent:
			said = policy.DeclaredIntent{}
		case problem.MissingOperationType:
			said = policy.DeclaredIntent{Present: true}
		default:
			said.Malformed = r.ErrorMessage
		}
	case policy.CheckArguments:
		asked.ArgsErr = problem.New(problem.Code(r.Metadata.ErrorCode), r.ErrorMessage, "")
	}
	asked.Declared = said
	return asked
}

// verdictUncertainty is the reason why a verdict is unreliable. It applies if check rejects the call, or if the call is
// allowed.
type verdictUncertainty struct {
	check policy.Check
	why   string
}

// policyFacts returns the facts of the recorded call under the candidate configuration.
func (c *trialEvaluator) policyFacts(r *activity.Record, d *activity.Decision, id tool.ID, server *config.Server, t *catalog.Tool, does policy.ArgumentEffect) (policy.Facts, verdictUncertainty) {
	within, known := c.callerScope(r, d)
	facts := policy.Facts{InScope: within.AllowsTool(id.Server, id.Tool), Lanes: within.Lanes()}
	check := policy.ParseCheck(d.Check)
	var open verdictUncertainty
	if !known && (check != policy.NoCheck && check <= policy.CheckScope || t == nil || t.CallWith.String() != d.CallWith) {
		open = verdictUncertainty{why: whyToken}
	}
	switch {
	case !facts.InScope || server == nil:
		return facts, open
	case t == nil:
		facts.Status = catalog.HypotheticalStatus(*server, c.catalog.Approvals.ServerView(id.Server), id.Tool, false, true)
		facts.Existence = policy.Exists
		if facts.Status == policy.Callable {
			facts.Existence = policy.NoTool
			if check == policy.CheckCallable || problem.Code(r.Metadata.ErrorCode) == problem.ServerNotFound || !c.isLaunchUnchanged(*server) {
				open = verdictUncertainty{policy.CheckExists, whyTool}
			}
		}
		return facts, open
	}
	had := func(s policy.ToolStatus) bool {
		return d.Status == s.String() || slices.Contains(d.Further, s.String())
	}
	status := catalog.HypotheticalStatus(*server, c.catalog.Approvals.ServerView(id.Server), id.Tool, had(policy.DisabledByUser), !had(policy.PendingApproval))
	quarantined := status == policy.ServerQuarantined
	if status == policy.PendingApproval && (c.isTrustChanged(*server) || had(policy.ServerQuarantined)) {
		open, status = verdictUncertainty{why: whyApproval}, policy.Callable
	}
	if status == policy.Callable && had(policy.DisabledUnknown) {
		open = verdictUncertainty{why: whyStatus}
	}
	return gate.PolicyFactsOfTool(t, within, quarantined, status, does), open
}

// callerScope returns the caller's scope and reports whether it is known. For a deleted token, it returns the scope of
// its profiles.
func (c *trialEvaluator) callerScope(r *activity.Record, d *activity.Decision) (within policy.Scope, known bool) {
	var rules [3]*policy.ScopeRule
	known = true
	if strings.HasPrefix(r.Actor, "agent:") {
		token, there := c.tokens[r.Actor]
		if known = there && !token.created.After(r.Timestamp); known {
			rules[0] = token.rule
		}
	}
	if d.Profile != "" {
		for i, name := range strings.SplitN(d.Profile, ",", 2) {
			rules[i+1] = c.next.ProfileRule(name)
			if rules[i+1] == nil {
				rules[i+1] = policy.NewScopeRule(policy.ScopeLimits{Profile: name, Servers: []string{}, Lanes: []string{}})
			}
		}
	}
	return policy.NewScope(rules[:]...), known
}

// isLaunchUnchanged reports whether the server's launch equals the current one.
func (c *trialEvaluator) isLaunchUnchanged(next config.Server) bool {
	now := c.live.Server(next.Name)
	return now != nil && now.LaunchFingerprint() == next.LaunchFingerprint()
}

// isTrustChanged reports whether the server's trust differs from the current one.
func (c *trialEvaluator) isTrustChanged(next config.Server) bool {
	now := c.live.Server(next.Name)
	return now == nil || now.Trust != next.Trust
}

// areQueueLimitsUnchanged reports whether the limits for running and queued calls equal the current ones.
func (c *trialEvaluator) areQueueLimitsUnchanged(server string) bool {
	limits := func(cfg *config.Config) [4]int64 {
		most := 0
		if s := cfg.Server(server); s != nil {
			most = s.MaxConcurrent
		}
		return [...]int64{int64(cfg.MaxConcurrent), int64(cfg.QueueSize), int64(cfg.QueueTimeout), int64(most)}
	}
	return limits(c.live) == limits(c.next)
}

// schemaVerdict validates the arguments of an allowed call like the gate.
func (c *trialEvaluator) schemaVerdict(r *activity.Record, d *activity.Decision, t *catalog.Tool) trialVerdict {
	switch {
	case d.Called == activity.CalledByName:
		return allowedVerdict()
	case d.Check == policy.CheckSchema.String() && problem.Code(r.Metadata.ErrorCode) == problem.InvalidArgs: // the call had both arguments and args
		return trialVerdict{Refused, policy.CheckSchema, problem.New(problem.InvalidArgs, r.ErrorMessage, ""), policy.Callable, ""}
	}
	if mode := c.next.ArgumentValidationMode(r.ServerName); mode == config.ValidateOff || mode == config.ValidateWarn {
		return allowedVerdict()
	}
	fit, why := d.Arguments, ""
	if fit == "" {
		fit, why = checkRecordedArguments(r, t)
	}
	switch {
	case why != "":
		return unknownVerdict(why)
	case fit == activity.ArgumentsUnfit:
		return trialVerdict{Refused, policy.CheckSchema, problem.New(problem.ArgsMismatch, "The arguments do not match the input schema.", ""), policy.Callable, ""}
	}
	return allowedVerdict()
}

// argumentEffect returns the effect of the arguments. why is set if the effect is unknown but relevant.
func (c *trialEvaluator) argumentEffect(r *activity.Record, d *activity.Decision, t *catalog.Tool, rules policy.Rules) (does policy.ArgumentEffect, why string) {
	if t == nil {
		return does, ""
	}
	rule := t.ArgumentRule()
	if rule == nil {
		if !t.HasDefinition() && d.Lane != nil && !d.Lane.Declared { // the effect was derived from the schema
			return recordedEffect(d.Lane), ""
		}
		return does, ""
	}
	args := r.Arguments
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	alone := r.Repeated <= 1 // the record of repeated refusals contains only the arguments of the first one
	if alone && !r.ArgumentsTruncated && !redact.HasMask(args) && !r.HasErased(activity.FieldArguments) {
		return rule.Classify(args), ""
	}
	if l := d.Lane; (alone || d.Check == policy.CheckLane.String()) && l != nil && l.By == string(rule.By) && l.Argument == rule.Argument && rule.By != policy.ByAction {
		does = recordedEffect(l)
		does.Declared = rule.Declared
		return does, ""
	}
	within, _ := c.callerScope(r, d)
	asked := func(lane policy.Operation) bool { return c.next.AskRuleFor(t.ID, within, lane).IsSet() }
	if asked(policy.Destructive) && (rule.Declared || !asked(t.BaseOperationLane())) {
		return does, whyLane
	}
	if rules.JudgeArguments == policy.ArgumentsOff && within.AllowsAllLanes() || rules.JudgeArguments == policy.ArgumentsAdvise && within.AllowsAllLanes() && !rule.Declared {
		return does, "" // the effect could only cause a warning
	}
	return does, whyLane
}

// recordedEffect converts the recorded effect of the arguments.
func recordedEffect(l *activity.ArgumentLane) policy.ArgumentEffect {
	o, _ := policy.ParseOperation(l.Operation)
	return policy.ArgumentEffect{Operation: o, Word: l.Word, By: policy.ArgumentKind(l.By), Path: l.Argument, Declared: l.Declared, Unread: l.Unread}
}

// checkRecordedArguments validates recorded arguments against the tool's schema. why is set if they cannot be
// validated.
func checkRecordedArguments(r *activity.Record, t *catalog.Tool) (fit activity.SchemaFit, why string) {
	args := r.Arguments
	switch {
	case !t.HasDefinition():
		return "", whySchema
	case t.ArgumentSchema().BrokenError() != nil:
		return "", "" // a broken schema is not enforced
	case r.ArgumentsTruncated || redact.HasMask(args) || r.HasErased(activity.FieldArguments):
		return "", whyMasked
	case len(args) == 0:
		args = json.RawMessage("{}")
	}
	if violations, err := t.ArgumentSchema().CheckArguments(args); err != nil || len(violations) > 0 {
		return activity.ArgumentsUnfit, ""
	}
	return activity.ArgumentsFit, ""
}
