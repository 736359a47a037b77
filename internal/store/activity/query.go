package activity

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"mcpproxy/internal/problem"
)

// List returns the records that f selects, newest first. They include everything that was appended before the call. If
// the store cannot write because of its disk, List returns the records of the store and marks the page as incomplete,
// so that a full disk does not hide them.
func (l *Log) List(ctx context.Context, f Filter) (RecordPage, error) {
	behind := l.progress.waitProjected(ctx)
	if behind != nil && !errors.Is(behind, ErrIO) {
		return RecordPage{}, behind
	}
	var page RecordPage
	err := retryQuery(func() (err error) {
		page, err = l.store.List(ctx, f.withMaskedNames())
		return err
	})
	page.Incomplete = page.Incomplete || behind != nil
	for i := range page.Records {
		l.refusals.setCurrentCount(&page.Records[i])
	}
	return page, l.toQueryError(ctx, err)
}

// Get returns the record with an ID, or with a unique prefix of an ID. It may return the problems NOT_FOUND and
// AMBIGUOUS.
func (l *Log) Get(ctx context.Context, idOrPrefix string) (Record, error) {
	prefix := strings.ToUpper(idOrPrefix)
	if !IsIDPrefix(prefix) {
		return Record{}, problem.Newf(problem.NotFound, "The activity %q does not exist.", idOrPrefix).
			WithHint("An id looks like 01JG2K4WZ3N8Q5R7T9V1X2Y3Z4; a unique beginning of it is enough.")
	}
	behind := l.progress.waitProjected(ctx)
	if behind != nil && !errors.Is(behind, ErrIO) {
		return Record{}, behind
	}
	var r Record
	err := retryQuery(func() (err error) {
		r, err = l.store.Get(ctx, prefix)
		return err
	})
	if p, ok := errors.AsType[*problem.Problem](err); ok && p.Code == problem.NotFound && behind != nil {
		return Record{}, behind // the store may not have the record yet
	}
	l.refusals.setCurrentCount(&r)
	return r, l.toQueryError(ctx, err)
}

// CallsByServer returns the number of calls of each server that ended since a time, rounded to whole hours. It does not
// wait for entries that are not in the database yet.
func (l *Log) CallsByServer(ctx context.Context, since time.Time) (map[string]int64, error) {
	var calls map[string]int64
	err := retryQuery(func() (err error) {
		calls, err = l.store.CallsByServer(ctx, since)
		return err
	})
	return calls, l.toQueryError(ctx, err)
}

// ServerUse returns the usage of each server in the latest hours (see Store.ServerUse).
func (l *Log) ServerUse(ctx context.Context, now time.Time, latest int) (map[string]ServerUsage, error) {
	var use map[string]ServerUsage
	err := retryQuery(func() (err error) {
		use, err = l.store.ServerUse(ctx, now, latest)
		return err
	})
	return use, l.toQueryError(ctx, err)
}

// ToolUse returns the usage of each tool (see Store.ToolUse).
func (l *Log) ToolUse(ctx context.Context) (map[[2]string]ToolUsage, error) {
	var use map[[2]string]ToolUsage
	err := retryQuery(func() (err error) {
		use, err = l.store.ToolUse(ctx)
		return err
	})
	return use, l.toQueryError(ctx, err)
}

// Summary counts the calls that q selects. They include everything that was appended before the call.
func (l *Log) Summary(ctx context.Context, q SummaryQuery) (Summary, error) {
	q.Filter, q.Times = q.withMaskedNames(), l.refusals.unwrittenCounts()
	behind := l.progress.waitProjected(ctx)
	if behind != nil && !errors.Is(behind, ErrIO) {
		return Summary{}, behind
	}
	var s Summary
	err := retryQuery(func() (err error) {
		s, err = l.store.Summary(ctx, q)
		return err
	})
	s.Incomplete = s.Incomplete || behind != nil
	return s, l.toQueryError(ctx, err)
}

// Sessions returns a page of the sessions that have records in a period.
func (l *Log) Sessions(ctx context.Context, q SessionQuery) (SessionPage, error) {
	q.Times = l.refusals.unwrittenCounts()
	behind := l.progress.waitProjected(ctx)
	if behind != nil && !errors.Is(behind, ErrIO) {
		return SessionPage{}, behind
	}
	var p SessionPage
	err := retryQuery(func() (err error) {
		p, err = l.store.Sessions(ctx, q)
		return err
	})
	p.Incomplete = p.Incomplete || behind != nil
	return p, l.toQueryError(ctx, err)
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
	v := l.startOrJoinVerification()
	select {
	case <-v.done:
		return v.found, v.err
	case <-ctx.Done():
		return Verification{}, ctx.Err()
	}
}

// startOrJoinVerification returns the running verification, or starts a new one.
func (l *Log) startOrJoinVerification() *runningVerification {
	l.verifier.mu.Lock()
	defer l.verifier.mu.Unlock()
	if l.verifier.running != nil {
		return l.verifier.running
	}
	v := &runningVerification{done: make(chan struct{})}
	if l.verifier.closed {
		v.err = newUnreadableError(errClosed)
		close(v.done)
		return v
	}
	ctx, stop := context.WithCancel(context.Background())
	l.verifier.running, l.verifier.stop = v, stop
	l.watching.Go(func() {
		defer stop()
		v.found, v.err = l.verifyChain(ctx)
		l.verifier.mu.Lock()
		l.verifier.running = nil
		if v.err == nil {
			l.verifier.last = &Verified{At: v.found.At, OK: v.found.OK}
		}
		l.verifier.mu.Unlock()
		close(v.done)
	})
	return v
}

// verifyChain checks the spool, the chain of the store and, in a shared store, the chains of the other instances.
func (l *Log) verifyChain(ctx context.Context) (Verification, error) {
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
	if c.first == nil && inSpool == nil {
		if inSpool, err = m.findUnrecordedErasure(&c.erasureCheck); err != nil {
			return Verification{}, err
		}
	}
	if inSpool != nil && (c.first == nil || inSpool.Seq < c.first.Seq) {
		c.first = inSpool
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
