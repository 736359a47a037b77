package gate

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/pause"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/result"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store"
	"mcpproxy/internal/store/activity"
)

// ErrStopping is the cancellation cause of calls when the daemon stops.
var ErrStopping = errors.New("the daemon is stopping")

// settleOutcome writes the end of the call into the outcome, and returns the caller's answer.
func (g *Gate) settleOutcome(ctx context.Context, x *execution, reply session.Reply, err error, o *activity.Outcome) (CallResult, error) {
	c, v, r := &x.call, &x.verdict, CallResult{Result: reply.Result, ActivityID: x.audit.record.ID}
	var p *problem.Problem
	switch {
	case err != nil && pause.Stopped(ctx) != nil:
		p, o.Check = x.pausedProblem(pause.Stopped(ctx)), policy.CheckPause.String()
	case err != nil:
		p, o.Check = c.failureProblem(ctx, &v.resolvedCall, err), x.recheck.failedCheck().String()
	case reply.Error != nil:
		p = serverErrorProblem(v.request.ID, reply.Error)
		if requiresTask(v.tool.Raw) {
			p.Hint = taskHint(v.request.ID.Server)
		}
		o.Response, o.ResponseBytes = reply.Error.Data, int64(len(reply.Error.Data))
	default:
		p = invalidResultProblem(v.request.ID, reply.Result, c.CutsResult)
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
	if c.CutsResult {
		g.shapeResult(ctx, c, v, &r, o)
		return r, nil
	}
	if v.request.LaneAddress != "" {
		g.warnCaller(v, &r, v.Warnings)
	}
	if bytes.Contains(c.params, []byte("task")) { // the client supports tasks
		if id, ok := parseTaskID(reply.Result); ok {
			g.tasks.recordOwner(v.request.ID.Server, id, c.caller.Actor.Principal())
		}
	}
	return r, nil
}

// invalidResultProblem returns the problem of an invalid result, or nil. If whole is set, tasks and questions are not
// allowed.
func invalidResultProblem(id tool.ID, result json.RawMessage, whole bool) *problem.Problem {
	if wirejson.Kind(result) != '{' {
		return problem.Newf(problem.UpstreamError, "Tool '%s' returned something that is not a result object.", id).
			WithHint("The server violates the protocol. See its log with `mcpproxy upstream logs " + id.Server + "`.")
	}
	if !whole {
		return nil
	}
	if what := unfinishedKindText(result); what != "" {
		return problem.Newf(problem.UpstreamError, "Tool '%s' answered with %s, which the call did not request.", id, what).
			WithHint(taskHint(id.Server))
	}
	return nil
}

// failureProblem converts the error of a call without an answer to a problem.
func (c *call) failureProblem(ctx context.Context, s *resolvedCall, err error) *problem.Problem {
	var p *problem.Problem
	switch {
	case errors.As(err, &p):
		return p
	case errors.Is(context.Cause(ctx), ErrStopping):
		return problem.Newf(problem.ServerUnavailable, "MCPProxy is stopping, so it no longer waits for '%s'.", s.request.ID).
			WithHint("The call may have been carried out: check before you try again, when MCPProxy runs again.").Because(err)
	case ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled):
		return problem.Newf(problem.Interrupted, "The call to '%s' was cancelled by its caller.", s.request.ID).Because(err)
	case errors.Is(err, context.DeadlineExceeded):
		return problem.Newf(problem.Timeout, "Tool '%s' did not answer within %s.", s.request.ID, c.effectiveTimeout(s)).
			WithHint("Try again, or increase call_timeout for the server in mcp_config.json.").Because(err)
	}
	return problem.From(err)
}

// The size limits, in bytes, of the parts of a server's error that the problem repeats.
const (
	maxUpstreamMessage = 4 << 10
	maxUpstreamData    = 16 << 10
)

// serverErrorProblem returns the problem of a call that its server answered with an error.
func serverErrorProblem(id tool.ID, e *wirejson.RPCError) *problem.Problem {
	p := problem.Newf(problem.UpstreamError, "Tool '%s' failed at its server: %s", id, problem.ClipForDisplay(e.Message, maxUpstreamMessage)).
		WithHint("The server itself refused the call; its message explains the error.").
		With("upstream_code", e.Code)
	if e.Data != nil && len(e.Data) <= maxUpstreamData {
		p.With("upstream_data", e.Data)
	}
	return p
}

// warningsKey is the member of a result's _meta that contains the warnings.
const warningsKey = "mcpproxy/warnings"

// shapeResult applies the selection, cuts the result to result_limit, stores the whole result for read_result, and
// adds the warnings.
func (g *Gate) shapeResult(ctx context.Context, c *call, v *verdict, r *CallResult, o *activity.Outcome) {
	r.Result = g.applySelection(ctx, c, v, r, o)
	if limit := v.cfg.ResultLimit; limit > 0 && len(r.Result) > limit {
		r.Handle = g.storeWholeResult(ctx, c, v, r.ActivityID, rand.Text(), r.Result)
		r.Result, _ = result.Cut(r.Result, limit, r.Handle)
	}
	g.warnCaller(v, r, append(v.Warnings, o.Warnings...))
}

// warnCaller adds the warnings to the result, and logs them.
func (g *Gate) warnCaller(v *verdict, r *CallResult, warnings []string) {
	if len(warnings) == 0 {
		return
	}
	r.Result, r.Warnings = addWarnings(r.Result, warnings), warnings
	for _, w := range warnings {
		g.Logger.Warn("call allowed with a warning", "id", r.ActivityID, "tool", v.request.ID.String(), "warning", w)
	}
}

// applySelection returns the selected part of a result, or the whole result if the selection fails. It does not apply
// the selection to a failure of the tool.
func (g *Gate) applySelection(ctx context.Context, c *call, v *verdict, r *CallResult, o *activity.Outcome) json.RawMessage {
	e, whole := c.selection, r.Result
	if e == nil {
		e = v.cfg.ResultSelectionFor(v.request.ID)
	}
	if e == nil || e.IsIdentity() || r.IsError {
		return whole
	}
	handle := rand.Text()
	part, err := result.Select(whole, e, handle)
	if err != nil {
		o.Warnings = append(o.Warnings, "The selection failed, so this is the whole result: "+err.Error()+".")
		return whole
	}
	if g.storeWholeResult(ctx, c, v, r.ActivityID, handle, whole) == "" {
		part, _ = result.Select(whole, e, "")
	}
	return part
}

// storeWholeResult stores a result for read_result, and returns its handle; "" if that fails.
func (g *Gate) storeWholeResult(ctx context.Context, c *call, v *verdict, record, handle string, body json.RawMessage) string {
	err := g.Results.PutResult(ctx, store.StoredResult{
		Handle: handle, Actor: c.caller.Actor.Principal(), Server: v.request.ID.Server, Tool: v.request.ID.Tool,
		Sensitivity: v.Intent.Sensitivity, Body: body, Expires: time.Now().Add(store.ResultLife),
	})
	if err != nil {
		// The caller still gets the part that fits.
		g.Logger.Warn("a large result cannot be stored for read_result", "id", record, "error", err)
		return ""
	}
	return handle
}

// addWarnings adds the warnings to the _meta of a result.
func addWarnings(raw json.RawMessage, warnings []string) json.RawMessage {
	list, err := json.Marshal(warnings)
	if err != nil {
		return raw // cannot fail: strings can always be encoded
	}
	meta := json.RawMessage(wirejson.Find(raw, "_meta"))
	if wirejson.Kind(meta) != '{' {
		meta = json.RawMessage("{}")
	}
	return wirejson.SetMember(raw, "_meta", wirejson.SetMember(meta, warningsKey, list))
}

// maxErrorText limits the message that a record contains from a failed result.
const maxErrorText = 500

// firstText returns the beginning of the first text block of a result.
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
