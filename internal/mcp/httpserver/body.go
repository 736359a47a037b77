package httpserver

import (
	"io"
	"net"
	"net/http"
	"time"
)

// body is the body of the current request.
type body struct {
	c    *stream
	left int64
	by   time.Time // deadline of the handler; zero: none
	over bool      // the handler may no longer read
}

// Read reads the body.
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
		if c.phase == inBody && c.complete() == dropped {
			return 0, net.ErrClosed // no one would get a reply
		}
		c.watchLater()
		return n, nil
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// await sets the deadline of the next read.
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

// Close stops reading; drain discards the rest.
func (b *body) Close() error {
	b.over = true
	return nil
}

// drain discards the rest of the body and reports whether it reached the end.
func (b *body) drain() bool {
	if b.left == 0 {
		return true
	}
	c := b.c
	if c.phase == inBody { // otherwise it is buffered
		c.setReadDeadline(sooner(c.since.Add(c.l.BodyTime), time.Now().Add(lingerTime)))
	}
	n, _ := io.CopyN(io.Discard, c.br, b.left)
	return n == b.left
}
