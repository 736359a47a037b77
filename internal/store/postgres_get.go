package store

import (
	"context"

	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// GetStoredRecord returns the record with an ID in its stored form. The record must belong to this instance, because
// the fields must also be erased from its spool.
func (db *Postgres) GetStoredRecord(ctx context.Context, id string) (s activity.StoredRecord, err error) {
	err = db.withSnapshotTx(ctx, func(ctx context.Context, c *pgConn) error {
		var k recordKey
		if k, s, err = findStoredRecord(ctx, c, id); err != nil || k.instance == c.instance {
			return err
		}
		var name, host string
		if _, err := c.firstRow(ctx, scanTargets{&name, &host}, "SELECT name, host FROM instance WHERE id = $1", k.instance); err != nil {
			return err
		}
		return problem.Newf(problem.Conflict, "Record %s was written by another instance, %s on %s, and is in the hash chain of that instance.", id, name, host).
			WithHint("Use that instance: it also erases the value in its own files.").With("instance", name)
	})
	return s, err
}
