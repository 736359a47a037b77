package httpserver

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"time"
)

// conn is one connection of a client.
type conn struct {
	connIO
	remote     string
	handedOver bool // handed over to net/http
}

// maxHeadSize is the maximum size of the head of a plain request, in bytes.
const maxHeadSize = 4 << 10

func newConn(l *listenerState, raw net.Conn) *conn {
	nc := raw
	if l.TLS != nil {
		nc = tls.Server(raw, l.TLS)
	}
	s, used := l.used.Get().(*readBuffers)
	if !used {
		s = &readBuffers{br: bufio.NewReaderSize(nil, maxHeadSize)}
	}
	s.br.Reset(nc)
	return &conn{
		connIO: connIO{connState: &connState{in: l.connRegistry, nc: nc, raw: raw, new: true}, readBuffers: s, l: l, fired: make(chan struct{}, 1)},
		remote: nc.RemoteAddr().String(),
	}
}

// recycleBuffers clears the client's data in the buffers and returns them to the pool.
func (c *conn) recycleBuffers() {
	c.br.Reset(nil)
	c.names = headerCache{}
	c.l.used.Put(c.readBuffers)
	c.readBuffers = nil
}

// serveRequests answers plain requests until a request for net/http arrives.
func (c *conn) serveRequests(ctx context.Context, now time.Time) {
	defer func() {
		c.stop()
		if !c.handedOver {
			c.nc.Close()
			c.l.removeConn(c.connState)
		}
	}()
	for first := true; c.handshake(now, first); first = false {
		r, err := c.readRequestHead(now, first)
		if errors.Is(err, errNotPlain) {
			c.moveToNetHTTP()
			return
		}
		if err != nil || !c.beginRequest(r) || !c.answerRequest(ctx, r) {
			break
		}
		if now = time.Now(); c.enterPhase(waiting, now) != staying {
			break
		}
	}
	c.recycleBuffers()
}

// handshake completes the TLS handshake of a new connection within HeaderTime, and reports whether it succeeded.
func (c *conn) handshake(now time.Time, first bool) bool {
	secured, ok := c.nc.(*tls.Conn)
	if !ok || !first {
		return true
	}
	c.raw.SetDeadline(now.Add(c.l.HeaderTime))
	err := secured.Handshake()
	c.raw.SetWriteDeadline(time.Time{})
	if err == nil {
		return true
	}
	if clear, ok := errors.AsType[tls.RecordHeaderError](err); ok && clear.Conn != nil && slices.Contains(clearTextStarts, string(clear.RecordHeader[:])) {
		c.raw.SetWriteDeadline(now.Add(c.l.HeaderTime))
		io.WriteString(c.raw, clearTextResponse)
	}
	if !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) { // the client, or this server, has closed it
		c.l.TLSFailed(c.remote, err)
	}
	return false
}

// clearTextResponse is the reply to a client that speaks HTTP without TLS.
const clearTextResponse = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain\r\n\r\nThis address requires TLS: write https:// instead of http://.\n"

// clearTextStarts are the first five bytes of requests without TLS.
var clearTextStarts = []string{"GET /", "HEAD ", "POST ", "PUT /", "DELET", "OPTIO", "PATCH"}

// moveToNetHTTP passes the connection to net/http, with the bytes that were read and without deadlines.
func (c *conn) moveToNetHTTP() {
	c.nc.SetDeadline(time.Time{})
	read, _ := c.br.Peek(c.br.Buffered())
	r := &replayConn{Conn: c.nc, state: c.connState, read: bytes.Clone(read)}
	c.recycleBuffers()
	c.handedOver = true
	c.l.markMovedToNetHTTP(c.connState)
	c.l.passToNetHTTP(r)
}

// beginRequest registers a request and reports whether it may be answered. On a closing connection, only the first
// request may be.
func (c *conn) beginRequest(r *requestHead) bool {
	first, fate := c.new, staying
	if int64(c.br.Buffered()) >= int64(r.size)+r.length {
		fate = c.markRequestComplete()
	} else {
		fate = c.enterPhase(inBody, time.Now())
	}
	return fate == staying || fate == ending && first
}

// readRequestHead reads the head of the next request. It returns errNotPlain if net/http must serve it. The first
// request must arrive within HeaderTime.
func (c *conn) readRequestHead(now time.Time, first bool) (*requestHead, error) {
	by := now.Add(c.l.IdleTime)
	if first {
		by = now.Add(c.l.HeaderTime)
	}
	if !isDeadlineCloseEnough(c.readBy, by, now) {
		c.setReadDeadline(by)
	}
	if _, err := c.br.Peek(1); err != nil {
		return nil, err
	}
	for asked := false; ; {
		head, _ := c.br.Peek(c.br.Buffered())
		r, err := c.names.parseHead(head)
		if !errors.Is(err, errIncompleteHead) {
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
			c.enterPhase(inHead, now)
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

// answerRequest runs the handler, and reports whether the connection stays open.
func (c *conn) answerRequest(ctx context.Context, r *requestHead) (goOn bool) {
	c.br.Discard(r.size)
	ctx, cancel := context.WithCancelCause(ctx)
	c.cancel = cancel
	// Each request has its own writer, so that a late write of a handler does not reach the next reply.
	w := &responseWriter{c: &c.connIO, cancel: cancel, header: make(http.Header, 4), length: -1, out: c.outBuffer, body: requestBody{c: &c.connIO, left: r.length}}
	c.outBuffer = nil
	if r.length == 0 {
		c.scheduleDisconnectWatch()
	}
	aborted := c.runHandler(w, r.toHTTPRequest(ctx, c.remote, &w.body))
	if w.body.left == 0 {
		c.stopDisconnectWatch()
	}
	cancel(nil)
	w.body.closed = true
	return !aborted && w.finishReply() && w.body.drain() && !w.last
}

// runHandler calls the handler and reports whether it panicked.
func (c *conn) runHandler(w *responseWriter, r *http.Request) (aborted bool) {
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
