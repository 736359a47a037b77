package mcpserver

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"time"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
)

// quiet is how long a client hears nothing before it gets a sign of life: some
// give up a connection on which nothing comes.
const quiet = 15 * time.Second

var errStalled = errors.New("the client does not read its stream")

var keepAlive = []byte(": keep-alive\n\n") // never written to

// Shared header values; nobody writes to them.
var (
	typeJSON    = []string{"application/json"}
	typeEvents  = []string{"text/event-stream"}
	noCache     = []string{"no-cache"}
	noBuffering = []string{"no"}
	noLength    = []string{"0"}
)

// stream is an answer that becomes server-sent events when something has to be
// said before the result. The owner has to finish it.
type stream struct {
	outlet
	w     http.ResponseWriter
	rc    *http.ResponseController // of who writes; nil: the header is not out
	timer *time.Timer
	head  []mcp.Field // goes out with the first event; outlet.mu guards this
}

// newStream makes a stream that opens by itself when the answer takes long.
func newStream(w http.ResponseWriter, cancel context.CancelCauseFunc) *stream {
	st := &stream{w: w}
	st.to, st.frame, st.failed = st, eventOf, func() { cancel(errStalled) }
	st.mu.Lock() // what the timer does comes after this
	defer st.mu.Unlock()
	st.timer = time.AfterFunc(quiet, st.stayAlive)
	return st
}

func eventOf(e session.Event) []byte { return wirejson.AppendEvent(nil, "", e.Append(nil)) }

// setHead says what the head of the answer has besides what is ours. For a
// stream that is open it comes too late.
func (st *stream) setHead(fields []mcp.Field) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if !st.opened {
		st.head = fields
	}
}

// open begins the stream with a sign of life.
func (st *stream) open() {
	st.mu.Lock()
	defer st.mu.Unlock()
	if !st.opened {
		st.push(keepAlive)
	}
}

// stayAlive sends a sign of life when nothing else was said for long.
func (st *stream) stayAlive() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.push(keepAlive)
}

// finish ends the stream with a last event, which may be empty, and waits until
// it is written. To one that was never opened nothing was written, and nothing
// will be. To finish again changes nothing.
func (st *stream) finish(last []byte) {
	opened := st.settle()
	if opened {
		st.close(last)
	}
	st.timer.Stop()
	if opened && st.rc != nil {
		_ = st.rc.SetWriteDeadline(time.Time{})
	}
}

// Write writes events, for as long as a client may take to read; the first ones
// behind the header.
func (st *stream) Write(events []byte) (int, error) {
	if st.rc == nil {
		st.rc = http.NewResponseController(st.w)
		h := st.w.Header()
		st.mu.Lock()
		appendHead(h, st.head)
		st.mu.Unlock()
		if h["Cache-Control"] == nil {
			h["Cache-Control"] = noCache
		}
		h["Content-Type"], h["X-Accel-Buffering"] = typeEvents, noBuffering
		st.w.WriteHeader(http.StatusOK)
	}
	_ = st.rc.SetWriteDeadline(time.Now().Add(writeTimeout)) // not every writer can
	n, err := st.w.Write(events)
	if err == nil {
		err = st.rc.Flush()
	}
	st.timer.Reset(quiet)
	return n, err
}

// appendHead puts the header lines of a server's answer into ours. What
// MCPProxy says itself stays as it is.
func appendHead(h http.Header, fields []mcp.Field) {
	if len(fields) == 0 {
		return
	}
	ours := maps.Clone(h)
	for _, f := range fields {
		if ours[http.CanonicalHeaderKey(f.Name)] == nil {
			h.Add(f.Name, f.Value)
		}
	}
}
