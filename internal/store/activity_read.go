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
	if incomplete, err = e.prepareQuery(ctx, f, columns); err != nil {
		return false, err
	}
	return incomplete, e.query(ctx, f, columns, fn)
}

// query calls fn with a snapshot of the records that f selects. It does not create missing indexes.
func (e *sqliteEngine) query(ctx context.Context, f *activity.Filter, columns []columnField, fn func(ctx context.Context, v *recordSnapshot) error) error {
	// The chunks in the in-memory index are in the database, and do not change until they are pruned.
	v := e.newSnapshot(f, columns)
	tx, err := e.reads.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // read only
	v.db = sqliteSnapshotReader{tx}
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

// prepareQuery writes the indexes that a query needs. incomplete reports whether an index could not be written because
// the disk failed.
func (e *sqliteEngine) prepareQuery(ctx context.Context, f *activity.Filter, columns []columnField) (incomplete bool, err error) {
	later := slices.DeleteFunc(slices.Clone(columns), func(f columnField) bool { return f < firstBackfilledField })
	if len(f.Clients) > 0 {
		later = append(later, fieldClient)
	}
	if len(parseSearchTerms(f.Search)) > 0 {
		err = e.indexTextOfAllChunks(ctx)
		incomplete = isDiskError(err)
	}
	if len(later) > 0 && (err == nil || incomplete) {
		err = e.backfillColumns(ctx, later...)
		incomplete = incomplete || isDiskError(err)
	}
	if isDiskError(err) { // the query can still find the records that are indexed
		err = nil
	}
	return incomplete, err
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
		chunks = append(chunks, snapshotChunk{chunkID{0, x.firstChunk + int64(i)}, c.minTime, c.maxTime, c.segments != nil, nil})
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

// sqliteSnapshotReader implements snapshotReader.
type sqliteSnapshotReader struct{ tx *sql.Tx }

func (r sqliteSnapshotReader) ofInstance(int64) sqlReader { return sqliteReader{r.tx} }

func (r sqliteSnapshotReader) eachColumn(ctx context.Context, ranges []chunkRange, of []columnField, fn func(n int, f columnField, id chunkID, data []byte) error) error {
	for n, chunks := range ranges {
		for _, f := range of {
			if err := eachColumn(ctx, r.tx, f, chunks.from, chunks.past, func(chunk int64, data []byte) error { return fn(n, f, chunkID{0, chunk}, data) }); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r sqliteSnapshotReader) eachPage(ctx context.Context, ranges []chunkRange, t searchTerm, fn func(s segmentID, data []byte) error) error {
	for _, chunks := range ranges {
		var segment int64
		var data sql.RawBytes
		if err := eachRow(ctx, r.tx, scanTargets{&segment, &data}, func() error { return fn(segmentID{0, segment}, data) },
			`SELECT segment, (SELECT data FROM activity_text t
				WHERE t.segment = s.segment AND first <= ? ORDER BY first DESC LIMIT 1)
			FROM activity_segment s WHERE segment >= ? AND segment < ?`, []byte(t.word), chunks.from*chunkSize, chunks.past*chunkSize); err != nil {
			return err
		}
	}
	return nil
}

func (r sqliteSnapshotReader) eachFurtherPage(ctx context.Context, segments []segmentID, t searchTerm, fn func(s segmentID, data []byte) error) error {
	stmt, err := r.tx.PrepareContext(ctx, "SELECT data FROM activity_text WHERE segment = ? AND first > ? AND first < ?")
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

func (r sqliteSnapshotReader) eachRecord(ctx context.Context, keys []recordKey, fn func(at int64, r *activity.Record)) error {
	if len(keys) == 0 {
		return nil
	}
	stmt, err := r.tx.PrepareContext(ctx, "SELECT entry, outcome FROM activity WHERE key = ?")
	if err != nil {
		return err
	}
	defer stmt.Close()
	var one activity.Record // reused for all records, to avoid an allocation for each
	for i, k := range keys {
		var entry, outcome []byte
		err := stmt.QueryRowContext(ctx, k.key).Scan(&entry, &outcome)
		if errors.Is(err, sql.ErrNoRows) { // pruned in the meantime
			continue
		}
		if err != nil {
			return err
		}
		one = activity.DecodeForDisplay(entry, outcome)
		fn(int64(i), &one)
	}
	return nil
}

func (r sqliteSnapshotReader) eachKeyOfID(ctx context.Context, ids map[string]int64, fn func(id string, instance, key int64)) error {
	if len(ids) == 0 {
		return nil
	}
	var first, next int64
	if err := r.tx.QueryRowContext(ctx, "SELECT first_key, next_key FROM activity_position").Scan(&first, &next); err != nil {
		return err
	}
	for id := range ids {
		keys, err := findKeysInIDRange(ctx, r.tx, id, id, first, next)
		if err != nil {
			return err
		}
		for _, key := range keys {
			fn(id, 0, key)
		}
	}
	return nil
}

func (sqliteSnapshotReader) encodeCursor(_ context.Context, k recordKey) (string, error) {
	return base64.RawURLEncoding.EncodeToString(binary.AppendUvarint([]byte{'a'}, uint64(k.key))), nil
}

// EachRecord calls fn for every record that f selects at the time of the call, newest first. It keeps the selection in
// memory and reads each record separately, so that a slow fn does not keep a snapshot of the database open.
func (db *SQLite) EachRecord(ctx context.Context, f activity.Filter, fn func(*activity.StoredRecord) error) error {
	var v *recordSnapshot
	if _, err := db.query(ctx, &f, nil, func(_ context.Context, all *recordSnapshot) error { v = all; return nil }); err != nil {
		return err
	}
	e, err := db.waitOpen(ctx)
	if err != nil {
		return err
	}
	stmt, err := e.reads.PrepareContext(ctx, selectStored)
	if err != nil {
		return err
	}
	defer stmt.Close()
	v.sel.eachNewestFirst(maxKey, func(position int64) bool {
		if err = ctx.Err(); err != nil {
			return false
		}
		var r activity.StoredRecord
		r, err = scanStoredRecord(stmt.QueryRowContext(context.WithoutCancel(ctx), v.keyAt(position).key))
		if errors.Is(err, sql.ErrNoRows) { // pruned in the meantime
			err = nil
			return true
		}
		if err == nil {
			err = fn(&r)
		}
		return err == nil
	})
	return err
}
