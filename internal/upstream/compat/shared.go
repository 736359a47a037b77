package compat

import (
	"context"
	"encoding/json"
	"strings"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/transport"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/upstream"
)

func newSharedClient(sh *sharing) *sharedClient {
	return &sharedClient{End: session.NewEnd(), sharing: sh, uris: uris{},
		inbox: session.Queue{Max: maxKept, Bytes: maxKeptBytes, DropOldest: true, Unique: true}}
}

// Stop takes the client out; what only it wanted the server is told to forget.
func (l *sharedClient) Stop(<-chan struct{}) {
	l.Fail(transport.ErrStopped)
	l.sharing.leave(l)
}

// Respond drops the answer to a question that was never asked.
func (l *sharedClient) Respond(context.Context, json.RawMessage, session.Reply) error {
	return l.Cause()
}

// Notify passes on what does not speak of the client's own session.
func (l *sharedClient) Notify(ctx context.Context, method string, params json.RawMessage) error {
	switch method {
	case mcp.Initialized, mcp.Cancelled, mcp.Progress, mcp.RootsChanged:
		return l.Cause()
	}
	c, err := l.sharing.sv.Ready(ctx)
	if err == nil && l.Cause() != nil { // asked last: a connection is there when it has been decided who goes on
		err = &session.NotSentError{Cause: l.Cause()}
	}
	if err != nil {
		return err
	}
	return c.Notify(ctx, method, params)
}

// Do sends a request, again on a new connection when it is certain that the
// server has not acted on it.
func (l *sharedClient) Do(ctx context.Context, r *session.Request) (session.Reply, error) {
	if r.Method == mcp.Ping { // about the connection of the client, which is ours
		return empty(), l.Cause()
	}
	return l.sharing.sv.Try(ctx, r, func(c *upstream.Connection) (session.Reply, error) {
		reply, err := l.answer(ctx, c, r)
		if cause := l.Cause(); err != nil && cause != nil && ctx.Err() == nil {
			err = l.sharing.sv.Over(cause)
		}
		return reply, err
	})
}

func (l *sharedClient) answer(ctx context.Context, c *upstream.Connection, r *session.Request) (session.Reply, error) {
	if err := l.Cause(); err != nil { // asked now: a connection is there when it has been decided who goes on
		return session.Reply{}, &session.NotSentError{Cause: err}
	}
	switch r.Method {
	case mcp.Initialize:
		return l.initialize(c, r)
	case mcp.SetLevel:
		return l.setLevel(ctx, c, r)
	case mcp.Subscribe, mcp.Unsubscribe:
		return l.subscribe(ctx, c, r)
	}
	if strings.HasPrefix(r.Method, mcp.Tasks) {
		return unknown(r.Method, " (the clients of this server share one session, in which there are no tasks)"), nil
	}
	return l.send(ctx, c, r)
}

// send sends a request on the connection that all share.
func (l *sharedClient) send(ctx context.Context, c *upstream.Connection, r *session.Request) (session.Reply, error) {
	q := *r
	q.Owner, q.Headers = &l.owner, nil
	if r.Method == mcp.CallTool {
		q.Params = wirejson.DropMember(r.Params, "task") // as is done where tasks are not declared
	}
	if r.Say != nil {
		q.Say = func(e session.Event) {
			if e.Method != mcp.LogMessage || l.wantsMessage(e.Params) {
				r.Say(e)
			}
		}
	}
	return c.Do(ctx, &q)
}

// wantsMessage reports whether a log message has a level that the client wants.
// The server tells what the most talkative client wants to hear.
func (l *sharedClient) wantsMessage(params json.RawMessage) bool {
	l.sharing.mu.Lock()
	wanted := l.level
	l.sharing.mu.Unlock()
	said, _ := wirejson.String(wirejson.Find(params, "level"))
	return wanted == "" || mcp.Level(said) < 0 || moreTalkative(wanted, said) == wanted
}

// initialize answers with what the server has answered to us.
func (l *sharedClient) initialize(c *upstream.Connection, r *session.Request) (session.Reply, error) {
	if c.Modern() {
		return session.Reply{}, &session.NotSentError{Cause: errAnotherServer}
	}
	g := c.Greeting()
	l.met = g
	if !l.sharing.enter(l, c) {
		return session.Reply{}, &session.NotSentError{Cause: transport.ErrStopped}
	}
	version := mcp.ClientVersion(g.Version)
	if asked, _ := wirejson.String(wirejson.Find(r.Params, "protocolVersion")); mcp.IsLegacy(asked) && asked < version {
		version = asked // what the server says beyond it, clients of that revision pass over
	}
	result := wirejson.SetMember(g.Raw, "protocolVersion", json.RawMessage(`"`+version+`"`))
	if wirejson.Find(g.Capabilities, "tasks") != nil {
		result = wirejson.SetMember(result, "capabilities", wirejson.DropMember(g.Capabilities, "tasks"))
	}
	return session.Reply{Result: result}, nil
}

// setLevel notes the level that the client wants, and tells the server if that
// makes it say more or less.
func (l *sharedClient) setLevel(ctx context.Context, c *upstream.Connection, r *session.Request) (session.Reply, error) {
	level, _ := wirejson.String(wirejson.Find(r.Params, "level"))
	if mcp.Level(level) < 0 {
		return refusedParams("params.level is no log level"), nil
	}
	sh := l.sharing
	if err := sh.begin(ctx, c); err != nil {
		return session.Reply{}, err
	}
	defer sh.finish()
	before := l.wantLevel(level)
	reply := empty()
	wanted, _ := sh.wanted()
	if wanted == sh.told.level {
		return reply, nil
	}
	told := *r
	told.Params = wirejson.SetMember(r.Params, "level", text(wanted))
	reply, err := l.send(ctx, c, &told)
	if err != nil || reply.Error != nil {
		l.wantLevel(before)
		if err != nil { // nobody knows what the server has heard
			sh.told.level = ""
			sh.doubt()
		}
		return reply, err
	}
	sh.told.level = wanted
	return reply, nil
}

// wantLevel notes the level that the client wants and returns the one before.
func (l *sharedClient) wantLevel(level string) (before string) {
	l.sharing.mu.Lock()
	defer l.sharing.mu.Unlock()
	before, l.level = l.level, level
	return before
}

// subscribe subscribes the client to a resource, or ends that. The server is
// told by the first client that comes and the last one that goes.
func (l *sharedClient) subscribe(ctx context.Context, c *upstream.Connection, r *session.Request) (session.Reply, error) {
	uri, ok := wirejson.String(wirejson.Find(r.Params, "uri"))
	if !ok {
		return refusedParams("params.uri must be a string"), nil
	}
	sh, on := l.sharing, r.Method == mcp.Subscribe
	if err := sh.begin(ctx, c); err != nil {
		return session.Reply{}, err
	}
	defer sh.finish()
	_, before := sh.wanted()
	if !l.follow(uri, on) {
		return refusedParams("there are too many subscriptions"), nil
	}
	if _, uris := sh.wanted(); uris[uri] == sh.told.uris[uri] {
		return empty(), nil
	}
	sh.told.uris[uri] = true // as long as nobody knows
	reply, err := l.send(ctx, c, r)
	switch {
	case err != nil:
		if on {
			l.follow(uri, false)
		}
		sh.doubt()
	case on && reply.Error != nil:
		l.follow(uri, false)
		delete(sh.told.uris, uri)
	case !on:
		delete(sh.told.uris, uri)
	case before[uri]: // on a connection before; nobody knows what has been since
		sh.spread(mcp.ResourceUpdated, resource(uri))
	}
	return reply, err
}

// follow enters a subscription of the client, or takes it out; false when there
// are too many.
func (l *sharedClient) follow(uri string, on bool) bool {
	l.sharing.mu.Lock()
	defer l.sharing.mu.Unlock()
	return l.uris.set(uri, on)
}

// Listen hands on what is about no request.
func (l *sharedClient) Listen(ctx context.Context, say func(session.Event), opened func()) error {
	return l.inbox.Read(ctx, l.Done(), say, opened, l.Cause)
}
