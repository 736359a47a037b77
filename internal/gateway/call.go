package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"mcpproxy/internal/activity"
	"mcpproxy/internal/catalog"
	"mcpproxy/internal/config"
	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/policy"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/schema"
	"mcpproxy/internal/strictjson"
	"mcpproxy/internal/tool"
	"mcpproxy/internal/upstream"
)

// CallRequest is a call as a surface received it. Args and ArgsJSON are the
// two forms of the arguments; giving both is a problem, giving none means {}.
type CallRequest struct {
	Variant  policy.Variant
	Name     string
	Args     json.RawMessage // the JSON value given as args; nil when not given
	ArgsJSON *string         // nil when not given
	// ArgsProblem is set when the surface already found that the arguments
	// cannot be read (args_json is not a string, …).
	ArgsProblem string
	Declared    policy.Declared
	Caller      Caller
	// Meta is the client's _meta to pass on; Notify gets the notifications of
	// the call, in order. See upstream.Call.
	Meta         json.RawMessage
	Notify       func(method string, params json.RawMessage)
	RequestBytes int
	Timeout      time.Duration // 0 = the configured one; a shorter one wins
}

// CallResult is the answer of an upstream tool.
type CallResult struct {
	// Result is the upstream's result object: its bytes, unless it had to be
	// cut to result_limit or warnings had to be added to its _meta.
	Result     json.RawMessage
	IsError    bool // the upstream said isError
	Warnings   []string
	ActivityID string
	Handle     string // for read_result; empty when nothing was cut
}

// call is one call on its way through the door.
type call struct {
	req      *CallRequest
	cfg      *config.Config
	asked    policy.Request
	tool     *catalog.Tool
	id       tool.ID
	args     json.RawMessage
	passed   *upstream.Passed                                                         // of a call that is passed on as it is
	talk     func(ctx context.Context, server string) (*upstream.Conversation, error) // opens its conversation; nil: it has the one it needs
	misnamed error                                                                    // why its name is none
	failure  *jsonrpc.Error                                                           // of such a call: the upstream's own error
	status   int                                                                      // of such a call: the upstream's HTTP status
	decision policy.Decision
	record   activity.Record
	search   *activity.Search // how the caller found the tool
	started  time.Time
}

// Call decides, records, asks the upstream and records the outcome. The error
// is a *problem.Problem: a refusal, or a failure with the codes of the
// contract. A tool that reports a failure of its own is no error: IsError.
func (g *Gateway) Call(ctx context.Context, req CallRequest) (CallResult, error) {
	return g.through(ctx, &call{req: &req, cfg: g.Config(), started: time.Now()})
}

// decide brings the facts to the policy, then checks the arguments against the
// tool's schema. It does no I/O.
func (g *Gateway) decide(c *call) *problem.Problem {
	snapshot := g.Catalog.Current()
	c.asked = policy.Request{Variant: c.req.Variant, OwnNames: c.passed != nil, Name: c.req.Name, Declared: c.req.Declared}
	if c.asked.ID, c.asked.NameErr = tool.ParseID(c.req.Name); c.misnamed != nil {
		c.asked.ID, c.asked.NameErr = tool.ID{}, c.misnamed
	}
	c.args, c.asked.ArgsErr = readArguments(c.req)
	c.id = c.asked.ID
	if c.asked.NameErr == nil {
		c.tool = snapshot.Tool(c.id)
	}
	c.decision = policy.Decide(c.asked, g.facts(c, snapshot), c.rules())
	if c.decision.Verdict == policy.Reject {
		return c.decision.Problem
	}
	if c.passed != nil {
		return nil
	}
	return g.checkArguments(c)
}

// facts is what a snapshot, and what is decided at this moment, say about the
// call.
func (g *Gateway) facts(c *call, snapshot *catalog.Snapshot) policy.Facts {
	facts := policy.Facts{InScope: inScope(c.req.Caller.Actor, c.id.Server)}
	if c.asked.NameErr != nil {
		return facts
	}
	t := snapshot.Tool(c.id)
	if t == nil {
		s := snapshot.Server(c.id.Server)
		if facts.Status = lockOf(s); facts.Status != policy.Callable {
			facts.Existence = policy.Exists // or not: nothing of this server can be called
			return facts
		}
		facts.Existence, facts.Unlisted = missing(s)
		facts.LoginNeeded = facts.Existence == policy.Unlisted && g.needsLogin(s.Name)
		facts.Nearest = snapshot.Nearest(c.id)
		return facts
	}
	facts.Existence, facts.Status, facts.Hints = policy.Exists, g.Catalog.StatusNow(t), t.Effective
	if in := t.Inferred(); !in.Unsure {
		facts.Inferred, facts.InferredWhy = in.Operation, in.Reason
	}
	return facts
}

// lockOf is why nothing of a server can be called whose tools are not known;
// Callable when nothing but their absence stands against it.
func lockOf(s *catalog.Server) policy.Status {
	if s == nil || s.Listed {
		return policy.Callable
	}
	return policy.StatusOf(policy.StatusFacts{Known: true, ServerEnabled: s.Enabled, Quarantined: s.Quarantined, Approved: true})
}

// missing says what is not there: the server, its list, or the tool.
func missing(s *catalog.Server) (what policy.Existence, unlisted string) {
	switch {
	case s == nil:
		return policy.NoServer, ""
	case s.Listed:
		return policy.NoTool, ""
	case s.State.Phase == upstream.Idle:
		return policy.Unlisted, "it is lazy and was never started; upstream_servers with operation restart, or `mcpproxy upstream restart " + s.Name + "`, starts it"
	case s.State.LastError != "":
		return policy.Unlisted, s.State.LastError
	}
	return policy.Unlisted, "it is connecting"
}

// checkArguments holds the arguments to the tool's schema as the configuration
// says.
func (g *Gateway) checkArguments(c *call) *problem.Problem {
	mode := validation(c.cfg, c.id.Server)
	if mode == config.ValidateOff {
		return nil
	}
	s := c.tool.Arguments()
	if err := s.Broken(); err != nil {
		c.decision.Warnings = append(c.decision.Warnings,
			fmt.Sprintf("The input schema of '%s' cannot be used, so the arguments were not checked: %v", c.id, err))
		return nil
	}
	violations, err := s.Check(c.args)
	if err != nil {
		// The caller made them so: letting them through would let every caller
		// switch the check off.
		violations = []schema.Violation{{Message: err.Error()}}
	}
	if len(violations) == 0 {
		return nil
	}
	if mode == config.ValidateWarn {
		for _, v := range violations {
			c.decision.Warnings = append(c.decision.Warnings, "The arguments do not fit the input schema: "+where(v)+".")
		}
		return nil
	}
	return argsMismatch(c.tool, violations)
}

// describe fills the record with what is known before the call.
func (c *call) describe(kind activity.Type) {
	caller := &c.req.Caller
	operation := c.decision.Intent.Operation
	if operation == policy.NoOperation {
		operation = c.req.Variant.Operation()
	}
	c.record = activity.Record{
		Type:          kind,
		ServerName:    c.id.Server,
		ToolName:      c.id.Tool,
		Arguments:     c.args,
		RequestBytes:  int64(c.req.RequestBytes),
		SessionID:     caller.SessionID,
		RequestID:     caller.RequestID,
		Source:        caller.Source,
		Actor:         caller.Actor.String(),
		ClientName:    caller.ClientName,
		ClientVersion: caller.ClientVersion,
		Metadata: activity.Metadata{
			Intent: &activity.Intent{
				OperationType:   operation.String(),
				DataSensitivity: c.decision.Intent.Sensitivity,
				Reason:          c.decision.Intent.Reason,
			},
			ToolVariant: c.req.Variant.String(),
			Search:      c.search,
			Warnings:    c.decision.Warnings,
		},
	}
}

// refuse records a refusal and gives the id of the record. A refusal that
// cannot be recorded is a refusal all the same.
func (g *Gateway) refuse(c *call, p *problem.Problem) string {
	c.describe(activity.PolicyDecision)
	c.record.Status = activity.Blocked
	c.record.ErrorMessage = p.Message
	c.record.Metadata.ErrorCode = string(p.Code)
	c.record.DurationMS = time.Since(c.started).Milliseconds()
	if c.id.Server == "" {
		c.record.ToolName = clip(c.req.Name)
	}
	if err := g.Log.Append(&c.record); err != nil {
		g.Logger.Error("a refusal could not be recorded", "code", p.Code, "error", err)
		return ""
	}
	return c.record.ID
}

// carryOut asks the upstream and records the outcome, whatever happens.
func (g *Gateway) carryOut(ctx context.Context, c *call) (out CallResult, err error) {
	outcome := activity.Outcome{Status: activity.Failed, ErrorCode: string(problem.Internal),
		ErrorMessage: "the call ended in a panic"}
	defer func() {
		outcome.Duration = time.Since(c.started)
		if endErr := g.Log.End(c.record.ID, outcome); endErr != nil {
			g.Logger.Error("the outcome of a call could not be recorded", "id", c.record.ID, "error", endErr)
		}
	}()

	reply, err := g.ask(ctx, c)
	out.ActivityID = c.record.ID
	if err != nil {
		p := callProblem(ctx, c, err)
		outcome.ErrorCode, outcome.ErrorMessage = string(p.Code), p.Message
		return out, p
	}
	c.failure, c.status = reply.Error, reply.Status
	outcome.Response, outcome.ResponseBytes = reply.Result, int64(len(reply.Result))
	if reply.Error != nil {
		p := upstreamProblem(c.id, reply.Error)
		if onlyAsTask(c.tool.Raw) {
			p.Hint = taskHint(c.id.Server)
		}
		outcome.ErrorCode, outcome.ErrorMessage = string(p.Code), p.Message
		outcome.Response, outcome.ResponseBytes = reply.Error.Data, int64(len(reply.Error.Data))
		return out, p
	}
	if strictjson.Kind(reply.Result) != '{' {
		p := problem.Newf(problem.UpstreamError, "Tool '%s' answered with something that is not a result object.", c.id).
			WithHint("The server breaks the protocol; see its log with `mcpproxy upstream logs " + c.id.Server + "`.")
		outcome.ErrorCode, outcome.ErrorMessage = string(p.Code), p.Message
		return out, p
	}
	if c.passed != nil {
		g.noteTask(c, reply.Result)
	} else if what := unfinished(reply.Result); what != "" {
		p := problem.Newf(problem.UpstreamError, "Tool '%s' answered with %s, which it was not asked for.", c.id, what).WithHint(taskHint(c.id.Server))
		outcome.ErrorCode, outcome.ErrorMessage = string(p.Code), p.Message
		return out, p
	}
	out.IsError, _ = strictjson.Bool(strictjson.Find(reply.Result, "isError"))
	outcome.Status, outcome.ErrorCode, outcome.ErrorMessage = activity.Success, "", ""
	if out.IsError {
		outcome.Status, outcome.ErrorMessage = activity.Failed, firstText(reply.Result)
	}
	out.Result, out.Warnings = reply.Result, c.decision.Warnings
	if c.passed == nil {
		g.fit(ctx, c, &out)
	}
	return out, nil
}

// ask waits for a place and for the upstream's answer, within the time that
// the call has.
func (g *Gateway) ask(ctx context.Context, c *call) (upstream.Reply, error) {
	ctx, clock, end := upstream.StartClock(ctx, timeout(c.cfg, c.id.Server, c.req.Timeout))
	defer end()
	release, err := g.admission.Load().enter(ctx, c.id.Server)
	if err != nil {
		return upstream.Reply{}, late(ctx, err)
	}
	defer release()
	// It may have waited: what was locked meanwhile is not called.
	if err := g.stillAllowed(c); err != nil {
		return upstream.Reply{}, err
	}
	if c.talk != nil {
		if c.passed.Conversation, err = c.talk(ctx, c.id.Server); err != nil {
			return upstream.Reply{}, late(ctx, err)
		}
	}
	if c.passed != nil {
		defer c.passed.Conversation.Time(clock)()
	}
	reply, err := g.Upstreams.Call(ctx, c.id.Server, upstream.Call{
		Tool: c.id.Tool, Arguments: c.args, Meta: c.req.Meta, Notify: c.req.Notify, Listed: c.tool.Raw,
		Passed: c.passed, Check: func() error { return g.stillAllowed(c) },
	})
	return reply, late(ctx, err)
}

// late makes the end of a context by its clock that of a time limit, where
// nobody has said yet what it means.
func late(ctx context.Context, err error) error {
	var p *problem.Problem
	if errors.Is(err, context.Canceled) && upstream.TimeIsUp(ctx) && !errors.As(err, &p) {
		return context.DeadlineExceeded
	}
	return err
}

// stillAllowed decides about the call once more, after it has waited.
func (g *Gateway) stillAllowed(c *call) error {
	if d := policy.Decide(c.asked, g.facts(c, g.Catalog.Current()), c.rules()); d.Verdict == policy.Reject {
		return d.Problem
	}
	return nil
}

// ErrStopping is the cause with which the daemon ends calls that take longer
// than a stop waits for.
var ErrStopping = errors.New("the daemon is being stopped")

// callProblem says in the words of the contract why there is no answer.
func callProblem(ctx context.Context, c *call, err error) *problem.Problem {
	var p *problem.Problem
	switch {
	case errors.As(err, &p):
		return p
	case errors.Is(context.Cause(ctx), ErrStopping):
		return problem.Newf(problem.ServerUnavailable, "MCPProxy is being stopped, so it waits no longer for '%s'.", c.id).
			WithHint("The call may have been carried out: check before you try again, when MCPProxy runs again.").Because(err)
	case ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled):
		return problem.Newf(problem.Interrupted, "The call of '%s' was cancelled by its caller.", c.id).Because(err)
	case errors.Is(err, context.DeadlineExceeded):
		return problem.Newf(problem.Timeout, "Tool '%s' did not answer within %s.", c.id,
			timeout(c.cfg, c.id.Server, c.req.Timeout)).
			WithHint("Try again, or raise call_timeout for the server in mcp_config.json.").Because(err)
	}
	return problem.From(err)
}

// The bounds of what an upstream's error brings into ours, in bytes.
const (
	maxUpstreamMessage = 4 << 10
	maxUpstreamData    = 16 << 10
)

func upstreamProblem(id tool.ID, e *jsonrpc.Error) *problem.Problem {
	p := problem.Newf(problem.UpstreamError, "Tool '%s' failed at its server: %s", id, clipTo(e.Message, maxUpstreamMessage)).
		WithHint("The server itself refused the call; its message says what to change.").
		With("upstream_code", e.Code)
	if e.Data != nil && len(e.Data) <= maxUpstreamData {
		p.With("upstream_data", e.Data)
	}
	return p
}

// timeout is the time a call may take: the caller's, if shorter than what the
// configuration allows.
func timeout(cfg *config.Config, server string, asked time.Duration) time.Duration {
	allowed := cfg.CallTimeout
	if s := configured(cfg, server); s != nil && s.CallTimeout > 0 {
		allowed = s.CallTimeout
	}
	if asked > 0 && asked < allowed {
		return asked
	}
	return allowed
}

func validation(cfg *config.Config, server string) config.Validation {
	if s := configured(cfg, server); s != nil && s.ValidateArguments != "" {
		return s.ValidateArguments
	}
	return cfg.ValidateArguments
}

func configured(cfg *config.Config, server string) *config.Server {
	for i := range cfg.Servers {
		if cfg.Servers[i].Name == server {
			return &cfg.Servers[i]
		}
	}
	return nil
}
