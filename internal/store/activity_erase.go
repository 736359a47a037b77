package store

import (
	"context"
	"strings"
	"time"

	"mcpproxy/internal/store/activity"
)

// eraseFields erases fields of a record, and removes their words from the text index.
func (p *projectionTx) eraseFields(ctx context.Context, r activity.FieldErasure) error {
	keys, err := findKeysInIDRange(ctx, p.e.writeConn, r.ID, r.ID, p.e.index.firstKey, p.nextKey)
	if err == nil {
		err = eraseFields(ctx, p.e.writeConn, r, keys)
	}
	for _, key := range keys {
		if err == nil {
			err = p.reindexChunk(ctx, key/chunkSize)
		}
	}
	return err
}

// eraseFields erases fields in the rows of a record. It also records that the spool still contains them.
func eraseFields(ctx context.Context, t sqlTx, r activity.FieldErasure, keys []int64) error {
	fields := make([]string, len(r.Fields))
	for i, f := range r.Fields {
		fields[i] = string(f)
	}
	t.write("INSERT INTO activity_erasing ({instance, }id, fields, at) VALUES ({@instance, }?, ?, ?)", r.ID, strings.Join(fields, ","), r.At.Unix())
	for _, key := range keys {
		var entry, outcome []byte
		if _, err := t.firstRow(ctx, scanTargets{&entry, &outcome}, "SELECT entry, outcome FROM activity WHERE {instance = @instance AND} key = ?", key); err != nil {
			return err
		}
		for _, payload := range []*[]byte{&entry, &outcome} {
			if *payload != nil {
				*payload = r.EraseFromPayload(*payload)
			}
		}
		t.write("UPDATE activity SET entry = ?, outcome = ? WHERE {instance = @instance AND} key = ?", entry, outcome, key)
	}
	return nil
}

// reindexChunk rewrites the text index of a chunk, if it has one.
func (p *projectionTx) reindexChunk(ctx context.Context, chunk int64) error {
	i := chunk - p.e.index.firstChunk
	if i < 0 || i >= int64(len(p.e.index.chunks)) || !p.e.index.chunks[i].indexed {
		return nil
	}
	deleteTextIndexOfChunks(p.e.writeConn, chunk, chunk+1)
	return p.e.indexChunkText(ctx, chunk)
}

// saveSignedCheckpoint stores a signed checkpoint.
func saveSignedCheckpoint(t sqlTx, s *activity.SignedCheckpoint) {
	t.write(`INSERT INTO activity_signed ({instance, }chain, seq, hash, time, key, signature) VALUES ({@instance, }?, ?, ?, ?, ?, ?)
		ON CONFLICT ({instance, }chain, seq) DO UPDATE SET hash = excluded.hash, time = excluded.time, key = excluded.key, signature = excluded.signature`,
		s.Chain, s.Seq, s.Hash[:], s.Time.UnixMicro(), s.Key, s.Signature)
}

// PendingErasures returns the erasures that are not done in the spool yet.
func (s *commonStore) PendingErasures(ctx context.Context) ([]activity.FieldErasure, error) {
	return viewed(ctx, s.db, func(ctx context.Context, db sqlReader) ([]activity.FieldErasure, error) {
		var id, fields string
		var at int64
		return collectRows(ctx, db, scanTargets{&id, &fields, &at}, func() (activity.FieldErasure, error) {
			r := activity.FieldErasure{ID: id, At: time.Unix(at, 0).UTC()}
			for f := range strings.SplitSeq(fields, ",") {
				r.Fields = append(r.Fields, activity.ErasableField(f))
			}
			return r, nil
		}, "SELECT id, fields, at FROM activity_erasing{ WHERE instance = @instance}")
	})
}

// deletePendingErasures deletes the records of pending erasures.
func deletePendingErasures(t sqlTx, done []activity.FieldErasure) {
	for _, r := range done {
		t.write("DELETE FROM activity_erasing WHERE {instance = @instance AND} id = ? AND at = ?", r.ID, r.At.Unix())
	}
}

// FinishErasures truncates the WAL, which still contains the erased values, and deletes the records of the pending
// erasures. If a reader uses the WAL, it returns done = false without an error.
func (db *SQLite) FinishErasures(ctx context.Context, what []activity.FieldErasure) (done bool, err error) {
	e, err := db.waitWritable(ctx)
	if err != nil {
		return false, err
	}
	done, err = e.truncateWALAndFinishErasures(ctx, what)
	return done, db.blockWritesOnDamage(e, err)
}

// truncateWALAndFinishErasures does the work of FinishErasures. done is false if a reader uses the WAL.
func (e *sqliteEngine) truncateWALAndFinishErasures(ctx context.Context, what []activity.FieldErasure) (done bool, err error) {
	e.writing.Lock()
	defer e.writing.Unlock()
	var busy, pages, moved int64
	if err := e.writeConn.exec("PRAGMA busy_timeout = 0"); err != nil { // calls wait for the projector
		return false, err
	}
	err = e.writeConn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &pages, &moved)
	if again := e.writeConn.exec("PRAGMA busy_timeout = 5000"); err == nil {
		err = again
	}
	if err != nil || busy != 0 {
		return false, err
	}
	err = e.writeConn.runTx(ctx, func() error {
		deletePendingErasures(e.writeConn, what)
		return nil
	})
	return err == nil, err
}
