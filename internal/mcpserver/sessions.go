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

// The bounds of sessions: of all, of those in which nothing was asked for yet,
// and of those that were opened over one connection.
const (
	maxSessions = 10_000
	maxUnused   = 5_000
	maxOfConn   = 2_000
	sessionIdle = 24 * time.Hour
)

// opener is who has opened a session. Its connection tells apart those that
// prove nothing of themselves, which all are the same actor.
type opener struct {
	actor auth.Actor
	conn  string // the remote address; "" where all share one, as on the socket
}

// errCancelled is the cause of a request that was ended by a client whose words
// are not for the server.
var errCancelled = &session.Cancelled{}

// calls are the requests without an answer that notifications/cancelled may
// name.
type calls struct {
	mu       sync.Mutex // guards inflight
	inflight []call
}

// entry is a session: the state of one legacy client. It holds no goroutine and
// no buffer.
type entry struct {
	id     string // a credential: never stored, never logged
	record string // what the record says instead
	opener
	version string
	place   string // what it is with
	session session.Session

	client, clientVersion string
	forms                 bool              // it shows its user forms
	questions             session.Questions // of ours

	ended chan struct{} // closed when the session ends
	calls

	owner *sessions     // the table that it is in; nil on a connection of lines
	at    *list.Element // in owner.unused or owner.order; owner.mu guards this and what follows
	asked bool          // something was asked for in it, and answered
	used  time.Time
	busy  int
}

// call is one of calls.
type call struct {
	id     string
	cancel context.CancelCauseFunc
	words  bool // the server gets the client's own
}

// begin makes a request known, until end.
func (s *calls) begin(id []byte, cancel context.CancelCauseFunc, words bool) {
	s.mu.Lock()
	s.inflight = append(s.inflight, call{string(id), cancel, words})
	s.mu.Unlock()
}

// end forgets one request with the id: should a client have used it twice, it
// does not matter which.
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

// cancel cancels the requests with the id, given as JSON, with the params of the
// client's notification. What is not there is over already.
func (s *calls) cancel(id []byte, params json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.inflight {
		if c.id != string(id) {
			continue
		}
		if c.words {
			c.cancel(&session.Cancelled{Params: params})
		} else {
			c.cancel(errCancelled)
		}
	}
}

// release ends the use of a session that sessions.find found. asked: a request was
// answered in it.
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

// sessions are the open sessions. A session ends by DELETE, after a day without
// use, or to make room for another one: then those that were opened over the same
// connection go first if there are many, and those in which nothing was ever
// asked for before all that were used.
type sessions struct {
	prefix string     // of the ids
	mu     sync.Mutex // guards what follows, and some of each session
	byID   map[string]*entry
	unused *list.List     // nothing was asked for in them; the least recently used last
	order  *list.List     // the others, likewise
	opened map[opener]int // how many there are of each
}

func newSessions() *sessions {
	return &sessions{byID: map[string]*entry{}, unused: list.New(), order: list.New(), opened: map[opener]int{}}
}

// list is the one that the session is in. The lock is held.
func (ss *sessions) list(s *entry) *list.List {
	if s.asked {
		return ss.order
	}
	return ss.unused
}

// name sets the id of the session, which cannot be guessed.
func (s *entry) name(prefix string) {
	s.id = prefix + rand.Text() // 26 letters and digits, at least 128 bits
	s.record, s.ended = recordID(s.id), make(chan struct{})
}

// close ends a session. It is called once.
func (s *entry) close() {
	close(s.ended)
	s.session.Close()
}

// closed reports whether the session was closed by its client or by this server.
func (s *entry) closed() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// open names a session and enters it.
func (ss *sessions) open(s *entry) *wirejson.RPCError {
	s.name(ss.prefix)
	s.owner = ss
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s.used = time.Now()
	ss.expire(s.used)
	if !ss.room(s.opener) {
		return &wirejson.RPCError{Code: wirejson.CodeInternal,
			Message: "Too many sessions (10000), and all are in use. End one with DELETE, or use protocol version 2026-07-28, which needs none."}
	}
	s.at = ss.unused.PushFront(s)
	ss.opened[s.opener]++
	ss.byID[s.id] = s
	return nil
}

// room makes room for one more session of the opener, and reports whether there
// is any. The lock is held.
func (ss *sessions) room(o opener) bool {
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

// evict ends the idle session of the list that was not used for longest, of those
// that the first rule names if there are any, else the next one. It reports
// whether there is one. The lock is held.
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

// find returns the session with the id if it is the actor's, at that place: to
// anybody else, and anywhere else, it does not exist. The session is busy until it is released.
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

// expire ends the sessions that nobody came back to. The lock is held.
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

// remove takes a session out. The lock is held.
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

// recordID is how a session stands in the record: one cannot use it to speak
// in the session.
func recordID(id string) string {
	sum := sha256.Sum256([]byte("mcpproxy session " + id))
	return hex.EncodeToString(sum[:8])
}
