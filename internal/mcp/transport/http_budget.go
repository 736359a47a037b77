package transport

import (
	"bytes"
	"context"
	"io"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/problem"
)

// MemoryBudget limits the memory for large messages of one server, over all its connections, to the size of the largest
// message. A server that sends many large messages, or a message without end, delays only itself.
type MemoryBudget struct {
	max     int // maximum size of one message in bytes
	buffers *LargeBufferPool

	suspect atomic.Bool         // the server has sent a message over the limit
	sem     *semaphore.Weighted // bytes
}

// roomOverhead is the memory that a reader may need in addition to the largest message.
const roomOverhead = 16 << 10

// NewMemoryBudget returns the budget of one server. maxMessage is the maximum size of its messages in bytes.
func NewMemoryBudget(maxMessage int, buffers *LargeBufferPool) *MemoryBudget {
	return &MemoryBudget{max: maxMessage, buffers: buffers, sem: semaphore.NewWeighted(int64(maxMessage + roomOverhead))}
}

// MaxMessage returns the maximum size of a message.
func (r *MemoryBudget) MaxMessage() int { return r.max }

// budgetWait limits the wait of a message for the budget.
const budgetWait = 30 * time.Second

// errOverBudget is wrapped by every error about a message without budget.
var errOverBudget = problem.TrustedTextErrorf("the server sends too many large messages at a time")

// tooLargeErrorAndThrottle returns the error for a message over the limit, and throttles large messages from then on.
func (r *MemoryBudget) tooLargeErrorAndThrottle() error {
	r.suspect.Store(true)
	return newTooLargeError(r.max)
}

// overBudgetError returns the error for a message without budget.
func (r *MemoryBudget) overBudgetError() error {
	return problem.TrustedTextErrorf("%w: together more than %d bytes", errOverBudget, r.max)
}

// acquireBytes waits for n bytes until done is closed, at most for budgetWait, and reports whether it got them. Release
// them with releaseBytes.
func (r *MemoryBudget) acquireBytes(n int, done <-chan struct{}) bool {
	if r.sem.TryAcquire(int64(n)) {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), budgetWait)
	defer cancel()
	ctx, stop := session.WithDoneChannels(ctx, done, nil)
	defer stop()
	return r.sem.Acquire(ctx, int64(n)) == nil
}

func (r *MemoryBudget) releaseBytes(n int) { r.sem.Release(int64(n)) }

// ReaderBudget is a wirejson.BufferPool that uses the budget for one reader. It waits until done is closed.
type ReaderBudget struct {
	*MemoryBudget
	done <-chan struct{}
	read int // number of bytes since the last pause
}

// ForReader returns the budget as a buffer pool for one reader.
func (r *MemoryBudget) ForReader(done <-chan struct{}) *ReaderBudget {
	return &ReaderBudget{MemoryBudget: r, done: done}
}

// Take returns a buffer that is large enough for any message. The budget allows only one at a time.
func (v *ReaderBudget) Take(int) []byte {
	n := v.max + roomOverhead
	if !v.acquireBytes(n, v.done) {
		return nil
	}
	return v.buffers.takeBuffer(n)
}

// Give returns the buffer.
func (v *ReaderBudget) Give(buf []byte) {
	v.buffers.returnBuffer(buf)
	v.releaseBytes(len(buf))
}

// The rate limit for servers that have exceeded the message limit. Reading at full speed would use all CPUs.
const (
	paceRate = 64 << 20 // bytes per second
	paceStep = 64 << 10
)

// Pace throttles a server that has exceeded the limit.
func (v *ReaderBudget) Pace(n int) {
	if v.read += n; v.read < paceStep || !v.suspect.Load() {
		return
	}
	time.Sleep(time.Duration(v.read) * time.Second / paceRate)
	v.read = 0
}

// readBody reads a whole body into a new buffer.
func (v *ReaderBudget) readBody(a *HTTPResponse) ([]byte, error) {
	if a.length >= 0 {
		if n := int(min(a.length, int64(v.max))); n > trustedLength {
			if !v.acquireBytes(n, v.done) {
				return nil, v.overBudgetError()
			}
			defer v.releaseBytes(n)
		}
		return readBody(a, v.max)
	}
	start := *a
	start.Body = io.NopCloser(io.LimitReader(a.Body, trustedLength))
	body, err := readBody(&start, trustedLength)
	if err != nil || len(body) < trustedLength {
		return body, err
	}
	buf := v.Take(v.max)
	if buf == nil {
		return nil, v.overBudgetError()
	}
	defer v.Give(buf)
	for n := copy(buf, body); ; {
		more, err := a.Body.Read(buf[n:])
		switch n += more; {
		case n > v.max:
			return nil, v.tooLargeErrorAndThrottle()
		case err == io.EOF:
			return bytes.Clone(buf[:n]), nil
		case err != nil:
			return nil, err
		}
		runtime.Gosched() // lets other readers run
		v.Pace(more)
	}
}
