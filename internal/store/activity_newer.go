package store

import (
	"context"
	"database/sql"
	"slices"
)

// Chunks from before there were all the columns of today get those that they lack
// when somebody asks for one: once, and most databases are small.

// firstNewer is the first column that a chunk may lack.
const firstNewer = fieldClient

// readNewer reads which chunks lack columns.
func (x *index) readNewer(ctx context.Context, db *sql.DB) error {
	past := x.firstChunk + int64(len(x.chunks))
	for f := firstNewer; f < fields; f++ {
		next := x.firstChunk
		var id int64
		err := each(ctx, db, into{&id}, func() error {
			for ; next < id-columnID(f, 0); next++ {
				x.chunks[next-x.firstChunk].lacks = true
			}
			next++
			return nil
		}, "SELECT id FROM activity_column WHERE id >= ? AND id < ? ORDER BY id", columnID(f, x.firstChunk), columnID(f, past))
		if err != nil {
			return err
		}
		for ; next < past; next++ {
			x.chunks[next-x.firstChunk].lacks = true
		}
	}
	return nil
}

// complete writes the columns that chunks lack.
func (e *engine) complete(ctx context.Context) error {
	for {
		if more, err := e.completeNext(ctx); err != nil || !more {
			return err
		}
	}
}

// lacking returns the oldest chunk that lacks columns, and whether there is one.
func (e *engine) lacking() (chunk int64, found bool) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	i := slices.IndexFunc(e.index.chunks, func(c chunkInfo) bool { return c.lacks })
	return e.index.firstChunk + int64(i), i >= 0
}

// completeNext completes one chunk, and reports whether there was one.
func (e *engine) completeNext(ctx context.Context) (bool, error) {
	if _, found := e.lacking(); !found {
		return false, nil
	}
	e.writing.Lock()
	defer e.writing.Unlock()
	chunk, found := e.lacking() // somebody may have been faster
	if !found {
		return false, nil
	}
	err := e.conn.tx(ctx, func() error {
		var columns [fields][chunkSize]uint64
		var key int64
		var entry, outcome []byte
		err := each(ctx, e.conn, into{&key, &entry, &outcome}, func() error {
			facts := factsOfRow(entry, outcome)
			for f, v := range e.hashes.all(&facts) {
				columns[f][key%chunkSize] = v
			}
			return nil
		}, "SELECT key, entry, outcome FROM activity WHERE key >= ? AND key < ?", chunk*chunkSize, (chunk+1)*chunkSize)
		for f := firstNewer; f < fields && err == nil; f++ {
			e.conn.do("INSERT OR REPLACE INTO activity_column (id, data) VALUES (?, ?)", columnID(f, chunk), encodeColumn(columns[f][:]))
		}
		return err
	})
	if err != nil {
		return false, err
	}
	e.mu.Lock()
	e.index.chunks[chunk-e.index.firstChunk].lacks = false
	e.mu.Unlock()
	return true, nil
}
