package httpserver

import (
	"io"
	"net"
	"net/http"
	"time"
)

type connStateKey struct{}

// overseen wraps a handler so that its requests are registered. net/http would read an unread body for as
// long as the client likes: the deadline ends that. net/http resets it after a complete body.
func overseen(h http.Handler, bodyTime time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := r.Context().Value(connStateKey{}).(*connState)
		if r.Body == http.NoBody {
			if p.complete() == dropped {
				panic(http.ErrAbortHandler)
			}
			h.ServeHTTP(w, r)
			return
		}
		now := time.Now()
		p.enter(inBody, now)
		body := &counted{ReadCloser: r.Body, place: p, rc: http.NewResponseController(w), by: now.Add(bodyTime)}
		body.await(body.by)
		defer body.leave()
		r = r.WithContext(r.Context()) // net/http needs its own body
		r.Body = body
		h.ServeHTTP(w, r)
	})
}

// counted is the body of a request at net/http.
type counted struct {
	io.ReadCloser
	place *connState
	rc    *http.ResponseController
	by    time.Time
	whole bool
}

// await sets the read deadline. On a closed connection the next read fails.
func (c *counted) await(by time.Time) { _ = c.rc.SetReadDeadline(by) }

// leave is called when the handler returns.
func (c *counted) leave() {
	if !c.whole {
		c.await(sooner(c.by, time.Now().Add(lingerTime)))
	}
}

// Read counts the bytes.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.place.got.Add(int64(n))
	if err == io.EOF && !c.whole {
		c.whole = true
		if c.place.complete() == dropped {
			return 0, net.ErrClosed
		}
	}
	return n, err
}

// replayed is a connection with bytes that were already read.
type replayed struct {
	net.Conn
	place *connState
	read  []byte
}

// Close closes the connection and frees its slot.
func (r *replayed) Close() error {
	r.place.in.remove(r.place)
	return r.Conn.Close()
}

// CloseWrite lets net/http half-close a connection on which a client may still send.
func (r *replayed) CloseWrite() error {
	if half, ok := r.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Read returns the buffered bytes first.
func (r *replayed) Read(p []byte) (int, error) {
	if len(r.read) == 0 {
		return r.Conn.Read(p)
	}
	n := copy(p, r.read)
	if r.read = r.read[n:]; len(r.read) == 0 {
		r.read = nil // frees the memory
	}
	return n, nil
}

// Write tracks clients that do not read.
func (r *replayed) Write(p []byte) (int, error) {
	r.place.writing(time.Now())
	defer r.place.written()
	return r.Conn.Write(p)
}
