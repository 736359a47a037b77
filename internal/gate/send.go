package gate

import (
	"context"
	"errors"
	"time"

	"mcpproxy/internal/config"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/problem"
)

// target receives a request: a server, or a client's session with it.
type target struct {
	server string
	session.Doer
	asks *session.ServerQuestions // nil without a session
	open opener                   // opens the client's session with the server; nil: the target needs none
}

// opener opens a client's session with a server.
type opener func(ctx context.Context, server string) (session.Session, error)

// outgoing is the request to a server.
type outgoing struct {
	session.Request
	parts session.ToolCall
}

// recheckAfter is the time until a slot above which a call is decided about again: the write of
// the record is part of it.
const recheckAfter = time.Millisecond

// send waits for a slot and a session, decides again after each wait, and sends the call with the
// proof of the decision. All of it is within the time limit of the call.
func (g *Gate) send(ctx context.Context, x *execution, to target) (session.Reply, error) {
	ctx, clock, end := session.StartDeadline(ctx, x.call.timeout(&x.verdict.subject))
	defer end()
	leave, waited, err := g.admission.Load().enter(ctx, x.verdict.request.ID.Server)
	x.time.waited += waited
	if err != nil {
		return session.Reply{}, timeoutErr(ctx, err)
	}
	defer leave()
	entered := time.Now()
	defer x.time.wait(entered)
	x.recheck.of(g, &x.call, &x.verdict, x.approval)
	if waited > 0 || entered.Sub(x.time.started) >= recheckAfter {
		err = x.recheck.run() // before a server that was locked gets a process
	}
	if err != nil {
		return session.Reply{}, timeoutErr(ctx, err)
	}
	x.outgoing.fill(&x.call, &x.verdict.subject)
	x.outgoing.Permit = session.NewPermit(x.verdict.request.ID.Tool, x.verdict.tool.Raw, x.recheck.run)
	reply, err := g.exchange(ctx, x, to, clock)
	if to.open != nil && session.IsNotSent(err) && ctx.Err() == nil {
		reply, err = g.exchange(ctx, x, to, clock) // the server has forgotten the session: once more, in a new one
	}
	return reply, timeoutErr(ctx, err)
}

// fill makes the request to the server: of the client's own, or of the parts of a call by a calling
// tool.
func (o *outgoing) fill(c *call, s *subject) {
	if !c.Declares {
		o.Request = *c.client
		o.Caller, o.Params = &c.caller, c.params
		return
	}
	o.parts = session.ToolCall{Tool: s.request.ID.Tool, Arguments: s.args.sent, Meta: c.meta}
	o.Request = session.Request{Method: mcp.CallTool, Call: &o.parts, Caller: &c.caller, Size: c.size, Say: c.say}
	if c.client != nil {
		o.Asker, o.Forms = c.client.Asker, c.client.Forms
	}
}

// exchange sends the request, in a session that it opens if the target needs one.
func (g *Gate) exchange(ctx context.Context, x *execution, to target, clock *session.Deadline) (session.Reply, error) {
	if to.open != nil {
		var err error
		if to, err = opened(ctx, to); err == nil {
			err = x.recheck.run()
		}
		if err != nil {
			return session.Reply{}, err
		}
	}
	defer to.asks.PauseWhileAsked(clock)()
	say, done := to.asks.TrackEvents(x.call.say)
	defer done()
	x.outgoing.Say = say
	if x.trace != nil {
		x.outgoing.setTraceParent(x.trace.Asking())
		defer x.trace.Answered()
	}
	return to.Do(ctx, &x.outgoing.Request)
}

// timeout is how long the call may take: as its caller asks for, if that is shorter than what the
// configuration allows.
func (c *call) timeout(s *subject) time.Duration {
	allowed := timeout(s.cfg, s.request.ID.Server)
	if c.limit > 0 && c.limit < allowed {
		return c.limit
	}
	return allowed
}

func timeout(cfg *config.Config, server string) time.Duration {
	if s := cfg.Server(server); s != nil && s.CallTimeout > 0 {
		return s.CallTimeout
	}
	return cfg.CallTimeout
}

// timeoutErr maps a cancellation by the clock of the call to context.DeadlineExceeded, unless the
// error is a problem already.
func timeoutErr(ctx context.Context, err error) error {
	if _, said := errors.AsType[*problem.Problem](err); !said && errors.Is(err, context.Canceled) && session.IsTimedOut(ctx) {
		return context.DeadlineExceeded
	}
	return err
}
