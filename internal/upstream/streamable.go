package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"mcpproxy/internal/jsonrpc"
)

// httpLink is a session over streamable HTTP. Each request is an exchange of
// its own, whose answer is read by the goroutine that wants it; one goroutine
// reads the stream of what the server says by itself, another one tells it
// what nobody waits for.
type httpLink struct {
	*loss
	url       *url.URL // changes while the session is being set up only
	redirects int
	fields    http.Header // what the configuration adds
	client    exchanger
	up        inbound
	room      *room

	state atomic.Pointer[httpState]
	open  atomic.Int64 // requests in flight
	heard atomic.Uint64
	sinks sinks

	mail    *mailbox               // where the server's own stream goes, when we listen for a client
	private bool                   // a client's own: nothing is said or answered in its place
	modern  bool                   // each request stands for itself; set before the first one
	lastID  atomic.Pointer[string] // of the last event that the server's own stream has given

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
	post, get *header
}

// openHTTP prepares a session; nothing is sent yet.
func openHTTP(spec *Spec, up inbound, room *room, agent string, account Account) (*httpLink, error) {
	l, err := newHTTPLink(spec, up, room, agent)
	if err != nil {
		return nil, err
	}
	client, err := newExchanger(l.url, spec.reach(l.url))
	if err != nil {
		return nil, err
	}
	l.client = proven(client, account)
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	l.wg.Go(func() { l.sendTold(ctx) })
	l.wg.Go(func() {
		select {
		case <-l.listenNow:
			l.listen(ctx)
		case <-ctx.Done():
		}
	})
	return l, nil
}

// newHTTPLink makes a link without a client; it runs nothing.
func newHTTPLink(spec *Spec, up inbound, room *room, agent string) (*httpLink, error) {
	u, err := url.Parse(spec.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("the url is not an absolute http or https URL")
	}
	l := &httpLink{loss: newLoss(), url: u, up: up, room: room, fields: http.Header{}, cancel: func() {},
		told: make(chan []byte, maxTold), listenNow: make(chan struct{}), listens: make(chan struct{})}
	l.fields.Set("User-Agent", agent)
	if u.User != nil {
		password, _ := u.User.Password()
		r := http.Request{Header: l.fields}
		r.SetBasicAuth(u.User.Username(), password)
		l.url = stripUser(u)
	}
	for name, value := range spec.Headers {
		l.fields.Set(name, value)
	}
	if err := l.setState("", ""); err != nil {
		return nil, err
	}
	return l, nil
}

func stripUser(u *url.URL) *url.URL {
	v := *u
	v.User = nil
	return &v
}

// setState renders the heads anew.
func (l *httpLink) setState(session, version string) error {
	common := l.fields.Clone()
	if session != "" {
		common.Set("Mcp-Session-Id", session)
	}
	if version != "" {
		common.Set("Mcp-Protocol-Version", version)
	}
	get := common.Clone()
	get.Set("Accept", "text/event-stream")
	common.Set("Accept", "application/json, text/event-stream")
	common.Set("Content-Type", "application/json")
	s := &httpState{session: session, version: version}
	var err error
	if s.post, err = newHeader(l.url, common); err != nil {
		return err
	}
	if s.get, err = newHeader(l.url, get); err != nil {
		return err
	}
	l.state.Store(s)
	return nil
}

func (l *httpLink) roundTrip(ctx context.Context, r *request) (Reply, error) {
	l.open.Add(1)
	defer l.open.Add(-1)
	state := l.state.Load()
	s := l.sinks.add(r)
	reply, err := l.post(ctx, state, r, s)
	l.sinks.remove(r, s, deserts(err))
	switch {
	case err == nil:
	case ctx.Err() != nil:
		if r.cancelable && !l.modern && !unsent(err) {
			l.tell(jsonrpc.AppendNotification(nil, methodCancelled, cancelledBy(ctx, strconv.AppendUint(nil, r.id, 10))))
		}
	case unsent(err):
		l.fail(err)
	case errors.Is(err, errSessionGone):
		if !l.sessionGone(ctx, state, r) {
			return notGone(err)
		}
		l.fail(errSessionGone)
	default:
		l.up.doubt()
	}
	return reply, err
}

// post sends one request and reads its answer.
func (l *httpLink) post(ctx context.Context, state *httpState, r *request, s *sink) (Reply, error) {
	a, err := l.client.do(ctx, &exchange{method: http.MethodPost, head: state.post, fields: r.fields, body: r.msg, passes: r.head != nil})
	if err != nil {
		return Reply{}, err
	}
	defer a.body.Close()
	l.heard.Add(1)
	if state.version == "" && l.redirected(a) {
		return l.post(ctx, l.state.Load(), r, s)
	}
	if r.head != nil {
		r.head(a.passable())
	}
	if a.encoded {
		return Reply{}, errors.New("the answer is compressed, which was not asked for")
	}
	if a.status < 200 || a.status > 299 {
		return l.refused(state, a, func(m *jsonrpc.Message) bool { return answers(m, r) })
	}
	if a.session != "" && a.session != state.session && state.version == "" {
		if err := l.setState(a.session, ""); err != nil {
			return Reply{}, err
		}
	}
	var reply Reply
	if a.media == mediaEvents {
		reply, err = l.readEvents(ctx, a, r, s)
	} else {
		reply, err = l.readJSON(ctx, a, r)
	}
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return reply, err
}

// maxRedirects is how often the first request may be sent to another path.
const maxRedirects = 3

// redirected follows, while the session is being set up, a redirect within
// the same origin: many servers send /mcp to /mcp/. Elsewhere our headers, and
// the credentials in them, never go.
func (l *httpLink) redirected(a *answer) bool {
	if a.status != http.StatusTemporaryRedirect && a.status != http.StatusPermanentRedirect || a.location == "" {
		return false
	}
	to, err := l.url.Parse(a.location)
	if err != nil || to.Scheme != l.url.Scheme || to.Host != l.url.Host || l.redirects >= maxRedirects {
		return false
	}
	l.redirects++
	l.url = stripUser(to)
	state := l.state.Load()
	return l.setState(state.session, state.version) == nil
}

// readJSON reads an answer that is one response, or a batch with it.
func (l *httpLink) readJSON(ctx context.Context, a *answer, r *request) (Reply, error) {
	if a.media != mediaJSON {
		return Reply{}, fmt.Errorf("the answer (status %d) is neither JSON nor an event stream", a.status)
	}
	body, err := l.room.until(ctx.Done()).readBody(a)
	if err != nil {
		return Reply{}, err
	}
	var (
		reply Reply
		found bool
	)
	err = split(bytes.TrimSpace(body), func(m jsonrpc.Message) {
		if !found && m.IsResponse() && answers(&m, r) {
			reply, found = Reply{Result: m.Result, Error: m.Error}, true
		}
	})
	switch {
	case found:
		return reply, nil
	case err != nil:
		return Reply{}, errNoMessage
	}
	return Reply{}, errWrongID
}

// answers says whether m is the response to r. An error without an id can only
// be for the one request that was sent.
func answers(m *jsonrpc.Message, r *request) bool {
	if m.Error != nil && (m.ID == nil || string(m.ID) == "null") {
		return true
	}
	id, ok := numericID(m.ID)
	return ok && id == r.id
}

// readEvents reads the stream of an answer up to the response, and hands on
// what comes before it.
func (l *httpLink) readEvents(ctx context.Context, a *answer, r *request, s *sink) (reply Reply, err error) {
	err = l.follow(ctx, a, func(m *jsonrpc.Message, kept bool) bool {
		switch {
		case !m.IsResponse():
			l.incoming(m, s)
		case answers(m, r):
			reply = replyOf(m, kept)
			return true
		}
		return false
	})
	return reply, err
}

// incoming deals with what is no response. s is the call in whose stream it
// came, or nil.
func (l *httpLink) incoming(m *jsonrpc.Message, s *sink) {
	switch {
	case m.IsRequest():
		l.tell(answerTo(m))
	case changes(l.up, m.Method):
		l.up.heard(m.Method, m.Params)
	case m.Method == methodUpdated && l.up.heard(m.Method, m.Params):
	case m.Method == methodProgress:
		if id, ok := progressID(m.Params); ok {
			l.sinks.byID(id).put(m, s)
		}
	default:
		to := s
		if to == nil {
			to = l.sinks.only(l.inFlight())
		}
		if !to.put(m, s) && m.Method == methodMessage {
			l.up.remark("the server says " + string(m.Params[:min(len(m.Params), maxRemarkText)]))
		}
	}
}

// statusError is an HTTP status that is no answer.
type statusError struct {
	status    int
	challenge string
	location  string
}

func (e *statusError) Error() string {
	switch e.status {
	case http.StatusUnauthorized:
		return "the server asks for a login (401)"
	case http.StatusForbidden:
		return "the server refuses access (403)"
	}
	if e.location != "" && e.status < 400 {
		return fmt.Sprintf("the server redirects to another place (%d)", e.status)
	}
	return fmt.Sprintf("the server answered with HTTP status %d %s", e.status, http.StatusText(e.status))
}

// wantsLogin says whether a person can help by logging in.
func (e *statusError) wantsLogin() bool {
	return e.status == http.StatusUnauthorized || e.status == http.StatusForbidden && strings.Contains(e.challenge, "insufficient_scope")
}

// refused reads an answer that is not 2xx. It may hold the JSON-RPC error of
// the request; or it says that the session has gone, and then the server has
// not looked at the request.
func (l *httpLink) refused(state *httpState, a *answer, ours func(*jsonrpc.Message) bool) (Reply, error) {
	fail := &statusError{status: a.status, challenge: a.challenge, location: a.location}
	m := errorIn(a)
	var reply Reply
	if m != nil && !fail.wantsLogin() && ours(m) {
		reply = replyOf(m, true)
		reply.Status = a.status
	}
	switch {
	case state.session != "" && (a.status == http.StatusNotFound || a.status == http.StatusBadRequest && m != nil && aboutSession(m)):
		return Reply{}, &goneError{fail, reply}
	case reply.Error == nil:
		return Reply{}, fail
	}
	return reply, nil
}

// errorIn is the JSON-RPC error that an answer has for its body, nil if that is
// none.
func errorIn(a *answer) *jsonrpc.Message {
	if a.media != mediaJSON {
		return nil
	}
	body, err := readBody(a, maxErrorBody)
	if err != nil {
		return nil
	}
	m, err := jsonrpc.Parse(validUTF8(bytes.TrimSpace(body)))
	if err != nil || m.Error == nil {
		return nil
	}
	return &m
}

// goneError is a status that says that the session has gone. reply is what the
// server said to the request in the same breath, if it did.
type goneError struct {
	status *statusError
	reply  Reply
}

// notGone is what the answer means when the session turns out to be there.
func notGone(err error) (Reply, error) {
	var gone *goneError
	switch {
	case !errors.As(err, &gone):
		return Reply{}, err
	case gone.reply.Error == nil:
		return Reply{}, gone.status
	}
	return gone.reply, nil
}

func (e *goneError) Error() string        { return errSessionGone.Error() }
func (e *goneError) Is(target error) bool { return target == errSessionGone }
func (e *goneError) Unwrap() error        { return e.status }

// aboutSession recognises servers that answer 400 where the protocol asks for
// 404, by the very texts of the TypeScript and Python SDKs and their examples.
func aboutSession(m *jsonrpc.Message) bool {
	switch m.Error.Message {
	case "Bad Request: No valid session ID provided", "Bad Request: Mcp-Session-Id header is required",
		"Bad Request: Missing session ID":
		return true
	}
	return false
}

// sessionGone makes sure, with a ping, that it was the session which the server
// did not know when it refused r, and nothing that r is about.
func (l *httpLink) sessionGone(ctx context.Context, state *httpState, r *request) bool {
	ctx, cancel := context.WithTimeout(ctx, pingTime)
	defer cancel()
	id := r.id + 1<<52 // no other request has it
	ping := &request{id: id, msg: jsonrpc.AppendRequest(nil, id, methodPing, nil)}
	_, err := l.post(ctx, state, ping, nil)
	return errors.Is(err, errSessionGone)
}

// passing says whether the same request may do better later.
func (e *statusError) passing() bool {
	return e.status >= 500 || e.status == http.StatusTooManyRequests || e.status == http.StatusRequestTimeout
}

func (l *httpLink) notify(ctx context.Context, method string, params json.RawMessage) error {
	return l.send(ctx, jsonrpc.AppendNotification(nil, method, params))
}

// send posts a message that has no response.
func (l *httpLink) send(ctx context.Context, msg []byte) error {
	state := l.state.Load()
	a, err := l.client.do(ctx, &exchange{method: http.MethodPost, head: state.post, body: msg})
	if err != nil {
		return err
	}
	defer a.body.Close()
	if a.status == http.StatusNotFound && state.session != "" {
		return errSessionGone
	}
	if a.status < 200 || a.status > 299 {
		return &statusError{status: a.status}
	}
	if a.media != mediaEvents {
		readBody(a, maxErrorBody)
	}
	return nil
}

// negotiated makes the version be said from now on.
func (l *httpLink) negotiated(version string) {
	l.modern = version == modernVersion
	if err := l.setState(l.state.Load().session, version); err != nil {
		l.fail(err)
	}
}

func (l *httpLink) attended() bool     { return l.streams.Load() }
func (l *httpLink) activity() uint64   { return l.heard.Load() }
func (l *httpLink) inFlight() int      { return int(l.open.Load()) }
func (l *httpLink) pid() int           { return 0 }
func (l *httpLink) tidy(now time.Time) { l.client.reap(now) }

// goodbyeTime is how long the end of a session may take.
const goodbyeTime = 2 * time.Second

// stop ends the session at the server and everything that belongs to the link.
func (l *httpLink) stop(hard <-chan struct{}) {
	alive := l.cause() == nil
	l.fail(errStopped)
	l.cancel()
	l.wg.Wait()
	if state := l.state.Load(); alive && state.session != "" {
		l.sayGoodbye(state, hard)
	}
	l.client.close()
}

func (l *httpLink) sayGoodbye(state *httpState, hard <-chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), goodbyeTime)
	defer cancel()
	l.wg.Go(func() {
		select {
		case <-hard:
			cancel()
		case <-ctx.Done():
		}
	})
	if a, err := l.client.do(ctx, &exchange{method: http.MethodDelete, head: state.get}); err == nil {
		a.body.Close()
	}
	cancel()
	l.wg.Wait()
}
