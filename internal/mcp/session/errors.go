package session

import (
	"context"
	"encoding/json"
	"errors"
)

// ErrEnded is the error for a request in a session that has ended. The client must open a new session.
var ErrEnded = errors.New("the session with the server has ended")

// ErrMoved is the cause with which a session ends that continues after it is reopened: with the same server, but no
// longer on a shared connection. No request was in flight.
var ErrMoved = errors.New("the client gets a session of its own with the server")

// IsMoved reports whether s has ended with ErrMoved.
func IsMoved(s Session) bool {
	m, ok := s.(interface{ IsMoved() bool })
	return ok && m.IsMoved()
}

// NotSentError is the error for a request that the server has certainly not executed. It can be sent again.
type NotSentError struct{ Cause error }

func (e *NotSentError) Error() string { return e.Cause.Error() }
func (e *NotSentError) Unwrap() error { return e.Cause }

// IsNotSent reports whether the request that failed with err can be sent again.
func IsNotSent(err error) bool {
	_, ok := errors.AsType[*NotSentError](err)
	return ok
}

// ClientCancelledError is the cause with which a client cancels its own request by notifications/cancelled. The
// server gets the same params.
type ClientCancelledError struct{ Params json.RawMessage }

func (*ClientCancelledError) Error() string { return "the client cancelled the request" }

// IsTimedOut reports whether a deadline or a time limit ended ctx.
func IsTimedOut(ctx context.Context) bool {
	return errors.Is(context.Cause(ctx), context.DeadlineExceeded)
}
