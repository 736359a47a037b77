package store

import (
	"context"
	"database/sql"
	"slices"
)

// Chunks from before there was a column get it when somebody asks for what is in it:
// once, and most databases are small.

// laterColumns are those that chunks may lack.
var laterColumns = [...]field{fieldClient, fieldDuration, fieldOwn}

// readLacking reads which chunks have not all columns.
func (x *index) readLacking(ctx context.Context, db *sql.DB) error {
	for _, f := range laterColumns {
		for i := range x.chunks {
			x.chunks[i].lacks[f] = true
		}
		var id int64
		past := x.firstChunk + int64(len(x.chunks))
		err := each(ctx, db, into{&id}, func() error {
			x.chunks[id-columnID(f, x.firstChunk)].lacks[f] = false
			return nil
		}, "SELECT id FROM activity_column WHERE id >= ? AND id < ?", columnID(f, x.firstChunk), columnID(f, past))
		if err != nil {
			return err
		}
	}
	return nil
}

// addColumn writes the column of a field of all chunks that lack it.
func (e *engine) addColumn(ctx context.Context, f field) error {
	for {
		if more, err := e.addColumnNext(ctx, f); err != nil || !more {
			return err
		}
	}
}

// lacking returns the oldest chunk without the column, and whether there is one.
func (e *engine) lacking(f field) (chunk int64, found bool) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	i := slices.IndexFunc(e.index.chunks, func(c chunkInfo) bool { return c.lacks[f] })
	return e.index.firstChunk + int64(i), i >= 0
}

// addColumnNext writes that of one chunk, and reports whether there was one.
func (e *engine) addColumnNext(ctx context.Context, f field) (bool, error) {
	if _, found := e.lacking(f); !found {
		return false, nil
	}
	e.writing.Lock()
	defer e.writing.Unlock()
	chunk, found := e.lacking(f) // somebody may have been faster
	if !found {
		return false, nil
	}
	err := e.conn.tx(ctx, func() error {
		values := make([]uint64, chunkSize)
		var key int64
		var entry, outcome []byte
		err := each(ctx, e.conn, into{&key, &entry, &outcome}, func() error {
			facts := factsOfRow(entry, outcome)
			values[key%chunkSize] = e.hashes.all(&facts)[f]
			return nil
		}, "SELECT key, entry, outcome FROM activity WHERE key >= ? AND key < ?", chunk*chunkSize, (chunk+1)*chunkSize)
		if err == nil {
			e.conn.do("INSERT INTO activity_column (id, data) VALUES (?, ?)", columnID(f, chunk), encodeColumn(values))
		}
		return err
	})
	if err != nil {
		return false, err
	}
	e.mu.Lock()
	e.index.chunks[chunk-e.index.firstChunk].lacks[f] = false
	e.mu.Unlock()
	return true, nil
}
