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

// legacyClientBridge is a legacy client on a modern server. It uses the shared connection and sends each request
// separately, with the metadata from the client's initialize. When the server requires input before it answers, the
// client is asked with legacy requests, as often as the server wants.
type legacyClientBridge struct {
	*session.EndSignal
	sv   *upstream.Server
	ids  uint64 // last id of a request to the client
	info struct{ capabilities, client json.RawMessage }

	questions session.ProxyQuestionTracker

	mu         sync.Mutex // guards the fields below, and ids
	level      json.RawMessage
	resources  resourceSubscriptions // subscriptions
	subscribed chan struct{}         // closed and replaced when resources change
}

func newLegacyClientBridge(sv *upstream.Server) *legacyClientBridge {
	return &legacyClientBridge{EndSignal: session.NewEndSignal(), sv: sv, resources: resourceSubscriptions{}, subscribed: make(chan struct{})}
}

// Stop implements sessionPeer.
func (l *legacyClientBridge) Stop(<-chan struct{}) { l.Signal(transport.ErrStopped) }

// NotifyServer drops notifications that the modern protocol does not have, such as
// notifications/initialized.
func (l *legacyClientBridge) NotifyServer(context.Context, string, json.RawMessage) error {
	return l.Cause()
}

// Do answers legacy-only methods itself and forwards the rest.
func (l *legacyClientBridge) Do(ctx context.Context, r *session.Request) (session.Reply, error) {
	if err := l.Cause(); err != nil {
		return session.Reply{}, &session.NotSentError{Cause: err}
	}
	switch r.Method {
	case mcp.Initialize:
		return l.answerInitialize(ctx, r)
	case mcp.Ping:
		return emptyReply(), nil
	case mcp.SetLevel:
		return l.answerSetLevel(r), nil
	case mcp.Subscribe, mcp.Unsubscribe:
		uri, ok := wirejson.String(wirejson.Find(r.Params, "uri"))
		if !ok {
			return invalidParamsReply("params.uri must be a string"), nil
		}
		if !l.setSubscription(uri, r.Method == mcp.Subscribe) {
			return invalidParamsReply("there are too many subscriptions"), nil
		}
		return emptyReply(), nil
	case mcp.Discover, mcp.Listen:
		return unknownMethodReply(r.Method, ""), nil
	}
	if strings.HasPrefix(r.Method, mcp.Tasks) { // tasks differ between the protocols
		return unknownMethodReply(r.Method, ""), nil
	}
	return l.requestWithInputs(ctx, r)
}

// answerInitialize responds with the server's handshake result.
func (l *legacyClientBridge) answerInitialize(ctx context.Context, r *session.Request) (session.Reply, error) {
	c, err := l.sv.WaitReady(ctx)
	if err != nil {
		return session.Reply{}, err
	}
	if !c.IsModern() {
		return session.Reply{}, &session.NotSentError{Cause: errServerChanged}
	}
	l.info.capabilities = mcp.RemoveTasksFromCapabilities(cloneObjectOrEmpty(wirejson.Find(r.Params, "capabilities")))
	l.info.client = cloneObjectOrEmpty(wirejson.Find(r.Params, "clientInfo"))
	version, _ := wirejson.String(wirejson.Find(r.Params, "protocolVersion"))
	if !mcp.IsLegacyVersion(version) {
		version = mcp.Legacy
	}
	g := c.HandshakeResult()
	info := g.Info
	if wirejson.Kind(info) != '{' {
		info = newJSONObject(jsonField{"name", encodeJSONString(l.sv.Spec.Name)}, jsonField{"version", encodeJSONString("unknown")})
	}
	capabilities := mcp.RemoveTasksFromCapabilities(cloneObjectOrEmpty(g.Capabilities))
	return session.Reply{Result: newJSONObject(jsonField{"protocolVersion", encodeJSONString(version)}, jsonField{"capabilities", capabilities}, jsonField{"serverInfo", info}, instructionsField(g))}, nil
}

// answerSetLevel stores the log level, which modern requests carry as metadata.
func (l *legacyClientBridge) answerSetLevel(r *session.Request) session.Reply {
	level := wirejson.Find(r.Params, "level")
	text, _ := wirejson.String(level)
	if mcp.LogLevelRank(text) < 0 {
		return invalidParamsReply("params.level is not a log level")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.level = bytes.Clone(level)
	return emptyReply()
}

// Bounds on the input rounds of a request.
const (
	maxInputRounds               = 50 // rounds within one request
	minRetryDelay, maxRetryDelay = 100 * time.Millisecond, 5 * time.Second
	maxInputsPerAnswer           = 100
)

func (l *legacyClientBridge) setSubscription(uri string, on bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.resources.setSubscribed(uri, on) {
		return false
	}
	close(l.subscribed)
	l.subscribed = make(chan struct{})
	return true
}

// requestWithInputs sends the request until the server answers it, and asks the client in
// between.
func (l *legacyClientBridge) requestWithInputs(ctx context.Context, r *session.Request) (session.Reply, error) {
	params := l.toModernParams(r.Params)
	shed := minRetryDelay
	for round := range maxInputRounds {
		reply, err := l.sendModernRequest(ctx, r, params, round > 0)
		if err != nil || reply.Error != nil || !isInputRequired(reply.Result) {
			return reply, err
		}
		inputs := wirejson.Find(reply.Result, "inputRequests")
		answers, failure, err := l.askForInputs(ctx, r, inputs)
		if err != nil || failure != nil {
			return session.Reply{Error: failure}, err
		}
		params = l.toModernParams(r.Params)
		if answers != nil {
			params = wirejson.SetMember(params, "inputResponses", answers)
		} else if err := sleepContext(ctx, shed); err != nil { // the server only asks to retry
			return session.Reply{}, err
		} else {
			shed = min(2*shed, maxRetryDelay)
		}
		if state := wirejson.Find(reply.Result, "requestState"); state != nil {
			params = wirejson.SetMember(params, "requestState", state)
		}
	}
	return internalErrorReply("the server asks for input without end"), nil
}

func isInputRequired(result json.RawMessage) bool {
	if !bytes.Contains(result, []byte("input_required")) {
		return false
	}
	kind, _ := wirejson.String(wirejson.Find(result, "resultType"))
	return kind == "input_required"
}

// toModernParams returns the params with the metadata of a modern request.
func (l *legacyClientBridge) toModernParams(params json.RawMessage) json.RawMessage {
	l.mu.Lock()
	level := l.level
	l.mu.Unlock()
	meta := cloneObjectOrEmpty(wirejson.Find(params, "_meta"))
	meta = wirejson.SetMember(meta, mcp.MetaVersion, json.RawMessage(`"`+mcp.Modern+`"`))
	meta = wirejson.SetMember(meta, mcp.MetaCapabilities, l.info.capabilities)
	meta = wirejson.SetMember(meta, mcp.MetaClientInfo, l.info.client)
	if level != nil {
		meta = wirejson.SetMember(meta, mcp.MetaLogLevel, level)
	}
	return wirejson.SetMember(wirejson.DropMember(params, "task"), "_meta", meta)
}

// sendModernRequest sends one round. Before each round except the first, the client may have taken a long time to
// answer. This counts as a wait.
func (l *legacyClientBridge) sendModernRequest(ctx context.Context, r *session.Request, params json.RawMessage, waited bool) (session.Reply, error) {
	q := session.Request{ID: l.sv.NextID(), Method: r.Method, Params: params, Say: r.Say, Permit: r.Permit}
	return l.sv.SendWhenReady(ctx, &q, func(c *upstream.Connection) (session.Reply, error) {
		if !c.IsModern() { // the server has been replaced
			l.Signal(transport.ErrSessionGone)
			return session.Reply{}, l.sv.SessionEndedError(l.Cause())
		}
		if waited {
			if err := l.sv.RecheckDecision(ctx, c, &q); err != nil {
				return session.Reply{}, err
			}
		}
		reply, err := c.Do(ctx, &q)
		reply.Status = 0 // the status belongs to the other protocol
		return reply, err
	})
}

// askForInputs asks the client for all inputs that the server requires. It returns the answers as an object, or nil if
// there are none.
func (l *legacyClientBridge) askForInputs(ctx context.Context, r *session.Request, inputs json.RawMessage) (answers json.RawMessage, failure *wirejson.RPCError, err error) {
	var wanted map[string]struct {
		Method string
		Params json.RawMessage
	}
	if inputs == nil || json.Unmarshal(inputs, &wanted) != nil || len(wanted) == 0 {
		return nil, nil, nil
	}
	if len(wanted) > maxInputsPerAnswer || r.Say == nil {
		return nil, &wirejson.RPCError{Code: wirejson.CodeInternal,
			Message: "the server wants input, but this client has no event stream, so MCPProxy cannot ask it"}, nil
	}
	given := make([]jsonField, 0, len(wanted))
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		answer, err := l.askClient(ctx, r, wanted[key].Method, wanted[key].Params)
		if err != nil {
			return nil, nil, err
		}
		if answer.Error != nil {
			return nil, answer.Error, nil
		}
		given = append(given, jsonField{key, answer.Result})
	}
	return newJSONObject(given...), nil, nil
}

// askClient sends the client one request in the stream of r, and waits for the response.
func (l *legacyClientBridge) askClient(ctx context.Context, r *session.Request, method string, params json.RawMessage) (session.Reply, error) {
	l.mu.Lock()
	l.ids++
	id := json.RawMessage(`"input-` + strconv.FormatUint(l.ids, 10) + `"`)
	l.mu.Unlock()
	answer, forget := l.questions.Register(id)
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

// AnswerServerQuestion receives the client's response.
func (l *legacyClientBridge) AnswerServerQuestion(_ context.Context, id json.RawMessage, r session.Reply) error {
	l.questions.DeliverAnswer(id, r)
	return l.Cause()
}

// Listen subscribes to all notifications of the server, and again whenever the client's
// resource subscriptions change.
func (l *legacyClientBridge) Listen(ctx context.Context, say func(session.Event), opened func()) error {
	opened()
	for pauseTime := transport.MinListenPause; ; {
		l.mu.Lock()
		changed := l.subscribed
		uris := slices.Sorted(maps.Keys(l.resources))
		l.mu.Unlock()
		again, err := l.holdSubscription(ctx, uris, changed, say)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case l.Cause() != nil:
			return l.Cause()
		case again:
			pauseTime = transport.MinListenPause
			continue
		case err == nil: // the server has no notifications
			select {
			case <-changed:
			case <-ctx.Done():
			case <-l.Done():
			}
			continue
		}
		_ = sleepContext(ctx, pauseTime) // the loop checks ctx
		pauseTime = min(2*pauseTime, transport.MaxListenPause)
	}
}

// holdSubscription holds one subscription. If again is true, the subscription ended because the client's subscriptions
// changed. If again is false and err is nil, the server rejected it.
func (l *legacyClientBridge) holdSubscription(ctx context.Context, uris []string, changed <-chan struct{}, say func(session.Event)) (again bool, err error) {
	lctx, stop := session.WithDoneChannels(ctx, changed, l.Done())
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
	reply, err := l.sendModernRequest(lctx, r, l.toModernParams(append(params, "}}"...)), false)
	again = lctx.Err() != nil && ctx.Err() == nil
	switch {
	case err != nil:
		return again, err
	case reply.Error == nil: // it ended normally and is renewed
		return again, transport.ErrNoAnswer
	}
	return again, nil
}
