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
	"mcpproxy/internal/strictjson"
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
func (s *Set) relayNewer(ctx context.Context, sv *server, live *liveLink, r *Request) (Reply, error) {
	if err := sound(r.Fields); err != nil {
		return Reply{}, err
	}
	switch r.Method {
	case methodDiscover:
		return Reply{Result: sv.described(live.greeting)}, nil
	case methodListen:
		return s.listenNewer(ctx, sv, live, r)
	case methodInitialize, methodPing, methodSetLevel, methodSubscribe, methodUnsubscribe:
		return Reply{Error: &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "Method not found: " + r.Method}}, nil
	}
	if strings.HasPrefix(r.Method, tasksPrefix) { // the tasks of the older revision are others
		return Reply{Error: &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "Method not found: " + r.Method}}, nil
	}
	if state := strictjson.Find(r.Params, "requestState"); state != nil {
		h := sv.newer.take(state, r)
		if h == nil {
			return refusedParams("requestState is not one that was given for this request, or it has expired"), nil
		}
		return sv.resume(ctx, h, r)
	}
	h, err := s.startNewer(ctx, sv, live, r)
	if err != nil {
		return Reply{}, err
	}
	return sv.await(ctx, h, r)
}

// described is what server/discover says of a server of an older revision.
func (s *server) described(g *greeting) json.RawMessage {
	out := append([]byte(nil), `{"supportedVersions":["`+modernVersion+`"`...)
	for _, v := range spoken()[:4] {
		out = appendString(append(out, ','), v)
	}
	out = append(append(out, `],"capabilities":`...), jsonrpc.DropMember(orObject(g.capabilities), "tasks")...)
	if g.instructions != "" {
		out = appendString(append(out, `,"instructions":`...), g.instructions)
	}
	return s.modernResult(methodDiscover, append(out, '}'), g)
}

// modernResult adds to a result what the modern revision demands.
func (s *server) modernResult(method string, result json.RawMessage, g *greeting) json.RawMessage {
	if strictjson.Kind(result) != '{' {
		return result
	}
	add := func(name, value string) {
		if strictjson.Find(result, name) == nil {
			result = jsonrpc.SetMember(result, name, json.RawMessage(value))
		}
	}
	add("resultType", `"complete"`)
	switch method {
	case methodDiscover, methodListTools, "prompts/list", "resources/list", "resources/templates/list", "resources/read":
		add("ttlMs", "0")
		add("cacheScope", `"private"`)
	}
	const key = "io.modelcontextprotocol/serverInfo"
	meta := strictjson.Find(result, "_meta")
	if strictjson.Kind(g.info) == '{' && strictjson.Find(meta, key) == nil {
		result = jsonrpc.SetMember(result, "_meta", jsonrpc.SetMember(orObject(meta), key, g.info))
	}
	return result
}

// modernError is an error in the codes of the modern revision.
func modernError(e *jsonrpc.Error) *jsonrpc.Error {
	const resourceNotFound = -32002
	if e != nil && e.Code == resourceNotFound {
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
	meta := strictjson.Find(params, "_meta")
	if strictjson.Kind(meta) != '{' {
		return a
	}
	rest := []byte{'{'}
	_ = strictjson.Members(meta, func(name, value []byte) error {
		switch string(name) {
		case "io.modelcontextprotocol/protocolVersion":
		case "io.modelcontextprotocol/clientCapabilities":
			a.capabilities = jsonrpc.DropMember(orObject(value), "tasks")
		case "io.modelcontextprotocol/clientInfo":
			a.info = bytes.Clone(value)
		case "io.modelcontextprotocol/logLevel":
			a.level, _ = strictjson.String(value)
		default:
			if len(rest) > 1 {
				rest = append(rest, ',')
			}
			rest = append(append(appendString(rest, string(name)), ':'), value...)
		}
		return nil
	})
	a.params = jsonrpc.SetMember(jsonrpc.DropMember(params, "task"), "_meta", append(rest, '}'))
	return a
}

// nextID is an id of ours, as JSON.
func (s *Set) nextID() json.RawMessage { return strconv.AppendUint(nil, s.ids.Add(1), 10) }

// checkout gives a conversation with what the client can do, that nobody uses.
// asks says whether it can be asked.
func (s *Set) checkout(ctx context.Context, sv *server, key string, a about, asks bool) (*Conversation, error) {
	if c := sv.newer.reuse(key); c != nil {
		return c, nil
	}
	info := a.info
	if strictjson.Kind(info) != '{' {
		info = append(appendString([]byte(`{"name":"mcpproxy","version":`), s.opt.ClientVersion), '}')
	}
	params := append([]byte(`{"protocolVersion":"`+offered+`","capabilities":`), a.capabilities...)
	params = append(append(append(params, `,"clientInfo":`...), info...), '}')
	w := own
	if sv.sharing.on.Load() {
		w = shared
	}
	c, answer, err := s.converseOn(ctx, sv, Request{ID: s.nextID(), Method: methodInitialize, Params: params}, w)
	switch {
	case err != nil:
		return nil, err
	case c == nil:
		return nil, &answerError{answer.Error.Code}
	}
	if err := c.link.notify(ctx, methodInitialized, nil); err != nil && c.link.cause() != nil {
		c.End()
		return nil, err
	}
	if l, ok := c.link.(*httpLink); ok && asks && string(a.capabilities) != "{}" {
		l.mail = &mailbox{}
		sv.hear(ctx, l)
	}
	return c, nil
}

// hear keeps the stream of a session open on which servers may ask, too, and
// waits a moment for it: what is said while there is none may be lost.
func (s *server) hear(ctx context.Context, l *httpLink) {
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
			case <-l.lost():
				cancel()
			case <-run.Done():
			}
		}()
		defer func() { cancel(); <-ended }()
		for {
			err := l.overhear(run, func(e Event) { l.mail.put(note{e.Method, e.ID, e.Params}, false) }, open)
			var refused *statusError
			if run.Err() != nil || errors.As(err, &refused) && !refused.passing() || pause(run, minListenPause) != nil {
				return
			}
		}
	})
	limit := time.NewTimer(attendTime)
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
		if c.link.cause() == nil {
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
	if n.kept >= maxKeptIdle || c.link.cause() != nil {
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
