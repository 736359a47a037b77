package http1

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"sync"
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
)

// past makes whatever waits for the connection return.
var past = time.Unix(1, 0)

// conn is one connection of a client.
type conn struct {
	l      *Listener
	nc     net.Conn
	br     *bufio.Reader
	remote string
	names  names
	room   []byte // for answers, between two of them
	gone   bool   // to net/http

	readBy  time.Time // the deadline that is set for reading; zero = none
	writeBy time.Time

	timer  *time.Timer        // begins the watch
	fired  chan struct{}      // the watch has ended; has room for that
	cancel context.CancelFunc // ends the context of the request
	stop   context.CancelFunc // ends the context of the connection

	mu     sync.Mutex // guards what follows
	idle   bool       // no request is being answered
	ending bool       // the one that is being answered is the last
	over   bool       // the handler has returned: nobody is watched
}

func newConn(l *Listener, nc net.Conn) *conn {
	return &conn{l: l, nc: nc, br: bufio.NewReaderSize(nc, headRoom), remote: nc.RemoteAddr().String(), idle: true, fired: make(chan struct{}, 1)}
}

// serve answers plain requests until there is one that is not.
func (c *conn) serve(ctx context.Context) {
	defer func() {
		c.stop()
		if !c.gone {
			c.nc.Close()
			c.l.remove(c)
		}
	}()
	wait := c.l.HeaderTime // the first request has to come at once
	for {
		r, err := c.next(wait)
		if errors.Is(err, errOdd) {
			c.leave()
			return
		}
		if err != nil || !c.begin() || !c.answer(ctx, r) || !c.end() {
			return
		}
		wait = c.l.IdleTime
	}
}

// leave gives the connection to net/http, with what was read and without what
// was set for requests before.
func (c *conn) leave() {
	c.nc.SetDeadline(time.Time{})
	read, _ := c.br.Peek(c.br.Buffered())
	c.gone = true
	c.l.remove(c)
	c.l.handOver(&replayed{Conn: c.nc, read: read, closed: sync.OnceFunc(c.l.back)})
}

// replayed is a connection some of which was read before.
type replayed struct {
	net.Conn
	read   []byte
	closed func()
}

// Close ends the connection, which is counted no more.
func (r *replayed) Close() error {
	r.closed()
	return r.Conn.Close()
}

// CloseWrite is what net/http ends a connection with on which a client may
// still be sending.
func (r *replayed) CloseWrite() error {
	if tcp, ok := r.Conn.(*net.TCPConn); ok {
		return tcp.CloseWrite()
	}
	return nil
}

func (r *replayed) Read(p []byte) (int, error) {
	if len(r.read) == 0 {
		return r.Conn.Read(p)
	}
	n := copy(p, r.read)
	if r.read = r.read[n:]; len(r.read) == 0 {
		r.read = nil // and the room that it is in
	}
	return n, nil
}

// closeIdle ends the connection now or after the request that is being
// answered.
func (c *conn) closeIdle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ending = true
	if c.idle {
		c.nc.Close()
	}
}

// begin and end keep account of whether a request is being answered; false:
// there must not be one more.
func (c *conn) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle = false
	return !c.ending
}

func (c *conn) end() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle = true
	return !c.ending
}

func (c *conn) isEnding() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ending
}

// next reads the head of the next request. errOdd: it is not plain.
func (c *conn) next(wait time.Duration) (*request, error) {
	if by := time.Now().Add(wait); !near(c.readBy, by) {
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
			c.setReadDeadline(time.Now().Add(c.l.HeaderTime))
			asked = true
		}
		if _, err := c.br.Peek(len(head) + 1); err == io.EOF {
			return nil, errOdd // there will be no more: net/http says so
		} else if err != nil {
			return nil, err
		}
	}
}

// answer runs the handler. It gives false when the connection cannot go on.
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
	return !aborted && w.finish() && w.body.drain() && !w.last
}

// run calls the handler and says whether it has panicked.
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

// near says whether the deadline that is set will do for the one asked for;
// zero is none.
func near(set, by time.Time) bool {
	if set.IsZero() || by.IsZero() {
		return set.Equal(by)
	}
	return !set.After(by) && by.Sub(set) <= slack && time.Until(by) > farAway
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
