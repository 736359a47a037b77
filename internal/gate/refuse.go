package gate

import (
	"context"
	"encoding/json"
	"time"

	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// SurfaceRefusal is a call that an endpoint has refused before it reached the gate, because it names no tool or
// cannot be parsed.
type SurfaceRefusal struct {
	Caller auth.Caller
	// Server and Tool are the server and tool in the request, as far as known.
	Server, Tool string
	CallTool     policy.CallToolVariant // call tool that was used, if Tool does not contain its name
	Action       string                 // action of a built-in tool, or the method
	Detail       string                 // object of the request if it is not a tool
	Arguments    json.RawMessage        // nil if they may contain a secret that cannot be masked
	RequestBytes int
	Problem      *problem.Problem
}

// RecordRefusal records the refusal of a call by an endpoint and returns the ID of the record. It returns when the
// client may get its answer; see refusalLimiter.
func (g *Gate) RecordRefusal(ctx context.Context, r SurfaceRefusal) string {
	g.sessionless.assignSessionID(&r.Caller)
	record := activity.Record{
		ServerName: problem.ClipName(r.Server), ToolName: problem.ClipName(r.Tool), Arguments: r.Arguments, RequestBytes: int64(r.RequestBytes), ErrorMessage: r.Problem.Message,
		Metadata: activity.Metadata{ErrorCode: string(r.Problem.Code), Action: problem.ClipName(r.Action), Detail: r.Detail,
			Decision: &activity.Decision{Outcome: activity.Refused, Check: policyCheckForCode(r.Problem.Code).String(), ConfigRevision: g.Config().Revision()}},
	}
	variant := r.CallTool
	if v, ok := policy.ParseCallToolName(r.Tool); ok && r.Server == "" {
		variant = v
	}
	if variant != policy.CallToolNone {
		record.Metadata.Intent = &activity.Intent{OperationType: variant.Operation().String()}
	}
	record.SetCaller(&r.Caller)
	id := g.writeRefusalThrottled(ctx, &record)
	if g.Observer != nil {
		g.Observer.CallEnded(CallStats{Server: g.knownServerName(r.Server), Status: activity.Blocked, Code: string(r.Problem.Code), Record: id}, nil)
	}
	return id
}

// policyCheckForCode returns the policy check that corresponds to the code of an endpoint's refusal; NoCheck for
// other codes.
func policyCheckForCode(code problem.Code) policy.Check {
	switch code {
	case problem.InvalidArgs, problem.InvalidRequest, problem.InvalidParameter, problem.TooLarge:
		return policy.CheckArguments
	case problem.Unauthorized, problem.Forbidden, problem.OutOfScope:
		return policy.CheckScope
	case problem.ServerNotFound, problem.ServerUnavailable, problem.ToolNotFound, problem.NotFound:
		return policy.CheckExists
	case problem.ToolLocked, problem.OfferLocked:
		return policy.CheckCallable
	case problem.CallsPaused:
		return policy.CheckPause
	case problem.InvalidName, problem.Conflict: // a name that is in use
		return policy.CheckName
	}
	return policy.NoCheck
}

// RecordRefusedToolCall records the refusal of a client's tools/call. server is "" if unknown.
func (g *Gate) RecordRefusedToolCall(ctx context.Context, server string, r *session.Request, p *problem.Problem) {
	name, _ := wirejson.String(wirejson.Find(r.Params, "name"))
	g.RecordRefusal(ctx, SurfaceRefusal{Caller: *r.Caller, Server: server, Tool: name, Arguments: wirejson.Find(r.Params, "arguments"), RequestBytes: r.Size, Problem: p})
}

// writeRefusalThrottled writes the record of a refusal and waits for the delay of its answer. If the record cannot be
// written, the call is still refused.
func (g *Gate) writeRefusalThrottled(ctx context.Context, r *activity.Record) string {
	if err := g.Log.AppendRefusal(r); err != nil {
		g.Logger.Error("a refusal could not be recorded", "code", r.Metadata.ErrorCode, "error", err)
		r.ID = ""
	}
	now := time.Now()
	g.refusalLimiter.waitOutDelay(ctx, max(g.refusalLimiter.countRefusal("of "+r.Actor, actorLimit, now), g.refusalLimiter.countRefusal(r.Origin, originLimit, now)))
	return r.ID
}
