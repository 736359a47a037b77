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

// Budget is where the large messages of one server are read, over all of its
// connections: together they take no more memory than the largest one may. A
// server that sends many at a time, or begins them and never ends, holds up
// nobody but itself.
type Budget struct {
	max     int // bytes of one message
	buffers *Buffers

	suspect atomic.Bool         // the server has sent a message that is too long
	places  *semaphore.Weighted // bytes
}

// roomOverhead is what a reader may want beyond the largest message.
const roomOverhead = 16 << 10

// NewBudget returns the budget of one server, whose largest message may have
// maxMessage bytes.
func NewBudget(maxMessage int, buffers *Buffers) *Budget {
	return &Budget{max: maxMessage, buffers: buffers, places: semaphore.NewWeighted(int64(maxMessage + roomOverhead))}
}

// Max returns the size of the largest message.
func (r *Budget) Max() int { return r.max }

// crowdedTime is how long a message waits for its place.
const crowdedTime = 30 * time.Second

// errCrowded is wrapped by every error about a message that has found no place.
var errCrowded = problem.Ownf("the server sends too many large messages at a time")

// TooLarge returns the error about a message that was too long, and has what is
// large be read at a pace from then on.
func (r *Budget) TooLarge() error {
	r.suspect.Store(true)
	return tooLarge(r.max)
}

// Crowded returns the error about a message that has found no place.
func (r *Budget) Crowded() error {
	return problem.Ownf("%w: together more than %d bytes", errCrowded, r.max)
}

// enter waits for a place for n bytes, until done is closed or for crowdedTime,
// and reports whether there is one. It must be left.
func (r *Budget) enter(n int, done <-chan struct{}) bool {
	if r.places.TryAcquire(int64(n)) {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), crowdedTime)
	defer cancel()
	ctx, stop := session.Until(ctx, done, nil)
	defer stop()
	return r.places.Acquire(ctx, int64(n)) == nil
}

func (r *Budget) leave(n int) { r.places.Release(int64(n)) }

// Visit is a wirejson.Room for one reader, which waits no longer than until done
// is closed.
type Visit struct {
	*Budget
	done <-chan struct{}
	read int // and not waited for
}

// Until returns the budget as one reader sees it.
func (r *Budget) Until(done <-chan struct{}) *Visit { return &Visit{Budget: r, done: done} }

// Take returns a buffer for a message of any size, the only one that there is.
func (v *Visit) Take(int) []byte {
	n := v.max + roomOverhead
	if !v.enter(n, v.done) {
		return nil
	}
	return v.buffers.take(n)
}

// Give takes it back.
func (v *Visit) Give(buf []byte) {
	v.buffers.put(buf)
	v.leave(len(buf))
}

// The pace of servers that have sent too much before: who reads as fast as they
// write needs all processors together with them.
const (
	paceRate = 64 << 20 // bytes a second
	paceStep = 64 << 10
)

// Pace waits when the server has sent too much before.
func (v *Visit) Pace(n int) {
	if v.read += n; v.read < paceStep || !v.suspect.Load() {
		return
	}
	time.Sleep(time.Duration(v.read) * time.Second / paceRate)
	v.read = 0
}

// readBody reads a whole body into a buffer of its own.
func (v *Visit) ReadBody(a *Response) ([]byte, error) {
	if a.length >= 0 {
		if n := int(min(a.length, int64(v.max))); n > trustedLength {
			if !v.enter(n, v.done) {
				return nil, v.Crowded()
			}
			defer v.leave(n)
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
		return nil, v.Crowded()
	}
	defer v.Give(buf)
	for n := copy(buf, body); ; {
		more, err := a.Body.Read(buf[n:])
		switch n += more; {
		case n > v.max:
			return nil, v.TooLarge()
		case err == io.EOF:
			return bytes.Clone(buf[:n]), nil
		case err != nil:
			return nil, err
		}
		runtime.Gosched() // so that others are read in between
		v.Pace(more)
	}
}
