package transport

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/problem"
)

// The errors of connections and requests.
var (
	ErrStopped     = problem.TrustedTextErrorf("MCPProxy ended the connection")
	ErrSessionGone = problem.TrustedTextErrorf("the server has ended the session")
	ErrNoAnswer    = problem.TrustedTextErrorf("the answer ended before the response")
	ErrNoMessage   = problem.TrustedTextErrorf("the answer is not a JSON-RPC message")
	errWrongID     = problem.TrustedTextErrorf("the server answered another request")
)

// IsRetryableSessionLoss reports whether err means that the server has lost the session and has not executed the
// request. In that case, the request may be sent again in a new session.
func IsRetryableSessionLoss(err error) bool {
	_, lost := errors.AsType[*ConnectionLostError](err)
	_, gone := errors.AsType[*sessionGoneError](err)
	return gone && !lost
}

// newContentTypeError returns the error for a response with a Content-Type that cannot contain a message.
func newContentTypeError(status int) error {
	return &contentTypeError{problem.TrustedTextErrorf("the answer (status %d) is neither JSON nor an event stream", status)}
}

type contentTypeError struct{ error }

func (e *contentTypeError) Unwrap() error { return e.error }

// ConnectionLostError is the error for a request whose connection was lost. The request may have been executed.
type ConnectionLostError struct{ Reason error }

func (e *ConnectionLostError) Error() string {
	return fmt.Sprintf("the connection was lost: %v", e.Reason)
}
func (e *ConnectionLostError) Unwrap() error { return e.Reason }

// newNotSentError wraps an error that occurred before the server could execute the request.
func newNotSentError(err error) error { return &session.NotSentError{Cause: err} }

// StatusError is an HTTP error status.
type StatusError struct {
	Status    int
	challenge string
	location  string
}

// newStatusError returns the status of a response as an error.
func newStatusError(a *HTTPResponse) *StatusError {
	return &StatusError{Status: a.Status, challenge: a.Challenge, location: a.Location}
}

func (e *StatusError) Error() string {
	switch e.Status {
	case http.StatusUnauthorized:
		return "the server asks for a login (401)"
	case http.StatusForbidden:
		return "the server refuses access (403)"
	}
	if e.location != "" && e.Status < 400 {
		return fmt.Sprintf("the server redirects to another place (%d)", e.Status)
	}
	return fmt.Sprintf("the server answered with HTTP status %d %s", e.Status, http.StatusText(e.Status))
}

// WantsLogin reports whether a login may help.
func (e *StatusError) WantsLogin() bool {
	return e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden && strings.Contains(e.challenge, "insufficient_scope")
}

// Temporary reports whether the same request may succeed later.
func (e *StatusError) Temporary() bool {
	return e.Status >= 500 || e.Status == http.StatusTooManyRequests || e.Status == http.StatusRequestTimeout
}

// sessionGoneError is a refusal because the session is lost. The server has not executed the request.
type sessionGoneError struct{ refusal error }

func (e *sessionGoneError) Error() string        { return ErrSessionGone.Error() }
func (e *sessionGoneError) Is(target error) bool { return target == ErrSessionGone }
func (e *sessionGoneError) Unwrap() error        { return e.refusal }
