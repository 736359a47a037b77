package store

import (
	"context"
	"database/sql"
	"errors"

	"mcpproxy/internal/store/activity"
)

// EachRecord calls fn for every record that f selects at the time of the call, the newest first. The
// selection is bits in memory, and each record is read by itself, so that a slow fn keeps no
// snapshot of the database open.
func (db *SQLite) EachRecord(ctx context.Context, f activity.Filter, fn func(*activity.StoredRecord) error) error {
	q, err := db.newQuery(ctx, &f)
	if err != nil {
		return err
	}
	if err := q.runInSnapshot(ctx, func(context.Context) error { return nil }); err != nil {
		return err
	}
	stmt, err := q.e.reads.PrepareContext(ctx, selectStored)
	if err != nil {
		return err
	}
	defer stmt.Close()
	q.sel.eachNewestFirst(maxKey, func(key int64) bool {
		if err = ctx.Err(); err != nil {
			return false
		}
		var r activity.StoredRecord
		r, err = scanStoredRecord(stmt.QueryRowContext(context.WithoutCancel(ctx), key))
		if errors.Is(err, sql.ErrNoRows) { // pruned meanwhile
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

func (q *activityQuery) eachSelectedChunk(ctx context.Context, most int64, fn func(*selectedChunk)) (cut bool, err error) {
	batch := columnBatch{activityQuery: q, from: q.firstChunk + int64(len(q.chunks))}
	for chunk := (q.sel.base + 64*int64(len(q.sel.words)) - 1) / chunkSize; chunk*chunkSize >= q.sel.base && !cut; chunk-- {
		words := q.sel.chunkBits(chunk)
		if allZero(words) {
			continue
		}
		b, err := batch.columnsOfChunk(ctx, chunk)
		if err != nil {
			return false, err
		}
		if b == nil {
			continue
		}
		var n int64
		b.words = words
		n, cut = b.keepNewest(most)
		most -= n
		fn(b)
	}
	return cut, nil
}

// copyTailColumns copies the columns of the newest records, which can change.
func (q *activityQuery) copyTailColumns(t *tailColumns) {
	for _, f := range q.columns {
		q.tail[f] = append([]uint64(nil), t.columns[f]...)
	}
	if q.columns != nil {
		for _, at := range t.times {
			q.tail[fieldTime] = append(q.tail[fieldTime], uint64(at))
		}
	}
}

// batchChunks is how many chunks are read at a time.
const batchChunks = 128

// columnBatch holds the columns of several chunks. Its caller asks for chunks from the newest to
// the oldest.
type columnBatch struct {
	*activityQuery
	from    int64             // the first chunk in the batch
	present [batchChunks]bool // false: pruned meanwhile
	blocks  [batchChunks]selectedChunk
}

// columnsOfChunk returns the columns of a chunk, nil if the chunk was pruned.
func (b *columnBatch) columnsOfChunk(ctx context.Context, chunk int64) (*selectedChunk, error) {
	if first := b.tailFirst / chunkSize; chunk >= first {
		tail := &selectedChunk{firstKey: chunk * chunkSize}
		for f, values := range b.tail {
			if from := (chunk - first) * chunkSize; values != nil {
				tail.columns[f].setValues(values[from:min(from+chunkSize, int64(len(values)))])
			}
		}
		return tail, nil
	}
	if chunk < b.from {
		if err := b.readBatchEndingAt(ctx, chunk); err != nil {
			return nil, err
		}
	}
	if !b.present[chunk-b.from] {
		return nil, nil
	}
	return &b.blocks[chunk-b.from], nil
}

// readBatchEndingAt reads the columns of the batch of chunks that ends with last. A missing column
// gets the value 0: the disk did not accept the backfill.
func (b *columnBatch) readBatchEndingAt(ctx context.Context, last int64) error {
	b.from, b.present = max(b.firstChunk, last+1-batchChunks), [batchChunks]bool{}
	for _, f := range append(b.columns, fieldTime) {
		var found [batchChunks]bool
		if err := eachColumn(ctx, b.tx, f, b.from, last+1, func(chunk int64, data []byte) error {
			c, err := parseColumn(data)
			if err != nil {
				return err
			}
			found[chunk-b.from] = true
			return b.blocks[chunk-b.from].columns[f].decodeFrom(c)
		}); err != nil {
			return err
		}
		for i := range b.blocks {
			if b.blocks[i].firstKey = (b.from + int64(i)) * chunkSize; !found[i] {
				b.blocks[i].columns[f].fillZero()
			}
		}
		if f == fieldTime {
			b.present = found
		}
	}
	return nil
}
