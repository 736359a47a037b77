package upstream

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// room is where the large messages of one server are read, over all of its
// connections: together they take no more memory than the largest one may. A
// server that sends many at a time, or begins them and never ends, holds up
// nobody but itself.
type room struct {
	max     int // bytes of one message
	buffers *buffers

	suspect atomic.Bool // the server has sent a message that is too long

	mu    sync.Mutex // guards what follows
	left  int
	queue []*waiter // who waits for a place, in their order
}

type waiter struct {
	n     int
	there chan struct{} // closed when it has its place
}

// roomOverhead is what a reader may want beyond the largest message.
const roomOverhead = 16 << 10

func newRoom(maxMessage int, buffers *buffers) *room {
	return &room{max: maxMessage, buffers: buffers, left: maxMessage + roomOverhead}
}

// crowdedTime is how long a message waits for its place.
const crowdedTime = 30 * time.Second

// errCrowded is wrapped by every error about a message that has found no place.
var errCrowded = errors.New("the server sends too many large messages at a time")

// tooLarge makes the error about a message that was too long, and what is large
// be read at a pace from then on.
func (r *room) tooLarge() error {
	r.suspect.Store(true)
	return tooLarge(r.max)
}

func (r *room) crowded() error {
	return fmt.Errorf("%w: together more than %d bytes", errCrowded, r.max)
}

// enter waits for a place for n bytes, until done is closed or for crowdedTime,
// and says whether there is one. It must be left.
func (r *room) enter(n int, done <-chan struct{}) bool {
	r.mu.Lock()
	if len(r.queue) == 0 && n <= r.left {
		r.left -= n
		r.mu.Unlock()
		return true
	}
	w := &waiter{n: n, there: make(chan struct{})}
	r.queue = append(r.queue, w)
	r.mu.Unlock()
	limit := time.NewTimer(crowdedTime)
	defer limit.Stop()
	select {
	case <-w.there:
		return true
	case <-done:
	case <-limit.C:
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, other := range r.queue {
		if other == w {
			r.queue = append(r.queue[:i], r.queue[i+1:]...)
			r.admit() // it may have been in the way of smaller ones
			return false
		}
	}
	return true // at the last moment
}

func (r *room) leave(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left += n
	r.admit()
}

// admit lets in who has waited for longest. The lock is held.
func (r *room) admit() {
	for len(r.queue) > 0 && r.queue[0].n <= r.left {
		r.left -= r.queue[0].n
		close(r.queue[0].there)
		r.queue = r.queue[1:]
	}
}

// visit is a jsonrpc.Room for one reader, which waits no longer than until done
// is closed.
type visit struct {
	*room
	done <-chan struct{}
	read int // and not waited for
}

func (r *room) until(done <-chan struct{}) *visit { return &visit{room: r, done: done} }

// Take gives a buffer for a message of any size, the only one that there is.
func (v *visit) Take(int) []byte {
	n := v.max + roomOverhead
	if !v.enter(n, v.done) {
		return nil
	}
	return v.buffers.take(n)
}

// Give takes it back.
func (v *visit) Give(buf []byte) {
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
func (v *visit) Pace(n int) {
	if v.read += n; v.read < paceStep || !v.suspect.Load() {
		return
	}
	time.Sleep(time.Duration(v.read) * time.Second / paceRate)
	v.read = 0
}

// readBody reads a whole body into a buffer of its own.
func (v *visit) readBody(a *answer) ([]byte, error) {
	if a.length >= 0 {
		if n := int(min(a.length, int64(v.max))); n > trustedLength {
			if !v.enter(n, v.done) {
				return nil, v.crowded()
			}
			defer v.leave(n)
		}
		return readBody(a, v.max)
	}
	start := *a
	start.body = io.NopCloser(io.LimitReader(a.body, trustedLength))
	body, err := readBody(&start, trustedLength)
	if err != nil || len(body) < trustedLength {
		return body, err
	}
	buf := v.Take(v.max)
	if buf == nil {
		return nil, v.crowded()
	}
	defer v.Give(buf)
	for n := copy(buf, body); ; {
		more, err := a.body.Read(buf[n:])
		switch n += more; {
		case n > v.max:
			return nil, v.tooLarge()
		case err == io.EOF:
			return bytes.Clone(buf[:n]), nil
		case err != nil:
			return nil, err
		}
		runtime.Gosched() // so that others are read in between
		v.Pace(more)
	}
}
