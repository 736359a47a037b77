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

// HTTP is a session over streamable HTTP. The goroutine of each request reads its own response. Two more
// goroutines, which a client's own connection does not have, read the server's notification stream and
// send messages in the background.
type HTTP struct {
	core
	*site

	lastID      atomic.Pointer[string] // of the last event on the notification stream
	listenNow   chan struct{}          // closed after the handshake
	missed      atomic.Bool            // notifications may have been missed before the stream opened
	listenReady chan struct{}          // closed when the stream is open or refused
}

// NewHTTP prepares a session without sending anything.
func NewHTTP(a Address, o Options) (*HTTP, error) {
	site, err := newSite(a, o)
	if err != nil {
		return nil, err
	}
	l := &HTTP{core: newCore(o), site: site, listenNow: make(chan struct{}), listenReady: make(chan struct{})}
	l.pending.ownAnswers = true
	l.post = l.notify
	l.postLater = l.outbox.put
	if o.Own {
		l.postLater = func(msg []byte) { l.sendInBackground(context.Background(), msg) }
		return l, nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	l.wg.Go(func() { l.sendQueued(ctx, l.outbox) })
	l.wg.Go(func() {
		select {
		case <-l.listenNow:
			l.listen(ctx)
		case <-ctx.Done():
		}
	})
	return l, nil
}

// Do implements session.Doer. On a client's own connection, and in the modern protocol, the request keeps
// the client's ID; otherwise it gets a new one.
func (l *HTTP) Do(ctx context.Context, r *session.Request) (session.Reply, error) {
	if err := l.Cause(); err != nil {
		return session.Reply{}, notSent(err)
	}
	modern := l.modern.Load()
	buf := buffers.Get().(*[]byte)
	defer putBuffer(buf)
	x := l.pending.entry()
	defer l.pending.recycle(x)
	*buf = x.send((*buf)[:0], r, &l.Options, modern, r.ID != nil && r.Call == nil && (l.Own || modern))
	fields := r.Headers
	if fields == nil && (modern || r.ID == nil && r.Method == mcp.Discover) {
		fields = mirror(r)
		if !modern { // no version is agreed yet
			fields = append(fields, mcp.Header{Name: mcp.HeaderVersion, Value: mcp.Modern})
		}
		if err := CheckHeaders(fields); err != nil {
			return session.Reply{}, notSent(err)
		}
	}
	x.request = Request{Headers: fields, Body: *buf, KeepHeaders: r.Head != nil}
	if err := l.pending.enter(x); err != nil {
		return session.Reply{}, err
	}
	state := l.state.Load()
	reply, err := l.exchange(ctx, state, x)
	l.pending.leave(x, err)
	x.settle(&reply)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		if cancelable(r) && !modern && !session.NotSent(err) {
			l.postLater(cancelled(ctx, x.wireID()))
			err = ctx.Err()
		}
	case errors.Is(err, ErrSessionGone):
		l.Fail(ErrSessionGone)
	case session.NotSent(err) && !l.Own:
		l.Fail(err)
	default:
		l.Reports.Doubt()
	}
	return reply, err
}

// exchange sends one request and reads its response.
func (l *HTTP) exchange(ctx context.Context, state *httpState, x *entry) (session.Reply, error) {
	x.request.Method, x.request.Head = http.MethodPost, state.post
	a, err := l.client.Do(ctx, &x.request)
	if err != nil {
		return session.Reply{}, err
	}
	defer a.Body.Close()
	l.received.Add(1)
	switch {
	case state.version == "" && (a.Status == http.StatusTemporaryRedirect || a.Status == http.StatusPermanentRedirect) && l.redirected(a.Location):
		return l.exchange(ctx, l.state.Load(), x)
	case x.Head != nil:
		x.Head(a.ForwardableHeaders())
	}
	switch {
	case a.Encoded:
		return session.Reply{}, problem.Ownf("the answer is compressed, which was not asked for")
	case a.Status < 200 || a.Status > 299:
		reply, err := l.refused(a, x)
		return l.settled(ctx, state, x, a.Status, reply, err)
	}
	if a.Session != "" && a.Session != state.session && state.version == "" {
		if err := l.setState(a.Session, ""); err != nil {
			return session.Reply{}, err
		}
	}
	var reply session.Reply
	take := func(m wirejson.Message, kept bool) bool {
		x.message = m
		switch {
		case !m.IsResponse():
			l.incoming(&x.message, x)
		case x.isAnswer(&x.message):
			reply = replyOf(&x.message, kept)
			return true
		}
		return false
	}
	if a.Media == events {
		err = l.follow(ctx, a, take)
	} else {
		err = l.readWhole(ctx, a, x, take)
	}
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	if x.keeps {
		reply.Status = a.Status
	}
	return l.settled(ctx, state, x, a.Status, reply, err)
}

// readWhole reads a response that is no stream: one message, or a batch.
func (l *HTTP) readWhole(ctx context.Context, a *Response, x *entry, take func(m wirejson.Message, kept bool) bool) error {
	if a.Media != JSON && x.keeps && !x.probes {
		return &StatusError{Status: a.Status} // the client gets the status
	}
	if a.Media != JSON {
		return mediaError(a.Status)
	}
	body, err := l.Budget.Until(ctx.Done()).ReadBody(a)
	if err != nil {
		return err
	}
	found := false
	err = split(bytes.TrimSpace(body), func(m wirejson.Message) {
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

// incoming handles a message that is no response. from is the request in whose reply stream it arrived,
// nil for the notification stream.
func (l *HTTP) incoming(m *wirejson.Message, from *entry) {
	change := reportChange(l.Reports, m.Method)
	switch {
	case from == nil || !from.keeps:
		l.dispatch(m, from, change)
	case from.Say != nil:
		from.Say(eventOf(m))
	case m.IsRequest():
		l.postLater(refuse(m, CannotAsk))
	}
}

// Respond answers a question of the server.
func (l *HTTP) Respond(ctx context.Context, id json.RawMessage, r session.Reply) error {
	err := l.core.Respond(ctx, id, r)
	if errors.Is(err, ErrSessionGone) {
		l.Fail(err)
	}
	return err
}

// notify posts a message without a response.
func (l *HTTP) notify(ctx context.Context, msg []byte) error {
	state := l.state.Load()
	return gone(state, l.send(ctx, state, msg))
}

// gone returns ErrSessionGone for a 404 in a session, otherwise err.
func gone(state *httpState, err error) error {
	if status, ok := errors.AsType[*StatusError](err); ok && status.Status == http.StatusNotFound && state.session != "" {
		return ErrSessionGone
	}
	return err
}

// Agree sets the version and sends it from now on.
func (l *HTTP) Agree(version string) {
	l.core.Agree(version)
	if err := l.setState(l.state.Load().session, version); err != nil {
		l.Fail(err)
	}
}

// HasID implements Link.
func (l *HTTP) HasID() bool { return l.state.Load().session != "" }

// deleteTime limits the DELETE of a session.
const deleteTime = 2 * time.Second

// Stop ends the session at the server and releases the link.
func (l *HTTP) Stop(hard <-chan struct{}) {
	alive := l.Cause() == nil
	l.Fail(ErrStopped)
	l.cancel()
	l.wg.Wait()
	if state := l.state.Load(); alive && state.session != "" {
		l.deleteSession(state, hard)
	}
	l.client.Close()
}

func (l *HTTP) deleteSession(state *httpState, hard <-chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), deleteTime)
	defer cancel()
	ctx, stop := session.WithDone(ctx, hard, nil)
	defer stop()
	if a, err := l.client.Do(ctx, &Request{Method: http.MethodDelete, Head: state.get}); err == nil {
		a.Body.Close()
	}
}
