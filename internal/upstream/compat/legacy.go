package compat

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

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/transport"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/upstream"
)

// legacyClient is a client of a legacy revision on a server that speaks the
// modern one alone. It has no connection of its own: each request goes out by itself
// on the one that all share, and says what the client said in initialize. What
// the server wants to know before it answers is asked of the client as that
// revision asks, as often as the server wants.
type legacyClient struct {
	*session.End
	sv   *upstream.Server
	ids  uint64 // of requests to the client
	info struct{ capabilities, client json.RawMessage }

	asked session.Questions

	mu         sync.Mutex // guards what follows, and ids
	level      json.RawMessage
	resources  uris          // subscribed to
	subscribed chan struct{} // closed and replaced when resources change
}

func newLegacyClient(sv *upstream.Server) *legacyClient {
	return &legacyClient{End: session.NewEnd(), sv: sv, resources: uris{}, subscribed: make(chan struct{})}
}

// Stop implements peer.
func (l *legacyClient) Stop(<-chan struct{}) { l.Fail(transport.ErrStopped) }

// Notify drops what the modern revision does not have: the end of the
// handshake, changes of roots.
func (l *legacyClient) Notify(context.Context, string, json.RawMessage) error { return l.Cause() }

// Do answers what the modern revision does not have, and passes on the rest.
func (l *legacyClient) Do(ctx context.Context, r *session.Request) (session.Reply, error) {
	if err := l.Cause(); err != nil {
		return session.Reply{}, &session.NotSentError{Cause: err}
	}
	switch r.Method {
	case mcp.Initialize:
		return l.initialize(ctx, r)
	case mcp.Ping:
		return empty(), nil
	case mcp.SetLevel:
		return l.setLevel(r), nil
	case mcp.Subscribe, mcp.Unsubscribe:
		uri, ok := wirejson.String(wirejson.Find(r.Params, "uri"))
		if !ok {
			return refusedParams("params.uri must be a string"), nil
		}
		if !l.subscribe(uri, r.Method == mcp.Subscribe) {
			return refusedParams("there are too many subscriptions"), nil
		}
		return empty(), nil
	case mcp.Discover, mcp.Listen:
		return unknown(r.Method, ""), nil
	}
	if strings.HasPrefix(r.Method, mcp.Tasks) { // the tasks of the modern revision are others
		return unknown(r.Method, ""), nil
	}
	return l.rounds(ctx, r)
}

// initialize answers with what the server has said of itself.
func (l *legacyClient) initialize(ctx context.Context, r *session.Request) (session.Reply, error) {
	c, err := l.sv.Ready(ctx)
	if err != nil {
		return session.Reply{}, err
	}
	if !c.Modern() {
		return session.Reply{}, &session.NotSentError{Cause: errAnotherServer}
	}
	l.info.capabilities = mcp.WithoutTaskCapability(orObject(wirejson.Find(r.Params, "capabilities")))
	l.info.client = orObject(wirejson.Find(r.Params, "clientInfo"))
	version, _ := wirejson.String(wirejson.Find(r.Params, "protocolVersion"))
	if !mcp.IsLegacy(version) {
		version = mcp.Legacy
	}
	g := c.Greeting()
	info := g.Info
	if wirejson.Kind(info) != '{' {
		info = object(field{"name", text(l.sv.Spec.Name)}, field{"version", text("unknown")})
	}
	capabilities := mcp.WithoutTaskCapability(orObject(g.Capabilities))
	return session.Reply{Result: object(field{"protocolVersion", text(version)}, field{"capabilities", capabilities}, field{"serverInfo", info}, instructions(g))}, nil
}

// setLevel remembers the level: requests of the modern revision say it
// themselves.
func (l *legacyClient) setLevel(r *session.Request) session.Reply {
	level := wirejson.Find(r.Params, "level")
	text, _ := wirejson.String(level)
	if mcp.Level(text) < 0 {
		return refusedParams("params.level is no log level")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.level = bytes.Clone(level)
	return empty()
}

// Bounds on what one client may have a server do.
const (
	maxInputRounds     = 50 // questions and answers within one request
	minShed, maxShed   = 100 * time.Millisecond, 5 * time.Second
	maxInputsPerAnswer = 100
)

func (l *legacyClient) subscribe(uri string, on bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.resources.set(uri, on) {
		return false
	}
	close(l.subscribed)
	l.subscribed = make(chan struct{})
	return true
}

// rounds sends the request until the server answers it, and has the client
// asked in between.
func (l *legacyClient) rounds(ctx context.Context, r *session.Request) (session.Reply, error) {
	params := l.modern(r.Params)
	shed := minShed
	for round := range maxInputRounds {
		reply, err := l.send(ctx, r, params, round > 0)
		if err != nil || reply.Error != nil || !wantsInput(reply.Result) {
			return reply, err
		}
		inputs := wirejson.Find(reply.Result, "inputRequests")
		answers, failure, err := l.askAll(ctx, r, inputs)
		if err != nil || failure != nil {
			return session.Reply{Error: failure}, err
		}
		params = l.modern(r.Params)
		if answers != nil {
			params = wirejson.SetMember(params, "inputResponses", answers)
		} else if err := pause(ctx, shed); err != nil { // the server only asks to come again
			return session.Reply{}, err
		} else {
			shed = min(2*shed, maxShed)
		}
		if state := wirejson.Find(reply.Result, "requestState"); state != nil {
			params = wirejson.SetMember(params, "requestState", state)
		}
	}
	return internalError("the server asks for input without end"), nil
}

func wantsInput(result json.RawMessage) bool {
	if !bytes.Contains(result, []byte("input_required")) {
		return false
	}
	kind, _ := wirejson.String(wirejson.Find(result, "resultType"))
	return kind == "input_required"
}

// modern returns the params with what a modern request has to say of itself.
func (l *legacyClient) modern(params json.RawMessage) json.RawMessage {
	l.mu.Lock()
	level := l.level
	l.mu.Unlock()
	meta := orObject(wirejson.Find(params, "_meta"))
	meta = wirejson.SetMember(meta, mcp.MetaVersion, json.RawMessage(`"`+mcp.Modern+`"`))
	meta = wirejson.SetMember(meta, mcp.MetaCapabilities, l.info.capabilities)
	meta = wirejson.SetMember(meta, mcp.MetaClientInfo, l.info.client)
	if level != nil {
		meta = wirejson.SetMember(meta, mcp.MetaLogLevel, level)
	}
	return wirejson.SetMember(wirejson.DropMember(params, "task"), "_meta", meta)
}

// send sends one round. Before another one than the first the client may have
// been asked something, for long: it counts as a wait.
func (l *legacyClient) send(ctx context.Context, r *session.Request, params json.RawMessage, waited bool) (session.Reply, error) {
	q := session.Request{ID: l.sv.NextID(), Method: r.Method, Params: params, Say: r.Say, Permit: r.Permit}
	return l.sv.Try(ctx, &q, func(c *upstream.Connection) (session.Reply, error) {
		if !c.Modern() { // it has become another server
			l.Fail(transport.ErrSessionGone)
			return session.Reply{}, l.sv.Over(l.Cause())
		}
		if waited {
			if err := l.sv.Recheck(ctx, c, &q); err != nil {
				return session.Reply{}, err
			}
		}
		reply, err := c.Do(ctx, &q)
		reply.Status = 0 // of the other revision
		return reply, err
	})
}

// askAll asks the client for all that the server wants to know, and returns the
// answers as an object; nil when it wants nothing.
func (l *legacyClient) askAll(ctx context.Context, r *session.Request, inputs json.RawMessage) (answers json.RawMessage, failure *wirejson.RPCError, err error) {
	var wanted map[string]struct {
		Method string
		Params json.RawMessage
	}
	if inputs == nil || json.Unmarshal(inputs, &wanted) != nil || len(wanted) == 0 {
		return nil, nil, nil
	}
	if len(wanted) > maxInputsPerAnswer || r.Say == nil {
		return nil, &wirejson.RPCError{Code: wirejson.CodeInternal,
			Message: "the server wants input, but this client takes no event stream, so it cannot be asked"}, nil
	}
	given := make([]field, 0, len(wanted))
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		answer, err := l.ask(ctx, r, wanted[key].Method, wanted[key].Params)
		if err != nil {
			return nil, nil, err
		}
		if answer.Error != nil {
			return nil, answer.Error, nil
		}
		given = append(given, field{key, answer.Result})
	}
	return object(given...), nil, nil
}

// ask sends the client one request in the stream of its own, and waits.
func (l *legacyClient) ask(ctx context.Context, r *session.Request, method string, params json.RawMessage) (session.Reply, error) {
	l.mu.Lock()
	l.ids++
	id := json.RawMessage(`"input-` + strconv.FormatUint(l.ids, 10) + `"`)
	l.mu.Unlock()
	answer, forget := l.asked.Open(id)
	defer forget()
	r.Say(session.Event{Method: method, ID: id, Params: params})
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
func (l *legacyClient) Respond(_ context.Context, id json.RawMessage, r session.Reply) error {
	l.asked.Answer(id, r)
	return l.Cause()
}

// Listen subscribes to all that the server tells of, anew when the client
// subscribes to other resources.
func (l *legacyClient) Listen(ctx context.Context, say func(session.Event), opened func()) error {
	opened()
	for pauseTime := transport.MinListenPause; ; {
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
			pauseTime = transport.MinListenPause
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
		pauseTime = min(2*pauseTime, transport.MaxListenPause)
	}
}

// listen holds one subscription. again reports that it ended because the client
// has subscribed to something else; no error, that the server refuses it.
func (l *legacyClient) listen(ctx context.Context, uris []string, changed <-chan struct{}, say func(session.Event)) (again bool, err error) {
	lctx, stop := session.WithDone(ctx, changed, l.Done())
	defer stop()
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
	reply, err := l.send(lctx, r, l.modern(append(params, "}}"...)), false)
	again = lctx.Err() != nil && ctx.Err() == nil
	switch {
	case err != nil:
		return again, err
	case reply.Error == nil: // it ended in good order: it is wanted again
		return again, transport.ErrNoAnswer
	}
	return again, nil
}
