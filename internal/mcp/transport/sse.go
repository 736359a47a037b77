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

// SSELink is a session over the HTTP+SSE transport of 2024-11-05. It has one event stream for all messages of the
// server, and an endpoint for POSTs, which is the first event of the stream.
type SSELink struct {
	*duplex
	*remoteHTTPServer

	ready chan struct{} // closed when the endpoint is known
	mu    sync.Mutex    // orders startTask and Stop
}

// maxEndpoint limits the endpoint text, in bytes.
const maxEndpoint = 8 << 10

var (
	errStreamEnded = problem.TrustedTextErrorf("the server has ended the stream")
	errNoEndpoint  = problem.TrustedTextErrorf("the first event of the stream is not the endpoint for messages")
)

// NewSSELink opens the stream.
func NewSSELink(a ServerAddress, o LinkOptions) (*SSELink, error) {
	site, err := newRemoteHTTPServer(a, o)
	if err != nil {
		return nil, err
	}
	l := &SSELink{duplex: newDuplex(o), remoteHTTPServer: site, ready: make(chan struct{})}
	l.post = l.postToEndpoint
	l.postLater = l.outbox.putMessage
	l.allowQuestions()
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	l.wg.Go(func() { l.endLink(l.readMessages(ctx)) })
	l.wg.Go(func() { l.sendOutbox(ctx, l.outbox) })
	return l, nil
}

// readMessages opens the stream and routes its messages until it ends.
func (l *SSELink) readMessages(ctx context.Context) error {
	a, err := l.openEventStream(ctx)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	events := wirejson.NewSSEReaderWithPool(a.Body, l.Budget.MaxMessage(), l.Budget.ForReader(ctx.Done()))
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
			return toBudgetError(l.Budget, err)
		}
		l.received.Add(1)
		if len(ev.Data) == 0 || ev.Name != "message" {
			continue
		}
		data, kept := takeOwnership(ev.Data, events)
		if !l.parseAndRoute(data, kept) {
			l.Reports.ProtocolViolation("it sends events that are not JSON-RPC messages")
		}
	}
}

// maxEarly limits the number of events before the endpoint.
const maxEarly = 100

// readEndpoint reads events up to the endpoint. Some servers send other events first, such as a ping.
func (l *SSELink) readEndpoint(events *wirejson.SSEReader) error {
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

// openEventStream requests the stream and follows redirects within the origin.
func (l *SSELink) openEventStream(ctx context.Context) (*HTTPResponse, error) {
	for {
		a, err := l.requestEventStream(ctx, l.state.Load(), nil)
		status, ok := errors.AsType[*StatusError](err)
		switch {
		case !ok:
			return a, err
		case status.Status == http.StatusOK:
			return nil, problem.TrustedTextErrorf("the answer is not an event stream")
		case status.Status < 300 || status.Status > 399 || !l.adoptSameOriginRedirect(status.location):
			return nil, err
		}
	}
}

// setEndpoint sets the endpoint. It must have the same origin as the stream, because headers and credentials are sent
// to it.
func (l *SSELink) setEndpoint(text string) error {
	if len(text) > maxEndpoint {
		return problem.TrustedTextErrorf("the endpoint for messages is longer than %d bytes", maxEndpoint)
	}
	to, err := l.url.Parse(text)
	if err != nil || text == "" {
		return problem.TrustedTextErrorf("the endpoint for messages is not a URL")
	}
	if !sameOrigin(to, l.url) {
		return problem.TrustedTextErrorf("the endpoint for messages has another origin than the stream")
	}
	l.url = stripUserInfo(to)
	if err := l.setSessionHeads("", ""); err != nil {
		return err
	}
	close(l.ready)
	return nil
}

// postToEndpoint posts one message as soon as the endpoint is known.
func (l *SSELink) postToEndpoint(ctx context.Context, msg []byte) error {
	select {
	case <-l.ready:
	case <-l.Done():
		return newNotSentError(l.Cause())
	case <-ctx.Done():
		return newNotSentError(ctx.Err())
	}
	if err := l.Cause(); err != nil {
		return newNotSentError(err)
	}
	err := l.postToServer(ctx, l.state.Load(), msg)
	if status, ok := errors.AsType[*StatusError](err); ok && status.Status == http.StatusNotFound {
		return &sessionGoneError{status}
	}
	return err
}

// probeSessionLostAfterRefusal interprets a refused request. If a server also refuses a ping, it has lost the session
// and has not executed the request.
func (l *SSELink) probeSessionLostAfterRefusal(ctx context.Context, err error) error {
	status, ok := errors.AsType[*StatusError](err)
	if !ok || status.Temporary() || status.Status < 400 || !l.agreed.Load() || errors.Is(err, ErrSessionGone) {
		return err
	}
	id := l.IDs.Add(1) // the response is ignored
	again, ok := errors.AsType[*StatusError](l.postToEndpoint(ctx, wirejson.AppendRequest(nil, id, mcp.Ping, nil)))
	if ok && !again.Temporary() {
		return &sessionGoneError{status}
	}
	return err
}

// startTask runs f in a goroutine that Stop waits for. Its context ends with the link. It fails if the link is lost.
func (l *SSELink) startTask(f func(context.Context)) (cancel func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.Cause(); err != nil {
		return nil, newNotSentError(err)
	}
	ctx, cancel := session.WithDoneChannels(context.Background(), l.Done(), nil)
	l.wg.Go(func() {
		defer cancel()
		f(ctx)
	})
	return cancel, nil
}

// Do posts the request while it waits for the response on the stream, because some servers accept a POST only after
// they have answered the request.
func (l *SSELink) Do(ctx context.Context, r *session.Request) (session.Reply, error) {
	e, buf, err := l.registerAndEncodeRequest(ctx, r)
	if err != nil {
		return session.Reply{}, err
	}
	id, msg := e.id, bytes.Clone(*buf) // the post may outlive r
	putEncodeBuffer(buf)
	posted := make(chan struct{})
	cancel, err := l.startTask(func(pctx context.Context) {
		defer close(posted)
		if err := l.postToEndpoint(pctx, msg); err != nil {
			l.pending.rejectRequest(id, l.probeSessionLostAfterRefusal(pctx, err))
		}
	})
	if err != nil {
		l.pending.abandonUnsent(e)
		return session.Reply{}, err
	}
	reply, err := l.pending.waitForReply(ctx, e)
	switch {
	case err == nil, errors.Is(err, ErrNoMessage):
		time.AfterFunc(tellTime, cancel)
	case ctx.Err() != nil:
		l.cancelAfterPost(posted, cancel, func() {
			if isCancelable(r) {
				l.postLater(newCancelNotification(ctx, strconv.AppendUint(nil, id, 10)))
			}
		})
		err = ctx.Err()
	case errors.Is(err, ErrSessionGone):
		l.endLink(ErrSessionGone)
	case session.IsNotSent(err) && !l.Own:
		l.endLink(err)
	default:
		l.Reports.ConnectionDoubtful()
	}
	return reply, err
}

// postGraceTime is how long a cancelled request may still be posted.
const postGraceTime = time.Second

// cancelAfterPost calls notify when the post of a request has ended, in the background. It ends a post that takes long,
// because some servers accept a POST only after they have answered the request. A server that reads both posts at once
// may otherwise read the cancellation first, ignore it and execute the request.
func (l *SSELink) cancelAfterPost(posted <-chan struct{}, cancelPost, notify func()) {
	wait := func(ctx context.Context) {
		limit := time.NewTimer(postGraceTime)
		defer limit.Stop()
		select {
		case <-posted:
		case <-limit.C:
		case <-ctx.Done():
		}
		cancelPost()
		<-posted
		notify()
	}
	if _, err := l.startTask(wait); err != nil { // the link is lost
		cancelPost()
	}
}

// Stop ends the stream and thereby the session.
func (l *SSELink) Stop(<-chan struct{}) {
	l.mu.Lock()
	l.Signal(ErrStopped) // nothing starts after this
	l.mu.Unlock()
	l.endLink(ErrStopped)
	l.cancel()
	l.wg.Wait()
	l.client.Close()
}
