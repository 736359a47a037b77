package gate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// ErrStopping is the cause with which the daemon ends calls that take longer
// than a stop waits for.
var ErrStopping = errors.New("the daemon is being stopped")

// settle puts into the outcome how the call ended, and returns what its caller gets.
func (g *Gate) settle(ctx context.Context, x *execution, reply session.Reply, err error, o *activity.Outcome) (Result, error) {
	c, v, r := &x.call, &x.verdict, Result{Result: reply.Result, ActivityID: x.audit.record.ID}
	var p *problem.Problem
	switch {
	case err != nil:
		p, o.Check = c.failed(ctx, &v.subject, err), x.recheck.check().String()
	case reply.Error != nil:
		p = refusedBy(v.request.ID, reply.Error)
		if onlyAsTask(v.tool.Raw) {
			p.Hint = taskHint(v.request.ID.Server)
		}
		o.Response, o.ResponseBytes = reply.Error.Data, int64(len(reply.Error.Data))
	default:
		p = unsound(v.request.ID, reply.Result, c.Cuts)
		o.Response, o.ResponseBytes = reply.Result, int64(len(reply.Result))
	}
	if p != nil {
		o.ErrorCode, o.ErrorMessage = string(p.Code), p.Message
		return r, p
	}
	o.Status, o.ErrorCode, o.ErrorMessage = activity.Success, "", ""
	if r.IsError, _ = wirejson.Bool(wirejson.Find(reply.Result, "isError")); r.IsError {
		o.Status, o.ErrorMessage = activity.Failed, firstText(reply.Result)
	}
	if c.Cuts {
		g.fit(ctx, c, v, &r, o)
	} else if bytes.Contains(c.params, []byte("task")) { // the client has said that it knows any
		if id, ok := taskIn(reply.Result); ok {
			g.tasks.begun(v.request.ID.Server, id, c.caller.Actor.Principal())
		}
	}
	return r, nil
}

// unsound returns why what a server answered with is no result for the caller. whole: it must be a
// result, and no task or question.
func unsound(id tool.ID, result json.RawMessage, whole bool) *problem.Problem {
	if wirejson.Kind(result) != '{' {
		return problem.Newf(problem.UpstreamError, "Tool '%s' answered with something that is not a result object.", id).
			WithHint("The server breaks the protocol; see its log with `mcpproxy upstream logs " + id.Server + "`.")
	}
	if !whole {
		return nil
	}
	if what := unfinished(result); what != "" {
		return problem.Newf(problem.UpstreamError, "Tool '%s' answered with %s, which it was not asked for.", id, what).
			WithHint(taskHint(id.Server))
	}
	return nil
}

// failed says in the words of the contract why there is no answer.
func (c *call) failed(ctx context.Context, s *subject, err error) *problem.Problem {
	var p *problem.Problem
	switch {
	case errors.As(err, &p):
		return p
	case errors.Is(context.Cause(ctx), ErrStopping):
		return problem.Newf(problem.ServerUnavailable, "MCPProxy is being stopped, so it waits no longer for '%s'.", s.request.ID).
			WithHint("The call may have been carried out: check before you try again, when MCPProxy runs again.").Because(err)
	case ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled):
		return problem.Newf(problem.Interrupted, "The call of '%s' was cancelled by its caller.", s.request.ID).Because(err)
	case errors.Is(err, context.DeadlineExceeded):
		return problem.Newf(problem.Timeout, "Tool '%s' did not answer within %s.", s.request.ID, c.timeout(s)).
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
