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

// opener is who opened a session. The connection tells unauthenticated clients apart, which all are the
// same actor.
type opener struct {
	actor auth.Actor
	conn  string // remote address; "" on the socket
}

// errCancelled is the cause of a cancelled request if the server must not get the client's params.
var errCancelled = &session.Cancelled{}

// calls are the open requests that notifications/cancelled may cancel.
type calls struct {
	mu       sync.Mutex // guards inflight
	inflight []call
}

// entry is a session of a legacy client. It has no goroutine and no buffer.
type entry struct {
	id     string // a credential: never stored or logged
	record string // the ID in records
	opener
	version string
	place   string // endpoint key
	session session.Session

	client, clientVersion string
	forms                 bool              // the client shows forms
	questions             session.Questions // of MCPProxy itself

	ended chan struct{} // closed when the session ends
	calls

	owner *sessions     // the table; nil on a connection of the line protocol
	at    *list.Element // in owner.unused or owner.order; owner.mu guards this and the following fields
	asked bool          // a request was answered in it
	used  time.Time
	busy  int
}

// call is one open request.
type call struct {
	id            string
	cancel        context.CancelCauseFunc
	forwardParams bool // forward the client's params
}

// beginLines registers a request until end.
func (s *calls) begin(id []byte, cancel context.CancelCauseFunc, words bool) {
	s.mu.Lock()
	s.inflight = append(s.inflight, call{string(id), cancel, words})
	s.mu.Unlock()
}

// end removes one request with this ID; if a client reused the ID it does not matter which.
func (s *calls) end(id []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := slices.IndexFunc(s.inflight, func(c call) bool { return c.id == string(id) }); at >= 0 {
		s.inflight = slices.Delete(s.inflight, at, at+1)
	}
	if len(s.inflight) == 0 {
		s.inflight = nil
	}
}

// cancel cancels the requests with this ID with the params of the notification. An unknown ID is ignored.
func (s *calls) cancel(id []byte, params json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.inflight {
		if c.id != string(id) {
			continue
		}
		if c.forwardParams {
			c.cancel(&session.Cancelled{Params: params})
		} else {
			c.cancel(errCancelled)
		}
	}
}

// release ends the use of a session from sessions.find. asked: a request was answered in it.
func (s *entry) release(asked bool) {
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
	ss.list(s).MoveToFront(s.at)
}

// sessions is the table of open sessions. A session ends by DELETE, after a day without use, or by
// eviction. Eviction prefers sessions of a connection that has many, then those without any request.
type sessions struct {
	prefix string     // of session IDs
	mu     sync.Mutex // guards the following fields, and some of each session
	byID   map[string]*entry
	unused *list.List     // without any request; least recently used last
	order  *list.List     // the others; least recently used last
	opened map[opener]int // number of sessions per opener
}

func newSessions() *sessions {
	return &sessions{byID: map[string]*entry{}, unused: list.New(), order: list.New(), opened: map[opener]int{}}
}

// list returns the list that the session belongs to. The lock is held.
func (ss *sessions) list(s *entry) *list.List {
	if s.asked {
		return ss.order
	}
	return ss.unused
}

// name sets the ID of the session, which cannot be guessed.
func (s *entry) name(prefix string) {
	s.id = prefix + rand.Text() // 26 letters and digits, at least 128 bits
	s.record, s.ended = recordID(s.id), make(chan struct{})
}

// close ends a session. It is called once.
func (s *entry) close() {
	close(s.ended)
	s.session.Close()
}

// closed reports whether the client or this server has closed the session.
func (s *entry) closed() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// open names and registers a session.
func (ss *sessions) open(s *entry) *wirejson.RPCError {
	s.name(ss.prefix)
	s.owner = ss
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s.used = time.Now()
	ss.expire(s.used)
	if !ss.reserve(s.opener) {
		return &wirejson.RPCError{Code: wirejson.CodeInternal,
			Message: "Too many sessions (10000), and all are in use. End one with DELETE, or use protocol version 2026-07-28, which needs none."}
	}
	s.at = ss.unused.PushFront(s)
	ss.opened[s.opener]++
	ss.byID[s.id] = s
	return nil
}

// reserve makes room for one more session of the opener and reports success. The lock is held.
func (ss *sessions) reserve(o opener) bool {
	ofConn := func(s *entry) bool { return s.opener == o }
	own := func(s *entry) bool { return s.actor == o.actor }
	anyOne := func(*entry) bool { return true }
	if o.conn != "" && ss.opened[o] >= maxOfConn && !ss.evict(ss.unused, ofConn) {
		ss.evict(ss.order, ofConn)
	}
	if ss.unused.Len() >= maxUnused {
		ss.evict(ss.unused, own, anyOne)
	}
	return len(ss.byID) < maxSessions || ss.evict(ss.unused, own, anyOne) || ss.evict(ss.order, own, anyOne)
}

// evict ends the least recently used idle session of the list that the first rule accepts, or else the
// next rule. It reports whether there was one. The lock is held.
func (ss *sessions) evict(l *list.List, rules ...func(*entry) bool) bool {
	for _, mayGo := range rules {
		for e := l.Back(); e != nil; e = e.Prev() {
			if s := e.Value.(*entry); s.busy == 0 && mayGo(s) {
				ss.remove(s)
				return true
			}
		}
	}
	return false
}

// find returns the session with this ID if actor and endpoint match; otherwise it does not exist. The
// session is busy until release.
func (ss *sessions) find(id string, actor auth.Actor, place string) *entry {
	now := time.Now()
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s := ss.byID[id]
	switch {
	case s == nil || s.actor != actor || s.place != place:
		return nil
	case s.busy == 0 && now.Sub(s.used) > sessionIdle:
		ss.remove(s)
		return nil
	}
	s.used = now
	s.busy++
	ss.list(s).MoveToFront(s.at)
	return s
}

// end ends a session.
func (ss *sessions) end(s *entry) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.remove(s)
}

// endOf ends the sessions of an actor.
func (ss *sessions) endOf(a auth.Actor) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for _, s := range ss.byID {
		if s.actor == a {
			ss.remove(s)
		}
	}
}

// clear ends all sessions.
func (ss *sessions) clear() {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for _, s := range ss.byID {
		ss.remove(s)
	}
}

// expire ends unused sessions. The lock is held.
func (ss *sessions) expire(now time.Time) {
	for _, l := range [...]*list.List{ss.unused, ss.order} {
		for e := l.Back(); e != nil; e = l.Back() {
			s := e.Value.(*entry)
			if s.busy > 0 || now.Sub(s.used) <= sessionIdle {
				break
			}
			ss.remove(s)
		}
	}
}

// remove removes a session. The lock is held.
func (ss *sessions) remove(s *entry) {
	if ss.byID[s.id] != s {
		return
	}
	delete(ss.byID, s.id)
	ss.list(s).Remove(s.at)
	if ss.opened[s.opener]--; ss.opened[s.opener] == 0 {
		delete(ss.opened, s.opener)
	}
	s.close()
}

// recordID returns the ID of a session for records. It does not give access to the session.
func recordID(id string) string {
	sum := sha256.Sum256([]byte("mcpproxy session " + id))
	return hex.EncodeToString(sum[:8])
}
