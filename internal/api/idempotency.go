package api

import (
	"context"
	"crypto/sha256"
	"errors"
	"sync"
	"time"

	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/problem"
)

// Limits of the stored answers.
const (
	maxRepeatKey   = 255      // length of a key in bytes
	maxRepeatKeys  = 1_000    // number of stored calls
	maxRepeatBytes = 16 << 20 // total size of the stored answers
	repeatLifetime = 24 * time.Hour
)

// idempotentCalls stores the answers of calls with an Idempotency-Key, so that a repeated call is not sent twice. The
// answers are stored in memory only, so a restart loses them. The zero value is empty.
type idempotentCalls struct {
	mu    sync.Mutex // guards the fields below
	kept  map[idempotencyKey]*idempotentCall
	order []idempotencyKey // in order of arrival, oldest first
	bytes int              // total size of the stored answers
}

// idempotencyKey includes the scope of the caller, so that a caller whose scope has changed does not get the stored
// answer.
type idempotencyKey struct {
	caller string
	within auth.ScopeKey
	key    string
}

// idempotentCall is one call and its answer.
type idempotentCall struct {
	body  [sha256.Size]byte
	begun time.Time
	done  chan struct{} // closed when the call has ended and the fields below are set

	answer  any
	err     error
	size    int
	record  string // the record's id
	dropped bool   // the answer was dropped to save memory
}

// checkIdempotencyKey validates an Idempotency-Key.
func checkIdempotencyKey(key string) error {
	sound := len(key) <= maxRepeatKey
	for i := range len(key) {
		sound = sound && key[i] >= ' ' && key[i] <= '~'
	}
	if !sound {
		return problem.Newf(problem.InvalidParameter, "The Idempotency-Key is longer than %d characters, or has characters that are not printable ASCII.", maxRepeatKey).
			WithHint("Send a new UUID for each call.").With("parameter", "Idempotency-Key")
	}
	return nil
}

// callOnce returns the answer of the first call with this key and body. It waits if that call is still running, and
// runs do if there was no such call. The call continues when the client disconnects, because a retry needs its answer.
func (r *idempotentCalls) callOnce(ctx context.Context, key idempotencyKey, body [sha256.Size]byte, do func(context.Context) (any, error)) (any, error) {
	one, first, err := r.findOrAddCall(key, body, time.Now())
	switch {
	case err != nil:
		return nil, err
	case !first:
		select {
		case <-one.done:
		case <-ctx.Done():
			return nil, problem.New(problem.Interrupted, "The caller disconnected before the first call with this Idempotency-Key ended.", "Repeat the request with the same key.").Because(ctx.Err())
		}
		return one.answer, one.err
	}
	ended := false
	defer func() {
		if !ended { // a panic: the outcome is unknown
			one.err = problem.From(errors.New("the call ended in a panic"))
			r.storeAnswer(key, one)
		}
	}()
	detached, cancel := detachFromClient(ctx)
	defer cancel()
	one.answer, one.err = do(detached)
	ended = true
	r.storeAnswer(key, one)
	return one.answer, one.err
}

// detachFromClient returns a context that is not canceled when the client disconnects. It is canceled when the program
// stops, which sets another cause.
func detachFromClient(ctx context.Context) (context.Context, context.CancelFunc) {
	detached, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
			cancel(cause)
		}
	})
	return detached, func() { stop(); cancel(nil) }
}

// findOrAddCall returns the call with this key. It adds one if there is none, and then first is true.
func (r *idempotentCalls) findOrAddCall(key idempotencyKey, body [sha256.Size]byte, now time.Time) (one *idempotentCall, first bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dropExpired(now)
	if one = r.kept[key]; one != nil {
		return one, false, one.checkRepeat(body)
	}
	if len(r.kept) >= maxRepeatKeys && !r.dropOldest() {
		return nil, false, problem.Newf(problem.Overloaded, "%d calls with an Idempotency-Key are running, which is the limit.", maxRepeatKeys).
			WithHint("Try again with the same key in a moment.")
	}
	if r.kept == nil {
		r.kept = map[idempotencyKey]*idempotentCall{}
	}
	one = &idempotentCall{body: body, begun: now, done: make(chan struct{})}
	r.kept[key], r.order = one, append(r.order, key)
	return one, true, nil
}

// checkRepeat returns an error if a call with the same key has another body, or if the answer of this call was dropped.
func (one *idempotentCall) checkRepeat(body [sha256.Size]byte) error {
	switch {
	case one.body != body:
		return problem.New(problem.Conflict, "This Idempotency-Key was already used for a call with a different body.",
			"Send a new key for a new call, and the same body, byte for byte, with the same key.").With("parameter", "Idempotency-Key")
	case one.dropped:
		return &recordedError{problem.New(problem.Conflict, "The call with this Idempotency-Key was made, but its response is no longer stored.",
			"See the activity record of the call. The call is not repeated.").With("parameter", "Idempotency-Key"), one.record}
	}
	return nil
}

// storeAnswer stores the answer of a call. It removes a call that reached no server, so that the client can retry it
// with the same key.
func (r *idempotentCalls) storeAnswer(key idempotencyKey, one *idempotentCall) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer close(one.done)
	if one.err != nil && !mayHaveReachedServer(one.err) {
		r.removeCall(key)
		return
	}
	if call, ok := one.answer.(interface{ recordID() string }); ok {
		one.record = call.recordID()
	}
	if call, ok := one.answer.(interface{ answerSize() int }); ok {
		one.size = call.answerSize()
	}
	r.bytes += one.size
	for _, oldest := range r.order {
		if r.bytes <= maxRepeatBytes {
			break
		}
		if other := r.kept[oldest]; other.size > 0 {
			r.bytes -= other.size
			r.kept[oldest] = &idempotentCall{body: other.body, begun: other.begun, done: other.done, record: other.record, dropped: true}
		}
	}
}

// mayHaveReachedServer reports whether a failed call may have reached its server.
func mayHaveReachedServer(err error) bool {
	switch problem.From(err).Code {
	case problem.UpstreamError, problem.Timeout, problem.Interrupted, problem.Internal:
		return true
	}
	return false
}

// dropExpired removes calls that are older than repeatLifetime.
func (r *idempotentCalls) dropExpired(now time.Time) {
	for len(r.order) > 0 && now.Sub(r.kept[r.order[0]].begun) > repeatLifetime && r.dropOldest() {
	}
}

// dropOldest removes the oldest ended call, and reports whether there was one.
func (r *idempotentCalls) dropOldest() bool {
	for _, key := range r.order {
		select {
		case <-r.kept[key].done:
			r.removeCall(key)
			return true
		default:
		}
	}
	return false
}

func (r *idempotentCalls) removeCall(key idempotencyKey) {
	r.bytes -= r.kept[key].size
	delete(r.kept, key)
	for i, other := range r.order {
		if other == key {
			r.order = append(r.order[:i], r.order[i+1:]...)
			break
		}
	}
}
