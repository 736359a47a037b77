package compat

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/transport"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/upstream"
)

// startRequest starts a request in an exclusive session.
func (m *modernClientBridge) startRequest(ctx context.Context, c *upstream.Connection, r *session.Request) (*heldRequest, error) {
	a := parseRequestMeta(r.Params)
	quiet := ""
	switch {
	case allowsServerRequests(r.Method):
	case strings.HasSuffix(r.Method, "/list") && a.canBeAsked():
		quiet = "\x00quiet" // its questions are rejected, so no call may use it
	default:
		a.capabilities = json.RawMessage("{}")
	}
	h := &heldRequest{method: r.Method, params: bytes.Clone(r.Params), principal: callerPrincipal(r), noQuestions: quiet != "", declared: a.capabilities, greeting: c.HandshakeResult(),
		logs: a.level != "", token: bytes.Clone(transport.ProgressTokenOf(r.Params)), done: make(chan struct{}), queued: session.EventQueue{Max: maxQueuedEvents, Bytes: maxQueuedBytes}, asked: map[string]session.Event{}, arrived: make(chan struct{}, 1)}
	key := h.principal + "\x00" + string(a.info) + "\x00" + string(a.capabilities) + quiet
	s, err := m.takeOrOpenSession(ctx, c, key, a, !h.noQuestions, false)
	if err != nil {
		return nil, err
	}
	h.session = s
	if a.level != "" && s.level != a.level && bytes.Contains(h.greeting.Capabilities, []byte(`"logging"`)) {
		if _, err := s.sendToPeer(ctx, &session.Request{ID: m.sv.NextID(), Method: mcp.SetLevel, Params: newJSONObject(jsonField{"level", encodeJSONString(a.level)})}); err != nil {
			s.Close()
			return nil, err
		}
		s.level = a.level
	}
	err = m.sv.RecheckDecision(ctx, c, r) // it may have waited for the session
	if err == nil && s.own != nil {
		err = s.own.rejectCallOfChangedTool(ctx, c, r)
	}
	if err != nil {
		m.sessions.addToPool(s)
		return nil, err
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	h.cancel = cancel
	sent := bytes.Clone(a.params)
	if h.token != nil {
		h.sentToken = m.sv.NextID()
		sent = wirejson.SetMember(sent, "_meta", wirejson.SetMember(wirejson.Find(sent, "_meta"), "progressToken", h.sentToken))
	}
	q := &session.Request{ID: m.sv.NextID(), Method: r.Method, Params: sent, Say: func(e session.Event) { h.receiveEvent(run, e) }}
	m.wg.Go(func() {
		defer close(h.done)
		h.reply, h.err = s.runDetached(run, c, q)
	})
	return h, nil
}

// runDetached runs a request that may outlive the HTTP exchange it arrived in. Requests
// that the server sent before, at the start of a process, are delivered now.
func (s *Session) runDetached(ctx context.Context, c *upstream.Connection, q *session.Request) (session.Reply, error) {
	s.beginUse()
	defer s.endUse()
	if client, ok := s.sessionPeer.(*sharedClient); ok { // on the connection of the decision
		return client.sendOnSharedConnection(ctx, c, q)
	}
	if s.queued == nil {
		return s.sessionPeer.Do(ctx, q)
	}
	ended := make(chan struct{})
	rctx, stop := context.WithCancel(ctx)
	go func() {
		defer close(ended)
		_ = s.queued.PassEvents(rctx, s.Done(), q.Say, func() {}, s.Cause) // the request reports why it ends
	}()
	reply, err := s.sessionPeer.Do(ctx, q)
	stop()
	<-ended
	for _, e := range s.queued.TakeAll() { // sent before the response
		q.Say(e)
	}
	return reply, err
}

// receiveEvent receives the server's messages while the request runs, until run ends.
func (h *heldRequest) receiveEvent(run context.Context, e session.Event) {
	if e.ID != nil {
		if h.noQuestions || !declaresQuestion(h.declared, e.Method) || !h.addServerRequest(e) {
			h.session.rejectServerRequest(run, &e)
		}
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.ownsNotification(&e):
		if e.Method == mcp.Progress {
			e.Params = wirejson.SetMember(e.Params, "progressToken", h.token)
		}
		if h.emit != nil {
			h.emit(e)
		} else {
			h.queued.Put(e.Clone())
		}
	case e.Method == mcp.Cancelled: // the server has withdrawn its request
		id := wirejson.Find(e.Params, "requestId")
		maps.DeleteFunc(h.asked, func(_ string, asked session.Event) bool { return transport.EqualIDs(id, asked.ID) })
	}
}

// declaresAnyQuestion reports whether these capabilities allow any server requests.
func declaresAnyQuestion(capabilities json.RawMessage) bool {
	return declaresQuestion(capabilities, mcp.Elicit) || declaresQuestion(capabilities, mcp.CreateMessage) || declaresQuestion(capabilities, mcp.ListRoots)
}

// declaresQuestion reports whether these capabilities allow server requests with this method.
func declaresQuestion(capabilities json.RawMessage, method string) bool {
	capability := mcp.QuestionCapability(method)
	return capability != "" && wirejson.Kind(wirejson.Find(capabilities, capability)) == '{'
}

// addServerRequest stores a server's request, and reports whether there is room for it.
func (h *heldRequest) addServerRequest(e session.Event) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.asked) >= maxQuestions {
		return false
	}
	h.asks++
	h.asked["input-"+strconv.Itoa(h.asks)] = e.Clone()
	select {
	case h.arrived <- struct{}{}:
	default:
	}
	return true
}

// ownsNotification reports whether a notification belongs to the request: only those go to its
// stream. Change notifications go to subscriptions; the modern protocol has no others.
func (h *heldRequest) ownsNotification(e *session.Event) bool {
	switch e.Method {
	case mcp.LogMessage:
		return h.logs
	case mcp.Progress:
		return h.token != nil && transport.EqualIDs(wirejson.Find(e.Params, "progressToken"), h.sentToken)
	case mcp.Cancelled, mcp.ToolsChanged, mcp.PromptsChanged, mcp.ResourcesChanged, mcp.ResourceUpdated,
		mcp.Elicited, mcp.Acknowledged:
		return false
	}
	return !strings.HasPrefix(e.Method, mcp.TaskNotifications)
}

// setListener sets the receiver of the request's notifications.
func (h *heldRequest) setListener(say func(session.Event)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.emit = say
	if say == nil {
		return
	}
	for _, e := range h.queued.TakeAll() {
		say(e)
	}
}

// awaitReply waits until the server has responded or sent a request.
func (m *modernClientBridge) awaitReply(ctx context.Context, h *heldRequest, r *session.Request) (session.Reply, error) {
	h.setListener(r.Say)
	defer h.setListener(nil)
	for {
		select {
		case <-h.done:
			return m.toModernReply(h)
		case <-h.arrived:
			if h.needsAnswers() {
				return m.holdRequest(h)
			}
		case <-ctx.Done():
			h.cancel()
			<-h.done
			h.session.Close()
			return session.Reply{}, ctx.Err()
		}
	}
}

// needsAnswers reports whether the server waits for answers.
func (h *heldRequest) needsAnswers() bool {
	select {
	case <-h.done:
		return false
	default:
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.asked) > 0
}

// toModernReply returns the response in the modern protocol.
func (m *modernClientBridge) toModernReply(h *heldRequest) (session.Reply, error) {
	h.cancel()
	var status *transport.StatusError
	switch {
	case errors.As(h.err, &status) && status.Status == http.StatusBadRequest && !isAllowedLegacyMethod(h.method):
		// Legacy servers reject unknown methods with HTTP statuses.
		m.sessions.addToPool(h.session)
		return unknownMethodReply(h.method, ""), nil
	case h.err != nil && !errors.Is(h.err, transport.ErrNoMessage): // ErrNoMessage means that the server has sent everything
		h.session.Close()
		return session.Reply{}, h.err
	}
	m.sessions.addToPool(h.session)
	switch {
	case h.err != nil:
		return session.Reply{}, h.err
	case h.reply.Error != nil:
		return session.Reply{Error: toModernError(h.reply.Error)}, nil
	}
	return session.Reply{Result: toModernResult(h.method, h.reply.Result, h.greeting)}, nil
}

// holdRequest holds the request until the client returns, and sends the server's requests to the client. The state for
// the client is random and valid once.
func (m *modernClientBridge) holdRequest(h *heldRequest) (session.Reply, error) {
	state := rand.Text()
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.held) >= maxHeld {
		h.cancel()
		h.session.Close()
		return internalErrorReply("too many requests wait for input"), nil
	}
	if m.held == nil {
		m.held = map[string]*heldRequest{}
	}
	m.held[state] = h
	h.expire = time.AfterFunc(heldTimeout, func() { m.expireHeldRequest(state) })
	h.mu.Lock()
	defer h.mu.Unlock()
	inputs := make([]jsonField, 0, len(h.asked))
	for key, e := range h.asked {
		params := e.Params
		if params == nil {
			params = json.RawMessage("{}") // modern clients fail on missing params
		}
		inputs = append(inputs, jsonField{key, newJSONObject(jsonField{"method", encodeJSONString(e.Method)}, jsonField{"params", params})})
	}
	return session.Reply{Result: newJSONObject(jsonField{"resultType", encodeJSONString("input_required")}, jsonField{"inputRequests", newJSONObject(inputs...)}, jsonField{"requestState", encodeJSONString(state)})}, nil
}

// expireHeldRequest ends a held request to which no client returned.
func (m *modernClientBridge) expireHeldRequest(state string) {
	m.mu.Lock()
	h := m.held[state]
	delete(m.held, state)
	m.mu.Unlock()
	if h != nil {
		h.cancel()
		h.session.Close()
	}
}

// takeHeldRequest returns the held request of a state if the request and its principal match, and nil otherwise.
func (m *modernClientBridge) takeHeldRequest(state json.RawMessage, r *session.Request) *heldRequest {
	text, _ := wirejson.String(state)
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.held[text]
	if h == nil || h.principal != callerPrincipal(r) || h.method != r.Method || !isSameRequest(h.params, r.Params) {
		return nil
	}
	delete(m.held, text)
	h.expire.Stop()
	return h
}

// resumeHeldRequest forwards the client's answers to the server, and waits again. Unanswered
// questions are asked again.
func (m *modernClientBridge) resumeHeldRequest(ctx context.Context, h *heldRequest, r *session.Request) (session.Reply, error) {
	responses := wirejson.Find(r.Params, "inputResponses")
	h.setListener(r.Say)
	h.mu.Lock()
	answers := map[string]json.RawMessage{}
	for key, e := range h.asked {
		if answer := wirejson.Find(responses, key); wirejson.Kind(answer) == '{' {
			answers[string(e.ID)] = answer
			delete(h.asked, key)
		}
	}
	left := len(h.asked)
	h.mu.Unlock()
	for id, answer := range answers {
		if err := h.session.sessionPeer.AnswerServerQuestion(ctx, json.RawMessage(id), session.Reply{Result: answer}); err != nil {
			h.cancel()
			h.session.Close()
			return session.Reply{}, err
		}
	}
	if left > 0 {
		h.setListener(nil)
		return m.holdRequest(h)
	}
	return m.awaitReply(ctx, h, r)
}
