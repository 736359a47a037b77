package compat

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/transport"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/upstream"
)

// sharedQuestions are the questions of the server that one client on the shared connection has not answered. The client
// gets them with an ID of MCPProxy that is never used again. So it cannot answer a question of another client, and a late
// answer is not taken for one to a later question.
type sharedQuestions struct {
	mu           sync.Mutex // guards the fields below
	capabilities json.RawMessage
	open         map[string]sharedQuestion // by the ID for the client
}

type sharedQuestion struct {
	on *upstream.Connection
	id json.RawMessage  // of the server
	of *session.Request // that it is about
}

// setCapabilities sets the capabilities that the client has declared.
func (a *sharedQuestions) setCapabilities(capabilities json.RawMessage) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.capabilities = bytes.Clone(capabilities)
}

// declared returns the capabilities that the client has declared; nil before its initialize.
func (l *sharedClient) declared() json.RawMessage {
	l.questions.mu.Lock()
	defer l.questions.mu.Unlock()
	return l.questions.capabilities
}

// canAnswer reports whether the client has declared what a question needs.
func canAnswer(capabilities json.RawMessage, e *session.Event) bool {
	if !declaresQuestion(capabilities, e.Method) {
		return false
	}
	withTools := wirejson.Find(e.Params, "tools") != nil || wirejson.Find(e.Params, "toolChoice") != nil
	return e.Method == mcp.Elicit || !withTools || wirejson.Find(wirejson.Find(capabilities, "sampling"), "tools") != nil
}

// askClient passes a question on with a new ID. If the client has not declared the capability, it refuses the question as
// the client would.
func (l *sharedClient) askClient(ctx context.Context, c *upstream.Connection, of *session.Request, e session.Event, say func(session.Event)) {
	id := l.sharing.sv.NextID()
	a := &l.questions
	a.mu.Lock()
	can := canAnswer(a.capabilities, &e)
	if can {
		if a.open == nil {
			a.open = map[string]sharedQuestion{}
		}
		a.open[string(id)] = sharedQuestion{c, bytes.Clone(e.ID), of}
	}
	a.mu.Unlock()
	if !can {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), notifyTime)
		defer cancel()
		_ = c.AnswerQuestion(limited, bytes.Clone(e.ID), session.Reply{Error: transport.NoCapability}) // a lost link ends the request itself
		l.sharing.sv.QuestionRefused()
		return
	}
	e.ID = id
	say(e)
}

// AnswerServerQuestion passes the answer to an open question on, and drops others.
func (l *sharedClient) AnswerServerQuestion(ctx context.Context, id json.RawMessage, r session.Reply) error {
	a := &l.questions
	a.mu.Lock()
	q, ok := a.open[string(id)]
	delete(a.open, string(id))
	a.mu.Unlock()
	if !ok {
		return l.Cause()
	}
	return q.on.AnswerQuestion(ctx, q.id, r)
}

// withdraw passes on that the server has withdrawn a question.
func (a *sharedQuestions) withdraw(c *upstream.Connection, e session.Event, say func(session.Event)) {
	asked := wirejson.Find(e.Params, "requestId")
	a.mu.Lock()
	var id string
	for one, q := range a.open {
		if q.on == c && bytes.Equal(q.id, asked) {
			id = one
		}
	}
	delete(a.open, id)
	a.mu.Unlock()
	if id != "" {
		say(session.Event{Method: e.Method, Params: wirejson.SetMember(e.Params, "requestId", json.RawMessage(id))})
	}
}

// forget removes the questions about a request that has ended. The link has refused them.
func (a *sharedQuestions) forget(of *session.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, q := range a.open {
		if q.of == of {
			delete(a.open, id)
		}
	}
}

// beginRequest counts a request in flight until endRequest. It returns false if the session has ended.
func (l *sharedClient) beginRequest() bool {
	l.requests.Lock()
	defer l.requests.Unlock()
	if l.Cause() != nil {
		return false
	}
	l.requests.inFlight++
	return true
}

func (l *sharedClient) endRequest() {
	l.requests.Lock()
	defer l.requests.Unlock()
	l.requests.inFlight--
	l.moveIfIdle()
}

// allowMoveToOwnSession allows that the session is moved. A client opens it again at its next request.
func (l *sharedClient) allowMoveToOwnSession() {
	l.requests.Lock()
	defer l.requests.Unlock()
	l.requests.mayMoveToOwnSession = true
	l.moveIfIdle()
}

// moveAway ends the session with session.ErrMoved as soon as no request is in flight.
func (l *sharedClient) moveAway() {
	l.requests.Lock()
	defer l.requests.Unlock()
	l.requests.leaving = true
	l.moveIfIdle()
}

// moveIfIdle moves the session if that is wanted. A session with resource subscriptions stays, because they would be lost.
// The lock of requests is held.
func (l *sharedClient) moveIfIdle() {
	if l.requests.leaving && l.requests.mayMoveToOwnSession && l.requests.inFlight == 0 && !l.hasSubscription() {
		l.Signal(session.ErrMoved)
	}
}

// hasSubscription reports whether the client is subscribed to a resource.
func (l *sharedClient) hasSubscription() bool {
	l.sharing.mu.Lock()
	defer l.sharing.mu.Unlock()
	return len(l.uris) > 0
}
