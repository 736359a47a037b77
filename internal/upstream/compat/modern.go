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

// modern are the clients of the modern revision on a legacy server. Each of their
// requests has a session for itself while it runs: where clients do not share the
// connection that is a session of the server, so that what the server says or
// asks then is about that request. When the server asks, the client is told to
// come again with the answers, and the server's request waits meanwhile: it is
// held.
type modern struct {
	sv       *upstream.Server
	sessions *sessions

	mu   sync.Mutex       // guards what follows
	held map[string]*held // by the state that the client has to bring
	wg   sync.WaitGroup   // of what runs for requests
}

// held is a request under way at a legacy server.
type held struct {
	method    string
	params    json.RawMessage // as the client made them first
	principal string          // who made it
	session   *Session
	greeting  *upstream.Greeting
	logs      bool            // the client wants log messages
	token     json.RawMessage // of its progress; nil: it wants none
	quiet     bool            // the server may not ask
	cancel    context.CancelFunc
	expire    *time.Timer
	done      chan struct{} // closed when reply and err are there
	reply     session.Reply
	err       error

	mu      sync.Mutex // guards what follows, and orders what is said
	say     func(session.Event)
	kept    session.Queue            // while nobody is there
	asked   map[string]session.Event // by the key that the client gets
	asks    int
	arrived chan struct{} // cap 1: something was asked
}

// Bounds on what waits for clients to come again.
const (
	maxHeld  = 1000
	heldTime = 5 * time.Minute
	maxAsked = 100
)

// do answers a request in the place of a server that does not speak the modern
// revision.
func (m *modern) do(ctx context.Context, c *upstream.Connection, r *session.Request) (session.Reply, error) {
	switch r.Method {
	case mcp.Discover:
		return session.Reply{Result: described(c.Greeting())}, nil
	case mcp.Listen:
		return m.listen(ctx, c, r)
	case mcp.Initialize, mcp.Ping, mcp.SetLevel, mcp.Subscribe, mcp.Unsubscribe:
		return unknown(r.Method, ""), nil
	}
	if strings.HasPrefix(r.Method, mcp.Tasks) { // the tasks of the legacy revisions are others
		return unknown(r.Method, ""), nil
	}
	if state := wirejson.Find(r.Params, "requestState"); state != nil {
		h := m.take(state, r)
		if h == nil {
			return refusedParams("requestState is not one that was given for this request, or it has expired"), nil
		}
		return m.resume(ctx, h, r)
	}
	h, err := m.start(ctx, c, r)
	if err != nil {
		return session.Reply{}, err
	}
	return m.await(ctx, h, r)
}

// checkout returns a session with what the client can do, that nobody uses: one
// that is kept for key, or a new one. It is kept when keep is called. asks
// says whether the client can be asked, listens that the session is for a
// subscription.
func (m *modern) checkout(ctx context.Context, key string, a about, asks, listens bool) (*Session, error) {
	if s := m.sessions.reuse(key); s != nil {
		return s, nil
	}
	info := a.info
	if wirejson.Kind(info) != '{' {
		info = object(field{"name", text("mcpproxy")}, field{"version", text(m.sv.ClientVersion)})
	}
	params := object(field{"protocolVersion", text(mcp.Legacy)}, field{"capabilities", a.capabilities}, field{"clientInfo", info})
	w := own
	if m.sv.Shared() {
		w = shared
	}
	s, reply, err := m.sessions.openAs(ctx, &session.Request{ID: m.sv.NextID(), Method: mcp.Initialize, Params: params}, w)
	switch {
	case err != nil:
		return nil, err
	case s == nil:
		return nil, &transport.AnswerError{Code: reply.Error.Code}
	}
	s.key = key
	if err := s.peer.Notify(ctx, mcp.Initialized, nil); err != nil && s.Cause() != nil {
		s.Close()
		return nil, err
	}
	// Over a pipe questions come whether anybody listens or not; over HTTP they
	// come on a stream that has to be opened for them.
	asked := asks && a.canAsk()
	if pipe := m.sv.Spec.Transport == upstream.Stdio || m.sv.OverSSE(); s.own != nil && (asked || pipe && !listens) {
		s.said = &session.Queue{Max: maxKept, Bytes: maxKeptBytes, DropOldest: true}
		m.hear(ctx, s)
	}
	return s, nil
}

// hear keeps the stream of a session open on which servers may ask, too, and
// waits a moment for it: what is said while there is none may be lost.
func (m *modern) hear(ctx context.Context, s *Session) {
	opened := make(chan struct{})
	open := sync.OnceFunc(func() { close(opened) })
	m.wg.Go(func() {
		defer open()
		run, stop := session.WithDone(context.WithoutCancel(ctx), s.Done(), nil)
		defer stop()
		for {
			err := s.peer.Listen(run, func(e session.Event) {
				if !s.said.Put(e.Clone()) && e.ID != nil {
					s.refuse(run, &e)
				}
			}, open)
			var refused *transport.StatusError
			if run.Err() != nil || errors.As(err, &refused) && !refused.Temporary() || pause(run, transport.MinListenPause) != nil {
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

// refuse answers a question that the client does not get.
func (s *Session) refuse(ctx context.Context, e *session.Event) {
	reply := session.Reply{Error: transport.CannotAsk}
	if e.Method == mcp.Ping {
		reply = empty()
	}
	_ = s.peer.Respond(ctx, e.ID, reply) // a lost link ends the request itself
}

// end ends everything that waits.
func (m *modern) end() {
	m.mu.Lock()
	for state, h := range m.held {
		delete(m.held, state)
		h.expire.Stop()
		h.cancel()
	}
	m.mu.Unlock()
	m.wg.Wait()
}
