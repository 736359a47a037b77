package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"mcpproxy/internal/jsonrpc"
)

// sseLink is a session over the HTTP transport of MCP 2024-11-05: one stream
// on which the server says everything, and an endpoint, named at its beginning,
// to which messages are posted.
type sseLink struct {
	*duplex
	url    *url.URL
	fields http.Header
	client exchanger
	room   *room

	ready    chan struct{} // closed when endpoint is there
	endpoint *header
	told     chan []byte
	private  bool
	cancel   context.CancelFunc // ends the two goroutines that read and tell
	mu       sync.Mutex         // orders starts and stop
	wg       sync.WaitGroup
}

// maxEndpoint bounds the endpoint that a server names.
const maxEndpoint = 8 << 10

var (
	errStreamEnded = errors.New("the server has ended the stream")
	errNoEndpoint  = errors.New("the stream does not begin with the endpoint that messages go to")
)

// openSSE opens the stream. own is the mailbox of the client whose own the
// session is; nil: it is everybody's.
func openSSE(base *httpLink, log *serverLog, own *mailbox) *sseLink {
	l := &sseLink{duplex: newDuplex(base.up, log, own), url: base.url, fields: base.fields, client: base.client, room: base.room,
		ready: make(chan struct{}), told: make(chan []byte, maxTold), private: own != nil}
	l.tell = func(msg []byte) {
		select {
		case l.told <- msg:
		default: // the server is too far behind
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	l.wg.Go(func() { l.end(l.read(ctx)) })
	l.wg.Go(func() { l.sendTold(ctx) })
	return l
}

// read opens the stream, and routes what the server says until it ends.
func (l *sseLink) read(ctx context.Context) error {
	a, err := l.openStream(ctx, maxRedirects)
	if err != nil {
		return err
	}
	defer a.body.Close()
	events := jsonrpc.NewEventReaderIn(a.body, l.room.max, l.room.until(ctx.Done()))
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
		case errors.Is(err, jsonrpc.ErrTooLong):
			return l.room.tooLarge()
		case errors.Is(err, jsonrpc.ErrCrowded):
			return l.room.crowded()
		case err != nil:
			return err
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
			l.up.remark("an event is no JSON-RPC message")
		}
	}
}

// openStream asks for the stream, also where the server says it is within the
// same origin.
func (l *sseLink) openStream(ctx context.Context, redirects int) (*answer, error) {
	fields := l.fields.Clone()
	fields.Set("Accept", "text/event-stream")
	head, err := newHeader(l.url, fields)
	if err != nil {
		return nil, err
	}
	a, err := l.client.do(ctx, &exchange{method: http.MethodGet, head: head})
	if err != nil {
		return nil, err
	}
	if a.status == http.StatusOK && a.media == mediaEvents && !a.encoded {
		return a, nil
	}
	defer a.body.Close()
	if a.status >= 300 && a.status < 400 && redirects > 0 {
		if to, err := l.url.Parse(a.location); err == nil && a.location != "" && sameOrigin(to, l.url) {
			l.url = stripUser(to)
			return l.openStream(ctx, redirects-1)
		}
	}
	if a.status == http.StatusOK {
		return nil, errors.New("the answer is no event stream")
	}
	return nil, &statusError{status: a.status, challenge: a.challenge, location: a.location}
}

func sameOrigin(a, b *url.URL) bool { return a.Scheme == b.Scheme && a.Host == b.Host }

// setEndpoint takes the place that messages go to. Elsewhere than at the origin
// of the stream our headers, and the credentials in them, never go.
func (l *sseLink) setEndpoint(text string) error {
	if len(text) > maxEndpoint {
		return fmt.Errorf("the endpoint for messages is longer than %d bytes", maxEndpoint)
	}
	to, err := l.url.Parse(text)
	if err != nil || text == "" {
		return errors.New("the endpoint for messages is no URL")
	}
	if !sameOrigin(to, l.url) {
		return errors.New("the endpoint for messages is at another origin than the stream")
	}
	fields := l.fields.Clone()
	fields.Set("Accept", "application/json, text/event-stream")
	fields.Set("Content-Type", "application/json")
	if l.endpoint, err = newHeader(stripUser(to), fields); err != nil {
		return err
	}
	close(l.ready)
	return nil
}

// sendTold posts what has been told until ctx ends.
func (l *sseLink) sendTold(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case msg := <-l.told:
			pctx, cancel := context.WithTimeout(ctx, tellTime)
			if err := l.post(pctx, msg); err != nil {
				l.up.doubt()
			}
			cancel()
		}
	}
}

// post sends one message, as soon as it is known where to.
func (l *sseLink) post(ctx context.Context, msg []byte) error {
	select {
	case <-l.ready:
	case <-l.lost():
		return &unsentError{l.cause()}
	case <-ctx.Done():
		return &unsentError{ctx.Err()}
	}
	if err := l.cause(); err != nil {
		return &unsentError{err}
	}
	a, err := l.client.do(ctx, &exchange{method: http.MethodPost, head: l.endpoint, body: msg})
	if err != nil {
		return err
	}
	defer a.body.Close()
	switch {
	case a.status == http.StatusNotFound:
		return &goneError{status: &statusError{status: a.status}}
	case a.status < 200 || a.status > 299:
		return &statusError{status: a.status, challenge: a.challenge, location: a.location}
	}
	_, _ = readBody(a, maxErrorBody) // so that the connection can be used again
	return nil
}

// start runs f in a goroutine that stop waits for, with a context that ends with
// the link; it fails when the link is lost.
func (l *sseLink) start(f func(context.Context)) (cancel context.CancelFunc, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.cause(); err != nil {
		return nil, &unsentError{err}
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.wg.Go(func() {
		defer cancel()
		f(ctx)
	})
	l.wg.Go(func() {
		select {
		case <-l.lost():
			cancel()
		case <-ctx.Done():
		}
	})
	return cancel, nil
}

// roundTrip posts the request while it waits for the answer on the stream: some
// servers take a message only when they have answered it.
func (l *sseLink) roundTrip(ctx context.Context, r *request) (Reply, error) {
	if err := ctx.Err(); err != nil {
		return Reply{}, &unsentError{err}
	}
	e, err := l.wait.add(r)
	if err != nil {
		return Reply{}, err
	}
	id, msg := r.id, bytes.Clone(r.msg) // it may be on its way for longer than r is there
	posted := make(chan struct{})
	cancel, err := l.start(func(pctx context.Context) {
		defer close(posted)
		if err := l.post(pctx, msg); err != nil {
			l.wait.reject(id, err)
		}
	})
	if err != nil {
		l.wait.abandon(e)
		return Reply{}, err
	}
	reply, err := l.wait.wait(ctx, e)
	switch {
	case err == nil, errors.Is(err, errNoMessage):
		time.AfterFunc(tellTime, cancel)
	case ctx.Err() != nil:
		cancel()
		<-posted
		if r.cancelable {
			l.tell(jsonrpc.AppendNotification(nil, methodCancelled, cancelledBy(ctx, strconv.AppendUint(nil, id, 10))))
		}
		err = ctx.Err()
	case errors.Is(err, errSessionGone), unsent(err) && !l.private:
		l.end(err)
	default:
		l.up.doubt()
	}
	return reply, err
}

func (l *sseLink) relay(ctx context.Context, r *relayed) (Reply, error) {
	return l.carry(ctx, r, l.roundTrip)
}

func (l *sseLink) notify(ctx context.Context, method string, params json.RawMessage) error {
	return l.post(ctx, jsonrpc.AppendNotification(nil, method, params))
}

func (l *sseLink) respond(ctx context.Context, msg []byte) error { return l.post(ctx, msg) }
func (l *sseLink) negotiated(string)                             {}
func (l *sseLink) attend(context.Context)                        {}
func (l *sseLink) attended() bool                                { return true }
func (l *sseLink) pid() int                                      { return 0 }
func (l *sseLink) tidy(now time.Time)                            { l.client.reap(now) }

// stop ends the stream, and with it the session.
func (l *sseLink) stop(<-chan struct{}) {
	l.mu.Lock()
	l.fail(errStopped) // nothing is started from here on
	l.mu.Unlock()
	l.end(errStopped)
	l.cancel()
	l.wg.Wait()
	l.client.close()
}
