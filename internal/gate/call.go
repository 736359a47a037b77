package gate

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"time"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/config"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate/ask"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// options are the properties of an entry: the call tools, one server, all servers, REST.
type options struct {
	Declares  bool // who calls names tools server:tool and can declare an intent; else by what a server calls them, and not
	Validates bool // the arguments are held to the tool's schema
	Cuts      bool // the result is cut to result_limit, and has to be one: no task, no question
}

// pendingApproval is the approval that a call waits for.
type pendingApproval struct {
	call   ask.Call
	rule   policy.AskedBy
	worst  policy.Operation // that the call counts as
	asks   string           // how the client itself is asked; "" where it is not
	form   json.RawMessage  // the answer in the place of one: the client is asked first
	record string           // of the call that is held; "" where it was held before
	pass   ask.Pass
}

// returned is what a client of the modern revision has sent with a call that it makes again,
// since it was asked something.
type returned struct {
	question string          // that it was asked
	answer   json.RawMessage // nil: none, or it was looked at
}

// target receives a request: a server, or a client's session with it.
type target struct {
	server string
	session.Doer
	asks *session.Asks // nil without a session
}

// opener opens a client's session with a server.
type opener func(ctx context.Context, server string) (session.Session, error)

// call is the state of one call. The request to the server is part of it, so that a call takes one
// allocation.
type call struct {
	options
	gate          *Gate
	cfg           *config.Config
	caller        auth.Caller
	policyRequest policy.Request
	unknown       []UnknownArgument
	limit         time.Duration // that its caller has set; 0: none
	target        target
	openSession   opener // opens its session; nil: it has what it needs

	tool       *catalog.Tool     // that was judged
	arguments  policy.Arguments  // what they do; nothing where nobody has looked
	supposed   bool              // nobody has said with which arguments
	stateless  bool              // its caller has no session
	selection  *policy.Selection // what to show of the result; nil: as the configuration says
	resultRefs []resultRef       // results that are still to be put into the arguments
	recorded   json.RawMessage   // the arguments as the record has them; nil: as they are
	seen       func() []byte     // the arguments as a person sees them; nil: as they are
	// sensitivity is that of the results that were put in.
	sensitivity      string
	status           policy.Status // that counted; Callable where it is not known which tool is meant
	fit              activity.Fit  // of the arguments; "" where they were not checked
	decision         policy.Decision
	started          time.Time
	waited           time.Duration // since then, for a place and for the server
	trace            Trace         // nil: nobody follows it
	record           activity.Record
	recordedDecision activity.Decision // of the record
	failedRecheck    atomic.Uint32     // the policy.Check that has refused it when it had waited
	pending          *pendingApproval  // nil: nobody has to be asked about it
	returned         *returned         // by a client that was asked; nil: nothing
	request          session.Request
	parts            session.Call // with the arguments; in the request where the call is our own

	id      string // of the record
	result  json.RawMessage
	isError bool
	handle  string // of a result that was cut
}

// recheckAfter is the time until a slot above which a call is decided about again: the write of
// the record is part of it.
const recheckAfter = time.Millisecond

// execute runs one call: decide, approve, begin the record, send, settle.
func (g *Gate) execute(ctx context.Context, c *call, snapshot *catalog.Snapshot) (session.Reply, error) {
	g.anonymous.name(&c.caller)
	c.follow()
	if p := g.admit(ctx, c, snapshot); p != nil {
		return g.rejected(ctx, c, p)
	}
	if err := g.begin(c); err != nil {
		return session.Reply{}, err
	}
	outcome := activity.Outcome{Status: activity.Failed, ErrorCode: string(problem.Internal), ErrorMessage: "the call ended in a panic"}
	defer func() { g.end(c, &outcome) }()
	reply, err := g.send(ctx, c)
	return reply, g.settle(ctx, c, &reply, err, &outcome)
}

// admit decides about a call and waits for its approval. It returns nil if the call may be sent.
// The decision is made again when results of earlier calls are known that the arguments name.
func (g *Gate) admit(ctx context.Context, c *call, snapshot *catalog.Snapshot) *problem.Problem {
	if p := g.decide(c, snapshot); p != nil {
		return p
	}
	if c.resultRefs != nil {
		if p := g.insertResults(ctx, c); p != nil {
			c.decision.Check = policy.CheckResults
			return p
		}
		if p := g.decide(c, snapshot); p != nil {
			return p
		}
	}
	if p := g.admission.Load().full(c.policyRequest.ID.Server); p != nil { // before the record of a call is written
		c.decision.Check = policy.CheckPlace
		return p
	}
	return g.approve(ctx, c)
}

// rejected records a call that was not admitted, unless its wait for an approval is on record, and
// returns what its caller gets: the problem, or a form that the client shows.
func (g *Gate) rejected(ctx context.Context, c *call, p *problem.Problem) (session.Reply, error) {
	if c.pending == nil || c.pending.record == "" {
		c.id = g.refuse(ctx, c, p)
	} else {
		took := time.Since(c.started)
		c.observed(activity.Held, string(p.Code), took, took-c.waited)
	}
	if c.asksFirst() && p.Code == problem.ApprovalPending {
		return session.Reply{Result: c.pending.form}, nil
	}
	return session.Reply{}, p
}

// begin writes the record of a call to the spool. Without it the call is not sent.
func (g *Gate) begin(c *call) error {
	g.describe(c, activity.ToolCall, policy.NoCheck)
	if err := g.Log.Begin(&c.record); err != nil {
		took := time.Since(c.started)
		c.observed(activity.Blocked, string(problem.From(err).Code), took, took)
		return err
	}
	c.id = c.record.ID
	return nil
}

// send waits for a slot and a session, decides again after each wait, and sends the call with the
// proof of the decision. All of it is within the time limit of the call.
func (g *Gate) send(ctx context.Context, c *call) (session.Reply, error) {
	ctx, clock, end := session.StartDeadline(ctx, c.time())
	defer end()
	leave, waited, err := g.admission.Load().enter(ctx, c.policyRequest.ID.Server)
	c.waited += waited
	if err != nil {
		return session.Reply{}, timeoutErr(ctx, err)
	}
	defer leave()
	entered := time.Since(c.started)
	defer func() { c.waited += time.Since(c.started) - entered }()
	if waited > 0 || entered >= recheckAfter {
		err = c.recheck() // before a server that was locked gets a process
	}
	if err != nil {
		return session.Reply{}, timeoutErr(ctx, err)
	}
	c.request.Permit = session.NewPermit(c.policyRequest.ID.Tool, c.tool.Raw, c.recheck)
	reply, err := g.exchange(ctx, c, clock)
	if c.openSession != nil && session.NotSent(err) && ctx.Err() == nil {
		reply, err = g.exchange(ctx, c, clock) // the server has forgotten the session: once more, in a new one
	}
	return reply, timeoutErr(ctx, err)
}

// exchange sends the call, in a session that it opens if the call needs one.
func (g *Gate) exchange(ctx context.Context, c *call, clock *session.Deadline) (session.Reply, error) {
	if c.openSession != nil {
		var err error
		if c.target, err = g.opened(ctx, c); err == nil {
			err = c.recheck()
		}
		if err != nil {
			return session.Reply{}, err
		}
	}
	defer c.target.asks.Pausing(clock)()
	own := c.request.Say
	say, done := c.target.asks.Tracking(own)
	defer done()
	c.request.Say = say
	if c.trace != nil {
		c.asking()
		defer c.trace.Answered()
	}
	reply, err := c.target.Do(ctx, &c.request)
	c.request.Say = own
	return reply, err
}

// timeoutErr maps a cancellation by the clock of the call to context.DeadlineExceeded, unless the
// error is a problem already.
func timeoutErr(ctx context.Context, err error) error {
	if _, said := errors.AsType[*problem.Problem](err); !said && errors.Is(err, context.Canceled) && session.TimedOut(ctx) {
		return context.DeadlineExceeded
	}
	return err
}
