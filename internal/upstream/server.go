package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	room *room // where its large messages are read

	live       atomic.Pointer[liveLink] // nil unless Ready
	era        atomic.Uint32            // what the server was found to speak
	modernOnly atomic.Bool              // and nothing else
	foundSSE   atomic.Bool              // it speaks the older transport alone
	talks      talks
	newer      newer
	sharing    sharing

	pace  atomic.Pointer[pace]
	paced chan struct{} // cap 1: pace has changed
	uses  atomic.Int64  // requests that need the server now
	used  atomic.Int64  // when the last one ended, in Unix nanoseconds
	slept bool          // since the last connection; run alone looks at it

	mu        sync.Mutex // guards what follows
	state     State
	changed   chan struct{}      // closed and replaced when state changes
	waiters   int                // callers that need the server now
	lastErr   error              // what state.LastError says
	failed    State              // as it was after the last failure
	failures  int                // tries that have failed since the start
	again     bool               // Restart was asked for
	wanted    bool               // somebody needs it to run, but does not wait
	interrupt context.CancelFunc // ends the try or the connection for Restart
	listedAt  time.Time          // when the list was asked for that was told last
	relisted  chan struct{}      // closed and replaced when a list was told
	learnt    learnt

	nudge     chan struct{} // cap 1: look at waiters and again
	relist    chan struct{} // cap 1: the tools have changed
	taught    chan struct{} // cap 1: something was learnt
	reoffer   chan struct{} // cap 1: the prompts or resources have
	suspicion chan struct{} // cap 1: try whether the connection works

	reviewed bool // that Apply was last told so; guarded by Set.mu

	cancel context.CancelFunc // ends run
	hard   <-chan struct{}    // ends the grace of stopping
	done   chan struct{}      // closed when run has ended
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
	s := &server{
		spec: spec, opt: opt, ids: ids, hard: hard, mask: mask,
		log:       newServerLog(opt.LogDir, spec.Name, mask),
		state:     State{Name: spec.Name, Phase: Stopped, Since: time.Now()},
		changed:   make(chan struct{}),
		relisted:  make(chan struct{}),
		nudge:     make(chan struct{}, 1),
		relist:    make(chan struct{}, 1),
		taught:    make(chan struct{}, 1),
		reoffer:   make(chan struct{}, 1),
		suspicion: make(chan struct{}, 1),
		paced:     make(chan struct{}, 1),
		done:      make(chan struct{}),
		sharing:   newSharing(),
	}
	s.pace.Store(spec.pace())
	s.sharing.on.Store(spec.Shared)
	return s
}

// run connects, serves and reconnects until ctx ends. It starts when before is
// closed: a server that is launched anew must not run twice.
func (s *server) run(ctx context.Context, before <-chan struct{}) {
	defer close(s.done)
	defer s.log.close()
	defer s.newer.end()
	defer s.talks.endAll(true)
	defer context.AfterFunc(ctx, func() { s.talks.endAll(false) })()
	if before != nil {
		select {
		case <-before:
		case <-ctx.Done(): // before is stopped by whoever stops this
			<-before
		}
	}
	bo, rests := backoff{}, s.pace.Load().lazy
	for ctx.Err() == nil {
		if rests {
			rests = false
			s.sleep(ctx)
			continue
		}
		start := time.Now()
		l, err := s.try(ctx)
		if l != nil {
			err = s.keep(ctx, l, &bo)
		}
		if err == errIdle {
			l.link.stop(s.hard)
			s.newer.drop()
			bo.reset()
			rests = true
			continue
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
	start := time.Now()
	ll, tools, err := s.introduce(ctx, l)
	if errors.Is(err, errShy) { // again, without asking
		l.stop(s.hard)
		if l, err = s.open(); err != nil {
			return nil, err
		}
		ll, tools, err = s.introduce(ctx, l)
	}
	if err != nil && s.mayBeOlder(err) {
		l, ll, tools, err = s.introduceOlder(ctx, l, err)
	}
	if err != nil {
		s.foundSSE.Store(false) // it may have become another one
		if ctx.Err() != nil {
			err = fmt.Errorf("%w (%w)", err, context.Cause(ctx))
		} else if cause := l.cause(); cause != nil {
			err = cause
		}
		l.stop(s.hard)
		return nil, err
	}
	s.remark("connected")
	drain(s.suspicion) // what raised it the handshake has settled
	s.publish(ll, tools)
	s.noteListed(start)
	s.noteUse()
	s.sharing.renew(ll)
	s.live.Store(ll)
	s.update(func(st *State) {
		if st.ProtocolVersion != "" && !s.slept {
			st.Restarts++
		}
		s.slept, s.wanted = false, false
		st.Phase, st.PID = Ready, l.pid()
		st.Offers = s.ids.Add(1)
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
	g, err := s.greet(ctx, l)
	if err != nil {
		return nil, nil, err
	}
	tools, err := s.listTools(ctx, l, g)
	if err != nil {
		return nil, nil, err
	}
	return &liveLink{link: l, greeting: g}, tools, nil
}

// serve keeps a ready link: lists again when the tools change, pings when all
// is silent, and gives the reason when it ends.
func (s *server) serve(ctx context.Context, l *liveLink) error {
	tick := time.NewTicker(pingPause)
	defer tick.Stop()
	look := time.NewTicker(blindPause)
	defer look.Stop()
	rest := time.NewTimer(s.untilIdle())
	defer rest.Stop()
	bctx, cancel := context.WithCancel(ctx)
	var beside sync.WaitGroup
	defer func() { cancel(); beside.Wait() }()
	unsettled := s.sharing.unsettled
	if l.modern() {
		unsettled = nil
		if l.greeting.saysChanges || l.greeting.saysOffers {
			beside.Go(func() { s.watch(bctx, l) })
		}
	}
	var (
		relist   = s.relist
		relistAt <-chan time.Time // set while a change waits for its time
		listed   time.Time        // again
		reoffer  = s.reoffer
		offerAt  <-chan time.Time // as relistAt
		offered  time.Time
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
		case <-s.taught:
			s.publish(l, *l.own.Load())
		case <-reoffer:
			reoffer = nil
			offerAt = time.After(max(0, relistPause-time.Since(offered)))
		case <-offerAt:
			reoffer, offerAt, offered = s.reoffer, nil, time.Now()
			drain(s.reoffer)
			s.update(func(st *State) { st.Offers = s.ids.Add(1) })
		case <-look.C:
			if !l.greeting.saysChanges || !l.attended() {
				signal(s.relist)
			}
		case <-unsettled:
			unsettled = nil
			beside.Go(func() { s.tend(bctx, l) })
		case <-rest.C:
			if s.retire(l) {
				return errIdle
			}
			rest.Reset(s.untilIdle())
		case <-s.paced:
			rest.Reset(s.untilIdle())
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
			s.talks.tidy(now)
			if h := l.link.activity(); h != heard || l.busy() {
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
	start := time.Now()
	tools, err := s.listTools(lctx, l.link, l.greeting)
	if err == nil {
		s.publish(l, tools)
		s.noteListed(start)
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
	method := methodPing
	if l.modern() {
		method = methodDiscover // this revision has no ping
	}
	_, err := s.ask(pctx, l.link, l.greeting.version, method, nil)
	switch {
	case err == nil:
		return nil
	case l.link.cause() != nil:
		return l.link.cause()
	case ctx.Err() != nil:
		return errStopped
	case pctx.Err() == nil:
		return nil // it answered, with an error of some kind
	case l.link.activity() != heard || l.busy():
		return nil
	}
	return fmt.Errorf("the server did not answer a ping within %v", pingTime)
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

// restart ends the connection, or the try, and makes a new one at once. Clients
// that share the connection go on with the new one.
func (s *server) restart() {
	s.mu.Lock()
	s.again, s.learnt = true, nil
	if s.interrupt != nil {
		s.interrupt()
	}
	s.mu.Unlock()
	s.talks.endWithConnection()
	signal(s.nudge)
}

// toolsChanged, offersChanged, heard, missed, doubt and remark are what a link says.
func (s *server) toolsChanged() { signal(s.relist) }

func (s *server) offersChanged() { signal(s.reoffer) }

func (s *server) heard(method string, params json.RawMessage) bool {
	return s.sharing.spread(method, params)
}

func (s *server) missed() {
	if l := s.live.Load(); l == nil || l.greeting.saysChanges {
		signal(s.relist)
	}
	if l := s.live.Load(); l != nil && l.greeting.saysOffers {
		signal(s.reoffer)
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
