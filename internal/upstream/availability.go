package upstream

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"mcpproxy/internal/mcp/transport"
)

// availability is a server's connection and state, the callers that wait for it, and
// requests to start or restart it.
type availability struct {
	live     atomic.Pointer[Connection] // nil unless Ready
	needed   chan struct{}              // cap 1: a caller waits, or requested a start or restart
	done     chan struct{}              // closed when the server has stopped for good
	observer Observer                   // may be nil

	mu       sync.Mutex // guards the fields below
	state    State
	changed  chan struct{} // closed and replaced when state changes
	waiters  int           // callers that wait for the server
	lastErr  error         // the error behind state.LastError
	failed   State         // the state after the last failure
	failures int           // failed tries since the start

	urgent           bool               // the next try was requested and goes first in the queue
	restartRequested bool               // a restart was requested
	restarted        time.Time          // time of the last restart
	restarting       bool               // by an agent: waits until nothing is in flight
	interrupt        context.CancelFunc // cancels the try or the connection for a restart
}

func newAvailability(server string, observer Observer) availability {
	return availability{needed: make(chan struct{}, 1), done: make(chan struct{}), changed: make(chan struct{}), observer: observer,
		state: State{Name: server, Phase: Stopped, Since: time.Now()}}
}

// unavailableError means that a server could not be reached within the time limit, or within the attempt that a call
// waited for.
type unavailableError struct {
	state State
	last  error // the error behind state.LastError
}

func (e *unavailableError) Error() string { return "the server is " + string(e.state.Phase) }

// waitReady returns the connection. If there is none, it requests an attempt to connect and waits until the attempt
// succeeds or fails, or until ctx or the limit ends.
func (p *availability) waitReady(ctx context.Context, limit time.Duration) (*Connection, error) {
	if c := p.live.Load(); c.isUsable() {
		return c, nil
	}
	late := time.NewTimer(limit)
	defer late.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiters++
	defer func() { p.waiters-- }()
	for failures := p.failures; ; {
		if c := p.live.Load(); c.isUsable() {
			return c, nil
		}
		if p.failures != failures {
			return nil, &unavailableError{p.failed, p.lastErr}
		}
		if p.hasServerStopped() {
			return nil, &unavailableError{p.state, p.lastErr}
		}
		changed := p.changed
		p.mu.Unlock()
		trySignal(p.needed)
		var err error
		select {
		case <-changed:
		case <-p.done:
		case <-ctx.Done():
			err = ctx.Err()
		case <-late.C:
			err = p.newUnavailableError()
		}
		p.mu.Lock()
		if err != nil {
			return nil, err
		}
	}
}

// waiterCount returns the number of callers that wait for the connection.
func (p *availability) waiterCount() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiters
}

// isNeeded reports whether a caller waits for the server, or has requested its start.
func (p *availability) isNeeded() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiters > 0 || p.urgent
}

// newUnavailableError returns the state as an error.
func (p *availability) newUnavailableError() *unavailableError {
	p.mu.Lock()
	defer p.mu.Unlock()
	return &unavailableError{p.state, p.lastErr}
}

// hasServerStopped reports whether the server has stopped for good.
func (p *availability) hasServerStopped() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func (p *availability) currentState() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}

// updateState calls change with the lock held, then wakes waiters and notifies the observer.
func (p *availability) updateState(change func(*State)) {
	p.mu.Lock()
	before := p.state.Phase
	change(&p.state)
	if p.state.Phase != before {
		p.state.Since = time.Now()
	}
	state := p.state
	p.wakeWaitersLocked()
	p.mu.Unlock()
	if p.observer != nil {
		p.observer.StateChanged(state)
	}
}

// setPhase sets the state to phase without an error. why is the error for requests that cannot wait. The caller holds
// the lock.
func (p *availability) setPhase(phase Phase, why error) {
	st := &p.state
	st.Phase, st.LastError, st.Failure, st.RetryAt, st.PID = phase, "", transport.ServerFailure{}, time.Time{}, 0
	p.lastErr = why
}

// wakeWaitersLocked wakes waiters. The caller holds the lock.
func (p *availability) wakeWaitersLocked() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// wakeWaiters makes waiters check the connection again, because they may have missed it.
func (p *availability) wakeWaiters() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wakeWaitersLocked()
}

// requestStart requests a start of the server.
func (p *availability) requestStart() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.urgent = true
	trySignal(p.needed)
}

// requestRestart requests a restart. It cancels the current attempt or connection.
func (p *availability) requestRestart() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.restartRequested, p.restarted = true, time.Now()
	if p.interrupt != nil {
		p.interrupt()
	}
	trySignal(p.needed)
}

// withRestartCancel returns a context that a restart also cancels.
func (p *availability) withRestartCancel(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.interrupt = cancel
	if p.restartRequested {
		cancel()
	}
	return ctx, cancel
}

// takeRestartRequest reports, once, whether a restart was requested.
func (p *availability) takeRestartRequest() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	again := p.restartRequested
	p.restartRequested, p.urgent = false, p.urgent || again
	return again
}
