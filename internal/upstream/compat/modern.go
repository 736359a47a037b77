package compat

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/transport"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/upstream"
)

// modernClientBridge serves modern clients on a legacy server. Each request uses a session exclusively while it runs,
// so that everything the server sends belongs to that request. It is a session of the server unless clients share the
// connection. When the server sends a request, the client gets a result that asks it to retry with the answer. Until
// then, the server's request is held.
type modernClientBridge struct {
	sv       *upstream.Server
	sessions *sessionSet

	mu   sync.Mutex              // guards the fields below
	held map[string]*heldRequest // by the state that the client has to send
	wg   sync.WaitGroup          // of running requests
}

// heldRequest is a request in progress at a legacy server.
type heldRequest struct {
	method      string
	params      json.RawMessage // of the first attempt
	principal   string          // of the first attempt
	session     *Session
	greeting    *upstream.HandshakeResult
	logs        bool            // the client wants log messages
	token       json.RawMessage // the client's progress token; nil: no progress wanted
	sentToken   json.RawMessage // sent instead of token: an earlier request in the session may have used the same token and be reported late
	declared    json.RawMessage // capabilities of the client
	noQuestions bool            // the server may not send requests
	cancel      context.CancelFunc
	expire      *time.Timer
	done        chan struct{} // closed when reply and err are set
	reply       session.Reply
	err         error

	mu      sync.Mutex // guards the fields below, and orders events
	emit    func(session.Event)
	queued  session.EventQueue       // while the client is away
	asked   map[string]session.Event // by the key for the client
	asks    int
	arrived chan struct{} // cap 1: the server sent a request
}

// Bounds on held requests.
const (
	maxHeld      = 1000
	heldTimeout  = 5 * time.Minute
	maxQuestions = 100
)

// handleRequest answers a request on behalf of a legacy server.
func (m *modernClientBridge) handleRequest(ctx context.Context, c *upstream.Connection, r *session.Request) (session.Reply, error) {
	switch r.Method {
	case mcp.Discover:
		return session.Reply{Result: newDiscoverResult(c.HandshakeResult())}, nil
	case mcp.Listen:
		return m.holdSubscription(ctx, c, r)
	case mcp.Initialize, mcp.Ping, mcp.SetLevel, mcp.Subscribe, mcp.Unsubscribe:
		return unknownMethodReply(r.Method, ""), nil
	}
	if strings.HasPrefix(r.Method, mcp.Tasks) { // tasks differ between the protocols
		return unknownMethodReply(r.Method, ""), nil
	}
	if state := wirejson.Find(r.Params, "requestState"); state != nil {
		h := m.takeHeldRequest(state, r)
		if h == nil {
			return invalidParamsReply("requestState is unknown, expired or already used"), nil
		}
		return m.resumeHeldRequest(ctx, h, r)
	}
	h, err := m.startRequest(ctx, c, r)
	if err != nil {
		return session.Reply{}, err
	}
	return m.awaitReply(ctx, h, r)
}

// takeOrOpenSession returns an unused session with the client's capabilities: one pooled for key, or a new one.
// addToPool returns it to the pool. asks is true if the server may send requests to the client, and listens if the
// session is for a subscription.
func (m *modernClientBridge) takeOrOpenSession(ctx context.Context, c *upstream.Connection, key string, a requestMeta, asks, listens bool) (*Session, error) {
	if s := m.sessions.takePooled(key); s != nil {
		return s, nil
	}
	info := a.info
	if wirejson.Kind(info) != '{' {
		info = newJSONObject(jsonField{"name", encodeJSONString("mcpproxy")}, jsonField{"version", encodeJSONString(m.sv.ClientVersion)})
	}
	params := newJSONObject(jsonField{"protocolVersion", encodeJSONString(mcp.Legacy)}, jsonField{"capabilities", a.capabilities}, jsonField{"clientInfo", info})
	w := kindOwn
	// A request declares its own capabilities, and over HTTP a session with them costs no process.
	if m.sv.IsShared() || m.sv.Spec.Auto && m.sv.Spec.Transport == upstream.Stdio && !m.sv.NeedsOwnSession(c, a.capabilities, false) {
		w = kindShared
	}
	s, reply, err := m.sessions.openSessionOfKind(ctx, &session.Request{ID: m.sv.NextID(), Method: mcp.Initialize, Params: params}, w)
	switch {
	case err != nil:
		return nil, err
	case s == nil:
		return nil, &transport.ServerRPCError{Code: reply.Error.Code}
	}
	s.key = key
	if err := s.notifyPeer(ctx, mcp.Initialized, nil); err != nil && s.Cause() != nil {
		s.Close()
		return nil, err
	}
	// On stdio requests always arrive; over HTTP they need an open stream.
	asked := asks && a.canBeAsked()
	if pipe := m.sv.Spec.Transport == upstream.Stdio || m.sv.UsesSSE(); s.own != nil && (asked || pipe && !listens) {
		s.queued = &session.EventQueue{Max: maxQueuedEvents, Bytes: maxQueuedBytes, DropOldest: true}
		m.keepStreamOpen(ctx, s)
	}
	return s, nil
}

// keepStreamOpen keeps the stream open on which servers may send requests. It waits briefly until the stream is open, because
// earlier messages may be lost.
func (m *modernClientBridge) keepStreamOpen(ctx context.Context, s *Session) {
	opened := make(chan struct{})
	open := sync.OnceFunc(func() { close(opened) })
	m.wg.Go(func() {
		defer open()
		run, stop := session.WithDoneChannels(context.WithoutCancel(ctx), s.Done(), nil)
		defer stop()
		for {
			err := s.sessionPeer.Listen(run, func(e session.Event) {
				if !s.queued.Put(e.Clone()) && e.ID != nil {
					s.rejectServerRequest(run, &e)
				}
			}, open)
			var refused *transport.StatusError
			if run.Err() != nil || errors.As(err, &refused) && !refused.Temporary() || sleepContext(run, transport.MinListenPause) != nil {
				return
			}
		}
	})
	limit := time.NewTimer(transport.AttendTime)
	defer limit.Stop()
	select {
	case <-opened:
	case <-limit.C:
	case <-ctx.Done():
	}
}

// rejectServerRequest rejects a server's request that the client does not get.
func (s *Session) rejectServerRequest(ctx context.Context, e *session.Event) {
	reply := session.Reply{Error: transport.CannotAsk}
	if e.Method == mcp.Ping {
		reply = emptyReply()
	}
	_ = s.sessionPeer.AnswerServerQuestion(ctx, e.ID, reply) // a lost link ends the request itself
}

// endHeldRequests ends all held requests.
func (m *modernClientBridge) endHeldRequests() {
	m.mu.Lock()
	for state, h := range m.held {
		delete(m.held, state)
		h.expire.Stop()
		h.cancel()
	}
	m.mu.Unlock()
	m.wg.Wait()
}
