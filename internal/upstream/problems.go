package upstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/transport"
	"mcpproxy/internal/problem"
)

const mayHaveRun = "The call may have been carried out: check before you try again."

var (
	errRestart = problem.Ownf("it is being restarted")
	errIdle    = errors.New("it was not used for idle_timeout")
)

// subject returns what messages about a request name.
func subject(r *session.Request) string {
	if r.Method == mcp.CallTool {
		return r.Permit.Tool()
	}
	return r.Method
}

// NotStarted is the problem of a request to a server that is not wanted.
func NotStarted(server string) *problem.Problem {
	return problem.Newf(problem.ServerUnavailable, "Server '%s' is not started", server).
		WithHint("Enable the server, or add it to the configuration.").
		With("server", server).With("state", string(Stopped))
}

// notKnownYet is the problem of a request to a server while it is not known which ones are
// wanted: the database that says so cannot be read.
func notKnownYet(server string) *problem.Problem {
	return problem.Newf(problem.ServerUnavailable, "Server '%s' is not started yet: which servers may be started is still being read", server).
		WithHint("Try again; if that lasts, `mcpproxy doctor` says what is wrong with the database.").
		With("server", server).With("state", string(Stopped))
}

// Unjudged refuses a call of a tool that comes without the proof that it was
// decided about. A notification is one, too: some servers act on it.
func Unjudged() *problem.Problem {
	return problem.New(problem.InvalidRequest, "tools/call must be a request of its own", "Send it with an id.")
}

// Explain makes the problem of a failed request, unless err is one; it returns
// ctx.Err() when its caller has given up.
func (b *base) Explain(ctx context.Context, r *session.Request, err error) error {
	if p, ok := err.(*problem.Problem); ok {
		return p
	}
	var (
		away   *awayError
		status *transport.StatusError
	)
	err = b.mask.Err(err)
	isAway := errors.As(err, &away)
	switch {
	case ctx.Err() != nil && !session.TimedOut(ctx):
		return ctx.Err()
	case errors.Is(err, ErrUnlisted):
		return b.unlisted(r)
	case ctx.Err() != nil && b.availability.live.Load() == nil:
		isAway, away = true, b.availability.away()
	case ctx.Err() != nil:
		return b.problem(problem.Timeout, r, "Server '"+b.Spec.Name+"' did not answer '"+subject(r)+"' in time", err).
			WithHint(mayHaveRun + " If the tool needs long, raise call_timeout.")
	}
	if !isAway && session.NotSent(err) {
		isAway, away = true, b.availability.away()
		away.state.Failure = b.failure(err)
	}
	if isAway {
		p := b.unavailable(away, err)
		if errors.As(away.last, &status) {
			b.askLogin(p, status)
		}
		return p
	}
	p := b.problem(problem.UpstreamError, r, "The call of '"+subject(r)+"' on server '"+b.Spec.Name+"' failed: "+b.failure(err).Said, err).
		WithHint(mayHaveRun)
	if errors.As(err, &status) {
		p.With("http_status", status.Status)
		p.Hint = b.seeLogs()
		b.askLogin(p, status)
	}
	if errors.Is(err, transport.ErrTooLarge) {
		p.Hint = mayHaveRun + " Ask the tool for less at once."
	}
	return p
}

// failure returns what went wrong.
func (b *base) failure(err error) transport.Failure { return transport.FailureOf(err).Masked(b.mask) }

func (b *base) seeLogs() string { return "See mcpproxy upstream logs " + b.Spec.Name + "." }

// askLogin turns p into a call for a login when that is what the status means.
func (b *base) askLogin(p *problem.Problem, status *transport.StatusError) {
	if status.WantsLogin() {
		p.Code, p.Hint = problem.LoginNeeded, "Log in with `mcpproxy upstream login "+b.Spec.Name+"`, or check the server's headers in the configuration."
	}
}

func (b *base) problem(code problem.Code, r *session.Request, message string, err error) *problem.Problem {
	return problem.New(code, message, "").With("server", b.Spec.Name).With("tool", subject(r)).Because(err)
}

// Changed refuses a call of a tool that the server now lists as another one, or
// not at all.
func (b *base) Changed(r *session.Request) *problem.Problem {
	return b.problem(problem.ServerUnavailable, r, "Server '"+b.Spec.Name+"' has just changed the definition of '"+subject(r)+
		"', so the call was not sent", nil).
		WithHint("Look at the tool again, then call again.").With("changed", true)
}

// unlisted refuses a call to a server that has announced other tools and has not
// listed them in the time that the call has.
func (b *base) unlisted(r *session.Request) *problem.Problem {
	return b.problem(problem.ServerUnavailable, r, "Server '"+b.Spec.Name+
		"' has announced that its tools have changed and has not listed them yet, so the call of '"+subject(r)+"' was not sent", nil).
		WithHint("Try again in a moment; if it stays so, see mcpproxy upstream logs "+b.Spec.Name+".").With("changed", true)
}

// forOthers refuses a call of our own of a tool that the server has for clients
// that it can ask something.
func (b *base) forOthers(r *session.Request) *problem.Problem {
	return b.problem(problem.ServerUnavailable, r, "Server '"+b.Spec.Name+"' has '"+subject(r)+"' only for clients that it can ask something, so the call was not sent", nil).
		WithHint("A client that can be asked (sampling, elicitation, roots) calls it on /mcp/servers/" + b.Spec.Name + ".")
}

// Unreachable is the problem of a server to which no session can be opened for
// the reason why; err is what that comes from.
func (b *base) Unreachable(why, err error) *problem.Problem {
	return b.unavailable(&awayError{state: State{Name: b.Spec.Name, Phase: Failed, Failure: b.failure(why)}, last: why}, err)
}

// unavailable says in which state a server is that cannot take a call, and why.
func (b *base) unavailable(away *awayError, err error) *problem.Problem {
	st := away.state
	message := "Server '" + b.Spec.Name + "' is not available (" + string(st.Phase) + ")"
	if doing := b.progress(&st).String(); doing != "" {
		message += ": " + doing
	} else if st.Failure.Code != "" {
		message += ": " + st.Failure.Said
	}
	p := problem.New(problem.ServerUnavailable, message,
		"The call was not sent. Try again in a moment; if it stays so, see mcpproxy upstream logs "+b.Spec.Name+".").
		With("server", b.Spec.Name).With("state", string(st.Phase)).Because(err)
	if st.Failure.Code != "" {
		p.With("last_error", st.Failure.String())
	}
	if !st.RetryAt.IsZero() {
		p.With("retry_at", st.RetryAt.UTC().Format(time.RFC3339))
	}
	return p
}

// Over says that a client's session has ended, and why.
func (b *base) Over(cause error) *problem.Problem {
	cause = b.mask.Err(cause)
	return problem.Newf(problem.UpstreamError, "The session with server '%s' has ended: %v", b.Spec.Name, cause).
		WithHint("A call may have been carried out: check before you try again. The client has to begin a new session.").
		With("server", b.Spec.Name).Because(fmt.Errorf("%w: %w", session.ErrEnded, cause))
}

// OverUnsent is Over for a request that the server has not run: it can be sent again.
func (b *base) OverUnsent(cause error) *problem.Problem {
	p := b.Over(cause)
	p.Hint = "The request was not carried out. The client has to begin a new session."
	return p.Because(&session.NotSentError{Cause: p.Cause})
}

// NotTaken is the problem of something that is no request and that the server
// did not take.
func (b *base) NotTaken(what string, err error) *problem.Problem {
	err = b.mask.Err(err)
	p := problem.Newf(problem.UpstreamError, "Server '%s' did not take %s: %v", b.Spec.Name, what, err).
		With("server", b.Spec.Name).Because(err)
	if status, ok := errors.AsType[*transport.StatusError](err); ok {
		p.With("http_status", status.Status)
	}
	return p
}
