package transport

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
)

// SSE is a session over the HTTP+SSE transport of 2024-11-05: one event stream for all messages of the
// server, and an endpoint, which the stream names first, for POSTs.
type SSE struct {
	*duplex
	*site

	ready chan struct{} // closed when the endpoint is known
	mu    sync.Mutex    // orders start and Stop
}

// maxEndpoint limits the endpoint text, in bytes.
const maxEndpoint = 8 << 10

var (
	errStreamEnded = problem.Ownf("the server has ended the stream")
	errNoEndpoint  = problem.Ownf("the stream does not begin with the endpoint that messages go to")
)

// NewSSE opens the stream.
func NewSSE(a Address, o Options) (*SSE, error) {
	site, err := newSite(a, o)
	if err != nil {
		return nil, err
	}
	l := &SSE{duplex: newDuplex(o), site: site, ready: make(chan struct{})}
	l.post = l.toEndpoint
	l.postLater = l.outbox.put
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	l.wg.Go(func() { l.end(l.read(ctx)) })
	l.wg.Go(func() { l.sendQueued(ctx, l.outbox) })
	return l, nil
}

// read opens the stream and routes its messages until it ends.
func (l *SSE) read(ctx context.Context) error {
	a, err := l.openStream(ctx)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	events := wirejson.NewEventReaderIn(a.Body, l.Budget.Max(), l.Budget.Until(ctx.Done()))
	defer events.Release()
	if err := l.readEndpoint(events); err != nil {
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
		l.received.Add(1)
		if len(ev.Data) == 0 || ev.Name != "message" {
			continue
		}
		data, kept := owned(ev.Data, events)
		if !l.routeAll(data, kept) {
			l.Reports.Odd("it sends events that are not JSON-RPC messages")
		}
	}
}

// maxEarly limits the events before the endpoint.
const maxEarly = 100

// readEndpoint reads events up to the endpoint. Some servers send others first, such as a ping.
func (l *SSE) readEndpoint(events *wirejson.EventReader) error {
	for range maxEarly {
		ev, err := events.Next()
		switch {
		case err == io.EOF:
			return errNoEndpoint
		case err != nil:
			return err
		case ev.Name == "endpoint":
			return l.setEndpoint(strings.TrimSpace(string(ev.Data)))
		case ev.Name == "message" && bytes.HasPrefix(ev.Data, []byte("{")):
			return errNoEndpoint
		}
	}
	return errNoEndpoint
}

// openStream requests the stream and follows redirects within the origin.
func (l *SSE) openStream(ctx context.Context) (*Response, error) {
	for {
		a, err := l.stream(ctx, l.state.Load(), nil)
		status, ok := errors.AsType[*StatusError](err)
		switch {
		case !ok:
			return a, err
		case status.Status == http.StatusOK:
			return nil, problem.Ownf("the answer is no event stream")
		case status.Status < 300 || status.Status > 399 || !l.redirected(status.location):
			return nil, err
		}
	}
}

// setEndpoint sets the endpoint. It must have the origin of the stream, because it gets headers and
// credentials.
func (l *SSE) setEndpoint(text string) error {
	if len(text) > maxEndpoint {
		return problem.Ownf("the endpoint for messages is longer than %d bytes", maxEndpoint)
	}
	to, err := l.url.Parse(text)
	if err != nil || text == "" {
		return problem.Ownf("the endpoint for messages is no URL")
	}
	if !sameOrigin(to, l.url) {
		return problem.Ownf("the endpoint for messages is at another origin than the stream")
	}
	l.url = stripUser(to)
	if err := l.setState("", ""); err != nil {
		return err
	}
	close(l.ready)
	return nil
}

// toEndpoint posts one message, once the endpoint is known.
func (l *SSE) toEndpoint(ctx context.Context, msg []byte) error {
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
	err := l.send(ctx, l.state.Load(), msg)
	if status, ok := errors.AsType[*StatusError](err); ok && status.Status == http.StatusNotFound {
		return &goneError{status}
	}
	return err
}

// refused interprets a refused request. A server that also refuses a ping has lost the session and has not
// executed the request.
func (l *SSE) refused(ctx context.Context, err error) error {
	status, ok := errors.AsType[*StatusError](err)
	if !ok || status.Temporary() || status.Status < 400 || !l.agreed.Load() || errors.Is(err, ErrSessionGone) {
		return err
	}
	id := l.IDs.Add(1) // its answer is ignored
	again, ok := errors.AsType[*StatusError](l.toEndpoint(ctx, wirejson.AppendRequest(nil, id, mcp.Ping, nil)))
	if ok && !again.Temporary() {
		return &goneError{status}
	}
	return err
}

// start runs f in a goroutine that Stop waits for; its context ends with the link. It fails if the link is
// lost.
func (l *SSE) start(f func(context.Context)) (cancel func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.Cause(); err != nil {
		return nil, notSent(err)
	}
	ctx, cancel := session.WithDone(context.Background(), l.Done(), nil)
	l.wg.Go(func() {
		defer cancel()
		f(ctx)
	})
	return cancel, nil
}

// Do posts the request while it waits for the response on the stream: some servers accept a POST only
// after they have answered it.
func (l *SSE) Do(ctx context.Context, r *session.Request) (session.Reply, error) {
	e, buf, err := l.begin(ctx, r)
	if err != nil {
		return session.Reply{}, err
	}
	id, msg := e.id, bytes.Clone(*buf) // the post may outlive r
	putBuffer(buf)
	posted := make(chan struct{})
	cancel, err := l.start(func(pctx context.Context) {
		defer close(posted)
		if err := l.toEndpoint(pctx, msg); err != nil {
			l.pending.reject(id, l.refused(pctx, err))
		}
	})
	if err != nil {
		l.pending.abandon(e)
		return session.Reply{}, err
	}
	reply, err := l.pending.wait(ctx, e)
	switch {
	case err == nil, errors.Is(err, ErrNoMessage):
		time.AfterFunc(tellTime, cancel)
	case ctx.Err() != nil:
		cancel()
		<-posted
		if cancelable(r) {
			l.postLater(cancelled(ctx, strconv.AppendUint(nil, id, 10)))
		}
		err = ctx.Err()
	case errors.Is(err, ErrSessionGone):
		l.end(ErrSessionGone)
	case session.NotSent(err) && !l.Own:
		l.end(err)
	default:
		l.Reports.Doubt()
	}
	return reply, err
}

// Stop ends the stream and thereby the session.
func (l *SSE) Stop(<-chan struct{}) {
	l.mu.Lock()
	l.Fail(ErrStopped) // nothing starts after this
	l.mu.Unlock()
	l.end(ErrStopped)
	l.cancel()
	l.wg.Wait()
	l.client.Close()
}
