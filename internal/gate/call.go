package gate

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate/pause"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/result"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// callOptions are the properties of an entry point: the call tools, one server, all servers, REST.
type callOptions struct {
	DeclaresIntent     bool // the caller uses names server:tool and can declare an intent; otherwise it uses a server's own names
	ValidatesArguments bool // the arguments are checked against the tool's schema
	CutsResult         bool // the result is cut to result_limit; tasks and questions are not allowed as results
}

// call is one call as its client made it. The entry point writes it; the stages only read it.
type call struct {
	callOptions
	caller    auth.Caller
	stateless bool          // the client has no session
	limit     time.Duration // time limit set by the caller; 0: none
	unknown   []UnknownArgument
	selection *result.Expression // selection from the result; nil: as configured
	client    *session.Request   // the client's own request; nil if the caller is no MCP client
	params    json.RawMessage    // params of a forwarded request, without the answer for the gate
	meta      json.RawMessage    // _meta of a lane call
	say       func(session.Event)
	size      int // bytes of the request
	returned  returnedAnswer
}

// returnedAnswer is the data that a client of the modern protocol sends with a repeated call after the gate has asked
// it for an approval.
type returnedAnswer struct {
	question string // ID of the question; "" if the client was not asked
	answer   json.RawMessage
}

// execution contains the outputs of the stages of one call, in one allocation. Each output is written once, at the
// end of its stage. A stage receives the outputs that it reads.
type execution struct {
	call     call
	time     stopwatch
	trace    CallTrace        // nil if the call is not traced
	verdict  verdict          // output of decideAndApprove
	approval *approvalOutcome // output of awaitApproval; nil if no approval was needed
	audit    callRecord       // output of beginRecord or rejectCall
	recheck  rechecker
	outgoing outgoingRequest // output of send
	sent     bool            // the request may have reached its server
}

// execute runs one call: pass the kill switch, decide, approve, begin the record, send, settle.
func (g *Gate) execute(ctx context.Context, x *execution, s resolvedCall, now *catalog.Snapshot, to requestTarget) (session.Reply, CallResult, error) {
	g.sessionless.assignSessionID(&x.call.caller)
	x.trace = g.startTrace(&x.call, x.time.started)
	ctx, ticket, paused := g.Pause.Enter(ctx)
	defer ticket.Leave()
	if paused != nil {
		x.verdict = g.decide(&x.call, s, now).withRefusal(policy.CheckPause, paused) // decide returns the facts for the record
	} else {
		x.verdict, x.approval = g.decideAndApprove(ctx, &x.call, s, now, &x.time)
		x.refuseIfPaused(ctx)
	}
	if x.verdict.Problem != nil {
		return g.rejectCall(ctx, x)
	}
	if err := g.beginRecord(x); err != nil {
		return session.Reply{}, CallResult{ActivityID: x.heldRecordID()}, err
	}
	outcome := activity.Outcome{Status: activity.Failed, ErrorCode: string(problem.Internal), ErrorMessage: "the call ended in a panic"}
	defer func() { g.endRecord(x, &outcome) }()
	reply, err := g.sendOrAwaitLogin(ctx, x, to)
	result, err := g.settleOutcome(ctx, x, reply, err, &outcome)
	return reply, result, err
}

// refuseIfPaused refuses a call that a pause has stopped while it waited for an approval or a login.
func (x *execution) refuseIfPaused(ctx context.Context) {
	stopped := pause.Stopped(ctx)
	if stopped == nil {
		return
	}
	x.verdict = x.verdict.withRefusal(policy.CheckPause, x.pausedProblem(stopped))
	if a := x.approval; a != nil { // the refusal gets a record of its own
		a.pass.Record, a.recordID = cmp.Or(a.pass.Record, a.recordID), ""
	}
}

// pausedProblem returns the problem of a call that a pause has stopped.
func (x *execution) pausedProblem(stopped *pause.State) *problem.Problem {
	name := problem.ClipName(x.verdict.request.Name)
	if x.sent {
		return stopped.Problem("Calls were paused while '" + name + "' ran, and MCPProxy cancelled it. It may have taken effect.")
	}
	return stopped.Problem("Calls were paused before '" + name + "' was called. The call was not sent.")
}

// decideAndApprove decides about a call and waits for its approval. It decides again after
// insertResults.
func (g *Gate) decideAndApprove(ctx context.Context, c *call, s resolvedCall, now *catalog.Snapshot, t *stopwatch) (verdict, *approvalOutcome) {
	v := g.decide(c, s, now)
	if v.Problem != nil && v.Problem.Code == problem.LoginNeeded {
		v = g.decideAfterLogin(ctx, c, v, t)
		s, now = v.resolvedCall, g.Catalog.Current()
	}
	if v.Problem == nil && s.args.refs != nil {
		args, p := g.insertResults(ctx, c, &s)
		if s.args = args; p != nil {
			v.args = args
			return v.withRefusal(policy.CheckResults, p), nil
		}
		v = g.decide(c, s, now)
	}
	if v.Problem != nil {
		return v, nil
	}
	if p := g.concurrency.Load().queueFullProblem(s.request.ID.Server); p != nil { // before a record is written
		return v.withRefusal(policy.CheckQueue, p), nil
	}
	return g.awaitApproval(ctx, c, v, t)
}

// stopwatch measures how long a call takes, and how much of that time it waits: for an approval, for a
// slot and for the server.
type stopwatch struct {
	started time.Time
	waited  time.Duration
}

// addWaitSince counts the time since began as waiting.
func (t *stopwatch) addWaitSince(began time.Time) { t.waited += time.Since(began) }

// elapsed returns how long the call has taken, and the part without waiting.
func (t *stopwatch) elapsed() (took, own time.Duration) {
	took = time.Since(t.started)
	return took, took - t.waited
}
