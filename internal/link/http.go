package link

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/reach"
	"mcpproxy/internal/session"
	"mcpproxy/internal/wire"
)

// Address is where a server is reached over HTTP, and with what.
type Address struct {
	URL     string
	Headers map[string]string
	Account wire.Account // proves who asks; nil: nothing does
	Dial    func(*url.URL) (wire.Client, error)
}

// Dial returns a client for a server's address: it reaches what the address says
// by itself, and else the internet; private networks too, if that is allowed.
func Dial(u *url.URL, allowPrivate bool) (wire.Client, error) {
	return wire.NewClient(u, reach.For(u.Hostname(), allowPrivate))
}

// HTTP is a session over streamable HTTP. Each request is an exchange of its
// own, whose answer is read by the goroutine that wants it; one goroutine reads
// the stream of what the server says by itself, another one tells it what
// nobody waits for. A link that is one client's own runs neither.
type HTTP struct {
	*session.End
	Options
	url       *url.URL // changes while the session is being set up only
	redirects int
	fields    http.Header // what the configuration adds
	client    wire.Client

	state atomic.Pointer[httpState]
	open  atomic.Int64 // requests in flight
	heard atomic.Uint64
	sinks sinks

	modern bool                   // each request stands for itself; set before the first one
	lastID atomic.Pointer[string] // of the last event that the server's own stream has given

	told      chan []byte
	listenNow chan struct{}      // closed when the handshake is done
	streams   atomic.Bool        // the server's own stream is open
	late      atomic.Bool        // something may have been said before the stream was open
	listens   chan struct{}      // closed when the stream is open, or is not offered
	cancel    context.CancelFunc // ends the goroutines
	wg        sync.WaitGroup
}

// httpState is what the heads of requests are made of.
type httpState struct {
	session   string
	version   string
	post, get *wire.Head
}

// NewHTTP prepares a session; nothing is sent yet.
func NewHTTP(a Address, o Options) (*HTTP, error) {
	l, err := newHTTP(a, o)
	if err != nil || o.Own {
		return l, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	l.wg.Go(func() { sendTold(ctx, l.told, l.send, l.Reports) })
	l.wg.Go(func() {
		select {
		case <-l.listenNow:
			l.listen(ctx)
		case <-ctx.Done():
		}
	})
	return l, nil
}

// newHTTP makes a link that runs nothing.
func newHTTP(a Address, o Options) (*HTTP, error) {
	u, err := url.Parse(a.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, problem.Ownf("the url is not an absolute http or https URL")
	}
	l := &HTTP{End: session.NewEnd(), Options: o, url: u, fields: http.Header{}, cancel: func() {},
		told: make(chan []byte, maxTold), listenNow: make(chan struct{}), listens: make(chan struct{})}
	l.fields.Set("User-Agent", "mcpproxy/"+o.Version)
	if u.User != nil {
		password, _ := u.User.Password()
		r := http.Request{Header: l.fields}
		r.SetBasicAuth(u.User.Username(), password)
		l.url = stripUser(u)
	}
	for name, value := range a.Headers {
		l.fields.Set(name, value)
	}
	if err := l.setState("", ""); err != nil {
		return nil, err
	}
	client, err := a.Dial(l.url)
	if err != nil {
		return nil, err
	}
	l.client = wire.Proven(client, a.Account)
	return l, nil
}

func stripUser(u *url.URL) *url.URL {
	v := *u
	v.User = nil
	return &v
}

// setState renders the heads anew.
func (l *HTTP) setState(id, version string) error {
	common := l.fields.Clone()
	if id != "" {
		common.Set(mcp.HeaderSession, id)
	}
	if version != "" {
		common.Set(mcp.HeaderVersion, version)
	}
	get := common.Clone()
	get.Set("Accept", "text/event-stream")
	common.Set("Accept", "application/json, text/event-stream")
	common.Set("Content-Type", "application/json")
	s := &httpState{session: id, version: version}
	var err error
	if s.post, err = wire.NewHead(l.url, common); err != nil {
		return err
	}
	if s.get, err = wire.NewHead(l.url, get); err != nil {
		return err
	}
	l.state.Store(s)
	return nil
}

// exchange is one request over HTTP. In the client's own session, and in the
// modern revision, it keeps the client's id, since what comes in its answer is
// for nobody else; elsewhere it has one of ours, and a sink.
type exchange struct {
	sent
	keeps  bool // the client's id
	fields []mcp.Field
	msg    []byte
	sink   *sink
}

// Do implements session.Doer.
func (l *HTTP) Do(ctx context.Context, r *session.Request) (session.Reply, error) {
	if err := l.Cause(); err != nil {
		return session.Reply{}, notSent(err)
	}
	l.open.Add(1)
	defer l.open.Add(-1)
	buf := buffers.Get().(*[]byte)
	defer putBuffer(buf)
	x := exchange{keeps: r.ID != nil && r.Call == nil && (l.Own || l.modern), fields: r.Fields}
	if x.keeps {
		x.Request = r
		x.msg = jsonrpc.AppendRequestAs((*buf)[:0], r.ID, r.Method, r.Params)
	} else {
		x.msg = x.send((*buf)[:0], r, &l.Options, l.modern)
	}
	*buf = x.msg
	if x.fields == nil && (l.modern || r.ID == nil && r.Method == mcp.Discover) {
		x.fields = mirror(r)
		if !l.modern { // nothing is agreed yet
			x.fields = append(x.fields, mcp.Field{Name: mcp.HeaderVersion, Value: mcp.Modern})
		}
		if err := wire.CheckFields(x.fields); err != nil {
			return session.Reply{}, notSent(err)
		}
	}
	if !x.keeps {
		x.sink = l.sinks.add(&x.sent)
	}
	state := l.state.Load()
	reply, err := l.post(ctx, state, &x)
	if !x.keeps {
		l.sinks.remove(&x.sent, x.sink, deserts(err))
	}
	x.settle(&reply)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		if cancelable(r) && !l.modern && !session.NotSent(err) {
			l.cancelled(ctx, &x)
			err = ctx.Err()
		}
	case errors.Is(err, ErrSessionGone):
		if !l.sessionGone(ctx, state) {
			return notGone(err)
		}
		l.Fail(ErrSessionGone)
	case session.NotSent(err) && !l.Own:
		l.Fail(err)
	default:
		l.Reports.Doubt()
	}
	return reply, err
}

// cancelled tells the server, in the client's words if there are any, that a
// request is no longer wanted.
func (l *HTTP) cancelled(ctx context.Context, x *exchange) {
	if !x.keeps {
		l.tell(cancelled(ctx, x.id))
		return
	}
	l.answerNow(jsonrpc.AppendNotification(nil, mcp.Cancelled, cancelledBy(ctx, x.ID)))
}

// post sends one request and reads its answer.
func (l *HTTP) post(ctx context.Context, state *httpState, x *exchange) (session.Reply, error) {
	a, err := l.do(ctx, &wire.Request{Method: http.MethodPost, Head: state.post, Fields: x.fields, Body: x.msg, Passes: x.Head != nil})
	if err != nil {
		return session.Reply{}, err
	}
	defer a.Body.Close()
	l.heard.Add(1)
	switch {
	case state.version == "" && l.redirected(a):
		return l.post(ctx, l.state.Load(), x)
	case x.Head != nil:
		x.Head(a.Passable())
	}
	switch {
	case a.Encoded:
		return session.Reply{}, problem.Ownf("the answer is compressed, which was not asked for")
	case a.Status < 200 || a.Status > 299:
		return l.refused(state, a, x)
	}
	if a.Session != "" && a.Session != state.session && state.version == "" {
		if err := l.setState(a.Session, ""); err != nil {
			return session.Reply{}, err
		}
	}
	var reply session.Reply
	take := func(m *jsonrpc.Message, kept bool) bool {
		switch {
		case !m.IsResponse():
			l.incoming(m, x)
		case x.isAnswer(m):
			reply = replyOf(m, kept)
			return true
		}
		return false
	}
	if a.Media == wire.Events {
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
	return reply, err
}

// do is the client's, with what it says of requests that were not sent in our
// terms.
func (l *HTTP) do(ctx context.Context, r *wire.Request) (*wire.Response, error) {
	a, err := l.client.Do(ctx, r)
	if err != nil && wire.IsNotSent(err) {
		err = notSent(err)
	}
	return a, err
}

// isAnswer reports whether m is the response to x. An error without an id can
// only be for the one request that was sent.
func (x *exchange) isAnswer(m *jsonrpc.Message) bool {
	if m.Error != nil && (m.ID == nil || string(m.ID) == "null") {
		return true
	}
	if x.keeps {
		return SameID(m.ID, x.ID)
	}
	id, ok := numericID(m.ID)
	return ok && id == x.id
}

// maxRedirects is how often the first request may be sent to another path.
const maxRedirects = 3

// redirected follows, while the session is being set up, a redirect within
// the same origin: many servers send /mcp to /mcp/. Elsewhere our headers, and
// the credentials in them, never go.
func (l *HTTP) redirected(a *wire.Response) bool {
	if a.Status != http.StatusTemporaryRedirect && a.Status != http.StatusPermanentRedirect || a.Location == "" {
		return false
	}
	to, err := l.url.Parse(a.Location)
	if err != nil || !sameOrigin(to, l.url) || l.redirects >= maxRedirects {
		return false
	}
	l.redirects++
	l.url = stripUser(to)
	state := l.state.Load()
	return l.setState(state.session, state.version) == nil
}

func sameOrigin(a, b *url.URL) bool { return a.Scheme == b.Scheme && a.Host == b.Host }

// readWhole reads an answer that is no stream: one response, or a batch with it.
func (l *HTTP) readWhole(ctx context.Context, a *wire.Response, x *exchange, take func(m *jsonrpc.Message, kept bool) bool) error {
	if a.Media != wire.JSON && x.keeps {
		return &StatusError{Status: a.Status} // which its client gets
	}
	if a.Media != wire.JSON {
		return problem.Ownf("the answer (status %d) is neither JSON nor an event stream", a.Status)
	}
	body, err := l.Budget.Until(ctx.Done()).ReadBody(a)
	if err != nil {
		return err
	}
	found := false
	err = split(bytes.TrimSpace(body), func(m jsonrpc.Message) {
		if !found || !m.IsResponse() {
			found = take(&m, true) || found
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

// incoming deals with what is no response. x is the request in whose answer it
// came, nil for the server's own stream.
func (l *HTTP) incoming(m *jsonrpc.Message, x *exchange) {
	change := changed(l.Reports, m.Method)
	if x != nil && x.keeps {
		switch {
		case x.Say != nil:
			x.Say(eventOf(m))
		case m.IsRequest():
			l.answerNow(cannotAsk(m))
		}
		return
	}
	var from *sink
	if x != nil {
		from = x.sink
	}
	switch {
	case m.IsRequest():
		l.tell(answerTo(m))
	case change:
		l.Reports.Heard(m.Method, m.Params)
	case m.Method == mcp.ResourceUpdated && l.Reports.Heard(m.Method, m.Params):
	case m.Method == mcp.Progress:
		if id, ok := progressID(m.Params); ok {
			l.sinks.byID(id).put(m, from)
		}
	default:
		to := from
		if to == nil {
			to = l.sinks.only(int(l.open.Load()))
		}
		if !to.put(m, from) && m.Method == mcp.LogMessage {
			l.Reports.Remark("the server says " + string(m.Params[:min(len(m.Params), maxRemarkText)]))
		}
	}
}

// Notify implements Link.
func (l *HTTP) Notify(ctx context.Context, method string, params json.RawMessage) error {
	return l.send(ctx, jsonrpc.AppendNotification(nil, method, params))
}

// Respond answers a question of the server.
func (l *HTTP) Respond(ctx context.Context, id json.RawMessage, r session.Reply) error {
	err := l.send(ctx, answer(id, r))
	if errors.Is(err, ErrSessionGone) {
		l.Fail(err)
	}
	return err
}

// send posts a message that has no response.
func (l *HTTP) send(ctx context.Context, msg []byte) error {
	state := l.state.Load()
	a, err := l.do(ctx, &wire.Request{Method: http.MethodPost, Head: state.post, Body: msg})
	if err != nil {
		return err
	}
	defer a.Body.Close()
	if a.Status == http.StatusNotFound && state.session != "" {
		return ErrSessionGone
	}
	if a.Status < 200 || a.Status > 299 {
		return &StatusError{Status: a.Status}
	}
	if a.Media != wire.Events {
		wire.ReadBody(a, maxErrorBody)
	}
	return nil
}

// answerNow sends what nobody waits for, from a goroutine that may wait.
func (l *HTTP) answerNow(msg []byte) {
	ctx, cancel := context.WithTimeout(context.Background(), tellTime)
	defer cancel()
	if err := l.send(ctx, msg); err != nil {
		l.Reports.Doubt()
	}
}

// tell sends msg without waiting: a cancellation, or the answer to a question of
// the server. When the server is too far behind msg is dropped.
func (l *HTTP) tell(msg []byte) {
	select {
	case l.told <- msg:
	default:
	}
}

// sendTold sends what has been told until ctx ends.
func sendTold(ctx context.Context, told <-chan []byte, send func(context.Context, []byte) error, up Reports) {
	for {
		select {
		case <-ctx.Done():
			return
		case msg := <-told:
			sctx, cancel := context.WithTimeout(ctx, tellTime)
			if err := send(sctx, msg); err != nil {
				up.Doubt()
			}
			cancel()
		}
	}
}

// Agree makes the version be said from now on.
func (l *HTTP) Agree(version string) {
	l.modern = version == mcp.Modern
	if err := l.setState(l.state.Load().session, version); err != nil {
		l.Fail(err)
	}
}

// Settled has nothing to do.
func (l *HTTP) Settled() {}

// HasID implements Link.
func (l *HTTP) HasID() bool { return l.state.Load().session != "" }

// Health implements Link.
func (l *HTTP) Health() Health {
	return Health{Heard: l.heard.Load(), InFlight: int(l.open.Load()), Listening: l.streams.Load()}
}

// Tidy implements Link.
func (l *HTTP) Tidy(now time.Time) { l.client.Reap(now) }

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
	l.wg.Go(func() {
		select {
		case <-hard:
			cancel()
		case <-ctx.Done():
		}
	})
	if a, err := l.client.Do(ctx, &wire.Request{Method: http.MethodDelete, Head: state.get}); err == nil {
		a.Body.Close()
	}
	cancel()
	l.wg.Wait()
}
