package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"mcpproxy/internal/link"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/rawjson"
	"mcpproxy/internal/session"
	"mcpproxy/internal/startup"
)

// Conversation is one client's session with a server. Commonly it is the
// client's own: over HTTP a session, over stdio a process. What the server says
// in it is for this client and for nobody else. It is not made anew when it is
// lost: then it is over, and the client begins another one. Where clients share
// one connection it outlives that; see sharedLink.
type Conversation struct {
	server *server
	way    way
	link   peer
	own    link.Link     // the same, where it is the client's own; else nil
	ends   chan struct{} // closed when somebody ends it
	done   chan struct{} // closed when it has ended
	once   sync.Once

	tools sessionTools   // where it has a session of its own
	level string         // that the server was told, where we say it
	said  *session.Queue // what belongs to no request, for the next one of a modern client
	spare atomic.Bool    // no client has it now
	busy  atomic.Int64   // requests and streams
	born  time.Time      // by the monotonic clock, which nobody sets
	used  atomic.Int64   // when it was not any more, in nanoseconds since born
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
var ErrOver = session.ErrOver

// over says that a conversation has ended, and why.
func (s *server) over(c *Conversation) *problem.Problem {
	err := &overError{s.mask.Err(c.link.Cause())}
	return problem.Newf(problem.UpstreamError, "The session with server '%s' has ended: %v", s.spec.Name, err.cause).
		WithHint("A call may have been carried out: check before you try again. The client has to begin a new session.").
		With("server", s.spec.Name).Because(err)
}

type overError struct{ cause error }

func (e *overError) Error() string        { return ErrOver.Error() + ": " + e.cause.Error() }
func (e *overError) Is(target error) bool { return target == ErrOver }
func (e *overError) Unwrap() error        { return e.cause }

// Cancelled is the cause with which a client ends its request.
type Cancelled = session.Cancelled

// peer is what a conversation stands on.
type peer interface {
	session.Doer
	Notify(ctx context.Context, method string, params json.RawMessage) error
	Respond(ctx context.Context, id json.RawMessage, r session.Reply) error
	Listen(ctx context.Context, say func(session.Event), opened func()) error
	Done() <-chan struct{}
	Cause() error
	Stop(hard <-chan struct{})
}

// The bounds of conversations with one server over stdio, where each is a
// process.
const (
	maxProcesses = 32
	processIdle  = 30 * time.Minute
)

// converse opens a conversation with initialize, the client's own. When the
// server refuses it the conversation is nil and the answer says why.
func (s *Set) converse(ctx context.Context, server string, initialize *session.Request) (*Conversation, session.Reply, error) {
	if initialize.Method != mcp.Initialize {
		return nil, session.Reply{}, pastTheDoor()
	}
	sv := s.await(ctx, server)
	if sv == nil {
		return nil, session.Reply{}, notStarted(server)
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
func (s *Set) converseShared(ctx context.Context, sv *server, initialize *session.Request) (*Conversation, session.Reply, error) {
	live, err := sv.ready(ctx)
	if err != nil {
		return nil, session.Reply{}, sv.explain(ctx, initialize, err, false)
	}
	if live.modern() {
		return s.converseOn(ctx, sv, initialize, bridged)
	}
	return s.converseOn(ctx, sv, initialize, shared)
}

// converseOn opens a conversation.
func (s *Set) converseOn(ctx context.Context, sv *server, initialize *session.Request, w way) (*Conversation, session.Reply, error) {
	if w == own && sv.spec.Transport == Stdio {
		switch err := sv.talks.turn(ctx); {
		case err != nil && !session.TimeIsUp(ctx):
			return nil, session.Reply{}, err
		case err != nil:
			return nil, session.Reply{}, sv.unavailable(sv.awayFor(problem.Ownf("its process has ended by itself a moment ago")), err)
		}
	}
	place, err := s.placeFor(ctx, sv, w)
	if err != nil {
		return nil, session.Reply{}, err
	}
	defer place.Leave(false)
	c, err := s.openConversation(sv, w, place)
	if err != nil {
		return nil, session.Reply{}, err
	}
	reply, err := c.pass(ctx, initialize)
	if err == nil && reply.Error == nil {
		if c.own != nil {
			version, _ := rawjson.String(rawjson.Find(reply.Result, "protocolVersion"))
			c.own.Settled()
			c.own.Agree(version)
		}
		return c, reply, nil
	}
	c.End()
	if err != nil {
		if cause := c.link.Cause(); cause != nil && cause != link.ErrStopped {
			err = cause
		}
		return nil, session.Reply{}, sv.explain(ctx, initialize, err, false)
	}
	return nil, reply, nil
}

// placeFor waits for a place among those that start, where w starts a process. A
// client does not wait as long as an installation may take: that is left to the
// connection of everybody.
func (s *Set) placeFor(ctx context.Context, sv *server, w way) (*startup.Place, error) {
	if w != own || sv.spec.Transport != Stdio || sv.starts == nil {
		return nil, nil
	}
	if !sv.starts.IsInstalled(sv.runner) {
		if _, err := sv.ready(ctx); err != nil {
			return nil, sv.explain(ctx, &session.Request{Method: mcp.Initialize}, err, false)
		}
	}
	p := sv.starts.Join(sv.runner, true)
	select {
	case <-p.Turn():
		return p, nil
	case <-ctx.Done():
		p.Leave(false)
		if !session.TimeIsUp(ctx) {
			return nil, ctx.Err()
		}
		return nil, sv.unavailable(sv.awayFor(problem.Slowf("too many processes are starting, its turn did not come")), ctx.Err())
	}
}

// openConversation opens a link for one client and minds it.
func (s *Set) openConversation(sv *server, w way, place *startup.Place) (*Conversation, error) {
	c := &Conversation{server: sv, way: w, ends: make(chan struct{}), done: make(chan struct{}),
		tools: sessionTools{turn: make(chan struct{}, 1)}, born: time.Now()}
	if err := sv.talks.add(c, sv); err != nil {
		return nil, err
	}
	if err := c.open(s, place); err != nil {
		close(c.done)
		sv.talks.remove(c)
		return nil, sv.unavailable(sv.awayFor(err), err)
	}
	go c.mind()
	return c, nil
}

// open makes what c stands on.
func (c *Conversation) open(s *Set, place *startup.Place) (err error) {
	switch c.way {
	case shared:
		c.link = newSharedLink(c.server)
		return nil
	case bridged:
		c.link = s.newOlderLink(c.server)
		return nil
	}
	c.own, err = s.openLink(c.server, ofClient{c.server, &c.tools.announced}, place, true)
	c.link = c.own
	return err
}

// ofClient is what a link of one client tells its server: the tools may have
// changed for everybody, but the health of the link is its client's affair, and
// what is said on it is for that client.
type ofClient struct {
	*server
	announced *atomic.Uint64 // changes of the tools, in this session
}

func (c ofClient) ToolsChanged() {
	c.announced.Add(1)
	c.server.ToolsChanged()
}

func (ofClient) Heard(string, json.RawMessage) bool { return false }
func (ofClient) Missed()                            {}
func (ofClient) Doubt()                             {}

// mind waits for the end of c and cleans up.
func (c *Conversation) mind() {
	defer close(c.done)
	idle := time.NewTicker(time.Minute)
	defer idle.Stop()
	for ended := false; !ended; {
		select {
		case <-c.ends:
			ended = true
		case <-c.link.Done():
			if ended = true; c.pid() != 0 {
				c.server.talks.fell()
			}
		case now := <-idle.C:
			ended = c.pid() != 0 && c.idleSince(now) > processIdle
		}
	}
	c.link.Stop(c.server.hard)
	c.server.talks.remove(c)
	c.server.noteUse()
}

// pid is of the client's own process; 0 when there is none.
func (c *Conversation) pid() int {
	if c.own == nil {
		return 0
	}
	return c.own.Health().PID
}

// idleSince is for how long c was not used; 0 while it is.
func (c *Conversation) idleSince(now time.Time) time.Duration {
	if c.busy.Load() > 0 {
		return 0
	}
	return now.Sub(c.born) - time.Duration(c.used.Load())
}

// enter and leave keep account of the use. A nil conversation needs none.
func (c *Conversation) enter() {
	if c != nil {
		c.busy.Add(1)
	}
}

func (c *Conversation) leave() {
	if c != nil {
		c.used.Store(int64(time.Since(c.born)))
		c.busy.Add(-1)
	}
}

// End ends the conversation. It returns at once.
func (c *Conversation) End() { c.once.Do(func() { close(c.ends) }) }

// Over is closed when the conversation has ended.
func (c *Conversation) Over() <-chan struct{} { return c.link.Done() }

// HasID says whether the server has given the client's session an id, so that a
// client that speaks to it directly has a session, too.
func (c *Conversation) HasID() bool { return c.own != nil && c.own.HasID() }

// Notify passes a notification of the client on.
func (c *Conversation) Notify(ctx context.Context, method string, params json.RawMessage) error {
	if method == mcp.CallTool {
		return pastTheDoor()
	}
	c.enter()
	defer c.leave()
	return c.failed(ctx, "the notification", c.link.Notify(ctx, method, params))
}

// Respond passes on the client's answer to a request of the server.
func (c *Conversation) Respond(ctx context.Context, id json.RawMessage, r session.Reply) error {
	c.enter()
	defer c.leave()
	return c.failed(ctx, "the answer", c.link.Respond(ctx, id, r))
}

// Overhear gives the client what the server says by itself, until ctx or the
// server ends it. opened is called when the server has agreed.
func (c *Conversation) Overhear(ctx context.Context, say func(session.Event), opened func()) error {
	c.enter()
	defer c.leave()
	err := c.link.Listen(ctx, say, opened)
	var refused *link.StatusError
	switch {
	case errors.As(err, &refused), errors.Is(err, session.ErrHasReader):
		return problem.Newf(problem.InvalidRequest, "Server '%s' offers no stream here: %v", c.server.spec.Name, err)
	}
	return c.failed(ctx, "the stream", err)
}

// failed makes the error of something that is no request.
func (c *Conversation) failed(ctx context.Context, what string, err error) error {
	switch {
	case err == nil || ctx.Err() != nil:
		return err
	case c.link.Cause() != nil:
		return c.server.over(c)
	}
	err = c.server.mask.Err(err)
	p := problem.Newf(problem.UpstreamError, "Server '%s' did not take %s: %v", c.server.spec.Name, what, err).
		With("server", c.server.spec.Name).Because(err)
	if status, ok := errors.AsType[*link.StatusError](err); ok {
		p.With("http_status", status.Status)
	}
	return p
}
