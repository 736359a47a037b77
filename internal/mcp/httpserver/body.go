package httpserver

import (
	"io"
	"net"
	"net/http"
	"time"
)

// requestBody is the body of the current request.
type requestBody struct {
	c               *connIO
	left            int64
	handlerDeadline time.Time // deadline of the handler; zero means none
	closed          bool      // the handler may no longer read
}

// Read reads the body.
func (b *requestBody) Read(p []byte) (int, error) {
	if b.closed {
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
		b.setNextReadDeadline()
	}
	n, err := c.br.Read(p)
	if c.phase == inBody {
		c.got.Add(int64(n))
	}
	if b.left -= int64(n); n > 0 && b.left == 0 {
		if c.phase == inBody && c.markRequestComplete() == dropped {
			return 0, net.ErrClosed // the client would not get a reply
		}
		c.scheduleDisconnectWatch()
		return n, nil
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// setNextReadDeadline sets the deadline of the next read.
func (b *requestBody) setNextReadDeadline() {
	c := b.c
	by := c.since.Add(c.l.BodyTime)
	if !b.handlerDeadline.IsZero() {
		by = earlierTime(by, b.handlerDeadline)
	}
	if !c.readBy.Equal(by) {
		c.setReadDeadline(by)
	}
}

// Close stops reading; drain discards the rest.
func (b *requestBody) Close() error {
	b.closed = true
	return nil
}

// drain discards the rest of the body and reports whether it reached the end.
func (b *requestBody) drain() bool {
	if b.left == 0 {
		return true
	}
	c := b.c
	if c.phase == inBody { // otherwise the body is buffered
		c.setReadDeadline(earlierTime(c.since.Add(c.l.BodyTime), time.Now().Add(lingerTime)))
	}
	n, _ := io.CopyN(io.Discard, c.br, b.left)
	return n == b.left
}
