package upstream

import (
	"context"
	"errors"
	"time"

	"mcpproxy/internal/link"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/rawjson"
	"mcpproxy/internal/session"
	"mcpproxy/internal/wire"
)

// maxSends is how often a request may be sent, when it is certain that the
// server has not acted on the one before.
const maxSends = 2

// call sends a call of a tool that was decided about. c is the client's own
// session; nil for requests that stand for themselves. It waits for a server that
// is away, and gets it reconnected at once. Its errors are problems, or ctx.Err()
// when the caller has cancelled.
func (s *Set) call(ctx context.Context, server string, c *Conversation, r *session.Request) (session.Reply, error) {
	if !r.Judged.Allows(toolOf(r)) {
		return session.Reply{}, pastTheDoor()
	}
	sv := s.await(ctx, server)
	if sv == nil {
		return session.Reply{}, notStarted(server)
	}
	sv.enter()
	defer sv.leave()
	reached := false // the server has seen the call, and refused it
	for sends := 1; ; sends++ {
		l, waited, err := sv.current(ctx, r)
		if err != nil {
			return session.Reply{}, sv.explain(ctx, r, err, reached)
		}
		if waited || sends > 1 {
			if err := r.Judged.Recheck(); err != nil {
				return session.Reply{}, err
			}
		}
		if !l.stillLists(r) {
			return session.Reply{}, sv.changedTool(r)
		}
		var reply session.Reply
		switch sharer := c.sharer(); {
		case r.Call != nil && l.forOthers(r.Call.Tool):
			return session.Reply{}, sv.forOthers(r)
		case sharer != nil && sharer.Cause() != nil:
			return session.Reply{}, sv.over(c)
		case r.Call == nil && sharer == nil:
			return s.passCall(ctx, sv, l, c, r)
		case sharer != nil:
			reply, err = sharer.passShared(ctx, l, r)
		default:
			reply, err = l.link.Do(ctx, r)
		}
		if err == nil {
			return reply, nil
		}
		gone := errors.Is(err, link.ErrSessionGone)
		reached = reached || gone
		if !gone && !session.NotSent(err) || ctx.Err() != nil || sends == maxSends {
			return session.Reply{}, sv.explain(ctx, r, err, reached)
		}
	}
}

// toolOf returns the tool that a tools/call names, as its server does.
func toolOf(r *session.Request) string {
	if r.Call != nil {
		return r.Call.Tool
	}
	name, _ := rawjson.String(rawjson.Find(r.Params, "name"))
	return name
}

// subject is what messages about a request name.
func subject(r *session.Request) string {
	if r.Method == mcp.CallTool {
		return r.Judged.Tool()
	}
	return r.Method
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
	if l := s.live.Load(); l.usable() {
		return l, nil
	}
	limit := time.NewTimer(s.connectTime())
	defer limit.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiters++
	defer func() { s.waiters-- }()
	for failures := s.failures; ; {
		if l := s.live.Load(); l.usable() {
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

var errSlow = problem.Ownf("it took too long")

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
func (s *server) explain(ctx context.Context, r *session.Request, err error, reached bool) error {
	var (
		away   *awayError
		status *link.StatusError
	)
	err = s.mask.Err(err)
	isAway := errors.As(err, &away)
	switch {
	case ctx.Err() != nil && !session.TimeIsUp(ctx):
		return ctx.Err()
	case errors.Is(err, errUnlisted):
		return s.unlistedTools(r, reached)
	case ctx.Err() != nil && s.live.Load() == nil:
		isAway, away = true, s.away()
	case ctx.Err() != nil:
		return s.problem(problem.Timeout, r, "Server '"+s.spec.Name+"' did not answer '"+subject(r)+"' in time", err).
			WithHint(mayHaveRun + " If the tool needs long, raise call_timeout.")
	}
	if !isAway && session.NotSent(err) {
		isAway, away = true, s.away()
		away.state.Failure = failureOf(err).masked(s.mask)
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
	p := s.problem(problem.UpstreamError, r, "The call of '"+subject(r)+"' on server '"+s.spec.Name+"' failed: "+failureOf(err).masked(s.mask).Said, err).
		WithHint(mayHaveRun)
	if errors.As(err, &status) {
		p.With("http_status", status.Status)
		p.Hint = "See mcpproxy upstream logs " + s.spec.Name + "."
		s.askLogin(p, status)
	}
	if errors.Is(err, wire.ErrTooLarge) {
		p.Hint = mayHaveRun + " Ask the tool for less at once."
	}
	return p
}

// askLogin turns p into a call for a login when that is what the status means.
func (s *server) askLogin(p *problem.Problem, status *link.StatusError) {
	if status.WantsLogin() {
		p.Code, p.Hint = problem.LoginNeeded, "Log in with `mcpproxy upstream login "+s.spec.Name+"`, or check the server's headers in the configuration."
	}
}

func (s *server) problem(code problem.Code, r *session.Request, message string, err error) *problem.Problem {
	return problem.New(code, message, "").With("server", s.spec.Name).With("tool", subject(r)).Because(err)
}

// changedTool refuses a call of a tool that the server now lists as another
// one, or not at all.
func (s *server) changedTool(r *session.Request) *problem.Problem {
	return s.problem(problem.ServerUnavailable, r, "Server '"+s.spec.Name+"' has just changed the definition of '"+subject(r)+
		"', so the call was not sent", nil).
		WithHint("Look at the tool again, then call again.").With("changed", true)
}

// unlistedTools refuses a call to a server that has announced other tools and has
// not listed them in the time that the call has.
func (s *server) unlistedTools(r *session.Request, reached bool) *problem.Problem {
	p := s.problem(problem.ServerUnavailable, r, "Server '"+s.spec.Name+
		"' has announced that its tools have changed and has not listed them yet, so the call of '"+subject(r)+"' was not sent", nil).
		WithHint("Try again in a moment; if it stays so, see mcpproxy upstream logs "+s.spec.Name+".").With("changed", true)
	if reached {
		p.Hint = mayHaveRun + " See mcpproxy upstream logs " + s.spec.Name + "."
	}
	return p
}

// forOthers refuses a call of our own of a tool that the server has for clients
// that it can ask something.
func (s *server) forOthers(r *session.Request) *problem.Problem {
	return s.problem(problem.ServerUnavailable, r, "Server '"+s.spec.Name+"' has '"+subject(r)+"' only for clients that it can ask something, so the call was not sent", nil).
		WithHint("A client that can be asked (sampling, elicitation, roots) calls it on /mcp/servers/" + s.spec.Name + ".")
}

// awayFor is a server that cannot be reached for the reason err.
func (s *server) awayFor(err error) *awayError {
	return &awayError{state: State{Name: s.spec.Name, Phase: Failed, Failure: failureOf(err).masked(s.mask)}, last: err}
}

// unavailable says in which state a server is that cannot take a call, and why.
func (s *server) unavailable(away *awayError, err error) *problem.Problem {
	st := away.state
	message := "Server '" + s.spec.Name + "' is not available (" + string(st.Phase) + ")"
	if doing := s.progress(st).String(); doing != "" {
		message += ": " + doing
	} else if st.Failure.Code != "" {
		message += ": " + st.Failure.Said
	}
	p := problem.New(problem.ServerUnavailable, message,
		"The call was not sent. Try again in a moment; if it stays so, see mcpproxy upstream logs "+s.spec.Name+".").
		With("server", s.spec.Name).With("state", string(st.Phase)).Because(err)
	if st.Failure.Code != "" {
		p.With("last_error", st.Failure.String())
	}
	if !st.RetryAt.IsZero() {
		p.With("retry_at", st.RetryAt.UTC().Format(time.RFC3339))
	}
	return p
}
