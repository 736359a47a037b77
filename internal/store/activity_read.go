package store

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"slices"

	"mcpproxy/internal/store/activity"
)

// query implements transactor.
func (db *SQLite) query(ctx context.Context, f *activity.Filter, columns []columnField, fn func(ctx context.Context, v *recordSnapshot) error) (incomplete bool, err error) {
	e, err := db.waitOpen(ctx)
	if err != nil {
		return false, err
	}
	if len(parseSearchTerms(f.Search)) > 0 {
		err = repeatWhileMore(ctx, e.indexTextOfNextChunk)
		if incomplete = isDiskError(err); err != nil && !incomplete {
			return false, err
		}
	}
	return incomplete, e.query(ctx, f, columns, fn)
}

// query calls fn with a snapshot of the records that f selects. It does not index the text of chunks.
func (e *sqliteEngine) query(ctx context.Context, f *activity.Filter, columns []columnField, fn func(ctx context.Context, v *recordSnapshot) error) error {
	// The chunks in the in-memory index are in the database, and do not change until they are pruned.
	v := e.newSnapshot(f, columns)
	tx, err := e.reads.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // read only
	v.db = sqliteReader{tx}
	// For a context that can end, the driver would start a goroutine for each statement.
	done, ctx := ctx, context.WithoutCancel(ctx)
	if err := v.filter(ctx, f); err != nil {
		return err
	}
	if err := done.Err(); err != nil {
		return err
	}
	return fn(ctx, v)
}

// newSnapshot copies the parts of the in-memory index that a query needs, and selects all records.
func (e *sqliteEngine) newSnapshot(f *activity.Filter, columns []columnField) *recordSnapshot {
	const windowChunks = 128
	v := &recordSnapshot{columns: columns, window: windowChunks}
	needed := append(slices.Clone(columns), fieldTime)
	for _, w := range fieldConditions(f) {
		needed = append(needed, w.field)
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	x := &e.index
	chunks := make([]snapshotChunk, 0, len(x.chunks)+len(x.tail.times)/chunkSize+1)
	for i, c := range x.chunks {
		chunks = append(chunks, snapshotChunk{chunkID{0, x.firstChunk + int64(i)}, c.minTime, c.maxTime, c.indexed, nil})
	}
	for at := int64(0); at < int64(len(x.tail.times)); at += chunkSize {
		chunks = append(chunks, x.tail.newSnapshotChunk(at, needed))
	}
	v.setChunks(chunks)
	base := x.firstChunk * chunkSize
	v.sel = newFullSelection(len(chunks), x.firstKey-base, x.nextKey-base)
	for i, c := range x.chunks {
		if c.deleted != nil {
			words := v.sel.chunkBits(int64(i))
			for j := range words {
				words[j] &^= c.deleted[j]
			}
		}
	}
	return v
}

// newSnapshotChunk returns the chunk of the tail that begins at the index from, with the needed columns.
func (t *tailColumns) newSnapshotChunk(from int64, needed []columnField) snapshotChunk {
	past := min(from+chunkSize, int64(len(t.times)))
	times := t.times[from:past]
	ch := snapshotChunk{chunkID{0, (t.first + from) / chunkSize}, slices.Min(times), slices.Max(times), false, &[fieldCount + 1][]uint64{}}
	for _, f := range needed {
		if f != fieldTime {
			ch.tail[f] = slices.Clone(t.columns[f][from:past])
		}
	}
	ch.tail[fieldTime] = make([]uint64, len(times))
	for i, at := range times {
		ch.tail[fieldTime][i] = uint64(at)
	}
	return ch
}

func (r sqliteReader) eachColumn(ctx context.Context, ranges []chunkRange, of []columnField, fn func(n int, f columnField, id chunkID, data []byte) error) error {
	var row int64
	var data sql.RawBytes
	for n, chunks := range ranges {
		for _, f := range of {
			if err := r.eachRow(ctx, scanTargets{&row, &data}, func() error { return fn(n, f, chunkID{0, row - columnRowID(f, 0)}, data) },
				"SELECT id, data FROM activity_column WHERE id >= ? AND id < ?", columnRowID(f, chunks.from), columnRowID(f, chunks.past)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r sqliteReader) eachPage(ctx context.Context, ranges []chunkRange, t searchTerm, fn func(s segmentID, data []byte) error) error {
	for _, chunks := range ranges {
		var segment int64
		var data sql.RawBytes
		if err := eachRow(ctx, r.db, scanTargets{&segment, &data}, func() error { return fn(segmentID{0, segment}, data) },
			`SELECT segment, (SELECT data FROM activity_text t
				WHERE t.segment = s.segment AND first <= ? ORDER BY first DESC LIMIT 1)
			FROM activity_segment s WHERE segment >= ? AND segment < ?`, []byte(t.word), chunks.from*chunkSize, chunks.past*chunkSize); err != nil {
			return err
		}
	}
	return nil
}

func (r sqliteReader) eachFurtherPage(ctx context.Context, segments []segmentID, t searchTerm, fn func(s segmentID, data []byte) error) error {
	stmt, err := r.db.PrepareContext(ctx, "SELECT data FROM activity_text WHERE segment = ? AND first > ? AND first < ?")
	if err != nil {
		return err
	}
	defer stmt.Close()
	for _, s := range segments {
		rows, err := stmt.QueryContext(ctx, s.segment, []byte(t.word), t.prefixEnd())
		if err != nil {
			return err
		}
		var data sql.RawBytes
		if err := scanRows(rows, scanTargets{&data}, func() error { return fn(s, data) }); err != nil {
			return err
		}
	}
	return nil
}

func (r sqliteReader) eachStoredRecord(ctx context.Context, keys []recordKey, fn func(at int64, s *activity.StoredRecord) error) error {
	if len(keys) == 0 {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	stmt, err := r.db.PrepareContext(ctx, "SELECT seq, hash, end_seq, end_hash, entry, outcome FROM activity WHERE key = ?")
	if err != nil {
		return err
	}
	defer stmt.Close()
	for i, k := range keys {
		var s activity.StoredRecord
		var endSeq sql.NullInt64
		err := stmt.QueryRowContext(ctx, k.key).Scan(&s.Seq, &s.Hash, &endSeq, &s.EndHash, &s.Entry, &s.Outcome)
		if errors.Is(err, sql.ErrNoRows) { // pruned in the meantime
			continue
		}
		if s.EndSeq = endSeq.Int64; err == nil {
			err = fn(int64(i), &s)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r sqliteReader) keysInIDRange(ctx context.Context, low, high string) (found []recordKey, err error) {
	var first, next int64
	if err := r.db.QueryRowContext(ctx, "SELECT first_key, next_key FROM activity_position").Scan(&first, &next); err != nil {
		return nil, err
	}
	keys, err := findKeysInIDRange(ctx, r.db, low, high, first, next)
	for _, key := range keys {
		found = append(found, recordKey{key: key})
	}
	return found, err
}

func (r sqliteReader) eachKeyOfID(ctx context.Context, ids map[string]int64, fn func(id string, k recordKey)) error {
	for id := range ids {
		keys, err := r.keysInIDRange(ctx, id, id)
		if err != nil {
			return err
		}
		for _, k := range keys {
			fn(id, k)
		}
	}
	return nil
}

func (sqliteReader) encodeCursor(_ context.Context, k recordKey) (string, error) {
	return base64.RawURLEncoding.EncodeToString(binary.AppendUvarint([]byte{'a'}, uint64(k.key))), nil
}
