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
	linkCore
	queue session.EventQueue // events that belong to no request, on a client's own connection
}

func newDuplex(o LinkOptions) *duplex {
	l := &duplex{linkCore: newLinkCore(o), queue: session.EventQueue{Max: maxKept, Bytes: maxKeptBytes, DropOldest: true}}
	l.listening.Store(true)
	return l
}

// OpenNotificationStream does nothing, because the stream is always open.
func (l *duplex) OpenNotificationStream(context.Context) {}

// HasSessionID returns false: these transports have no session IDs.
func (l *duplex) HasSessionID() bool { return false }

// endLink ends the link with a cause.
func (l *duplex) endLink(err error) {
	l.Signal(err)
	l.pending.failAll(l.Cause())
}

// registerAndEncodeRequest registers a request and encodes its message into a pooled buffer.
func (l *duplex) registerAndEncodeRequest(ctx context.Context, r *session.Request) (e *pendingRequest, msg *[]byte, err error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, newNotSentError(err)
	}
	e, msg = l.pending.newUnregistered(), encodeBuffers.Get().(*[]byte)
	*msg = e.encodeRequest((*msg)[:0], r, &l.LinkOptions, l.modern.Load(), false)
	if err := l.pending.register(e); err != nil {
		l.pending.recycleRequest(e)
		putEncodeBuffer(msg)
		return nil, nil, err
	}
	return e, msg, nil
}

// parseAndRoute routes the messages of one line or event, and reports whether it could be parsed. If the text is a
// malformed response to a request, that request fails.
func (l *duplex) parseAndRoute(data []byte, kept bool) bool {
	if eachMessage(data, func(m wirejson.Message) { l.routeMessage(&m, kept) }) != nil {
		l.pending.failAfterMalformedReply(data)
		return false
	}
	return true
}

func (l *duplex) routeMessage(m *wirejson.Message, kept bool) {
	if m.IsResponse() {
		l.pending.deliverReply(m, kept)
		return
	}
	change := reportListChange(l.Reports, m.Method) // before any client receives it, because that client may then call
	switch e := toEvent(m); {
	case l.Own:
		l.deliverEventToOwnClient(m, e)
	case l.pending.deliverToSubscription(e):
	default:
		l.deliverSharedMessage(m, nil, change)
	}
}

// deliverEventToOwnClient delivers a message on a client's own connection. The recipient is the request that the
// message names, else the only open request (which keeps the order), else the client's listener, else the newest
// request, else the queue. A question before the answer to initialize is rejected: the client cannot receive it yet,
// and the server may wait for the answer.
func (l *duplex) deliverEventToOwnClient(m *wirejson.Message, e session.Event) {
	if m.IsRequest() && l.pending.isInitializing() {
		l.postLater(newQuestionRefusal(m, CannotAsk))
		return
	}
	told := m.Method == mcp.Progress && l.pending.deliverByProgressToken(e) ||
		l.pending.deliverToOnlyRequest(e) ||
		l.queue.HasReader() && l.queue.Put(e.Clone()) || l.pending.deliverToNewest(e, (*sentRequest).getsAllEvents) || l.queue.Put(e.Clone())
	if !told && m.IsRequest() {
		l.postLater(newQuestionRefusal(m, CannotAsk))
	}
}

// Listen passes events that belong to no request to say.
func (l *duplex) Listen(ctx context.Context, say func(session.Event), opened func()) error {
	if !l.Own {
		return &StatusError{Status: 405}
	}
	return l.queue.PassEvents(ctx, l.Done(), say, opened, l.Cause)
}
