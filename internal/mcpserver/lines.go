package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
)

const (
	// maxUnanswered limits the concurrent requests of one connection; later ones wait.
	maxUnanswered = 1024
	// forwardTime limits the forwarding of a message without a reply. Later messages wait for it.
	forwardTime = 10 * time.Second
	// The pauses between attempts to listen to a server.
	minPause = time.Second
	maxPause = 30 * time.Second
)

// lineConn is a connection of the socket with one message per line. It has at most one session, which ends
// with it. Only its reader uses the fields.
type lineConn struct {
	clientState
	nc        net.Conn
	out       clientWriter
	slots     chan struct{} // one per open request
	listening *sessionEntry // the session whose stream is read
	others    sync.WaitGroup
	batches   int

	leaving     sync.Once
	readStopped chan struct{} // closed when no more is read
}

// serveLines serves the line protocol until the client disconnects, or reading has stopped and all requests are
// answered.
func (x *httpRequest) serveLines() {
	nc, read, err := http.NewResponseController(x.out.w).Hijack()
	if err != nil {
		x.sendMethodNotAllowed()
		return
	}
	x.out.begun = true
	defer nc.Close()
	if !x.s.registerLineConn() {
		return
	}
	defer x.s.lines.Done()
	ctx, cancel := context.WithCancel(x.r.Context())
	// a client that does not read does not learn of a stop, either
	context.AfterFunc(x.r.Context(), func() { _ = nc.SetWriteDeadline(time.Now().Add(drainTime)) })
	l := &lineConn{clientState: x.from, nc: nc, slots: make(chan struct{}, maxUnanswered), readStopped: make(chan struct{}),
		out: clientWriter{to: nc, frame: encodeEventLine, failed: func() { _ = nc.Close() }, writeSlot: make(chan struct{}, 1), ended: make(chan struct{})}}
	l.calls, l.closed = &cancellableCalls{}, l.readStopped
	l.others.Go(func() {
		select {
		case <-l.s.closed:
			l.stopReading()
		case <-l.token.Ended():
			l.stopReading()
		case <-l.readStopped:
		}
	})
	if _, err := io.WriteString(nc, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+mcp.LineProtocol+"\r\n\r\n"); err == nil {
		early, _ := read.Reader.Peek(read.Reader.Buffered())
		l.readLines(ctx, io.MultiReader(bytes.NewReader(early), nc))
	}
	l.stopReading()
	_ = nc.SetReadDeadline(time.Time{}) // if it fails, the next step fails, too
	l.others.Go(func() {
		for range maxUnanswered {
			l.slots <- struct{}{}
		}
		l.out.abandonClient()
	})
	_, _ = io.Copy(io.Discard, nc) // until all is answered, or the client disconnects
	l.out.abandonClient()
	cancel()
	l.others.Wait()
	l.out.closeAndWait()
	if l.entry != nil {
		l.entry.closeSession()
	}
}

// stopReading stops reading and ends endless requests. The other requests are answered.
func (l *lineConn) stopReading() {
	l.leaving.Do(func() {
		close(l.readStopped)
		_ = l.nc.SetReadDeadline(time.Unix(0, 0)) // if it fails, reading fails, too
	})
}

// readLines handles lines until the client's last one, the end of the connection, or stopReading.
func (l *lineConn) readLines(ctx context.Context, from io.Reader) {
	in := wirejson.NewLineReader(from, maxDrain)
	for {
		line, err := in.Next()
		switch {
		case errors.Is(err, wirejson.ErrTooLong): // its ID is unknown
		case err != nil || string(line) == mcp.LineEnd:
			return
		default:
			l.handleLine(ctx, in.TakeOwnershipOfLast())
		}
	}
}

// handleLine handles one line. Messages whose order matters are done before it returns.
func (l *lineConn) handleLine(ctx context.Context, text []byte) {
	from := l.clientState // the current state
	x := &message{clientState: &from}
	defer l.recoverPanic(x)
	text = bytes.TrimSpace(text)
	switch {
	case len(text) > 0 && text[0] == '[':
		l.startBatch(ctx, x, text)
		return
	case len(text) > maxBody:
		l.refuseIfRequest(text, errBodyTooLarge)
		return
	}
	bad := x.parseMessage(text)
	if bad == nil {
		x.detectProtocol("")
		if bad = x.checkMeta(); bad == nil && x.modern {
			_, _, bad = x.targetName(false)
		}
	}
	switch {
	case bad != nil:
		l.refuseIfRequest(text, x.recordRefusalIfCall(ctx, bad))
	case x.IsNotification() && x.Method == mcp.Cancelled:
		_ = x.forwardToSession(ctx) // a failure has no recipient
	case x.modern && !x.IsRequest():
	case x.Method == mcp.Initialize && !x.modern && x.IsRequest():
		l.openSession(ctx, x)
	case x.IsRequest() && !x.modern && l.entry == nil:
		l.writeError(x.ID, x.recordRefusalIfCall(ctx, errNoSession))
	case x.IsRequest():
		l.startRequest(ctx, x)
	case l.entry != nil:
		l.forwardMessage(ctx, x)
	}
}

// openSession opens a new session in place of the old one.
func (l *lineConn) openSession(ctx context.Context, x *message) {
	x.prepareRequest()
	e, o, err := x.openSession(ctx)
	if err != nil {
		l.writeError(x.ID, x.newReplyError(err))
		return
	}
	if e != nil {
		e.assignID(newRandomID(""))
		if l.entry != nil {
			l.entry.closeSession()
		}
		l.entry = e
	}
	l.writeReply(x.ID, &o.Reply)
}

// forwardMessage forwards a message without a reply. Its result is not awaited.
func (l *lineConn) forwardMessage(ctx context.Context, x *message) {
	limited, cancel := context.WithTimeout(ctx, forwardTime)
	defer cancel()
	_ = x.forwardToSession(limited)
	if x.Method == mcp.Initialized && l.listening != l.entry {
		l.listening = l.entry
		l.others.Go(func() { l.forwardNotifications(ctx, x) })
	}
}

// forwardNotifications forwards the notifications of the session's server until it offers no stream or the session
// ends.
func (l *lineConn) forwardNotifications(parent context.Context, x *message) {
	defer l.recoverPanic(x)
	ctx, stop := x.endlessContext(parent)
	defer stop()
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		began, agreed := time.Now(), false
		err := x.entry.session.Listen(ctx, l.out.queueOptional, func() { agreed = true })
		if agreed = agreed || time.Since(began) >= openTime; agreed {
			pause = minPause
		}
		if ctx.Err() != nil || x.entry.isClosed() {
			return
		}
		select {
		case <-x.entry.session.Done():
			err = session.ErrEnded
		default:
		}
		switch {
		case isSessionEnded(err):
			l.stopReading()
			return
		case !agreed:
			return // no stream
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// startRequest answers a request exactly once, also if it is cancelled. Replies may be in any order.
func (l *lineConn) startRequest(parent context.Context, x *message) {
	x.prepareRequest()
	ctx, cancel := context.WithCancelCause(parent)
	x.beginCancellable(cancel)
	l.runInSlot(func() {
		defer l.recoverPanic(x)
		defer x.endCancellable(cancel)
		switch o := x.runRequest(ctx, cancel, &l.out); {
		case o.sessionEnded && !x.told && (x.modern || !x.entry.isClosed()):
			l.writeLine([]byte(mcp.LineSessionEnded+" "), appendReply(nil, x.ID, &o.Reply))
			l.stopReading()
		default:
			l.writeReply(x.ID, &o.Reply)
		}
	})
}

// runInSlot runs f concurrently, once a slot is free and unless the connection ends before.
func (l *lineConn) runInSlot(f func()) {
	select {
	case l.slots <- struct{}{}:
		go func() {
			defer func() { <-l.slots }()
			f()
		}()
	case <-l.out.ended:
	}
}

// startBatch answers several messages, one after the other, in one line.
func (l *lineConn) startBatch(ctx context.Context, x *message, text []byte) {
	l.batches++
	name := mcp.LineBatch + " " + strconv.Itoa(l.batches) + " "
	l.runInSlot(func() {
		answers := newErrorMessage(nil, errPanicked)
		defer func() { l.writeLine([]byte(name), answers) }()
		defer l.recoverPanic(x)
		switch messages, err := wirejson.SplitBatch(text, limits); {
		case len(text) > maxBody:
			answers = newErrorMessage(nil, errBodyTooLarge)
		case err != nil:
			answers = newErrorMessage(nil, toRPCError(err))
		case x.entry == nil || x.entry.version != mcp.BatchVersion:
			answers = newErrorMessage(nil, errNoBatch)
		default:
			answers = x.answerBatch(ctx, messages)
		}
	})
}

// writeLine writes a message from several pieces.
func (l *lineConn) writeLine(pieces ...[]byte) {
	var room [6][]byte
	all := room[:0]
	for _, p := range pieces {
		all = append(all, removeLineBreaks(p))
	}
	l.out.writeQueued(append(all, lineEnd)...)
}

var lineEnd = []byte("\n") // never modified

func encodeEventLine(e session.Event) []byte {
	return append(removeLineBreaks(e.AppendMessage(nil)), '\n')
}

// removeLineBreaks removes line breaks, which in JSON are only white space between tokens.
func removeLineBreaks(text []byte) []byte {
	if bytes.IndexByte(text, '\n') < 0 && bytes.IndexByte(text, '\r') < 0 {
		return text
	}
	return bytes.ReplaceAll(bytes.ReplaceAll(text, []byte{'\n'}, []byte{' '}), []byte{'\r'}, []byte{' '})
}

// writeReply writes the reply to a request.
func (l *lineConn) writeReply(id json.RawMessage, r *session.Reply) {
	all := replyPieces(id, r)
	l.writeLine(all[:]...)
}

// writeError writes an error reply to a request.
func (l *lineConn) writeError(id json.RawMessage, e *wirejson.RPCError) {
	l.writeLine(newErrorMessage(id, e))
}

// refuseIfRequest answers a text with an error if it is a request.
func (l *lineConn) refuseIfRequest(text []byte, e *wirejson.RPCError) {
	if m, err := wirejson.ParseServerMessage(text); err == nil && m.IsRequest() {
		l.writeError(m.ID, e)
	}
}

// recoverPanic answers a message whose handler panicked.
func (l *lineConn) recoverPanic(m *message) {
	if cause := recover(); cause != nil {
		l.s.logPanic(m.Method, cause)
		if m.IsRequest() {
			l.writeError(m.ID, errPanicked)
		}
	}
}
