package mcpserver

import (
	"container/list"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
)

// The limits of sessions: in total, without any request yet, and per connection.
const (
	maxSessions = 10_000
	maxUnused   = 5_000
	maxOfConn   = 2_000
	sessionIdle = 24 * time.Hour
)

// openerIdentity is who opened a session. The connection tells unauthenticated clients apart, which all are the
// same actor.
type openerIdentity struct {
	actor auth.Actor
	conn  string // remote address; "" on the socket
}

// errCancelled is the cause of a cancelled request if the server must not get the client's params.
var errCancelled = &session.ClientCancelledError{}

// cancellableCalls are the open requests that notifications/cancelled may cancel.
type cancellableCalls struct {
	mu       sync.Mutex // guards inflight
	inflight []cancellableCall
}

// sessionEntry is a session of a legacy client. It has no goroutine and no buffer.
type sessionEntry struct {
	id     string // a credential: never stored or logged; see session_id.go
	record string // the ID in records
	openerIdentity
	version string
	place   string // endpoint key
	session session.Session

	client, clientVersion string
	forms                 bool                         // the client shows forms
	apps                  bool                         // the client shows MCP Apps
	questions             session.ProxyQuestionTracker // of MCPProxy itself

	ended chan struct{} // closed when the session ends
	cancellableCalls

	owner *sessionTable // the table; nil on a connection of the line protocol
	at    *list.Element // in owner.unused or owner.order; owner.mu guards this and the following fields
	asked bool          // a request was answered in it
	used  time.Time
	busy  int
}

// cancellableCall is one open request.
type cancellableCall struct {
	id            string
	cancel        context.CancelCauseFunc
	forwardParams bool // forward the client's params
}

// addCall registers a request until removeCall. forwardParams reports whether the server gets the client's params.
func (s *cancellableCalls) addCall(id []byte, cancel context.CancelCauseFunc, forwardParams bool) {
	s.mu.Lock()
	s.inflight = append(s.inflight, cancellableCall{string(id), cancel, forwardParams})
	s.mu.Unlock()
}

// removeCall removes one request with this ID; if a client reused the ID it does not matter which.
func (s *cancellableCalls) removeCall(id []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := slices.IndexFunc(s.inflight, func(c cancellableCall) bool { return c.id == string(id) }); at >= 0 {
		s.inflight = slices.Delete(s.inflight, at, at+1)
	}
	if len(s.inflight) == 0 {
		s.inflight = nil
	}
}

// cancelByID cancels the requests with this ID. params are those of the notification. An unknown ID is ignored.
func (s *cancellableCalls) cancelByID(id []byte, params json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.inflight {
		if c.id != string(id) {
			continue
		}
		if c.forwardParams {
			c.cancel(&session.ClientCancelledError{Params: params})
		} else {
			c.cancel(errCancelled)
		}
	}
}

// releaseUse ends the use of a session from sessionTable.acquireSession. asked: a request was answered in it.
func (s *sessionEntry) releaseUse(asked bool) {
	now := time.Now()
	ss := s.owner
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s.busy--
	s.used = now // a stream may have been open for days
	if asked && !s.asked && ss.byID[s.id] == s {
		ss.unused.Remove(s.at)
		s.asked, s.at = true, ss.order.PushFront(s)
	}
	ss.lruListOf(s).MoveToFront(s.at)
}

// sessionTable is the table of open sessions. A session ends by DELETE, after a day without use, or by
// eviction. Eviction prefers sessions of a connection that has many, then those without any request.
type sessionTable struct {
	prefix string     // of session IDs
	mu     sync.Mutex // guards the following fields, and some of each session
	byID   map[string]*sessionEntry
	unused *list.List             // without any request; least recently used last
	order  *list.List             // the others; least recently used last
	opened map[openerIdentity]int // number of sessions per opener
}

func newSessionTable() *sessionTable {
	return &sessionTable{byID: map[string]*sessionEntry{}, unused: list.New(), order: list.New(), opened: map[openerIdentity]int{}}
}

// lruListOf returns the list that the session belongs to. The lock is held.
func (ss *sessionTable) lruListOf(s *sessionEntry) *list.List {
	if s.asked {
		return ss.order
	}
	return ss.unused
}

// newRandomID returns a session ID that cannot be guessed: 26 letters and digits, at least 128 bits.
func newRandomID(prefix string) string { return prefix + rand.Text() }

// assignID sets the ID of the session.
func (s *sessionEntry) assignID(id string) {
	s.id = id
	s.record, s.ended = sessionRecordID(s.id), make(chan struct{})
}

// closeSession ends a session. It is called once.
func (s *sessionEntry) closeSession() {
	close(s.ended)
	s.session.Close()
}

// isClosed reports whether the client or this server has closed the session.
func (s *sessionEntry) isClosed() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// addSession registers a session that has an ID.
func (ss *sessionTable) addSession(s *sessionEntry) *wirejson.RPCError {
	s.owner = ss
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s.used = time.Now()
	ss.endExpired(s.used)
	if !ss.makeRoom(s.openerIdentity) {
		return &wirejson.RPCError{Code: wirejson.CodeInternal,
			Message: "Too many sessions (10000), and all are in use. End one with DELETE, or use protocol version 2026-07-28, which needs none."}
	}
	s.at = ss.unused.PushFront(s)
	ss.opened[s.openerIdentity]++
	ss.byID[s.id] = s
	return nil
}

// makeRoom makes room for one more session of the opener and reports success. The lock is held.
func (ss *sessionTable) makeRoom(o openerIdentity) bool {
	ofConn := func(s *sessionEntry) bool { return s.openerIdentity == o }
	own := func(s *sessionEntry) bool { return s.actor == o.actor }
	anyOne := func(*sessionEntry) bool { return true }
	if o.conn != "" && ss.opened[o] >= maxOfConn && !ss.evictOne(ss.unused, ofConn) {
		ss.evictOne(ss.order, ofConn)
	}
	if ss.unused.Len() >= maxUnused {
		ss.evictOne(ss.unused, own, anyOne)
	}
	return len(ss.byID) < maxSessions || ss.evictOne(ss.unused, own, anyOne) || ss.evictOne(ss.order, own, anyOne)
}

// evictOne ends the least recently used idle session of the list that the first rule accepts, or else the
// next rule. It reports whether there was one. The lock is held.
func (ss *sessionTable) evictOne(l *list.List, rules ...func(*sessionEntry) bool) bool {
	for _, mayGo := range rules {
		for e := l.Back(); e != nil; e = e.Prev() {
			if s := e.Value.(*sessionEntry); s.busy == 0 && mayGo(s) {
				ss.removeLocked(s)
				return true
			}
		}
	}
	return false
}

// acquireSession returns the session with this ID if actor and endpoint match; otherwise it does not exist. The
// session is busy until releaseUse.
func (ss *sessionTable) acquireSession(id string, actor auth.Actor, place string) *sessionEntry {
	now := time.Now()
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s := ss.byID[id]
	switch {
	case s == nil || s.actor != actor || s.place != place:
		return nil
	case s.busy == 0 && now.Sub(s.used) > sessionIdle:
		ss.removeLocked(s)
		return nil
	}
	s.used = now
	s.busy++
	ss.lruListOf(s).MoveToFront(s.at)
	return s
}

// has reports whether there is a session with this ID.
func (ss *sessionTable) has(id string) bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.byID[id] != nil
}

// endSession ends a session.
func (ss *sessionTable) endSession(s *sessionEntry) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.removeLocked(s)
}

// endSessionsOf ends the sessions of an actor.
func (ss *sessionTable) endSessionsOf(a auth.Actor) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for _, s := range ss.byID {
		if s.actor == a {
			ss.removeLocked(s)
		}
	}
}

// endAll ends all sessions.
func (ss *sessionTable) endAll() {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for _, s := range ss.byID {
		ss.removeLocked(s)
	}
}

// endExpired ends unused sessions. The lock is held.
func (ss *sessionTable) endExpired(now time.Time) {
	for _, l := range [...]*list.List{ss.unused, ss.order} {
		for e := l.Back(); e != nil; e = l.Back() {
			s := e.Value.(*sessionEntry)
			if s.busy > 0 || now.Sub(s.used) <= sessionIdle {
				break
			}
			ss.removeLocked(s)
		}
	}
}

// removeLocked removes a session. The lock is held.
func (ss *sessionTable) removeLocked(s *sessionEntry) {
	if ss.byID[s.id] != s {
		return
	}
	delete(ss.byID, s.id)
	ss.lruListOf(s).Remove(s.at)
	if ss.opened[s.openerIdentity]--; ss.opened[s.openerIdentity] == 0 {
		delete(ss.opened, s.openerIdentity)
	}
	s.closeSession()
}

// sessionRecordID returns the ID of a session for records. It does not give access to the session.
func sessionRecordID(id string) string {
	sum := sha256.Sum256([]byte("mcpproxy session " + id))
	return hex.EncodeToString(sum[:8])
}
