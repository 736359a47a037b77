package store

import (
	"context"
	"database/sql"
	"errors"

	"mcpproxy/internal/activity"
)

// Each calls fn for every record that f selects when it is called, the newest first.
// What is selected are bits in memory; each record is read by itself, so that a slow
// fn keeps no snapshot of the database open.
func (db *DB) Each(ctx context.Context, f activity.Filter, fn func(*activity.Stored) error) error {
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
		var r activity.Stored
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

// values are those of one record, by field; fieldTime, too.
type values [fields + 1]uint64

// eachRecord calls fn for the selected records, the newest first, most at most, and
// reports whether there are more. It reads columns alone.
func (q *query) eachRecord(ctx context.Context, most int64, fn func(key int64, v *values)) (cut bool, err error) {
	b := columnBatch{query: q, from: q.firstChunk + int64(len(q.chunks))}
	chunk, there := int64(-1), false
	var columns [fields + 1][]uint64
	var v values
	q.sel.each(noCursor, func(key int64) bool {
		if key/chunkSize != chunk {
			chunk = key / chunkSize
			if there, err = b.columnsOf(ctx, chunk, &columns); err != nil {
				return false
			}
		}
		if !there {
			return true
		}
		if most--; most < 0 {
			cut = true
			return false
		}
		for _, f := range q.columns {
			v[f] = columns[f][key%chunkSize]
		}
		v[fieldTime] = columns[fieldTime][key%chunkSize]
		fn(key, &v)
		return true
	})
	return cut, err
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
const batchChunks = 32

// columnBatch has the columns of some chunks. It is asked for chunks from the newest
// to the oldest.
type columnBatch struct {
	*query
	from  int64             // its first chunk
	there [batchChunks]bool // else pruned meanwhile
	data  [fields + 1][]uint64
}

// columnsOf says what the columns of a chunk are, and reports whether it is there.
func (b *columnBatch) columnsOf(ctx context.Context, chunk int64, columns *[fields + 1][]uint64) (bool, error) {
	data, first := &b.tail, b.tailFirst/chunkSize
	if chunk < first {
		if chunk < b.from {
			if err := b.read(ctx, chunk); err != nil {
				return false, err
			}
		}
		if data, first = &b.data, b.from; !b.there[chunk-first] {
			return false, nil
		}
	}
	for f := range data {
		if data[f] != nil {
			columns[f] = data[f][(chunk-first)*chunkSize:]
		}
	}
	return true, nil
}

// read reads the columns of the chunks that end with last. One that is not there is
// empty: it was to be written, and the disk does not take it.
func (b *columnBatch) read(ctx context.Context, last int64) error {
	b.from, b.there = max(b.firstChunk, last+1-batchChunks), [batchChunks]bool{}
	for _, f := range append(b.columns, fieldTime) {
		if b.data[f] == nil {
			b.data[f] = make([]uint64, batchChunks*chunkSize)
		}
		clear(b.data[f])
		err := eachColumn(ctx, b.tx, f, b.from, last+1, func(chunk int64, data []byte) error {
			c, err := parseColumn(data)
			if err != nil {
				return err
			}
			b.there[chunk-b.from] = b.there[chunk-b.from] || f == fieldTime
			return c.decodeTo(b.data[f][(chunk-b.from)*chunkSize:])
		})
		if err != nil {
			return err
		}
	}
	return nil
}
