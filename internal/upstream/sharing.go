package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"mcpproxy/internal/link"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/rawjson"
	"mcpproxy/internal/session"
)

// sharing are the clients that share the connection that MCPProxy itself has to
// a server, and what the server was told for them. They come and go while the
// connection stays, and stay while it is made anew: what they want (resources
// that they subscribe to, a log level) is what counts, and the server is told
// the difference.
type sharing struct {
	on        atomic.Bool   // whether a client that comes now shares
	turn      chan struct{} // cap 1: held by who tells the server something
	told      told          // guarded by turn
	unsettled chan struct{} // cap 1: the clients may want something else

	mu      sync.Mutex // guards what follows, and level and uris of each client
	clients map[*sharedLink]struct{}
	before  *liveLink // the connection before
}

// told is what a server was told for its clients on one connection.
type told struct {
	live  *liveLink
	level string
	uris  map[string]bool
}

func newSharing() sharing {
	return sharing{turn: make(chan struct{}, 1), unsettled: make(chan struct{}, 1), clients: map[*sharedLink]struct{}{}}
}

// begin waits for the turn to tell the server something on live; finish ends it.
func (sh *sharing) begin(ctx context.Context, s *server, live *liveLink) error {
	select {
	case sh.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	if s.live.Load() != live {
		sh.finish()
		return &session.NotSentError{Cause: link.ErrStopped}
	}
	if sh.told.live != live {
		sh.told = told{live: live, uris: map[string]bool{}}
	}
	return nil
}

func (sh *sharing) finish() { <-sh.turn }

// enter makes l one of the clients, unless it has ended meanwhile or the server
// may say something else now than it was told.
func (sh *sharing) enter(l *sharedLink, s *server, live *liveLink) bool {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if s.live.Load() != live || l.Cause() != nil {
		return false
	}
	sh.clients[l] = struct{}{}
	return true
}

func (sh *sharing) leave(l *sharedLink) {
	sh.mu.Lock()
	delete(sh.clients, l)
	sh.mu.Unlock()
	signal(sh.unsettled)
}

// subscribed says whether a client waits to be told of a resource.
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

// wanted is what the server is to be told: the most talkative level that a
// client wants ("": none wants any), and the resources.
func (sh *sharing) wanted() (level string, uris map[string]bool) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	uris = map[string]bool{}
	for l := range sh.clients {
		level = moreTalkative(level, l.level)
		maps.Copy(uris, l.uris)
	}
	return level, uris
}

// spread tells the clients what is about no request: that a list has changed,
// or a resource to which they have subscribed. It says whether there are any.
func (sh *sharing) spread(method string, params json.RawMessage) bool {
	uri := ""
	if method == mcp.ResourceUpdated {
		uri, _ = rawjson.String(rawjson.Find(params, "uri"))
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

// renew has the clients go on with a new connection, on which nobody talks yet.
// Lists may have become others meanwhile. A client that was told something else
// at its beginning than the server says now has to begin anew.
func (sh *sharing) renew(ll *liveLink) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	same := sh.before != nil && maps.EqualFunc(*sh.before.listed.Load(), *ll.listed.Load(),
		func(a, b json.RawMessage) bool { return bytes.Equal(a, b) })
	sh.before = ll
	for l := range sh.clients {
		if !l.met.sameOffer(ll.greeting) {
			delete(sh.clients, l)
			l.Fail(errAnotherServer)
			continue
		}
		for _, list := range [...]struct {
			kind, method string
			same         bool
		}{{"tools", mcp.ToolsChanged, same}, {"prompts", mcp.PromptsChanged, false}, {"resources", mcp.ResourcesChanged, false}} {
			if !list.same && ll.greeting.promises(list.kind) {
				l.inbox.Put(session.Event{Method: list.method})
			}
		}
	}
	if len(sh.clients) > 0 {
		signal(sh.unsettled)
	}
}

// sameOffer says whether a client that knows g can go on with a server that
// says o: what it may ask for, and what it was told to do with it, is the same.
func (g *greeting) sameOffer(o *greeting) bool {
	return g.version == o.version && g.instructions == o.instructions && bytes.Equal(g.capabilities, o.capabilities)
}

// tend tells the server what its clients want, now and whenever that may be
// something else, until ctx ends.
func (s *server) tend(ctx context.Context, live *liveLink) {
	for {
		s.settle(ctx, live)
		select {
		case <-ctx.Done():
			return
		case <-s.sharing.unsettled:
		}
	}
}

// settleTime is how long a server may take to hear of one thing.
const settleTime = 10 * time.Second

// settle tells the server the difference between what its clients want and what
// it was told. A resource to which clients had subscribed on a connection before
// may have changed meanwhile: they are told so.
func (s *server) settle(ctx context.Context, live *liveLink) {
	sh := &s.sharing
	if sh.begin(ctx, s, live) != nil {
		return
	}
	defer sh.finish()
	level, uris := sh.wanted()
	tell := func(method string, params json.RawMessage) bool {
		tctx, cancel := context.WithTimeout(ctx, settleTime)
		defer cancel()
		_, err := s.ask(tctx, live.link, method, params)
		return err == nil
	}
	for _, uri := range slices.Sorted(maps.Keys(sh.told.uris)) {
		if !uris[uri] && live.link.Cause() == nil {
			tell(mcp.Unsubscribe, uriParams(uri))
			delete(sh.told.uris, uri)
		}
	}
	for _, uri := range slices.Sorted(maps.Keys(uris)) {
		if !sh.told.uris[uri] && live.link.Cause() == nil && tell(mcp.Subscribe, uriParams(uri)) {
			sh.told.uris[uri] = true
			sh.spread(mcp.ResourceUpdated, uriParams(uri))
		}
	}
	if level != "" && level != sh.told.level && live.link.Cause() == nil && tell(mcp.SetLevel, levelParams(level)) {
		sh.told.level = level
	}
}

func uriParams(uri string) json.RawMessage {
	return append(rawjson.AppendString([]byte(`{"uri":`), uri), '}')
}

func levelParams(level string) json.RawMessage {
	return append(rawjson.AppendString([]byte(`{"level":`), level), '}')
}

// moreTalkative is the level of the two at which more is said; "" is none.
func moreTalkative(a, b string) string {
	switch {
	case a == "":
		return b
	case b == "" || mcp.Level(a) < mcp.Level(b):
		return a
	}
	return b
}

// follows says whether the client has subscribed to the resource, or to one that
// it is a part of. The lock of sharing is held.
func (l *sharedLink) follows(uri string) bool {
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
