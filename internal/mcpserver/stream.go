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

// keepAliveTime is the interval of keep-alive comments: some clients close a silent connection.
const keepAliveTime = 15 * time.Second

var errStalled = errors.New("the client does not read its stream")

var keepAlive = []byte(": keep-alive\n\n") // never modified

// Shared header values, never modified.
var (
	typeJSON    = []string{"application/json"}
	typeEvents  = []string{"text/event-stream"}
	noCache     = []string{"no-cache"}
	noBuffering = []string{"no"}
	noLength    = []string{"0"}
)

// eventStream is a reply that becomes server-sent events if an event precedes the result. The owner must finish
// it.
type eventStream struct {
	clientWriter
	w     http.ResponseWriter
	rc    *http.ResponseController // of the writer; nil: the headers are not sent
	timer *time.Timer
	head  []mcp.Header // sent with the first event; clientWriter.mu guards this
}

// newEventStream returns a stream that opens automatically if the reply takes long.
func newEventStream(w http.ResponseWriter, cancel context.CancelCauseFunc) *eventStream {
	st := &eventStream{w: w}
	st.to, st.frame, st.failed = st, encodeEvent, func() { cancel(errStalled) }
	st.mu.Lock() // the timer waits for the setup
	defer st.mu.Unlock()
	st.timer = time.AfterFunc(keepAliveTime, st.sendKeepAlive)
	return st
}

func encodeEvent(e session.Event) []byte {
	return wirejson.AppendSSEEvent(nil, "", e.AppendMessage(nil))
}

// setForwardedHeaders sets additional headers. It has no effect on an open stream.
func (st *eventStream) setForwardedHeaders(fields []mcp.Header) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if !st.opened {
		st.head = fields
	}
}

// openStream starts the stream with a keep-alive.
func (st *eventStream) openStream() {
	st.mu.Lock()
	defer st.mu.Unlock()
	if !st.opened {
		st.appendToQueue(keepAlive)
	}
}

// sendKeepAlive sends a keep-alive if nothing else was sent for long.
func (st *eventStream) sendKeepAlive() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.appendToQueue(keepAlive)
}

// finishStream ends the stream with a last event, which may be empty, and waits until it is written. A stream
// that was not opened writes nothing. Later calls do nothing.
func (st *eventStream) finishStream(last []byte) {
	opened := st.closeIfUnused()
	if opened {
		st.closeAndWait(last)
	}
	st.timer.Stop()
	if opened && st.rc != nil {
		_ = st.rc.SetWriteDeadline(time.Time{})
	}
}

// Write writes events with a time limit; the headers precede the first ones.
func (st *eventStream) Write(events []byte) (int, error) {
	if st.rc == nil {
		st.rc = http.NewResponseController(st.w)
		h := st.w.Header()
		st.mu.Lock()
		addForwardedHeaders(h, st.head)
		st.mu.Unlock()
		if h["Cache-Control"] == nil {
			h["Cache-Control"] = noCache
		}
		h["Content-Type"], h["X-Accel-Buffering"] = typeEvents, noBuffering
		st.w.WriteHeader(http.StatusOK)
	}
	_ = st.rc.SetWriteDeadline(time.Now().Add(writeTimeout)) // not every writer supports it
	n, err := st.w.Write(events)
	if err == nil {
		err = st.rc.Flush()
	}
	st.timer.Reset(keepAliveTime)
	return n, err
}

// addForwardedHeaders adds the headers of a server's response. MCPProxy's own headers are not replaced.
func addForwardedHeaders(h http.Header, fields []mcp.Header) {
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
