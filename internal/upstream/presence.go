package upstream

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"mcpproxy/internal/mcp/transport"
)

// availability is whether a server is there: its connection, its state, those who
// wait for it, and what was asked for besides calls: that it runs, and that it is
// started anew.
type availability struct {
	live     atomic.Pointer[Connection] // nil unless Ready
	nudge    chan struct{}              // cap 1: somebody waits, or wishes something
	done     chan struct{}              // closed when the server has stopped for good
	observer Observer                   // nil: nobody is told

	mu       sync.Mutex // guards what follows
	state    State
	changed  chan struct{} // closed and replaced when state changes
	waiters  int           // callers that need the server now
	lastErr  error         // what state.LastError says
	failed   State         // as it was after the last failure
	failures int           // tries that have failed since the start

	hasty      bool               // the next try was asked for, and goes before others
	again      bool               // a restart was asked for
	restarted  time.Time          // when, the last time
	restarting bool               // for an agent: it waits until nothing is in flight
	interrupt  context.CancelFunc // ends the try or the connection for a restart
}

func newAvailability(server string, observer Observer) availability {
	return availability{nudge: make(chan struct{}, 1), done: make(chan struct{}), changed: make(chan struct{}), observer: observer,
		state: State{Name: server, Phase: Stopped, Since: time.Now()}}
}

// awayError says that a server could not be reached within the time or try
// that a call has.
type awayError struct {
	state State
	last  error // what state.LastError says
}

func (e *awayError) Error() string { return "the server is " + string(e.state.Phase) }

// ready returns the connection. Without one it has one made at once, and waits
// for it: until it is there, or a try has failed, or ctx or the limit ends.
func (p *availability) ready(ctx context.Context, limit time.Duration) (*Connection, error) {
	if c := p.live.Load(); c.usable() {
		return c, nil
	}
	late := time.NewTimer(limit)
	defer late.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiters++
	defer func() { p.waiters-- }()
	for failures := p.failures; ; {
		if c := p.live.Load(); c.usable() {
			return c, nil
		}
		if p.failures != failures {
			return nil, &awayError{p.failed, p.lastErr}
		}
		if p.ended() {
			return nil, &awayError{p.state, p.lastErr}
		}
		changed := p.changed
		p.mu.Unlock()
		signal(p.nudge)
		var err error
		select {
		case <-changed:
		case <-p.done:
		case <-ctx.Done():
			err = ctx.Err()
		case <-late.C:
			err = p.away()
		}
		p.mu.Lock()
		if err != nil {
			return nil, err
		}
	}
}

// waiting returns how many wait for the connection.
func (p *availability) waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiters
}

// needed reports whether somebody waits for the server to start, or has asked for it.
func (p *availability) needed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiters > 0 || p.hasty
}

// away returns the state as an error.
func (p *availability) away() *awayError {
	p.mu.Lock()
	defer p.mu.Unlock()
	return &awayError{p.state, p.lastErr}
}

// ended reports whether the server has stopped for good.
func (p *availability) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func (p *availability) snapshot() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}

// update changes the state, with the lock held, wakes those who wait for a
// change, and tells the observer.
func (p *availability) update(change func(*State)) {
	p.mu.Lock()
	before := p.state.Phase
	change(&p.state)
	if p.state.Phase != before {
		p.state.Since = time.Now()
	}
	state := p.state
	p.wake()
	p.mu.Unlock()
	if p.observer != nil {
		p.observer.StateChanged(state)
	}
}

// reset puts the state to phase, in which nothing is wrong; why says what a
// request is told that cannot wait. The lock is held.
func (p *availability) reset(phase Phase, why error) {
	st := &p.state
	st.Phase, st.LastError, st.Failure, st.RetryAt, st.PID = phase, "", transport.Failure{}, time.Time{}, 0
	p.lastErr = why
}

// wake wakes those who wait for a change. The lock is held.
func (p *availability) wake() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// look has those who wait look for the connection: they may have missed it.
func (p *availability) look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wake()
}

// run has the server run.
func (p *availability) run() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hasty = true
	signal(p.nudge)
}

// restart has the server started anew: it ends the try or the connection.
func (p *availability) restart() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.again, p.restarted = true, time.Now()
	if p.interrupt != nil {
		p.interrupt()
	}
	signal(p.nudge)
}

// restartable returns a context that a restart ends, too.
func (p *availability) restartable(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.interrupt = cancel
	if p.again {
		cancel()
	}
	return ctx, cancel
}

// takeRestart reports, once, whether a restart was asked for.
func (p *availability) takeRestart() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	again := p.again
	p.again, p.hasty = false, p.hasty || again
	return again
}
