package transport

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"mcpproxy/internal/mcp/dialpolicy"
)

// leanClient is a minimal HTTP/1.1 client with pooled connections. A request is one write, and the calling goroutine reads the
// response. So a call costs no goroutine switch and few allocations.
type leanClient struct {
	addr string
	dial func(ctx context.Context, network, addr string) (net.Conn, error)

	mu         sync.Mutex // guards the following fields
	idle       []*leanConn
	unfinished []*leanConn // idle, but the last response is incomplete
	closed     bool
}

func newLeanClient(u *url.URL, rule dialpolicy.Policy) *leanClient {
	port := u.Port()
	if port == "" {
		port = "80"
	}
	return &leanClient{addr: net.JoinHostPort(u.Hostname(), port), dial: rule.Dial}
}

// Do writes the request to an idle connection that is alive, or to a new one, and reads the head of the response. A
// failed write is retried on another connection, because the server cannot have executed a partial request.
func (c *leanClient) Do(ctx context.Context, r *HTTPRequest) (*HTTPResponse, error) {
	for {
		conn, reused, err := c.getConn(ctx)
		if err != nil && hasContextEnded(ctx) {
			err = ctx.Err()
		}
		if err != nil {
			return nil, newNotSentError(err)
		}
		conn.watchContext(ctx)
		err = conn.sendRequest(r)
		if err != nil {
			conn.discardConn()
			if ctx.Err() != nil {
				return nil, newNotSentError(ctx.Err())
			}
			if reused {
				continue
			}
			return nil, newNotSentError(err)
		}
		a, err := conn.readHead()
		if err != nil {
			conn.discardConn()
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, err
		}
		return a.withDecompressedBody(), nil
	}
}

// getConn returns the most recently used connection that is alive. If there is none, it dials.
func (c *leanClient) getConn(ctx context.Context) (conn *leanConn, reused bool, err error) {
	for {
		conn := c.takeConn(&c.idle, true)
		if conn == nil {
			break
		}
		if conn.isAlive() {
			return conn, true, nil
		}
		conn.nc.Close()
	}
	if conn := c.takeFinishedConn(); conn != nil {
		return conn, true, nil
	}
	nc, err := c.dial(ctx, "tcp", c.addr)
	if err != nil {
		return nil, false, err
	}
	return newLeanConn(c, nc), false, nil
}

// takeConn removes the newest or oldest connection of a list.
func (c *leanClient) takeConn(list *[]*leanConn, newest bool) *leanConn {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(*list)
	if n == 0 {
		return nil
	}
	at := 0
	if newest {
		at = n - 1
	}
	conn := (*list)[at]
	*list = slices.Delete(*list, at, at+1)
	return conn
}

// maxLooks limits how many unfinished connections one exchange checks.
const maxLooks = 4

// takeFinishedConn returns a connection whose last response is complete by now. It checks the oldest one first.
func (c *leanClient) takeFinishedConn() *leanConn {
	for range maxLooks {
		conn := c.takeConn(&c.unfinished, false)
		if conn == nil {
			return nil
		}
		switch state := conn.finishBody(); {
		case state == finishDone:
			return conn
		case state == finishPending && time.Since(conn.since) < unfinishedTime:
			c.putConn(&c.unfinished, maxUnfinished, conn)
		default:
			conn.nc.Close()
		}
	}
	return nil
}

// putConn adds a connection to a list with a limit.
func (c *leanClient) putConn(list *[]*leanConn, most int, conn *leanConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || len(*list) >= most {
		conn.nc.Close()
		return
	}
	*list = append(*list, conn)
}

func (c *leanClient) CloseIdle(now time.Time) {
	var old []*leanConn
	since := func(limit time.Time) func(*leanConn) bool {
		return func(conn *leanConn) bool {
			if !conn.since.Before(limit) {
				return false
			}
			old = append(old, conn)
			return true
		}
	}
	c.mu.Lock()
	c.idle = slices.DeleteFunc(c.idle, since(now.Add(-idleConnTime)))
	c.unfinished = slices.DeleteFunc(c.unfinished, since(now.Add(-unfinishedTime)))
	c.mu.Unlock()
	for _, conn := range old {
		conn.nc.Close()
	}
}

func (c *leanClient) Close() {
	c.mu.Lock()
	list := append(c.idle, c.unfinished...)
	c.idle, c.unfinished, c.closed = nil, nil, true
	c.mu.Unlock()
	for _, conn := range list {
		conn.nc.Close()
	}
}

// leanConn is one connection. It belongs to one exchange at a time and is the body of its response.
type leanConn struct {
	client *leanClient
	nc     net.Conn
	peek   func() peekState // checks whether the idle connection has data
	br     *bufio.Reader
	out    []byte
	since  time.Time // idle since
	stop   func() bool
	cut    func() // interrupts the exchange
	answer HTTPResponse
	passes bool // keep the response headers for the client

	frame bodyFraming
	left  int64 // remaining bytes of the body or the chunk
	old   bool  // the response is HTTP/1.0
	keep  bool  // the connection is reusable after this body
	err   error // how the body ended; never reset
}

// bodyFraming is the way in which a body is delimited.
type bodyFraming uint8

const (
	frameLength  bodyFraming = iota // left bytes remain
	frameChunked                    // left bytes of the current chunk remain
	frameClose                      // until the connection closes
)

func newLeanConn(c *leanClient, nc net.Conn) *leanConn {
	return &leanConn{client: c, nc: nc, peek: newPeekFunc(nc), br: bufio.NewReaderSize(nc, maxHeadLine),
		cut: func() { nc.SetDeadline(time.Unix(1, 0)) }}
}

// watchContext interrupts the exchange when ctx ends.
func (c *leanConn) watchContext(ctx context.Context) {
	c.stop = nil
	if ctx.Done() != nil {
		c.stop = context.AfterFunc(ctx, c.cut)
	}
}

// stopWatch reports whether the connection was not interrupted.
func (c *leanConn) stopWatch() bool { return c.stop == nil || c.stop() }

func (c *leanConn) discardConn() {
	c.stopWatch()
	c.nc.Close()
}

// isAlive reports whether an idle connection is open and has no data.
func (c *leanConn) isAlive() bool {
	return c.br.Buffered() == 0 && c.peek() == peekSilent && time.Since(c.since) < idleConnTime
}

// maxCopied is the largest body that is copied after its head to save a second buffer, in bytes.
const maxCopied = 32 << 10

func (c *leanConn) sendRequest(r *HTTPRequest) error {
	c.passes = r.KeepHeaders
	b := append(c.out[:0], r.Method...)
	b = append(b, r.Head.block...)
	for _, f := range r.Headers {
		b = append(append(append(append(b, f.Name...), ": "...), f.Value...), "\r\n"...)
	}
	if r.auth != "" {
		b = append(b, "Authorization: "...)
		b = append(b, r.auth...)
		b = append(b, "\r\n"...)
	}
	if r.Body != nil {
		b = append(b, "Content-Length: "...)
		b = strconv.AppendInt(b, int64(len(r.Body)), 10)
		b = append(b, "\r\n"...)
	}
	b = append(b, "\r\n"...)
	if len(r.Body) > maxCopied {
		c.out = b
		bufs := net.Buffers{b, r.Body}
		_, err := bufs.WriteTo(c.nc)
		return err
	}
	b = append(b, r.Body...)
	c.out = b
	_, err := c.nc.Write(b)
	return err
}

// Close returns the connection to the pool. It becomes idle if the body was read to its end, and unfinished if only the
// end of a stream is missing. The end is read when the connection is needed. In most cases it has arrived by then.
func (c *leanConn) Close() error {
	left := c.stopWatch()
	if !left || !c.keep || c.err == nil && c.frame != frameChunked {
		c.err = net.ErrClosed
		return c.nc.Close()
	}
	c.since = time.Now()
	if c.err == nil && c.br.Buffered() == 0 {
		c.client.putConn(&c.client.unfinished, maxUnfinished, c)
		return nil
	}
	switch c.finishBody() {
	case finishDone:
		c.client.putConn(&c.client.idle, maxIdleConns, c)
	case finishPending:
		c.client.putConn(&c.client.unfinished, maxUnfinished, c)
	default:
		c.nc.Close()
	}
	return nil
}

type bodyEndState uint8

const (
	finishDone bodyEndState = iota
	finishPending
	finishBroken
)

// finishTime limits the wait for the rest of a body.
const finishTime = 20 * time.Millisecond

// lastChunk is the end of most streams.
const lastChunk = "0\r\n\r\n"

// finishBody reads the rest of a body that has arrived.
func (c *leanConn) finishBody() bodyEndState {
	if rest, _ := c.br.Peek(c.br.Buffered()); c.err == nil && c.left == 0 && string(rest) == lastChunk {
		c.br.Discard(len(rest)) // avoids deadlines, which cost more
		c.err = io.EOF
	}
	if c.err == nil && c.br.Buffered() == 0 {
		switch c.peek() {
		case peekSilent:
			return finishPending
		case peekClosed:
			return finishBroken
		}
	}
	if c.err == nil {
		c.nc.SetReadDeadline(time.Now().Add(finishTime))
		scratch := c.out[:cap(c.out)]
		for budget := 64 << 10; c.err == nil && budget > 0; {
			n, _ := c.Read(scratch)
			budget -= n
		}
		c.nc.SetReadDeadline(time.Time{})
	}
	if c.err == io.EOF {
		return finishDone
	}
	return finishBroken
}
