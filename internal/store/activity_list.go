package store

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"slices"
	"time"

	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// fieldCondition contains the values of one field that a filter allows.
type fieldCondition struct {
	field  columnField
	hashes []uint64
}

func fieldConditions(f *activity.Filter) []fieldCondition {
	out := appendFieldCondition(nil, fieldSession, f.SessionID)
	out = appendFieldCondition(out, fieldRequest, f.RequestID)
	out = appendFieldCondition(out, fieldTool, f.Tools...)
	out = appendFieldCondition(out, fieldServer, f.Servers...)
	out = appendFieldCondition(out, fieldType, f.Types...)
	out = appendFieldCondition(out, fieldStatus, f.Statuses...)
	out = appendFieldCondition(out, fieldIntent, f.IntentTypes...)
	out = appendFieldCondition(out, fieldSensitivity, f.Sensitivities...)
	out = appendFieldCondition(out, fieldActor, f.Actors...)
	return appendFieldCondition(out, fieldClient, f.Clients...)
}

// appendFieldCondition appends the condition that a column has one of the values. It ignores empty values.
func appendFieldCondition[T ~string](out []fieldCondition, fd columnField, values ...T) []fieldCondition {
	w := fieldCondition{field: fd}
	for _, v := range values {
		if v != "" {
			w.hashes = append(w.hashes, hashText(string(v)))
		}
	}
	if len(w.hashes) == 0 {
		return out
	}
	return append(out, w)
}

// List returns a page of the records that f selects.
func (s *commonStore) List(ctx context.Context, f activity.Filter) (page activity.RecordPage, err error) {
	before, err := s.db.decodeCursor(f.Cursor)
	if err != nil {
		return page, err
	}
	page.Incomplete, err = s.db.query(ctx, &f, nil, func(ctx context.Context, v *recordSnapshot) error {
		page.Total = v.sel.count()
		m, err := v.mergeInstanceRecords(ctx, before)
		if err != nil {
			return err
		}
		skip, limit := max(0, f.Offset), f.BoundedLimit()
		if before != nil {
			skip = 0
		}
		keys, err := m.nextRecordKeys(ctx, v.db, skip, limit+1)
		if err != nil {
			return err
		}
		if len(keys) > limit {
			keys = keys[:limit]
			if page.NextCursor, err = v.db.encodeCursor(ctx, keys[limit-1]); err != nil {
				return err
			}
		}
		page.Records = make([]activity.Record, 0, len(keys))
		return eachRecord(ctx, v.db, keys, func(_ int64, r *activity.Record) { page.Records = append(page.Records, *r) })
	})
	return page, err
}

// eachRecord reads the records with these keys, in order. It calls fn for each record that exists, with its index in
// keys. The record is valid until fn returns.
func eachRecord(ctx context.Context, r sqlReader, keys []recordKey, fn func(at int64, r *activity.Record)) error {
	var one activity.Record // reused for all records, to avoid an allocation for each
	return r.eachStoredRecord(ctx, keys, func(at int64, s *activity.StoredRecord) error {
		one = activity.DecodeForDisplay(s.Entry, s.Outcome)
		fn(at, &one)
		return nil
	})
}

// EachRecord calls fn for every record that f selects at the time of the call, newest first. It keeps the selection in
// memory and reads records in batches, so that a slow fn does not block other operations or keep a snapshot open.
func (s *commonStore) EachRecord(ctx context.Context, f activity.Filter, fn func(*activity.StoredRecord) error) error {
	return s.eachRecordOf(ctx, f, func(int64) bool { return true }, fn)
}

// recordsPerRead is the number of records that EachRecord reads at a time.
const recordsPerRead = 256

// eachRecordOf does the same as EachRecord, but only for the instances that include accepts.
func (s *commonStore) eachRecordOf(ctx context.Context, f activity.Filter, include func(instance int64) bool, fn func(*activity.StoredRecord) error) error {
	var m *mergedRecords
	_, err := s.db.query(ctx, &f, nil, func(ctx context.Context, v *recordSnapshot) (err error) {
		m, err = v.mergeInstanceRecords(ctx, nil)
		return err
	})
	if err != nil {
		return err
	}
	m.sources = slices.DeleteFunc(m.sources, func(s *instanceRecords) bool { return !include(s.instance) })
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		var keys []recordKey
		var batch []*activity.StoredRecord
		err := s.db.view(ctx, func(ctx context.Context, r sqlReader) (err error) {
			if keys, err = m.nextRecordKeys(ctx, r, 0, recordsPerRead); err != nil {
				return err
			}
			return r.eachStoredRecord(ctx, keys, func(_ int64, s *activity.StoredRecord) error { batch = append(batch, s); return nil })
		})
		if err != nil || len(keys) == 0 {
			return err
		}
		for _, s := range batch {
			if err := fn(s); err != nil {
				return err
			}
		}
	}
}

// timeBounds returns the time range [since, until) in microseconds.
func timeBounds(since, until time.Time) (int64, int64) {
	from, to := int64(-1<<62), int64(1<<62)
	if !since.IsZero() {
		from = ceilMicroseconds(since)
	}
	if !until.IsZero() {
		to = ceilMicroseconds(until)
	}
	return from, to
}

// ceilMicroseconds converts t to microseconds and rounds up, so that a record in the microsecond of t is before t if t
// has a fraction.
func ceilMicroseconds(t time.Time) int64 {
	n := t.UnixMicro()
	if time.UnixMicro(n).Before(t) {
		n++
	}
	return n
}

const maxKey = int64(1) << 62

func (*SQLite) decodeCursor(s string) (before *recordKey, err error) {
	if s == "" {
		return nil, nil
	}
	data, err := base64.RawURLEncoding.DecodeString(s)
	if err == nil && len(data) > 1 && data[0] == 'a' {
		if key, n := binary.Uvarint(data[1:]); n == len(data)-1 && key < uint64(maxKey) {
			return &recordKey{key: int64(key)}, nil
		}
	}
	return nil, cursorError(s)
}

func cursorError(s string) error {
	return problem.Newf(problem.InvalidParameter, "Invalid cursor '%s'.", s).
		WithHint("Use next_cursor of the previous response, or leave the cursor out to begin with the newest record.").
		With("parameter", "cursor").With("value", s).With("allowed", "next_cursor of an earlier response")
}
