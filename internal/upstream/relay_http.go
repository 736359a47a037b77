package upstream

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"

	"mcpproxy/internal/jsonrpc"
)

// relay passes a client's request on with the client's own id: over HTTP each
// request has an exchange of its own, and what comes in it is for nobody else.
func (l *httpLink) relay(ctx context.Context, r *relayed) (Reply, error) {
	if err := l.cause(); err != nil {
		return Reply{}, &unsentError{err}
	}
	l.open.Add(1)
	defer l.open.Add(-1)
	state := l.state.Load()
	reply, err := l.postPassed(ctx, state, r)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		if !l.modern && r.Method != methodInitialize && !unsent(err) {
			l.cancelPassed(ctx, r)
		}
		return reply, ctx.Err()
	case errors.Is(err, errSessionGone):
		if !l.sessionGone(ctx, state, &request{id: r.id}) {
			return notGone(err)
		}
		l.fail(errSessionGone)
	case unsent(err) && !l.private:
		l.fail(err)
	default:
		l.up.doubt()
	}
	return reply, err
}

// cancelPassed tells the server, in the client's words if there are any, that
// its request is no longer wanted.
func (l *httpLink) cancelPassed(ctx context.Context, r *relayed) {
	sctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tellTime)
	defer cancel()
	msg := jsonrpc.AppendNotification(nil, methodCancelled, cancelledBy(ctx, r.ID))
	if err := l.send(sctx, msg); err != nil {
		l.up.doubt()
	}
}

// postPassed sends the request and reads its answer.
func (l *httpLink) postPassed(ctx context.Context, state *httpState, r *relayed) (Reply, error) {
	body := appendPassed(make([]byte, 0, len(r.Params)+len(r.ID)+len(r.Method)+64), r.ID, r.Method, r.Params)
	a, err := l.client.do(ctx, &exchange{method: http.MethodPost, head: state.post, fields: r.Fields, body: body, passes: r.Head != nil})
	if err != nil {
		return Reply{}, err
	}
	defer a.body.Close()
	l.heard.Add(1)
	switch {
	case state.version == "" && l.redirected(a):
		return l.postPassed(ctx, l.state.Load(), r)
	case r.Head != nil:
		r.Head(a.passable())
	}
	switch {
	case a.encoded:
		return Reply{}, errors.New("the answer is compressed, which was not asked for")
	case a.status < 200 || a.status > 299:
		return l.refused(state, a, func(m *jsonrpc.Message) bool { return isFor(m, r) })
	}
	if a.session != "" && state.version == "" {
		if err := l.setState(a.session, ""); err != nil {
			return Reply{}, err
		}
	}
	reply := Reply{}
	take := func(m *jsonrpc.Message, kept bool) bool {
		switch {
		case !m.IsResponse():
			l.passEvent(m, r)
		case isFor(m, r):
			reply = replyOf(m, kept)
			return true
		}
		return false
	}
	if a.media == mediaEvents {
		err = l.follow(ctx, a, take)
	} else {
		err = l.readWhole(ctx, a, take)
	}
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	reply.Status = a.status
	return reply, err
}

// isFor says whether m is the response to r. An error without an id can only be
// for the one request that was sent.
func isFor(m *jsonrpc.Message, r *relayed) bool {
	return sameID(m.ID, r.ID) || m.Error != nil && string(m.ID) == "null"
}

// readWhole reads an answer that is no stream.
func (l *httpLink) readWhole(ctx context.Context, a *answer, take func(m *jsonrpc.Message, kept bool) bool) error {
	if a.media != mediaJSON {
		return &statusError{status: a.status}
	}
	body, err := l.room.until(ctx.Done()).readBody(a)
	if err != nil {
		return err
	}
	found := false
	err = split(bytes.TrimSpace(body), func(m jsonrpc.Message) { found = found || take(&m, true) })
	switch {
	case found:
		return nil
	case err != nil:
		return errNoMessage
	}
	return errWrongID
}

// passEvent hands on what the server says in the exchange of a request.
func (l *httpLink) passEvent(m *jsonrpc.Message, r *relayed) {
	changes(l.up, m.Method)
	switch {
	case r.Events != nil:
		r.Events(Event{m.Method, m.ID, m.Params})
	case m.IsRequest():
		l.answerNow(cannotAsk(m))
	}
}

// answerNow answers a request of the server that its client cannot get.
func (l *httpLink) answerNow(msg []byte) {
	ctx, cancel := context.WithTimeout(context.Background(), tellTime)
	defer cancel()
	if err := l.send(ctx, msg); err != nil {
		l.up.doubt()
	}
}

// overhear gives the client the stream of what the server says by itself. What
// was said while nobody listened comes first, where the server has kept it.
func (l *httpLink) overhear(ctx context.Context, say func(Event), opened func()) error {
	state := l.state.Load()
	var fields []Field
	if id := l.lastID.Load(); id != nil && sound([]Field{{"Last-Event-ID", *id}}) == nil {
		fields = []Field{{"Last-Event-ID", *id}}
	}
	a, err := l.client.do(ctx, &exchange{method: http.MethodGet, head: state.get, fields: fields})
	if err != nil {
		return err
	}
	defer a.body.Close()
	if a.status == http.StatusNotFound && state.session != "" {
		l.fail(errSessionGone)
		return errSessionGone
	}
	if a.status != http.StatusOK || a.media != mediaEvents || a.encoded {
		return &statusError{status: a.status}
	}
	opened()
	events := jsonrpc.NewEventReaderIn(a.body, l.room.max, l.room.until(ctx.Done()))
	defer events.Release()
	_, err = l.readAll(events, func(m *jsonrpc.Message, _ bool) bool {
		changes(l.up, m.Method)
		if !m.IsResponse() {
			say(Event{m.Method, m.ID, m.Params})
		}
		return false
	})
	if id := events.LastID(); id != "" {
		l.lastID.Store(&id)
	}
	if err == io.EOF {
		return nil
	}
	return err
}

// respond answers a request of the server.
func (l *httpLink) respond(ctx context.Context, msg []byte) error {
	err := l.send(ctx, msg)
	if errors.Is(err, errSessionGone) {
		l.fail(err)
	}
	return err
}
