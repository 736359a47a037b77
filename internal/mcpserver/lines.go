package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/session"
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
	out     outlet
	slots   chan struct{} // one for each request that has no answer
	hearing *entry        // whose stream is read
	others  sync.WaitGroup
	batches int
	drained sync.Once
}

// lines speaks in lines for as long as the connection lasts: until its client has
// gone, or this server is closed and all that was asked is answered.
func (x *request) lines() {
	nc, read, err := http.NewResponseController(x.out.w).Hijack()
	if err != nil {
		panic(err)
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
	l := &lines{client: x.from, slots: make(chan struct{}, maxUnanswered),
		out: outlet{to: nc, frame: lineOf, failed: func() { _ = nc.Close() }, turn: make(chan struct{}, 1), gone: make(chan struct{})}}
	l.calls = &calls{}
	l.others.Go(func() {
		select {
		case <-l.s.closed:
			l.drain()
		case <-l.out.gone:
		}
	})
	if _, err := io.WriteString(nc, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+mcp.Lines+"\r\n\r\n"); err == nil {
		early, _ := read.Reader.Peek(read.Reader.Buffered())
		l.read(ctx, io.MultiReader(bytes.NewReader(early), nc))
	}
	l.out.end()
	cancel()
	l.drain()
	l.others.Wait()
	l.out.close()
	if l.entry != nil {
		l.entry.close()
	}
}

// drain ends the connection when all that was asked is answered, and waits for
// that.
func (l *lines) drain() {
	l.drained.Do(func() {
		for range maxUnanswered {
			l.slots <- struct{}{}
		}
		l.out.end()
	})
}

// read deals with line by line until the connection ends.
func (l *lines) read(ctx context.Context, from io.Reader) {
	in := jsonrpc.NewLineReader(from, maxDrain)
	for {
		line, err := in.Next()
		switch {
		case errors.Is(err, jsonrpc.ErrTooLong): // whose it is cannot be known
		case err != nil:
			return
		case string(line) == mcp.LineEnd:
			l.others.Go(l.drain)
			_, _ = io.Copy(io.Discard, from) // to know when the client has gone
			return
		default:
			l.take(ctx, in.Keep())
		}
	}
}

// take deals with one line. What must not be overtaken is done before the next
// one is read.
func (l *lines) take(ctx context.Context, text []byte) {
	if len(text) > maxBody {
		l.refuse(text, errBodyTooLarge)
		return
	}
	if text = bytes.TrimSpace(text); len(text) > 0 && text[0] == '[' {
		l.batch(ctx, text)
		return
	}
	from := l.client // as it is now
	x := &message{client: &from}
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
	defer l.recover(x)
	x.prepare()
	e, o, err := x.open(ctx)
	if err != nil {
		l.fail(x.ID, x.explain(err))
		return
	}
	if e != nil {
		e.name()
		if l.entry != nil {
			l.entry.close()
		}
		l.entry = e
	}
	l.reply(x.ID, &o.Reply)
}

// tell passes on what wants no answer. Nobody waits for what comes of it.
func (l *lines) tell(ctx context.Context, x *message) {
	defer l.recover(x)
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
		select {
		case <-ctx.Done():
			return
		case <-x.entry.session.Done():
			err = session.ErrOver
		default:
			if !agreed && !over(err) {
				return // it has no stream
			}
		}
		if over(err) {
			l.drain()
			return
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// launch has a request answered. Its answer may come in any order.
func (l *lines) launch(ctx context.Context, x *message) {
	x.prepare()
	ctx, cancel := x.begin(ctx)
	l.work(func() {
		defer x.end(cancel)
		l.answer(ctx, cancel, x)
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

// answer has one request answered, exactly once: also when the client has
// cancelled it.
func (l *lines) answer(ctx context.Context, cancel context.CancelCauseFunc, x *message) {
	defer l.recover(x)
	within, stop, full := x.hold(ctx)
	if full != nil {
		l.fail(x.ID, full)
		return
	}
	defer stop()
	said := false
	switch x.form {
	case session.AtOnce:
	case session.Passing:
		x.req.Say = l.out.pass
	default:
		x.req.Say = func(e session.Event) {
			if said = true; !l.out.tell(e) {
				cancel(errStalled)
			}
		}
	}
	o := x.ask(within)
	_, cancelled := errors.AsType[*session.Cancelled](context.Cause(ctx))
	switch {
	case cancelled:
		l.fail(x.ID, errWasCancelled)
	case o.over && !said:
		l.line([]byte(mcp.LineOver+" "), appendReply(nil, x.ID, &o.Reply))
		l.others.Go(l.drain)
	default:
		l.reply(x.ID, &o.Reply)
	}
}

// batch has several messages answered, one after the other.
func (l *lines) batch(ctx context.Context, text []byte) {
	l.batches++
	end, from := mcp.LineBatch+" "+strconv.Itoa(l.batches), l.client
	l.work(func() {
		defer l.line([]byte(end))
		defer l.recover(&message{client: &from})
		var answers []byte
		switch messages, err := jsonrpc.SplitBatch(text, limits); {
		case err != nil:
			answers = appendError(nil, nil, asRPC(err))
		case from.entry == nil || from.entry.version != mcp.Batches:
			answers = appendError(nil, nil, errNoBatch)
		default:
			answers = from.answerBatch(ctx, messages)
		}
		if answers != nil {
			l.line(answers)
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
func (l *lines) fail(id json.RawMessage, e *jsonrpc.Error) { l.line(appendError(nil, id, e)) }

// refuse answers a text that is not dealt with, if it is a request.
func (l *lines) refuse(text []byte, e *jsonrpc.Error) {
	if m, err := jsonrpc.Parse(text); err == nil && m.IsRequest() {
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
