package gate

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
)

// aggregateSession is a client's with all servers: one with each server that it has used,
// and what it was told of the lists.
type aggregateSession struct {
	*Aggregate
	initialize session.Request // what the client said of itself, and who has opened it
	heard      knownLists
	end        *session.EndSignal

	mu       sync.Mutex // guards what follows, and one.s
	byServer map[string]*serverSession
	level    json.RawMessage // params of logging/setLevel; nil: none was set
}

// serverSession is the session with one server, opened by the first request that needs it.
type serverSession struct {
	opening sync.Mutex
	s       session.Session
}

// live returns the session unless it has ended.
func (o *serverSession) live() session.Session {
	if o.s != nil {
		select {
		case <-o.s.Done():
		default:
			return o.s
		}
	}
	return nil
}

// maxIntroduction bounds what a client says of itself, in bytes: it is kept.
const maxIntroduction = 64 << 10

// Open opens a session. No server hears of it before it is used.
func (s *Aggregate) Open(_ context.Context, initialize *session.Request) (session.Session, session.Reply, error) {
	if len(initialize.Params) > maxIntroduction {
		return nil, session.Reply{Error: session.InvalidParamsError("what a client says of itself must not be longer than " +
			strconv.Itoa(maxIntroduction) + " bytes")}, nil
	}
	version := session.NegotiateVersion(initialize.Params)
	caller := *initialize.Caller
	c := &aggregateSession{Aggregate: s, end: session.NewEndSignal(), byServer: map[string]*serverSession{}, initialize: session.Request{ID: json.RawMessage("0"), Method: mcp.Initialize,
		Params: wirejson.SetMember(initialize.Params, "protocolVersion", []byte(`"`+version+`"`)), Caller: &caller}}
	return c, session.Reply{Result: json.RawMessage(`{"protocolVersion":"` + version + `","capabilities":` + s.capabilities(initialize) +
		`,"serverInfo":` + s.Reply.ServerInfo + `,"instructions":"` + instructions + `"}`)}, nil
}

// Do answers a request of the client.
func (c *aggregateSession) Do(ctx context.Context, r *session.Request) (session.Reply, error) {
	switch r.Method {
	case mcp.Ping:
		return session.Reply{Result: []byte("{}")}, nil
	case mcp.SetLevel:
		return c.setLevels(ctx, r), nil
	}
	return c.answer(ctx, r, func(ctx context.Context, server string) (session.Session, error) {
		return c.sessionWith(ctx, r, server)
	}, &c.heard), nil
}

// sessionWith returns the session with a server; one that has ended is replaced.
func (c *aggregateSession) sessionWith(ctx context.Context, r *session.Request, server string) (session.Session, error) {
	c.mu.Lock()
	o := c.byServer[server]
	if o == nil {
		o = &serverSession{}
		c.byServer[server] = o
	}
	c.mu.Unlock()
	o.opening.Lock()
	defer o.opening.Unlock()
	c.mu.Lock()
	s, level := o.live(), c.level
	c.mu.Unlock()
	if s != nil {
		return s, nil
	}
	s, err := c.open(ctx, r, server, level)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	o.s = s
	if c.end.Cause() != nil { // the client's has ended meanwhile
		s.Close()
	}
	return s, nil
}

// openSession introduces the client to a server.
func (c *aggregateSession) open(ctx context.Context, r *session.Request, server string, level json.RawMessage) (session.Session, error) {
	initialize := c.initialize
	initialize.Caller = r.Caller
	s, a, err := c.Gate.Surface(server).Open(ctx, &initialize)
	switch {
	case err != nil:
		return nil, err
	case s == nil:
		return nil, problem.Newf(problem.UpstreamError, "Server '%s' opens no session: %s", server, wirejson.ClipText(a.Error.Message, 4*session.MaxIdentity)).
			WithHint("See its log with `mcpproxy upstream logs "+server+"`.").With("server", server)
	}
	if err := s.Notify(ctx, mcp.Initialized, nil); errors.Is(err, session.ErrEnded) {
		return nil, problem.Newf(problem.ServerUnavailable, "Server '%s' has ended the session that was just opened.", server).
			WithHint("Try again; see its log with `mcpproxy upstream logs "+server+"`.").With("server", server)
	}
	if level != nil {
		setLevel(ctx, s, r, level)
	}
	return s, nil
}

// setLevel tells one server which log messages the client wants. One that has
// none says so, which is no news to anybody.
func setLevel(ctx context.Context, s session.Session, r *session.Request, params json.RawMessage) {
	_, _ = s.Do(ctx, &session.Request{ID: json.RawMessage(`"level"`), Method: mcp.SetLevel, Params: params, Caller: r.Caller})
}

// setLevels tells every server that the client has a session with, and each that
// it will have.
func (c *aggregateSession) setLevels(ctx context.Context, r *session.Request) session.Reply {
	level := wirejson.Find(r.Params, "level")
	text, _ := wirejson.String(level)
	if mcp.LogLevelRank(text) < 0 {
		return session.Reply{Error: session.InvalidParamsError("params.level must be a log level: debug, info, notice, warning, error, critical, alert or emergency")}
	}
	params := append(append([]byte(`{"level":`), level...), '}')
	c.mu.Lock()
	c.level = params
	c.mu.Unlock()
	for _, s := range c.living() {
		setLevel(ctx, s, r, params)
	}
	return session.Reply{Result: []byte("{}")}
}

// living returns the sessions that have not ended.
func (c *aggregateSession) living() (all []session.Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.byServer {
		if s := o.live(); s != nil {
			all = append(all, s)
		}
	}
	return all
}

// Notify takes a notification: who has a session with the client is told of its
// roots.
func (c *aggregateSession) Notify(ctx context.Context, method string, params json.RawMessage) error {
	if method == mcp.RootsChanged {
		for _, s := range c.living() {
			_ = s.Notify(ctx, method, params) // one that is lost is replaced when it is needed
		}
	}
	return nil
}

// Respond passes on an answer to the server that has asked.
func (c *aggregateSession) Respond(ctx context.Context, id json.RawMessage, r session.Reply) error {
	server, own, ok := askedBy(id)
	if s := c.with(server); ok && s != nil {
		if err := s.Respond(ctx, own, r); !errors.Is(err, session.ErrEnded) {
			return err
		} // else who asked has gone, and the client's session goes on
	}
	return nil
}

// with returns the session with a server, nil when there is none.
func (c *aggregateSession) with(server string) session.Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o := c.byServer[server]; o != nil {
		return o.live()
	}
	return nil
}

// Listen tells the client what has changed.
func (c *aggregateSession) Listen(ctx context.Context, say func(session.Event), opened func()) error {
	opened()
	c.announce(ctx, &c.initialize, &c.heard, func(list int) { say(session.Event{Method: announced[list].method}) })
	return ctx.Err()
}

// Close ends the sessions with the servers.
func (c *aggregateSession) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end.Signal(session.ErrEnded)
	for _, o := range c.byServer {
		if o.s != nil {
			o.s.Close()
		}
	}
}

// Done is closed when the session has ended.
func (c *aggregateSession) Done() <-chan struct{} { return c.end.Done() }
