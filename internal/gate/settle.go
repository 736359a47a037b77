package gate

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/mcp/result"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store"
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
	p := problem.Newf(problem.UpstreamError, "Tool '%s' failed at its server: %s", id, problem.ClipForDisplay(e.Message, maxUpstreamMessage)).
		WithHint("The server itself refused the call; its message says what to change.").
		With("upstream_code", e.Code)
	if e.Data != nil && len(e.Data) <= maxUpstreamData {
		p.With("upstream_data", e.Data)
	}
	return p
}

// warningsKey is where warnings stand in a result's _meta.
const warningsKey = "mcpproxy/warnings"

// fit makes the result what the caller gets: what is selected of it, cut to result_limit, with the
// whole kept for read_result, and with the warnings.
func (g *Gate) fit(ctx context.Context, c *call, v *verdict, r *Result, o *activity.Outcome) {
	r.Result = g.selected(ctx, c, v, r, o)
	if limit := v.cfg.ResultLimit; limit > 0 && len(r.Result) > limit {
		r.Handle = g.kept(ctx, c, v, r.ActivityID, rand.Text(), r.Result)
		r.Result, _ = result.Cut(r.Result, limit, r.Handle)
	}
	r.Warnings = v.Warnings
	if warnings := append(v.Warnings, o.Warnings...); len(warnings) > 0 {
		r.Result, r.Warnings = addWarnings(r.Result, warnings), warnings
		for _, w := range warnings {
			g.Logger.Warn("call let through with a warning", "id", r.ActivityID, "tool", v.request.ID.String(), "warning", w)
		}
	}
}

// selected is what is selected of a result, and the result itself where nothing can be. A
// failure of the tool is never selected from.
func (g *Gate) selected(ctx context.Context, c *call, v *verdict, r *Result, o *activity.Outcome) json.RawMessage {
	e, whole := c.selection, r.Result
	if e == nil {
		e = v.cfg.Selection(v.request.ID)
	}
	if e == nil || e.IsIdentity() || r.IsError {
		return whole
	}
	handle := rand.Text()
	part, err := result.Select(whole, e, handle)
	if err != nil {
		o.Warnings = append(o.Warnings, "The selection could not be made, so this is the whole result: "+err.Error()+".")
		return whole
	}
	if g.kept(ctx, c, v, r.ActivityID, handle, whole) == "" {
		part, _ = result.Select(whole, e, "")
	}
	return part
}

// kept keeps a result for read_result, and returns its handle; "" when it cannot.
func (g *Gate) kept(ctx context.Context, c *call, v *verdict, record, handle string, body json.RawMessage) string {
	err := g.Results.PutResult(ctx, store.StoredResult{
		Handle: handle, Actor: c.caller.Actor.Principal(), Server: v.request.ID.Server, Tool: v.request.ID.Tool,
		Sensitivity: v.Intent.Sensitivity, Body: body, Expires: time.Now().Add(store.ResultLife),
	})
	if err != nil {
		// The part that fits is still worth having.
		g.Logger.Warn("a large result cannot be kept for read_result", "id", record, "error", err)
		return ""
	}
	return handle
}

// addWarnings puts the warnings into the result's _meta and keeps everything
// else of it.
func addWarnings(raw json.RawMessage, warnings []string) json.RawMessage {
	list, err := json.Marshal(warnings)
	if err != nil {
		return raw // strings always encode
	}
	meta := json.RawMessage(wirejson.Find(raw, "_meta"))
	if wirejson.Kind(meta) != '{' {
		meta = json.RawMessage("{}")
	}
	return wirejson.SetMember(raw, "_meta", wirejson.SetMember(meta, warningsKey, list))
}

// maxErrorText bounds the message that a record takes from a failed result.
const maxErrorText = 500

// firstText is the beginning of the first text block of a result, for the
// record's error message.
func firstText(raw json.RawMessage) string {
	var r struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	if json.Unmarshal(raw, &r) != nil {
		return ""
	}
	for _, block := range r.Content {
		if block.Text != "" {
			return problem.ClipForDisplay(block.Text, maxErrorText)
		}
	}
	return ""
}
