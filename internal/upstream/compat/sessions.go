package compat

import (
	"bytes"
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

// sessionPeer is the server side of a session.
type sessionPeer interface {
	session.Doer
	NotifyServer(ctx context.Context, method string, params json.RawMessage) error
	AnswerServerQuestion(ctx context.Context, id json.RawMessage, r session.Reply) error
	Listen(ctx context.Context, say func(session.Event), opened func()) error
	Done() <-chan struct{}
	Cause() error
	Stop(hard <-chan struct{})
}

// peerKind is the kind of a session's peer.
type peerKind uint8

const (
	kindOwn     peerKind = iota // a session or process of the client's own
	kindBridged                 // single requests in the other protocol
	kindShared                  // the shared connection
)

// Session is one client's session with a server. It is not renewed when the connection is
// lost: then it ends, and the client begins another one.
type Session struct {
	sessionPeer
	sv     *upstream.Server
	kind   peerKind
	shared *sharedClient        // the peer of a kindShared session; otherwise nil
	own    *exclusiveClientLink // the peer of a kindOwn session; otherwise nil
	client *exclusiveClient     // of a session that a legacy client has opened and has alone; else nil
	ending *session.EndSignal   // set when it is asked to end
	ended  chan struct{}        // closed when it has ended

	level    string              // log level sent to the server, if MCPProxy sends it
	queued   *session.EventQueue // messages outside of requests, for the next request of a modern client
	key      string              // pool key: which modern requests may use it
	pooled   bool                // not in use; guarded by sessionSet.mu
	busy     atomic.Int64        // number of requests and streams
	started  time.Time           // reference for monotonic times
	lastUsed atomic.Int64        // end of the last use, in nanoseconds since started
}

// Close ends the session. It returns at once.
func (s *Session) Close() { s.ending.Signal(transport.ErrStopped) }

// IsMoved reports whether the client continues in its own session.
func (s *Session) IsMoved() bool { return s.Cause() == session.ErrMoved }

// needsOwn reports whether the client shares the connection but needs its own session.
func (s *Session) needsOwn(on *upstream.Connection) bool {
	return s.shared != nil && on != nil && s.sv.Spec.Auto && s.sv.NeedsOwnSession(on, s.shared.declared(), false)
}

// moveAway ends the session, immediately or when no request is in flight, so that the client gets its own. A session of
// a modern client ends when it would return to the pool.
func (s *Session) moveAway() {
	if s.pooled {
		s.Close()
	} else {
		s.shared.moveAway()
	}
}

// isEnding reports whether the session is ending.
func (s *Session) isEnding() bool { return s.ending.Cause() != nil }

// pid returns the id of the client's own process; 0 without one.
func (s *Session) pid() int {
	if s.own == nil {
		return 0
	}
	return s.own.Health().PID
}

// idleTime returns the idle time; 0 while it is in use.
func (s *Session) idleTime(now time.Time) time.Duration {
	if s.busy.Load() > 0 {
		return 0
	}
	return now.Sub(s.started) - time.Duration(s.lastUsed.Load())
}

// sessionSet are the client sessions of one server.
type sessionSet struct {
	sv         *upstream.Server
	sharing    *sharedConnection
	modernOnly atomic.Bool // the server rejected the legacy protocol

	mu     sync.Mutex // guards the fields below
	all    map[*Session]struct{}
	closed bool

	crashed time.Time // when a client's process last exited unexpectedly
	next    time.Time // earliest next start after that
}

// Bounds of sessions with one stdio server, where each is a process.
const (
	maxProcesses = 32
	processIdle  = 30 * time.Minute // until it is closed
	evictAfter   = time.Minute      // until it may be evicted
)

// maxPooled bounds the pooled sessions.
const maxPooled = 8

// Starts are throttled when a server's processes crash, because all its clients begin
// again at once and starts are expensive.
const (
	crashStartInterval = 250 * time.Millisecond // between two starts
	crashPeriod        = 10 * time.Second       // after a crash
)

// openSessionOfKind opens a session of one kind with initialize. If the server rejects it, the
// session is nil and the reply has the error.
func (t *sessionSet) openSessionOfKind(ctx context.Context, initialize *session.Request, w peerKind) (*Session, session.Reply, error) {
	var place *process.StartSlot
	if w == kindOwn && t.sv.Spec.Transport == upstream.Stdio {
		switch err := t.waitForCrashThrottle(ctx); {
		case err != nil && !session.IsTimedOut(ctx):
			return nil, session.Reply{}, err
		case err != nil:
			return nil, session.Reply{}, t.sv.UnreachableError(problem.TrustedTextErrorf("its process has just exited"), err)
		}
		var err error
		if place, err = t.sv.WaitStartSlot(ctx); err != nil {
			return nil, session.Reply{}, err
		}
		defer place.Release(false)
	}
	s, err := t.newClientSession(w, place)
	if err != nil {
		return nil, session.Reply{}, err
	}
	s.beginUse()
	reply, err := upstream.SendInitialize(ctx, s.sessionPeer, initialize)
	s.endUse()
	if err == nil && reply.Error == nil {
		if s.own != nil {
			version, _ := wirejson.String(wirejson.Find(reply.Result, "protocolVersion"))
			s.own.MarkStartComplete()
			s.own.SetVersion(version)
			if named := mcp.ReplaceDraftVersion(version); named != version {
				reply.Result = wirejson.SetMember(reply.Result, "protocolVersion", encodeJSONString(named))
			}
			s.client = &exclusiveClient{capabilities: bytes.Clone(wirejson.Find(initialize.Params, "capabilities"))}
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
	return nil, session.Reply{}, t.sv.ToProblem(ctx, initialize, err)
}

// newClientSession creates a session with its peer and watches it. Nothing is sent yet.
func (t *sessionSet) newClientSession(w peerKind, place *process.StartSlot) (*Session, error) {
	s := &Session{sv: t.sv, kind: w, ending: session.NewEndSignal(), ended: make(chan struct{}), started: time.Now()}
	if err := t.addSession(s); err != nil {
		return nil, err
	}
	switch w {
	case kindShared:
		s.shared = newSharedClient(t.sharing)
		s.sessionPeer = s.shared
	case kindBridged:
		s.sessionPeer = newLegacyClientBridge(t.sv)
	case kindOwn:
		s.own = newExclusiveClientLink(t.sv)
		l, err := t.sv.OpenClientLink(exclusiveLinkReporter{t.sv.ReportReceiver(), &s.own.announced}, place)
		if err != nil {
			close(s.ended)
			t.removeSession(s)
			return nil, t.sv.UnreachableError(err, err)
		}
		s.own.Link, s.sessionPeer = l, s.own
	}
	go t.watchSessionEnd(s)
	return s, nil
}

// waitForCrashThrottle waits until a process may be started for a client: at once, unless one has crashed a moment
// ago.
func (t *sessionSet) waitForCrashThrottle(ctx context.Context) error {
	for {
		t.mu.Lock()
		now := time.Now()
		wait := t.next.Sub(now)
		free := t.closed || wait <= 0 || now.Sub(t.crashed) > crashPeriod
		if free {
			t.next = now.Add(crashStartInterval)
		}
		t.mu.Unlock()
		if free {
			return nil
		}
		if err := sleepContext(ctx, wait); err != nil {
			return err
		}
	}
}

// recordCrash records that a client's process has exited unexpectedly.
func (t *sessionSet) recordCrash() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.crashed = time.Now()
}

// addSession adds s. For a stdio server at its maximum number of processes, an idle one is
// evicted.
func (t *sessionSet) addSession(s *Session) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	name := s.sv.Spec.Name
	switch {
	case t.closed:
		return upstream.NotStartedError(name)
	case !s.sv.Spec.Auto && s.kind != kindBridged && (s.kind == kindShared) != s.sv.IsShared(): // all sessions end when that changes
		return problem.Newf(problem.ServerUnavailable, "The configuration of server '%s' has just changed", name).
			WithHint("Try again.").With("server", name)
	}
	if s.kind == kindOwn && s.sv.Spec.Transport == upstream.Stdio && !t.makeRoom(time.Now()) {
		return problem.Newf(problem.Overloaded, "Server '%s' runs %d times already, once for each client, and all are in use.", name, maxProcesses).
			WithHint("End a client that is no longer needed, or set \"session\": \"shared\" for the server.").With("server", name)
	}
	if t.all == nil {
		t.all = map[*Session]struct{}{}
	}
	t.all[s] = struct{}{}
	return nil
}

// makeRoom ends the process that was idle for longest if the maximum is reached, and
// reports whether there is room. The lock is held.
func (t *sessionSet) makeRoom(now time.Time) bool {
	n, oldest, idle := t.longestIdleSession(now, func(s *Session) bool { return s.kind == kindOwn })
	if n < maxProcesses {
		return true
	}
	if idle <= evictAfter {
		return false
	}
	oldest.Close()
	return true
}

// longestIdleSession returns the number of sessions that match, and the one that was idle for
// longest. The lock is held.
func (t *sessionSet) longestIdleSession(now time.Time, such func(*Session) bool) (n int, oldest *Session, idle time.Duration) {
	for s := range t.all {
		if s.isEnding() || !such(s) {
			continue
		}
		n++
		if d := s.idleTime(now); oldest == nil || d > idle {
			oldest, idle = s, d
		}
	}
	return n, oldest, idle
}

// addToPool keeps a session for later requests. If there are too many, it closes the oldest one.
func (t *sessionSet) addToPool(s *Session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.pooled = true
	if s.needsOwn(t.sharing.connection()) {
		s.Close()
	}
	if n, oldest, _ := t.longestIdleSession(time.Now(), func(s *Session) bool { return s.pooled }); n > maxPooled {
		oldest.Close()
	}
}

// takePooled returns the most recently used session with that key, or nil.
func (t *sessionSet) takePooled(key string) *Session {
	t.mu.Lock()
	defer t.mu.Unlock()
	var last *Session
	now := time.Now()
	for s := range t.all {
		if s.pooled && s.key == key && !s.isEnding() && s.Cause() == nil && (last == nil || s.idleTime(now) < last.idleTime(now)) {
			last = s
		}
	}
	if last != nil {
		last.pooled = false
	}
	return last
}

// hasDependentSession reports whether a client has a session open that ends with the connection.
func (t *sessionSet) hasDependentSession() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for s := range t.all {
		if !s.pooled && s.kind != kindShared {
			return true
		}
	}
	return false
}

func (t *sessionSet) removeSession(s *Session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.all, s)
}

// watchSessionEnd waits for the end of s and cleans up.
func (t *sessionSet) watchSessionEnd(s *Session) {
	defer close(s.ended)
	idle := time.NewTicker(time.Minute)
	defer idle.Stop()
	for ended := false; !ended; {
		select {
		case <-s.ending.Done():
			ended = true
		case <-s.Done():
			if ended = true; s.pid() != 0 {
				t.recordCrash()
			}
		case now := <-idle.C:
			ended = s.pid() != 0 && s.idleTime(now) > processIdle
		}
	}
	t.sv.MarkUsed() // before it counts as unused
	s.Stop(t.sv.StopNowSignal())
	t.removeSession(s)
}

// endSessions ends the sessions that match.
func (t *sessionSet) endSessions(such func(*Session) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for s := range t.all {
		if such(s) {
			s.Close()
		}
	}
}

// closeAll ends all sessions and waits for them. No new ones can be opened.
func (t *sessionSet) closeAll() {
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
