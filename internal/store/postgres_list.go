package store

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/binary"
	"slices"

	"mcpproxy/internal/store/activity"
)

// query implements transactor.
func (db *Postgres) query(ctx context.Context, f *activity.Filter, columns []columnField, fn func(ctx context.Context, v *recordSnapshot) error) (incomplete bool, err error) {
	if f.Search != "" {
		if err := db.indexTextOfAllChunks(ctx); err != nil {
			return false, err
		}
	}
	return false, db.withSnapshotTx(ctx, func(ctx context.Context, _ *pgEngine, c *pgConn) error {
		v, err := newPgSnapshot(ctx, c, f, columns)
		if err != nil {
			return err
		}
		return fn(ctx, v)
	})
}

func (r pgSnapshotReader) eachRecord(ctx context.Context, keys []recordKey, fn func(at int64, r *activity.Record)) error {
	return r.eachStoredRecord(ctx, keys, func(at int64, s *activity.StoredRecord) error {
		one := activity.DecodeForDisplay(s.Entry, s.Outcome)
		fn(at, &one)
		return nil
	})
}

// eachStoredRecord does the same as eachRecord, but for records in their stored form.
func (r pgSnapshotReader) eachStoredRecord(ctx context.Context, keys []recordKey, fn func(at int64, s *activity.StoredRecord) error) error {
	instances, numbers := make([]int64, len(keys)), make([]int64, len(keys))
	for i, k := range keys {
		instances[i], numbers[i] = k.instance, k.key
	}
	var s activity.StoredRecord
	var at int64
	var endSeq sql.NullInt64
	return r.c.eachRow(ctx, scanTargets{&at, &s.Seq, &s.Hash, &endSeq, &s.EndHash, &s.Entry, &s.Outcome}, func() error {
		one := s
		one.EndSeq = endSeq.Int64
		return fn(at-1, &one)
	}, `SELECT k.n, a.seq, a.hash, a.end_seq, a.end_hash, a.entry, a.outcome
		FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS k(instance, key, n)
		JOIN activity a ON a.instance = k.instance AND a.key = k.key ORDER BY k.n`, pgIntArray(instances), pgIntArray(numbers))
}

// pgEachBatch is the number of records that EachRecord reads at a time.
const pgEachBatch = 256

// EachRecord calls fn for every record that f selects at the time of the call, newest first. It keeps the selection in
// memory and reads records in batches, so that a slow fn does not block other operations.
func (db *Postgres) EachRecord(ctx context.Context, f activity.Filter, fn func(*activity.StoredRecord) error) error {
	return db.eachRecord(ctx, f, false, fn)
}

// EachOwnRecord does the same as EachRecord, but only for the records of this instance.
func (db *Postgres) EachOwnRecord(ctx context.Context, f activity.Filter, fn func(*activity.StoredRecord) error) error {
	return db.eachRecord(ctx, f, true, fn)
}

func (db *Postgres) eachRecord(ctx context.Context, f activity.Filter, own bool, fn func(*activity.StoredRecord) error) error {
	var m *mergedRecords
	_, err := db.query(ctx, &f, nil, func(ctx context.Context, v *recordSnapshot) (err error) {
		m, err = v.mergeInstanceRecords(ctx, nil)
		return err
	})
	for err == nil {
		var all []*activity.StoredRecord
		var keys []recordKey
		err = db.withReadConn(ctx, func(ctx context.Context, e *pgEngine, c *pgConn) (err error) {
			if own {
				m.sources = slices.DeleteFunc(m.sources, func(s *instanceRecords) bool { return s.instance != e.instance })
			}
			r := pgSnapshotReader{c}
			if keys, err = m.nextRecordKeys(ctx, r.ofInstance, 0, pgEachBatch); err != nil {
				return err
			}
			return r.eachStoredRecord(ctx, keys, func(_ int64, s *activity.StoredRecord) error { all = append(all, s); return nil })
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

func (r pgSnapshotReader) encodeCursor(ctx context.Context, k recordKey) (string, error) {
	_, err := r.ofInstance(k.instance).firstRow(ctx, scanTargets{&k.order}, "SELECT place FROM activity WHERE instance = @instance AND key = ?", k.key)
	data := binary.AppendUvarint(binary.AppendUvarint([]byte{'p'}, uint64(k.instance)), uint64(k.key))
	return base64.RawURLEncoding.EncodeToString(append(data, k.order...)), err
}

func (*Postgres) decodeCursor(s string) (*recordKey, error) {
	if s == "" {
		return nil, nil
	}
	data, err := base64.RawURLEncoding.DecodeString(s)
	if err == nil && len(data) > 1 && data[0] == 'p' {
		instance, n := binary.Uvarint(data[1:])
		if n > 0 && instance < 1<<31 {
			key, m := binary.Uvarint(data[1+n:])
			if place := string(data[min(len(data), 1+n+max(0, m)):]); m > 0 && key < uint64(maxKey) && activity.IsIDPrefix(place) {
				return &recordKey{int64(instance), int64(key), place}, nil
			}
		}
	}
	return nil, cursorError(s)
}
