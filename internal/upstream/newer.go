package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/link"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/rawjson"
	"mcpproxy/internal/session"
)

// newer are the clients of the modern revision on a server of an older one.
// Each of their requests has a conversation for itself while it runs: where
// clients do not share the connection that is a session of the server, so that
// what the server says or asks then is about that request. When the
// server asks, the client is told to come again with the answers, and the
// server's request waits meanwhile: it is held.
type newer struct {
	mu   sync.Mutex // guards what follows
	idle map[string][]*Conversation
	kept int              // in idle
	held map[string]*held // by the state that the client has to bring
	wg   sync.WaitGroup   // of what runs for requests
}

// Bounds on what waits for clients to come again.
const (
	maxKeptIdle = 8
	maxHeld     = 1000
	heldTime    = 5 * time.Minute
	maxAsked    = 100
)

// relayNewer answers a request of the modern revision in the place of a server
// that does not speak it.
func (s *Set) relayNewer(ctx context.Context, sv *server, live *liveLink, r *session.Request) (session.Reply, error) {
	switch r.Method {
	case mcp.Discover:
		return session.Reply{Result: sv.described(live.greeting)}, nil
	case mcp.Listen:
		return s.listenNewer(ctx, sv, live, r)
	case mcp.Initialize, mcp.Ping, mcp.SetLevel, mcp.Subscribe, mcp.Unsubscribe:
		return session.Reply{Error: &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "Method not found: " + r.Method}}, nil
	}
	if strings.HasPrefix(r.Method, mcp.Tasks) { // the tasks of the older revision are others
		return session.Reply{Error: &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "Method not found: " + r.Method}}, nil
	}
	if state := rawjson.Find(r.Params, "requestState"); state != nil {
		h := sv.newer.take(state, r)
		if h == nil {
			return refusedParams("requestState is not one that was given for this request, or it has expired"), nil
		}
		return sv.resume(ctx, h, r)
	}
	h, err := s.startNewer(ctx, sv, live, r)
	if err != nil {
		return session.Reply{}, err
	}
	return sv.await(ctx, h, r)
}

// described is what server/discover says of a server of an older revision.
func (s *server) described(g *greeting) json.RawMessage {
	out := append([]byte(nil), `{"supportedVersions":`+mcp.Served+`,"capabilities":`...)
	out = append(out, rawjson.DropMember(orObject(g.capabilities), "tasks")...)
	if g.instructions != "" {
		out = rawjson.AppendString(append(out, `,"instructions":`...), g.instructions)
	}
	return s.modernResult(mcp.Discover, append(out, '}'), g)
}

// modernResult adds to a result what the modern revision demands.
func (s *server) modernResult(method string, result json.RawMessage, g *greeting) json.RawMessage {
	if rawjson.Kind(result) != '{' {
		return result
	}
	add := func(name, value string) {
		if rawjson.Find(result, name) == nil {
			result = rawjson.SetMember(result, name, json.RawMessage(value))
		}
	}
	add("resultType", `"complete"`)
	switch method {
	case mcp.Discover, mcp.ListTools, mcp.ListPrompts, mcp.ListResources, mcp.ListTemplates, mcp.ReadResource:
		add("ttlMs", "0")
		add("cacheScope", `"private"`)
	}
	meta := rawjson.Find(result, "_meta")
	if rawjson.Kind(g.info) == '{' && rawjson.Find(meta, mcp.MetaServerInfo) == nil {
		result = rawjson.SetMember(result, "_meta", rawjson.SetMember(orObject(meta), mcp.MetaServerInfo, g.info))
	}
	return result
}

// modernError is an error in the codes of the modern revision.
func modernError(e *jsonrpc.Error) *jsonrpc.Error {
	if e != nil && e.Code == mcp.CodeResourceNotFound {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: e.Message, Data: e.Data}
	}
	return e
}

// about is what a modern request says of itself.
type about struct {
	params             json.RawMessage // without it
	capabilities, info json.RawMessage
	level              string
}

func aboutOf(params json.RawMessage) about {
	a := about{params: params, capabilities: json.RawMessage("{}")}
	meta, err := mcp.SplitMeta(rawjson.Find(params, "_meta"))
	if err != nil {
		return a
	}
	if meta.Capabilities != nil {
		a.capabilities = rawjson.DropMember(orObject(meta.Capabilities), "tasks")
	}
	a.info = bytes.Clone(meta.ClientInfo)
	a.level, _ = rawjson.String(meta.LogLevel)
	a.params = rawjson.SetMember(rawjson.DropMember(params, "task"), "_meta", orObject(meta.Rest))
	return a
}

// nextID is an id of ours, as JSON.
func (s *Set) nextID() json.RawMessage { return strconv.AppendUint(nil, s.ids.Add(1), 10) }

// checkout gives a conversation with what the client can do, that nobody uses.
// asks says whether it can be asked.
func (s *Set) checkout(ctx context.Context, sv *server, key string, a about, asks, listens bool) (*Conversation, error) {
	if c := sv.newer.reuse(key); c != nil {
		return c, nil
	}
	info := a.info
	if rawjson.Kind(info) != '{' {
		info = append(rawjson.AppendString([]byte(`{"name":"mcpproxy","version":`), s.opt.ClientVersion), '}')
	}
	params := append([]byte(`{"protocolVersion":"`+mcp.Legacy+`","capabilities":`), a.capabilities...)
	params = append(append(append(params, `,"clientInfo":`...), info...), '}')
	w := own
	if sv.sharing.on.Load() {
		w = shared
	}
	c, answer, err := s.converseOn(ctx, sv, &session.Request{ID: s.nextID(), Method: mcp.Initialize, Params: params}, w)
	switch {
	case err != nil:
		return nil, err
	case c == nil:
		return nil, &answerError{answer.Error.Code}
	}
	if err := c.link.Notify(ctx, mcp.Initialized, nil); err != nil && c.link.Cause() != nil {
		c.End()
		return nil, err
	}
	// Over a pipe questions come whether anybody listens or not; over HTTP they
	// come on a stream that has to be opened for them.
	asked := asks && string(a.capabilities) != "{}"
	if pipe := sv.spec.Transport == Stdio || sv.overSSE(); c.own != nil && (asked || pipe && !listens) {
		c.said = &session.Queue{Max: maxKept, Bytes: maxKeptBytes, DropOldest: true}
		sv.hear(ctx, c)
	}
	return c, nil
}

// hear keeps the stream of a session open on which servers may ask, too, and
// waits a moment for it: what is said while there is none may be lost.
func (s *server) hear(ctx context.Context, c *Conversation) {
	opened := make(chan struct{})
	open := sync.OnceFunc(func() { close(opened) })
	s.newer.wg.Go(func() {
		defer open()
		run, cancel := context.WithCancel(context.WithoutCancel(ctx))
		defer cancel()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			select {
			case <-c.link.Done():
				cancel()
			case <-run.Done():
			}
		}()
		defer func() { cancel(); <-ended }()
		for {
			err := c.link.Listen(run, func(e session.Event) {
				if !c.said.Put(e.Clone()) && e.ID != nil {
					_ = c.link.Respond(run, e.ID, unasked(e.Method)) // a lost link ends the request itself
				}
			}, open)
			var refused *link.StatusError
			if run.Err() != nil || errors.As(err, &refused) && !refused.Passing() || pause(run, link.MinListenPause) != nil {
				return
			}
		}
	})
	limit := time.NewTimer(link.AttendTime)
	defer limit.Stop()
	select {
	case <-opened:
	case <-limit.C:
	case <-ctx.Done():
	}
}

// reuse gives the conversation of that key that was used last, if there is one.
func (n *newer) reuse(key string) *Conversation {
	n.mu.Lock()
	defer n.mu.Unlock()
	for list := n.idle[key]; len(list) > 0; list = n.idle[key] {
		c := list[len(list)-1]
		n.idle[key] = list[:len(list)-1]
		n.kept--
		c.spare.Store(false)
		if c.link.Cause() == nil {
			return c
		}
	}
	delete(n.idle, key)
	return nil
}

// giveBack keeps a conversation for the next request.
func (n *newer) giveBack(key string, c *Conversation) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.kept >= maxKeptIdle || c.link.Cause() != nil {
		c.End()
		return
	}
	if n.idle == nil {
		n.idle = map[string][]*Conversation{}
	}
	c.spare.Store(true)
	n.idle[key] = append(n.idle[key], c)
	n.kept++
}

// drop ends the conversations that are kept for the next request.
func (n *newer) drop() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, list := range n.idle {
		for _, c := range list {
			c.End()
		}
	}
	n.idle, n.kept = nil, 0
}

// end ends everything that waits.
func (n *newer) end() {
	n.mu.Lock()
	for state, h := range n.held {
		delete(n.held, state)
		h.expire.Stop()
		h.cancel()
	}
	n.mu.Unlock()
	n.wg.Wait()
}
