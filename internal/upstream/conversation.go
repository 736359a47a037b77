package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/strictjson"
)

// Conversation is one client's session with a server. Commonly it is the
// client's own: over HTTP a session, over stdio a process. What the server says
// in it is for this client and for nobody else. It is not made anew when it is
// lost: then it is over, and the client begins another one. Where clients share
// one connection it outlives that; see sharedLink.
type Conversation struct {
	server *server
	way    way
	link   link
	ends   chan struct{} // closed when somebody ends it
	done   chan struct{} // closed when it has ended
	once   sync.Once

	asks  asks
	level string       // that the server was told, where we say it
	spare atomic.Bool  // no client has it now
	busy  atomic.Int64 // requests and streams
	used  atomic.Int64 // when it was not any more, in Unix nanoseconds
}

// way is what a conversation stands on.
type way uint8

const (
	own     way = iota // a session or process of the client's own
	bridged            // nothing: requests that stand for themselves, of the other revision
	shared             // the connection that all share
)

// sharer is the client's place on the connection that all share; nil where the
// conversation has its own.
func (c *Conversation) sharer() *sharedLink {
	if c == nil || c.way != shared {
		return nil
	}
	return c.link.(*sharedLink)
}

// ErrOver is what requests in a conversation fail with that has ended.
var ErrOver = errors.New("the conversation with the server is over")

// over says that a conversation has ended, and why.
func (s *server) over(c *Conversation) *problem.Problem {
	err := &overError{s.mask.err(c.link.cause())}
	return problem.Newf(problem.UpstreamError, "The session with server '%s' has ended: %v", s.spec.Name, err.cause).
		WithHint("A call may have been carried out: check before you try again. The client has to begin a new session.").
		With("server", s.spec.Name).Because(err)
}

type overError struct{ cause error }

func (e *overError) Error() string        { return ErrOver.Error() + ": " + e.cause.Error() }
func (e *overError) Is(target error) bool { return target == ErrOver }
func (e *overError) Unwrap() error        { return e.cause }

// Cancelled is the cause with which a client ends its request by
// notifications/cancelled; the server gets the same params.
type Cancelled struct{ Params json.RawMessage }

func (*Cancelled) Error() string { return "the client cancelled the request" }

// cancelledBy gives the params that tell the server that the request id is no
// longer wanted: the client's, if it has said so itself.
func cancelledBy(ctx context.Context, id json.RawMessage) json.RawMessage {
	var c *Cancelled
	if errors.As(context.Cause(ctx), &c) && strictjson.Kind(c.Params) == '{' {
		return jsonrpc.SetMember(c.Params, "requestId", id)
	}
	b := append([]byte(`{"requestId":`), id...)
	return append(b, `,"reason":"the caller no longer waits"}`...)
}

var errHasStream = errors.New("the session has a stream already")

// The bounds of conversations with one server over stdio, where each is a
// process.
const (
	maxProcesses = 32
	processIdle  = 30 * time.Minute
)

// Converse opens a conversation with initialize, the client's own. When the
// server refuses it the conversation is nil and the answer says why.
func (s *Set) Converse(ctx context.Context, server string, initialize Request) (*Conversation, Answer, error) {
	if initialize.Method != methodInitialize {
		return nil, Answer{}, pastTheDoor()
	}
	sv := s.await(ctx, server)
	if sv == nil {
		return nil, Answer{}, notStarted(server)
	}
	sv.enter()
	defer sv.leave()
	sv.wake() // what it lists is judged by the connection of everybody
	limit := sv.connectTime()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	switch {
	case sv.sharing.on.Load():
		return s.converseShared(ctx, sv, initialize)
	case sv.modernOnly.Load():
		return s.converseOn(ctx, sv, initialize, bridged)
	}
	c, a, err := s.converseOn(ctx, sv, initialize, own)
	if c != nil || ctx.Err() != nil {
		return c, a, err
	}
	before := sv.overSSE()
	_, lost := sv.ready(ctx)
	if lost == nil && !before && sv.overSSE() { // which was not known yet
		return s.converseOn(ctx, sv, initialize, own)
	}
	if lost == nil && sv.era.Load() == eraModern {
		// It speaks the modern revision alone. What it says of itself will do.
		if c, bridged, err := s.converseOn(ctx, sv, initialize, bridged); c != nil {
			sv.modernOnly.Store(true)
			return c, bridged, err
		}
	}
	return nil, a, err
}

// converseShared opens a conversation on the connection that is there. In the
// modern revision that is one for everybody anyhow.
func (s *Set) converseShared(ctx context.Context, sv *server, initialize Request) (*Conversation, Answer, error) {
	live, err := sv.ready(ctx)
	if err != nil {
		return nil, Answer{}, sv.explain(ctx, &Call{Tool: initialize.Method}, err, false)
	}
	if live.modern() {
		return s.converseOn(ctx, sv, initialize, bridged)
	}
	return s.converseOn(ctx, sv, initialize, shared)
}

// converseOn opens a conversation.
func (s *Set) converseOn(ctx context.Context, sv *server, initialize Request, w way) (*Conversation, Answer, error) {
	if w == own && sv.spec.Transport == Stdio {
		switch err := sv.talks.turn(ctx); {
		case err != nil && !TimeIsUp(ctx):
			return nil, Answer{}, err
		case err != nil:
			return nil, Answer{}, sv.unavailable(&awayError{state: State{Phase: Waiting, LastError: "its process has ended by itself a moment ago"}}, err)
		}
	}
	c, err := s.openConversation(sv, w)
	if err != nil {
		return nil, Answer{}, err
	}
	reply, err := s.pass(ctx, c.link, c, &initialize, nil)
	if err == nil && reply.Error == nil {
		version, _ := strictjson.String(strictjson.Find(reply.Result, "protocolVersion"))
		c.link.negotiated(version)
		return c, Answer(reply), nil
	}
	c.End()
	if err != nil {
		if cause := c.link.cause(); cause != nil && cause != errStopped {
			err = cause
		}
		return nil, Answer{}, sv.explain(ctx, &Call{Tool: initialize.Method}, err, false)
	}
	return nil, Answer(reply), nil
}

// openConversation opens a link for one client and minds it.
func (s *Set) openConversation(sv *server, w way) (*Conversation, error) {
	c := &Conversation{server: sv, way: w, ends: make(chan struct{}), done: make(chan struct{})}
	c.used.Store(time.Now().UnixNano())
	if err := sv.talks.add(c, sv); err != nil {
		return nil, err
	}
	var err error
	if c.link, err = s.openFor(sv, w); err != nil {
		close(c.done)
		sv.talks.remove(c)
		return nil, sv.unavailable(&awayError{state: State{Phase: Waiting, LastError: sv.mask.err(err).Error()}}, err)
	}
	go c.mind()
	return c, nil
}

// openFor makes a client's link to sv.
func (s *Set) openFor(sv *server, w way) (link, error) {
	switch w {
	case shared:
		return newSharedLink(sv), nil
	case bridged:
		return s.newOlderLink(sv), nil
	}
	return s.openOwn(sv)
}

// openOwn makes a link that reports to sv's log, but belongs to one client.
func (s *Set) openOwn(sv *server) (link, error) {
	if sv.spec.Transport == Stdio {
		l, err := openStdio(&sv.spec, s.launch, ofClient{sv}, sv.log, sv.room, &mailbox{})
		if err != nil {
			return nil, err
		}
		return l, nil
	}
	l, err := newHTTPLink(&sv.spec, ofClient{sv}, sv.room, "mcpproxy/"+s.opt.ClientVersion)
	if err != nil {
		return nil, err
	}
	l.private = true
	if l.client, err = sv.talks.exchanger(l.url, sv.spec.reach(l.url)); err != nil {
		return nil, err
	}
	l.client = proven(l.client, s.account(&sv.spec))
	if sv.overSSE() {
		return openSSE(l, sv.log, &mailbox{}), nil
	}
	return l, nil
}

// ofClient is what a link of one client tells its server: the tools may have
// changed for everybody, but the health of the link is its client's affair, and
// what is said on it is for that client.
type ofClient struct{ *server }

func (ofClient) heard(string, json.RawMessage) bool { return false }
func (ofClient) missed()                            {}
func (ofClient) doubt()                             {}

// mind waits for the end of c and cleans up.
func (c *Conversation) mind() {
	defer close(c.done)
	idle := time.NewTicker(time.Minute)
	defer idle.Stop()
	for ended := false; !ended; {
		select {
		case <-c.ends:
			ended = true
		case <-c.link.lost():
			if ended = true; c.way == own && c.link.pid() != 0 {
				c.server.talks.fell()
			}
		case now := <-idle.C:
			ended = c.link.pid() != 0 && c.idleSince(now) > processIdle
		}
	}
	c.link.stop(c.server.hard)
	c.server.talks.remove(c)
	c.server.noteUse()
}

// idleSince is for how long c was not used; 0 while it is.
func (c *Conversation) idleSince(now time.Time) time.Duration {
	if c.busy.Load() > 0 {
		return 0
	}
	return now.Sub(time.Unix(0, c.used.Load()))
}

// enter and leave keep account of the use. A nil conversation needs none.
func (c *Conversation) enter() {
	if c != nil {
		c.busy.Add(1)
	}
}

func (c *Conversation) leave() {
	if c != nil {
		c.used.Store(time.Now().UnixNano())
		c.busy.Add(-1)
	}
}

// End ends the conversation. It returns at once.
func (c *Conversation) End() { c.once.Do(func() { close(c.ends) }) }

// Over is closed when the conversation has ended.
func (c *Conversation) Over() <-chan struct{} { return c.link.lost() }

// HasID says whether the server has given the client's session an id, so that a
// client that speaks to it directly has a session, too.
func (c *Conversation) HasID() bool {
	l, ok := c.link.(*httpLink)
	return ok && l.state.Load().session != ""
}

// Notify passes a notification of the client on.
func (c *Conversation) Notify(ctx context.Context, method string, params json.RawMessage) error {
	if method == methodCallTool {
		return pastTheDoor()
	}
	c.enter()
	defer c.leave()
	return c.failed(ctx, "the notification", c.link.notify(ctx, method, params))
}

// Respond passes on the client's answer to a request of the server.
func (c *Conversation) Respond(ctx context.Context, id, result json.RawMessage, failure *jsonrpc.Error) error {
	c.enter()
	defer c.leave()
	c.asks.forget(askKey(id)) // what the server takes from now on is its own time
	var msg []byte
	if failure != nil {
		msg = jsonrpc.AppendError(nil, id, failure)
	} else {
		msg = jsonrpc.AppendResult(nil, id, result)
	}
	return c.failed(ctx, "the answer", c.link.respond(ctx, msg))
}

// Overhear gives the client what the server says by itself, until ctx or the
// server ends it. opened is called when the server has agreed.
func (c *Conversation) Overhear(ctx context.Context, say func(Event), opened func()) error {
	c.enter()
	defer c.leave()
	err := c.link.overhear(ctx, func(e Event) {
		c.asks.hear(&e) // it may be answered when the stream is over
		say(e)
	}, opened)
	var refused *statusError
	switch {
	case errors.As(err, &refused), errors.Is(err, errHasStream):
		return problem.Newf(problem.InvalidRequest, "Server '%s' offers no stream here: %v", c.server.spec.Name, err)
	}
	return c.failed(ctx, "the stream", err)
}

// failed makes the error of something that is no request.
func (c *Conversation) failed(ctx context.Context, what string, err error) error {
	switch {
	case err == nil || ctx.Err() != nil:
		return err
	case c.link.cause() != nil:
		return c.server.over(c)
	}
	err = c.server.mask.err(err)
	p := problem.Newf(problem.UpstreamError, "Server '%s' did not take %s: %v", c.server.spec.Name, what, err).
		With("server", c.server.spec.Name).Because(err)
	if status, ok := errors.AsType[*statusError](err); ok {
		p.With("http_status", status.status)
	}
	return p
}

// cannotAsk answers a request of a server whose client cannot be asked now.
func cannotAsk(m *jsonrpc.Message) []byte {
	if m.Method == methodPing {
		return answerTo(m)
	}
	return jsonrpc.AppendError(nil, m.ID, &jsonrpc.Error{
		Code: jsonrpc.CodeInternal, Message: "the client cannot be asked: it has no stream open"})
}
