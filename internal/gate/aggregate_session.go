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

// aggregateSession is a client's session with all servers: one session with each server that it has
// used, and the lists that it has received.
type aggregateSession struct {
	*AggregateEndpoint
	initialize session.Request // the client's request, with the caller
	knownLists clientKnownLists
	end        *session.EndSignal

	mu       sync.Mutex // guards the following fields, and serverSession.s
	byServer map[string]*serverSession
	level    json.RawMessage // params of logging/setLevel; nil if no level was set
}

// serverSession is the session with one server. The first request that needs it opens it.
type serverSession struct {
	opening sync.Mutex
	s       session.Session
}

// liveSession returns the session; nil if it has ended or was never opened.
func (o *serverSession) liveSession() session.Session {
	if o.s != nil {
		select {
		case <-o.s.Done():
		default:
			return o.s
		}
	}
	return nil
}

// maxInitializeBytes limits the stored params of initialize.
const maxInitializeBytes = 64 << 10

// OpenSession opens a session. It opens the session with a server at the first use.
func (s *AggregateEndpoint) OpenSession(_ context.Context, initialize *session.Request) (session.Session, session.Reply, error) {
	if len(initialize.Params) > maxInitializeBytes {
		return nil, session.Reply{Error: session.InvalidParamsError("the description of a client must not be longer than " +
			strconv.Itoa(maxInitializeBytes) + " bytes")}, nil
	}
	version := session.NegotiateVersion(initialize.Params)
	caller := *initialize.Caller
	c := &aggregateSession{AggregateEndpoint: s, end: session.NewEndSignal(), byServer: map[string]*serverSession{}, initialize: session.Request{ID: json.RawMessage("0"), Method: mcp.Initialize,
		Params: wirejson.SetMember(initialize.Params, "protocolVersion", []byte(`"`+version+`"`)), Caller: &caller, Apps: initialize.Apps}}
	return c, session.Reply{Result: json.RawMessage(`{"protocolVersion":"` + version + `","capabilities":` + s.mergedCapabilitiesJSON(initialize) +
		`,"serverInfo":` + s.Reply.ServerInfo + `,"instructions":"` + c.instructions() + `"}`)}, nil
}

// Do answers a request of the client.
func (c *aggregateSession) Do(ctx context.Context, r *session.Request) (session.Reply, error) {
	switch r.Method {
	case mcp.Ping:
		return session.Reply{Result: []byte("{}")}, nil
	case mcp.SetLevel:
		return c.setLogLevelOnAll(ctx, r), nil
	}
	return c.answerRequest(ctx, r, func(ctx context.Context, server string) (session.Session, error) {
		return c.openOrReuseSession(ctx, r, server)
	}, &c.knownLists), nil
}

// openOrReuseSession returns the session with a server. It replaces one that has ended.
func (c *aggregateSession) openOrReuseSession(ctx context.Context, r *session.Request, server string) (session.Session, error) {
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
	s, level := o.liveSession(), c.level
	c.mu.Unlock()
	if s != nil {
		return s, nil
	}
	s, err := c.openServerSession(ctx, r, server, level)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	o.s = s
	if c.end.Cause() != nil { // the client's session has ended in the meantime
		s.Close()
	}
	return s, nil
}

// openServerSession opens a session with a server, using the client's initialize request.
func (c *aggregateSession) openServerSession(ctx context.Context, r *session.Request, server string, level json.RawMessage) (session.Session, error) {
	initialize := c.initialize
	initialize.Caller, initialize.WithoutTasks = r.Caller, true
	s, a, err := c.Gate.GatedEndpoint(server).OpenSession(ctx, &initialize)
	switch {
	case err != nil:
		return nil, err
	case s == nil:
		return nil, problem.Newf(problem.UpstreamError, "Server '%s' does not open a session: %s", server, wirejson.ClipText(a.Error.Message, 4*session.MaxIdentity)).
			WithHint("See its log with `mcpproxy upstream logs "+server+"`.").With("server", server)
	}
	if err := s.NotifyServer(ctx, mcp.Initialized, nil); errors.Is(err, session.ErrEnded) {
		return nil, problem.Newf(problem.ServerUnavailable, "Server '%s' has ended the session that was just opened.", server).
			WithHint("Try again; see its log with `mcpproxy upstream logs "+server+"`.").With("server", server)
	}
	if level != nil {
		sendLogLevel(ctx, s, r, level)
	}
	return s, nil
}

// sendLogLevel sends the log level to one server. A server without logging rejects the request, which is ignored.
func sendLogLevel(ctx context.Context, s session.Session, r *session.Request, params json.RawMessage) {
	_, _ = s.Do(ctx, &session.Request{ID: json.RawMessage(`"level"`), Method: mcp.SetLevel, Params: params, Caller: r.Caller})
}

// setLogLevelOnAll sends the log level to every server with a session, and stores it for sessions that
// are opened later.
func (c *aggregateSession) setLogLevelOnAll(ctx context.Context, r *session.Request) session.Reply {
	level := wirejson.Find(r.Params, "level")
	text, _ := wirejson.String(level)
	if mcp.LogLevelRank(text) < 0 {
		return session.Reply{Error: session.InvalidParamsError("params.level must be a log level: debug, info, notice, warning, error, critical, alert or emergency")}
	}
	params := append(append([]byte(`{"level":`), level...), '}')
	c.mu.Lock()
	c.level = params
	c.mu.Unlock()
	for _, s := range c.liveSessions() {
		sendLogLevel(ctx, s, r, params)
	}
	return session.Reply{Result: []byte("{}")}
}

// liveSessions returns the sessions that have not ended.
func (c *aggregateSession) liveSessions() (all []session.Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.byServer {
		if s := o.liveSession(); s != nil {
			all = append(all, s)
		}
	}
	return all
}

// NotifyServer forwards a change of roots to every server with a session, and drops all other notifications.
func (c *aggregateSession) NotifyServer(ctx context.Context, method string, params json.RawMessage) error {
	if method == mcp.RootsChanged {
		for _, s := range c.liveSessions() {
			_ = s.NotifyServer(ctx, method, params) // a lost session is replaced at the next use
		}
	}
	return nil
}

// AnswerServerQuestion forwards the client's answer to the server that sent the question.
func (c *aggregateSession) AnswerServerQuestion(ctx context.Context, id json.RawMessage, r session.Reply) error {
	server, own, ok := session.SplitRequestID(id)
	if s := c.existingSession(server); ok && s != nil {
		if err := s.AnswerServerQuestion(ctx, own, r); !errors.Is(err, session.ErrEnded) {
			return err
		} // otherwise the session of that server has ended, and the client's session continues
	}
	return nil
}

// existingSession returns the session with a server; nil if there is none.
func (c *aggregateSession) existingSession(server string) session.Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o := c.byServer[server]; o != nil {
		return o.liveSession()
	}
	return nil
}

// Listen notifies the client of changed lists until ctx ends.
func (c *aggregateSession) Listen(ctx context.Context, say func(session.Event), opened func()) error {
	opened()
	c.announceListChanges(ctx, &c.initialize, &c.knownLists, func(list int) { say(session.Event{Method: listNotifications[list].method}) })
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

// Done returns a channel that is closed when the session has ended.
func (c *aggregateSession) Done() <-chan struct{} { return c.end.Done() }
