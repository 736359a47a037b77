package session

import (
	"context"
	"encoding/json"
	"errors"
)

// ErrOver is what requests fail with in a session that has ended: the client
// has to begin a new one.
var ErrOver = errors.New("the session with the server has ended")

// NotSentError is the error of a request that the server has certainly not
// acted on: it can be sent again.
type NotSentError struct{ Cause error }

func (e *NotSentError) Error() string { return e.Cause.Error() }
func (e *NotSentError) Unwrap() error { return e.Cause }

// NotSent reports whether the request that err is of can be sent again.
func NotSent(err error) bool {
	_, ok := errors.AsType[*NotSentError](err)
	return ok
}

// Cancelled is the cause with which a client ends its own request, by
// notifications/cancelled. The server gets the same params.
type Cancelled struct{ Params json.RawMessage }

func (*Cancelled) Error() string { return "the client cancelled the request" }

// TimeIsUp reports whether ctx has ended because a clock or a time limit ran
// out.
func TimeIsUp(ctx context.Context) bool {
	return errors.Is(context.Cause(ctx), context.DeadlineExceeded)
}
