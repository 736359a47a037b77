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

// lines is a connection of the socket with one message per line. It has at most one session, which ends
// with it. Only its reader uses the fields.
type lines struct {
	client
	nc        net.Conn
	out       outlet
	slots     chan struct{} // one per open request
	listening *entry        // the session whose stream is read
	others    sync.WaitGroup
	batches   int

	leaving     sync.Once
	readStopped chan struct{} // closed when no more is read
}

// lines serves the line protocol until the client disconnects, or reading has stopped and all requests are
// answered.
func (x *request) lines() {
	nc, read, err := http.NewResponseController(x.out.w).Hijack()
	if err != nil {
		x.methodNotAllowed()
		return
	}
	x.out.begun = true
	defer nc.Close()
	if !x.s.beginLines() {
		return
	}
	defer x.s.lines.Done()
	ctx, cancel := context.WithCancel(x.r.Context())
	// a client that does not read does not learn of a stop, either
	context.AfterFunc(x.r.Context(), func() { _ = nc.SetWriteDeadline(time.Now().Add(drainTime)) })
	l := &lines{client: x.from, nc: nc, slots: make(chan struct{}, maxUnanswered), readStopped: make(chan struct{}),
		out: outlet{to: nc, frame: lineOf, failed: func() { _ = nc.Close() }, writeSlot: make(chan struct{}, 1), ended: make(chan struct{})}}
	l.calls, l.closed = &calls{}, l.readStopped
	l.others.Go(func() {
		select {
		case <-l.s.closed:
			l.leave()
		case <-l.token.Ended():
			l.leave()
		case <-l.readStopped:
		}
	})
	if _, err := io.WriteString(nc, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+mcp.LineProtocol+"\r\n\r\n"); err == nil {
		early, _ := read.Reader.Peek(read.Reader.Buffered())
		l.read(ctx, io.MultiReader(bytes.NewReader(early), nc))
	}
	l.leave()
	_ = nc.SetReadDeadline(time.Time{}) // if it fails, the next step fails, too
	l.others.Go(func() {
		for range maxUnanswered {
			l.slots <- struct{}{}
		}
		l.out.end()
	})
	_, _ = io.Copy(io.Discard, nc) // until all is answered, or the client disconnects
	l.out.end()
	cancel()
	l.others.Wait()
	l.out.close()
	if l.entry != nil {
		l.entry.close()
	}
}

// leave stops reading and ends endless requests. The other requests are answered.
func (l *lines) leave() {
	l.leaving.Do(func() {
		close(l.readStopped)
		_ = l.nc.SetReadDeadline(time.Unix(0, 0)) // if it fails, reading fails, too
	})
}

// read handles lines until the client's last one, the end of the connection, or leave.
func (l *lines) read(ctx context.Context, from io.Reader) {
	in := wirejson.NewLineReader(from, maxDrain)
	for {
		line, err := in.Next()
		switch {
		case errors.Is(err, wirejson.ErrTooLong): // its ID is unknown
		case err != nil || string(line) == mcp.LineEnd:
			return
		default:
			l.take(ctx, in.Keep())
		}
	}
}

// take handles one line. Messages whose order matters are done before it returns.
func (l *lines) take(ctx context.Context, text []byte) {
	from := l.client // the current state
	x := &message{client: &from}
	defer l.recover(x)
	text = bytes.TrimSpace(text)
	switch {
	case len(text) > 0 && text[0] == '[':
		l.batch(ctx, x, text)
		return
	case len(text) > maxBody:
		l.refuse(text, errBodyTooLarge)
		return
	}
	bad := x.read(text)
	if bad == nil {
		x.detectProtocol("")
		if bad = x.checkMeta(); bad == nil && x.modern {
			_, _, bad = x.subject(false)
		}
	}
	switch {
	case bad != nil:
		l.refuse(text, x.refuse(ctx, bad))
	case x.IsNotification() && x.Method == mcp.Cancelled:
		_ = x.forward(ctx) // a failure has no recipient
	case x.modern && !x.IsRequest():
	case x.Method == mcp.Initialize && !x.modern && x.IsRequest():
		l.initialize(ctx, x)
	case x.IsRequest() && !x.modern && l.entry == nil:
		l.fail(x.ID, x.refuse(ctx, errNoSession))
	case x.IsRequest():
		l.launch(ctx, x)
	case l.entry != nil:
		l.forward(ctx, x)
	}
}

// initialize opens a new session in place of the old one.
func (l *lines) initialize(ctx context.Context, x *message) {
	x.prepare()
	e, o, err := x.open(ctx)
	if err != nil {
		l.fail(x.ID, x.rpcError(err))
		return
	}
	if e != nil {
		e.name("")
		if l.entry != nil {
			l.entry.close()
		}
		l.entry = e
	}
	l.reply(x.ID, &o.Reply)
}

// forward forwards a message without a reply. Its result is not awaited.
func (l *lines) forward(ctx context.Context, x *message) {
	limited, cancel := context.WithTimeout(ctx, forwardTime)
	defer cancel()
	_ = x.forward(limited)
	if x.Method == mcp.Initialized && l.listening != l.entry {
		l.listening = l.entry
		l.others.Go(func() { l.receive(ctx, x) })
	}
}

// receive forwards the notifications of the session's server until it offers no stream or the session
// ends.
func (l *lines) receive(parent context.Context, x *message) {
	defer l.recover(x)
	ctx, stop := x.untilServerEnds(parent)
	defer stop()
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		began, agreed := time.Now(), false
		err := x.entry.session.Listen(ctx, l.out.pass, func() { agreed = true })
		if agreed = agreed || time.Since(began) >= openTime; agreed {
			pause = minPause
		}
		if ctx.Err() != nil || x.entry.closed() {
			return
		}
		select {
		case <-x.entry.session.Done():
			err = session.ErrEnded
		default:
		}
		switch {
		case isSessionEnded(err):
			l.leave()
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

// launch answers a request exactly once, also if it is cancelled. Replies may be in any order.
func (l *lines) launch(parent context.Context, x *message) {
	x.prepare()
	ctx, cancel := context.WithCancelCause(parent)
	x.begin(cancel)
	l.work(func() {
		defer l.recover(x)
		defer x.end(cancel)
		switch o := x.ask(ctx, cancel, &l.out); {
		case o.sessionEnded && !x.told && (x.modern || !x.entry.closed()):
			l.line([]byte(mcp.LineSessionEnded+" "), appendReply(nil, x.ID, &o.Reply))
			l.leave()
		default:
			l.reply(x.ID, &o.Reply)
		}
	})
}

// work runs f concurrently, once a slot is free and unless the connection ends before.
func (l *lines) work(f func()) {
	select {
	case l.slots <- struct{}{}:
		go func() {
			defer func() { <-l.slots }()
			f()
		}()
	case <-l.out.ended:
	}
}

// batch answers several messages, one after the other, in one line.
func (l *lines) batch(ctx context.Context, x *message, text []byte) {
	l.batches++
	name := mcp.LineBatch + " " + strconv.Itoa(l.batches) + " "
	l.work(func() {
		answers := failure(nil, errPanicked)
		defer func() { l.line([]byte(name), answers) }()
		defer l.recover(x)
		switch messages, err := wirejson.SplitBatch(text, limits); {
		case len(text) > maxBody:
			answers = failure(nil, errBodyTooLarge)
		case err != nil:
			answers = failure(nil, asRPC(err))
		case x.entry == nil || x.entry.version != mcp.BatchVersion:
			answers = failure(nil, errNoBatch)
		default:
			answers = x.answerBatch(ctx, messages)
		}
	})
}

// line writes a message from several pieces.
func (l *lines) line(pieces ...[]byte) {
	var room [6][]byte
	all := room[:0]
	for _, p := range pieces {
		all = append(all, oneLine(p))
	}
	l.out.flush(append(all, lineEnd)...)
}

var lineEnd = []byte("\n") // never modified

func lineOf(e session.Event) []byte { return append(oneLine(e.Append(nil)), '\n') }

// oneLine removes line breaks, which in JSON are only white space between tokens.
func oneLine(text []byte) []byte {
	if bytes.IndexByte(text, '\n') < 0 && bytes.IndexByte(text, '\r') < 0 {
		return text
	}
	return bytes.ReplaceAll(bytes.ReplaceAll(text, []byte{'\n'}, []byte{' '}), []byte{'\r'}, []byte{' '})
}

// reply writes the reply to a request.
func (l *lines) reply(id json.RawMessage, r *session.Reply) {
	all := pieces(id, r)
	l.line(all[:]...)
}

// fail writes an error reply to a request.
func (l *lines) fail(id json.RawMessage, e *wirejson.RPCError) { l.line(failure(id, e)) }

// refuse answers a text with an error if it is a request.
func (l *lines) refuse(text []byte, e *wirejson.RPCError) {
	if m, err := wirejson.Parse(text); err == nil && m.IsRequest() {
		l.fail(m.ID, e)
	}
}

// recover answers a message whose handler panicked.
func (l *lines) recover(m *message) {
	if cause := recover(); cause != nil {
		l.s.panicked(m.Method, cause)
		if m.IsRequest() {
			l.fail(m.ID, errPanicked)
		}
	}
}
