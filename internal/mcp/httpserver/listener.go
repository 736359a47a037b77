// Package httpserver is a lean HTTP/1.1 server for the requests of busy MCP clients on persistent connections. It leaves all
// other requests to net/http.
//
// Files:
//   - listener.go, common.go: accept connections, apply the limits, and shut down
//   - conn.go, stream.go: serve the requests of a connection, and watch for a disconnect
//   - request.go, body.go, response.go: parse the head, read the body, write the reply
//   - registry.go: tracks all connections, and closes some at the connection limit
//   - nethttp.go: hands connections to net/http, and tracks its requests
//   - stoplisten_*.go: refuse new connections while pending ones complete
//
// A request is plain if it is a POST with HTTP/1.1, one Host, one Content-Length of a moderate size, no other framing,
// no Expect header and an unambiguous head. The handler gets the same request as from net/http, and a writer with
// Cancel. When the first other request arrives, the connection moves with all its bytes to the http.Server that accepts
// from the Listener, and stays at that server.
//
//   - The context of a handler ends when the client disconnects, the handler returns, or the handler calls Cancel of
//     its writer.
//   - The time for the first byte, the head and the body is limited. The handler limits the reply.
//   - Neither this package nor net/http waits for an unread body.
//   - No connection outlives the Listener's Close.
//   - With Options.TLS, the handshake counts as part of the first request's head.
//   - At the connection limit, connections that send little are closed first. A client that sends complete requests
//     gets a slot.
//
// The reasons: docs/adr/0032-a-short-way-for-plain-requests.md and docs/adr/0042-who-keeps-a-place.md.
package httpserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"
)

// ServingListener is a net.Listener that serves plain requests itself. Its Accept returns the connections for
// net/http.
type ServingListener struct {
	*listenerState
	inner   net.Listener
	fail    chan error
	closing chan error // the result of inner.Close, once, after the accept loop
	running sync.WaitGroup

	// The registry's mu guards these.
	started, closed bool
}

// New returns a Listener. It starts accepting at the first Accept.
func New(l net.Listener, opt Options) *ServingListener {
	return &ServingListener{listenerState: newListenerState(opt), inner: l, fail: make(chan error), closing: make(chan error, 1)}
}

func (l *ServingListener) startAccepting() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.started && !l.closed {
		l.started = true
		l.running.Go(func() { l.acceptLoop(l.Base(l.inner)) })
	}
}

// acceptLoop starts a goroutine for each connection.
func (l *ServingListener) acceptLoop(ctx context.Context) {
	for {
		nc, err := l.inner.Accept()
		if err == nil {
			l.admitConn(ctx, newConn(l.listenerState, nc))
			continue
		}
		l.evictIfOutOfDescriptors(err)
		select {
		case <-l.ended:
			l.acceptPendingAndClose(ctx)
			return
		default:
		}
		select {
		case l.fail <- err: // the caller of Accept decides how long to wait
		case <-l.ended:
		}
	}
}

// deadlineListener is a net.Listener whose Accept can be interrupted.
type deadlineListener interface{ SetDeadline(time.Time) error }

const (
	// lastAccept is the time for which a stop waits for pending connections. If the kernel cannot refuse new
	// connections, each later accept waits for hasteAccept, and all together for at most busyTime. firstTime limits the
	// wait for the first request of these connections.
	lastAccept, hasteAccept = 20 * time.Millisecond, 50 * time.Microsecond
	busyTime                = time.Second
	firstTime               = 500 * time.Millisecond
)

// acceptPendingAndClose accepts the pending connections and then closes inner. A refused client can connect elsewhere.
// But a client whose connection is closed does not know whether its request was executed. A connection without a
// request after firstTime is closed.
func (l *ServingListener) acceptPendingAndClose(ctx context.Context) {
	if d, ok := l.inner.(deadlineListener); ok {
		deaf := stopListening(l.inner)
		for begun, wait := time.Now(), lastAccept; time.Since(begun) < busyTime; {
			if !deaf && time.Since(begun) > lastAccept {
				wait = hasteAccept
			}
			if d.SetDeadline(time.Now().Add(wait)) != nil {
				break
			}
			nc, err := l.inner.Accept()
			if err == nil {
				l.admitConn(ctx, newConn(l.listenerState, nc))
			} else if !hasPendingConn(l.inner) { // on a busy machine the deadline may expire before the accept
				break
			}
		}
	}
	err := l.inner.Close()
	for end := time.Now().Add(firstTime); l.hasNewcomers() && time.Now().Before(end); {
		time.Sleep(2 * time.Millisecond)
	}
	l.closing <- err
	close(l.stopped)
	l.mu.Lock()
	defer l.mu.Unlock()
	for p, here := range l.conns {
		if here {
			p.closeUnlessBusy()
		}
	}
}

// hasNewcomers reports whether there is a connection that has not sent its first request.
func (l *ServingListener) hasNewcomers() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.newcomers.Len() > 0
}

// evictIfOutOfDescriptors closes a connection if the process has no file descriptor left.
func (l *ServingListener) evictIfOutOfDescriptors(err error) {
	if !errors.Is(err, syscall.EMFILE) && !errors.Is(err, syscall.ENFILE) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); !l.evictNewcomer(now) {
		l.evictEstablishedConns(now)
	}
}

// tooManyConnsText is the reply at the connection limit.
const tooManyConnsText = "Too many connections are open. Close some, and try again."

var tooManyConnsResponse = fmt.Appendf(nil, "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s", len(tooManyConnsText), tooManyConnsText)

// admitConn serves a connection if a slot is available. It waits while connections are replaced too quickly, because
// each new connection gets time for its first request.
func (l *ServingListener) admitConn(ctx context.Context, c *conn) {
	for {
		again := l.tryAdmitConn(ctx, c)
		if again == 0 {
			return
		}
		select {
		case <-time.After(again):
		case <-l.ended:
		}
	}
}

// tryAdmitConn serves or refuses a connection, or returns when to try again.
func (l *ServingListener) tryAdmitConn(ctx context.Context, c *conn) (again time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	ok, again := l.reserveSlot(now)
	if l.closed {
		c.fate, again = ending, 0 // the server is stopping: there is no time to wait
	}
	switch {
	case ok:
		l.conns[c.connState] = true
		c.at, c.came, c.since = l.newcomers.PushBack(c.connState), now, now
		// A context for each connection avoids contention on the lock of the shared context.
		ctx, c.stop = context.WithCancel(ctx)
		l.running.Go(func() { c.serveRequests(ctx, now) })
		return 0
	case again == 0:
		if c.l.TLS == nil { // otherwise a reply would need a handshake
			c.raw.SetWriteDeadline(now.Add(time.Second)) // the first write of a connection does not block
			c.raw.Write(tooManyConnsResponse)
		}
		c.raw.Close()
	}
	return again
}

// Accept waits for the next connection for net/http.
func (l *ServingListener) Accept() (net.Conn, error) {
	l.startAccepting()
	select {
	case nc := <-l.handedOver:
		return nc, nil
	case err := <-l.fail:
		return nil, err
	case <-l.stopped:
		return nil, net.ErrClosed
	}
}

// Addr returns the address.
func (l *ServingListener) Addr() net.Addr { return l.inner.Addr() }

// Close stops accepting, and closes connections without a request. It waits a short time for the first request of new
// connections. Busy connections end after their replies, and Shutdown waits for them. Call Close before
// http.Server.Shutdown, after which net/http serves nothing.
func (l *ServingListener) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return net.ErrClosed
	}
	l.closed = true
	close(l.ended)
	for p, here := range l.conns {
		if here && p.at == nil {
			p.closeUnlessBusy()
		} else if here {
			p.closeAfterRequest()
		}
	}
	accepting := l.started
	l.mu.Unlock()
	if !accepting {
		close(l.stopped)
	}
	if d, ok := l.inner.(deadlineListener); ok && accepting && d.SetDeadline(past) == nil {
		return <-l.closing
	}
	return l.inner.Close()
}

// abortTime limits the wait for handlers whose connections were closed.
const abortTime = time.Second

// Shutdown closes the Listener and waits until every request is answered. If ctx ends first, it closes the remaining
// connections and returns ctx.Err() after at most one more second.
func (l *ServingListener) Shutdown(ctx context.Context) error {
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
	for p, here := range l.conns {
		if here {
			p.stop()
			p.raw.Close()
		}
	}
	l.mu.Unlock()
	select {
	case <-done:
	case <-time.After(abortTime):
	}
	return ctx.Err()
}

// ApplyLimits applies the Listener's limits to a server that accepts from it: timeouts, unread bodies and the
// connection registry. Call it before the server serves.
func (l *ServingListener) ApplyLimits(s *http.Server) {
	s.ReadHeaderTimeout, s.IdleTimeout = l.HeaderTime, l.IdleTime
	s.Handler = trackRequests(s.Handler, l.BodyTime)
	inner := s.ConnContext
	s.ConnContext = func(ctx context.Context, nc net.Conn) context.Context {
		if inner != nil {
			ctx = inner(ctx, nc)
		}
		return context.WithValue(ctx, connStateKey{}, nc.(*replayConn).state)
	}
	s.ConnState = func(nc net.Conn, state http.ConnState) {
		if state == http.StateIdle {
			nc.(*replayConn).state.enterPhase(waiting, time.Now())
		}
	}
}
