package compat

import (
	"context"
	"encoding/json"
	"strings"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/transport"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/upstream"
)

func newSharedClient(sh *sharedConnection) *sharedClient {
	return &sharedClient{EndSignal: session.NewEndSignal(), sharing: sh, uris: resourceSubscriptions{},
		inbox: session.EventQueue{Max: maxQueuedEvents, Bytes: maxQueuedBytes, DropOldest: true, Unique: true}}
}

// Stop removes the client; subscriptions that only it had are ended at the server.
func (l *sharedClient) Stop(<-chan struct{}) {
	l.Signal(transport.ErrStopped)
	l.sharing.removeClient(l)
}

// NotifyServer forwards notifications that are not about the client's session.
func (l *sharedClient) NotifyServer(ctx context.Context, method string, params json.RawMessage) error {
	switch method {
	case mcp.Initialized, mcp.Cancelled, mcp.Progress, mcp.RootsChanged:
		return l.Cause()
	}
	c, err := l.sharing.sv.WaitReady(ctx)
	if err == nil && l.Cause() != nil { // checked last: moveClientsToConnection has decided by now which clients continue
		err = &session.NotSentError{Cause: l.Cause()}
	}
	if err != nil {
		return err
	}
	return c.Notify(ctx, method, params)
}

// Do sends a request. It retries on a new connection if the server has certainly not executed the request.
func (l *sharedClient) Do(ctx context.Context, r *session.Request) (session.Reply, error) {
	if r.Method == mcp.Ping { // about the client's connection, which is with MCPProxy
		return emptyReply(), l.Cause()
	}
	if !l.beginRequest() {
		return session.Reply{}, l.sharing.sv.SessionEndedBeforeSendError(l.Cause())
	}
	defer l.endRequest()
	return l.sharing.sv.SendWhenReady(ctx, r, func(c *upstream.Connection) (session.Reply, error) {
		reply, err := l.answerOnConnection(ctx, c, r)
		if cause := l.Cause(); err != nil && cause != nil && ctx.Err() == nil {
			err = l.sharing.sv.SessionEndedError(cause)
		}
		return reply, err
	})
}

func (l *sharedClient) answerOnConnection(ctx context.Context, c *upstream.Connection, r *session.Request) (session.Reply, error) {
	if err := l.Cause(); err != nil { // checked now: moveClientsToConnection has decided by now which clients continue
		return session.Reply{}, &session.NotSentError{Cause: err}
	}
	switch r.Method {
	case mcp.Initialize:
		return l.answerInitialize(c, r)
	case mcp.SetLevel:
		return l.updateLogLevel(ctx, c, r)
	case mcp.Subscribe, mcp.Unsubscribe:
		return l.changeSubscription(ctx, c, r)
	}
	if strings.HasPrefix(r.Method, mcp.Tasks) {
		return unknownMethodReply(r.Method, " (the clients of this server share one session, which does not support tasks)"), nil
	}
	return l.sendOnSharedConnection(ctx, c, r)
}

// sendOnSharedConnection sends a request on the shared connection.
func (l *sharedClient) sendOnSharedConnection(ctx context.Context, c *upstream.Connection, r *session.Request) (session.Reply, error) {
	q := *r
	q.Owner, q.Headers = &l.owner, nil
	if r.Method == mcp.CallTool {
		q.Params = wirejson.DropMember(r.Params, "task") // as if the server did not declare tasks
	}
	if r.Say != nil {
		q.Say = func(e session.Event) {
			switch {
			case e.ID != nil:
				l.askClient(ctx, c, &q, e, r.Say)
			case e.Method == mcp.Cancelled:
				l.questions.withdraw(c, e, r.Say)
			case e.Method != mcp.LogMessage || l.wantsLogMessage(e.Params):
				r.Say(e)
			}
		}
		defer l.questions.forget(&q)
	}
	return c.Do(ctx, &q)
}

// wantsLogMessage reports whether a log message has a level that the client wants. The
// server sends the most verbose level of all clients.
func (l *sharedClient) wantsLogMessage(params json.RawMessage) bool {
	l.sharing.mu.Lock()
	wanted := l.level
	l.sharing.mu.Unlock()
	said, _ := wirejson.String(wirejson.Find(params, "level"))
	return wanted == "" || mcp.LogLevelRank(said) < 0 || moreVerboseLevel(wanted, said) == wanted
}

// answerInitialize responds with the server's result for MCPProxy.
func (l *sharedClient) answerInitialize(c *upstream.Connection, r *session.Request) (session.Reply, error) {
	if c.IsModern() {
		return session.Reply{}, &session.NotSentError{Cause: errServerChanged}
	}
	g := c.HandshakeResult()
	l.handshake = g
	l.questions.setCapabilities(wirejson.Find(r.Params, "capabilities"))
	if !l.sharing.addClient(l, c) {
		return session.Reply{}, &session.NotSentError{Cause: transport.ErrStopped}
	}
	version := mcp.ReplaceDraftVersion(g.Version)
	if asked, _ := wirejson.String(wirejson.Find(r.Params, "protocolVersion")); mcp.IsLegacyVersion(asked) && asked < version {
		version = asked // clients ignore members of later versions
	}
	result := wirejson.SetMember(g.Raw, "protocolVersion", json.RawMessage(`"`+version+`"`))
	if wirejson.Find(g.Capabilities, "tasks") != nil {
		result = wirejson.SetMember(result, "capabilities", wirejson.DropMember(g.Capabilities, "tasks"))
	}
	return session.Reply{Result: result}, nil
}

// updateLogLevel stores the client's log level, and changes the server's if that differs.
func (l *sharedClient) updateLogLevel(ctx context.Context, c *upstream.Connection, r *session.Request) (session.Reply, error) {
	level, _ := wirejson.String(wirejson.Find(r.Params, "level"))
	if mcp.LogLevelRank(level) < 0 {
		return invalidParamsReply("params.level is not a log level"), nil
	}
	sh := l.sharing
	if err := sh.lockSettings(ctx, c); err != nil {
		return session.Reply{}, err
	}
	defer sh.unlockSettings()
	before := l.swapLogLevel(level)
	reply := emptyReply()
	wanted, _ := sh.wantedLevelAndSubscriptions()
	if wanted == sh.sent.level {
		return reply, nil
	}
	told := *r
	told.Params = wirejson.SetMember(r.Params, "level", encodeJSONString(wanted))
	reply, err := l.sendOnSharedConnection(ctx, c, &told)
	if err != nil || reply.Error != nil {
		l.swapLogLevel(before)
		if err != nil { // the server's level is unknown
			sh.sent.level = ""
			sh.markSettingsUnknown()
		}
		return reply, err
	}
	sh.sent.level = wanted
	return reply, nil
}

// swapLogLevel sets the client's level and returns the previous one.
func (l *sharedClient) swapLogLevel(level string) (before string) {
	l.sharing.mu.Lock()
	defer l.sharing.mu.Unlock()
	before, l.level = l.level, level
	return before
}

// changeSubscription subscribes the client to a resource, or unsubscribes it. The server gets the
// request of the first client and of the last one.
func (l *sharedClient) changeSubscription(ctx context.Context, c *upstream.Connection, r *session.Request) (session.Reply, error) {
	uri, ok := wirejson.String(wirejson.Find(r.Params, "uri"))
	if !ok {
		return invalidParamsReply("params.uri must be a string"), nil
	}
	sh, on := l.sharing, r.Method == mcp.Subscribe
	if err := sh.lockSettings(ctx, c); err != nil {
		return session.Reply{}, err
	}
	defer sh.unlockSettings()
	_, before := sh.wantedLevelAndSubscriptions()
	if !l.setSubscription(uri, on) {
		return invalidParamsReply("there are too many subscriptions"), nil
	}
	if _, uris := sh.wantedLevelAndSubscriptions(); uris[uri] == sh.sent.uris[uri] {
		return emptyReply(), nil
	}
	sh.sent.uris[uri] = true // until the outcome is known
	reply, err := l.sendOnSharedConnection(ctx, c, r)
	switch {
	case err != nil:
		if on {
			l.setSubscription(uri, false)
		}
		sh.markSettingsUnknown()
	case on && reply.Error != nil:
		l.setSubscription(uri, false)
		delete(sh.sent.uris, uri)
	case !on:
		delete(sh.sent.uris, uri)
	case before[uri]: // subscribed on an earlier connection; it may have changed since
		sh.deliverToClients(mcp.ResourceUpdated, resourceParams(uri))
	}
	return reply, err
}

// setSubscription adds or removes a subscription; false when there are too many.
func (l *sharedClient) setSubscription(uri string, on bool) bool {
	l.sharing.mu.Lock()
	defer l.sharing.mu.Unlock()
	return l.uris.setSubscribed(uri, on)
}

// Listen delivers messages that belong to no request.
func (l *sharedClient) Listen(ctx context.Context, say func(session.Event), opened func()) error {
	return l.inbox.PassEvents(ctx, l.Done(), say, opened, l.Cause)
}
