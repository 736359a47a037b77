package store

import (
	"context"
	"database/sql"

	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// pgFoundRecord is a stored record with its instance and key.
type pgFoundRecord struct {
	recordKey
	activity.StoredRecord
}

// findRecordsInIDRange returns at most two records with IDs in [low, high].
func (c *pgConn) findRecordsInIDRange(ctx context.Context, low, high string) (out []pgFoundRecord, err error) {
	var r pgFoundRecord
	var endSeq sql.NullInt64
	err = c.eachRow(ctx, scanTargets{&r.instance, &r.key, &r.Seq, &r.Hash, &endSeq, &r.EndHash, &r.Entry, &r.Outcome}, func() error {
		r.EndSeq = endSeq.Int64
		out = append(out, r)
		return nil
	}, "SELECT instance, key, seq, hash, end_seq, end_hash, entry, outcome FROM activity WHERE id >= $1 AND id <= $2 ORDER BY id LIMIT 2", low, high)
	return out, err
}

// Get returns the record whose ID begins with prefix.
func (db *Postgres) Get(ctx context.Context, prefix string) (r activity.Record, err error) {
	low, high := idBoundsOfPrefix(prefix)
	err = db.withSnapshotTx(ctx, func(ctx context.Context, _ *pgEngine, c *pgConn) error {
		found, err := c.findRecordsInIDRange(ctx, low, high)
		if err == nil {
			err = checkOneFound(len(found), prefix)
		}
		if err == nil {
			r, err = recordWithChain(&found[0].StoredRecord, func() ([]byte, error) { return found[0].previousEntryHash(ctx, c) })
		}
		return err
	})
	return r, err
}

// selectNearbyHash selects the hash of an entry, searching only the $4 records before a record.
const selectNearbyHash = `SELECT CASE seq WHEN $2 THEN hash ELSE end_hash END FROM activity
	WHERE instance = $1 AND key < $3 AND key >= $3 - $4::bigint AND (seq = $2 AND hash IS NOT NULL OR end_seq = $2) ORDER BY key DESC LIMIT 1`

// previousEntryHash returns the hash of the entry before the beginning of the record, or nil if it no longer exists.
func (f *pgFoundRecord) previousEntryHash(ctx context.Context, c *pgConn) (hash []byte, err error) {
	before := f.Seq - 1
	if before == 0 {
		return make([]byte, len(activity.Hash{})), nil
	}
	for _, look := range []struct {
		query string
		args  []any
	}{
		// The entry is usually in one of the nearest records. For so few records, the query is fast with any query
		// plan.
		{selectNearbyHash, []any{f.instance, before, f.key, int64(64)}},
		{"SELECT hash FROM activity_checkpoint WHERE instance = $1 AND seq = $2", []any{f.instance, before}},
		{"SELECT hash FROM activity_gap WHERE instance = $1 AND seq = $2", []any{f.instance, before}},
		{selectNearbyHash, []any{f.instance, before, f.key, int64(100_000)}},
	} {
		if found, err := c.firstRow(ctx, scanTargets{&hash}, look.query, look.args...); found || err != nil {
			return hash, err
		}
	}
	return nil, nil
}

// GetStoredRecord returns the record with an ID in its stored form. The record must belong to this instance, because
// the fields must also be erased from its spool.
func (db *Postgres) GetStoredRecord(ctx context.Context, id string) (s activity.StoredRecord, err error) {
	err = db.withReadConn(ctx, func(ctx context.Context, e *pgEngine, c *pgConn) error {
		found, err := c.findRecordsInIDRange(ctx, id, id)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return noActivityError(id)
		}
		if s = found[0].StoredRecord; found[0].instance == e.instance {
			return nil
		}
		var name, host string
		if _, err := c.firstRow(ctx, scanTargets{&name, &host}, "SELECT name, host FROM instance WHERE id = $1", found[0].instance); err != nil {
			return err
		}
		return problem.Newf(problem.Conflict, "Record %s was written by another instance, %s on %s, and is in the hash chain of that instance.", id, name, host).
			WithHint("Use that instance: it also erases the value in its own files.").With("instance", name)
	})
	return s, err
}
