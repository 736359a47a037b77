package store

import (
	"context"
	"database/sql"
	"errors"

	"mcpproxy/internal/store/activity"
)

// EachRecord calls fn for every record that f selects when it is called, the newest first.
// What is selected are bits in memory; each record is read by itself, so that a slow
// fn keeps no snapshot of the database open.
func (db *DB) EachRecord(ctx context.Context, f activity.Filter, fn func(*activity.StoredRecord) error) error {
	q, err := db.query(ctx, &f)
	if err != nil {
		return err
	}
	if err := q.within(ctx, func(context.Context) error { return nil }); err != nil {
		return err
	}
	stmt, err := q.e.reads.PrepareContext(ctx, selectStored)
	if err != nil {
		return err
	}
	defer stmt.Close()
	q.sel.each(noCursor, func(key int64) bool {
		if err = ctx.Err(); err != nil {
			return false
		}
		var r activity.StoredRecord
		r, err = readStored(stmt.QueryRowContext(context.WithoutCancel(ctx), key))
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

// eachBlock calls fn for the chunks that have selected records, the newest first, until
// most records were in them, and reports whether there are more. It reads columns alone.
func (q *query) eachBlock(ctx context.Context, most int64, fn func(*block)) (cut bool, err error) {
	batch := columnBatch{query: q, from: q.firstChunk + int64(len(q.chunks))}
	for chunk := (q.sel.base + 64*int64(len(q.sel.words)) - 1) / chunkSize; chunk*chunkSize >= q.sel.base && !cut; chunk-- {
		words := q.sel.chunk(chunk)
		if none(words) {
			continue
		}
		b, err := batch.block(ctx, chunk)
		if err != nil {
			return false, err
		}
		if b == nil {
			continue
		}
		var n int64
		b.words = words
		n, cut = b.newest(most)
		most -= n
		fn(b)
	}
	return cut, nil
}

// keepTail copies the columns of the newest records: they change.
func (q *query) keepTail(t *tail) {
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

// columnBatch has the columns of some chunks. It is asked for chunks from the newest
// to the oldest.
type columnBatch struct {
	*query
	from   int64             // its first chunk
	there  [batchChunks]bool // else pruned meanwhile
	blocks [batchChunks]block
}

// block returns the columns of a chunk, nil when it is not there.
func (b *columnBatch) block(ctx context.Context, chunk int64) (*block, error) {
	if first := b.tailFirst / chunkSize; chunk >= first {
		tail := &block{first: chunk * chunkSize}
		for f, values := range b.tail {
			if from := (chunk - first) * chunkSize; values != nil {
				tail.columns[f].plain(values[from:min(from+chunkSize, int64(len(values)))])
			}
		}
		return tail, nil
	}
	if chunk < b.from {
		if err := b.read(ctx, chunk); err != nil {
			return nil, err
		}
	}
	if !b.there[chunk-b.from] {
		return nil, nil
	}
	return &b.blocks[chunk-b.from], nil
}

// read reads the columns of the chunks that end with last. One that is not there is
// empty: it was to be written, and the disk does not take it.
func (b *columnBatch) read(ctx context.Context, last int64) error {
	b.from, b.there = max(b.firstChunk, last+1-batchChunks), [batchChunks]bool{}
	for _, f := range append(b.columns, fieldTime) {
		var found [batchChunks]bool
		if err := eachColumn(ctx, b.tx, f, b.from, last+1, func(chunk int64, data []byte) error {
			c, err := parseColumn(data)
			if err != nil {
				return err
			}
			found[chunk-b.from] = true
			return b.blocks[chunk-b.from].columns[f].read(c)
		}); err != nil {
			return err
		}
		for i := range b.blocks {
			if b.blocks[i].first = (b.from + int64(i)) * chunkSize; !found[i] {
				b.blocks[i].columns[f].alike()
			}
		}
		if f == fieldTime {
			b.there = found
		}
	}
	return nil
}
