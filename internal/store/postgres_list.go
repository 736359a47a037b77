package store

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/binary"

	"mcpproxy/internal/store/activity"
)

// query implements transactor.
func (db *Postgres) query(ctx context.Context, f *activity.Filter, columns []columnField, fn func(ctx context.Context, v *recordSnapshot) error) (incomplete bool, err error) {
	if f.Search != "" {
		if err := repeatWhileMore(ctx, db.indexTextOfNextChunk); err != nil {
			return false, err
		}
	}
	return false, db.withSnapshotTx(ctx, func(ctx context.Context, c *pgConn) error {
		v, err := newPgSnapshot(ctx, c, f, columns)
		if err != nil {
			return err
		}
		return fn(ctx, v)
	})
}

func (c *pgConn) eachStoredRecord(ctx context.Context, keys []recordKey, fn func(at int64, s *activity.StoredRecord) error) error {
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

// EachOwnRecord does the same as EachRecord, but only for the records of this instance.
func (db *Postgres) EachOwnRecord(ctx context.Context, f activity.Filter, fn func(*activity.StoredRecord) error) error {
	e, err := db.waitOpen(ctx)
	if err != nil {
		return err
	}
	return db.eachRecordOf(ctx, f, func(instance int64) bool { return instance == e.instance }, fn)
}

func (c *pgConn) encodeCursor(ctx context.Context, k recordKey) (string, error) {
	_, err := c.ofInstance(k.instance).firstRow(ctx, scanTargets{&k.order}, "SELECT place FROM activity WHERE instance = @instance AND key = ?", k.key)
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
