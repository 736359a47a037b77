package gate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// ErrStopping is the cause with which the daemon ends calls that take longer
// than a stop waits for.
var ErrStopping = errors.New("the daemon is being stopped")

// settle says in the outcome how the call ended, and returns the problem that
// this is for its caller.
func (g *Gate) settle(ctx context.Context, c *call, reply *session.Reply, err error, o *activity.Outcome) error {
	var p *problem.Problem
	switch {
	case err != nil:
		p, o.Check = c.failed(ctx, err), policy.Check(c.failedRecheck.Load()).String()
	case reply.Error != nil:
		p = refusedBy(c.policyRequest.ID, reply.Error)
		if onlyAsTask(c.tool.Raw) {
			p.Hint = taskHint(c.policyRequest.ID.Server)
		}
		o.Response, o.ResponseBytes = reply.Error.Data, int64(len(reply.Error.Data))
	default:
		p = c.unsound(reply.Result)
		o.Response, o.ResponseBytes = reply.Result, int64(len(reply.Result))
	}
	if p != nil {
		o.ErrorCode, o.ErrorMessage = string(p.Code), p.Message
		return p
	}
	o.Status, o.ErrorCode, o.ErrorMessage = activity.Success, "", ""
	if c.isError, _ = wirejson.Bool(wirejson.Find(reply.Result, "isError")); c.isError {
		o.Status, o.ErrorMessage = activity.Failed, firstText(reply.Result)
	}
	if c.Cuts {
		g.fit(ctx, c, reply.Result, o)
	} else if bytes.Contains(c.request.Params, []byte("task")) { // the client has said that it knows any
		if id, ok := taskIn(reply.Result); ok {
			g.tasks.begun(c.policyRequest.ID.Server, id, c.caller.Actor.Principal())
		}
	}
	return nil
}

// end writes the outcome. What was no waiting is our own time.
func (g *Gate) end(c *call, o *activity.Outcome) {
	o.Duration = time.Since(c.started)
	o.Own = max(1, o.Duration-c.waited)
	c.observed(o.Status, o.ErrorCode, o.Duration, o.Own)
	if err := g.Log.End(c.record.ID, *o); err != nil {
		g.Logger.Error("the outcome of a call could not be recorded", "id", c.record.ID, "error", err)
	}
}

// unsound returns why what a server answered with is no result for the caller.
func (c *call) unsound(result json.RawMessage) *problem.Problem {
	if wirejson.Kind(result) != '{' {
		return problem.Newf(problem.UpstreamError, "Tool '%s' answered with something that is not a result object.", c.policyRequest.ID).
			WithHint("The server breaks the protocol; see its log with `mcpproxy upstream logs " + c.policyRequest.ID.Server + "`.")
	}
	if !c.Cuts {
		return nil
	}
	if what := unfinished(result); what != "" {
		return problem.Newf(problem.UpstreamError, "Tool '%s' answered with %s, which it was not asked for.", c.policyRequest.ID, what).
			WithHint(taskHint(c.policyRequest.ID.Server))
	}
	return nil
}

// failed says in the words of the contract why there is no answer.
func (c *call) failed(ctx context.Context, err error) *problem.Problem {
	var p *problem.Problem
	switch {
	case errors.As(err, &p):
		return p
	case errors.Is(context.Cause(ctx), ErrStopping):
		return problem.Newf(problem.ServerUnavailable, "MCPProxy is being stopped, so it waits no longer for '%s'.", c.policyRequest.ID).
			WithHint("The call may have been carried out: check before you try again, when MCPProxy runs again.").Because(err)
	case ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled):
		return problem.Newf(problem.Interrupted, "The call of '%s' was cancelled by its caller.", c.policyRequest.ID).Because(err)
	case errors.Is(err, context.DeadlineExceeded):
		return problem.Newf(problem.Timeout, "Tool '%s' did not answer within %s.", c.policyRequest.ID, c.time()).
			WithHint("Try again, or raise call_timeout for the server in mcp_config.json.").Because(err)
	}
	return problem.From(err)
}

// The bounds of what a server's error brings into ours, in bytes.
const (
	maxUpstreamMessage = 4 << 10
	maxUpstreamData    = 16 << 10
)

// refusedBy is the problem of a call that its server has refused.
func refusedBy(id tool.ID, e *wirejson.RPCError) *problem.Problem {
	p := problem.Newf(problem.UpstreamError, "Tool '%s' failed at its server: %s", id, problem.Shown(e.Message, maxUpstreamMessage)).
		WithHint("The server itself refused the call; its message says what to change.").
		With("upstream_code", e.Code)
	if e.Data != nil && len(e.Data) <= maxUpstreamData {
		p.With("upstream_data", e.Data)
	}
	return p
}
