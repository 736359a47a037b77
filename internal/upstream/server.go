package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"mcpproxy/internal/tool"
)

// server keeps one wanted server connected. Everything happens in the one
// goroutine of run; callers only read the live link, or wait for one.
type server struct {
	spec Spec
	opt  *Options
	open func() (link, error) // makes a link that reports to this server
	ids  *atomic.Uint64
	log  *serverLog
	mask masker

	live atomic.Pointer[liveLink] // nil unless Ready

	mu        sync.Mutex // guards what follows
	state     State
	changed   chan struct{}      // closed and replaced when state changes
	waiters   int                // callers that need the server now
	lastErr   error              // what state.LastError says
	failed    State              // as it was after the last failure
	failures  int                // tries that have failed since the start
	again     bool               // Restart was asked for
	interrupt context.CancelFunc // ends the try or the connection for Restart

	nudge     chan struct{} // cap 1: look at waiters and again
	relist    chan struct{} // cap 1: the tools have changed
	suspicion chan struct{} // cap 1: try whether the connection works

	cancel context.CancelFunc // ends run
	hard   <-chan struct{}    // ends the grace of stopping
	done   chan struct{}      // closed when run has ended
}

// liveLink is what Ready means.
type liveLink struct {
	link     link
	greeting *greeting
	listed   atomic.Pointer[definitions] // what the server itself listed last
}

// definitions are the tools of one list as their bytes.
type definitions map[string]json.RawMessage

// setListed takes the list that the link has just given.
func (l *liveLink) setListed(tools []tool.Definition) {
	defs := make(definitions, len(tools))
	for _, d := range tools {
		defs[d.ID.Tool] = d.Raw
	}
	l.listed.Store(&defs)
}

// stillLists says whether the tool of c is what the caller has judged.
func (l *liveLink) stillLists(c *Call) bool {
	raw, ok := (*l.listed.Load())[c.Tool]
	return ok && bytes.Equal(raw, c.Listed)
}

// The times of supervision.
const (
	defaultConnectTime = 30 * time.Second
	minBackoff         = 500 * time.Millisecond
	maxBackoff         = 5 * time.Minute
	stableTime         = time.Minute      // a connection that held so long starts the backoff anew
	demandPause        = time.Second      // between tries that callers ask for
	pingPause          = 30 * time.Second // of silence, then a ping
	pingTime           = 10 * time.Second
	relistPause        = 2 * time.Second // between two lists
	blindPause         = time.Minute     // between two lists of a server that does not say when they change
	doubtPause         = time.Second     // between two tries of a doubtful connection
)

// newServer makes a server; run starts it.
func newServer(spec Spec, opt *Options, ids *atomic.Uint64, hard <-chan struct{}) *server {
	mask := newMasker(spec.Secrets)
	return &server{
		spec: spec, opt: opt, ids: ids, hard: hard, mask: mask,
		log:       newServerLog(opt.LogDir, spec.Name, mask),
		state:     State{Name: spec.Name, Phase: Stopped, Since: time.Now()},
		changed:   make(chan struct{}),
		nudge:     make(chan struct{}, 1),
		relist:    make(chan struct{}, 1),
		suspicion: make(chan struct{}, 1),
		done:      make(chan struct{}),
	}
}

// run connects, serves and reconnects until ctx ends. It starts when before is
// closed: a server that is launched anew must not run twice.
func (s *server) run(ctx context.Context, before <-chan struct{}) {
	defer close(s.done)
	defer s.log.close()
	if before != nil {
		select {
		case <-before:
		case <-ctx.Done(): // before is stopped by whoever stops this
			<-before
		}
	}
	bo := backoff{}
	for ctx.Err() == nil {
		start := time.Now()
		l, err := s.try(ctx)
		if l != nil {
			err = s.keep(ctx, l, &bo)
		}
		if ctx.Err() == nil {
			s.lose(err, l == nil, &bo)
		}
		if l != nil {
			l.link.stop(s.hard)
		}
		s.waitToRetry(ctx, start, &bo)
	}
	s.update(func(st *State) {
		*st = State{Name: st.Name, Phase: Stopped, Restarts: st.Restarts, LastError: st.LastError, Since: st.Since}
	})
}

// try makes one connection. Restart ends it.
func (s *server) try(ctx context.Context) (*liveLink, error) {
	s.update(func(st *State) { st.Phase, st.RetryAt = Connecting, time.Time{} })
	ctx, cancel := s.restartable(ctx)
	defer cancel()
	l, err := s.connect(ctx)
	if err != nil {
		s.remark("not connected: " + err.Error())
		return nil, err
	}
	return l, nil
}

// keep serves a connection until it is lost and gives the reason.
func (s *server) keep(ctx context.Context, l *liveLink, bo *backoff) error {
	ctx, cancel := s.restartable(ctx)
	defer cancel()
	ready := time.Now()
	err := s.serve(ctx, l)
	s.live.Store(nil)
	s.remark("disconnected: " + err.Error())
	if time.Since(ready) >= stableTime {
		bo.reset()
	}
	return err
}

// restartable gives a context that restart ends too.
func (s *server) restartable(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	s.mu.Lock()
	s.interrupt = cancel
	if s.again {
		cancel()
	}
	s.mu.Unlock()
	return ctx, cancel
}

// lose puts the state to Waiting and settles when the next try is due.
func (s *server) lose(err error, failed bool, bo *backoff) {
	wait := bo.next()
	err = s.mask.err(err)
	asked := false
	s.update(func(st *State) {
		asked = s.again
		if asked { // by a person: no failure, and nothing to wait for
			s.lastErr = errRestart
			st.Phase, st.LastError, st.RetryAt, st.PID = Connecting, "", time.Time{}, 0
			return
		}
		if failed {
			s.failures++
		}
		s.lastErr = err
		st.Phase, st.LastError, st.RetryAt, st.PID = Waiting, err.Error(), time.Now().Add(wait), 0
		s.failed = *st
	})
	if asked {
		return
	}
	s.opt.Logger.Info("server not connected", "server", s.spec.Name, "error", err, "retry_in", wait)
}

// connect makes a link, shakes hands and lists the tools.
func (s *server) connect(ctx context.Context) (*liveLink, error) {
	limit := s.connectTime()
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it took longer than %v", limit))
	defer cancel()
	drain(s.relist)
	drain(s.suspicion)
	l, err := s.open()
	if err != nil {
		return nil, err
	}
	ll, tools, err := s.introduce(ctx, l)
	if err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("%w (%w)", err, context.Cause(ctx))
		} else if cause := l.cause(); cause != nil {
			err = cause
		}
		l.stop(s.hard)
		return nil, err
	}
	s.remark("connected")
	s.tell(tools)
	s.live.Store(ll)
	s.update(func(st *State) {
		if st.ProtocolVersion != "" {
			st.Restarts++
		}
		st.Phase, st.PID = Ready, l.pid()
		st.ProtocolVersion, st.ServerInfo = ll.greeting.version, ll.greeting.info
		st.Instructions, st.Capabilities = ll.greeting.instructions, ll.greeting.capabilities
	})
	return ll, nil
}

func (s *server) connectTime() time.Duration {
	if s.spec.ConnectTimeout > 0 {
		return s.spec.ConnectTimeout
	}
	return defaultConnectTime
}

func (s *server) introduce(ctx context.Context, l link) (*liveLink, []tool.Definition, error) {
	g, err := s.initialize(ctx, l)
	if err != nil {
		return nil, nil, err
	}
	tools, err := s.listTools(ctx, l, g)
	if err != nil {
		return nil, nil, err
	}
	ll := &liveLink{link: l, greeting: g}
	ll.setListed(tools)
	return ll, tools, nil
}

// serve keeps a ready link: lists again when the tools change, pings when all
// is silent, and gives the reason when it ends.
func (s *server) serve(ctx context.Context, l *liveLink) error {
	tick := time.NewTicker(pingPause)
	defer tick.Stop()
	look := time.NewTicker(blindPause)
	defer look.Stop()
	var (
		relist   = s.relist
		relistAt <-chan time.Time // set while a change waits for its time
		listed   time.Time        // again
		heard    = l.link.activity()
		tried    time.Time
	)
	for {
		select {
		case <-ctx.Done():
			return errStopped
		case <-l.link.lost():
			return l.link.cause()
		case <-relist:
			// One change is enough to know: until its time has come the next
			// ones need not be looked at.
			relist = nil
			relistAt = time.After(max(0, relistPause-time.Since(listed)))
		case <-relistAt:
			relist, relistAt = s.relist, nil
			drain(s.relist)
			if err := s.listAgain(ctx, l); err != nil {
				return err
			}
			listed = time.Now()
		case <-look.C:
			if !l.greeting.saysChanges || !l.link.attended() {
				signal(s.relist)
			}
		case <-s.suspicion:
			if time.Since(tried) < doubtPause {
				continue
			}
			tried = time.Now()
			if err := s.ping(ctx, l); err != nil {
				return err
			}
		case now := <-tick.C:
			l.link.tidy(now)
			if h := l.link.activity(); h != heard || l.link.inFlight() > 0 {
				heard = h
				continue
			}
			if err := s.ping(ctx, l); err != nil {
				return err
			}
			heard = l.link.activity()
		}
	}
}

// listAgain lists the tools after a change. A list that cannot be read leaves
// the old one standing, unless the link is lost.
func (s *server) listAgain(ctx context.Context, l *liveLink) error {
	lctx, cancel := context.WithTimeout(ctx, defaultConnectTime)
	defer cancel()
	tools, err := s.listTools(lctx, l.link, l.greeting)
	if err == nil {
		l.setListed(tools) // first: what was judged on the old list is not sent any more
		s.tell(tools)
		return nil
	}
	if cause := l.link.cause(); cause != nil {
		return cause
	}
	if ctx.Err() != nil {
		return errStopped
	}
	s.remark("the changed tools could not be listed: " + err.Error())
	s.opt.Logger.Warn("tools not listed", "server", s.spec.Name, "error", s.mask.err(err))
	return nil
}

// ping tries the connection. Any answer will do. No answer within the time is
// forgiven as long as the server works on something or says something.
func (s *server) ping(ctx context.Context, l *liveLink) error {
	heard := l.link.activity()
	pctx, cancel := context.WithTimeout(ctx, pingTime)
	defer cancel()
	_, err := s.ask(pctx, l.link, methodPing, nil)
	switch {
	case err == nil:
		return nil
	case l.link.cause() != nil:
		return l.link.cause()
	case ctx.Err() != nil:
		return errStopped
	case pctx.Err() == nil:
		return nil // it answered, with an error of some kind
	case l.link.activity() != heard || l.link.inFlight() > 0:
		return nil
	}
	return fmt.Errorf("the server did not answer a ping within %v", pingTime)
}

// waitToRetry waits until the next try is due, or a caller needs the server,
// or Restart asks for it. start is when the last try began.
func (s *server) waitToRetry(ctx context.Context, start time.Time, bo *backoff) {
	due := time.NewTimer(time.Until(s.snapshot().RetryAt))
	defer due.Stop()
	var demanded <-chan time.Time
	for {
		s.mu.Lock()
		needed, again := s.waiters > 0, s.again
		s.again = false
		s.mu.Unlock()
		if again {
			bo.reset()
			return
		}
		if needed && demanded == nil {
			demanded = time.After(max(0, demandPause-time.Since(start)))
		}
		select {
		case <-ctx.Done():
			return
		case <-due.C:
			return
		case <-demanded:
			return
		case <-s.nudge:
		}
	}
}

// backoff is the pause before the next try: doubling, with jitter.
type backoff struct{ tries int }

func (b *backoff) reset() { b.tries = 0 }

func (b *backoff) next() time.Duration {
	d := maxBackoff
	if b.tries < 10 {
		d = min(minBackoff<<b.tries, maxBackoff)
	}
	b.tries++
	return d/2 + rand.N(d/2)
}

// update changes the state, with the lock held, wakes those who wait for a change, and tells the
// observer.
func (s *server) update(change func(*State)) {
	s.mu.Lock()
	before := s.state.Phase
	change(&s.state)
	if s.state.Phase != before {
		s.state.Since = time.Now()
	}
	state := s.state
	close(s.changed)
	s.changed = make(chan struct{})
	s.mu.Unlock()
	if s.opt.Observer != nil {
		s.opt.Observer.StateChanged(state)
	}
}

// tell hands the list of tools to the observer.
func (s *server) tell(tools []tool.Definition) {
	if s.opt.Observer != nil {
		s.opt.Observer.ToolsListed(s.spec.Name, tools)
	}
}

func (s *server) snapshot() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// restart ends the connection, or the try, and makes a new one at once.
func (s *server) restart() {
	s.mu.Lock()
	s.again = true
	if s.interrupt != nil {
		s.interrupt()
	}
	s.mu.Unlock()
	signal(s.nudge)
}

// toolsChanged, missed, doubt and remark are what a link says.
func (s *server) toolsChanged() { signal(s.relist) }

func (s *server) missed() {
	if l := s.live.Load(); l == nil || l.greeting.saysChanges {
		signal(s.relist)
	}
}

func (s *server) doubt() { signal(s.suspicion) }

func (s *server) remark(text string) { s.log.remark(text) }

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func drain(c chan struct{}) {
	select {
	case <-c:
	default:
	}
}
