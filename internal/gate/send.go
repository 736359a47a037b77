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

// requestTarget receives a request: a server, or a client's session with it.
type requestTarget struct {
	server string
	session.Doer
	asks *session.ServerQuestionTracker // nil if there is no session
	open sessionOpener                  // opens the client's session with the server; nil if the target needs none
}

// sessionOpener opens a client's session with a server.
type sessionOpener func(ctx context.Context, server string) (session.Session, error)

// outgoingRequest is the request to a server.
type outgoingRequest struct {
	session.Request
	parts session.ToolCall
}

// recheckAfter is the time until a slot, including the write of the record, above which the gate decides about the
// call again.
const recheckAfter = time.Millisecond

// send waits for a slot and a session, decides again after each wait, and sends the call with the proof of the
// decision. The time limit of the call covers all of this.
func (g *Gate) send(ctx context.Context, x *execution, to requestTarget) (session.Reply, error) {
	ctx, clock, end := session.StartPausableDeadline(ctx, x.call.effectiveTimeout(&x.verdict.resolvedCall))
	defer end()
	leave, waited, err := g.concurrency.Load().acquireSlots(ctx, x.verdict.request.ID.Server)
	x.time.waited += waited
	if err != nil {
		return session.Reply{}, toTimeoutError(ctx, err)
	}
	defer leave()
	entered := time.Now()
	defer x.time.addWaitSince(entered)
	x.recheck.initFor(g, &x.call, &x.verdict, x.approval)
	if waited > 0 || entered.Sub(x.time.started) >= recheckAfter {
		err = x.recheck.decideAgain() // before a process is started for a server that may be locked
	}
	if err != nil {
		return session.Reply{}, toTimeoutError(ctx, err)
	}
	x.outgoing.setRequest(&x.call, &x.verdict.resolvedCall)
	x.outgoing.Permit = session.NewToolCallPermit(x.verdict.request.ID.Tool, x.verdict.tool.Raw, x.recheck.decideAgain)
	reply, err := g.sendOnce(ctx, x, to, clock)
	if to.open != nil && session.IsNotSent(err) && ctx.Err() == nil {
		reply, err = g.sendOnce(ctx, x, to, clock) // the server has lost the session: retry once in a new one
	}
	return reply, toTimeoutError(ctx, err)
}

// setRequest sets the request to the server: the client's request, or one built from a lane call.
func (o *outgoingRequest) setRequest(c *call, s *resolvedCall) {
	if !c.DeclaresIntent {
		o.Request = *c.client
		o.Caller, o.Params = &c.caller, c.params
		return
	}
	o.parts = session.ToolCall{Tool: s.request.ID.Tool, Arguments: s.args.sent, Meta: c.meta}
	o.Request = session.Request{Method: mcp.CallTool, Call: &o.parts, Caller: &c.caller, Size: c.size, Say: c.say}
	if c.client != nil {
		o.Asker, o.Forms, o.Apps = c.client.Asker, c.client.Forms, c.client.Apps
	}
}

// sendOnce sends the request, in a session that it opens if the target needs one.
func (g *Gate) sendOnce(ctx context.Context, x *execution, to requestTarget, clock *session.PausableDeadline) (session.Reply, error) {
	if to.open != nil {
		var err error
		if to, err = openTargetSession(ctx, to); err == nil {
			err = x.recheck.decideAgain()
		}
		if err != nil {
			return session.Reply{}, err
		}
	}
	defer to.asks.PauseWhileAsked(clock)()
	say, done := to.asks.WrapToTrackQuestions(x.call.say)
	defer done()
	x.outgoing.Say = say
	if x.trace != nil {
		x.outgoing.setTraceParent(x.trace.BeforeSend())
		defer x.trace.AfterAnswer()
	}
	x.sent = true
	return to.Do(ctx, &x.outgoing.Request)
}

// effectiveTimeout returns the time limit of the call: the caller's limit if it is shorter than the configured one.
func (c *call) effectiveTimeout(s *resolvedCall) time.Duration {
	allowed := configuredTimeout(s.cfg, s.request.ID.Server)
	if c.limit > 0 && c.limit < allowed {
		return c.limit
	}
	return allowed
}

// configuredTimeout returns the time limit for calls to a server.
func configuredTimeout(cfg *config.Config, server string) time.Duration {
	if s := cfg.Server(server); s != nil && s.CallTimeout > 0 {
		return s.CallTimeout
	}
	return cfg.CallTimeout
}

// toTimeoutError maps a cancellation by the clock of the call to context.DeadlineExceeded, unless the
// error is a problem already.
func toTimeoutError(ctx context.Context, err error) error {
	if _, said := errors.AsType[*problem.Problem](err); !said && errors.Is(err, context.Canceled) && session.IsTimedOut(ctx) {
		return context.DeadlineExceeded
	}
	return err
}
