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

// HTTP is a session over streamable HTTP. Each request is an exchange of its
// own, whose answer is read by the goroutine that wants it; one goroutine reads
// the stream of what the server says by itself, another one tells it what
// nobody waits for. A link that is one client's own runs neither.
type HTTP struct {
	core
	*site

	lastID    atomic.Pointer[string] // of the last event that the server's own stream has given
	listenNow chan struct{}          // closed when the handshake is done
	late      atomic.Bool            // something may have been said before the stream was open
	listens   chan struct{}          // closed when the stream is open, or is not offered
}

// NewHTTP prepares a session; nothing is sent yet.
func NewHTTP(a Address, o Options) (*HTTP, error) {
	site, err := newSite(a, o)
	if err != nil {
		return nil, err
	}
	l := &HTTP{core: newCore(o), site: site, listenNow: make(chan struct{}), listens: make(chan struct{})}
	l.wait.ownAnswers = true
	l.post = l.notify
	l.tell = l.told.put
	if o.Own {
		l.tell = func(msg []byte) { l.sendSoon(context.Background(), msg) }
		return l, nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	l.wg.Go(func() { l.sendTold(ctx, l.told) })
	l.wg.Go(func() {
		select {
		case <-l.listenNow:
			l.listen(ctx)
		case <-ctx.Done():
		}
	})
	return l, nil
}

// Do implements session.Doer. In the client's own session, and in the modern
// revision, the request keeps the client's id, since what comes in its answer is
// for nobody else; elsewhere it has one of ours.
func (l *HTTP) Do(ctx context.Context, r *session.Request) (session.Reply, error) {
	if err := l.Cause(); err != nil {
		return session.Reply{}, notSent(err)
	}
	modern := l.modern.Load()
	buf := buffers.Get().(*[]byte)
	defer putBuffer(buf)
	x := l.wait.entry()
	defer l.wait.recycle(x)
	*buf = x.send((*buf)[:0], r, &l.Options, modern, r.ID != nil && r.Call == nil && (l.Own || modern))
	fields := r.Fields
	if fields == nil && (modern || r.ID == nil && r.Method == mcp.Discover) {
		fields = mirror(r)
		if !modern { // nothing is agreed yet
			fields = append(fields, mcp.Field{Name: mcp.HeaderVersion, Value: mcp.Modern})
		}
		if err := CheckFields(fields); err != nil {
			return session.Reply{}, notSent(err)
		}
	}
	x.request = Request{Fields: fields, Body: *buf, Passes: r.Head != nil}
	if err := l.wait.enter(x); err != nil {
		return session.Reply{}, err
	}
	state := l.state.Load()
	reply, err := l.exchange(ctx, state, x)
	l.wait.leave(x, err)
	x.settle(&reply)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		if cancelable(r) && !modern && !session.NotSent(err) {
			l.tell(cancelled(ctx, x.outerID()))
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

// exchange sends one request and reads its answer.
func (l *HTTP) exchange(ctx context.Context, state *httpState, x *entry) (session.Reply, error) {
	x.request.Method, x.request.Head = http.MethodPost, state.post
	a, err := l.client.Do(ctx, &x.request)
	if err != nil {
		return session.Reply{}, err
	}
	defer a.Body.Close()
	l.heard.Add(1)
	switch {
	case state.version == "" && (a.Status == http.StatusTemporaryRedirect || a.Status == http.StatusPermanentRedirect) && l.redirected(a.Location):
		return l.exchange(ctx, l.state.Load(), x)
	case x.Head != nil:
		x.Head(a.Passable())
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

// readWhole reads an answer that is no stream: one response, or a batch with it.
func (l *HTTP) readWhole(ctx context.Context, a *Response, x *entry, take func(m wirejson.Message, kept bool) bool) error {
	if a.Media != JSON && x.keeps && !x.probes {
		return &StatusError{Status: a.Status} // which its client gets
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

// incoming deals with what is no response. from is the request in whose answer
// it came, nil for the server's own stream.
func (l *HTTP) incoming(m *wirejson.Message, from *entry) {
	change := changed(l.Reports, m.Method)
	switch {
	case from == nil || !from.keeps:
		l.spread(m, from, change)
	case from.Say != nil:
		from.Say(eventOf(m))
	case m.IsRequest():
		l.tell(refuse(m, CannotAsk))
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

// notify posts a message that has no response.
func (l *HTTP) notify(ctx context.Context, msg []byte) error {
	state := l.state.Load()
	return gone(state, l.send(ctx, state, msg))
}

// gone returns what err says of the session where nothing else can be meant by
// it.
func gone(state *httpState, err error) error {
	if status, ok := errors.AsType[*StatusError](err); ok && status.Status == http.StatusNotFound && state.session != "" {
		return ErrSessionGone
	}
	return err
}

// Agree makes the version be said from now on.
func (l *HTTP) Agree(version string) {
	l.core.Agree(version)
	if err := l.setState(l.state.Load().session, version); err != nil {
		l.Fail(err)
	}
}

// HasID implements Link.
func (l *HTTP) HasID() bool { return l.state.Load().session != "" }

// goodbyeTime is how long the end of a session may take.
const goodbyeTime = 2 * time.Second

// Stop ends the session at the server and everything that belongs to the link.
func (l *HTTP) Stop(hard <-chan struct{}) {
	alive := l.Cause() == nil
	l.Fail(ErrStopped)
	l.cancel()
	l.wg.Wait()
	if state := l.state.Load(); alive && state.session != "" {
		l.sayGoodbye(state, hard)
	}
	l.client.Close()
}

func (l *HTTP) sayGoodbye(state *httpState, hard <-chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), goodbyeTime)
	defer cancel()
	ctx, stop := session.Until(ctx, hard, nil)
	defer stop()
	if a, err := l.client.Do(ctx, &Request{Method: http.MethodDelete, Head: state.get}); err == nil {
		a.Body.Close()
	}
}
