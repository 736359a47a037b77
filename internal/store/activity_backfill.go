package store

import (
	"context"
	"database/sql"
	"slices"
)

// Chunks that older versions wrote lack columns that were added later. The first query that needs such a column writes
// it for all chunks.

// firstBackfilledField is the first field whose column may be missing in a chunk.
const firstBackfilledField = fieldClient

// findMissingColumns finds out which columns each chunk lacks.
func (x *activityIndex) findMissingColumns(ctx context.Context, db *sql.DB) error {
	for f := firstBackfilledField; f < fieldCount; f++ {
		for i := range x.chunks {
			x.chunks[i].missingColumns[f] = true
		}
		var id int64
		past := x.firstChunk + int64(len(x.chunks))
		err := eachRow(ctx, db, scanTargets{&id}, func() error {
			x.chunks[id-columnRowID(f, x.firstChunk)].missingColumns[f] = false
			return nil
		}, "SELECT id FROM activity_column WHERE id >= ? AND id < ?", columnRowID(f, x.firstChunk), columnRowID(f, past))
		if err != nil {
			return err
		}
	}
	return nil
}

// lacksAnyColumn reports whether the chunk lacks the column of any of the fields.
func (c *chunkInfo) lacksAnyColumn(of []columnField) bool {
	return slices.ContainsFunc(of, func(f columnField) bool { return c.missingColumns[f] })
}

// backfillColumns writes the missing columns of the fields in all chunks.
func (e *sqliteEngine) backfillColumns(ctx context.Context, of ...columnField) error {
	for {
		if more, err := e.backfillNextChunk(ctx, of); err != nil || !more {
			return err
		}
	}
}

// firstChunkLackingColumns returns the oldest chunk that lacks a column of any of the fields, and whether there is one.
func (e *sqliteEngine) firstChunkLackingColumns(of []columnField) (chunk int64, found bool) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	i := slices.IndexFunc(e.index.chunks, func(c chunkInfo) bool { return c.lacksAnyColumn(of) })
	return e.index.firstChunk + int64(i), i >= 0
}

// backfillNextChunk writes all missing columns of one chunk that lacks a column of any of the fields. It reports whether
// there was such a chunk.
func (e *sqliteEngine) backfillNextChunk(ctx context.Context, of []columnField) (bool, error) {
	if _, found := e.firstChunkLackingColumns(of); !found {
		return false, nil
	}
	e.writing.Lock()
	defer e.writing.Unlock()
	chunk, found := e.firstChunkLackingColumns(of) // another goroutine may have written the columns
	if !found {
		return false, nil
	}
	lacks := e.index.chunks[chunk-e.index.firstChunk].missingColumns
	err := e.writeConn.runTx(ctx, func() error {
		var columns [fieldCount][chunkSize]uint64
		var key int64
		var entry, outcome []byte
		err := eachRow(ctx, e.writeConn, scanTargets{&key, &entry, &outcome}, func() error {
			facts := decodeRecordFacts(entry, outcome)
			for f, v := range e.hashes.columnValues(&facts) {
				columns[f][key%chunkSize] = v
			}
			return nil
		}, "SELECT key, entry, outcome FROM activity WHERE key >= ? AND key < ?", chunk*chunkSize, (chunk+1)*chunkSize)
		for f := firstBackfilledField; f < fieldCount && err == nil; f++ {
			if lacks[f] {
				e.writeConn.write("INSERT INTO activity_column (id, data) VALUES (?, ?)", columnRowID(f, chunk), encodeColumn(columns[f][:]))
			}
		}
		return err
	})
	if err != nil {
		return false, err
	}
	e.mu.Lock()
	e.index.chunks[chunk-e.index.firstChunk].missingColumns = [fieldCount]bool{}
	e.mu.Unlock()
	return true, nil
}
