// Package http1 answers the requests that a busy client of MCP makes, one
// after the other on a connection that stays open, with little work, and leaves
// every other request to net/http.
//
// A request is plain when it is a POST of HTTP/1.1 with one Host, one
// Content-Length of a moderate size, no other framing, no expectation, and
// nothing in its head that could be read in two ways. The handler gets from it
// what net/http would have given it. On the first request that is not plain,
// the connection goes, with every byte of that request, to the http.Server that
// accepts from the Listener, and stays there: what is odd is judged by the
// library and by nobody else.
//
// It guarantees that the handler's context ends when the client has gone or the
// handler has returned, that waiting for a client has bounds (for the first
// byte, for the head, and for the body and the answer those that the handler
// sets), and that no connection outlives the Listener's Close. Why it is there:
// docs/adr/0032-a-short-way-for-plain-requests.md.
package http1

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Options are how plain requests are answered.
type Options struct {
	Handler http.Handler
	Plain   func(path string) bool // the paths that are served here
	// Base gives the context that those of all requests descend from.
	Base       func(net.Listener) context.Context
	HeaderTime time.Duration // for the head of a request, from its first byte on
	IdleTime   time.Duration // between two requests of a connection
	MaxConns   int           // open at once, those at net/http too; who comes then is told so
	Logger     *slog.Logger
}

// Listener is a net.Listener whose Accept gives the connections that net/http
// has to serve.
type Listener struct {
	Options
	inner net.Listener
	other chan net.Conn
	fail  chan error
	ended chan struct{} // closed by Close
	dated atomic.Pointer[dated]

	mu      sync.Mutex // guards what follows
	conns   map[*conn]bool
	left    int // connections that are open at net/http
	started bool
	closed  bool
	running sync.WaitGroup
}

// New makes a Listener. It begins to accept from l with the first Accept.
func New(l net.Listener, opt Options) *Listener {
	return &Listener{Options: opt, inner: l, other: make(chan net.Conn), fail: make(chan error),
		ended: make(chan struct{}), conns: map[*conn]bool{}}
}

func (l *Listener) start() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.started && !l.closed {
		l.started = true
		l.running.Go(func() { l.accept(l.Base(l.inner)) })
	}
}

// accept gives each connection a goroutine of its own.
func (l *Listener) accept(ctx context.Context) {
	for {
		nc, err := l.inner.Accept()
		if err != nil {
			select {
			case l.fail <- err: // whoever accepts from us decides how long to wait
				continue
			case <-l.ended:
				return
			}
		}
		l.admit(ctx, newConn(l, nc))
	}
}

// full is for who comes when there are too many.
const full = "Too many connections are open. Close some, and try again."

var refusal = fmt.Appendf(nil, "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s", len(full), full)

// admit serves a connection if it may.
func (l *Listener) admit(ctx context.Context, c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		c.nc.Close()
	case len(l.conns)+l.left >= l.MaxConns:
		c.nc.SetWriteDeadline(time.Now().Add(time.Second)) // the first write of a connection does not wait
		c.nc.Write(refusal)
		c.nc.Close()
	default:
		l.conns[c] = true
		// A context of its own spares its requests the lock of the one for all.
		ctx, c.stop = context.WithCancel(ctx)
		l.running.Go(func() { c.serve(ctx) })
	}
}

// remove forgets a connection, which is open at net/http when it has gone there.
func (l *Listener) remove(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
	if c.gone {
		l.left++
	}
}

// back says that net/http has closed a connection.
func (l *Listener) back() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left--
}

// Accept waits for the next connection that net/http has to serve.
func (l *Listener) Accept() (net.Conn, error) {
	l.start()
	select {
	case nc := <-l.other:
		return nc, nil
	case err := <-l.fail:
		return nil, err
	case <-l.ended:
		return nil, net.ErrClosed
	}
}

// handOver gives a connection to net/http.
func (l *Listener) handOver(r *replayed) {
	select {
	case l.other <- r:
	case <-l.ended:
		r.Close()
	}
}

// Addr is where it listens.
func (l *Listener) Addr() net.Addr { return l.inner.Addr() }

// Close ends the accepting, and the connections on which no request is being
// answered. The others end with their answers: Shutdown waits for them.
func (l *Listener) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return net.ErrClosed
	}
	l.closed = true
	close(l.ended)
	err := l.inner.Close()
	for c := range l.conns {
		c.closeIdle()
	}
	l.mu.Unlock()
	return err
}

// lastTime is how long handlers have to end whose connections were cut off.
const lastTime = time.Second

// Shutdown closes the Listener and waits until every request is answered. When
// ctx ends before, it cuts off what is left and gives ctx.Err(), a second later
// if there are handlers that do not end.
func (l *Listener) Shutdown(ctx context.Context) error {
	if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		l.Logger.Debug("the listener did not close", "error", err)
	}
	done := make(chan struct{})
	go func() { l.running.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	for c := range l.conns {
		c.stop()
		c.nc.Close()
	}
	l.mu.Unlock()
	select {
	case <-done:
	case <-time.After(lastTime):
	}
	return ctx.Err()
}
