package activity

import (
	"context"
	"errors"
	"strings"
	"time"

	"mcpproxy/internal/problem"
)

// List returns the records that f selects, newest first, with everything that was
// appended before it. When the disk of the store does not take that, what it has
// is returned, marked as incomplete: a full disk must not hide what is on it.
func (l *Log) List(ctx context.Context, f Filter) (Page, error) {
	behind := l.progress.flush(ctx)
	if behind != nil && !errors.Is(behind, ErrIO) {
		return Page{}, behind
	}
	page, err := l.store.List(ctx, f.masked())
	page.Incomplete = page.Incomplete || behind != nil
	for i := range page.Records {
		l.refusals.show(&page.Records[i])
	}
	return page, l.queryError(ctx, err)
}

// Get returns one record by its id or a unique beginning of it. Its problems are
// NOT_FOUND and AMBIGUOUS.
func (l *Log) Get(ctx context.Context, idOrPrefix string) (Record, error) {
	prefix := strings.ToUpper(idOrPrefix)
	if !IsIDPrefix(prefix) {
		return Record{}, problem.Newf(problem.NotFound, "There is no activity %q.", idOrPrefix).
			WithHint("An id looks like 01JG2K4WZ3N8Q5R7T9V1X2Y3Z4; a unique beginning of it is enough.")
	}
	behind := l.progress.flush(ctx)
	if behind != nil && !errors.Is(behind, ErrIO) {
		return Record{}, behind
	}
	r, err := l.store.Get(ctx, prefix)
	if p, ok := errors.AsType[*problem.Problem](err); ok && p.Code == problem.NotFound && behind != nil {
		return Record{}, behind // it may be one of those that the store has not got
	}
	l.refusals.show(&r)
	return r, l.queryError(ctx, err)
}

// Calls returns how many calls of each server have ended since a time, by the hour
// and as far as the database knows.
func (l *Log) Calls(ctx context.Context, since time.Time) (map[string]int64, error) {
	calls, err := l.store.Calls(ctx, since)
	return calls, l.queryError(ctx, err)
}

// ServerUse is Store.ServerUse.
func (l *Log) ServerUse(ctx context.Context, now time.Time, latest int) (map[string]ServerUse, error) {
	use, err := l.store.ServerUse(ctx, now, latest)
	return use, l.queryError(ctx, err)
}

// ToolUse is Store.ToolUse.
func (l *Log) ToolUse(ctx context.Context) (map[[2]string]Use, error) {
	use, err := l.store.ToolUse(ctx)
	return use, l.queryError(ctx, err)
}

func (l *Log) queryError(ctx context.Context, err error) error {
	var p *problem.Problem
	if err == nil || errors.As(err, &p) || ctx.Err() != nil {
		return err
	}
	l.logger.Error("the activity log cannot be read", "error", err)
	return unreadable(err)
}
