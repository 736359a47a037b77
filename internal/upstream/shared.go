package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/link"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/rawjson"
	"mcpproxy/internal/session"
)

// sharedLink is one of the clients that share a server's connection: the one
// that MCPProxy has for itself, so that the server runs once. The server sees
// one session and one initialize, which was ours; the client is told what the
// server answered then.
//
// Each request has an id and a progress token of ours. What the server says goes
// to nobody by guess: progress to the request with the token, a log message to
// the request in whose stream it came, or to the only one in flight, what has
// changed to the clients that it concerns. The server cannot ask a client
// anything: our own initialize declares no capability for that. Nor has it tasks
// for them: a session's list of tasks would show each client those of the others.
//
// The link outlives the connection. It ends when the server comes back as
// another one than the client was told of.
type sharedLink struct {
	*session.End
	sv    *server
	owner session.Owner
	inbox session.Queue
	met   *greeting // what the client was told; set by initialize

	level string          // that the client wants, "" when it has not said; guarded by sharing.mu
	uris  map[string]bool // that it has subscribed to; guarded by sharing.mu
}

var errAnotherServer = problem.Ownf("the server has come back with another revision, other capabilities or other instructions")

func newSharedLink(sv *server) *sharedLink {
	return &sharedLink{End: session.NewEnd(), sv: sv, inbox: session.Queue{Max: maxKept, Bytes: maxKeptBytes, DropOldest: true, Unique: true}, uris: map[string]bool{}}
}

// Stop takes the client out; what only it wanted the server is told to forget.
func (l *sharedLink) Stop(<-chan struct{}) {
	l.Fail(link.ErrStopped)
	l.sv.sharing.leave(l)
}

// Respond drops the answer to a question that was never asked.
func (l *sharedLink) Respond(context.Context, json.RawMessage, session.Reply) error {
	return l.Cause()
}

// Notify passes on what does not speak of the client's own session.
func (l *sharedLink) Notify(ctx context.Context, method string, params json.RawMessage) error {
	switch method {
	case mcp.Initialized, mcp.Cancelled, mcp.Progress, mcp.RootsChanged:
		return l.Cause()
	}
	live, err := l.live(ctx)
	if err != nil {
		return err
	}
	return live.link.Notify(ctx, method, params)
}

// live waits for the connection.
func (l *sharedLink) live(ctx context.Context) (*liveLink, error) {
	live, err := l.sv.ready(ctx)
	if err == nil && l.Cause() != nil { // asked last: a connection is there when it has been decided who goes on
		err = &session.NotSentError{Cause: l.Cause()}
	}
	return live, err
}

// Do passes on what is no call of a tool, again on a new connection when it
// is certain that the server has not acted on it.
func (l *sharedLink) Do(ctx context.Context, r *session.Request) (session.Reply, error) {
	if r.Method == mcp.Ping { // about the connection of the client, which is ours
		return session.Reply{Result: json.RawMessage("{}")}, l.Cause()
	}
	for sends := 1; ; sends++ {
		live, err := l.live(ctx)
		if err != nil {
			return session.Reply{}, err
		}
		reply, err := l.answer(ctx, live, r)
		if err == nil || ctx.Err() != nil || sends == maxSends || !session.NotSent(err) && !errors.Is(err, link.ErrSessionGone) {
			return reply, err
		}
	}
}

func (l *sharedLink) answer(ctx context.Context, live *liveLink, r *session.Request) (session.Reply, error) {
	switch r.Method {
	case mcp.Initialize:
		return l.initialize(live, r)
	case mcp.SetLevel:
		return l.setLevel(ctx, live, r)
	case mcp.Subscribe, mcp.Unsubscribe:
		return l.subscribe(ctx, live, r)
	}
	if strings.HasPrefix(r.Method, mcp.Tasks) {
		return session.Reply{Error: &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "Method not found: " + r.Method +
			" (the clients of this server share one session, in which there are no tasks)"}}, nil
	}
	return l.passShared(ctx, live, r)
}

// passShared sends a request on the connection that all share.
func (l *sharedLink) passShared(ctx context.Context, live *liveLink, r *session.Request) (session.Reply, error) {
	q := *r
	q.Owner, q.Fields = &l.owner, nil
	if r.Method == mcp.CallTool {
		q.Params = rawjson.DropMember(r.Params, "task") // as is done where tasks are not declared
	}
	if r.Say != nil {
		q.Say = func(e session.Event) {
			if e.Method != mcp.LogMessage || l.wantsMessage(e.Params) {
				r.Say(e)
			}
		}
	}
	return live.link.Do(ctx, &q)
}

// wantsMessage says whether a log message has a level that the client wants.
// The server tells what the most talkative client wants to hear.
func (l *sharedLink) wantsMessage(params json.RawMessage) bool {
	l.sv.sharing.mu.Lock()
	wanted := l.level
	l.sv.sharing.mu.Unlock()
	said, _ := rawjson.String(rawjson.Find(params, "level"))
	return wanted == "" || mcp.Level(said) < 0 || moreTalkative(wanted, said) == wanted
}

// initialize answers with what the server has answered to us.
func (l *sharedLink) initialize(live *liveLink, r *session.Request) (session.Reply, error) {
	if live.modern() {
		return session.Reply{}, &session.NotSentError{Cause: errAnotherServer}
	}
	g := live.greeting
	l.met = g
	if !l.sv.sharing.enter(l, l.sv, live) {
		return session.Reply{}, &session.NotSentError{Cause: link.ErrStopped}
	}
	version := g.version
	if asked, _ := rawjson.String(rawjson.Find(r.Params, "protocolVersion")); mcp.IsSpoken(asked) && asked < version {
		version = asked // what the server says beyond it, clients of that revision pass over
	}
	result := rawjson.SetMember(g.raw, "protocolVersion", json.RawMessage(`"`+version+`"`))
	if rawjson.Find(g.capabilities, "tasks") != nil {
		result = rawjson.SetMember(result, "capabilities", rawjson.DropMember(g.capabilities, "tasks"))
	}
	return session.Reply{Result: result}, nil
}

// setLevel notes the level that the client wants, and tells the server if that
// makes it say more or less.
func (l *sharedLink) setLevel(ctx context.Context, live *liveLink, r *session.Request) (session.Reply, error) {
	level, _ := rawjson.String(rawjson.Find(r.Params, "level"))
	if mcp.Level(level) < 0 {
		return refusedParams("params.level is no log level"), nil
	}
	sh := &l.sv.sharing
	if err := sh.begin(ctx, l.sv, live); err != nil {
		return session.Reply{}, err
	}
	defer sh.finish()
	before := l.wantLevel(level)
	reply := session.Reply{Result: json.RawMessage("{}")}
	wanted, _ := sh.wanted()
	if wanted == sh.told.level {
		return reply, nil
	}
	told := *r
	told.Params = rawjson.SetMember(r.Params, "level", rawjson.AppendString(nil, wanted))
	reply, err := l.passShared(ctx, live, &told)
	if err != nil || reply.Error != nil {
		l.wantLevel(before)
		if err != nil { // nobody knows what the server has heard
			sh.told.level = ""
			signal(sh.unsettled)
		}
		return reply, err
	}
	sh.told.level = wanted
	return reply, nil
}

// wantLevel gives the level that was wanted before.
func (l *sharedLink) wantLevel(level string) (before string) {
	l.sv.sharing.mu.Lock()
	defer l.sv.sharing.mu.Unlock()
	before, l.level = l.level, level
	return before
}

// subscribe subscribes the client to a resource, or ends that. The server is
// told by the first client that comes and the last one that goes.
func (l *sharedLink) subscribe(ctx context.Context, live *liveLink, r *session.Request) (session.Reply, error) {
	uri, ok := rawjson.String(rawjson.Find(r.Params, "uri"))
	if !ok {
		return refusedParams("params.uri must be a string"), nil
	}
	sh, on := &l.sv.sharing, r.Method == mcp.Subscribe
	if err := sh.begin(ctx, l.sv, live); err != nil {
		return session.Reply{}, err
	}
	defer sh.finish()
	_, before := sh.wanted()
	if !l.follow(uri, on) {
		return refusedParams("there are too many subscriptions"), nil
	}
	if _, uris := sh.wanted(); uris[uri] == sh.told.uris[uri] {
		return session.Reply{Result: json.RawMessage("{}")}, nil
	}
	sh.told.uris[uri] = true // as long as nobody knows
	reply, err := l.passShared(ctx, live, r)
	switch {
	case err != nil:
		if on {
			l.follow(uri, false)
		}
		signal(sh.unsettled)
	case on && reply.Error != nil:
		l.follow(uri, false)
		delete(sh.told.uris, uri)
	case !on:
		delete(sh.told.uris, uri)
	case before[uri]: // on a connection before; nobody knows what has been since
		sh.spread(mcp.ResourceUpdated, uriParams(uri))
	}
	return reply, err
}

// follow enters a subscription of the client, or takes it out; false when there
// are too many.
func (l *sharedLink) follow(uri string, on bool) bool {
	l.sv.sharing.mu.Lock()
	defer l.sv.sharing.mu.Unlock()
	switch {
	case !on:
		delete(l.uris, uri)
	case !roomFor(l.uris, uri):
		return false
	default:
		l.uris[uri] = true
	}
	return true
}

// Listen gives the client what is about no request.
func (l *sharedLink) Listen(ctx context.Context, say func(session.Event), opened func()) error {
	return l.inbox.Read(ctx, l.Done(), say, opened, l.Cause)
}
