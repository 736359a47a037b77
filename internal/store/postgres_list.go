package store

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/binary"
	"slices"

	"mcpproxy/internal/store/activity"
)

// List returns a page of the records that f selects.
func (db *Postgres) List(ctx context.Context, f activity.Filter) (page activity.RecordPage, err error) {
	before, err := decodePgCursor(f.Cursor)
	if err != nil {
		return page, err
	}
	if f.Search != "" {
		if err := db.indexTextOfAllChunks(ctx); err != nil {
			return page, err
		}
	}
	err = db.withSnapshotTx(ctx, func(ctx context.Context, e *pgEngine, c *pgConn) error {
		v, err := newPgSnapshot(ctx, e, c, &f)
		if err != nil {
			return err
		}
		page.Total = v.sel.count()
		m, err := v.mergeInstanceRecords(ctx, before)
		if err != nil {
			return err
		}
		skip, limit := max(0, f.Offset), f.BoundedLimit()
		if before != nil {
			skip = 0
		}
		keys, err := m.nextRecordKeys(ctx, c, skip, limit+1)
		if err != nil {
			return err
		}
		page.Records = make([]activity.Record, 0, len(keys))
		if len(keys) > limit {
			keys = keys[:limit]
			last := &keys[limit-1]
			if _, err := c.firstRow(ctx, scanTargets{&last.order}, "SELECT place FROM activity WHERE instance = $1 AND key = $2", last.instance, last.key); err != nil {
				return err
			}
			page.NextCursor = last.encodeCursor()
		}
		return c.eachStoredRecord(ctx, keys, func(_ int64, s *activity.StoredRecord) error {
			page.Records = append(page.Records, activity.DecodeForDisplay(s.Entry, s.Outcome))
			return nil
		})
	})
	return page, err
}

// eachStoredRecord reads records in the order of keys and calls fn for each that exists, with its index
// in keys.
func (c *pgConn) eachStoredRecord(ctx context.Context, keys []pgRecordKey, fn func(at int64, s *activity.StoredRecord) error) error {
	instances, numbers := make([]int64, len(keys)), make([]int64, len(keys))
	for i, k := range keys {
		instances[i], numbers[i] = k.instance, k.key
	}
	var s activity.StoredRecord
	var at int64
	var endSeq sql.NullInt64
	return c.eachRow(ctx, scanTargets{&at, &s.Seq, &s.Hash, &endSeq, &s.EndHash, &s.Entry, &s.Outcome}, func() error {
		one := s
		one.EndSeq = endSeq.Int64
		return fn(at-1, &one)
	}, `SELECT k.n, a.seq, a.hash, a.end_seq, a.end_hash, a.entry, a.outcome
		FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS k(instance, key, n)
		JOIN activity a ON a.instance = k.instance AND a.key = k.key ORDER BY k.n`, pgIntArray(instances), pgIntArray(numbers))
}

// pgEachBatch is how many records EachRecord reads at a time.
const pgEachBatch = 256

// EachRecord calls fn for every record that f selects at the time of the call, the newest first. The
// selection is bits in memory, and records are read in batches, so that a slow fn blocks nothing.
func (db *Postgres) EachRecord(ctx context.Context, f activity.Filter, fn func(*activity.StoredRecord) error) error {
	return db.eachRecord(ctx, f, false, fn)
}

// EachOwnRecord is EachRecord for the records of this instance only.
func (db *Postgres) EachOwnRecord(ctx context.Context, f activity.Filter, fn func(*activity.StoredRecord) error) error {
	return db.eachRecord(ctx, f, true, fn)
}

func (db *Postgres) eachRecord(ctx context.Context, f activity.Filter, own bool, fn func(*activity.StoredRecord) error) error {
	if f.Search != "" {
		if err := db.indexTextOfAllChunks(ctx); err != nil {
			return err
		}
	}
	var m *pgMergedRecords
	err := db.withSnapshotTx(ctx, func(ctx context.Context, e *pgEngine, c *pgConn) error {
		v, err := newPgSnapshot(ctx, e, c, &f)
		if err == nil {
			m, err = v.mergeInstanceRecords(ctx, nil)
		}
		if own && err == nil {
			m.sources = slices.DeleteFunc(m.sources, func(s *pgInstanceRecords) bool { return s.instance != e.instance })
		}
		return err
	})
	for err == nil {
		var all []*activity.StoredRecord
		var keys []pgRecordKey
		err = db.withReadConn(ctx, func(ctx context.Context, _ *pgEngine, c *pgConn) (err error) {
			if keys, err = m.nextRecordKeys(ctx, c, 0, pgEachBatch); err != nil {
				return err
			}
			return c.eachStoredRecord(ctx, keys, func(_ int64, s *activity.StoredRecord) error { all = append(all, s); return nil })
		})
		if err != nil || len(keys) == 0 {
			return err
		}
		for _, s := range all {
			if err = fn(s); err != nil {
				return err
			}
		}
	}
	return err
}

// encodeCursor encodes the last record of a page.
func (k *pgRecordKey) encodeCursor() string {
	data := binary.AppendUvarint(binary.AppendUvarint([]byte{'p'}, uint64(k.instance)), uint64(k.key))
	return base64.RawURLEncoding.EncodeToString(append(data, k.order...))
}

func decodePgCursor(s string) (*pgRecordKey, error) {
	if s == "" {
		return nil, nil
	}
	data, err := base64.RawURLEncoding.DecodeString(s)
	if err == nil && len(data) > 1 && data[0] == 'p' {
		instance, n := binary.Uvarint(data[1:])
		if n > 0 && instance < 1<<31 {
			key, m := binary.Uvarint(data[1+n:])
			if place := string(data[min(len(data), 1+n+max(0, m)):]); m > 0 && key < uint64(maxKey) && activity.IsIDPrefix(place) {
				return &pgRecordKey{int64(instance), int64(key), place}, nil
			}
		}
	}
	return nil, cursorError(s)
}
