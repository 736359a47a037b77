package activity

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"mcpproxy/internal/problem"
)

// progress is how far the store is with what the spool has, and who waits for
// that.
type progress struct {
	spool  *spool
	logger *slog.Logger
	asked  signal        // somebody waits for the projector
	ended  chan struct{} // the projector has ended

	mu        sync.Mutex // guards what follows
	started   bool       // what earlier processes left is in the store
	projected int64
	err       error
	changed   chan struct{} // closed when one of the three above changes; nil when nobody waits
}

// flush waits until everything that was appended before it is in the store.
func (p *progress) flush(ctx context.Context) error {
	target := p.spool.end()
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
			return unreadable(err)
		}
		if done {
			return nil
		}
		p.asked.raise()
		select {
		case <-changed:
		case <-p.ended:
			return unreadable(errClosed)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// note changes what is known, and tells those who wait.
func (p *progress) note(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
}

// reached notes how far the store is.
func (p *progress) reached(seq int64) { p.note(func() { p.projected = seq }) }

// works notes that the store takes entries.
func (p *progress) works() {
	p.note(func() {
		if p.err != nil {
			p.logger.Info("the database of the activity log is available again")
			p.err = nil
			p.spool.setStoreSick(nil)
		}
	})
}

// failure returns why the store does not take entries; nil when it does.
func (p *progress) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// caughtUp notes that the store has everything that earlier processes left.
func (p *progress) caughtUp() { p.note(func() { p.started = true }) }

// failed notes that the store does not take entries.
func (p *progress) failed(err error) {
	p.note(func() {
		if p.err == nil || p.err.Error() != err.Error() {
			p.logger.Error("the database of the activity log is not available; records wait in the spool", "error", err)
		}
		p.err = err
		if !errors.Is(err, ErrIO) {
			err = nil // records wait in the spool, which holds
		}
		p.spool.setStoreSick(err)
	})
}

func unreadable(err error) error {
	return problem.New(problem.AuditUnavailable,
		"The activity log cannot be read: its database is not available. Nothing is lost, new records are kept beside it.",
		"See `mcpproxy status` and the log of the daemon for the cause.").Because(err)
}
