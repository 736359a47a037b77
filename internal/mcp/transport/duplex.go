package transport

import (
	"context"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
)

// duplex is a connection with one stream for all messages of the server. One goroutine reads it and passes
// each response to the goroutine that waits for it.
type duplex struct {
	core
	queue session.Queue // events that belong to no request, on a client's own connection
}

func newDuplex(o Options) *duplex {
	l := &duplex{core: newCore(o), queue: session.Queue{Max: maxKept, Bytes: maxKeptBytes, DropOldest: true}}
	l.listening.Store(true)
	return l
}

// Attend does nothing: the stream is always open.
func (l *duplex) Attend(context.Context) {}

// HasID returns false: these transports have no session IDs.
func (l *duplex) HasID() bool { return false }

// end ends the link with a cause.
func (l *duplex) end(err error) {
	l.Fail(err)
	l.pending.fail(l.Cause())
}

// begin registers a request and encodes its message into a pooled buffer.
func (l *duplex) begin(ctx context.Context, r *session.Request) (e *entry, msg *[]byte, err error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, notSent(err)
	}
	e, msg = l.pending.entry(), buffers.Get().(*[]byte)
	*msg = e.send((*msg)[:0], r, &l.Options, l.modern.Load(), false)
	if err := l.pending.enter(e); err != nil {
		l.pending.recycle(e)
		putBuffer(msg)
		return nil, nil, err
	}
	return e, msg, nil
}

// routeAll routes the messages of one line or event, and reports whether it could be parsed. If the text
// answers a request but is malformed, that request fails.
func (l *duplex) routeAll(data []byte, kept bool) bool {
	if split(data, func(m wirejson.Message) { l.route(&m, kept) }) != nil {
		l.pending.rejectMalformed(data)
		return false
	}
	return true
}

func (l *duplex) route(m *wirejson.Message, kept bool) {
	if m.IsResponse() {
		l.pending.resolve(m, kept)
		return
	}
	change := reportChange(l.Reports, m.Method) // before any client is told, which may then call
	switch e := eventOf(m); {
	case l.Own:
		l.forClient(m, e)
	case l.pending.subscribed(e):
	default:
		l.dispatch(m, nil, change)
	}
}

// forClient delivers a message on a client's own connection: to the request that it names, else to the
// only open request, which keeps the order, else to the client's listener, else to the newest request,
// else into the queue.
func (l *duplex) forClient(m *wirejson.Message, e session.Event) {
	told := m.Method == mcp.Progress && l.pending.byToken(e) ||
		l.pending.only(e) ||
		l.queue.Attached() && l.queue.Put(e.Clone()) || l.pending.newest(e, (*sent).passes) || l.queue.Put(e.Clone())
	if !told && m.IsRequest() {
		l.postLater(refuse(m, CannotAsk))
	}
}

// Listen passes events that belong to no request to say.
func (l *duplex) Listen(ctx context.Context, say func(session.Event), opened func()) error {
	if !l.Own {
		return &StatusError{Status: 405}
	}
	return l.queue.Read(ctx, l.Done(), say, opened, l.Cause)
}
