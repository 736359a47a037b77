package httpserver

import (
	"io"
	"net"
	"net/http"
	"time"
)

// body is the body of the request that is being answered.
type body struct {
	c    *stream
	left int64
	by   time.Time // the deadline that the handler has set; zero = none
	over bool      // what comes next is not the handler's
}

// Read reads at most to the end of the body.
func (b *body) Read(p []byte) (int, error) {
	if b.over {
		return 0, http.ErrBodyReadAfterClose
	}
	if b.left == 0 {
		return 0, io.EOF
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	c := b.c
	if c.br.Buffered() == 0 {
		b.await()
	}
	n, err := c.br.Read(p)
	if c.phase == inBody {
		c.got.Add(int64(n))
	}
	if b.left -= int64(n); n > 0 && b.left == 0 {
		if c.phase == inBody && c.whole() == dropped {
			return 0, net.ErrClosed // nobody would get an answer
		}
		c.watchLater()
		return n, nil
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// await bounds the waiting for what comes next.
func (b *body) await() {
	c := b.c
	by := c.since.Add(c.l.BodyTime)
	if !b.by.IsZero() {
		by = sooner(by, b.by)
	}
	if !c.readBy.Equal(by) {
		c.setReadDeadline(by)
	}
}

// Close ends the reading: what is left is drained.
func (b *body) Close() error {
	b.over = true
	return nil
}

// drain throws away what the handler has left of the body, and reports whether
// that was all of it.
func (b *body) drain() bool {
	if b.left == 0 {
		return true
	}
	c := b.c
	if c.phase == inBody { // else it is here
		c.setReadDeadline(sooner(c.since.Add(c.l.BodyTime), time.Now().Add(lingerTime)))
	}
	n, _ := io.CopyN(io.Discard, c.br, b.left)
	return n == b.left
}
