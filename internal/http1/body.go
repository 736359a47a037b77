package http1

import (
	"io"
	"net/http"
	"time"
)

// body is the body of the request that is being answered.
type body struct {
	w    *response
	left int64
	by   time.Time // the deadline that the handler has set
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
	c := b.w.c
	if c.br.Buffered() == 0 && !c.readBy.Equal(b.by) {
		c.setReadDeadline(b.by)
	}
	n, err := c.br.Read(p)
	if b.left -= int64(n); n > 0 && b.left == 0 {
		c.watchLater()
		return n, nil
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// Close ends the reading: what is left is drained.
func (b *body) Close() error {
	b.over = true
	return nil
}

// drain reads what the handler has left of the body, for as long as a head may
// take: to close the connection before would take the answer from a client
// that is still sending.
func (b *body) drain() bool {
	b.over = true
	if b.left == 0 {
		return true
	}
	c := b.w.c
	c.setReadDeadline(time.Now().Add(c.l.HeaderTime))
	n, _ := io.CopyN(io.Discard, c.br, b.left)
	return n == b.left
}
