package mcpserver

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/session"
)

const (
	// writeTimeout is how long a client may take to read an answer. Any answer may
	// find the buffers of its connection full, a small one too.
	writeTimeout = 30 * time.Second
	// quiet is how long a client hears nothing before it gets a sign of life:
	// some give up a connection on which nothing comes.
	quiet = 15 * time.Second
	// maxQueued is how much is kept for a client that does not read. What is
	// beyond is progress that nobody sees; the answer itself always has room.
	maxQueued = 1 << 20
)

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
// said before the result. Notifications are queued and written by a goroutine
// of the stream's own: whoever delivers them, the reader of an upstream, never
// waits for a client. The owner has to finish the stream.
type stream struct {
	w      http.ResponseWriter
	rc     *http.ResponseController
	cancel context.CancelCauseFunc
	timer  *time.Timer

	mu    sync.Mutex // guards what follows
	state streamState
	head  []session.Field // goes out with the first event
	queue []byte
	room  sync.Cond     // the queue was taken, or the stream has ended
	wake  chan struct{} // made with the goroutine
	done  chan struct{}
}

type streamState uint8

const (
	idle streamState = iota
	open
	finishing
	finished
)

// newStream makes a stream that opens by itself when the answer takes long.
func newStream(w http.ResponseWriter, cancel context.CancelCauseFunc) *stream {
	st := &stream{w: w, cancel: cancel}
	st.room.L = &st.mu
	st.timer = time.AfterFunc(quiet, st.open)
	return st
}

// pass queues what a server says that a client which is behind may miss.
func (st *stream) pass(e session.Event) {
	event := jsonrpc.AppendEvent(nil, "", e.Append(nil))
	st.mu.Lock()
	defer st.mu.Unlock()
	if len(st.queue) > 0 && len(st.queue)+len(event) > maxQueued {
		return
	}
	st.push(event)
}

// tell queues what a server says to a request that was passed on. It waits
// while the client is behind: nothing of it is dropped.
func (st *stream) tell(e session.Event) {
	event := jsonrpc.AppendEvent(nil, "", e.Append(nil))
	st.mu.Lock()
	defer st.mu.Unlock()
	for st.state == open && len(st.queue) > maxQueued {
		st.room.Wait()
	}
	st.push(event)
}

// offer is tell for somebody who must not wait. A client that is too far
// behind loses its stream.
func (st *stream) offer(e session.Event) {
	event := jsonrpc.AppendEvent(nil, "", e.Append(nil))
	st.mu.Lock()
	defer st.mu.Unlock()
	if len(st.queue) > 0 && len(st.queue)+len(event) > maxQueued {
		st.cancel(errStalled)
		return
	}
	st.push(event)
}

// push queues an event. The lock is held.
func (st *stream) push(event []byte) {
	if st.state > open {
		return
	}
	st.start()
	st.queue = append(st.queue, event...)
	st.signal()
}

// setHead says what the head of the answer has besides what is ours. For a
// stream that is open it comes too late.
func (st *stream) setHead(fields []session.Field) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.head = fields
}

// open begins the stream with a sign of life.
func (st *stream) open() {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.state == idle {
		st.start()
		st.queue = append(st.queue, keepAlive...)
		st.signal()
	}
}

// start starts the writer. The lock is held.
func (st *stream) start() {
	if st.state != idle {
		return
	}
	st.state = open
	appendHead(st.w.Header(), st.head)
	st.wake, st.done = make(chan struct{}, 1), make(chan struct{})
	st.rc = http.NewResponseController(st.w)
	go st.write()
}

func (st *stream) signal() {
	select {
	case st.wake <- struct{}{}:
	default:
	}
}

// settle says whether the stream is open. If it is not, it will not be.
func (st *stream) settle() bool {
	st.timer.Stop()
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.state == idle {
		st.state = finished
	}
	return st.done != nil
}

// finish ends the stream with a last event, which may be empty, and waits
// until it is written. It gives false when the stream was never opened: then
// nothing was written, and nothing will be. To finish again changes nothing.
func (st *stream) finish(last []byte) bool {
	if !st.settle() {
		return false
	}
	st.mu.Lock()
	if st.state == open {
		st.state = finishing
		st.queue = append(st.queue, last...)
		st.signal()
	}
	st.mu.Unlock()
	<-st.done
	return true
}

// write is the goroutine of the stream.
func (st *stream) write() {
	defer close(st.done)
	defer func() { _ = st.rc.SetWriteDeadline(time.Time{}) }()
	eventHeader(st.w)
	tick := time.NewTicker(quiet)
	defer tick.Stop()
	var batch []byte
	for {
		select {
		case <-st.wake:
		case <-tick.C:
		}
		st.mu.Lock()
		batch, st.queue = st.queue, batch[:0]
		last := st.state == finishing
		st.room.Broadcast()
		st.mu.Unlock()
		if len(batch) == 0 && !last {
			batch = append(batch, keepAlive...)
		}
		if err := writeEvents(st.w, st.rc, batch); err != nil {
			st.cancel(errStalled)
			st.drop()
			return
		}
		if last {
			return
		}
	}
}

// drop gives up on the client: what is still said to it is forgotten.
func (st *stream) drop() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.state, st.queue = finished, nil
	st.room.Broadcast()
}

// eventHeader announces a stream.
func eventHeader(w http.ResponseWriter) {
	h := w.Header()
	h["Content-Type"] = typeEvents
	if h["Cache-Control"] == nil {
		h["Cache-Control"] = noCache
	}
	h["X-Accel-Buffering"] = noBuffering
	w.WriteHeader(http.StatusOK)
}

// writeEvents writes, for as long as a client may take to read.
func writeEvents(w http.ResponseWriter, rc *http.ResponseController, events []byte) error {
	_ = rc.SetWriteDeadline(time.Now().Add(writeTimeout)) // not every writer can
	if len(events) > 0 {
		if _, err := w.Write(events); err != nil {
			return err
		}
	}
	return rc.Flush()
}

// appendHead puts the header lines of a server's answer into ours. What
// MCPProxy says itself stays as it is.
func appendHead(h http.Header, fields []session.Field) {
	for i, f := range fields {
		named := func(other session.Field) bool { return strings.EqualFold(other.Name, f.Name) }
		name := http.CanonicalHeaderKey(f.Name)
		if h[name] != nil {
			continue
		}
		var values []string
		for _, other := range fields[i:] {
			if named(other) {
				values = append(values, other.Value)
			}
		}
		h[name] = values
	}
}
