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

// SurfaceRefusal is a call that a surface has refused before the gate: it names no tool, or cannot be
// parsed.
type SurfaceRefusal struct {
	Caller auth.Caller
	// Server and Tool are those of the request, as far as they are known.
	Server, Tool string
	CallTool     policy.CallToolVariant // of the call, if Tool does not name it
	Action       string                 // of a built-in tool, or the method
	Detail       string                 // the object of the request, if it is no tool
	Arguments    json.RawMessage        // nil if they may contain a secret that cannot be masked
	RequestBytes int
	Problem      *problem.Problem
}

// RecordRefusal records a refusal of a surface and returns the ID of the record. It returns when the
// client may get its answer: see refusalLimiter.
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

// policyCheckForCode returns the check that a surface has made, by the code of its refusal; NoCheck for
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
	case problem.InvalidName, problem.Conflict: // a name that is taken
		return policy.CheckName
	}
	return policy.NoCheck
}

// RecordRefusedToolCall records the refusal of a client's tools/call. server is "" if unknown.
func (g *Gate) RecordRefusedToolCall(ctx context.Context, server string, r *session.Request, p *problem.Problem) {
	name, _ := wirejson.String(wirejson.Find(r.Params, "name"))
	g.RecordRefusal(ctx, SurfaceRefusal{Caller: *r.Caller, Server: server, Tool: name, Arguments: wirejson.Find(r.Params, "arguments"), RequestBytes: r.Size, Problem: p})
}

// writeRefusalThrottled writes the record of a refusal and waits for the delay of its answer. If the
// record cannot be written, the call is refused all the same.
func (g *Gate) writeRefusalThrottled(ctx context.Context, r *activity.Record) string {
	if err := g.Log.AppendRefusal(r); err != nil {
		g.Logger.Error("a refusal could not be recorded", "code", r.Metadata.ErrorCode, "error", err)
		r.ID = ""
	}
	now := time.Now()
	g.refusalLimiter.waitOutDelay(ctx, max(g.refusalLimiter.countRefusal("of "+r.Actor, actorLimit, now), g.refusalLimiter.countRefusal(r.Origin, originLimit, now)))
	return r.ID
}
