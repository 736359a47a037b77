package httpserver

import (
	"bufio"
	"context"
	"errors"
	"os"
	"time"
)

// connIO is the part of a connection that a request and its reply use.
type connIO struct {
	*connState
	*readBuffers
	l         *listenerState
	outBuffer []byte // reply buffer between two requests

	readBy  time.Time // current read deadline; zero means none
	writeBy time.Time

	timer  *time.Timer             // starts the watch
	fired  chan struct{}           // the watch has ended; capacity 1
	cancel context.CancelCauseFunc // ends the context of the request
	over   bool                    // the handler has returned, so no watch may start; mu guards it
}

// readBuffers is the reusable read state of a connection. It is pooled, so that many connections do not fill the heap.
type readBuffers struct {
	br    *bufio.Reader
	names headerCache
}

// watchAfter is the time after which the client of a running handler is watched. A watch costs more than most requests.
const watchAfter = 100 * time.Millisecond

// scheduleDisconnectWatch starts a watch if the handler takes long. The body has been read by then, so no other
// goroutine reads.
func (c *connIO) scheduleDisconnectWatch() {
	c.over = false // no watch runs yet
	if c.timer == nil {
		c.timer = time.AfterFunc(watchAfter, c.watchForDisconnect)
		return
	}
	c.timer.Reset(watchAfter)
}

// watchForDisconnect ends the context of the request when the client disconnects. Bytes that arrive belong to the next
// request.
func (c *connIO) watchForDisconnect() {
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

// stopDisconnectWatch stops the watch, so that the connection can be read again.
func (c *connIO) stopDisconnectWatch() {
	if c.timer.Stop() {
		return // the watch has not started
	}
	c.mu.Lock()
	c.over = true
	c.nc.SetReadDeadline(past)
	c.mu.Unlock()
	<-c.fired
	c.setReadDeadline(time.Time{})
}

// setReadDeadline sets a deadline. If it fails the connection is closed, and its next use fails.

func (c *connIO) setReadDeadline(by time.Time) {
	c.readBy = by
	c.nc.SetReadDeadline(by)
}

func (c *connIO) setWriteDeadline(by time.Time) {
	c.writeBy = by
	c.nc.SetWriteDeadline(by)
}
