package union

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"

	"mcpproxy/internal/gateway"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/rawjson"
	"mcpproxy/internal/reply"
	"mcpproxy/internal/session"
)

// Session is a client's with all servers: one with each server that it has used,
// and what it was told of the lists.
type Session struct {
	*Surface
	caller     gateway.Caller  // who has opened it
	initialize json.RawMessage // what the client said of itself
	heard      heard
	done       chan struct{}

	mu    sync.Mutex // guards what follows, and one.s
	with  map[string]*one
	level json.RawMessage // params of logging/setLevel; nil: none was set
	over  bool
}

// one is the session with one server, opened by the first request that needs it.
type one struct {
	opening sync.Mutex
	s       session.Session
}

// live returns the session unless it has ended.
func (o *one) live() session.Session {
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
func (s *Surface) Open(_ context.Context, initialize *session.Request) (session.Session, session.Reply, error) {
	if len(initialize.Params) > maxIntroduction {
		return nil, session.Reply{Error: reply.InvalidParams("what a client says of itself must not be longer than " +
			strconv.Itoa(maxIntroduction) + " bytes")}, nil
	}
	version := reply.Version(initialize.Params)
	c := &Session{Surface: s, caller: *initialize.Caller, done: make(chan struct{}), with: map[string]*one{},
		initialize: rawjson.SetMember(initialize.Params, "protocolVersion", []byte(`"`+version+`"`))}
	return c, session.Reply{Result: json.RawMessage(`{"protocolVersion":"` + version + `","capabilities":` + s.capabilities(initialize) +
		`,"serverInfo":` + s.reply.ServerInfo + `,"instructions":"` + instructions + `"}`)}, nil
}

// Do answers a request of the client.
func (c *Session) Do(ctx context.Context, r *session.Request) (session.Reply, error) {
	offer, list, lists := gateway.OfferOf(r.Method)
	switch {
	case forOneServer(r.Method):
		return c.pass(ctx, r, false, func(ctx context.Context, server string) (session.Session, error) {
			return c.sessionWith(ctx, r.Caller, server)
		}), nil
	case lists:
		return c.list(ctx, r, false, offer, list, &c.heard), nil
	case r.Method == mcp.Ping:
		return session.Reply{Result: []byte("{}")}, nil
	case r.Method == mcp.SetLevel:
		return c.setLevels(ctx, r), nil
	}
	return reply.MethodNotFound(r.Method), nil
}

// sessionWith returns the session with a server; one that has ended is replaced.
func (c *Session) sessionWith(ctx context.Context, caller *gateway.Caller, server string) (session.Session, error) {
	c.mu.Lock()
	o := c.with[server]
	if o == nil {
		o = &one{}
		c.with[server] = o
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
	s, err := c.open(ctx, caller, server, level)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if o.s = s; c.over { // the session has ended meanwhile
		s.Close()
	}
	return s, nil
}

// open introduces the client to a server.
func (c *Session) open(ctx context.Context, caller *gateway.Caller, server string, level json.RawMessage) (session.Session, error) {
	s, a, err := c.gateway.Surface(server).Open(ctx, &session.Request{ID: json.RawMessage("0"), Method: mcp.Initialize, Params: c.initialize, Caller: caller})
	switch {
	case err != nil:
		return nil, err
	case s == nil:
		return nil, problem.Newf(problem.UpstreamError, "Server '%s' opens no session: %s", server, rawjson.Clip(a.Error.Message, 4*reply.MaxIdentity)).
			WithHint("See its log with `mcpproxy upstream logs "+server+"`.").With("server", server)
	}
	if err := s.Notify(ctx, mcp.Initialized, nil); errors.Is(err, session.ErrOver) {
		return nil, problem.Newf(problem.ServerUnavailable, "Server '%s' has ended the session that was just opened.", server).
			WithHint("Try again; see its log with `mcpproxy upstream logs "+server+"`.").With("server", server)
	}
	if level != nil {
		setLevel(ctx, s, caller, level)
	}
	return s, nil
}

// setLevel tells one server which log messages the client wants. One that has
// none says so, which is no news to anybody.
func setLevel(ctx context.Context, s session.Session, caller *gateway.Caller, params json.RawMessage) {
	_, _ = s.Do(ctx, &session.Request{ID: json.RawMessage(`"level"`), Method: mcp.SetLevel, Params: params, Caller: caller})
}

// setLevels tells every server that the client has a session with, and each that
// it will have.
func (c *Session) setLevels(ctx context.Context, r *session.Request) session.Reply {
	level := rawjson.Find(r.Params, "level")
	text, _ := rawjson.String(level)
	if mcp.Level(text) < 0 {
		return session.Reply{Error: reply.InvalidParams("params.level must be a log level: debug, info, notice, warning, error, critical, alert or emergency")}
	}
	params := append(append([]byte(`{"level":`), level...), '}')
	c.mu.Lock()
	c.level = params
	c.mu.Unlock()
	for _, s := range c.living() {
		setLevel(ctx, s, r.Caller, params)
	}
	return session.Reply{Result: []byte("{}")}
}

// living returns the sessions that have not ended.
func (c *Session) living() (all []session.Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.with {
		if s := o.live(); s != nil {
			all = append(all, s)
		}
	}
	return all
}

// Notify takes a notification: who has a session with the client is told of its
// roots.
func (c *Session) Notify(ctx context.Context, method string, params json.RawMessage) error {
	if method == mcp.RootsChanged {
		for _, s := range c.living() {
			_ = s.Notify(ctx, method, params) // one that is lost is replaced when it is needed
		}
	}
	return nil
}

// Respond passes on an answer to the server that has asked.
func (c *Session) Respond(ctx context.Context, id json.RawMessage, r session.Reply) error {
	server, own, ok := gateway.AskedBy(id)
	if s := c.With(server); ok && s != nil {
		if err := s.Respond(ctx, own, r); !errors.Is(err, session.ErrOver) {
			return err
		} // else who asked has gone, and the client's session goes on
	}
	return nil
}

// With returns the session with a server, if there is one.
func (c *Session) With(server string) session.Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o := c.with[server]; o != nil {
		return o.live()
	}
	return nil
}

// Close ends the sessions with the servers.
func (c *Session) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.over = true
		close(c.done)
	}
	for _, o := range c.with {
		if o.s != nil {
			o.s.Close()
		}
	}
}

// Done is closed when the session has ended.
func (c *Session) Done() <-chan struct{} { return c.done }
