package gate

import (
	"context"
	"encoding/json"
	"time"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// options are the properties of an entry: the call tools, one server, all servers, REST.
type options struct {
	Declares  bool // the caller names tools server:tool and can declare an intent; else it uses a server's own names
	Validates bool // the arguments are checked against the tool's schema
	Cuts      bool // the result is cut to result_limit, and must be a result: no task, no question
}

// call is one call as its client made it. The entry writes it; the stages only read it.
type call struct {
	options
	caller    auth.Caller
	stateless bool          // its client has no session
	limit     time.Duration // set by the caller; 0: none
	unknown   []UnknownArgument
	selection *policy.Selection // what to show of the result; nil: as the configuration says
	client    *session.Request  // the client's own request; nil where the caller is no client of MCP
	params    json.RawMessage   // of a request that is passed on, without what the client returned to the gate
	meta      json.RawMessage   // of a call by a calling tool
	say       func(session.Event)
	size      int // bytes of the request
	returned  returned
}

// returned is what a client of the modern protocol sent with a call that it repeats after it was
// asked something.
type returned struct {
	question string // "": it was not asked
	answer   json.RawMessage
}

// execution holds what the stages of one call returned, in one allocation. Each output is written
// once, where its stage ends; a stage gets the outputs that it reads.
type execution struct {
	call     call
	time     stopwatch
	trace    Trace     // nil: the call is not traced
	verdict  verdict   // of decide
	approval *approval // of approve; nil: none was needed
	audit    audit     // of begin or reject
	recheck  recheck
	outgoing outgoing // of send
}

// execute runs one call: decide, approve, begin the record, send, settle.
func (g *Gate) execute(ctx context.Context, x *execution, s subject, now *catalog.Snapshot, to target) (session.Reply, Result, error) {
	g.anonymous.name(&x.call.caller)
	x.trace = g.follow(&x.call, x.time.started)
	x.verdict, x.approval = g.admit(ctx, &x.call, s, now, &x.time)
	if x.verdict.Problem != nil {
		return g.reject(ctx, x)
	}
	if err := g.begin(x); err != nil {
		return session.Reply{}, Result{ActivityID: x.heldRecord()}, err
	}
	outcome := activity.Outcome{Status: activity.Failed, ErrorCode: string(problem.Internal), ErrorMessage: "the call ended in a panic"}
	defer func() { g.end(x, &outcome) }()
	reply, err := g.send(ctx, x, to)
	result, err := g.settle(ctx, x, reply, err, &outcome)
	return reply, result, err
}

// admit decides about a call and waits for its approval. The decision is made again when the
// results of earlier calls are known that the arguments name.
func (g *Gate) admit(ctx context.Context, c *call, s subject, now *catalog.Snapshot, t *stopwatch) (verdict, *approval) {
	v := g.decide(c, s, now)
	if v.Problem == nil && s.args.refs != nil {
		args, p := g.insertResults(ctx, c, &s)
		if s.args = args; p != nil {
			v.args = args
			return v.refused(policy.CheckResults, p), nil
		}
		v = g.decide(c, s, now)
	}
	if v.Problem != nil {
		return v, nil
	}
	if p := g.admission.Load().full(s.request.ID.Server); p != nil { // before the record of a call is written
		return v.refused(policy.CheckPlace, p), nil
	}
	return g.approve(ctx, c, v, t)
}

// stopwatch measures how long a call takes, and how much of that time it waits: for an approval,
// for a slot and for the server.
type stopwatch struct {
	started time.Time
	waited  time.Duration
}

// wait counts the time since began as waiting.
func (t *stopwatch) wait(began time.Time) { t.waited += time.Since(began) }

// read returns how long the call has taken, and its own part of that.
func (t *stopwatch) read() (took, own time.Duration) {
	took = time.Since(t.started)
	return took, took - t.waited
}
