package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
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

// olderLink is a client of an older revision on a server that speaks the modern
// one alone. It has no connection of its own: each request goes out by itself
// on the one that all share, and says what the client said in initialize. What
// the server wants to know before it answers is asked of the client as that
// revision asks, as often as the server wants.
type olderLink struct {
	*session.End
	set  *Set
	sv   *server
	ids  uint64 // of requests to the client
	info struct{ capabilities, client json.RawMessage }

	mu         sync.Mutex // guards what follows, and ids
	level      json.RawMessage
	asked      map[string]chan session.Reply
	resources  map[string]bool // subscribed to
	subscribed chan struct{}   // closed and replaced when resources change
}

func (s *Set) newOlderLink(sv *server) *olderLink {
	return &olderLink{End: session.NewEnd(), set: s, sv: sv, asked: map[string]chan session.Reply{},
		resources: map[string]bool{}, subscribed: make(chan struct{})}
}

// Stop implements peer.
func (l *olderLink) Stop(<-chan struct{}) { l.Fail(link.ErrStopped) }

// Notify drops what the modern revision does not have: the end of the
// handshake, changes of roots.
func (l *olderLink) Notify(context.Context, string, json.RawMessage) error { return l.Cause() }

// Do answers what the modern revision does not have, and passes on the rest.
func (l *olderLink) Do(ctx context.Context, r *session.Request) (session.Reply, error) {
	if err := l.Cause(); err != nil {
		return session.Reply{}, &session.NotSentError{Cause: err}
	}
	empty := session.Reply{Result: json.RawMessage("{}")}
	switch r.Method {
	case mcp.Initialize:
		return l.initialize(ctx, r)
	case mcp.Ping:
		return empty, nil
	case mcp.SetLevel:
		return l.setLevel(r), nil
	case mcp.Subscribe, mcp.Unsubscribe:
		uri, ok := rawjson.String(rawjson.Find(r.Params, "uri"))
		if !ok {
			return refusedParams("params.uri must be a string"), nil
		}
		if !l.subscribe(uri, r.Method == mcp.Subscribe) {
			return refusedParams("there are too many subscriptions"), nil
		}
		return empty, nil
	case mcp.Discover, mcp.Listen:
		return session.Reply{Error: &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "Method not found: " + r.Method}}, nil
	}
	if strings.HasPrefix(r.Method, mcp.Tasks) { // the tasks of the modern revision are others
		return session.Reply{Error: &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "Method not found: " + r.Method}}, nil
	}
	return l.rounds(ctx, r)
}

func refusedParams(what string) session.Reply {
	return session.Reply{Error: &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "Invalid params: " + what}}
}

// initialize answers with what the server has said of itself.
func (l *olderLink) initialize(ctx context.Context, r *session.Request) (session.Reply, error) {
	live, err := l.sv.ready(ctx)
	if err != nil {
		return session.Reply{}, err
	}
	l.info.capabilities = mcp.WithoutTaskSupport(orObject(rawjson.Find(r.Params, "capabilities")))
	l.info.client = orObject(rawjson.Find(r.Params, "clientInfo"))
	version, _ := rawjson.String(rawjson.Find(r.Params, "protocolVersion"))
	if !mcp.IsSpoken(version) {
		version = mcp.Legacy
	}
	g := live.greeting
	out := rawjson.AppendString([]byte(`{"protocolVersion":`), version)
	out = append(append(out, `,"capabilities":`...), mcp.WithoutTaskSupport(orObject(g.capabilities))...)
	info := g.info
	if rawjson.Kind(info) != '{' {
		info = append(rawjson.AppendString([]byte(`{"name":`), l.sv.spec.Name), `,"version":"unknown"}`...)
	}
	out = append(append(out, `,"serverInfo":`...), info...)
	if g.instructions != "" {
		out = rawjson.AppendString(append(out, `,"instructions":`...), g.instructions)
	}
	return session.Reply{Result: append(out, '}')}, nil
}

func orObject(raw json.RawMessage) json.RawMessage {
	if rawjson.Kind(raw) != '{' {
		return json.RawMessage("{}")
	}
	return bytes.Clone(raw)
}

// setLevel remembers the level: requests of the modern revision say it
// themselves.
func (l *olderLink) setLevel(r *session.Request) session.Reply {
	level := rawjson.Find(r.Params, "level")
	text, _ := rawjson.String(level)
	if mcp.Level(text) < 0 {
		return refusedParams("params.level is no log level")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.level = bytes.Clone(level)
	return session.Reply{Result: json.RawMessage("{}")}
}

// Bounds on what one client may have a server do.
const (
	maxInputRounds     = 50 // questions and answers within one request
	maxSubscriptions   = 1000
	maxSubscribedBytes = 1 << 20 // of their addresses
	minShed, maxShed   = 100 * time.Millisecond, 5 * time.Second
	maxInputsPerAnswer = 100
)

// roomFor says whether a client may subscribe to one more resource.
func roomFor(uris map[string]bool, uri string) bool {
	size := len(uri)
	for one := range uris {
		size += len(one)
	}
	return uris[uri] || len(uris) < maxSubscriptions && size <= maxSubscribedBytes
}

func (l *olderLink) subscribe(uri string, on bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case on && !roomFor(l.resources, uri):
		return false
	case on:
		l.resources[uri] = true
	default:
		delete(l.resources, uri)
	}
	close(l.subscribed)
	l.subscribed = make(chan struct{})
	return true
}

// rounds sends the request until the server answers it, and has the client
// asked in between.
func (l *olderLink) rounds(ctx context.Context, r *session.Request) (session.Reply, error) {
	params := l.modern(r.Params)
	shed := minShed
	for range maxInputRounds {
		reply, err := l.send(ctx, r, params)
		if err != nil || reply.Error != nil || !wantsInput(reply.Result) {
			return reply, err
		}
		inputs := rawjson.Find(reply.Result, "inputRequests")
		answers, failure, err := l.askAll(ctx, r, inputs)
		if err != nil || failure != nil {
			return session.Reply{Error: failure}, err
		}
		params = l.modern(r.Params)
		if answers != nil {
			params = rawjson.SetMember(params, "inputResponses", answers)
		} else if err := pause(ctx, shed); err != nil { // the server only asks to come again
			return session.Reply{}, err
		} else {
			shed = min(2*shed, maxShed)
		}
		if state := rawjson.Find(reply.Result, "requestState"); state != nil {
			params = rawjson.SetMember(params, "requestState", state)
		}
	}
	return session.Reply{Error: &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: "the server asks for input without end"}}, nil
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

func wantsInput(result json.RawMessage) bool {
	if !bytes.Contains(result, []byte("input_required")) {
		return false
	}
	kind, _ := rawjson.String(rawjson.Find(result, "resultType"))
	return kind == "input_required"
}

// modern are the params with what a modern request has to say of itself.
func (l *olderLink) modern(params json.RawMessage) json.RawMessage {
	l.mu.Lock()
	level := l.level
	l.mu.Unlock()
	meta := orObject(rawjson.Find(params, "_meta"))
	meta = rawjson.SetMember(meta, mcp.MetaVersion, json.RawMessage(`"`+mcp.Modern+`"`))
	meta = rawjson.SetMember(meta, mcp.MetaCapabilities, l.info.capabilities)
	meta = rawjson.SetMember(meta, mcp.MetaClientInfo, l.info.client)
	if level != nil {
		meta = rawjson.SetMember(meta, mcp.MetaLogLevel, level)
	}
	return rawjson.SetMember(rawjson.DropMember(params, "task"), "_meta", meta)
}

// send sends one round.
func (l *olderLink) send(ctx context.Context, r *session.Request, params json.RawMessage) (session.Reply, error) {
	live, err := l.sv.ready(ctx)
	if err != nil {
		return session.Reply{}, err
	}
	if !live.modern() { // it has become another server
		l.Fail(link.ErrSessionGone)
		return session.Reply{}, &session.NotSentError{Cause: link.ErrSessionGone}
	}
	if r.Method == mcp.CallTool {
		// The client may have been asked something meanwhile, for long.
		if err := l.set.recheck(ctx, l.sv, live, nil, r); err != nil {
			return session.Reply{}, err
		}
	}
	defer live.listens(r.Method)()
	q := session.Request{ID: l.set.nextID(), Method: r.Method, Params: params, Say: r.Say, Judged: r.Judged}
	reply, err := live.link.Do(ctx, &q)
	reply.Status = 0 // of the other revision
	return reply, err
}

// askAll asks the client for all that the server wants to know, and gives the
// answers as an object; nil when it wants nothing.
func (l *olderLink) askAll(ctx context.Context, r *session.Request, inputs json.RawMessage) (answers json.RawMessage, failure *jsonrpc.Error, err error) {
	var wanted map[string]struct {
		Method string
		Params json.RawMessage
	}
	if inputs == nil || json.Unmarshal(inputs, &wanted) != nil || len(wanted) == 0 {
		return nil, nil, nil
	}
	if len(wanted) > maxInputsPerAnswer || r.Say == nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternal,
			Message: "the server wants input, but this client takes no event stream, so it cannot be asked"}, nil
	}
	out := []byte{'{'}
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		answer, err := l.ask(ctx, r, wanted[key].Method, wanted[key].Params)
		if err != nil {
			return nil, nil, err
		}
		if answer.Error != nil {
			return nil, answer.Error, nil
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(rawjson.AppendString(out, key), ':'), answer.Result...)
	}
	return append(out, '}'), nil, nil
}

// ask sends the client one request in the stream of its own, and waits.
func (l *olderLink) ask(ctx context.Context, r *session.Request, method string, params json.RawMessage) (session.Reply, error) {
	answer := make(chan session.Reply, 1)
	l.mu.Lock()
	l.ids++
	id := `"input-` + strconv.FormatUint(l.ids, 10) + `"`
	l.asked[id] = answer
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		delete(l.asked, id)
		l.mu.Unlock()
	}()
	r.Say(session.Event{Method: method, ID: json.RawMessage(id), Params: params})
	select {
	case m := <-answer:
		return m, nil
	case <-ctx.Done():
		return session.Reply{}, ctx.Err()
	case <-l.Done():
		return session.Reply{}, l.Cause()
	}
}

// Respond takes the client's answer.
func (l *olderLink) Respond(_ context.Context, id json.RawMessage, r session.Reply) error {
	r.Result = bytes.Clone(r.Result)
	l.mu.Lock()
	defer l.mu.Unlock()
	if answer := l.asked[string(id)]; answer != nil {
		delete(l.asked, string(id))
		answer <- r
	}
	return l.Cause()
}

// Listen subscribes to all that the server tells of, anew when the client
// subscribes to other resources.
func (l *olderLink) Listen(ctx context.Context, say func(session.Event), opened func()) error {
	opened()
	for pauseTime := link.MinListenPause; ; {
		l.mu.Lock()
		changed := l.subscribed
		uris := slices.Sorted(maps.Keys(l.resources))
		l.mu.Unlock()
		again, err := l.listen(ctx, uris, changed, say)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case l.Cause() != nil:
			return l.Cause()
		case again:
			pauseTime = link.MinListenPause
			continue
		case err == nil: // the server has nothing to tell of
			select {
			case <-changed:
			case <-ctx.Done():
			case <-l.Done():
			}
			continue
		}
		_ = pause(ctx, pauseTime) // ctx is looked at above
		pauseTime = min(2*pauseTime, link.MaxListenPause)
	}
}

// listen holds one subscription. again says that it ended because the client
// has subscribed to something else; no error, that the server refuses it.
func (l *olderLink) listen(ctx context.Context, uris []string, changed <-chan struct{}, say func(session.Event)) (again bool, err error) {
	lctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		select {
		case <-changed:
			cancel()
		case <-l.Done():
			cancel()
		case <-lctx.Done():
		}
	}()
	list, err := json.Marshal(uris)
	if err != nil {
		return false, err
	}
	r := &session.Request{Method: mcp.Listen, Say: func(e session.Event) {
		if e.Method != mcp.Acknowledged {
			say(e)
		}
	}}
	params := append([]byte(`{"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":`), list...)
	reply, err := l.send(lctx, r, l.modern(append(params, "}}"...)))
	again = lctx.Err() != nil && ctx.Err() == nil
	cancel()
	<-watching
	if err == nil && reply.Error == nil {
		err = link.ErrNoAnswer // it ended in good order: it is wanted again
	} else if err == nil {
		return again, nil
	}
	return again, err
}
