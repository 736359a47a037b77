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

// failingAfter is how long all calls must fail before a server is no longer ready.
const failingAfter = time.Minute

// callFailures records since when all calls of a server have failed, across its connections. The zero value means that
// calls work.
type callFailures struct {
	mu    sync.Mutex // guards the fields below
	since time.Time  // first failure after the last success; zero: the last call succeeded
	why   error      // the last failure, once they have lasted for failingAfter
}

// recordCall records the outcome of a call and reports whether the server has started or
// stopped failing.
func (f *callFailures) recordCall(now time.Time, err error) (changed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	failed := f.why != nil
	switch {
	case err == nil:
		f.since, f.why = time.Time{}, nil
	case f.since.IsZero():
		f.since = now
	case now.Sub(f.since) >= failingAfter:
		f.why = err
	}
	return failed != (f.why != nil)
}

// failingCause returns the reason why the server counts as failed, or nil.
func (f *callFailures) failingCause() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.why
}

// clearFailures clears the failures for a new start of the server.
func (f *callFailures) clearFailures() { f.recordCall(time.Now(), nil) }

// errInconclusive is an outcome that does not show whether the server works.
var errInconclusive = problem.TrustedTextErrorf("the outcome does not show whether the server works")

// serverFaultOf returns the error of a call if the server caused it, or nil on success. A result with isError is an
// answer of the tool, and the caller causes an error about the parameters.
func serverFaultOf(ctx context.Context, reply session.Reply, err error) error {
	switch {
	case err != nil && ctx.Err() != nil && !session.IsTimedOut(ctx):
		return errInconclusive // canceled by the caller
	case err != nil:
		if p, ok := err.(*problem.Problem); ok && p.Cause == nil {
			return errInconclusive
		}
		return err
	case reply.Error == nil:
		return nil
	}
	switch reply.Error.Code {
	case wirejson.CodeInvalidParams, wirejson.CodeMethodNotFound, codeURLElicitation:
		return errInconclusive
	}
	return &transport.ServerRPCError{Code: reply.Error.Code}
}

// codeURLElicitation asks the client to open a URL. It is not a failure.
const codeURLElicitation = -32042
