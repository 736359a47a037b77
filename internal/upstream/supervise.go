package upstream

import (
	"bytes"
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
	stableTime   = time.Minute      // a connection that lasts this long resets the backoff
	pingPause    = 30 * time.Second // of silence until a ping
	pingTime     = 10 * time.Second
	suspectPause = time.Second // between two checks of a suspect connection
)

// Pauses between tries.
const (
	minBackoff     = time.Second
	maxBackoff     = 5 * time.Minute
	demandPause    = time.Second      // before an attempt that a caller demands
	maxDemandPause = 10 * time.Second // the same if attempts take long
	longestPause   = time.Minute      // limit of the pause for the duration of the attempt
)

// backoff is the pause before the next try: exponential, with jitter.
type backoff struct{ tries int }

func (b *backoff) reset() { b.tries = 0 }

func (b *backoff) nextPause() time.Duration {
	d := maxBackoff
	if b.tries < 10 {
		d = min(minBackoff<<b.tries, maxBackoff)
	}
	b.tries++
	return d/2 + rand.N(d/2)
}

// supervise connects, serves and reconnects until ctx ends. It starts after before is closed, so that a restarted
// server does not run twice.
func (s *Server) supervise(ctx context.Context, before <-chan struct{}) {
	defer close(s.availability.done)
	defer s.log.Close()
	defer s.dialer.closeConnections()
	defer s.Clients.EndSessions(EndAll)
	defer context.AfterFunc(ctx, func() { s.Clients.EndSessions(EndSessions) })()
	if before != nil {
		select {
		case <-before:
		case <-ctx.Done(): // before is stopped by the caller that stops this one
			<-before
		}
	}
	bo, rests := backoff{}, s.usageTracker.idlePolicy.Load().lazy
	for ctx.Err() == nil {
		if rests {
			rests = false
			s.waitUntilNeeded(ctx)
			continue
		}
		start := time.Now()
		c, err := s.connectInStartSlot(ctx)
		if c != nil {
			err = s.serveUntilLost(ctx, c, &bo)
		}
		if err == errIdle {
			c.link.Stop(s.stopNow)
			s.Clients.EndSessions(EndIdle)
			bo.reset()
			rests = true
			continue
		}
		if ctx.Err() == nil {
			s.setFailedState(err, c == nil, &bo)
		}
		if c != nil {
			c.link.Stop(s.stopNow)
		}
		s.waitToRetry(ctx, start, c == nil, &bo)
	}
	s.availability.updateState(func(st *State) {
		*st = State{Name: st.Name, Phase: Stopped, Restarts: st.Restarts, LastError: st.LastError, Failure: st.Failure,
			FailedAt: st.FailedAt, Since: st.Since}
	})
}

// connectInStartSlot connects once, in a slot of the start queue. A restart cancels it.
func (s *Server) connectInStartSlot(ctx context.Context) (*Connection, error) {
	s.availability.updateState(func(st *State) { st.Phase, st.RetryAt = Connecting, time.Time{} })
	ctx, cancel := s.availability.withRestartCancel(ctx)
	defer cancel()
	if err := s.waitForStartSlot(ctx); err != nil {
		return nil, err
	}
	c, err := s.connectAndPublish(ctx)
	s.releaseStartSlot(err == nil)
	if err != nil {
		s.log.WriteRemark("not connected: " + err.Error())
	}
	return c, err
}

// openWithinLimit opens a connection within the time limit of one. asks makes MCPProxy declare the capabilities for questions.
func (s *Server) openWithinLimit(ctx context.Context, asks bool) (*Connection, []*tool.Definition, error) {
	limit, why := s.Spec.ConnectTimeLimit(), problem.TrustedTextTimeoutErrorf("it took longer than %v", s.Spec.ConnectTimeLimit())
	if s.Spec.Transport == Stdio { // its start watch limits the time
		limit = process.LongestStart
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, why)
	defer cancel()
	s.handshaker.asks = asks
	return s.handshaker.openConnection(ctx, s.open, &s.listing.announced)
}

// connectAndPublish connects and publishes the connection.
func (s *Server) connectAndPublish(ctx context.Context) (*Connection, error) {
	clearSignal(s.listing.relist)
	clearSignal(s.connectionSuspect)
	start := time.Now()
	c, tools, err := s.openSharableConnection(ctx)
	if err != nil {
		return nil, err
	}
	s.log.WriteRemark("connected")
	clearSignal(s.connectionSuspect) // the handshake has just succeeded
	s.publishTools(c, tools)
	s.listing.markListed(start)
	s.usageTracker.MarkUsed()
	s.Clients.OnConnected(c)
	s.availability.live.Store(c)
	s.availability.updateState(func(st *State) {
		if st.ProtocolVersion != "" && !s.wasIdle {
			st.Restarts++
		}
		s.wasIdle, s.availability.urgent = false, false
		st.Phase, st.PID = Ready, c.link.Health().PID
		st.PrimitivesVersion = s.ids.Add(1)
		st.ProtocolVersion, st.ServerInfo = c.handshakeResult.Version, c.handshakeResult.Info
		st.Instructions, st.Capabilities = c.handshakeResult.Instructions, c.handshakeResult.Capabilities
		s.markFailedIfAllCallsFail(st)
	})
	return c, nil
}

// serveUntilLost serves a connection until it is lost and returns the reason.
func (s *Server) serveUntilLost(ctx context.Context, c *Connection, bo *backoff) error {
	ctx, cancel := s.availability.withRestartCancel(ctx)
	defer cancel()
	ready := time.Now()
	err := s.maintainConnection(ctx, c)
	s.availability.live.Store(nil)
	s.log.WriteRemark("disconnected: " + err.Error())
	if time.Since(ready) >= stableTime {
		bo.reset()
	}
	return err
}

// maintainConnection lists the tools again when they change and pings after silence. When the connection ends, it
// returns the reason.
func (s *Server) maintainConnection(ctx context.Context, c *Connection) error {
	tick := time.NewTicker(pingPause)
	defer tick.Stop()
	look := time.NewTicker(unannouncedPause)
	defer look.Stop()
	rest := time.NewTimer(s.usageTracker.timeUntilIdle(s.isInUse()))
	defer rest.Stop()
	bctx, cancel := context.WithCancel(ctx)
	var beside sync.WaitGroup
	defer func() { cancel(); beside.Wait() }()
	if c.IsModern() && (c.handshakeResult.announcesTools || c.handshakeResult.announcesPrimitives) {
		beside.Go(func() { s.keepSubscribed(bctx, c) })
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
			// One signal is enough: the scheduled list includes later changes.
			relist = nil
			lists.planList(relistPause)
		case <-s.listing.awaited:
			if s.listing.isStale(c) {
				lists.planAwaitedList()
			}
		case <-lists.due:
			relist = s.listing.relist
			clearSignal(relist)
			began := time.Now()
			listed, err := s.relistTools(ctx, c)
			if err != nil {
				return err
			}
			lists.recordListOutcome(began, listed)
		case <-s.listing.clientToolsAdded:
			s.publishTools(c, c.tools.Load().own)
		case <-reoffer:
			reoffer = nil
			offers.planList(relistPause)
		case now := <-offers.due:
			reoffer = s.primitivesChanged
			clearSignal(reoffer)
			offers.recordListOutcome(now, true)
			s.availability.updateState(func(st *State) { st.PrimitivesVersion = s.ids.Add(1) })
		case <-look.C:
			if !c.handshakeResult.announcesTools || !c.receivesNotifications() {
				trySignal(s.listing.relist)
			}
		case <-rest.C:
			if s.retireConnectionIfIdle(c) {
				return errIdle
			}
			rest.Reset(s.usageTracker.timeUntilIdle(s.isInUse()))
		case <-s.usageTracker.idlePolicyChanged:
			rest.Reset(s.usageTracker.timeUntilIdle(s.isInUse()))
		case <-s.failingChanged:
			s.updateStateFromCallFailures()
		case <-s.declarationChanged:
			switch {
			case c.IsModern():
				trySignal(s.listing.relist)
				trySignal(s.primitivesChanged)
			case !bytes.Equal(c.handshakeResult.declared, s.declaredCapabilities(s.asks)):
				beside.Go(func() { s.restartWhenQuiet(bctx, c) })
			}
		case <-s.connectionSuspect:
			if time.Since(tried) < suspectPause {
				continue
			}
			tried = time.Now()
			if err := s.pingServer(ctx, c); err != nil {
				return err
			}
		case now := <-tick.C:
			c.link.CloseIdle(now)
			s.dialer.closeIdleConnections(now)
			if h := c.link.Health().Received; h != heard || c.isBusy() {
				heard = h
				continue
			}
			if err := s.pingServer(ctx, c); err != nil {
				return err
			}
			heard = c.link.Health().Received
		}
	}
}

// pingServer checks the connection. A result or the error "method not found" is enough. A timeout is ignored while the
// server works on a request or sends something. If a server rejects a ping, MCPProxy lists its tools. If it rejects
// that as well, it has lost the session.
func (s *Server) pingServer(ctx context.Context, c *Connection) error {
	heard := c.link.Health().Received
	pctx, cancel := context.WithTimeout(ctx, pingTime)
	defer cancel()
	method := mcp.Ping
	if c.IsModern() {
		method = mcp.Discover // the modern protocol has no ping
	}
	_, err := s.SendOwnRequest(pctx, c, method, nil)
	if err != nil && pctx.Err() == nil && c.link.Cause() == nil && c.handshakeResult.hasTools && transport.IsPermanentRefusal(err) {
		_, err = s.SendOwnRequest(pctx, c, mcp.ListTools, nil)
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
		return nil // the server answered, although with an error
	case c.link.Health().Received != heard || c.isBusy():
		return nil
	}
	return problem.TrustedTextTimeoutErrorf("the server did not answer a ping within %v", pingTime)
}

// updateStateFromCallFailures updates whether the connected server fails every call.
func (s *Server) updateStateFromCallFailures() {
	s.availability.updateState(func(st *State) {
		if st.Phase == Failed {
			st.Phase = Ready
		}
		s.markFailedIfAllCallsFail(st)
	})
}

// markFailedIfAllCallsFail sets the state of a connected server to Failed when every call has failed.
func (s *Server) markFailedIfAllCallsFail(st *State) {
	why := s.failing.failingCause()
	if why == nil {
		return
	}
	failure := s.classifyFailure(why)
	failure.Said = allFail + failure.Said
	failure.Detail = allFail + failure.Detail
	st.Phase, st.LastError, st.Failure, st.FailedAt = Failed, failure.Detail, failure, time.Now()
}

const allFail = "it is connected, but every call has failed for a minute or more: "

// publishTools sets the tools of c to own, which the server listed to MCPProxy, plus the client tools, and notifies the
// observer.
func (s *Server) publishTools(c *Connection, own []*tool.Definition) {
	all := s.listing.setTools(c, own)
	if s.Observer != nil {
		s.Observer.ToolsListed(s.Spec.Name, all)
		c.tools.Store(newToolLists(all, len(own))) // the observer's equal list, so that it is not stored twice
	}
}

// relistTools lists the tools after a change. If that fails, the old list stays unless the connection is lost. But no
// call is sent before announced changes are listed.
func (s *Server) relistTools(ctx context.Context, c *Connection) (listed bool, err error) {
	lctx, cancel := context.WithTimeout(ctx, defaultConnectTime)
	defer cancel()
	start, announced := time.Now(), s.listing.announced.Load()
	tools, err := s.handshaker.listTools(lctx, c)
	if err == nil {
		s.publishTools(c, tools)
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
	s.log.WriteRemark("the changed tools could not be listed: " + err.Error())
	s.Logger.Warn("tools not listed", "server", s.Spec.Name, "error", s.mask.MaskError(err))
	return false, nil
}

// setFailedState sets the state to Failed and schedules the next try.
func (s *Server) setFailedState(err error, failed bool, bo *backoff) {
	wait := bo.nextPause()
	if failed { // a slow failed start is expensive
		wait = max(wait, min(s.currentAttemptDuration(time.Now()), longestPause))
	}
	err = s.mask.MaskError(err)
	failure := s.classifyFailure(err)
	p := &s.availability
	again := false
	p.updateState(func(st *State) {
		if again = p.restartRequested; again { // the restart was requested: no failure and no pause
			p.setPhase(Connecting, errRestart)
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

// pauseBeforeRequestedAttempt returns the pause before an attempt that a caller demands, after one that began at start.
// Usually there is no pause. After a recent attempt there is one, because a slow failed attempt is expensive and
// callers may keep demanding.
func (s *Server) pauseBeforeRequestedAttempt(start time.Time, failed bool) time.Duration {
	pause := max(0, demandPause-time.Since(start))
	if at := s.availability.currentState().FailedAt; failed {
		pause = max(pause, min(s.currentAttemptDuration(at), maxDemandPause)-time.Since(at))
	}
	return pause
}

// waitToRetry waits until the next attempt is due, a caller needs the server, or a restart is requested. start is the
// beginning of the last attempt.
func (s *Server) waitToRetry(ctx context.Context, start time.Time, failed bool, bo *backoff) {
	due := time.NewTimer(time.Until(s.availability.currentState().RetryAt))
	defer due.Stop()
	var demanded <-chan time.Time
	for {
		if s.availability.takeRestartRequest() {
			bo.reset()
			return
		}
		if demanded == nil && s.availability.waiterCount() > 0 {
			demanded = time.After(s.pauseBeforeRequestedAttempt(start, failed))
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

// retireConnectionIfIdle takes the connection out of use if it is idle. Later callers wait for the next connection.
func (s *Server) retireConnectionIfIdle(c *Connection) bool {
	if s.usageTracker.timeUntilIdle(s.isInUse()) > 0 {
		return false
	}
	// The order matters: callers register their use before they look for the connection. So either they find none, or
	// their use is visible here.
	s.availability.live.Store(nil)
	if !s.isInUse() {
		return true
	}
	s.availability.live.Store(c)
	s.availability.wakeWaiters()
	return false
}

// waitUntilNeeded waits until the server is needed.
func (s *Server) waitUntilNeeded(ctx context.Context) {
	s.wasIdle = true
	s.failing.clearFailures()
	p := &s.availability
	p.updateState(func(*State) { p.setPhase(Idle, nil) })
	began := s.usageTracker.idlePolicy.Load()
	for !p.takeRestartRequest() && !p.isNeeded() {
		if now := s.usageTracker.idlePolicy.Load(); !now.lazy && (began.lazy || now.idle <= 0) {
			return // the policy changed
		}
		select {
		case <-ctx.Done():
			return
		case <-p.needed:
		}
	}
}
