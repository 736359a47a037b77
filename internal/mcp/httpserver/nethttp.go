package httpserver

import (
	"io"
	"net"
	"net/http"
	"time"
)

type connStateKey struct{}

// trackRequests wraps a handler so that its requests are registered. net/http would read an unread body without a time
// limit, so trackRequests sets a deadline. net/http resets the deadline after a complete body.
func trackRequests(h http.Handler, bodyTime time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := r.Context().Value(connStateKey{}).(*connState)
		if r.Body == http.NoBody {
			if p.markRequestComplete() == dropped {
				panic(http.ErrAbortHandler)
			}
			h.ServeHTTP(w, r)
			return
		}
		now := time.Now()
		p.enterPhase(inBody, now)
		body := &trackedBody{ReadCloser: r.Body, state: p, rc: http.NewResponseController(w), by: now.Add(bodyTime)}
		body.setReadDeadline(body.by)
		defer body.limitUnreadBodyTime()
		r = r.WithContext(r.Context()) // net/http needs the original body
		r.Body = body
		h.ServeHTTP(w, r)
	})
}

// trackedBody is the body of a request at net/http.
type trackedBody struct {
	io.ReadCloser
	state *connState
	rc    *http.ResponseController
	by    time.Time
	whole bool
}

// setReadDeadline sets the read deadline. On a closed connection the next read fails.
func (c *trackedBody) setReadDeadline(by time.Time) { _ = c.rc.SetReadDeadline(by) }

// limitUnreadBodyTime limits how long net/http reads the rest of the body after the handler returned.
func (c *trackedBody) limitUnreadBodyTime() {
	if !c.whole {
		c.setReadDeadline(earlierTime(c.by, time.Now().Add(lingerTime)))
	}
}

// Read reads the body and counts the bytes.
func (c *trackedBody) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.state.got.Add(int64(n))
	if err == io.EOF && !c.whole {
		c.whole = true
		if c.state.markRequestComplete() == dropped {
			return 0, net.ErrClosed
		}
	}
	return n, err
}

// replayConn is a connection with bytes that were already read.
type replayConn struct {
	net.Conn
	state *connState
	read  []byte
}

// Close closes the connection and frees its slot.
func (r *replayConn) Close() error {
	r.state.in.removeConn(r.state)
	return r.Conn.Close()
}

// CloseWrite lets net/http half-close a connection on which a client may still send.
func (r *replayConn) CloseWrite() error {
	if half, ok := r.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Read returns the buffered bytes first.
func (r *replayConn) Read(p []byte) (int, error) {
	if len(r.read) == 0 {
		return r.Conn.Read(p)
	}
	n := copy(p, r.read)
	if r.read = r.read[n:]; len(r.read) == 0 {
		r.read = nil // frees the memory
	}
	return n, nil
}

// Write tracks whether the client reads.
func (r *replayConn) Write(p []byte) (int, error) {
	r.state.markWriteStarted(time.Now())
	defer r.state.markWriteEnded()
	return r.Conn.Write(p)
}
