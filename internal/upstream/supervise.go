package upstream

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/transport"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/upstream/process"
)

// The times of supervision.
const (
	stableTime = time.Minute      // a connection that held so long starts the backoff anew
	pingPause  = 30 * time.Second // of silence, then a ping
	pingTime   = 10 * time.Second
	doubtPause = time.Second // between two tries of a doubtful connection
)

// The pauses between tries.
const (
	minBackoff     = time.Second
	maxBackoff     = 5 * time.Minute
	demandPause    = time.Second      // that callers ask for
	maxDemandPause = 10 * time.Second // the same where tries take long
	longestPause   = time.Minute      // for the time that a try took
)

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

// run connects, serves and reconnects until ctx ends. It starts when before is
// closed: a server that is launched anew must not run twice.
func (s *Server) run(ctx context.Context, before <-chan struct{}) {
	defer close(s.availability.done)
	defer s.log.Close()
	defer s.dialer.close()
	defer s.Clients.End(ForGood)
	defer context.AfterFunc(ctx, func() { s.Clients.End(Sessions) })()
	if before != nil {
		select {
		case <-before:
		case <-ctx.Done(): // before is stopped by whoever stops this
			<-before
		}
	}
	bo, rests := backoff{}, s.usage.pace.Load().lazy
	for ctx.Err() == nil {
		if rests {
			rests = false
			s.sleep(ctx)
			continue
		}
		start := time.Now()
		c, err := s.try(ctx)
		if c != nil {
			err = s.keep(ctx, c, &bo)
		}
		if err == errIdle {
			c.link.Stop(s.hard)
			s.Clients.End(Spare)
			bo.reset()
			rests = true
			continue
		}
		if ctx.Err() == nil {
			s.lose(err, c == nil, &bo)
		}
		if c != nil {
			c.link.Stop(s.hard)
		}
		s.waitToRetry(ctx, start, c == nil, &bo)
	}
	s.availability.update(func(st *State) {
		*st = State{Name: st.Name, Phase: Stopped, Restarts: st.Restarts, LastError: st.LastError, Failure: st.Failure,
			FailedAt: st.FailedAt, Since: st.Since}
	})
}

// try makes one connection, when its turn to start has come. A restart ends it.
func (s *Server) try(ctx context.Context) (*Connection, error) {
	s.availability.update(func(st *State) { st.Phase, st.RetryAt = Connecting, time.Time{} })
	ctx, cancel := s.availability.restartable(ctx)
	defer cancel()
	if err := s.turn(ctx); err != nil {
		return nil, err
	}
	c, err := s.connect(ctx)
	s.leavePlace(err == nil)
	if err != nil {
		s.log.Remark("not connected: " + err.Error())
	}
	return c, err
}

// connect makes a connection and tells everybody of it.
func (s *Server) connect(ctx context.Context) (*Connection, error) {
	limit, why := s.Spec.ConnectTime(), problem.Slowf("it took longer than %v", s.Spec.ConnectTime())
	if s.Spec.Transport == Stdio { // its startup watches it
		limit = process.LongestStart
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, why)
	defer cancel()
	drain(s.listing.relist)
	drain(s.suspicion)
	start := time.Now()
	c, tools, err := s.handshake.connect(ctx, s.open, &s.listing.announced)
	if err != nil {
		return nil, err
	}
	s.log.Remark("connected")
	drain(s.suspicion) // what raised it the handshake has settled
	s.publish(c, tools)
	s.listing.noteListed(start)
	s.usage.Used()
	s.Clients.Connected(c)
	s.availability.live.Store(c)
	s.availability.update(func(st *State) {
		if st.ProtocolVersion != "" && !s.slept {
			st.Restarts++
		}
		s.slept, s.availability.hasty = false, false
		st.Phase, st.PID = Ready, c.link.Health().PID
		st.Offers = s.ids.Add(1)
		st.ProtocolVersion, st.ServerInfo = c.greeting.Version, c.greeting.Info
		st.Instructions, st.Capabilities = c.greeting.Instructions, c.greeting.Capabilities
		s.showFailing(st)
	})
	return c, nil
}

// keep serves a connection until it is lost and returns the reason.
func (s *Server) keep(ctx context.Context, c *Connection, bo *backoff) error {
	ctx, cancel := s.availability.restartable(ctx)
	defer cancel()
	ready := time.Now()
	err := s.serve(ctx, c)
	s.availability.live.Store(nil)
	s.log.Remark("disconnected: " + err.Error())
	if time.Since(ready) >= stableTime {
		bo.reset()
	}
	return err
}

// serve keeps a connection: lists again when the tools change, pings when all is
// silent, and returns the reason when it ends.
func (s *Server) serve(ctx context.Context, c *Connection) error {
	tick := time.NewTicker(pingPause)
	defer tick.Stop()
	look := time.NewTicker(blindPause)
	defer look.Stop()
	rest := time.NewTimer(s.usage.untilIdle(s.inUse()))
	defer rest.Stop()
	bctx, cancel := context.WithCancel(ctx)
	var beside sync.WaitGroup
	defer func() { cancel(); beside.Wait() }()
	if c.Modern() && (c.greeting.saysChanges || c.greeting.saysOffers) {
		beside.Go(func() { s.watch(bctx, c) })
	}
	var (
		relist  = s.listing.relist
		reoffer = s.reoffer
		lists   relists
		offers  relists
		heard   = c.link.Health().Received
		tried   time.Time
	)
	for {
		select {
		case <-ctx.Done():
			return transport.ErrStopped
		case <-c.link.Done():
			return c.link.Cause()
		case <-relist:
			// One change is enough to know: until its time has come the next
			// ones need not be looked at.
			relist = nil
			lists.plan(relistPause)
		case <-s.listing.awaited:
			if s.listing.stale(c) {
				lists.planAwaited()
			}
		case <-lists.due:
			relist = s.listing.relist
			drain(relist)
			began := time.Now()
			listed, err := s.listAgain(ctx, c)
			if err != nil {
				return err
			}
			lists.done(began, listed)
		case <-s.listing.taught:
			s.publish(c, c.tools.Load().own)
		case <-reoffer:
			reoffer = nil
			offers.plan(relistPause)
		case now := <-offers.due:
			reoffer = s.reoffer
			drain(reoffer)
			offers.done(now, true)
			s.availability.update(func(st *State) { st.Offers = s.ids.Add(1) })
		case <-look.C:
			if !c.greeting.saysChanges || !c.attended() {
				signal(s.listing.relist)
			}
		case <-rest.C:
			if s.retire(c) {
				return errIdle
			}
			rest.Reset(s.usage.untilIdle(s.inUse()))
		case <-s.usage.paced:
			rest.Reset(s.usage.untilIdle(s.inUse()))
		case <-s.verdict:
			s.showVerdict()
		case <-s.suspicion:
			if time.Since(tried) < doubtPause {
				continue
			}
			tried = time.Now()
			if err := s.ping(ctx, c); err != nil {
				return err
			}
		case now := <-tick.C:
			c.link.Tidy(now)
			s.dialer.tidy(now)
			if h := c.link.Health().Received; h != heard || c.busy() {
				heard = h
				continue
			}
			if err := s.ping(ctx, c); err != nil {
				return err
			}
			heard = c.link.Health().Received
		}
	}
}

// ping tries the connection. A result, or the error that the method is not known, is enough.
// No answer within the time is forgiven as long as the server works on something or says
// something. A server that refuses a ping is asked for its tools, which it has listed before
// on this connection: when it refuses that as well, it has forgotten the session.
func (s *Server) ping(ctx context.Context, c *Connection) error {
	heard := c.link.Health().Received
	pctx, cancel := context.WithTimeout(ctx, pingTime)
	defer cancel()
	method := mcp.Ping
	if c.Modern() {
		method = mcp.Discover // this revision has no ping
	}
	_, err := s.Ask(pctx, c, method, nil)
	if err != nil && pctx.Err() == nil && c.link.Cause() == nil && c.greeting.hasTools && transport.Refuses(err) {
		_, err = s.Ask(pctx, c, mcp.ListTools, nil)
	}
	switch {
	case err == nil:
		return nil
	case c.link.Cause() != nil:
		return c.link.Cause()
	case ctx.Err() != nil:
		return transport.ErrStopped
	case pctx.Err() == nil && c.greeting.hasTools && transport.Refuses(err):
		return err
	case pctx.Err() == nil:
		return nil // it answered, with an error of some kind
	case c.link.Health().Received != heard || c.busy():
		return nil
	}
	return problem.Slowf("the server did not answer a ping within %v", pingTime)
}

// showVerdict shows whether the server that is connected fails every call.
func (s *Server) showVerdict() {
	s.availability.update(func(st *State) {
		if st.Phase == Failed {
			st.Phase = Ready
		}
		s.showFailing(st)
	})
}

// showFailing makes the state of a connected server Failed when every call of it has failed.
func (s *Server) showFailing(st *State) {
	why := s.failing.cause()
	if why == nil {
		return
	}
	failure := s.failure(why)
	failure.Said = allFail + failure.Said
	failure.Detail = allFail + failure.Detail
	st.Phase, st.LastError, st.Failure, st.FailedAt = Failed, failure.Detail, failure, time.Now()
}

const allFail = "it is connected, but every call has failed for a minute or more: "

// publish makes own, which the server has listed to us, the tools of c, and
// tells the observer.
func (s *Server) publish(c *Connection, own []*tool.Definition) {
	all := s.listing.publish(c, own)
	if s.Observer != nil {
		s.Observer.ToolsListed(s.Spec.Name, all)
		c.tools.Store(newTools(all, len(own))) // which is the same, but not kept twice
	}
}

// listAgain lists the tools after a change. A list that cannot be read leaves
// the old one standing, unless the connection is lost; but no call is sent
// before the changes that were announced are listed.
func (s *Server) listAgain(ctx context.Context, c *Connection) (listed bool, err error) {
	lctx, cancel := context.WithTimeout(ctx, defaultConnectTime)
	defer cancel()
	start, announced := time.Now(), s.listing.announced.Load()
	tools, err := s.handshake.listTools(lctx, c)
	if err == nil {
		s.publish(c, tools)
		c.upTo.Store(announced)
		s.listing.noteListed(start)
		return true, nil
	}
	if cause := c.link.Cause(); cause != nil {
		return false, cause
	}
	if ctx.Err() != nil {
		return false, transport.ErrStopped
	}
	if lctx.Err() == nil {
		s.listing.noteRefused()
	}
	s.log.Remark("the changed tools could not be listed: " + err.Error())
	s.Logger.Warn("tools not listed", "server", s.Spec.Name, "error", s.mask.Err(err))
	return false, nil
}

// lose puts the state to Failed and settles when the next try is due.
func (s *Server) lose(err error, failed bool, bo *backoff) {
	wait := bo.next()
	if failed { // what starts slowly and fails is dear
		wait = max(wait, min(s.tried(time.Now()), longestPause))
	}
	err = s.mask.Err(err)
	failure := s.failure(err)
	p := &s.availability
	again := false
	p.update(func(st *State) {
		if again = p.again; again { // by a person: no failure, and nothing to wait for
			p.reset(Connecting, errRestart)
			return
		}
		if failed {
			p.failures++
		}
		p.lastErr = err
		st.Phase, st.LastError, st.Failure, st.FailedAt = Failed, failure.Detail, failure, time.Now()
		st.RetryAt, st.PID = st.FailedAt.Add(wait), 0
		p.failed = *st
	})
	if !again {
		s.Logger.Info("server not connected", "server", s.Spec.Name, "error", err, "retry_in", wait)
	}
}

// demandPause is how long a caller waits for the next try, the last one of
// which began at start: not at all but after one that has just been. One that
// took long and failed is dear, and callers may come without end.
func (s *Server) demandPause(start time.Time, failed bool) time.Duration {
	pause := max(0, demandPause-time.Since(start))
	if at := s.availability.snapshot().FailedAt; failed {
		pause = max(pause, min(s.tried(at), maxDemandPause)-time.Since(at))
	}
	return pause
}

// waitToRetry waits until the next try is due, or a caller needs the server, or
// a restart is asked for. start is when the last try began, which may have
// failed.
func (s *Server) waitToRetry(ctx context.Context, start time.Time, failed bool, bo *backoff) {
	due := time.NewTimer(time.Until(s.availability.snapshot().RetryAt))
	defer due.Stop()
	var demanded <-chan time.Time
	for {
		if s.availability.takeRestart() {
			bo.reset()
			return
		}
		if demanded == nil && s.availability.waiting() > 0 {
			demanded = time.After(s.demandPause(start, failed))
		}
		select {
		case <-ctx.Done():
			return
		case <-due.C:
			return
		case <-demanded:
			return
		case <-s.availability.nudge:
		}
	}
}

// retire takes the connection out of use, unless somebody uses it. Who comes
// later waits for the next one.
func (s *Server) retire(c *Connection) bool {
	if s.usage.untilIdle(s.inUse()) > 0 {
		return false
	}
	// The order matters: who enters looks for the connection afterwards. Either
	// it is not found, or the use is seen here.
	s.availability.live.Store(nil)
	if !s.inUse() {
		return true
	}
	s.availability.live.Store(c)
	s.availability.look()
	return false
}

// sleep rests until the server is needed.
func (s *Server) sleep(ctx context.Context) {
	s.slept = true
	s.failing.forgive()
	p := &s.availability
	p.update(func(*State) { p.reset(Idle, nil) })
	began := s.usage.pace.Load()
	for !p.takeRestart() && !p.needed() {
		if now := s.usage.pace.Load(); !now.lazy && (began.lazy || now.idle <= 0) {
			return // it is to run by now
		}
		select {
		case <-ctx.Done():
			return
		case <-p.nudge:
		}
	}
}
