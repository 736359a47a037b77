// Package pause is the kill switch: while it is on, MCPProxy rejects every call.
//
//   - Every call and every request that makes a server act holds a Ticket while it runs. Pausing cancels all tickets,
//     and no new ticket is issued until a user resumes.
//   - While the state cannot be read, no ticket is issued either.
//   - Pausing takes effect before it is stored. If it cannot be stored, it stays in effect in this process, and the
//     next Reload stores it.
//   - The package does no I/O of its own; see Store.
package pause

import (
	"context"
	"sync"
	"time"

	"mcpproxy/internal/problem"
)

// MaxReason limits the reason of a pause, in bytes.
const MaxReason = 1_000

// loadWait limits how long a call waits until the state is read for the first time.
const loadWait = 5 * time.Second

// State contains whether calls are paused, and the actor, time and reason of this decision.
type State struct {
	Paused bool      `json:"paused"`
	Reason string    `json:"reason,omitempty"`
	By     string    `json:"by,omitempty"`
	Via    string    `json:"via,omitempty"`
	At     time.Time `json:"at,omitzero"`
}

// Store stores the state. LoadPause returns an error unless it knows the state for certain.
type Store interface {
	LoadPause(ctx context.Context) (State, error)
	SavePause(ctx context.Context, s State) error
}

// Switch is the kill switch. New returns one whose state is unknown until Reload has read it.
type Switch struct {
	store   Store
	changed func()        // called after each change of the state
	loaded  chan struct{} // closed when the state was read or set for the first time

	storing sync.Mutex // held while the store is used

	mu      sync.Mutex // guards the following fields; never held while the store is used
	state   State
	err     error // why the state is unknown; nil if it is known
	unsaved bool  // the state is a pause that is not stored yet
	isReady bool  // loaded is closed
	running map[*Ticket]struct{}
	idle    chan struct{} // closed when the last ticket ends; nil if no one waits for it
}

// New returns a Switch. changed is called after each change of the state; it must not block.
func New(s Store, changed func()) *Switch {
	return &Switch{store: s, changed: changed, loaded: make(chan struct{}), err: errNotRead, running: map[*Ticket]struct{}{}}
}

var errNotRead = problem.New(problem.ServerUnavailable, "The state was not read yet.", "")

// Ticket belongs to one running call.
type Ticket struct {
	of     *Switch
	cancel context.CancelCauseFunc
}

// Enter issues a ticket for a call, and returns the context in which the call must run. A pause cancels this context;
// Stopped returns the reason. If calls are paused, Enter returns a problem.
func (s *Switch) Enter(ctx context.Context) (context.Context, *Ticket, *problem.Problem) {
	s.mu.Lock()
	if !s.isReady {
		s.mu.Unlock()
		s.waitLoaded(ctx)
		s.mu.Lock()
	}
	defer s.mu.Unlock()
	if p := s.problemLocked(); p != nil {
		return ctx, nil, p
	}
	t := &Ticket{of: s}
	ctx, t.cancel = context.WithCancelCause(ctx)
	s.running[t] = struct{}{}
	return ctx, t, nil
}

// Leave ends a ticket. A nil ticket is ignored.
func (t *Ticket) Leave() {
	if t == nil {
		return
	}
	s := t.of
	s.mu.Lock()
	delete(s.running, t)
	if len(s.running) == 0 && s.idle != nil {
		close(s.idle)
		s.idle = nil
	}
	s.mu.Unlock()
	t.cancel(nil)
}

func (s *Switch) waitLoaded(ctx context.Context) {
	late := time.NewTimer(loadWait)
	defer late.Stop()
	select {
	case <-s.loaded:
	case <-ctx.Done():
	case <-late.C:
	}
}

// stoppedError is the cause of the cancellation of a call by a pause.
type stoppedError struct{ state State }

func (*stoppedError) Error() string { return "calls were paused" }

// Stopped returns the pause that has cancelled the context of a call; nil if none has.
func Stopped(ctx context.Context) *State {
	if e, ok := context.Cause(ctx).(*stoppedError); ok { // it is never wrapped
		return &e.state
	}
	return nil
}

// Problem returns the problem of a call while calls are paused, or while the state is unknown; nil otherwise.
func (s *Switch) Problem() *problem.Problem {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.problemLocked()
}

func (s *Switch) problemLocked() *problem.Problem {
	switch {
	case s.state.Paused:
		return s.state.Problem("Calls are paused, so the call was not made.")
	case s.err != nil:
		return problem.New(problem.CallsPaused, "MCPProxy cannot read whether calls are paused, so no call is made.",
			"Try again in a moment. If this persists, ask the user to see `mcpproxy status`.").Because(s.err)
	}
	return nil
}

// Problem returns the problem of a call that a pause stops. what states what happened to the call.
func (s *State) Problem(what string) *problem.Problem {
	if s.Reason != "" {
		what += " The user's reason: " + problem.ClipForDisplay(s.Reason, MaxReason)
	}
	return problem.New(problem.CallsPaused, what, "Do not try again: only the user can resume calls, with `mcpproxy resume` or in the web UI.").
		With("paused_at", s.At.UTC().Format(time.RFC3339))
}

// Current returns the state. The error contains the reason why it is unknown.
func (s *Switch) Current() (State, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state.Paused {
		return s.state, nil
	}
	return s.state, s.err
}

// Pause stops all calls of this process: it cancels those that run and rejects new ones. It takes effect before Pause
// stores it. cancelled is the number of cancelled calls. An error means that the pause is in effect here, but not stored.
func (s *Switch) Pause(ctx context.Context, state State) (cancelled int, err error) {
	state.Paused = true
	s.mu.Lock()
	s.unsaved = true
	cancelled = s.setLocked(state)
	s.mu.Unlock()
	s.changed()
	s.storing.Lock()
	defer s.storing.Unlock()
	return cancelled, s.saveUnsaved(ctx)
}

// saveUnsaved stores a pause that is not stored yet. The lock storing is held.
func (s *Switch) saveUnsaved(ctx context.Context) error {
	s.mu.Lock()
	state := s.state
	s.mu.Unlock()
	if err := s.store.SavePause(ctx, state); err != nil {
		return err
	}
	s.mu.Lock()
	s.unsaved = s.state != state // another pause has begun in the meantime
	s.mu.Unlock()
	return nil
}

// Resume stores that calls are allowed, and then allows them.
func (s *Switch) Resume(ctx context.Context, state State) error {
	state.Paused = false
	s.storing.Lock()
	defer s.storing.Unlock()
	s.mu.Lock()
	before := s.state
	s.mu.Unlock()
	if err := s.store.SavePause(ctx, state); err != nil {
		return err
	}
	s.mu.Lock()
	if s.state == before { // otherwise a new pause has begun, and is stored next
		s.unsaved = false
		s.setLocked(state)
	}
	s.mu.Unlock()
	s.changed()
	return nil
}

// Reload reads the state again, because another process may have changed it. announced is true if it has changed. After
// an error the state is unknown, and every call is rejected; but if no change is announced, the last known state stays.
// A pause that is not stored yet is stored instead.
func (s *Switch) Reload(ctx context.Context, announced bool) error {
	s.storing.Lock()
	defer s.storing.Unlock()
	s.mu.Lock()
	unsaved := s.unsaved
	s.mu.Unlock()
	if unsaved {
		return s.saveUnsaved(ctx)
	}
	state, err := s.store.LoadPause(ctx)
	s.mu.Lock()
	switch {
	case s.unsaved: // a pause has begun in the meantime
	case err != nil:
		if announced || !s.isReady {
			s.err = err
		}
	default:
		s.setLocked(state)
	}
	s.mu.Unlock()
	s.changed()
	return err
}

// setLocked sets the state. If calls are paused, it cancels those that run, and returns their number.
func (s *Switch) setLocked(state State) (cancelled int) {
	s.state, s.err = state, nil
	if !s.isReady {
		s.isReady = true
		close(s.loaded)
	}
	if !state.Paused {
		return 0
	}
	for t := range s.running {
		t.cancel(&stoppedError{state})
	}
	return len(s.running)
}

// AwaitIdle waits until no call runs. left is the number of calls that still run when ctx ends.
func (s *Switch) AwaitIdle(ctx context.Context) (left int) {
	s.mu.Lock()
	if len(s.running) == 0 {
		s.mu.Unlock()
		return 0
	}
	if s.idle == nil {
		s.idle = make(chan struct{})
	}
	idle := s.idle
	s.mu.Unlock()
	select {
	case <-idle:
		return 0
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.running)
}
