package door

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"time"

	"mcpproxy/internal/activity"
	"mcpproxy/internal/ask"
	"mcpproxy/internal/auth"
	"mcpproxy/internal/catalog"
	"mcpproxy/internal/config"
	"mcpproxy/internal/hold"
	"mcpproxy/internal/policy"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/session"
)

// Manner is how calls come in by one of the ways.
type Manner struct {
	Declares  bool // who calls names tools server:tool and can declare an intent; else by what a server calls them, and not
	Validates bool // the arguments are held to the tool's schema
	Cuts      bool // the result is cut to result_limit, and has to be one: no task, no question
}

// inquiry is what a person is asked about a call.
type inquiry struct {
	call   ask.Call
	rule   policy.AskedBy
	worst  policy.Operation // that the call counts as
	asks   string           // how the client itself is asked; "" where it is not
	form   json.RawMessage  // the answer in the place of one: the client is asked first
	record string           // of the call that is held; "" where it was held before
	pass   hold.Pass
}

// returned is what a client of the modern revision has sent with a call that it makes again,
// since it was asked something.
type returned struct {
	question string          // that it was asked
	answer   json.RawMessage // nil: none, or it was looked at
}

// way is what a request goes to: a server, or a client's session with it.
type way struct {
	server string
	session.Doer
	asks *session.Asks // nil without a session
}

// opener opens a client's session with a server.
type opener func(ctx context.Context, server string) (session.Session, error)

// call is one call on its way through the door, with what goes to the server in
// the same piece of memory.
type call struct {
	Manner
	door   *Door
	cfg    *config.Config
	caller auth.Caller
	asked  policy.Request
	strays []Stray
	limit  time.Duration // that its caller has set; 0: none
	way    way
	open   opener // opens its session; nil: it has what it needs

	tool      *catalog.Tool     // that was judged
	arguments policy.Arguments  // what they do; nothing where nobody has looked
	supposed  bool              // nobody has said with which arguments
	stateless bool              // its caller has no session
	selection *policy.Selection // what to show of the result; nil: as the configuration says
	handed    []handed          // results that are still to be put into the arguments
	recorded  json.RawMessage   // the arguments as the record has them; nil: as they are
	seen      func() []byte     // the arguments as a person sees them; nil: as they are
	// sensitivity is that of the results that were put in.
	sensitivity string
	status      policy.Status // that counted; Callable where it is not known which tool is meant
	fit         activity.Fit  // of the arguments; "" where they were not checked
	decision    policy.Decision
	started     time.Time
	waited      time.Duration // since then, for a place and for the server
	trace       Trace         // nil: nobody follows it
	record      activity.Record
	judged      activity.Decision // of the record
	again       atomic.Uint32     // the policy.Check that has refused it when it had waited
	inquiry     *inquiry          // nil: nobody has to be asked about it
	returned    *returned         // by a client that was asked; nil: nothing
	request     session.Request
	parts       session.Call // with the arguments; in the request where the call is our own

	id      string // of the record
	result  json.RawMessage
	isError bool
	handle  string // of a result that was cut
}

// longBegin is from when on the record of a call counts as a wait: then it is
// decided once more.
const longBegin = time.Millisecond

// through is the way of every call: decide, have a person asked, record, wait, ask, record.
func (d *Door) through(ctx context.Context, c *call, snapshot *catalog.Snapshot) (session.Reply, error) {
	d.anonymous.name(&c.caller)
	c.follow()
	p := d.decide(c, snapshot)
	if p == nil && c.handed != nil {
		if p = d.putIn(ctx, c); p != nil {
			c.decision.Check = policy.CheckResults
		} else {
			p = d.decide(c, snapshot)
		}
	}
	if p == nil {
		if p = d.admission.Load().full(c.asked.ID.Server); p != nil { // without this, each would be a record of a call
			c.decision.Check = policy.CheckPlace
		}
	}
	if p == nil {
		p = d.askPerson(ctx, c)
	}
	if p != nil {
		if c.inquiry == nil || c.inquiry.record == "" {
			c.id = d.refuse(ctx, c, p)
		} else { // it is on record already
			took := time.Since(c.started)
			c.observed(activity.Held, string(p.Code), took, took-c.waited)
		}
		if c.asksFirst() && p.Code == problem.ApprovalPending {
			return session.Reply{Result: c.inquiry.form}, nil
		}
		return session.Reply{}, p
	}
	d.describe(c, activity.ToolCall, policy.NoCheck)
	if err := d.Log.Begin(&c.record); err != nil {
		took := time.Since(c.started)
		c.observed(activity.Blocked, string(problem.From(err).Code), took, took)
		return session.Reply{}, err
	}
	c.id = c.record.ID
	outcome := activity.Outcome{Status: activity.Failed, ErrorCode: string(problem.Internal), ErrorMessage: "the call ended in a panic"}
	defer func() { d.end(c, &outcome) }()
	reply, err := d.ask(ctx, c)
	return reply, d.settle(ctx, c, &reply, err, &outcome)
}

// ask waits for a place and for the server's answer, within the time that the
// call has.
func (d *Door) ask(ctx context.Context, c *call) (session.Reply, error) {
	ctx, clock, end := session.StartClock(ctx, c.time())
	defer end()
	leave, waited, err := d.admission.Load().enter(ctx, c.asked.ID.Server)
	c.waited += waited
	if err != nil {
		return session.Reply{}, late(ctx, err)
	}
	defer leave()
	entered := time.Since(c.started)
	defer func() { c.waited += time.Since(c.started) - entered }()
	if waited > 0 || entered >= longBegin {
		err = c.recheck() // before a server that was locked gets a process
	}
	if err != nil {
		return session.Reply{}, late(ctx, err)
	}
	c.request.Judged = session.Judge(c.asked.ID.Tool, c.tool.Raw, c.recheck)
	reply, err := d.exchange(ctx, c, clock)
	if c.open != nil && session.NotSent(err) && ctx.Err() == nil {
		reply, err = d.exchange(ctx, c, clock) // the server has forgotten the session: once more in another one
	}
	return reply, late(ctx, err)
}

// exchange sends the call, in a session that is opened for it where it is to be made in one.
func (d *Door) exchange(ctx context.Context, c *call, clock *session.Clock) (session.Reply, error) {
	if c.open != nil {
		var err error
		if c.way, err = d.opened(ctx, c); err == nil {
			err = c.recheck()
		}
		if err != nil {
			return session.Reply{}, err
		}
	}
	defer c.way.asks.Time(clock)()
	own := c.request.Say
	say, done := c.way.asks.Noting(own)
	defer done()
	c.request.Say = say
	if c.trace != nil {
		c.asking()
		defer c.trace.Answered()
	}
	reply, err := c.way.Do(ctx, &c.request)
	c.request.Say = own
	return reply, err
}

// late makes the end of a context by its clock that of a time limit, where
// nobody has said yet what it means.
func late(ctx context.Context, err error) error {
	if _, said := errors.AsType[*problem.Problem](err); !said && errors.Is(err, context.Canceled) && session.TimeIsUp(ctx) {
		return context.DeadlineExceeded
	}
	return err
}
