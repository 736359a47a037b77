package activity

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"mcpproxy/internal/problem"
)

// projectionProgress tracks how many entries of the spool the store has, and lets callers wait for entries.
type projectionProgress struct {
	spool  *spool
	logger *slog.Logger
	asked  wakeSignal    // raised when a caller waits for the projector
	ended  chan struct{} // closed when the projector has ended

	mu        sync.Mutex // guards the fields below
	started   bool       // whether the entries of earlier processes are in the store
	projected int64
	err       error
	changed   chan struct{} // closed when one of the three fields above changes; nil if no caller waits
}

// waitProjected waits until everything that was appended before the call is in the store.
func (p *projectionProgress) waitProjected(ctx context.Context) error {
	target := p.spool.lastDurableSeq()
	for {
		p.mu.Lock()
		err := p.err
		done := p.started && p.projected >= target
		if p.changed == nil {
			p.changed = make(chan struct{})
		}
		changed := p.changed
		p.mu.Unlock()
		if err != nil {
			return newUnreadableError(err)
		}
		if done {
			return nil
		}
		p.asked.wake()
		select {
		case <-changed:
		case <-p.ended:
			return newUnreadableError(errClosed)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// updateAndNotify calls change, which changes the progress, and wakes the waiting callers.
func (p *projectionProgress) updateAndNotify(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
}

// setProjected sets the sequence number of the last entry that the store has.
func (p *projectionProgress) setProjected(seq int64) { p.updateAndNotify(func() { p.projected = seq }) }

// markStoreWorking records that the store accepts entries.
func (p *projectionProgress) markStoreWorking() {
	p.updateAndNotify(func() {
		if p.err != nil {
			p.logger.Info("the database of the activity log is available again")
			p.err = nil
			p.spool.setStoreError(nil)
		}
	})
}

// storeError returns why the store does not accept entries, or nil if it does.
func (p *projectionProgress) storeError() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// markCaughtUp records that the store has all entries of earlier processes.
func (p *projectionProgress) markCaughtUp() { p.updateAndNotify(func() { p.started = true }) }

// markStoreFailed records that the store does not accept entries.
func (p *projectionProgress) markStoreFailed(err error) {
	p.updateAndNotify(func() {
		if p.err == nil || p.err.Error() != err.Error() {
			p.logger.Error("the database of the activity log is not available; records wait in the spool", "error", err)
		}
		p.err = err
		if !errors.Is(err, ErrIO) {
			err = nil // the spool keeps the records in the meantime
		}
		p.spool.setStoreError(err)
	})
}

func newUnreadableError(err error) error {
	return problem.New(problem.AuditUnavailable,
		"The activity log cannot be read: its database is not available. No record is lost: new records wait in the spool.",
		"See `mcpproxy status` and the log of the daemon for the cause.").Because(err)
}
