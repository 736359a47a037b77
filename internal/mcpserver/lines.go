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
	// maxUnanswered is how many requests of one connection are worked on: what
	// comes then is read when there is room.
	maxUnanswered = 1024
	// tellTime is how long a server may take to accept a message that has no
	// answer. What is behind it waits for that.
	tellTime = 10 * time.Second
	// The pauses between two tries to hear what a server says by itself.
	minPause = time.Second
	maxPause = 30 * time.Second
)

// lines is a connection of the socket on which each line is a message. It has at
// most one session, which ends with it. Its fields are its reader's.
type lines struct {
	client
	nc      net.Conn
	out     outlet
	slots   chan struct{} // one for each request that has no answer
	hearing *entry        // whose stream is read
	others  sync.WaitGroup
	batches int

	leaving sync.Once
	left    chan struct{} // closed when nothing more is read
}

// lines speaks in lines for as long as the connection lasts: until its client has
// gone, or nothing more is read and all that was asked is answered.
func (x *request) lines() {
	nc, read, err := http.NewResponseController(x.out.w).Hijack()
	if err != nil {
		x.methodNotAllowed()
		return
	}
	x.out.begun = true
	defer nc.Close()
	if !x.s.begin() {
		return
	}
	defer x.s.lines.Done()
	ctx, cancel := context.WithCancel(x.r.Context())
	// Who does not read does not get to know of a stop, either.
	context.AfterFunc(x.r.Context(), func() { _ = nc.SetWriteDeadline(time.Now().Add(lastTime)) })
	l := &lines{client: x.from, nc: nc, slots: make(chan struct{}, maxUnanswered), left: make(chan struct{}),
		out: outlet{to: nc, frame: lineOf, failed: func() { _ = nc.Close() }, turn: make(chan struct{}, 1), gone: make(chan struct{})}}
	l.calls, l.closed = &calls{}, l.left
	l.others.Go(func() {
		select {
		case <-l.s.closed:
			l.leave()
		case <-l.token.Ended():
			l.leave()
		case <-l.left:
		}
	})
	if _, err := io.WriteString(nc, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+mcp.Lines+"\r\n\r\n"); err == nil {
		early, _ := read.Reader.Peek(read.Reader.Buffered())
		l.read(ctx, io.MultiReader(bytes.NewReader(early), nc))
	}
	l.leave()
	_ = nc.SetReadDeadline(time.Time{}) // it fails where the next step does
	l.others.Go(func() {
		for range maxUnanswered {
			l.slots <- struct{}{}
		}
		l.out.end()
	})
	_, _ = io.Copy(io.Discard, nc) // until all is answered, or the client has gone
	l.out.end()
	cancel()
	l.others.Wait()
	l.out.close()
	if l.entry != nil {
		l.entry.close()
	}
}

// leave has nothing more read, and ends what has no end. What was read is answered.
func (l *lines) leave() {
	l.leaving.Do(func() {
		close(l.left)
		_ = l.nc.SetReadDeadline(time.Unix(0, 0)) // it fails where reading does
	})
}

// read deals with line by line until the client has said its last one, the
// connection ends, or it is left.
func (l *lines) read(ctx context.Context, from io.Reader) {
	in := wirejson.NewLineReader(from, maxDrain)
	for {
		line, err := in.Next()
		switch {
		case errors.Is(err, wirejson.ErrTooLong): // whose it is cannot be known
		case err != nil || string(line) == mcp.LineEnd:
			return
		default:
			l.take(ctx, in.Keep())
		}
	}
}

// take deals with one line. What must not be overtaken is done before the next
// one is read.
func (l *lines) take(ctx context.Context, text []byte) {
	from := l.client // as it is now
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
		x.era("")
		if bad = x.checkMeta(); bad == nil && x.modern {
			_, _, bad = x.subject(false)
		}
	}
	switch {
	case bad != nil:
		l.refuse(text, x.refuse(ctx, bad))
	case x.IsNotification() && x.Method == mcp.Cancelled:
		_ = x.tell(ctx) // it fails nowhere
	case x.modern && !x.IsRequest():
	case x.Method == mcp.Initialize && !x.modern && x.IsRequest():
		l.initialize(ctx, x)
	case x.IsRequest() && !x.modern && l.entry == nil:
		l.fail(x.ID, x.refuse(ctx, errNoSession))
	case x.IsRequest():
		l.launch(ctx, x)
	case l.entry != nil:
		l.tell(ctx, x)
	}
}

// initialize opens a session in the place of the one that there is.
func (l *lines) initialize(ctx context.Context, x *message) {
	x.prepare()
	e, o, err := x.open(ctx)
	if err != nil {
		l.fail(x.ID, x.explain(err))
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

// tell passes on what wants no answer. Nobody waits for what comes of it.
func (l *lines) tell(ctx context.Context, x *message) {
	limited, cancel := context.WithTimeout(ctx, tellTime)
	defer cancel()
	_ = x.tell(limited)
	if x.Method == mcp.Initialized && l.hearing != l.entry {
		l.hearing = l.entry
		l.others.Go(func() { l.hear(ctx, x) })
	}
}

// hear passes on what the server of the message's session says by itself, until
// it offers that no more or the session ends.
func (l *lines) hear(parent context.Context, x *message) {
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
			err = session.ErrOver
		default:
		}
		switch {
		case over(err):
			l.leave()
			return
		case !agreed:
			return // it has no stream
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// launch has a request answered, exactly once, also when the client has cancelled
// it. Its answer may come in any order.
func (l *lines) launch(parent context.Context, x *message) {
	x.prepare()
	ctx, cancel := context.WithCancelCause(parent)
	x.begin(cancel)
	l.work(func() {
		defer l.recover(x)
		defer x.end(cancel)
		switch o := x.ask(ctx, cancel, &l.out); {
		case o.over && !x.told && (x.modern || !x.entry.closed()):
			l.line([]byte(mcp.LineOver+" "), appendReply(nil, x.ID, &o.Reply))
			l.leave()
		default:
			l.reply(x.ID, &o.Reply)
		}
	})
}

// work does something beside the reading, when there is room for it and unless
// the connection ends before.
func (l *lines) work(f func()) {
	select {
	case l.slots <- struct{}{}:
		go func() {
			defer func() { <-l.slots }()
			f()
		}()
	case <-l.out.gone:
	}
}

// batch has several messages answered, one after the other, in one line.
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
		case x.entry == nil || x.entry.version != mcp.Batches:
			answers = failure(nil, errNoBatch)
		default:
			answers = x.answerBatch(ctx, messages)
		}
	})
}

// line writes a message of several pieces.
func (l *lines) line(pieces ...[]byte) {
	var room [6][]byte
	all := room[:0]
	for _, p := range pieces {
		all = append(all, oneLine(p))
	}
	l.out.flush(append(all, lineEnd)...)
}

var lineEnd = []byte("\n") // never written to

func lineOf(e session.Event) []byte { return append(oneLine(e.Append(nil)), '\n') }

// oneLine returns the text of a message without line breaks, which can stand
// between the parts of a JSON text only, where a space means the same.
func oneLine(text []byte) []byte {
	if bytes.IndexByte(text, '\n') < 0 && bytes.IndexByte(text, '\r') < 0 {
		return text
	}
	return bytes.ReplaceAll(bytes.ReplaceAll(text, []byte{'\n'}, []byte{' '}), []byte{'\r'}, []byte{' '})
}

// reply writes the answer to the request with the id.
func (l *lines) reply(id json.RawMessage, r *session.Reply) {
	all := pieces(id, r)
	l.line(all[:]...)
}

// fail writes an error as the answer to the request with the id.
func (l *lines) fail(id json.RawMessage, e *wirejson.RPCError) { l.line(failure(id, e)) }

// refuse answers a text that is not dealt with, if it is a request.
func (l *lines) refuse(text []byte, e *wirejson.RPCError) {
	if m, err := wirejson.Parse(text); err == nil && m.IsRequest() {
		l.fail(m.ID, e)
	}
}

// recover answers for a message whose handling has panicked.
func (l *lines) recover(m *message) {
	if cause := recover(); cause != nil {
		l.s.panicked(m.Method, cause)
		if m.IsRequest() {
			l.fail(m.ID, errPanicked)
		}
	}
}
