package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/strictjson"
)

// olderLink is a client of an older revision on a server that speaks the modern
// one alone. It has no connection of its own: each request goes out by itself
// on the one that all share, and says what the client said in initialize. What
// the server wants to know before it answers is asked of the client as that
// revision asks, as often as the server wants.
type olderLink struct {
	*loss
	set  *Set
	sv   *server
	ids  uint64 // of requests to the client
	info struct{ capabilities, client json.RawMessage }

	mu         sync.Mutex // guards what follows, and ids
	level      json.RawMessage
	asked      map[string]chan *jsonrpc.Message
	resources  map[string]bool // subscribed to
	subscribed chan struct{}   // closed and replaced when resources change
}

func (s *Set) newOlderLink(sv *server) *olderLink {
	return &olderLink{loss: newLoss(), set: s, sv: sv, asked: map[string]chan *jsonrpc.Message{},
		resources: map[string]bool{}, subscribed: make(chan struct{})}
}

var errNoLink = errors.New("there is no connection of its own")

func (l *olderLink) roundTrip(context.Context, *request) (Reply, error) { return Reply{}, errNoLink }
func (l *olderLink) negotiated(string)                                  {}
func (l *olderLink) attend(context.Context)                             {}
func (l *olderLink) attended() bool                                     { return true }
func (l *olderLink) activity() uint64                                   { return 0 }
func (l *olderLink) inFlight() int                                      { return 0 }
func (l *olderLink) pid() int                                           { return 0 }
func (l *olderLink) tidy(time.Time)                                     {}
func (l *olderLink) stop(<-chan struct{})                               { l.fail(errStopped) }

// notify drops what the modern revision does not have: the end of the
// handshake, changes of roots.
func (l *olderLink) notify(context.Context, string, json.RawMessage) error { return l.cause() }

// relay answers what the modern revision does not have, and passes on the rest.
func (l *olderLink) relay(ctx context.Context, r *relayed) (Reply, error) {
	if err := l.cause(); err != nil {
		return Reply{}, &unsentError{err}
	}
	empty := Reply{Result: json.RawMessage("{}")}
	switch r.Method {
	case methodInitialize:
		return l.initialize(ctx, r)
	case methodPing:
		return empty, nil
	case methodSetLevel:
		return l.setLevel(r), nil
	case methodSubscribe, methodUnsubscribe:
		uri, ok := strictjson.String(strictjson.Find(r.Params, "uri"))
		if !ok {
			return refusedParams("params.uri must be a string"), nil
		}
		if !l.subscribe(uri, r.Method == methodSubscribe) {
			return refusedParams("there are too many subscriptions"), nil
		}
		return empty, nil
	case methodDiscover, methodListen:
		return Reply{Error: &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "Method not found: " + r.Method}}, nil
	}
	if strings.HasPrefix(r.Method, tasksPrefix) { // the tasks of the modern revision are others
		return Reply{Error: &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "Method not found: " + r.Method}}, nil
	}
	return l.rounds(ctx, r)
}

func refusedParams(what string) Reply {
	return Reply{Error: &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "Invalid params: " + what}}
}

// initialize answers with what the server has said of itself.
func (l *olderLink) initialize(ctx context.Context, r *relayed) (Reply, error) {
	live, err := l.sv.ready(ctx)
	if err != nil {
		return Reply{}, err
	}
	l.info.capabilities = withoutExtension(orObject(strictjson.Find(r.Params, "capabilities")))
	l.info.client = orObject(strictjson.Find(r.Params, "clientInfo"))
	version, _ := strictjson.String(strictjson.Find(r.Params, "protocolVersion"))
	if !slices.Contains(spoken(), version) {
		version = offered
	}
	g := live.greeting
	out := appendString([]byte(`{"protocolVersion":`), version)
	out = append(append(out, `,"capabilities":`...), withoutExtension(orObject(g.capabilities))...)
	info := g.info
	if strictjson.Kind(info) != '{' {
		info = append(appendString([]byte(`{"name":`), l.sv.spec.Name), `,"version":"unknown"}`...)
	}
	out = append(append(out, `,"serverInfo":`...), info...)
	if g.instructions != "" {
		out = appendString(append(out, `,"instructions":`...), g.instructions)
	}
	return Reply{Result: append(out, '}')}, nil
}

func orObject(raw json.RawMessage) json.RawMessage {
	if strictjson.Kind(raw) != '{' {
		return json.RawMessage("{}")
	}
	return bytes.Clone(raw)
}

// setLevel remembers the level: requests of the modern revision say it
// themselves.
func (l *olderLink) setLevel(r *relayed) Reply {
	level := strictjson.Find(r.Params, "level")
	text, _ := strictjson.String(level)
	if !slices.Contains(levels[:], text) {
		return refusedParams("params.level is no log level")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.level = bytes.Clone(level)
	return Reply{Result: json.RawMessage("{}")}
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
func (l *olderLink) rounds(ctx context.Context, r *relayed) (Reply, error) {
	params := l.modern(r.Params)
	shed := minShed
	for range maxInputRounds {
		reply, err := l.send(ctx, r, params)
		if err != nil || reply.Error != nil || !wantsInput(reply.Result) {
			return reply, err
		}
		inputs := strictjson.Find(reply.Result, "inputRequests")
		answers, failure, err := l.askAll(ctx, r, inputs)
		if err != nil || failure != nil {
			return Reply{Error: failure}, err
		}
		params = l.modern(r.Params)
		if answers != nil {
			params = jsonrpc.SetMember(params, "inputResponses", answers)
		} else if err := pause(ctx, shed); err != nil { // the server only asks to come again
			return Reply{}, err
		} else {
			shed = min(2*shed, maxShed)
		}
		if state := strictjson.Find(reply.Result, "requestState"); state != nil {
			params = jsonrpc.SetMember(params, "requestState", state)
		}
	}
	return Reply{Error: &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: "the server asks for input without end"}}, nil
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
	kind, _ := strictjson.String(strictjson.Find(result, "resultType"))
	return kind == "input_required"
}

// modern are the params with what a modern request has to say of itself.
func (l *olderLink) modern(params json.RawMessage) json.RawMessage {
	l.mu.Lock()
	level := l.level
	l.mu.Unlock()
	meta := orObject(strictjson.Find(params, "_meta"))
	const prefix = "io.modelcontextprotocol/"
	meta = jsonrpc.SetMember(meta, prefix+"protocolVersion", json.RawMessage(`"`+modernVersion+`"`))
	meta = jsonrpc.SetMember(meta, prefix+"clientCapabilities", l.info.capabilities)
	meta = jsonrpc.SetMember(meta, prefix+"clientInfo", l.info.client)
	if level != nil {
		meta = jsonrpc.SetMember(meta, prefix+"logLevel", level)
	}
	return jsonrpc.SetMember(jsonrpc.DropMember(params, "task"), "_meta", meta)
}

// send sends one round.
func (l *olderLink) send(ctx context.Context, r *relayed, params json.RawMessage) (Reply, error) {
	live, err := l.sv.ready(ctx)
	if err != nil {
		return Reply{}, err
	}
	if !live.modern() { // it has become another server
		l.fail(errSessionGone)
		return Reply{}, &unsentError{errSessionGone}
	}
	id := l.set.ids.Add(1)
	fields := []Field{{headerMethod, r.Method}}
	about := ""
	switch r.Method {
	case methodCallTool, "prompts/get":
		about, _ = strictjson.String(strictjson.Find(params, "name"))
	case "resources/read":
		about, _ = strictjson.String(strictjson.Find(params, "uri"))
	}
	if about != "" {
		fields = append(fields, Field{headerName, headerText(about)})
	}
	if r.listed != nil {
		fields = append(fields, mirrored(r.listed, strictjson.Find(params, "arguments"))...)
	}
	if err := sound(fields); err != nil {
		return Reply{}, &unsentError{err}
	}
	reply, err := live.link.relay(ctx, &relayed{id: id, Request: &Request{ID: strconv.AppendUint(nil, id, 10),
		Method: r.Method, Params: params, Fields: fields, Events: r.Events}})
	reply.Status = 0 // of the other revision
	return reply, err
}

// askAll asks the client for all that the server wants to know, and gives the
// answers as an object; nil when it wants nothing.
func (l *olderLink) askAll(ctx context.Context, r *relayed, inputs json.RawMessage) (answers json.RawMessage, failure *jsonrpc.Error, err error) {
	var wanted map[string]struct {
		Method string
		Params json.RawMessage
	}
	if inputs == nil || json.Unmarshal(inputs, &wanted) != nil || len(wanted) == 0 {
		return nil, nil, nil
	}
	if len(wanted) > maxInputsPerAnswer || r.Events == nil {
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
		out = append(append(appendString(out, key), ':'), answer.Result...)
	}
	return append(out, '}'), nil, nil
}

// ask sends the client one request in the stream of its own, and waits.
func (l *olderLink) ask(ctx context.Context, r *relayed, method string, params json.RawMessage) (*jsonrpc.Message, error) {
	answer := make(chan *jsonrpc.Message, 1)
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
	r.Events(Event{method, json.RawMessage(id), params})
	select {
	case m := <-answer:
		return m, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-l.lost():
		return nil, l.cause()
	}
}

// respond takes the client's answer.
func (l *olderLink) respond(_ context.Context, msg []byte) error {
	m, err := jsonrpc.Parse(bytes.Clone(msg))
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if answer := l.asked[string(m.ID)]; answer != nil {
		delete(l.asked, string(m.ID))
		answer <- &m
	}
	return l.cause()
}

// overhear subscribes to all that the server tells of, anew when the client
// subscribes to other resources.
func (l *olderLink) overhear(ctx context.Context, say func(Event), opened func()) error {
	opened()
	for pauseTime := minListenPause; ; {
		l.mu.Lock()
		changed := l.subscribed
		uris := slices.Sorted(maps.Keys(l.resources))
		l.mu.Unlock()
		again, err := l.listen(ctx, uris, changed, say)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case l.cause() != nil:
			return l.cause()
		case again:
			pauseTime = minListenPause
			continue
		case err == nil: // the server has nothing to tell of
			select {
			case <-changed:
			case <-ctx.Done():
			case <-l.lost():
			}
			continue
		}
		_ = pause(ctx, pauseTime) // ctx is looked at above
		pauseTime = min(2*pauseTime, maxListenPause)
	}
}

// listen holds one subscription. again says that it ended because the client
// has subscribed to something else; no error, that the server refuses it.
func (l *olderLink) listen(ctx context.Context, uris []string, changed <-chan struct{}, say func(Event)) (again bool, err error) {
	lctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		select {
		case <-changed:
			cancel()
		case <-l.lost():
			cancel()
		case <-lctx.Done():
		}
	}()
	list, err := json.Marshal(uris)
	if err != nil {
		return false, err
	}
	r := &relayed{Request: &Request{Method: methodListen, Events: func(e Event) {
		if e.Method != methodAgreed {
			say(e)
		}
	}}}
	params := append([]byte(`{"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":`), list...)
	reply, err := l.send(lctx, r, l.modern(append(params, "}}"...)))
	again = lctx.Err() != nil && ctx.Err() == nil
	cancel()
	<-watching
	if err == nil && reply.Error == nil {
		err = errNoAnswer // it ended in good order: it is wanted again
	} else if err == nil {
		return again, nil
	}
	return again, err
}
