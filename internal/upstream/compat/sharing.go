package compat

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/transport"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/upstream"
)

// sharedClient is one of the clients that share a server's connection: the one
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
// It outlives the connection. It ends when the server comes back as another one
// than the client was told of.
type sharedClient struct {
	*session.End
	sharing *sharing
	owner   session.Owner
	inbox   session.Queue
	met     *upstream.Greeting // what the client was told; set by initialize

	level string // that the client wants, "" when it has not said; guarded by sharing.mu
	uris  uris   // that it has subscribed to; guarded by sharing.mu
}

var errAnotherServer = problem.Ownf("the server has come back with another revision, other capabilities or other instructions")

// sharing are the clients that share the connection that MCPProxy itself has to
// a server, and what the server was told for them. They come and go while the
// connection stays, and stay while it is made anew: what they want (resources
// that they subscribe to, a log level) is what counts, and the server is told
// the difference.
type sharing struct {
	sv   *upstream.Server
	turn chan struct{}  // cap 1: held by who tells the server something
	told told           // guarded by turn
	wg   sync.WaitGroup // of what tells the server something by itself

	mu        sync.Mutex // guards what follows, and level and uris of each client
	clients   map[*sharedClient]struct{}
	on        *upstream.Connection // the last one: the clients go on with the next
	unsettled bool                 // the clients may want something else than the server was told
	settling  bool                 // a goroutine tells it
}

// told is what a server was told for its clients on one connection.
type told struct {
	on    *upstream.Connection
	level string
	uris  uris
}

func newSharing(sv *upstream.Server) *sharing {
	return &sharing{sv: sv, turn: make(chan struct{}, 1), clients: map[*sharedClient]struct{}{}}
}

// begin waits for the turn to tell the server something on c; finish ends it.
func (sh *sharing) begin(ctx context.Context, c *upstream.Connection) error {
	select {
	case sh.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	sh.mu.Lock()
	now := sh.on
	sh.mu.Unlock()
	if now != c {
		sh.finish()
		return &session.NotSentError{Cause: transport.ErrStopped}
	}
	if sh.told.on != c {
		sh.told = told{on: c, uris: uris{}}
	}
	return nil
}

func (sh *sharing) finish() { <-sh.turn }

// enter makes l one of the clients, unless it has ended meanwhile or the server
// may say something else now than it was told.
func (sh *sharing) enter(l *sharedClient, c *upstream.Connection) bool {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.on != c || l.Cause() != nil {
		return false
	}
	sh.clients[l] = struct{}{}
	return true
}

func (sh *sharing) leave(l *sharedClient) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	delete(sh.clients, l)
	sh.unsettle()
}

// subscribed reports whether a client waits to be told of a resource.
func (sh *sharing) subscribed() bool {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for l := range sh.clients {
		if len(l.uris) > 0 {
			return true
		}
	}
	return false
}

// wanted returns what the server is to be told: the most talkative level that a
// client wants ("": none wants any), and the resources.
func (sh *sharing) wanted() (level string, all uris) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	all = uris{}
	for l := range sh.clients {
		level = moreTalkative(level, l.level)
		maps.Copy(all, l.uris)
	}
	return level, all
}

// spread tells the clients what is about no request: that a list has changed,
// or a resource to which they have subscribed. It reports whether there are any.
func (sh *sharing) spread(method string, params json.RawMessage) bool {
	uri := ""
	if method == mcp.ResourceUpdated {
		uri, _ = wirejson.String(wirejson.Find(params, "uri"))
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if len(sh.clients) == 0 {
		return false
	}
	e := session.Event{Method: method, Params: bytes.Clone(params)} // one for all: there may be many that have no stream
	for l := range sh.clients {
		if method != mcp.ResourceUpdated || l.follows(uri) {
			l.inbox.Put(e)
		}
	}
	return true
}

// renew has the clients go on with a new connection, on which nobody says
// anything yet. Lists may have become others meanwhile. A client that was told
// something else at its beginning than the server says now has to begin anew.
func (sh *sharing) renew(c *upstream.Connection) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	same := sh.on != nil && sh.on.SameTools(c)
	sh.on = c
	for l := range sh.clients {
		if !l.met.SameOffer(c.Greeting()) {
			delete(sh.clients, l)
			l.Fail(errAnotherServer)
			continue
		}
		for _, list := range lists {
			if c.Greeting().Promises(list.kind) && !(same && list.method == mcp.ToolsChanged) {
				l.inbox.Put(session.Event{Method: list.method})
			}
		}
	}
	if len(sh.clients) > 0 {
		sh.unsettle()
	}
}

// unsettle has the server told what its clients want. The lock is held.
func (sh *sharing) unsettle() {
	sh.unsettled = true
	if sh.settling || sh.on == nil || sh.on.Cause() != nil { // the next connection is told anyhow
		return
	}
	sh.settling = true
	sh.wg.Go(func() {
		for c := sh.next(); c != nil; c = sh.next() {
			sh.settle(c)
		}
	})
}

// doubt notes that nobody knows what the server has heard.
func (sh *sharing) doubt() {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.unsettle()
}

// next returns the connection on which there may be something to tell; nil when
// there is not.
func (sh *sharing) next() *upstream.Connection {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.settling = sh.unsettled && sh.on.Cause() == nil
	if !sh.settling {
		return nil
	}
	sh.unsettled = false
	return sh.on
}

// settleTime is how long a server may take to hear of one thing.
const settleTime = 10 * time.Second

// settle tells the server the difference between what its clients want and what
// it was told. A resource to which clients had subscribed on a connection before
// may have changed meanwhile: they are told so.
func (sh *sharing) settle(c *upstream.Connection) {
	if sh.begin(context.Background(), c) != nil {
		return
	}
	defer sh.finish()
	level, uris := sh.wanted()
	tell := func(method string, params json.RawMessage) bool {
		ctx, cancel := context.WithTimeout(context.Background(), settleTime)
		defer cancel()
		_, err := sh.sv.Ask(ctx, c, method, params)
		return err == nil
	}
	for _, uri := range slices.Sorted(maps.Keys(sh.told.uris)) {
		if !uris[uri] && c.Cause() == nil {
			tell(mcp.Unsubscribe, resource(uri))
			delete(sh.told.uris, uri)
		}
	}
	for _, uri := range slices.Sorted(maps.Keys(uris)) {
		if !sh.told.uris[uri] && c.Cause() == nil && tell(mcp.Subscribe, resource(uri)) {
			sh.told.uris[uri] = true
			sh.spread(mcp.ResourceUpdated, resource(uri))
		}
	}
	if level != "" && level != sh.told.level && c.Cause() == nil && tell(mcp.SetLevel, object(field{"level", text(level)})) {
		sh.told.level = level
	}
}

// moreTalkative returns the level of the two at which more is said; "" is none.
func moreTalkative(a, b string) string {
	switch {
	case a == "":
		return b
	case b == "" || mcp.Level(a) < mcp.Level(b):
		return a
	}
	return b
}

// follows reports whether the client has subscribed to the resource, or to one that
// it is a part of. The lock of sharing is held.
func (l *sharedClient) follows(uri string) bool {
	if l.uris[uri] {
		return true
	}
	for whole := range l.uris {
		if strings.HasPrefix(uri, strings.TrimSuffix(whole, "/")+"/") {
			return true
		}
	}
	return false
}
