package activity

import (
	"context"
	"errors"
	"strings"

	"mcpproxy/internal/problem"
)

// List gives the records that f selects, newest first, with everything that was
// appended before it.
func (l *Log) List(ctx context.Context, f Filter) (Page, error) {
	if err := l.flush(ctx); err != nil {
		return Page{}, err
	}
	page, err := l.store.List(ctx, f)
	return page, l.queryError(ctx, err)
}

// Get gives one record by its id or a unique beginning of it. Its problems are
// NOT_FOUND and AMBIGUOUS.
func (l *Log) Get(ctx context.Context, idOrPrefix string) (Record, error) {
	prefix := strings.ToUpper(idOrPrefix)
	if !IsIDPrefix(prefix) {
		return Record{}, problem.Newf(problem.NotFound, "There is no activity %q.", idOrPrefix).
			WithHint("An id looks like 01JG2K4WZ3N8Q5R7T9V1X2Y3Z4; a unique beginning of it is enough.")
	}
	if err := l.flush(ctx); err != nil {
		return Record{}, err
	}
	r, err := l.store.Get(ctx, prefix)
	return r, l.queryError(ctx, err)
}

func (l *Log) queryError(ctx context.Context, err error) error {
	var p *problem.Problem
	if err == nil || errors.As(err, &p) || ctx.Err() != nil {
		return err
	}
	l.logger.Error("the activity log cannot be read", "error", err)
	return unreadable(err)
}

func unreadable(err error) error {
	return problem.New(problem.AuditUnavailable,
		"The activity log cannot be read: its database is not available. Nothing is lost, new records are kept beside it.",
		"See `mcpproxy status` and the log of the daemon for the cause.").Because(err)
}

// flush waits until everything that was appended before it is in the store.
func (l *Log) flush(ctx context.Context) error {
	target := l.spool.end()
	for {
		l.mu.Lock()
		err := l.storeErr
		done := l.started && l.projected >= target
		if l.progress == nil {
			l.progress = make(chan struct{})
		}
		progress := l.progress
		l.mu.Unlock()
		if err != nil {
			return unreadable(err)
		}
		if done {
			return nil
		}
		select {
		case l.flushes <- struct{}{}:
		default:
		}
		select {
		case <-progress:
		case <-l.stopped:
			return unreadable(errClosed)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// announce tells those who wait that something has changed. mu is held.
func (l *Log) announce() {
	if l.progress != nil {
		close(l.progress)
		l.progress = nil
	}
}

// progressed says how far the store is.
func (l *Log) progressed(seq int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.projected = seq
	l.announce()
}

// storeWorks says that the store takes entries.
func (l *Log) storeWorks() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.storeErr != nil {
		l.logger.Info("the database of the activity log is available again")
		l.storeErr = nil
		l.announce()
	}
}

// hasStarted says that the store has everything that earlier processes left.
func (l *Log) hasStarted() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.started = true
	l.announce()
}

func (l *Log) storeFailed(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.storeErr == nil || l.storeErr.Error() != err.Error() {
		l.logger.Error("the database of the activity log is not available; records wait in the spool", "error", err)
	}
	l.storeErr = err
	l.announce()
}

// tell puts on record what happened to the log itself.
func (l *Log) tell(notes []string) {
	for _, note := range notes {
		l.logger.Error("the activity log was damaged", "what", note)
		r := Record{Type: System, Status: Failed, ErrorMessage: note, Metadata: Metadata{Action: "activity_log_damaged"}}
		if err := l.Append(&r); err != nil {
			l.logger.Error("damage of the activity log cannot be put on record", "error", err)
		}
	}
}
