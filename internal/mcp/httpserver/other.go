package httpserver

import (
	"io"
	"net"
	"net/http"
	"time"
)

type placeKey struct{}

// overseen is the handler with its requests accounted for. net/http reads what
// a handler has left of a body, for as long as a client likes: the deadline that
// is set here ends that. It is taken back by net/http when the body has come whole.
func overseen(h http.Handler, bodyTime time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := r.Context().Value(placeKey{}).(*place)
		if r.Body == http.NoBody {
			if p.whole() == dropped {
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
		r = r.WithContext(r.Context()) // net/http has to keep its own body
		r.Body = body
		h.ServeHTTP(w, r)
	})
}

// counted is the body of a request at net/http.
type counted struct {
	io.ReadCloser
	place *place
	rc    *http.ResponseController
	by    time.Time
	whole bool
}

// await bounds the reading. A connection that is closed says so when it is read.
func (c *counted) await(by time.Time) { _ = c.rc.SetReadDeadline(by) }

// leave is for when the handler has returned.
func (c *counted) leave() {
	if !c.whole {
		c.await(sooner(c.by, time.Now().Add(lingerTime)))
	}
}

// Read keeps account of what has come.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.place.got.Add(int64(n))
	if err == io.EOF && !c.whole {
		c.whole = true
		if c.place.whole() == dropped {
			return 0, net.ErrClosed
		}
	}
	return n, err
}

// replayed is a connection some of which was read before.
type replayed struct {
	net.Conn
	place *place
	read  []byte
}

// Close ends the connection, whose place is free.
func (r *replayed) Close() error {
	r.place.in.remove(r.place)
	return r.Conn.Close()
}

// CloseWrite is what net/http ends a connection with on which a client may
// still be sending.
func (r *replayed) CloseWrite() error {
	if half, ok := r.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Read returns what was read before, and then what comes.
func (r *replayed) Read(p []byte) (int, error) {
	if len(r.read) == 0 {
		return r.Conn.Read(p)
	}
	n := copy(p, r.read)
	if r.read = r.read[n:]; len(r.read) == 0 {
		r.read = nil // and the memory that it is in
	}
	return n, nil
}

// Write keeps account of a client that does not read.
func (r *replayed) Write(p []byte) (int, error) {
	r.place.writing(time.Now())
	defer r.place.written()
	return r.Conn.Write(p)
}
