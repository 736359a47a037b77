package mcpserver

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
)

// A session is rebuilt at the next request if an earlier process, another instance or the limits of the table ended it,
// or if its client gets its own session with a server. docs/adr/0118-a-session-survives-a-restart.md lists the rebuilt
// and the forgotten parts.

// loadWait is how long a request in an unknown session waits at the start for the key, and for the tools.
const loadWait = 30 * time.Second

// errStopping answers requests in a session of a server that stops. It does not end the session.
var errStopping = problem.New(problem.ServerUnavailable, "MCPProxy is stopping or restarting.", "Try again in a moment. The session continues.")

// errStoreAway answers a request in an unknown session while the database is not available.
var errStoreAway = problem.New(problem.ServerUnavailable, "MCPProxy cannot continue the session yet, because its database is not available.", "Try again in a moment.")

// errUnknownSession is the error for a session that does not exist.
var errUnknownSession = errors.New("unknown session")

// binding returns what the IDs of the client's sessions here are valid for.
func (c *clientState) binding() sessionBinding {
	return sessionBinding{c.endpoint, c.s.Auth.CredentialHash(c.actor)}
}

// newSessionID returns an ID for a new session: signed if possible.
func (c *clientState) newSessionID(ctx context.Context, e *sessionEntry, capabilities json.RawMessage) string {
	prefix := c.s.sessions.prefix
	if c.s.restorer.store != nil {
		if key := c.s.restorer.waitKey(ctx, keyWaitToOpen); key != nil {
			if id := newSignedID(key, prefix, c.binding(), time.Now(), rebuildParams(e.version, e.client, e.clientVersion, capabilities)); id != "" {
				return id
			}
		}
	}
	return newRandomID(prefix)
}

// readSessionID returns the params of a session that can be rebuilt, and until when. The error is errUnknownSession or a
// *problem.Problem.
func (c *clientState) readSessionID(ctx context.Context, id string) (params json.RawMessage, until time.Time, err error) {
	r := c.s.restorer
	if r.store == nil || len(id) > maxSignedID {
		return nil, time.Time{}, errUnknownSession
	}
	if r.waitKey(ctx, loadWait) == nil {
		return nil, time.Time{}, errStoreAway
	}
	params, until, ok := c.readSignedID(ctx, id)
	if !ok {
		return nil, time.Time{}, errUnknownSession
	}
	switch ended, err := r.isEnded(ctx, sessionRecordID(id)); {
	case err != nil:
		return nil, time.Time{}, errStoreAway
	case ended:
		return nil, time.Time{}, errUnknownSession
	}
	return params, until, nil
}

// isClosed reports whether the server stops.
func (s *Server) isClosed() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

// restoreSession rebuilds the session with this ID, unless it exists. Concurrent requests wait for the same rebuild. The
// error is errUnknownSession or a *problem.Problem.
func (c *clientState) restoreSession(ctx context.Context, id string) error {
	params, _, err := c.readSessionID(ctx, id)
	switch {
	case err != nil:
		return err
	case c.s.isClosed():
		return errStopping
	}
	_, err, _ = c.s.restorer.flight.Do(id, func() (any, error) {
		if c.s.sessions.has(id) {
			return nil, nil
		}
		return nil, c.rebuildSession(context.WithoutCancel(ctx), id, params)
	})
	return err
}

// findSession returns the session with this ID, which is busy until it is released. It returns nil if there is none, or
// if it must be opened again.
func (c *clientState) findSession(id string) *sessionEntry {
	e := c.s.sessions.acquireSession(id, c.actor, c.endpoint)
	if e != nil && session.IsMoved(e.session) {
		c.s.sessions.endSession(e)
		e.releaseUse(false)
		return nil
	}
	return e
}

// reopenIfMoved opens the session again if it has moved just before a message, and reports whether the message can be sent
// again.
func (c *clientState) reopenIfMoved(ctx context.Context, err error) bool {
	if !errors.Is(err, session.ErrMoved) || c.entry == nil || c.entry.owner == nil {
		return false
	}
	old := c.entry
	c.s.sessions.endSession(old)
	if c.restoreSession(ctx, old.id) != nil {
		return false
	}
	next := c.findSession(old.id)
	if next == nil {
		return false
	}
	old.releaseUse(c.answered)
	c.entry, c.calls = next, &next.cancellableCalls
	return true
}

// awaitTools waits, within a limit, until the tools from before the restart are loaded, so that the client can continue
// immediately.
func (s *Server) awaitTools(ctx context.Context) {
	if s.ToolsLoaded == nil {
		return
	}
	limit := time.NewTimer(loadWait)
	defer limit.Stop()
	select {
	case <-s.ToolsLoaded:
	case <-limit.C:
	case <-s.closed:
	case <-ctx.Done():
	}
}

// rebuildSession opens the session again and adds it to the table.
func (c *clientState) rebuildSession(ctx context.Context, id string, params json.RawMessage) error {
	from := *c
	from.entry = nil
	m := message{clientState: &from, Message: wirejson.Message{ID: json.RawMessage("0"), Method: mcp.Initialize, Params: params}}
	m.prepareRequest()
	c.s.awaitTools(ctx)
	e, o, err := m.openSession(ctx)
	if err != nil {
		return err
	}
	agreed, _ := wirejson.String(m.paramMember("protocolVersion"))
	if e == nil {
		return errUnknownSession
	}
	if e.version != agreed || errors.Is(e.session.NotifyServer(ctx, mcp.Initialized, nil), session.ErrEnded) {
		e.session.Close()
		return errUnknownSession
	}
	e.assignID(id)
	e.session = &restoredSession{Session: e.session, mark: rand.Text()[:8], lists: changeableLists(o.Result)}
	if full := c.s.sessions.addSession(e); full != nil {
		e.session.Close()
		return problem.New(problem.ServerUnavailable, full.Message, "")
	}
	// In the meantime the table may have been emptied, or the client may have ended the session.
	switch ended, err := c.s.restorer.isEnded(ctx, e.record); {
	case c.s.isClosed():
		c.s.sessions.endSession(e)
		return errStopping
	case err != nil:
		c.s.sessions.endSession(e)
		return errStoreAway
	case ended:
		c.s.sessions.endSession(e)
		return errUnknownSession
	}
	return nil
}

// endPermanently ends a session that the client or the server has ended, so that it is not rebuilt.
func (c *clientState) endPermanently(ctx context.Context, e *sessionEntry) {
	if _, until, ok := c.readSignedID(ctx, e.id); ok {
		c.s.restorer.markEnded(e.record, until)
	}
	c.s.sessions.endSession(e)
}

// readSignedID returns the params of a signed session ID that belongs to the client, and until when it is valid.
func (c *clientState) readSignedID(ctx context.Context, id string) (params json.RawMessage, until time.Time, ok bool) {
	key := c.s.restorer.waitKey(ctx, 0)
	if key == nil {
		return nil, time.Time{}, false
	}
	return readSignedID(key, id, c.binding(), time.Now())
}

// writeNoSession answers a message whose session does not exist or cannot be rebuilt now.
func (x *httpRequest) writeNoSession(err error) {
	if errors.Is(err, errUnknownSession) {
		x.out.sendError(http.StatusNotFound, x.recordRefusalIfCall(x.r.Context(), &wirejson.RPCError{Code: wirejson.CodeInvalidRequest, Message: sessionOver}))
		return
	}
	switch {
	case x.r.Method == http.MethodGet:
		// Some clients give up a session whose stream gets an answer other than 200. Without an answer they try again.
		panic(http.ErrAbortHandler)
	case x.Method == mcp.CallTool:
		x.recordRefusal(x.r.Context(), problem.From(err))
	}
	x.writeFailure(err)
}

// restoredSession is a rebuilt session. The requests of a server to the client get a mark, because the client may still
// answer one of before, whose ID the server can have used again. The client is notified once that lists may have
// changed.
type restoredSession struct {
	session.Session
	mark  string
	once  sync.Once
	lists []string // notifications of the lists that may have changed
}

// IsMoved reports whether the session has ended with session.ErrMoved.
func (s *restoredSession) IsMoved() bool { return session.IsMoved(s.Session) }

// Do implements session.Doer.
func (s *restoredSession) Do(ctx context.Context, r *session.Request) (session.Reply, error) {
	if r.Say == nil {
		return s.Session.Do(ctx, r)
	}
	marked := *r
	marked.Say = s.markServerRequestIDs(r.Say)
	return s.Session.Do(ctx, &marked)
}

// Listen implements session.Session.
func (s *restoredSession) Listen(ctx context.Context, say func(session.Event), opened func()) error {
	return s.Session.Listen(ctx, s.markServerRequestIDs(say), func() {
		opened()
		s.once.Do(func() {
			for _, method := range s.lists {
				say(session.Event{Method: method})
			}
		})
	})
}

// AnswerServerQuestion forwards an answer to a request since the rebuild, and drops others.
func (s *restoredSession) AnswerServerQuestion(ctx context.Context, id json.RawMessage, r session.Reply) error {
	mark, own, ok := session.SplitRequestID(id)
	if !ok || mark != s.mark {
		return nil
	}
	return s.Session.AnswerServerQuestion(ctx, own, r)
}

// markServerRequestIDs marks the IDs of a server's requests, also where the server cancels one.
func (s *restoredSession) markServerRequestIDs(say func(session.Event)) func(session.Event) {
	return func(e session.Event) {
		switch {
		case e.ID != nil:
			e.ID = session.PrefixRequestID(s.mark, e.ID)
		case e.Method == mcp.Cancelled:
			if id := wirejson.Find(e.Params, "requestId"); id != nil {
				e.Params = wirejson.SetMember(e.Params, "requestId", session.PrefixRequestID(s.mark, id))
			}
		}
		say(e)
	}
}
