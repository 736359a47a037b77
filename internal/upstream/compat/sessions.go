package compat

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/transport"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/upstream"
	"mcpproxy/internal/upstream/process"
)

// peer is what a session stands on.
type peer interface {
	session.Doer
	Notify(ctx context.Context, method string, params json.RawMessage) error
	Respond(ctx context.Context, id json.RawMessage, r session.Reply) error
	Listen(ctx context.Context, say func(session.Event), opened func()) error
	Done() <-chan struct{}
	Cause() error
	Stop(hard <-chan struct{})
}

// sessionKind is the kind of what a session stands on.
type sessionKind uint8

const (
	own     sessionKind = iota // a session or process of the client's own
	bridged                    // nothing: requests that stand for themselves, of the other revision
	shared                     // the connection that all share
)

// Session is one client's session with a server. What the server says in it is
// for this client and for nobody else. It is not made anew when it is lost: then
// it is over, and the client begins another one.
type Session struct {
	peer
	sv     *upstream.Server
	kind   sessionKind
	own    *ownLink      // the peer, where it is the client's own; else nil
	ending *session.End  // comes when somebody ends it
	ended  chan struct{} // closed when it has ended

	level string         // that the server was told, where we say it
	said  *session.Queue // what belongs to no request, for the next one of a modern client
	key   string         // of the requests of modern clients that it may be used for
	spare bool           // no client has it now; guarded by sessions.mu
	busy  atomic.Int64   // requests and streams
	born  time.Time      // by the monotonic clock, which nobody sets
	used  atomic.Int64   // when it was not any more, in nanoseconds since born
}

// Close ends the session. It returns at once.
func (s *Session) Close() { s.ending.Fail(transport.ErrStopped) }

// isEnding reports whether somebody ends it.
func (s *Session) isEnding() bool { return s.ending.Cause() != nil }

// pid returns the number of the client's own process; 0 when there is none.
func (s *Session) pid() int {
	if s.own == nil {
		return 0
	}
	return s.own.Health().PID
}

// idleSince returns for how long s was not used; 0 while it is.
func (s *Session) idleSince(now time.Time) time.Duration {
	if s.busy.Load() > 0 {
		return 0
	}
	return now.Sub(s.born) - time.Duration(s.used.Load())
}

// sessions are those of clients with one server.
type sessions struct {
	sv         *upstream.Server
	sharing    *sharing
	modernOnly atomic.Bool // the server was found to refuse the legacy revisions

	mu     sync.Mutex // guards what follows
	all    map[*Session]struct{}
	closed bool

	crashed time.Time // when a client's process ended by itself
	next    time.Time // when the next one may be started after that
}

// The bounds of sessions with one server over stdio, where each is a process.
const (
	maxProcesses = 32
	processIdle  = 30 * time.Minute // then it ends
	evictAfter   = time.Minute      // then it may have to give way
)

// maxSpare bounds the sessions that are kept for requests to come.
const maxSpare = 8

// A server whose processes end by themselves is started at a pace: its clients
// all begin anew at once, and starting is dear.
const (
	startPause = 250 * time.Millisecond // between two starts
	crashTime  = 10 * time.Second       // after a process has ended
)

// openAs opens a session of one kind with initialize. When the server refuses it
// the session is nil and the reply says why.
func (t *sessions) openAs(ctx context.Context, initialize *session.Request, w sessionKind) (*Session, session.Reply, error) {
	var place *process.StartSlot
	if w == own && t.sv.Spec.Transport == upstream.Stdio {
		switch err := t.turn(ctx); {
		case err != nil && !session.TimedOut(ctx):
			return nil, session.Reply{}, err
		case err != nil:
			return nil, session.Reply{}, t.sv.Unreachable(problem.Ownf("its process has ended by itself a moment ago"), err)
		}
		var err error
		if place, err = t.sv.Place(ctx); err != nil {
			return nil, session.Reply{}, err
		}
		defer place.Leave(false)
	}
	s, err := t.begin(w, place)
	if err != nil {
		return nil, session.Reply{}, err
	}
	reply, err := s.send(ctx, initialize)
	if err == nil && reply.Error == nil {
		if s.own != nil {
			version, _ := wirejson.String(wirejson.Find(reply.Result, "protocolVersion"))
			s.own.Settled()
			s.own.Agree(version)
			if named := mcp.ClientVersion(version); named != version {
				reply.Result = wirejson.SetMember(reply.Result, "protocolVersion", text(named))
			}
		}
		return s, reply, nil
	}
	s.Close()
	if _, ok := err.(*problem.Problem); ok || err == nil {
		return nil, reply, err
	}
	if cause := s.Cause(); cause != nil && cause != transport.ErrStopped {
		err = cause
	}
	return nil, session.Reply{}, t.sv.Explain(ctx, initialize, err)
}

// begin makes what a session stands on and minds it. Nothing is said yet.
func (t *sessions) begin(w sessionKind, place *process.StartSlot) (*Session, error) {
	s := &Session{sv: t.sv, kind: w, ending: session.NewEnd(), ended: make(chan struct{}), born: time.Now()}
	if err := t.add(s); err != nil {
		return nil, err
	}
	switch w {
	case shared:
		s.peer = newSharedClient(t.sharing)
	case bridged:
		s.peer = newLegacyClient(t.sv)
	case own:
		s.own = newOwnLink(t.sv)
		l, err := t.sv.Open(reports{t.sv.Reports(), &s.own.announced}, place)
		if err != nil {
			close(s.ended)
			t.remove(s)
			return nil, t.sv.Unreachable(err, err)
		}
		s.own.Link, s.peer = l, s.own
	}
	go t.mind(s)
	return s, nil
}

// turn waits until a process may be started for a client. Who gives up has taken
// nothing.
func (t *sessions) turn(ctx context.Context) error {
	for {
		t.mu.Lock()
		now := time.Now()
		wait := t.next.Sub(now)
		free := t.closed || wait <= 0 || now.Sub(t.crashed) > crashTime
		if free {
			t.next = now.Add(startPause)
		}
		t.mu.Unlock()
		if free {
			return nil
		}
		if err := pause(ctx, wait); err != nil {
			return err
		}
	}
}

// fell notes that a client's process has ended by itself.
func (t *sessions) fell() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.crashed = time.Now()
}

// add takes s among the sessions. Over stdio there may be only so many
// processes: one that nobody has used for a while gives way.
func (t *sessions) add(s *Session) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	name := s.sv.Spec.Name
	switch {
	case t.closed:
		return upstream.NotStarted(name)
	case s.kind != bridged && (s.kind == shared) != s.sv.Shared(): // when that changes all sessions end
		return problem.Newf(problem.ServerUnavailable, "The configuration of server '%s' has just changed", name).
			WithHint("Try again.").With("server", name)
	}
	if s.kind == own && s.sv.Spec.Transport == upstream.Stdio && !t.makeRoom(time.Now()) {
		return problem.Newf(problem.Overloaded, "Server '%s' runs %d times already, once for each client, and all are in use.", name, maxProcesses).
			WithHint("End a client that is no longer needed, or set \"session\": \"shared\" for the server.").With("server", name)
	}
	if t.all == nil {
		t.all = map[*Session]struct{}{}
	}
	t.all[s] = struct{}{}
	return nil
}

// makeRoom ends the process that was idle for longest, if there are as many as
// there may be, and reports whether there is room now. The lock is held.
func (t *sessions) makeRoom(now time.Time) bool {
	n, oldest, idle := t.longestIdle(now, func(s *Session) bool { return s.kind == own })
	if n < maxProcesses {
		return true
	}
	if idle <= evictAfter {
		return false
	}
	oldest.Close()
	return true
}

// longestIdle returns how many sessions are such, and the one of them that was
// idle for longest. The lock is held.
func (t *sessions) longestIdle(now time.Time, such func(*Session) bool) (n int, oldest *Session, idle time.Duration) {
	for s := range t.all {
		if s.isEnding() || !such(s) {
			continue
		}
		n++
		if d := s.idleSince(now); oldest == nil || d > idle {
			oldest, idle = s, d
		}
	}
	return n, oldest, idle
}

// keep keeps a session for requests to come. The one that was kept for longest
// gives way when there are too many.
func (t *sessions) keep(s *Session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.spare = true
	if n, oldest, _ := t.longestIdle(time.Now(), func(s *Session) bool { return s.spare }); n > maxSpare {
		oldest.Close()
	}
}

// reuse returns the session kept for that key that was used last, nil when there
// is none.
func (t *sessions) reuse(key string) *Session {
	t.mu.Lock()
	defer t.mu.Unlock()
	var last *Session
	now := time.Now()
	for s := range t.all {
		if s.spare && s.key == key && !s.isEnding() && s.Cause() == nil && (last == nil || s.idleSince(now) < last.idleSince(now)) {
			last = s
		}
	}
	if last != nil {
		last.spare = false
	}
	return last
}

// inUse reports whether a client has a session open that ends with the
// connection.
func (t *sessions) inUse() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for s := range t.all {
		if !s.spare && s.kind != shared {
			return true
		}
	}
	return false
}

func (t *sessions) remove(s *Session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.all, s)
}

// mind waits for the end of s and cleans up.
func (t *sessions) mind(s *Session) {
	defer close(s.ended)
	idle := time.NewTicker(time.Minute)
	defer idle.Stop()
	for ended := false; !ended; {
		select {
		case <-s.ending.Done():
			ended = true
		case <-s.Done():
			if ended = true; s.pid() != 0 {
				t.fell()
			}
		case now := <-idle.C:
			ended = s.pid() != 0 && s.idleSince(now) > processIdle
		}
	}
	t.sv.Used() // before it is in use no more
	s.Stop(t.sv.Hard())
	t.remove(s)
}

// end ends the sessions that are such.
func (t *sessions) end(such func(*Session) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for s := range t.all {
		if such(s) {
			s.Close()
		}
	}
}

// close ends all sessions and waits until they have ended. There will be no more.
func (t *sessions) close() {
	t.mu.Lock()
	t.closed = true
	open := slices.Collect(maps.Keys(t.all))
	t.mu.Unlock()
	for _, s := range open {
		s.Close()
	}
	for _, s := range open {
		<-s.ended
	}
}
