package httpserver

import (
	"bufio"
	"context"
	"errors"
	"os"
	"time"
)

// stream is a connection as a request and its answer use it.
type stream struct {
	*place
	*scratch
	l    *common
	room []byte // for answers, between two of them

	readBy  time.Time // the deadline that is set for reading; zero = none
	writeBy time.Time

	timer  *time.Timer             // begins the watch
	fired  chan struct{}           // the watch has ended; has room for that
	cancel context.CancelCauseFunc // ends the context of the request
	over   bool                    // the handler has returned: nobody is watched; mu guards it
}

// scratch is what a connection is read with. It is used again: who opens many
// connections is not to fill the heap.
type scratch struct {
	br    *bufio.Reader
	names names
}

// watchAfter is how long a handler runs before its client is watched: to watch
// costs more than most requests take.
const watchAfter = 100 * time.Millisecond

// watchLater watches the client when the handler takes long. Nothing else
// reads from the connection then: the body has been read.
func (c *stream) watchLater() {
	c.over = false // the one that could look is not there yet
	if c.timer == nil {
		c.timer = time.AfterFunc(watchAfter, c.watch)
		return
	}
	c.timer.Reset(watchAfter)
}

// watch ends the context of the request when the client goes away. What a
// client sends meanwhile is its next request.
func (c *stream) watch() {
	defer func() { c.fired <- struct{}{} }()
	c.mu.Lock()
	if !c.over {
		c.nc.SetReadDeadline(time.Time{})
	}
	c.mu.Unlock()
	if _, err := c.br.Peek(1); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		c.cancel(nil)
	}
}

// unwatch ends the watch, so that the connection can be read again.
func (c *stream) unwatch() {
	if c.timer.Stop() {
		return // it has not begun
	}
	c.mu.Lock()
	c.over = true
	c.nc.SetReadDeadline(past)
	c.mu.Unlock()
	<-c.fired
	c.setReadDeadline(time.Time{})
}

// A deadline that cannot be set is that of a connection that is closed: the
// next use of it says so.

func (c *stream) setReadDeadline(by time.Time) {
	c.readBy = by
	c.nc.SetReadDeadline(by)
}

func (c *stream) setWriteDeadline(by time.Time) {
	c.writeBy = by
	c.nc.SetWriteDeadline(by)
}
