// Package httpserver answers the requests that a busy client of MCP makes, one
// after the other on a connection that stays open, with little work, and leaves
// every other request to net/http.
//
// A request is plain when it is a POST of HTTP/1.1 with one Host, one
// Content-Length of a moderate size, no other framing, no expectation, and
// nothing in its head that could be read in two ways. The handler gets from it
// what net/http would have given it, and a writer with Cancel. On the first
// request that is not plain, the connection goes, with every byte of that
// request, to the http.Server that accepts from the Listener, and stays there:
// what is odd is judged by the library and by nobody else.
//
// It guarantees that the handler's context ends when the client has gone, the
// handler has returned, or its writer was told to Cancel it, that waiting for a
// client has bounds (for the first byte, the head and the body; for the answer
// the handler sets it), that a body which nobody reads is not waited for, here
// and at net/http, and that no connection outlives the Listener's Close. When
// connections run short, those are closed that keep their places by saying
// little, and a client that sends whole requests finds a place. Why it is there:
// docs/adr/0032-a-short-way-for-plain-requests.md and
// docs/adr/0042-who-keeps-a-place.md.
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

// Listener is a net.Listener whose Accept returns the connections that net/http
// has to serve.
type Listener struct {
	*common
	inner   net.Listener
	fail    chan error
	closing chan error // how inner was closed, once, when accept has ended
	running sync.WaitGroup

	// The registry's mu guards these.
	started, closed bool
}

// New makes a Listener. It begins to accept from l with the first Accept.
func New(l net.Listener, opt Options) *Listener {
	return &Listener{common: newCommon(opt), inner: l, fail: make(chan error), closing: make(chan error, 1)}
}

func (l *Listener) start() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.started && !l.closed {
		l.started = true
		l.running.Go(func() { l.accept(l.Base(l.inner)) })
	}
}

// accept starts a goroutine for each connection.
func (l *Listener) accept(ctx context.Context) {
	for {
		nc, err := l.inner.Accept()
		if err == nil {
			l.admit(ctx, newConn(l.common, nc))
			continue
		}
		l.relieve(err)
		select {
		case <-l.ended:
			l.acceptLast(ctx)
			return
		default:
		}
		select {
		case l.fail <- err: // whoever accepts from us decides how long to wait
		case <-l.ended:
		}
	}
}

// deadlined is a net.Listener whose Accept can be ended without closing it.
type deadlined interface{ SetDeadline(time.Time) error }

const (
	// lastAccept is how long a stop waits for one more connection that is being made. Where
	// others can go on connecting it takes those that are there after that time, without waiting
	// for more than hasteAccept. busyTime is for how long it takes them, firstTime how long they
	// have for their first request.
	lastAccept, hasteAccept = 20 * time.Millisecond, 50 * time.Microsecond
	busyTime                = time.Second
	firstTime               = 500 * time.Millisecond
)

// acceptLast takes who has connected before the end, and then closes what accepts: a client
// that was refused goes elsewhere, but one whose connection was cut off does not know what
// has become of its request. So nobody connects in between, where the system can see to it.
// Who has not asked anything in a moment is cut off after all.
func (l *Listener) acceptLast(ctx context.Context) {
	if d, ok := l.inner.(deadlined); ok {
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
				l.admit(ctx, newConn(l.common, nc))
			} else if !someoneWaits(l.inner) { // on a busy machine the time is over before anybody has looked
				break
			}
		}
	}
	err := l.inner.Close()
	for end := time.Now().Add(firstTime); l.awaits() && time.Now().Before(end); {
		time.Sleep(2 * time.Millisecond)
	}
	l.closing <- err
	close(l.over)
	l.mu.Lock()
	defer l.mu.Unlock()
	for p, here := range l.places {
		if here {
			p.closeIdle()
		}
	}
}

// awaits reports whether somebody has not asked anything yet.
func (l *Listener) awaits() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.newcomers.Len() > 0
}

// relieve closes a connection when the process has no file left for another.
func (l *Listener) relieve(err error) {
	if !errors.Is(err, syscall.EMFILE) && !errors.Is(err, syscall.ENFILE) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); !l.dropNewcomer(now) {
		l.dropKnown(now)
	}
}

// full is for who comes when there are too many.
const full = "Too many connections are open. Close some, and try again."

var refusal = fmt.Appendf(nil, "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s", len(full), full)

// admit serves a connection if it may. It waits while places change hands too
// quickly: who has just come has to get a word in.
func (l *Listener) admit(ctx context.Context, c *conn) {
	for {
		again := l.tryToAdmit(ctx, c)
		if again == 0 {
			return
		}
		select {
		case <-time.After(again):
		case <-l.ended:
		}
	}
}

// tryToAdmit serves a connection or refuses it; else it returns when to try
// again.
func (l *Listener) tryToAdmit(ctx context.Context, c *conn) (again time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	ok, again := l.room(now)
	if l.closed {
		c.fate, again = ending, 0 // there is no time to wait
	}
	switch {
	case ok:
		l.places[c.place] = true
		c.at, c.came, c.since = l.newcomers.PushBack(c.place), now, now
		// A context of its own spares its requests the lock of the one for all.
		ctx, c.stop = context.WithCancel(ctx)
		l.running.Go(func() { c.serve(ctx, now) })
		return 0
	case again == 0:
		c.nc.SetWriteDeadline(now.Add(time.Second)) // the first write of a connection does not wait
		c.nc.Write(refusal)
		c.nc.Close()
	}
	return again
}

// Accept waits for the next connection that net/http has to serve.
func (l *Listener) Accept() (net.Conn, error) {
	l.start()
	select {
	case nc := <-l.other:
		return nc, nil
	case err := <-l.fail:
		return nil, err
	case <-l.over:
		return nil, net.ErrClosed
	}
}

// Addr is where it listens.
func (l *Listener) Addr() net.Addr { return l.inner.Addr() }

// Close ends the accepting, and the connections on which no request is being
// answered. It waits a moment for the first request of those on which none has come. They
// end with their answers, as the others do: Shutdown waits for them. net/http answers nothing
// any more once it was told to stop, so it is to be told after this.
func (l *Listener) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return net.ErrClosed
	}
	l.closed = true
	close(l.ended)
	for p, here := range l.places {
		if here && p.at == nil {
			p.closeIdle()
		} else if here {
			p.end()
		}
	}
	accepting := l.started
	l.mu.Unlock()
	if !accepting {
		close(l.over)
	}
	if d, ok := l.inner.(deadlined); ok && accepting && d.SetDeadline(past) == nil {
		return <-l.closing
	}
	return l.inner.Close()
}

// lastTime is how long handlers have to end whose connections were cut off.
const lastTime = time.Second

// Shutdown closes the Listener and waits until every request is answered. When
// ctx ends before, it cuts off what is left and returns ctx.Err(), a second
// later if there are handlers that do not end.
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
	for p, here := range l.places {
		if here {
			p.stop()
			p.nc.Close()
		}
	}
	l.mu.Unlock()
	select {
	case <-done:
	case <-time.After(lastTime):
	}
	return ctx.Err()
}

// Oversee has a server that accepts from the Listener keep the Listener's
// bounds: those of its times, the end of bodies that nobody reads, and the
// account of which connections are worth their places. It is called before the
// server serves.
func (l *Listener) Oversee(s *http.Server) {
	s.ReadHeaderTimeout, s.IdleTimeout = l.HeaderTime, l.IdleTime
	s.Handler = overseen(s.Handler, l.BodyTime)
	inner := s.ConnContext
	s.ConnContext = func(ctx context.Context, nc net.Conn) context.Context {
		if inner != nil {
			ctx = inner(ctx, nc)
		}
		return context.WithValue(ctx, placeKey{}, nc.(*replayed).place)
	}
	s.ConnState = func(nc net.Conn, state http.ConnState) {
		if state == http.StateIdle {
			nc.(*replayed).place.enter(waiting, time.Now())
		}
	}
}
