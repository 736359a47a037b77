package mcpserver

import (
	"container/list"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"time"

	"mcpproxy/internal/auth"
	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/strictjson"
	"mcpproxy/internal/upstream"
)

const (
	maxSessions = 10_000
	sessionIdle = 24 * time.Hour
)

// session is the state of one client of the older era. It holds no goroutine
// and no buffer.
type session struct {
	id      string // a credential: never stored, never logged
	record  string // what the record says instead
	actor   auth.Actor
	version string
	server  string                 // that it is with; "" on /mcp, allTarget on /mcp/all
	talk    *upstream.Conversation // of a session with a server
	all     *talks                 // of a session with all of them

	client, clientVersion string

	ended chan struct{} // closed when the session ends

	mu       sync.Mutex // guards inflight
	inflight []call

	owner *sessions
	place *list.Element // in owner.order; owner.mu guards this and the next two
	used  time.Time
	busy  int
}

// call is a request that notifications/cancelled may name.
type call struct {
	id     string
	cancel context.CancelCauseFunc
}

// begin makes a request known, until end.
func (s *session) begin(id string, cancel context.CancelCauseFunc) {
	s.mu.Lock()
	s.inflight = append(s.inflight, call{id, cancel})
	s.mu.Unlock()
}

// end forgets one request with the id: should a client have used it twice, it
// does not matter which.
func (s *session) end(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.inflight {
		if s.inflight[i].id == id {
			last := len(s.inflight) - 1
			s.inflight[i] = s.inflight[last]
			s.inflight[last] = call{}
			s.inflight = s.inflight[:last]
			break
		}
	}
	if len(s.inflight) == 0 {
		s.inflight = nil
	}
}

// cancel cancels the requests with the id, given as JSON. What is not there is
// over already.
func (s *session) cancel(id []byte, cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.inflight {
		if c.id == string(id) {
			c.cancel(cause)
		}
	}
}

// release gives a session back that sessions.find found.
func (s *session) release() {
	now := time.Now()
	s.owner.mu.Lock()
	defer s.owner.mu.Unlock()
	s.busy--
	s.used = now // a stream may have been open for days
	s.owner.order.MoveToFront(s.place)
}

// sessions are the open sessions, the least recently used last. A session ends
// by DELETE, after a day without use, or when there are too many and it is the
// one that was not used for longest.
type sessions struct {
	mu    sync.Mutex // guards what follows, and place, used and busy of each session
	byID  map[string]*session
	order *list.List
}

func newSessions() *sessions {
	return &sessions{byID: map[string]*session{}, order: list.New()}
}

// open enters a session, and gives it an id that cannot be guessed.
func (ss *sessions) open(s *session) *jsonrpc.Error {
	s.id = rand.Text() // 26 letters and digits, at least 128 bits
	s.record, s.ended, s.owner = recordID(s.id), make(chan struct{}), ss
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s.used = time.Now()
	ss.expire(s.used)
	if len(ss.byID) >= maxSessions && !ss.evict() {
		return &jsonrpc.Error{Code: jsonrpc.CodeInternal,
			Message: "Too many sessions (10000), and all are in use. End one with DELETE, or use protocol version 2026-07-28, which needs none."}
	}
	s.place = ss.order.PushFront(s)
	ss.byID[s.id] = s
	return nil
}

// find gives the session with the id if it is the actor's, with that server: to
// anybody else, and anywhere else, it does not exist. The session is busy until it is released.
func (ss *sessions) find(id string, actor auth.Actor, server string) *session {
	now := time.Now()
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s := ss.byID[id]
	switch {
	case s == nil || s.actor != actor || s.server != server:
		return nil
	case s.busy == 0 && now.Sub(s.used) > sessionIdle:
		ss.remove(s)
		return nil
	}
	s.used = now
	s.busy++
	ss.order.MoveToFront(s.place)
	return s
}

// end ends a session.
func (ss *sessions) end(s *session) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.remove(s)
}

// clear ends all sessions.
func (ss *sessions) clear() {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for _, s := range ss.byID {
		ss.remove(s)
	}
}

// expire ends the sessions that nobody came back to. The lock is held.
func (ss *sessions) expire(now time.Time) {
	for e := ss.order.Back(); e != nil; e = ss.order.Back() {
		s := e.Value.(*session)
		if s.busy > 0 || now.Sub(s.used) <= sessionIdle {
			return
		}
		ss.remove(s)
	}
}

// evict ends the idle session that was not used for longest. The lock is held.
func (ss *sessions) evict() bool {
	for e := ss.order.Back(); e != nil; e = e.Prev() {
		if s := e.Value.(*session); s.busy == 0 {
			ss.remove(s)
			return true
		}
	}
	return false
}

// remove takes a session out. The lock is held.
func (ss *sessions) remove(s *session) {
	if ss.byID[s.id] == s {
		delete(ss.byID, s.id)
		ss.order.Remove(s.place)
		close(s.ended)
		if s.talk != nil {
			s.talk.End()
		}
		if s.all != nil {
			s.all.end()
		}
	}
}

// recordID is how a session stands in the record: one cannot use it to speak
// in the session.
func recordID(id string) string {
	sum := sha256.Sum256([]byte("mcpproxy session " + id))
	return hex.EncodeToString(sum[:8])
}

// identity reads clientInfo.
func identity(clientInfo []byte) (name, version string) {
	if strictjson.Kind(clientInfo) != '{' {
		return "", ""
	}
	name, _ = strictjson.String(strictjson.Find(clientInfo, "name"))
	version, _ = strictjson.String(strictjson.Find(clientInfo, "version"))
	return bounded(name, maxIdentity), bounded(version, maxIdentity)
}
