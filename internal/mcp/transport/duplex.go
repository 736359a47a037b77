package transport

import (
	"context"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
)

// duplex is a connection on which everything that a server says comes one
// after the other: answers, notifications, requests. One goroutine reads it and
// passes every answer to the goroutine that waits for it.
type duplex struct {
	core
	kept session.Queue // what belongs to no request of the client whose own it is
}

func newDuplex(o Options) *duplex {
	l := &duplex{core: newCore(o), kept: session.Queue{Max: maxKept, Bytes: maxKeptBytes, DropOldest: true}}
	l.listening.Store(true)
	return l
}

// Attend has nothing to do: what the server says by itself comes anyhow.
func (l *duplex) Attend(context.Context) {}

// HasID reports false: here sessions have none.
func (l *duplex) HasID() bool { return false }

// end makes the link lost, unless it is.
func (l *duplex) end(err error) {
	l.Fail(err)
	l.wait.fail(l.Cause())
}

// begin enters a request, and returns its message in a buffer that is to be put
// back.
func (l *duplex) begin(ctx context.Context, r *session.Request) (e *entry, msg *[]byte, err error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, notSent(err)
	}
	e, msg = l.wait.entry(), buffers.Get().(*[]byte)
	*msg = e.send((*msg)[:0], r, &l.Options, l.modern.Load(), false)
	if err := l.wait.enter(e); err != nil {
		l.wait.recycle(e)
		putBuffer(msg)
		return nil, nil, err
	}
	return e, msg, nil
}

// routeAll routes the messages of one line or event, and reports whether it
// could be read. A request that it answers without being readable fails.
func (l *duplex) routeAll(data []byte, kept bool) bool {
	if split(data, func(m wirejson.Message) { l.route(&m, kept) }) != nil {
		l.wait.rejectBroken(data)
		return false
	}
	return true
}

func (l *duplex) route(m *wirejson.Message, kept bool) {
	if m.IsResponse() {
		l.wait.resolve(m, kept)
		return
	}
	change := changed(l.Reports, m.Method) // before anybody is told, who may call then
	switch e := eventOf(m); {
	case l.Own:
		l.forClient(m, e)
	case l.wait.subscribed(e):
	default:
		l.spread(m, nil, change)
	}
}

// forClient hands on what the server says in one client's own session: to the
// request that it belongs to, else to the only one under way, which keeps the
// order, else to the client's listener, else to the newest request, else it is
// kept.
func (l *duplex) forClient(m *wirejson.Message, e session.Event) {
	told := m.Method == mcp.Progress && l.wait.byToken(e) ||
		l.wait.only(e) ||
		l.kept.Attached() && l.kept.Put(e.Clone()) || l.wait.newest(e, (*sent).passes) || l.kept.Put(e.Clone())
	if !told && m.IsRequest() {
		l.tell(refuse(m, CannotAsk))
	}
}

// Listen hands on what belongs to no request.
func (l *duplex) Listen(ctx context.Context, say func(session.Event), opened func()) error {
	if !l.Own {
		return &StatusError{Status: 405}
	}
	return l.kept.Read(ctx, l.Done(), say, opened, l.Cause)
}
