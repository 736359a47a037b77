package activity

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"golang.org/x/sync/singleflight"

	"mcpproxy/internal/problem"
)

// queryStore runs a query, up to three times if the store loses its connections. See toQueryError for the errors.
func queryStore[T any](ctx context.Context, l *Log, query func() (T, error)) (result T, err error) {
	err = retryQuery(func() (err error) {
		result, err = query()
		return err
	})
	return result, l.toQueryError(ctx, err)
}

// waitForNewest waits until everything that was appended before the call is in the store. If the store cannot write
// because of its disk, behind is the reason, and queries return what the store has, so that a full disk does not hide
// the records.
func (l *Log) waitForNewest(ctx context.Context) (behind, err error) {
	if err = l.progress.waitProjected(ctx); errors.Is(err, ErrIO) {
		return err, nil
	}
	return nil, err
}

// List returns the records that f selects, newest first. They include everything that was appended before the call,
// unless the page is incomplete.
func (l *Log) List(ctx context.Context, f Filter) (RecordPage, error) {
	behind, err := l.waitForNewest(ctx)
	if err != nil {
		return RecordPage{}, err
	}
	page, err := queryStore(ctx, l, func() (RecordPage, error) { return l.store.List(ctx, f.withMaskedNames()) })
	page.Incomplete = page.Incomplete || behind != nil
	for i := range page.Records {
		l.refusals.setCurrentCount(&page.Records[i])
	}
	return page, err
}

// Get returns the record with an ID, or with a unique prefix of an ID. It may return the problems NOT_FOUND and
// AMBIGUOUS.
func (l *Log) Get(ctx context.Context, idOrPrefix string) (Record, error) {
	prefix := strings.ToUpper(idOrPrefix)
	if !IsIDPrefix(prefix) {
		return Record{}, problem.Newf(problem.NotFound, "The activity %q does not exist.", idOrPrefix).
			WithHint("An id looks like 01JG2K4WZ3N8Q5R7T9V1X2Y3Z4; a unique beginning of it is enough.")
	}
	behind, err := l.waitForNewest(ctx)
	if err != nil {
		return Record{}, err
	}
	r, err := queryStore(ctx, l, func() (Record, error) { return l.store.Get(ctx, prefix) })
	if p, ok := errors.AsType[*problem.Problem](err); ok && p.Code == problem.NotFound && behind != nil {
		return Record{}, behind // the store may not have the record yet
	}
	l.refusals.setCurrentCount(&r)
	return r, err
}

// CallsByServer returns the number of calls of each server that ended since a time, rounded to whole hours. It does not
// wait for entries that are not in the database yet.
func (l *Log) CallsByServer(ctx context.Context, since time.Time) (map[string]int64, error) {
	return queryStore(ctx, l, func() (map[string]int64, error) { return l.store.CallsByServer(ctx, since) })
}

// ServerUse returns the usage of each server in the latest hours (see Store.ServerUse).
func (l *Log) ServerUse(ctx context.Context, now time.Time, latest int) (map[string]ServerUsage, error) {
	return queryStore(ctx, l, func() (map[string]ServerUsage, error) { return l.store.ServerUse(ctx, now, latest) })
}

// ToolUse returns the usage of each tool (see Store.ToolUse).
func (l *Log) ToolUse(ctx context.Context) (map[[2]string]ToolUsage, error) {
	return queryStore(ctx, l, func() (map[[2]string]ToolUsage, error) { return l.store.ToolUse(ctx) })
}

// Summary counts the calls that q selects. They include everything that was appended before the call, unless the
// summary is incomplete.
func (l *Log) Summary(ctx context.Context, q SummaryQuery) (Summary, error) {
	q.Filter, q.Times = q.withMaskedNames(), l.refusals.unwrittenCounts()
	behind, err := l.waitForNewest(ctx)
	if err != nil {
		return Summary{}, err
	}
	s, err := queryStore(ctx, l, func() (Summary, error) { return l.store.Summary(ctx, q) })
	s.Incomplete = s.Incomplete || behind != nil
	return s, err
}

// Sessions returns a page of the sessions that have records in a period.
func (l *Log) Sessions(ctx context.Context, q SessionQuery) (SessionPage, error) {
	q.Times = l.refusals.unwrittenCounts()
	behind, err := l.waitForNewest(ctx)
	if err != nil {
		return SessionPage{}, err
	}
	p, err := queryStore(ctx, l, func() (SessionPage, error) { return l.store.Sessions(ctx, q) })
	p.Incomplete = p.Incomplete || behind != nil
	return p, err
}

// SelectsAll reports whether the filter selects all records. It ignores the paging fields.
func (f Filter) SelectsAll() bool {
	f.Limit, f.Offset, f.Cursor = 0, 0, ""
	return reflect.ValueOf(f).IsZero()
}

// EachRecord calls fn for every record that f selects, newest first and without paging. The records include everything
// that was appended before the call. Records that are pruned in the meantime are skipped. fn may keep the record.
func (l *Log) EachRecord(ctx context.Context, f Filter, fn func(*Record) error) error {
	if err := l.progress.waitProjected(ctx); err != nil {
		return err
	}
	var failed error
	given := false
	err := retryQuery(func() error {
		err := l.store.EachRecord(ctx, f.withMaskedNames(), func(s *StoredRecord) error {
			r := DecodeForDisplay(s.Entry, s.Outcome)
			l.refusals.setCurrentCount(&r)
			given, failed = true, fn(&r)
			return failed
		})
		if err != nil && given { // fn must not receive a record twice
			return fmt.Errorf("could not read further records: %v", err)
		}
		return err
	})
	if failed != nil {
		return failed
	}
	return l.toQueryError(ctx, err)
}

// Verify checks each entry of the whole log against the hash of the previous entry, including everything that was
// appended before the call. It does not block other operations. Concurrent callers share one verification, which
// continues if a caller stops waiting.
func (l *Log) Verify(ctx context.Context) (Verification, error) {
	select {
	case r := <-l.startOrJoinVerification():
		v, _ := r.Val.(Verification)
		return v, r.Err
	case <-ctx.Done():
		return Verification{}, ctx.Err()
	}
}

// startOrJoinVerification starts a verification unless one is running. The channel receives its result.
func (l *Log) startOrJoinVerification() <-chan singleflight.Result {
	return l.verifying.DoChan("", func() (any, error) { return l.verify() })
}

// verifyChain checks the spool, the chain of the store and, in a shared store, the chains of the other instances.
func (l *Log) verifyChain(ctx context.Context) (Verification, error) {
	if ctx.Err() != nil {
		return Verification{}, newUnreadableError(errClosed)
	}
	began := time.Now()
	m := l.spool.snapshot()
	if err := l.progress.waitProjected(ctx); err != nil {
		return Verification{}, err
	}
	inSpool, err := m.firstBreak()
	if err != nil {
		return Verification{}, err
	}
	var c chainChecker
	var records int64
	var end SpoolPosition
	err = retryQuery(func() (err error) {
		c = chainChecker{spoolEnd: chainLink{m.end.Seq, m.end.Hash}, signatureCheck: signatureCheck{key: l.key.publicKey()}}
		records, end, err = l.store.EachChainPart(ctx, c.checkPart)
		return err
	})
	if err != nil && !errors.Is(err, errChainBroken) {
		return Verification{}, l.toQueryError(ctx, err)
	}
	if err == nil {
		c.checkEnd(end, m.end.Chain)
	}
	if err := c.addSpoolBreak(&m, inSpool); err != nil {
		return Verification{}, err
	}
	entries := c.entries
	if o, ok := l.store.(SharedStore); ok && c.first == nil {
		more, count, broken, err := verifyOtherInstances(ctx, o.EachOtherInstance)
		if err != nil {
			return Verification{}, l.toQueryError(ctx, err)
		}
		records, entries, c.first = records+more, entries+count, broken
	}
	if c.first != nil {
		l.logger.Error("the activity log was changed", "entry", c.first.Seq, "reason", c.first.Reason)
	}
	l.verified.Store(&Verified{At: began.UTC(), OK: c.first == nil})
	return Verification{OK: c.first == nil, Records: records, Entries: entries, At: began.UTC(), TookMS: time.Since(began).Milliseconds(), Signer: l.key.String(), FirstBreak: c.first}, nil
}

// toQueryError logs an error of the store and converts it into an AUDIT_UNAVAILABLE problem. It does not change nil,
// problems, and errors of a ctx that has ended.
func (l *Log) toQueryError(ctx context.Context, err error) error {
	var p *problem.Problem
	if err == nil || errors.As(err, &p) || ctx.Err() != nil {
		return err
	}
	l.logger.Error("the activity log cannot be read", "error", err)
	return newUnreadableError(err)
}
