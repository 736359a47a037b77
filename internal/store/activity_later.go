package store

import (
	"context"
	"database/sql"
	"slices"
)

// Chunks from before there was a column get it when somebody asks for what is in it:
// once, and most databases are small.

// firstLater is the first column that chunks may lack.
const firstLater = fieldClient

// readLacking reads which chunks have not all columns.
func (x *index) readLacking(ctx context.Context, db *sql.DB) error {
	for f := firstLater; f < fields; f++ {
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

// lacksAny reports whether the chunk lacks the column of one of some fields.
func (c *chunkInfo) lacksAny(of []field) bool {
	return slices.ContainsFunc(of, func(f field) bool { return c.lacks[f] })
}

// addColumns writes the columns of fields of all chunks that lack one.
func (e *engine) addColumns(ctx context.Context, of ...field) error {
	for {
		if more, err := e.addColumnsNext(ctx, of); err != nil || !more {
			return err
		}
	}
}

// lacking returns the oldest chunk without a column of some fields, and whether there is one.
func (e *engine) lacking(of []field) (chunk int64, found bool) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	i := slices.IndexFunc(e.index.chunks, func(c chunkInfo) bool { return c.lacksAny(of) })
	return e.index.firstChunk + int64(i), i >= 0
}

// addColumnsNext writes all that one chunk lacks, and reports whether there was one.
func (e *engine) addColumnsNext(ctx context.Context, of []field) (bool, error) {
	if _, found := e.lacking(of); !found {
		return false, nil
	}
	e.writing.Lock()
	defer e.writing.Unlock()
	chunk, found := e.lacking(of) // somebody may have been faster
	if !found {
		return false, nil
	}
	lacks := e.index.chunks[chunk-e.index.firstChunk].lacks
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
		for f := firstLater; f < fields && err == nil; f++ {
			if lacks[f] {
				e.conn.do("INSERT INTO activity_column (id, data) VALUES (?, ?)", columnID(f, chunk), encodeColumn(columns[f][:]))
			}
		}
		return err
	})
	if err != nil {
		return false, err
	}
	e.mu.Lock()
	e.index.chunks[chunk-e.index.firstChunk].lacks = [fields]bool{}
	e.mu.Unlock()
	return true, nil
}
