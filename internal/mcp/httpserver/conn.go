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
	remote     string
	handedOver bool // handed over to net/http
}

// maxHeadSize is the largest head of a plain request, in bytes.
const maxHeadSize = 4 << 10

func newConn(l *common, nc net.Conn) *conn {
	s, used := l.used.Get().(*scratch)
	if !used {
		s = &scratch{br: bufio.NewReaderSize(nil, maxHeadSize)}
	}
	s.br.Reset(nc)
	return &conn{
		stream: stream{connState: &connState{in: l.registry, nc: nc, new: true}, scratch: s, l: l, fired: make(chan struct{}, 1)},
		remote: nc.RemoteAddr().String(),
	}
}

// recycle returns the buffers to the pool, without data of the client.
func (c *conn) recycle() {
	c.br.Reset(nil)
	c.names = headerCache{}
	c.l.used.Put(c.scratch)
	c.scratch = nil
}

// serve answers plain requests until another one arrives.
func (c *conn) serve(ctx context.Context, now time.Time) {
	defer func() {
		c.stop()
		if !c.handedOver {
			c.nc.Close()
			c.l.remove(c.connState)
		}
	}()
	for first := true; ; first = false {
		r, err := c.next(now, first)
		if errors.Is(err, errNotPlain) {
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
	c.recycle()
}

// leave passes the connection to net/http, with the bytes that were read and without deadlines.
func (c *conn) leave() {
	c.nc.SetDeadline(time.Time{})
	read, _ := c.br.Peek(c.br.Buffered())
	r := &replayed{Conn: c.nc, place: c.connState, read: bytes.Clone(read)}
	c.recycle()
	c.handedOver = true
	c.l.moved(c.connState)
	c.l.handOver(r)
}

// begin registers a request and reports whether it may be answered: on a closing connection only the first
// one is.
func (c *conn) begin(r *request) bool {
	first, fate := c.new, staying
	if int64(c.br.Buffered()) >= int64(r.size)+r.length {
		fate = c.complete()
	} else {
		fate = c.enter(inBody, time.Now())
	}
	return fate == staying || fate == ending && first
}

// next reads the head of the next request; errNotPlain if net/http must serve it. The first request must
// arrive within HeaderTime.
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
				err = errNotPlain
			}
			return r, err
		}
		if len(head) == maxHeadSize {
			return nil, errNotPlain
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
			return nil, errNotPlain // net/http answers a truncated head
		} else if err != nil {
			return nil, err
		}
	}
}

// answer runs the handler, and reports whether the connection stays open.
func (c *conn) answer(ctx context.Context, r *request) (goOn bool) {
	c.br.Discard(r.size)
	ctx, cancel := context.WithCancelCause(ctx)
	c.cancel = cancel
	// A late write of a handler must not reach the next reply: each request has its own writer.
	w := &response{c: &c.stream, cancel: cancel, header: make(http.Header, 4), length: -1, out: c.outBuffer, body: body{c: &c.stream, left: r.length}}
	c.outBuffer = nil
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

// run calls the handler and reports whether it panicked.
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
