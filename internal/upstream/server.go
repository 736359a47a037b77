package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"mcpproxy/internal/link"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/process"
	"mcpproxy/internal/startup"
	"mcpproxy/internal/tool"
	"mcpproxy/internal/wire"
)

// server keeps one wanted server connected. Everything happens in the one
// goroutine of run; callers only read the live link, or wait for one.
type server struct {
	spec Spec
	opt  *Options
	open func() (link.Link, error) // makes a link that reports to this server
	ids  *atomic.Uint64
	log  *process.Log
	mask process.Masker
	born time.Time // by the monotonic clock, which nobody sets

	runner startup.Runner                // what fetches the server before it starts
	starts *startup.Queue                // nil: it starts without waiting for its turn
	place  atomic.Pointer[startup.Place] // in starts; nil when there is none
	began  atomic.Int64                  // when the try began, in Unix nanoseconds

	room *wire.Budget // where its large messages are read

	live       atomic.Pointer[liveLink] // nil unless Ready
	announced  atomic.Uint64            // changes of its tools, on whatever connection
	era        atomic.Uint32            // what the server was found to speak
	modernOnly atomic.Bool              // and nothing else
	foundSSE   atomic.Bool              // it speaks the older transport alone
	talks      talks
	newer      newer
	sharing    sharing

	pace      atomic.Pointer[pace]
	paced     chan struct{} // cap 1: pace has changed
	uses      atomic.Int64  // requests that need the server now
	listening atomic.Int64  // those among them that only listen
	used      atomic.Int64  // when the last one ended, in nanoseconds since born
	slept     bool          // since the last connection; run alone looks at it

	mu         sync.Mutex // guards what follows
	state      State
	changed    chan struct{}      // closed and replaced when state changes
	waiters    int                // callers that need the server now
	lastErr    error              // what state.LastError says
	failed     State              // as it was after the last failure
	failures   int                // tries that have failed since the start
	again      bool               // a restart was asked for
	restarted  time.Time          // when, the last time
	restarting bool               // for an agent: it waits until nothing is in flight
	hasty      bool               // the next try was asked for, and goes before others
	wanted     bool               // somebody needs it to run, but does not wait
	interrupt  context.CancelFunc // ends the try or the connection for Restart
	listedAt   time.Time          // when the list was asked for that was told last
	relisted   chan struct{}      // closed and replaced when a list was told, or refused
	unlisted   uint64             // lists that the server has refused
	learnt     learnt

	nudge     chan struct{} // cap 1: look at waiters and again
	relist    chan struct{} // cap 1: the tools have changed
	awaited   chan struct{} // cap 1: a call waits for the list of the changed tools
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
	minBackoff         = time.Second
	maxBackoff         = 5 * time.Minute
	stableTime         = time.Minute      // a connection that held so long starts the backoff anew
	demandPause        = time.Second      // between tries that callers ask for
	maxDemandPause     = 10 * time.Second // the same where tries take long
	pingPause          = 30 * time.Second // of silence, then a ping
	pingTime           = 10 * time.Second
	relistPause        = 2 * time.Second // between two lists
	blindPause         = time.Minute     // between two lists of a server that does not say when they change
	doubtPause         = time.Second     // between two tries of a doubtful connection
)

// newServer makes a server; run starts it.
func newServer(spec Spec, opt *Options, ids *atomic.Uint64, hard <-chan struct{}) *server {
	mask := process.NewMasker(spec.Secrets)
	s := &server{
		spec: spec, opt: opt, ids: ids, hard: hard, mask: mask, born: time.Now(), runner: spec.runner(),
		log:       process.NewLog(opt.LogDir, spec.Name, mask),
		state:     State{Name: spec.Name, Phase: Stopped, Since: time.Now()},
		changed:   make(chan struct{}),
		relisted:  make(chan struct{}),
		nudge:     make(chan struct{}, 1),
		relist:    make(chan struct{}, 1),
		awaited:   make(chan struct{}, 1),
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
	defer s.log.Close()
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
			l.link.Stop(s.hard)
			s.newer.drop()
			bo.reset()
			rests = true
			continue
		}
		if ctx.Err() == nil {
			s.lose(err, l == nil, &bo)
		}
		if l != nil {
			l.link.Stop(s.hard)
		}
		s.waitToRetry(ctx, start, l == nil, &bo)
	}
	s.update(func(st *State) {
		*st = State{Name: st.Name, Phase: Stopped, Restarts: st.Restarts, LastError: st.LastError, Failure: st.Failure,
			FailedAt: st.FailedAt, Since: st.Since}
	})
}

// try makes one connection, when its turn to start has come. Restart ends it.
func (s *server) try(ctx context.Context) (*liveLink, error) {
	s.update(func(st *State) { st.Phase, st.RetryAt = Connecting, time.Time{} })
	ctx, cancel := s.restartable(ctx)
	defer cancel()
	err := s.turn(ctx)
	if err != nil {
		return nil, err
	}
	l, err := s.connect(ctx)
	s.leavePlace(err == nil)
	if err != nil {
		s.Remark("not connected: " + err.Error())
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
	s.Remark("disconnected: " + err.Error())
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

// connect makes a link, shakes hands and lists the tools.
func (s *server) connect(ctx context.Context) (*liveLink, error) {
	limit, why := s.connectTime(), problem.Slowf("it took longer than %v", s.connectTime())
	if s.spec.Transport == Stdio { // its startup watches it
		limit = startup.Longest
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, why)
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
		l.Stop(s.hard)
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
			err = context.Cause(ctx)
		} else if cause := l.Cause(); cause != nil {
			err = cause
		}
		l.Stop(s.hard)
		return nil, err
	}
	l.Settled()
	s.Remark("connected")
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
		s.slept, s.wanted, s.hasty = false, false, false
		st.Phase, st.PID = Ready, l.Health().PID
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

func (s *server) introduce(ctx context.Context, l link.Link) (*liveLink, []tool.Definition, error) {
	g, err := s.greet(ctx, l)
	if err != nil {
		return nil, nil, err
	}
	ll := &liveLink{link: l, greeting: g}
	ll.upTo.Store(s.announced.Load())
	tools, err := s.listTools(ctx, l, g)
	if err != nil {
		return nil, nil, err
	}
	return ll, tools, nil
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
		relist  = s.relist
		lists   relists
		reoffer = s.reoffer
		offerAt <-chan time.Time // set while a change waits for its time
		offered time.Time
		heard   = l.link.Health().Heard
		tried   time.Time
	)
	for {
		select {
		case <-ctx.Done():
			return link.ErrStopped
		case <-l.link.Done():
			return l.link.Cause()
		case <-relist:
			// One change is enough to know: until its time has come the next
			// ones need not be looked at.
			relist = nil
			lists.plan(relistPause)
		case <-s.awaited:
			if s.stale(l) {
				lists.planAwaited()
			}
		case <-lists.due:
			relist = s.relist
			drain(s.relist)
			began := time.Now()
			listed, err := s.listAgain(ctx, l)
			if err != nil {
				return err
			}
			lists.done(began, listed)
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
			l.link.Tidy(now)
			s.talks.tidy(now)
			if h := l.link.Health().Heard; h != heard || l.busy() {
				heard = h
				continue
			}
			if err := s.ping(ctx, l); err != nil {
				return err
			}
			heard = l.link.Health().Heard
		}
	}
}

// ping tries the connection. Any answer will do. No answer within the time is
// forgiven as long as the server works on something or says something.
func (s *server) ping(ctx context.Context, l *liveLink) error {
	heard := l.link.Health().Heard
	pctx, cancel := context.WithTimeout(ctx, pingTime)
	defer cancel()
	method := mcp.Ping
	if l.modern() {
		method = mcp.Discover // this revision has no ping
	}
	_, err := s.ask(pctx, l.link, method, nil)
	switch {
	case err == nil:
		return nil
	case l.link.Cause() != nil:
		return l.link.Cause()
	case ctx.Err() != nil:
		return link.ErrStopped
	case pctx.Err() == nil:
		return nil // it answered, with an error of some kind
	case l.link.Health().Heard != heard || l.busy():
		return nil
	}
	return problem.Slowf("the server did not answer a ping within %v", pingTime)
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

// OffersChanged, Heard, Missed, Doubt and Remark are what a link reports, as
// ToolsChanged is.
func (s *server) OffersChanged() { signal(s.reoffer) }

func (s *server) Heard(method string, params json.RawMessage) bool {
	return s.sharing.spread(method, params)
}

func (s *server) Missed() {
	if l := s.live.Load(); l == nil || l.greeting.saysChanges {
		signal(s.relist)
	}
	if l := s.live.Load(); l != nil && l.greeting.saysOffers {
		signal(s.reoffer)
	}
}

func (s *server) Doubt() { signal(s.suspicion) }

func (s *server) Remark(text string) { s.log.Remark(text) }

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
