package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/strictjson"
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
	*loss
	sv    *server
	inbox inbox
	met   *greeting // what the client was told; set by initialize

	level string          // that the client wants, "" when it has not said; guarded by sharing.mu
	uris  map[string]bool // that it has subscribed to; guarded by sharing.mu
}

var errAnotherServer = errors.New("the server has come back with another revision, other capabilities or other instructions")

func newSharedLink(sv *server) *sharedLink {
	return &sharedLink{loss: newLoss(), sv: sv, inbox: inbox{come: make(chan struct{}, 1)}, uris: map[string]bool{}}
}

func (l *sharedLink) roundTrip(context.Context, *request) (Reply, error) { return Reply{}, errNoLink }
func (l *sharedLink) negotiated(string)                                  {}
func (l *sharedLink) attend(context.Context)                             {}
func (l *sharedLink) attended() bool                                     { return true }
func (l *sharedLink) activity() uint64                                   { return 0 }
func (l *sharedLink) inFlight() int                                      { return 0 }
func (l *sharedLink) pid() int                                           { return 0 }
func (l *sharedLink) tidy(time.Time)                                     {}

// stop takes the client out; what only it wanted the server is told to forget.
func (l *sharedLink) stop(<-chan struct{}) {
	l.fail(errStopped)
	l.sv.sharing.leave(l)
}

// respond drops the answer to a question that was never asked.
func (l *sharedLink) respond(context.Context, []byte) error { return l.cause() }

// notify passes on what does not speak of the client's own session.
func (l *sharedLink) notify(ctx context.Context, method string, params json.RawMessage) error {
	switch method {
	case methodInitialized, methodCancelled, methodProgress, "notifications/roots/list_changed":
		return l.cause()
	}
	live, err := l.live(ctx)
	if err != nil {
		return err
	}
	return live.link.notify(ctx, method, params)
}

// live waits for the connection.
func (l *sharedLink) live(ctx context.Context) (*liveLink, error) {
	live, err := l.sv.ready(ctx)
	if err == nil && l.cause() != nil { // asked last: a connection is there when it has been decided who goes on
		err = &unsentError{l.cause()}
	}
	return live, err
}

// relay passes on what is no call of a tool, again on a new connection when it
// is certain that the server has not acted on it.
func (l *sharedLink) relay(ctx context.Context, r *relayed) (Reply, error) {
	if r.Method == methodPing { // about the connection of the client, which is ours
		return Reply{Result: json.RawMessage("{}")}, l.cause()
	}
	for sends := 1; ; sends++ {
		live, err := l.live(ctx)
		if err != nil {
			return Reply{}, err
		}
		reply, err := l.answer(ctx, live, r.Request)
		if err == nil || ctx.Err() != nil || sends == maxSends || !unsent(err) && !errors.Is(err, errSessionGone) {
			return reply, err
		}
	}
}

func (l *sharedLink) answer(ctx context.Context, live *liveLink, r *Request) (Reply, error) {
	switch r.Method {
	case methodInitialize:
		return l.initialize(live, r)
	case methodSetLevel:
		return l.setLevel(ctx, live, r)
	case methodSubscribe, methodUnsubscribe:
		return l.subscribe(ctx, live, r)
	}
	if strings.HasPrefix(r.Method, tasksPrefix) {
		return Reply{Error: &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "Method not found: " + r.Method +
			" (the clients of this server share one session, in which there are no tasks)"}}, nil
	}
	return l.passShared(ctx, live, r)
}

// passShared sends a request on the connection that all share.
func (l *sharedLink) passShared(ctx context.Context, live *liveLink, r *Request) (Reply, error) {
	params := r.Params
	if r.Method == methodCallTool {
		params = jsonrpc.DropMember(params, "task") // as is done where tasks are not declared
	}
	q := &request{id: l.sv.ids.Add(1), token: progressToken(params), owner: l, head: r.Head, cancelable: true}
	if q.token != nil {
		params = withToken(params, q.id)
	}
	if r.Events != nil {
		q.say = func(e Event) {
			if e.Method != methodMessage || l.wantsMessage(e.Params) {
				r.Events(e)
			}
		}
	}
	q.msg = jsonrpc.AppendRequest(nil, q.id, r.Method, params)
	return live.link.roundTrip(ctx, q)
}

// wantsMessage says whether a log message has a level that the client wants.
// The server tells what the most talkative client wants to hear.
func (l *sharedLink) wantsMessage(params json.RawMessage) bool {
	l.sv.sharing.mu.Lock()
	wanted := l.level
	l.sv.sharing.mu.Unlock()
	said, _ := strictjson.String(strictjson.Find(params, "level"))
	return wanted == "" || !slices.Contains(levels[:], said) || moreTalkative(wanted, said) == wanted
}

// initialize answers with what the server has answered to us.
func (l *sharedLink) initialize(live *liveLink, r *Request) (Reply, error) {
	if live.modern() {
		return Reply{}, &unsentError{errAnotherServer}
	}
	g := live.greeting
	l.met = g
	if !l.sv.sharing.enter(l, l.sv, live) {
		return Reply{}, &unsentError{errStopped}
	}
	version := g.version
	if asked, _ := strictjson.String(strictjson.Find(r.Params, "protocolVersion")); slices.Contains(spoken(), asked) && asked < version {
		version = asked // what the server says beyond it, clients of that revision pass over
	}
	result := jsonrpc.SetMember(g.raw, "protocolVersion", json.RawMessage(`"`+version+`"`))
	if strictjson.Find(g.capabilities, "tasks") != nil {
		result = jsonrpc.SetMember(result, "capabilities", jsonrpc.DropMember(g.capabilities, "tasks"))
	}
	return Reply{Result: result}, nil
}

// setLevel notes the level that the client wants, and tells the server if that
// makes it say more or less.
func (l *sharedLink) setLevel(ctx context.Context, live *liveLink, r *Request) (Reply, error) {
	level, _ := strictjson.String(strictjson.Find(r.Params, "level"))
	if !slices.Contains(levels[:], level) {
		return refusedParams("params.level is no log level"), nil
	}
	sh := &l.sv.sharing
	if err := sh.begin(ctx, l.sv, live); err != nil {
		return Reply{}, err
	}
	defer sh.finish()
	before := l.wantLevel(level)
	reply := Reply{Result: json.RawMessage("{}")}
	wanted, _ := sh.wanted()
	if wanted == sh.told.level {
		return reply, nil
	}
	told := *r
	told.Params = jsonrpc.SetMember(r.Params, "level", appendString(nil, wanted))
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
func (l *sharedLink) subscribe(ctx context.Context, live *liveLink, r *Request) (Reply, error) {
	uri, ok := strictjson.String(strictjson.Find(r.Params, "uri"))
	if !ok {
		return refusedParams("params.uri must be a string"), nil
	}
	sh, on := &l.sv.sharing, r.Method == methodSubscribe
	if err := sh.begin(ctx, l.sv, live); err != nil {
		return Reply{}, err
	}
	defer sh.finish()
	_, before := sh.wanted()
	if !l.follow(uri, on) {
		return refusedParams("there are too many subscriptions"), nil
	}
	if _, uris := sh.wanted(); uris[uri] == sh.told.uris[uri] {
		return Reply{Result: json.RawMessage("{}")}, nil
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
		sh.spread(methodUpdated, uriParams(uri))
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

// overhear gives the client what is about no request.
func (l *sharedLink) overhear(ctx context.Context, say func(Event), opened func()) error {
	if !l.inbox.attach() {
		return errHasStream
	}
	defer l.inbox.detach()
	opened()
	for {
		for _, n := range l.inbox.take() {
			say(Event{Method: n.method, Params: n.params})
		}
		select {
		case <-l.inbox.come:
		case <-ctx.Done():
			return ctx.Err()
		case <-l.lost():
			return l.cause()
		}
	}
}
