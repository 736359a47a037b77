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
	"mcpproxy/internal/upstream/oauth"
)

const mayHaveRun = "The call may have been carried out: check before you try again."

var (
	errRestart = problem.TrustedTextErrorf("it is being restarted")
	errIdle    = errors.New("it was not used for idle_timeout")
)

// toolOrMethodName returns the name of a request in messages: the tool or the method.
func toolOrMethodName(r *session.Request) string {
	if r.Method == mcp.CallTool {
		return r.Permit.ToolName()
	}
	return r.Method
}

// NotStartedError is the problem of a request to a server that is not enabled.
func NotStartedError(server string) *problem.Problem {
	return problem.Newf(problem.ServerUnavailable, "Server '%s' is not started", server).
		WithHint("Enable the server, or add it to the configuration.").
		With("server", server).With("state", string(Stopped))
}

// approvalsUnreadError is the problem of a request while the approvals cannot be read
// from the database.
func approvalsUnreadError(server string) *problem.Problem {
	return problem.Newf(problem.ServerUnavailable, "Server '%s' is not started yet: which servers may be started is still being read", server).
		WithHint("Try again; if the problem persists, `mcpproxy doctor` shows what is wrong with the database.").
		With("server", server).With("state", string(Stopped))
}

// UnpermittedCallError rejects a tool call without a permit. It also rejects notifications, because some servers act on
// them.
func UnpermittedCallError() *problem.Problem {
	return problem.New(problem.InvalidRequest, "tools/call must be a request of its own", "Send it with an id.")
}

// ToProblem converts the error of a failed request into a problem, unless it already is one. If the caller has
// canceled, it returns ctx.Err().
func (b *serverBase) ToProblem(ctx context.Context, r *session.Request, err error) error {
	if p, ok := err.(*problem.Problem); ok {
		return p
	}
	var (
		away   *unavailableError
		status *transport.StatusError
	)
	err = b.mask.MaskError(err)
	isAway := errors.As(err, &away)
	switch {
	case ctx.Err() != nil && !session.IsTimedOut(ctx):
		return ctx.Err()
	case errors.Is(err, ErrUnlisted):
		return b.staleToolListError(r)
	case ctx.Err() != nil && b.availability.live.Load() == nil:
		isAway, away = true, b.availability.newUnavailableError()
	case ctx.Err() != nil:
		return b.newProblem(problem.Timeout, r, "Server '"+b.Spec.Name+"' did not answer '"+toolOrMethodName(r)+"' in time", err).
			WithHint(mayHaveRun + " If the tool needs more time, increase call_timeout.")
	}
	if !isAway && session.IsNotSent(err) {
		isAway, away = true, b.availability.newUnavailableError()
		away.state.Failure = b.classifyFailure(err)
	}
	if isAway {
		p := b.unavailableProblem(away, err)
		if errors.As(away.last, &status) {
			b.changeToLoginNeeded(p, status)
		}
		return p
	}
	p := b.newProblem(problem.UpstreamError, r, "The call of '"+toolOrMethodName(r)+"' on server '"+b.Spec.Name+"' failed: "+b.classifyFailure(err).Said, err).
		WithHint(mayHaveRun)
	if errors.As(err, &status) {
		p.With("http_status", status.Status)
		p.Hint = b.logsHint()
		b.changeToLoginNeeded(p, status)
	}
	if errors.Is(err, transport.ErrTooLarge) {
		p.Hint = mayHaveRun + " Ask the tool for less at once."
	}
	return p
}

// classifyFailure classifies an error.
func (b *serverBase) classifyFailure(err error) transport.ServerFailure {
	return transport.ClassifyFailure(err).WithMaskedCredentials(b.mask)
}

func (b *serverBase) logsHint() string { return "See mcpproxy upstream logs " + b.Spec.Name + "." }

// changeToLoginNeeded changes p to LOGIN_NEEDED if the HTTP status requires a login.
func (b *serverBase) changeToLoginNeeded(p *problem.Problem, status *transport.StatusError) {
	if status.WantsLogin() {
		p.Code, p.Hint = problem.LoginNeeded, "Ask the user to log in with `mcpproxy login "+b.Spec.Name+"`, then call again. If the configuration sets the server's headers, check them."
	}
}

func (b *serverBase) newProblem(code problem.Code, r *session.Request, message string, err error) *problem.Problem {
	return problem.New(code, message, "").With("server", b.Spec.Name).With("tool", toolOrMethodName(r)).Because(err)
}

// ToolChangedError rejects a call of a tool whose definition has changed or was removed.
func (b *serverBase) ToolChangedError(r *session.Request) *problem.Problem {
	return b.newProblem(problem.ServerUnavailable, r, "Server '"+b.Spec.Name+"' has just changed the definition of '"+toolOrMethodName(r)+
		"', so the call was not sent", nil).
		WithHint("Read the definition of the tool again, then repeat the call.").With("changed", true)
}

// staleToolListError rejects a call to a server that announced changed tools and did not list them in time.
func (b *serverBase) staleToolListError(r *session.Request) *problem.Problem {
	return b.newProblem(problem.ServerUnavailable, r, "Server '"+b.Spec.Name+
		"' has announced that its tools have changed and has not listed them yet, so the call of '"+toolOrMethodName(r)+"' was not sent", nil).
		WithHint("Try again in a moment. If the problem persists, see mcpproxy upstream logs "+b.Spec.Name+".").With("changed", true)
}

// clientOnlyToolError rejects a call by MCPProxy itself of a tool that the server lists only
// to clients.
func (b *serverBase) clientOnlyToolError(r *session.Request) *problem.Problem {
	return b.newProblem(problem.ServerUnavailable, r, "Server '"+b.Spec.Name+"' has '"+toolOrMethodName(r)+"' only for clients that support sampling, elicitation or roots, so the call was not sent", nil).
		WithHint("Use a client that supports sampling, elicitation or roots, at /mcp/servers/" + b.Spec.Name + ".")
}

// UnreachableError is the problem when no session can be opened. err is the cause of why.
func (b *serverBase) UnreachableError(why, err error) *problem.Problem {
	return b.unavailableProblem(&unavailableError{state: State{Name: b.Spec.Name, Phase: Failed, Failure: b.classifyFailure(why)}, last: why}, err)
}

// unavailableProblem reports the state of an unavailable server and its reason.
func (b *serverBase) unavailableProblem(away *unavailableError, err error) *problem.Problem {
	st := away.state
	message := "Server '" + b.Spec.Name + "' is not available (" + string(st.Phase) + ")"
	if doing := b.startProgress(&st).String(); doing != "" {
		message += ": " + doing
	} else if st.Failure.Code != "" {
		message += ": " + st.Failure.Said
	}
	p := problem.New(problem.ServerUnavailable, message,
		"The call was not sent. Try again in a moment. If the problem persists, see mcpproxy upstream logs "+b.Spec.Name+".").
		With("server", b.Spec.Name).With("state", string(st.Phase)).Because(err)
	if st.Failure.Code != "" {
		p.With("last_error", st.Failure.String())
	}
	if st.Failure.Code == LoginNotRenewed {
		p.With("login", string(oauth.LoginRetrying)).Hint = "The call was not sent. Try again in a moment. If the problem persists, ask the user to log in again with `mcpproxy login " + b.Spec.Name + "`."
	}
	if !st.RetryAt.IsZero() {
		p.With("retry_at", st.RetryAt.UTC().Format(time.RFC3339))
	}
	return p
}

// SessionEndedError reports that a client's session has ended, and why.
func (b *serverBase) SessionEndedError(cause error) *problem.Problem {
	cause = b.mask.MaskError(cause)
	return problem.Newf(problem.UpstreamError, "The session with server '%s' has ended: %v", b.Spec.Name, cause).
		WithHint("A call may have been carried out: check before you try again. The client must open a new session.").
		With("server", b.Spec.Name).Because(fmt.Errorf("%w: %w", session.ErrEnded, cause))
}

// SessionEndedBeforeSendError is like SessionEndedError, for a request that the server has not run. The client can send
// it again.
func (b *serverBase) SessionEndedBeforeSendError(cause error) *problem.Problem {
	p := b.SessionEndedError(cause)
	p.Hint = "The request was not carried out. The client must open a new session."
	return p.Because(&session.NotSentError{Cause: p.Cause})
}

// MessageNotAcceptedError is the problem when the server did not accept a notification or
// response.
func (b *serverBase) MessageNotAcceptedError(what string, err error) *problem.Problem {
	err = b.mask.MaskError(err)
	p := problem.Newf(problem.UpstreamError, "Server '%s' did not take %s: %v", b.Spec.Name, what, err).
		With("server", b.Spec.Name).Because(err)
	if status, ok := errors.AsType[*transport.StatusError](err); ok {
		p.With("http_status", status.Status)
	}
	return p
}
