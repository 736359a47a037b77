package httpserver

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime/debug"
	"time"
)

// conn is one connection of a client.
type conn struct {
	stream
	remote string
	gone   bool // to net/http
}

// headRoom is the largest head of a plain request, in bytes.
const headRoom = 4 << 10

func newConn(l *common, nc net.Conn) *conn {
	s, used := l.used.Get().(*scratch)
	if !used {
		s = &scratch{br: bufio.NewReaderSize(nil, headRoom)}
	}
	s.br.Reset(nc)
	return &conn{
		stream: stream{place: &place{in: l.registry, nc: nc, new: true}, scratch: s, l: l, fired: make(chan struct{}, 1)},
		remote: nc.RemoteAddr().String(),
	}
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

// begin keeps account of a request, and reports whether it may be answered: on a
// connection that ends, the first one may.
func (c *conn) begin(r *request) bool {
	first, fate := c.new, staying
	if int64(c.br.Buffered()) >= int64(r.size)+r.length {
		fate = c.whole()
	} else {
		fate = c.enter(inBody, time.Now())
	}
	return fate == staying || fate == ending && first
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
	ctx, cancel := context.WithCancelCause(ctx)
	c.cancel = cancel
	// What a handler writes after its end must not get into another answer: each
	// has a writer of its own.
	w := &response{c: &c.stream, cancel: cancel, header: make(http.Header, 4), length: -1, out: c.room, body: body{c: &c.stream, left: r.length}}
	c.room = nil
	if r.length == 0 {
		c.watchLater()
	}
	aborted := c.run(w, r.http(ctx, c.remote, &w.body))
	if w.body.left == 0 {
		c.unwatch()
	}
	cancel(nil)
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
