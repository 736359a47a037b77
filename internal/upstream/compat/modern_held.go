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

// start starts a request in a session that it has for itself.
func (m *modern) start(ctx context.Context, c *upstream.Connection, r *session.Request) (*held, error) {
	a := aboutOf(r.Params)
	quiet := ""
	switch {
	case mayAsk(r.Method):
	case strings.HasSuffix(r.Method, "/list") && a.canAsk():
		quiet = "\x00quiet" // what is refused in this session no call is to go without
	default:
		a.capabilities = json.RawMessage("{}")
	}
	h := &held{method: r.Method, params: bytes.Clone(r.Params), principal: principal(r), quiet: quiet != "", greeting: c.Greeting(),
		logs: a.level != "", token: bytes.Clone(transport.ProgressToken(r.Params)), done: make(chan struct{}), kept: session.Queue{Max: maxKept, Bytes: maxKeptBytes}, asked: map[string]session.Event{}, arrived: make(chan struct{}, 1)}
	key := h.principal + "\x00" + string(a.info) + "\x00" + string(a.capabilities) + quiet
	s, err := m.checkout(ctx, key, a, !h.quiet, false)
	if err != nil {
		return nil, err
	}
	h.session = s
	if a.level != "" && s.level != a.level && bytes.Contains(h.greeting.Capabilities, []byte(`"logging"`)) {
		if _, err := s.send(ctx, &session.Request{ID: m.sv.NextID(), Method: mcp.SetLevel, Params: object(field{"level", text(a.level)})}); err != nil {
			s.Close()
			return nil, err
		}
		s.level = a.level
	}
	err = m.sv.Recheck(ctx, c, r) // it may have waited for the session
	if err == nil && s.own != nil {
		err = s.own.admit(ctx, c, r)
	}
	if err != nil {
		m.sessions.keep(s)
		return nil, err
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	h.cancel = cancel
	q := &session.Request{ID: m.sv.NextID(), Method: r.Method, Params: bytes.Clone(a.params), Say: func(e session.Event) { h.event(run, e) }}
	m.wg.Go(func() {
		defer close(h.done)
		h.reply, h.err = s.pass(run, c, q)
	})
	return h, nil
}

// pass runs a request that may outlive the exchange it came by. What the server
// has asked before it, at the start of a process, is asked now.
func (s *Session) pass(ctx context.Context, c *upstream.Connection, q *session.Request) (session.Reply, error) {
	s.enter()
	defer s.leave()
	if client, ok := s.peer.(*sharedClient); ok { // on the connection on which a call was judged
		return client.send(ctx, c, q)
	}
	if s.said == nil {
		return s.peer.Do(ctx, q)
	}
	ended := make(chan struct{})
	rctx, stop := context.WithCancel(ctx)
	go func() {
		defer close(ended)
		_ = s.said.Read(rctx, s.Done(), q.Say, func() {}, s.Cause) // the request itself says why it ends
	}()
	reply, err := s.peer.Do(ctx, q)
	stop()
	<-ended
	for _, e := range s.said.Take() { // said before the answer
		q.Say(e)
	}
	return reply, err
}

// event takes what the server says while the request runs, as long as run.
func (h *held) event(run context.Context, e session.Event) {
	if e.ID != nil {
		if e.Method == mcp.Ping || h.quiet || !h.ask(e) {
			h.session.refuse(run, &e)
		}
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.isAbout(&e):
		if h.say != nil {
			h.say(e)
		} else {
			h.kept.Put(e.Clone())
		}
	case e.Method == mcp.Cancelled: // the server no longer wants to know
		id := wirejson.Find(e.Params, "requestId")
		maps.DeleteFunc(h.asked, func(_ string, asked session.Event) bool { return transport.SameID(id, asked.ID) })
	}
}

// ask takes a question of the server, and reports whether there is room for it.
func (h *held) ask(e session.Event) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.asked) >= maxAsked {
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

// isAbout reports whether a notification is about the request: nothing else belongs into its stream. Changes are told to those who
// listen for them; the rest the modern revision does not have.
func (h *held) isAbout(e *session.Event) bool {
	switch e.Method {
	case mcp.LogMessage:
		return h.logs
	case mcp.Progress:
		return h.token != nil && transport.SameID(wirejson.Find(e.Params, "progressToken"), h.token)
	case mcp.Cancelled, mcp.ToolsChanged, mcp.PromptsChanged, mcp.ResourcesChanged, mcp.ResourceUpdated,
		mcp.Elicited, mcp.Acknowledged:
		return false
	}
	return !strings.HasPrefix(e.Method, mcp.TaskNotifications)
}

// attach sets who gets the notifications of the request from now on.
func (h *held) attach(say func(session.Event)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.say = say
	if say == nil {
		return
	}
	for _, e := range h.kept.Take() {
		say(e)
	}
}

// await waits until the server has answered, or wants to know something.
func (m *modern) await(ctx context.Context, h *held, r *session.Request) (session.Reply, error) {
	h.attach(r.Say)
	defer h.attach(nil)
	for {
		select {
		case <-h.done:
			return m.answered(h)
		case <-h.arrived:
			if h.wants() {
				return m.hold(h)
			}
		case <-ctx.Done():
			h.cancel()
			<-h.done
			h.session.Close()
			return session.Reply{}, ctx.Err()
		}
	}
}

// wants reports whether the server waits for answers, and not for its end.
func (h *held) wants() bool {
	select {
	case <-h.done:
		return false
	default:
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.asked) > 0
}

// answered returns the answer in the form of the modern revision.
func (m *modern) answered(h *held) (session.Reply, error) {
	h.cancel()
	var status *transport.StatusError
	switch {
	case errors.As(h.err, &status) && status.Status == http.StatusBadRequest && !isLegacyMethod(h.method):
		// Legacy servers refuse what they do not know in words of HTTP.
		m.sessions.keep(h.session)
		return unknown(h.method, ""), nil
	case h.err != nil && !errors.Is(h.err, transport.ErrNoMessage): // with that one the server has said what it had to say
		h.session.Close()
		return session.Reply{}, h.err
	}
	m.sessions.keep(h.session)
	switch {
	case h.err != nil:
		return session.Reply{}, h.err
	case h.reply.Error != nil:
		return session.Reply{Error: modernError(h.reply.Error)}, nil
	}
	return session.Reply{Result: modernResult(h.method, h.reply.Result, h.greeting)}, nil
}

// hold keeps the request until the client comes again, and tells it what the
// server wants to know. The state that it has to bring cannot be guessed, and
// is good for one time.
func (m *modern) hold(h *held) (session.Reply, error) {
	state := rand.Text()
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.held) >= maxHeld {
		h.cancel()
		h.session.Close()
		return internalError("too many requests wait for input"), nil
	}
	if m.held == nil {
		m.held = map[string]*held{}
	}
	m.held[state] = h
	h.expire = time.AfterFunc(heldTime, func() { m.forget(state) })
	h.mu.Lock()
	defer h.mu.Unlock()
	inputs := make([]field, 0, len(h.asked))
	for key, e := range h.asked {
		params := e.Params
		if params == nil {
			params = json.RawMessage("{}") // clients of this revision trip over what has none
		}
		inputs = append(inputs, field{key, object(field{"method", text(e.Method)}, field{"params", params})})
	}
	return session.Reply{Result: object(field{"resultType", text("input_required")}, field{"inputRequests", object(inputs...)}, field{"requestState", text(state)})}, nil
}

// forget ends a request for which nobody came again.
func (m *modern) forget(state string) {
	m.mu.Lock()
	h := m.held[state]
	delete(m.held, state)
	m.mu.Unlock()
	if h != nil {
		h.cancel()
		h.session.Close()
	}
}

// take returns the request that the state stands for, if it is this one and of
// this client; else nil.
func (m *modern) take(state json.RawMessage, r *session.Request) *held {
	text, _ := wirejson.String(state)
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.held[text]
	if h == nil || h.principal != principal(r) || h.method != r.Method || !sameRequest(h.params, r.Params) {
		return nil
	}
	delete(m.held, text)
	h.expire.Stop()
	return h
}

// resume hands the client's answers to the server, and waits again. What has
// not been answered is asked again.
func (m *modern) resume(ctx context.Context, h *held, r *session.Request) (session.Reply, error) {
	responses := wirejson.Find(r.Params, "inputResponses")
	h.attach(r.Say)
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
		if err := h.session.peer.Respond(ctx, json.RawMessage(id), session.Reply{Result: answer}); err != nil {
			h.cancel()
			h.session.Close()
			return session.Reply{}, err
		}
	}
	if left > 0 {
		h.attach(nil)
		return m.hold(h)
	}
	return m.await(ctx, h, r)
}
