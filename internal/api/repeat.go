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

// The bounds of what is kept of calls with a key.
const (
	maxRepeatKey   = 255      // characters of a key
	maxRepeatKeys  = 1_000    // calls
	maxRepeatBytes = 16 << 20 // of their answers
	repeatTime     = 24 * time.Hour
)

// repeats keeps the answers of calls that were made with an Idempotency-Key, so
// that the same call made again is not made twice. They are in memory alone: a
// restart forgets them. The zero value keeps nothing yet.
type repeats struct {
	mu    sync.Mutex // guards what follows
	kept  map[repeatKey]*repeat
	order []repeatKey // the oldest first
	bytes int         // of the answers
}

// repeatKey is whose key it is, and what they might reach when they used it: an
// answer is for nobody who may reach less now.
type repeatKey struct {
	caller string
	within auth.ScopeKey
	key    string
}

// repeat is one call, and its answer.
type repeat struct {
	body  [sha256.Size]byte
	begun time.Time
	done  chan struct{} // closed when the call has ended; then what follows is there

	answer any
	err    error
	size   int
	record string // the record of the call
	gone   bool   // the answer was too much to keep
}

// checkRepeatKey refuses what is no key.
func checkRepeatKey(key string) error {
	sound := len(key) <= maxRepeatKey
	for i := range len(key) {
		sound = sound && key[i] >= ' ' && key[i] <= '~'
	}
	if !sound {
		return problem.Newf(problem.InvalidParameter, "The Idempotency-Key is longer than %d characters, or has others than printable ones of ASCII.", maxRepeatKey).
			WithHint("Send a new UUID for each call.").With("parameter", "Idempotency-Key")
	}
	return nil
}

// call returns the answer of the first call with this key and this body, which it
// makes by do if there was none. One that is still running is waited for. The call
// goes on when who asked leaves, since who asks again wants its answer.
func (r *repeats) call(ctx context.Context, key repeatKey, body [sha256.Size]byte, do func(context.Context) (any, error)) (any, error) {
	one, first, err := r.begin(key, body, time.Now())
	switch {
	case err != nil:
		return nil, err
	case !first:
		select {
		case <-one.done:
		case <-ctx.Done():
			return nil, problem.New(problem.Interrupted, "The caller left before the first call with this Idempotency-Key had ended.", "Ask again with the same key.").Because(ctx.Err())
		}
		return one.answer, one.err
	}
	ended := false
	defer func() {
		if !ended { // a panic: what has happened is not known
			one.err = problem.From(errors.New("the call ended in a panic"))
			r.end(key, one)
		}
	}()
	detached, cancel := outlive(ctx)
	defer cancel()
	one.answer, one.err = do(detached)
	ended = true
	r.end(key, one)
	return one.answer, one.err
}

// outlive returns a context that does not end when the caller leaves, but when the
// program stops: that has a cause of its own.
func outlive(ctx context.Context) (context.Context, context.CancelFunc) {
	detached, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
			cancel(cause)
		}
	})
	return detached, func() { stop(); cancel(nil) }
}

// begin returns the call with this key, and whether it is a new one.
func (r *repeats) begin(key repeatKey, body [sha256.Size]byte, now time.Time) (one *repeat, first bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expire(now)
	if one = r.kept[key]; one != nil {
		return one, false, one.refuse(body)
	}
	if len(r.kept) >= maxRepeatKeys && !r.drop() {
		return nil, false, problem.Newf(problem.Overloaded, "%d calls with an Idempotency-Key run at this time, which is the most.", maxRepeatKeys).
			WithHint("Try again with the same key in a moment.")
	}
	if r.kept == nil {
		r.kept = map[repeatKey]*repeat{}
	}
	one = &repeat{body: body, begun: now, done: make(chan struct{})}
	r.kept[key], r.order = one, append(r.order, key)
	return one, true, nil
}

// refuse returns why a call is not a repetition of this one, or has no answer.
func (one *repeat) refuse(body [sha256.Size]byte) error {
	switch {
	case one.body != body:
		return problem.New(problem.Conflict, "Another call was made with this Idempotency-Key: its body was another one.",
			"Send a new key for a new call, and the same body, byte for byte, with the same key.").With("parameter", "Idempotency-Key")
	case one.gone:
		return &recorded{problem.New(problem.Conflict, "The call with this Idempotency-Key was made, but its answer is kept no more.",
			"Look at the record of the call; it is not made again.").With("parameter", "Idempotency-Key"), one.record}
	}
	return nil
}

// end keeps the answer of a call. One that reached no server is forgotten, so that
// it can be made again with the same key.
func (r *repeats) end(key repeatKey, one *repeat) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer close(one.done)
	if one.err != nil && !mayHaveHappened(one.err) {
		r.forget(key)
		return
	}
	if call, ok := one.answer.(interface{ recordID() string }); ok {
		one.record = call.recordID()
	}
	if call, ok := one.answer.(interface{ bytes() int }); ok {
		one.size = call.bytes()
	}
	r.bytes += one.size
	for _, oldest := range r.order {
		if r.bytes <= maxRepeatBytes {
			break
		}
		if other := r.kept[oldest]; other.size > 0 {
			r.bytes -= other.size
			r.kept[oldest] = &repeat{body: other.body, begun: other.begun, done: other.done, record: other.record, gone: true}
		}
	}
}

// mayHaveHappened reports whether a call that failed may have reached its server.
func mayHaveHappened(err error) bool {
	switch problem.From(err).Code {
	case problem.UpstreamError, problem.Timeout, problem.Interrupted, problem.Internal:
		return true
	}
	return false
}

// expire forgets what is too old.
func (r *repeats) expire(now time.Time) {
	for len(r.order) > 0 && now.Sub(r.kept[r.order[0]].begun) > repeatTime && r.drop() {
	}
}

// drop forgets the oldest call that has ended, and reports whether there is one.
func (r *repeats) drop() bool {
	for _, key := range r.order {
		select {
		case <-r.kept[key].done:
			r.forget(key)
			return true
		default:
		}
	}
	return false
}

func (r *repeats) forget(key repeatKey) {
	r.bytes -= r.kept[key].size
	delete(r.kept, key)
	for i, other := range r.order {
		if other == key {
			r.order = append(r.order[:i], r.order[i+1:]...)
			break
		}
	}
}
