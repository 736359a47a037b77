package upstream

import (
	"context"
	"errors"
	"time"

	"mcpproxy/internal/problem"
)

// maxSends is how often a call may be sent, when it is certain that the server
// has not acted on the one before.
const maxSends = 2

// Call calls one tool of one server. It waits for a server that is away, and
// gets it reconnected at once. Its errors are problems, or ctx.Err() when the
// caller has cancelled.
func (s *Set) Call(ctx context.Context, server string, c Call) (Reply, error) {
	sv := s.await(ctx, server)
	if sv == nil {
		return Reply{}, notStarted(server)
	}
	sv.enter()
	defer sv.leave()
	reached := false // the server has seen the call, and refused it
	for sends := 1; ; sends++ {
		waited := sv.live.Load() == nil || sends > 1
		l, err := sv.ready(ctx)
		if err != nil {
			return Reply{}, sv.explain(ctx, &c, err, reached)
		}
		if waited && c.Check != nil {
			if err := c.Check(); err != nil {
				return Reply{}, err
			}
		}
		if c.Listed != nil && !l.stillLists(&c) {
			return Reply{}, sv.changedTool(&c)
		}
		sharer := c.sharer()
		switch {
		case c.Passed == nil && l.forOthers(c.Tool):
			return Reply{}, sv.forOthers(&c)
		case sharer != nil && sharer.cause() != nil:
			return Reply{}, sv.over(c.Passed.Conversation)
		case c.Passed != nil && sharer == nil:
			return s.passCall(ctx, sv, l, &c)
		}
		reply, err := s.send(ctx, l, &c)
		if err == nil {
			return reply, nil
		}
		gone := errors.Is(err, errSessionGone)
		reached = reached || gone
		if !gone && !unsent(err) || ctx.Err() != nil || sends == maxSends {
			return Reply{}, sv.explain(ctx, &c, err, reached)
		}
	}
}

// sharer is the place on the connection that all share of the client whose call
// is passed on there; nil for all other calls.
func (c *Call) sharer() *sharedLink {
	if c.Passed == nil {
		return nil
	}
	return c.Passed.Conversation.sharer()
}

// send makes the request and sends it on l.
func (s *Set) send(ctx context.Context, l *liveLink, c *Call) (Reply, error) {
	if sharer := c.sharer(); sharer != nil {
		return sharer.passShared(ctx, l, &c.Passed.Request)
	}
	buf := s.bufs.get()
	defer s.bufs.put(buf)
	r := &request{id: s.ids.Add(1), notify: c.Notify, cancelable: true}
	if l.modern() {
		if err := s.modernize(r, c); err != nil {
			return Reply{}, &unsentError{err}
		}
	}
	r.msg, r.token = appendCall((*buf)[:0], r.id, c)
	*buf = r.msg
	return l.link.roundTrip(ctx, r)
}

// awayError says that a server could not be reached within the time or try
// that a call has.
type awayError struct {
	state State
	last  error // what state.LastError says
}

func (e *awayError) Error() string { return "the server is " + string(e.state.Phase) }

// ready gives the live link. Without one it has a connection made at once, and
// waits for it: until it is there, or a try has failed, or ctx or the time to
// connect ends.
func (s *server) ready(ctx context.Context) (*liveLink, error) {
	if l := s.live.Load(); l != nil && l.link.cause() == nil {
		return l, nil
	}
	limit := time.NewTimer(s.connectTime())
	defer limit.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiters++
	defer func() { s.waiters-- }()
	for failures := s.failures; ; {
		if l := s.live.Load(); l != nil && l.link.cause() == nil {
			return l, nil
		}
		if s.failures != failures {
			return nil, &awayError{s.failed, s.lastErr}
		}
		if s.ended() {
			return nil, &awayError{s.state, s.lastErr}
		}
		changed := s.changed
		s.mu.Unlock()
		signal(s.nudge)
		var err error
		select {
		case <-changed:
		case <-s.done:
		case <-ctx.Done():
			err = ctx.Err()
		case <-limit.C:
			err = errSlow
		}
		s.mu.Lock()
		if err == errSlow {
			err = &awayError{s.state, s.lastErr}
		}
		if err != nil {
			return nil, err
		}
	}
}

var errSlow = errors.New("it took too long")

// away gives the state as an error.
func (s *server) away() *awayError {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &awayError{s.state, s.lastErr}
}

// ended says whether run has ended.
func (s *server) ended() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

const mayHaveRun = "The call may have been carried out: check before you try again."

// explain makes the problem of a failed call; reached says that the server has
// seen it.
func (s *server) explain(ctx context.Context, c *Call, err error, reached bool) error {
	var (
		away   *awayError
		status *statusError
	)
	err = s.mask.err(err)
	isAway := errors.As(err, &away)
	switch {
	case ctx.Err() != nil && !TimeIsUp(ctx):
		return ctx.Err()
	case ctx.Err() != nil && s.live.Load() == nil:
		isAway, away = true, s.away()
	case ctx.Err() != nil:
		return s.problem(problem.Timeout, c, "Server '"+s.spec.Name+"' did not answer '"+c.Tool+"' in time", err).
			WithHint(mayHaveRun + " If the tool needs long, raise call_timeout.")
	}
	if !isAway && unsent(err) {
		isAway, away = true, s.away()
		away.state.LastError = err.Error()
	}
	if isAway {
		p := s.unavailable(away, err)
		if reached {
			p.Hint = mayHaveRun + " See mcpproxy upstream logs " + s.spec.Name + "."
		}
		if errors.As(away.last, &status) {
			s.askLogin(p, status)
		}
		return p
	}
	p := s.problem(problem.UpstreamError, c, "The call of '"+c.Tool+"' on server '"+s.spec.Name+"' failed: "+err.Error(), err).
		WithHint(mayHaveRun)
	if errors.As(err, &status) {
		p.With("http_status", status.status)
		p.Hint = "See mcpproxy upstream logs " + s.spec.Name + "."
		s.askLogin(p, status)
	}
	if errors.Is(err, errTooLarge) {
		p.Hint = mayHaveRun + " Ask the tool for less at once."
	}
	return p
}

// askLogin turns p into a call for a login when that is what the status means.
func (s *server) askLogin(p *problem.Problem, status *statusError) {
	if status.wantsLogin() {
		p.Code, p.Hint = problem.LoginNeeded, "Log in with `mcpproxy upstream login "+s.spec.Name+"`, or check the server's headers in the configuration."
	}
}

func (s *server) problem(code problem.Code, c *Call, message string, err error) *problem.Problem {
	return problem.New(code, message, "").With("server", s.spec.Name).With("tool", c.Tool).Because(err)
}

// changedTool refuses a call of a tool that the server now lists as another
// one, or not at all.
func (s *server) changedTool(c *Call) *problem.Problem {
	return s.problem(problem.ServerUnavailable, c, "Server '"+s.spec.Name+"' has just changed the definition of '"+c.Tool+
		"', so the call was not sent", nil).
		WithHint("Look at the tool again, then call again.").With("changed", true)
}

// forOthers refuses a call of our own of a tool that the server has for clients
// that it can ask something.
func (s *server) forOthers(c *Call) *problem.Problem {
	return s.problem(problem.ServerUnavailable, c, "Server '"+s.spec.Name+"' has '"+c.Tool+"' only for clients that it can ask something, so the call was not sent", nil).
		WithHint("A client that can be asked (sampling, elicitation, roots) calls it on /mcp/servers/" + s.spec.Name + ".")
}

// unavailable says in which state a server is that cannot take a call, and why.
func (s *server) unavailable(away *awayError, err error) *problem.Problem {
	st := away.state
	message := "Server '" + s.spec.Name + "' is not available (" + string(st.Phase) + ")"
	if st.LastError != "" {
		message += ": " + st.LastError
	}
	p := problem.New(problem.ServerUnavailable, message,
		"The call was not sent. Try again in a moment; if it stays so, see mcpproxy upstream logs "+s.spec.Name+".").
		With("server", s.spec.Name).With("state", string(st.Phase)).Because(err)
	if st.LastError != "" {
		p.With("last_error", st.LastError)
	}
	if !st.RetryAt.IsZero() {
		p.With("retry_at", st.RetryAt.UTC().Format(time.RFC3339))
	}
	return p
}
