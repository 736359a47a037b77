package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
)

// HTTPLink is a session over streamable HTTP. The goroutine of each request reads its own response. Two more
// goroutines, which a client's own connection does not have, read the server's notification stream and
// send messages in the background.
type HTTPLink struct {
	linkCore
	*remoteHTTPServer

	lastID      atomic.Pointer[string] // ID of the last event on the notification stream
	listenNow   chan struct{}          // closed after the handshake
	missed      atomic.Bool            // notifications may have been missed before the stream opened
	listenReady chan struct{}          // closed when the stream is open or was refused
}

// NewHTTPLink prepares a session without sending anything.
func NewHTTPLink(a ServerAddress, o LinkOptions) (*HTTPLink, error) {
	site, err := newRemoteHTTPServer(a, o)
	if err != nil {
		return nil, err
	}
	l := &HTTPLink{linkCore: newLinkCore(o), remoteHTTPServer: site, listenNow: make(chan struct{}), listenReady: make(chan struct{})}
	l.pending.ownAnswers = true
	l.post = l.postWithoutReply
	l.postLater = l.outbox.putMessage
	if o.Own {
		l.postLater = func(msg []byte) { l.sendBackgroundMessage(context.Background(), msg) }
		return l, nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	l.allowQuestions()
	l.wg.Go(func() { l.sendOutbox(ctx, l.outbox) })
	l.wg.Go(func() {
		select {
		case <-l.listenNow:
			l.keepNotificationStream(ctx)
		case <-ctx.Done():
		}
	})
	return l, nil
}

// Do implements session.Doer. On a client's own connection, and in the modern protocol, the request keeps the client's
// ID. Otherwise it gets a new ID.
func (l *HTTPLink) Do(ctx context.Context, r *session.Request) (session.Reply, error) {
	if err := l.Cause(); err != nil {
		return session.Reply{}, newNotSentError(err)
	}
	modern := l.modern.Load()
	buf := encodeBuffers.Get().(*[]byte)
	defer putEncodeBuffer(buf)
	x := l.pending.newUnregistered()
	defer l.pending.recycleRequest(x)
	*buf = x.encodeRequest((*buf)[:0], r, &l.LinkOptions, modern, r.ID != nil && r.Call == nil && (l.Own || modern))
	fields := r.Headers
	if fields == nil && (modern || r.ID == nil && r.Method == mcp.Discover) {
		fields = modernHeaders(r)
		if !modern { // no version is agreed yet
			fields = append(fields, mcp.Header{Name: mcp.HeaderVersion, Value: mcp.Modern})
		}
		if err := CheckHeaders(fields); err != nil {
			return session.Reply{}, newNotSentError(err)
		}
	}
	x.request = HTTPRequest{Headers: fields, Body: *buf, KeepHeaders: r.Head != nil}
	if err := l.pending.register(x); err != nil {
		return session.Reply{}, err
	}
	state := l.state.Load()
	reply, err := l.sendAndReadReply(ctx, state, x)
	l.pending.removeEnded(x, err)
	x.restoreSubscriptionID(&reply)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		if isCancelable(r) && !modern && !session.IsNotSent(err) {
			l.postLater(newCancelNotification(ctx, x.wireID()))
			err = ctx.Err()
		}
	case errors.Is(err, ErrSessionGone):
		l.Signal(ErrSessionGone)
	case session.IsNotSent(err) && !l.Own:
		l.Signal(err)
	default:
		l.Reports.ConnectionDoubtful()
	}
	return reply, err
}

// sendAndReadReply sends one request and reads its response.
func (l *HTTPLink) sendAndReadReply(ctx context.Context, state *sessionRequestHeads, x *pendingRequest) (session.Reply, error) {
	x.request.Method, x.request.Head = http.MethodPost, state.post
	a, err := l.client.Do(ctx, &x.request)
	if err != nil {
		return session.Reply{}, err
	}
	defer a.Body.Close()
	l.received.Add(1)
	switch {
	case state.version == "" && (a.Status == http.StatusTemporaryRedirect || a.Status == http.StatusPermanentRedirect) && l.adoptSameOriginRedirect(a.Location):
		return l.sendAndReadReply(ctx, l.state.Load(), x)
	case x.Head != nil:
		x.Head(a.ForwardableHeaders())
	}
	switch {
	case a.Encoded:
		return session.Reply{}, problem.TrustedTextErrorf("the answer is compressed, although MCPProxy accepts no compression")
	case a.Status < 200 || a.Status > 299:
		reply, err := l.readRefusal(a, x)
		return l.checkSessionLost(ctx, state, x, a.Status, reply, err)
	}
	if a.Session != "" && a.Session != state.session && state.version == "" {
		if err := l.setSessionHeads(a.Session, ""); err != nil {
			return session.Reply{}, err
		}
	}
	var reply session.Reply
	take := func(m wirejson.Message, kept bool) bool {
		x.message = m
		switch {
		case !m.IsResponse():
			l.deliverMessage(&x.message, x)
		case x.isAnsweredBy(&x.message):
			reply = toReply(&x.message, kept)
			return true
		}
		return false
	}
	if a.Media == events {
		err = l.followReplyStream(ctx, a, take)
	} else {
		err = l.readWholeResponse(ctx, a, x, take)
	}
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	if x.keeps {
		reply.Status = a.Status
	}
	return l.checkSessionLost(ctx, state, x, a.Status, reply, err)
}

// readWholeResponse reads a response that is not a stream: one message, or a batch.
func (l *HTTPLink) readWholeResponse(ctx context.Context, a *HTTPResponse, x *pendingRequest, take func(m wirejson.Message, kept bool) bool) error {
	if a.Media != JSON && a.Media != unsure {
		return newContentTypeError(a.Status)
	}
	body, err := l.Budget.ForReader(ctx.Done()).ReadBody(a)
	if err != nil {
		return err
	}
	if text := bytes.TrimSpace(body); a.Media == unsure && (len(text) == 0 || text[0] != '{' && text[0] != '[') {
		return newContentTypeError(a.Status)
	}
	found := false
	err = eachMessage(bytes.TrimSpace(body), func(m wirejson.Message) {
		if !found || !m.IsResponse() {
			found = take(m, true) || found
		}
	})
	switch {
	case found:
		return nil
	case err != nil:
		return ErrNoMessage
	}
	return errWrongID
}

// deliverMessage handles a message that is not a response. from is the request in whose reply stream it arrived, or nil
// for the notification stream.
func (l *HTTPLink) deliverMessage(m *wirejson.Message, from *pendingRequest) {
	change := reportListChange(l.Reports, m.Method)
	switch {
	case from == nil || !from.keeps:
		l.deliverSharedMessage(m, from, change)
	case from.Say != nil:
		from.Say(toEvent(m))
	case m.IsRequest():
		l.postLater(newQuestionRefusal(m, CannotAsk))
	}
}

// AnswerServerQuestion answers a question of the server.
func (l *HTTPLink) AnswerServerQuestion(ctx context.Context, id json.RawMessage, r session.Reply) error {
	err := l.linkCore.AnswerServerQuestion(ctx, id, r)
	if errors.Is(err, ErrSessionGone) {
		l.Signal(err)
	}
	return err
}

// postWithoutReply posts a message without a response.
func (l *HTTPLink) postWithoutReply(ctx context.Context, msg []byte) error {
	state := l.state.Load()
	return map404ToSessionGone(state, l.postToServer(ctx, state, msg))
}

// map404ToSessionGone returns ErrSessionGone for a 404 in a session. Otherwise it returns err.
func map404ToSessionGone(state *sessionRequestHeads, err error) error {
	if status, ok := errors.AsType[*StatusError](err); ok && status.Status == http.StatusNotFound && state.session != "" {
		return ErrSessionGone
	}
	return err
}

// SetVersion sets the version, which is sent with all later requests.
func (l *HTTPLink) SetVersion(version string) {
	l.linkCore.SetVersion(version)
	if err := l.setSessionHeads(l.state.Load().session, version); err != nil {
		l.Signal(err)
	}
}

// HasSessionID implements Link.
func (l *HTTPLink) HasSessionID() bool { return l.state.Load().session != "" }

// deleteTime limits the DELETE of a session.
const deleteTime = 2 * time.Second

// Stop ends the session at the server and releases the link.
func (l *HTTPLink) Stop(hard <-chan struct{}) {
	alive := l.Cause() == nil
	l.Signal(ErrStopped)
	l.cancel()
	l.wg.Wait()
	if state := l.state.Load(); alive && state.session != "" {
		l.deleteSession(state, hard)
	}
	l.client.Close()
}

func (l *HTTPLink) deleteSession(state *sessionRequestHeads, hard <-chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), deleteTime)
	defer cancel()
	ctx, stop := session.WithDoneChannels(ctx, hard, nil)
	defer stop()
	if a, err := l.client.Do(ctx, &HTTPRequest{Method: http.MethodDelete, Head: state.get}); err == nil {
		a.Body.Close()
	}
}
