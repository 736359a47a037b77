package upstream

import (
	"context"
	"sync"
	"time"

	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/transport"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
)

// failingTime is for how long every call has to fail until a server is not ready any more.
const failingTime = time.Minute

// failing knows since when every call of a server has failed, over all its connections.
// The zero value is a server that works.
type failing struct {
	mu    sync.Mutex // guards what follows
	since time.Time  // of the first failure after the last success; zero: the last call succeeded
	why   error      // the last failure, once they have lasted for failingTime
}

// note takes the outcome of a call and reports whether the server has become one that fails every
// call, or one that works again.
func (f *failing) note(now time.Time, err error) (changed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	failed := f.why != nil
	switch {
	case err == nil:
		f.since, f.why = time.Time{}, nil
	case f.since.IsZero():
		f.since = now
	case now.Sub(f.since) >= failingTime:
		f.why = err
	}
	return failed != (f.why != nil)
}

// cause returns why the server counts as failed, nil when it does not.
func (f *failing) cause() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.why
}

// forgive forgets the failures: the server is started anew.
func (f *failing) forgive() { f.note(time.Now(), nil) }

// errNoVerdict is the outcome of a call that says nothing about the server.
var errNoVerdict = problem.Ownf("the outcome says nothing about the server")

// callFailure returns why a call has failed where the server is to blame: nil when it worked. A
// result with isError is an answer of the tool, and an error about the parameters one about the caller.
func callFailure(ctx context.Context, reply session.Reply, err error) error {
	switch {
	case err != nil && ctx.Err() != nil && !session.TimedOut(ctx):
		return errNoVerdict // the caller has given up
	case err != nil:
		if p, ok := err.(*problem.Problem); ok && p.Cause == nil {
			return errNoVerdict
		}
		return err
	case reply.Error == nil:
		return nil
	}
	switch reply.Error.Code {
	case wirejson.CodeInvalidParams, wirejson.CodeMethodNotFound, codeURLElicitation:
		return errNoVerdict
	}
	return &transport.AnswerError{Code: reply.Error.Code}
}

// codeURLElicitation asks the client to open an address: no failure.
const codeURLElicitation = -32042
