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

// Supervision times.
const (
	stableTime   = time.Minute      // a connection that lasted so long resets the backoff
	pingPause    = 30 * time.Second // of silence until a ping
	pingTime     = 10 * time.Second
	suspectPause = time.Second // between two checks of a suspect connection
)

// Pauses between tries.
const (
	minBackoff     = time.Second
	maxBackoff     = 5 * time.Minute
	demandPause    = time.Second      // on a caller's demand
	maxDemandPause = 10 * time.Second // the same if tries take long
	longestPause   = time.Minute      // for the time that a try took
)

// backoff is the pause before the next try: exponential, with jitter.
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

// run connects, serves and reconnects until ctx ends. It starts when before is closed, so
// that a restarted server does not run twice.
func (s *Server) run(ctx context.Context, before <-chan struct{}) {
	defer close(s.availability.done)
	defer s.log.Close()
	defer s.dialer.close()
	defer s.Clients.End(EndAll)
	defer context.AfterFunc(ctx, func() { s.Clients.End(EndSessions) })()
	if before != nil {
		select {
		case <-before:
		case <-ctx.Done(): // before is stopped by the caller that stops this one
			<-before
		}
	}
	bo, rests := backoff{}, s.usage.idlePolicy.Load().lazy
	for ctx.Err() == nil {
		if rests {
			rests = false
			s.waitUntilNeeded(ctx)
			continue
		}
		start := time.Now()
		c, err := s.connectInTurn(ctx)
		if c != nil {
			err = s.serveUntilLost(ctx, c, &bo)
		}
		if err == errIdle {
			c.link.Stop(s.stopNow)
			s.Clients.End(EndIdle)
			bo.reset()
			rests = true
			continue
		}
		if ctx.Err() == nil {
			s.setFailed(err, c == nil, &bo)
		}
		if c != nil {
			c.link.Stop(s.stopNow)
		}
		s.waitToRetry(ctx, start, c == nil, &bo)
	}
	s.availability.update(func(st *State) {
		*st = State{Name: st.Name, Phase: Stopped, Restarts: st.Restarts, LastError: st.LastError, Failure: st.Failure,
			FailedAt: st.FailedAt, Since: st.Since}
	})
}

// connectInTurn makes one connection in its start slot. A restart cancels it.
func (s *Server) connectInTurn(ctx context.Context) (*Connection, error) {
	s.availability.update(func(st *State) { st.Phase, st.RetryAt = Connecting, time.Time{} })
	ctx, cancel := s.availability.withRestart(ctx)
	defer cancel()
	if err := s.waitForStartSlot(ctx); err != nil {
		return nil, err
	}
	c, err := s.connect(ctx)
	s.releaseStartSlot(err == nil)
	if err != nil {
		s.log.Remark("not connected: " + err.Error())
	}
	return c, err
}

// connect makes a connection and publishes it.
func (s *Server) connect(ctx context.Context) (*Connection, error) {
	limit, why := s.Spec.ConnectTime(), problem.OwnTimeoutErrorf("it took longer than %v", s.Spec.ConnectTime())
	if s.Spec.Transport == Stdio { // its start watch does that
		limit = process.LongestStart
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, why)
	defer cancel()
	drain(s.listing.relist)
	drain(s.connectionSuspect)
	start := time.Now()
	c, tools, err := s.handshake.connect(ctx, s.open, &s.listing.announced)
	if err != nil {
		return nil, err
	}
	s.log.Remark("connected")
	drain(s.connectionSuspect) // the handshake has shown that it works
	s.publish(c, tools)
	s.listing.markListed(start)
	s.usage.Used()
	s.Clients.Connected(c)
	s.availability.live.Store(c)
	s.availability.update(func(st *State) {
		if st.ProtocolVersion != "" && !s.wasIdle {
			st.Restarts++
		}
		s.wasIdle, s.availability.urgent = false, false
		st.Phase, st.PID = Ready, c.link.Health().PID
		st.Offers = s.ids.Add(1)
		st.ProtocolVersion, st.ServerInfo = c.handshakeResult.Version, c.handshakeResult.Info
		st.Instructions, st.Capabilities = c.handshakeResult.Instructions, c.handshakeResult.Capabilities
		s.setFailing(st)
	})
	return c, nil
}

// serveUntilLost serves a connection until it is lost and returns the reason.
func (s *Server) serveUntilLost(ctx context.Context, c *Connection, bo *backoff) error {
	ctx, cancel := s.availability.withRestart(ctx)
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

// serve lists again when the tools change, pings after silence, and returns the reason
// when the connection ends.
func (s *Server) serve(ctx context.Context, c *Connection) error {
	tick := time.NewTicker(pingPause)
	defer tick.Stop()
	look := time.NewTicker(unannouncedPause)
	defer look.Stop()
	rest := time.NewTimer(s.usage.timeUntilIdle(s.inUse()))
	defer rest.Stop()
	bctx, cancel := context.WithCancel(ctx)
	var beside sync.WaitGroup
	defer func() { cancel(); beside.Wait() }()
	if c.Modern() && (c.handshakeResult.announcesTools || c.handshakeResult.announcesPrimitives) {
		beside.Go(func() { s.subscribe(bctx, c) })
	}
	var (
		relist  = s.listing.relist
		reoffer = s.primitivesChanged
		lists   relistSchedule
		offers  relistSchedule
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
			// One change is enough: later ones are covered by the scheduled list.
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
		case <-s.listing.clientToolsAdded:
			s.publish(c, c.tools.Load().own)
		case <-reoffer:
			reoffer = nil
			offers.plan(relistPause)
		case now := <-offers.due:
			reoffer = s.primitivesChanged
			drain(reoffer)
			offers.done(now, true)
			s.availability.update(func(st *State) { st.Offers = s.ids.Add(1) })
		case <-look.C:
			if !c.handshakeResult.announcesTools || !c.receivesNotifications() {
				signal(s.listing.relist)
			}
		case <-rest.C:
			if s.takeOutOfUse(c) {
				return errIdle
			}
			rest.Reset(s.usage.timeUntilIdle(s.inUse()))
		case <-s.usage.idlePolicyChanged:
			rest.Reset(s.usage.timeUntilIdle(s.inUse()))
		case <-s.failingChanged:
			s.updateFailing()
		case <-s.connectionSuspect:
			if time.Since(tried) < suspectPause {
				continue
			}
			tried = time.Now()
			if err := s.ping(ctx, c); err != nil {
				return err
			}
		case now := <-tick.C:
			c.link.CloseIdle(now)
			s.dialer.closeIdle(now)
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

// ping checks the connection. A result, or the error "method not found", is enough. A
// timeout is ignored while the server works on a request or sends something. If a server
// rejects a ping, its tools are listed: if it rejects that as well, it has lost the
// session.
func (s *Server) ping(ctx context.Context, c *Connection) error {
	heard := c.link.Health().Received
	pctx, cancel := context.WithTimeout(ctx, pingTime)
	defer cancel()
	method := mcp.Ping
	if c.Modern() {
		method = mcp.Discover // the modern protocol has no ping
	}
	_, err := s.Request(pctx, c, method, nil)
	if err != nil && pctx.Err() == nil && c.link.Cause() == nil && c.handshakeResult.hasTools && transport.IsPermanentRefusal(err) {
		_, err = s.Request(pctx, c, mcp.ListTools, nil)
	}
	switch {
	case err == nil:
		return nil
	case c.link.Cause() != nil:
		return c.link.Cause()
	case ctx.Err() != nil:
		return transport.ErrStopped
	case pctx.Err() == nil && c.handshakeResult.hasTools && transport.IsPermanentRefusal(err):
		return err
	case pctx.Err() == nil:
		return nil // it answered, with some error
	case c.link.Health().Received != heard || c.busy():
		return nil
	}
	return problem.OwnTimeoutErrorf("the server did not answer a ping within %v", pingTime)
}

// updateFailing updates whether the connected server fails every call.
func (s *Server) updateFailing() {
	s.availability.update(func(st *State) {
		if st.Phase == Failed {
			st.Phase = Ready
		}
		s.setFailing(st)
	})
}

// setFailing sets the state of a connected server to Failed when every call has failed.
func (s *Server) setFailing(st *State) {
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

// publish sets own, which the server listed to MCPProxy, as the tools of c, and notifies
// the observer.
func (s *Server) publish(c *Connection, own []*tool.Definition) {
	all := s.listing.publish(c, own)
	if s.Observer != nil {
		s.Observer.ToolsListed(s.Spec.Name, all)
		c.tools.Store(newTools(all, len(own))) // the equal list, so that it is not stored twice
	}
}

// listAgain lists the tools after a change. If that fails the old list stays, unless the
// connection is lost; but no call is sent before announced changes are listed.
func (s *Server) listAgain(ctx context.Context, c *Connection) (listed bool, err error) {
	lctx, cancel := context.WithTimeout(ctx, defaultConnectTime)
	defer cancel()
	start, announced := time.Now(), s.listing.announced.Load()
	tools, err := s.handshake.listTools(lctx, c)
	if err == nil {
		s.publish(c, tools)
		c.listedChange.Store(announced)
		s.listing.markListed(start)
		return true, nil
	}
	if cause := c.link.Cause(); cause != nil {
		return false, cause
	}
	if ctx.Err() != nil {
		return false, transport.ErrStopped
	}
	if lctx.Err() == nil {
		s.listing.markRejected()
	}
	s.log.Remark("the changed tools could not be listed: " + err.Error())
	s.Logger.Warn("tools not listed", "server", s.Spec.Name, "error", s.mask.Err(err))
	return false, nil
}

// setFailed sets the state to Failed and schedules the next try.
func (s *Server) setFailed(err error, failed bool, bo *backoff) {
	wait := bo.next()
	if failed { // a slow start that fails is expensive
		wait = max(wait, min(s.tryDuration(time.Now()), longestPause))
	}
	err = s.mask.Err(err)
	failure := s.failure(err)
	p := &s.availability
	again := false
	p.update(func(st *State) {
		if again = p.restartRequested; again { // requested: not a failure, and no pause
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

// demandPause is the pause before a try on demand, after one that began at start: none,
// unless one has just ended. A slow failed try is expensive, and callers may come without
// end.
func (s *Server) demandPause(start time.Time, failed bool) time.Duration {
	pause := max(0, demandPause-time.Since(start))
	if at := s.availability.snapshot().FailedAt; failed {
		pause = max(pause, min(s.tryDuration(at), maxDemandPause)-time.Since(at))
	}
	return pause
}

// waitToRetry waits until the next try is due, a caller needs the server, or a restart is
// requested. start is the beginning of the last try.
func (s *Server) waitToRetry(ctx context.Context, start time.Time, failed bool, bo *backoff) {
	due := time.NewTimer(time.Until(s.availability.snapshot().RetryAt))
	defer due.Stop()
	var demanded <-chan time.Time
	for {
		if s.availability.takeRestart() {
			bo.reset()
			return
		}
		if demanded == nil && s.availability.waiterCount() > 0 {
			demanded = time.After(s.demandPause(start, failed))
		}
		select {
		case <-ctx.Done():
			return
		case <-due.C:
			return
		case <-demanded:
			return
		case <-s.availability.needed:
		}
	}
}

// takeOutOfUse takes the connection out of use, unless it is in use. Later callers wait
// for the next one.
func (s *Server) takeOutOfUse(c *Connection) bool {
	if s.usage.timeUntilIdle(s.inUse()) > 0 {
		return false
	}
	// The order matters: callers register their use before they look for the connection.
	// So they find none, or their use is seen here.
	s.availability.live.Store(nil)
	if !s.inUse() {
		return true
	}
	s.availability.live.Store(c)
	s.availability.wakeWaiters()
	return false
}

// waitUntilNeeded waits until the server is needed.
func (s *Server) waitUntilNeeded(ctx context.Context) {
	s.wasIdle = true
	s.failing.reset()
	p := &s.availability
	p.update(func(*State) { p.reset(Idle, nil) })
	began := s.usage.idlePolicy.Load()
	for !p.takeRestart() && !p.isNeeded() {
		if now := s.usage.idlePolicy.Load(); !now.lazy && (began.lazy || now.idle <= 0) {
			return // the policy changed
		}
		select {
		case <-ctx.Done():
			return
		case <-p.needed:
		}
	}
}
