package link

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/session"
	"mcpproxy/internal/wire"
)

// SSE is a session over the HTTP transport of MCP 2024-11-05: one stream on
// which the server says everything, and an endpoint, named at its beginning, to
// which messages are posted.
type SSE struct {
	*duplex
	base *HTTP // for its address and client; it sends nothing

	ready    chan struct{} // closed when endpoint is there
	endpoint *wire.Head
	told     chan []byte
	cancel   context.CancelFunc // ends the two goroutines that read and tell
	mu       sync.Mutex         // orders starts and Stop
	wg       sync.WaitGroup
}

// maxEndpoint bounds the endpoint that a server names.
const maxEndpoint = 8 << 10

var (
	errStreamEnded = problem.Ownf("the server has ended the stream")
	errNoEndpoint  = problem.Ownf("the stream does not begin with the endpoint that messages go to")
)

// NewSSE opens the stream.
func NewSSE(a Address, o Options) (*SSE, error) {
	base, err := newHTTP(a, o)
	if err != nil {
		return nil, err
	}
	l := &SSE{duplex: newDuplex(o), base: base, ready: make(chan struct{}), told: make(chan []byte, maxTold)}
	l.tell = func(msg []byte) {
		select {
		case l.told <- msg:
		default: // the server is too far behind
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	l.wg.Go(func() { l.end(l.read(ctx)) })
	l.wg.Go(func() { sendTold(ctx, l.told, l.post, l.Reports) })
	return l, nil
}

// read opens the stream, and routes what the server says until it ends.
func (l *SSE) read(ctx context.Context) error {
	a, err := l.openStream(ctx, maxRedirects)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	events := jsonrpc.NewEventReaderIn(a.Body, l.Budget.Max(), l.Budget.Until(ctx.Done()))
	defer events.Release()
	ev, err := events.Next()
	switch {
	case err == io.EOF || err == nil && ev.Name != "endpoint":
		return errNoEndpoint
	case err != nil:
		return err
	}
	if err := l.setEndpoint(string(ev.Data)); err != nil {
		return err
	}
	for {
		ev, err := events.Next()
		switch {
		case err == io.EOF:
			return errStreamEnded
		case err != nil:
			return bounded(l.Budget, err)
		}
		l.heard.Add(1)
		if len(ev.Data) == 0 || ev.Name != "message" {
			continue
		}
		data, kept := ev.Data, len(ev.Data) >= keepFrom
		if kept {
			data = events.Keep()
		}
		if !l.routeAll(data, kept) {
			l.Reports.Remark("an event is no JSON-RPC message")
		}
	}
}

// openStream asks for the stream, also where the server says it is within the
// same origin.
func (l *SSE) openStream(ctx context.Context, redirects int) (*wire.Response, error) {
	fields := l.base.fields.Clone()
	fields.Set("Accept", "text/event-stream")
	head, err := wire.NewHead(l.base.url, fields)
	if err != nil {
		return nil, err
	}
	a, err := l.base.do(ctx, &wire.Request{Method: http.MethodGet, Head: head})
	if err != nil {
		return nil, err
	}
	if a.Status == http.StatusOK && a.Media == wire.Events && !a.Encoded {
		return a, nil
	}
	defer a.Body.Close()
	if a.Status >= 300 && a.Status < 400 && redirects > 0 {
		if to, err := l.base.url.Parse(a.Location); err == nil && a.Location != "" && sameOrigin(to, l.base.url) {
			l.base.url = stripUser(to)
			return l.openStream(ctx, redirects-1)
		}
	}
	if a.Status == http.StatusOK {
		return nil, problem.Ownf("the answer is no event stream")
	}
	return nil, &StatusError{Status: a.Status, challenge: a.Challenge, location: a.Location}
}

// setEndpoint takes the place that messages go to. Elsewhere than at the origin
// of the stream our headers, and the credentials in them, never go.
func (l *SSE) setEndpoint(text string) error {
	if len(text) > maxEndpoint {
		return problem.Ownf("the endpoint for messages is longer than %d bytes", maxEndpoint)
	}
	to, err := l.base.url.Parse(text)
	if err != nil || text == "" {
		return problem.Ownf("the endpoint for messages is no URL")
	}
	if !sameOrigin(to, l.base.url) {
		return problem.Ownf("the endpoint for messages is at another origin than the stream")
	}
	fields := l.base.fields.Clone()
	fields.Set("Accept", "application/json, text/event-stream")
	fields.Set("Content-Type", "application/json")
	if l.endpoint, err = wire.NewHead(stripUser(to), fields); err != nil {
		return err
	}
	close(l.ready)
	return nil
}

// post sends one message, as soon as it is known where to.
func (l *SSE) post(ctx context.Context, msg []byte) error {
	select {
	case <-l.ready:
	case <-l.Done():
		return notSent(l.Cause())
	case <-ctx.Done():
		return notSent(ctx.Err())
	}
	if err := l.Cause(); err != nil {
		return notSent(err)
	}
	a, err := l.base.do(ctx, &wire.Request{Method: http.MethodPost, Head: l.endpoint, Body: msg})
	if err != nil {
		return err
	}
	defer a.Body.Close()
	switch {
	case a.Status == http.StatusNotFound:
		return &goneError{status: &StatusError{Status: a.Status}}
	case a.Status < 200 || a.Status > 299:
		return &StatusError{Status: a.Status, challenge: a.Challenge, location: a.Location}
	}
	_, _ = wire.ReadBody(a, maxErrorBody) // so that the connection can be used again
	return nil
}

// start runs f in a goroutine that Stop waits for, with a context that ends with
// the link; it fails when the link is lost.
func (l *SSE) start(f func(context.Context)) (cancel context.CancelFunc, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.Cause(); err != nil {
		return nil, notSent(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.wg.Go(func() {
		defer cancel()
		f(ctx)
	})
	l.wg.Go(func() {
		select {
		case <-l.Done():
			cancel()
		case <-ctx.Done():
		}
	})
	return cancel, nil
}

// Do posts the request while it waits for the answer on the stream: some servers
// take a message only when they have answered it.
func (l *SSE) Do(ctx context.Context, r *session.Request) (session.Reply, error) {
	e, buf, err := l.begin(ctx, r)
	if err != nil {
		return session.Reply{}, err
	}
	s, msg := e.sent, bytes.Clone(*buf) // it may be on its way for longer than r is there
	putBuffer(buf)
	posted := make(chan struct{})
	cancel, err := l.start(func(pctx context.Context) {
		defer close(posted)
		if err := l.post(pctx, msg); err != nil {
			l.wait.reject(s.id, err)
		}
	})
	if err != nil {
		l.wait.abandon(e)
		return session.Reply{}, err
	}
	reply, err := l.wait.wait(ctx, e)
	s.settle(&reply)
	switch {
	case err == nil, errors.Is(err, ErrNoMessage):
		time.AfterFunc(tellTime, cancel)
	case ctx.Err() != nil:
		cancel()
		<-posted
		if cancelable(r) {
			l.tell(cancelled(ctx, s.id))
		}
		err = ctx.Err()
	case errors.Is(err, ErrSessionGone), session.NotSent(err) && !l.Own:
		l.end(err)
	default:
		l.Reports.Doubt()
	}
	return reply, err
}

// Notify implements Link.
func (l *SSE) Notify(ctx context.Context, method string, params json.RawMessage) error {
	return l.post(ctx, jsonrpc.AppendNotification(nil, method, params))
}

// Respond implements Link.
func (l *SSE) Respond(ctx context.Context, id json.RawMessage, r session.Reply) error {
	return l.post(ctx, answer(id, r))
}

// Settled has nothing to do.
func (l *SSE) Settled() {}

// Tidy implements Link.
func (l *SSE) Tidy(now time.Time) { l.base.client.Reap(now) }

// Stop ends the stream, and with it the session.
func (l *SSE) Stop(<-chan struct{}) {
	l.mu.Lock()
	l.Fail(ErrStopped) // nothing is started from here on
	l.mu.Unlock()
	l.end(ErrStopped)
	l.cancel()
	l.wg.Wait()
	l.base.client.Close()
}
