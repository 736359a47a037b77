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

// Refusal is a call that a surface has refused by itself: what was asked for is
// no tool, or cannot be read.
type Refusal struct {
	Caller auth.Caller
	// Server and Tool are what was asked for, as far as that can be told.
	Server, Tool string
	Variant      policy.Variant  // the lane that was used, where it is known and Tool does not name it
	Action       string          // of a built-in tool that has several, or the method
	Detail       string          // what it was about, where that is no tool
	Arguments    json.RawMessage // nil where they may hold a secret in no form that can be masked
	RequestBytes int
	Problem      *problem.Problem
}

// Refuse records a refusal of a surface and returns the id of the record. It
// returns when the client may have its answer: see paces.
func (g *Gate) Refuse(ctx context.Context, r Refusal) string {
	g.anonymous.name(&r.Caller)
	record := activity.Record{
		ServerName: problem.ClipName(r.Server), ToolName: problem.ClipName(r.Tool), Arguments: r.Arguments, RequestBytes: int64(r.RequestBytes), ErrorMessage: r.Problem.Message,
		Metadata: activity.Metadata{ErrorCode: string(r.Problem.Code), Action: problem.ClipName(r.Action), Detail: r.Detail,
			Decision: &activity.Decision{Outcome: activity.Refused, Check: checkOf(r.Problem.Code).String(), ConfigRevision: g.Config().Revision()}},
	}
	variant := r.Variant
	if v, ok := policy.ParseVariant(r.Tool); ok && r.Server == "" {
		variant = v
	}
	if variant != policy.NoVariant {
		record.Metadata.Intent = &activity.Intent{OperationType: variant.Operation().String()}
	}
	record.By(&r.Caller)
	id := g.keep(ctx, &record)
	if g.Observer != nil {
		g.Observer.Ended(CallStats{Server: g.known(r.Server), Status: activity.Blocked, Code: string(r.Problem.Code), Record: id}, nil)
	}
	return id
}

// checkOf returns the check that a surface has made by itself, by the code of its
// refusal; none where the code is not one of a check.
func checkOf(code problem.Code) policy.Check {
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

// Refused is Refuse for a client's tools/call. server is whose tool it is, ""
// where nobody knows.
func (g *Gate) Refused(ctx context.Context, server string, r *session.Request, p *problem.Problem) {
	name, _ := wirejson.String(wirejson.Find(r.Params, "name"))
	g.Refuse(ctx, Refusal{Caller: *r.Caller, Server: server, Tool: name, Arguments: wirejson.Find(r.Params, "arguments"), RequestBytes: r.Size, Problem: p})
}

// keep puts a refusal on record. A refusal that cannot be recorded is a
// refusal all the same.
func (g *Gate) keep(ctx context.Context, r *activity.Record) string {
	if err := g.Log.Refuse(r); err != nil {
		g.Logger.Error("a refusal could not be recorded", "code", r.Metadata.ErrorCode, "error", err)
		r.ID = ""
	}
	now := time.Now()
	g.rateLimits.wait(ctx, max(g.rateLimits.take("of "+r.Actor, actorLimit, now), g.rateLimits.take(r.Origin, originLimit, now)))
	return r.ID
}
