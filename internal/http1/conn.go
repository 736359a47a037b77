package http1

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"time"
)

const (
	// headRoom is the largest head of a plain request, in bytes.
	headRoom = 4 << 10
	// watchAfter is how long a handler runs before its client is watched: to
	// watch costs more than most requests take.
	watchAfter = 100 * time.Millisecond
	// slack is by how much a deadline may be earlier than asked for, so that it
	// need not be set for every request, when it is further away than farAway.
	slack, farAway = time.Second, 4 * time.Second
	// lingerTime is how long a body that nobody reads is thrown away: to close the
	// connection before would take the answer from a client that is still sending.
	lingerTime = 500 * time.Millisecond
)

// past makes whatever waits for the connection return.
var past = time.Unix(1, 0)

// conn is one connection of a client.
type conn struct {
	*place
	*scratch
	remote string
	room   []byte // for answers, between two of them
	gone   bool   // to net/http

	readBy  time.Time // the deadline that is set for reading; zero = none
	writeBy time.Time

	timer  *time.Timer        // begins the watch
	fired  chan struct{}      // the watch has ended; has room for that
	cancel context.CancelFunc // ends the context of the request
	stop   context.CancelFunc // ends the context of the connection
	over   bool               // the handler has returned: nobody is watched; mu guards it
}

// scratch is what a connection is read with. It is used again: who opens many
// connections is not to fill the heap.
type scratch struct {
	br    *bufio.Reader
	names names
}

func newConn(l *Listener, nc net.Conn) *conn {
	s, used := l.used.Get().(*scratch)
	if !used {
		s = &scratch{br: bufio.NewReaderSize(nil, headRoom)}
	}
	s.br.Reset(nc)
	return &conn{place: &place{l: l, nc: nc, new: true}, scratch: s, remote: nc.RemoteAddr().String(), fired: make(chan struct{}, 1)}
}

// giveBack is for when nobody reads from the connection any more. Nothing of what
// its client said is kept.
func (c *conn) giveBack() {
	c.br.Reset(nil)
	c.names = names{}
	c.l.used.Put(c.scratch)
	c.scratch = nil
}

// serve answers plain requests until there is one that is not.
func (c *conn) serve(ctx context.Context, now time.Time) {
	defer func() {
		c.stop()
		if !c.gone {
			c.nc.Close()
			c.l.remove(c.place)
		}
	}()
	for first := true; ; first = false {
		r, err := c.next(now, first)
		if errors.Is(err, errOdd) {
			c.leave()
			return
		}
		if err != nil || !c.begin(r) || !c.answer(ctx, r) {
			break
		}
		if now = time.Now(); c.enter(waiting, now) != staying {
			break
		}
	}
	c.giveBack()
}

// leave passes the connection on to net/http, with what was read and without
// what was set for requests before.
func (c *conn) leave() {
	c.nc.SetDeadline(time.Time{})
	read, _ := c.br.Peek(c.br.Buffered())
	r := &replayed{Conn: c.nc, place: c.place, read: bytes.Clone(read)}
	c.giveBack()
	c.gone = true
	c.l.moved(c.place)
	c.l.handOver(r)
}

// closeIdle ends the connection now or after the request that is being
// answered.
func (c *conn) closeIdle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fate == staying {
		c.fate = ending
	}
	if c.phase == waiting || c.phase == inHead {
		c.nc.Close()
	}
}

func (c *conn) isEnding() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fate != staying
}

// begin keeps account of a request, and reports whether it may be answered.
func (c *conn) begin(r *request) bool {
	if int64(c.br.Buffered()) >= int64(r.size)+r.length {
		return c.whole() == staying
	}
	return c.enter(inBody, time.Now()) == staying
}

// next reads the head of the next request. errOdd: it is not plain. The first
// request of a connection has to come at once, with its head.
func (c *conn) next(now time.Time, first bool) (*request, error) {
	by := now.Add(c.l.IdleTime)
	if first {
		by = now.Add(c.l.HeaderTime)
	}
	if !near(c.readBy, by, now) {
		c.setReadDeadline(by)
	}
	if _, err := c.br.Peek(1); err != nil {
		return nil, err
	}
	for asked := false; ; {
		head, _ := c.br.Peek(c.br.Buffered())
		r, err := c.names.parse(head)
		if !errors.Is(err, errPartial) {
			if err == nil && !c.l.Plain(r.path) {
				err = errOdd
			}
			return r, err
		}
		if len(head) == headRoom {
			return nil, errOdd
		}
		if !asked {
			now := time.Now()
			c.enter(inHead, now)
			if !first {
				c.setReadDeadline(now.Add(c.l.HeaderTime))
			}
			asked = true
		}
		if _, err := c.br.Peek(len(head) + 1); err == io.EOF {
			return nil, errOdd // there will be no more: net/http says so
		} else if err != nil {
			return nil, err
		}
	}
}

// answer runs the handler, and reports whether the connection can go on.
func (c *conn) answer(ctx context.Context, r *request) (goOn bool) {
	c.br.Discard(r.size)
	ctx, cancel := context.WithCancel(ctx)
	c.cancel = cancel
	// What a handler writes after its end must not get into another answer: each
	// has a writer of its own.
	w := &response{c: c, header: make(http.Header, 4), length: -1, out: c.room}
	w.body.w, w.body.left = w, r.length
	c.room = nil
	if r.length == 0 {
		c.watchLater()
	}
	aborted := c.run(w, r.http(ctx, w))
	if w.body.left == 0 {
		c.unwatch()
	}
	cancel()
	w.body.over = true
	return !aborted && w.finish() && w.body.drain() && !w.last
}

// run calls the handler and reports whether it has panicked.
func (c *conn) run(w *response, r *http.Request) (aborted bool) {
	defer func() {
		cause := recover()
		aborted = cause != nil
		if err, ok := cause.(error); aborted && !(ok && errors.Is(err, http.ErrAbortHandler)) {
			c.l.Logger.Error("a request panicked", "path", r.URL.Path, "panic", cause, "stack", string(debug.Stack()))
		}
	}()
	c.l.Handler.ServeHTTP(w, r)
	return false
}

// watchLater watches the client when the handler takes long. Nothing else
// reads from the connection then: the body has been read.
func (c *conn) watchLater() {
	c.over = false // the one that could look is not there yet
	if c.timer == nil {
		c.timer = time.AfterFunc(watchAfter, c.watch)
		return
	}
	c.timer.Reset(watchAfter)
}

// watch ends the context of the request when the client goes away. What a
// client sends meanwhile is its next request.
func (c *conn) watch() {
	defer func() { c.fired <- struct{}{} }()
	c.mu.Lock()
	if !c.over {
		c.nc.SetReadDeadline(time.Time{})
	}
	c.mu.Unlock()
	if _, err := c.br.Peek(1); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		c.cancel()
	}
}

// unwatch ends the watch, so that the connection can be read again.
func (c *conn) unwatch() {
	if c.timer.Stop() {
		return // it has not begun
	}
	c.mu.Lock()
	c.over = true
	c.nc.SetReadDeadline(past)
	c.mu.Unlock()
	<-c.fired
	c.setReadDeadline(time.Time{})
}

// near reports whether the deadline that is set will do for the one asked for;
// zero is none.
func near(set, by, now time.Time) bool {
	if set.IsZero() || by.IsZero() {
		return set.Equal(by)
	}
	return !set.After(by) && by.Sub(set) <= slack && by.Sub(now) > farAway
}

func sooner(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// A deadline that cannot be set is that of a connection that is closed: the
// next use of it says so.

func (c *conn) setReadDeadline(by time.Time) {
	c.readBy = by
	c.nc.SetReadDeadline(by)
}

func (c *conn) setWriteDeadline(by time.Time) {
	c.writeBy = by
	c.nc.SetWriteDeadline(by)
}
