package store

import (
	"context"
	"database/sql"
	"fmt"

	"mcpproxy/internal/store/activity"
)

// loadIndex reads the index from the database.
func (e *sqliteEngine) loadIndex(ctx context.Context) error {
	x := activityIndex{}
	err := e.reads.QueryRowContext(ctx, "SELECT first_key, next_key FROM activity_position").Scan(&x.firstKey, &x.nextKey)
	if err != nil {
		return err
	}
	for _, read := range []func(context.Context, *sql.DB) error{x.readChunks, x.readRefusalBits, x.readSegments} {
		if err := read(ctx, e.reads); err != nil {
			return err
		}
	}
	if err := x.readTail(ctx, e.reads, e.hashes); err != nil {
		return err
	}
	e.mu.Lock()
	e.index, e.toolUse = x, nil
	e.mu.Unlock()
	return nil
}

// addMissingColumns writes the columns that chunks of older versions lack: those of fieldClient and later fields.
func (e *sqliteEngine) addMissingColumns(ctx context.Context) error {
	lacking := map[int64]bool{}
	for f := fieldClient; f < fieldCount; f++ {
		var chunk int64
		if err := eachRow(ctx, e.reads, scanTargets{&chunk}, func() error { lacking[chunk] = true; return nil },
			"SELECT chunk FROM activity_chunk WHERE NOT EXISTS (SELECT 1 FROM activity_column WHERE id = chunk + ?)", columnRowID(f, 0)); err != nil {
			return err
		}
	}
	for chunk := range lacking {
		if err := e.addMissingColumnsOfChunk(ctx, chunk); err != nil {
			return err
		}
	}
	return nil
}

func (e *sqliteEngine) addMissingColumnsOfChunk(ctx context.Context, chunk int64) error {
	return e.writeConn.runTx(ctx, func() error {
		var columns [fieldCount][chunkSize]uint64
		var key int64
		var entry, outcome []byte
		if err := eachRow(ctx, e.writeConn, scanTargets{&key, &entry, &outcome}, func() error {
			facts := decodeRecordFacts(entry, outcome)
			for f, v := range e.hashes.columnValues(&facts) {
				columns[f][key%chunkSize] = v
			}
			return nil
		}, "SELECT key, entry, outcome FROM activity WHERE key >= ? AND key < ?", chunk*chunkSize, (chunk+1)*chunkSize); err != nil {
			return err
		}
		for f := fieldClient; f < fieldCount; f++ {
			e.writeConn.write("INSERT INTO activity_column (id, data) VALUES (?, ?) ON CONFLICT DO NOTHING", columnRowID(f, chunk), encodeColumn(columns[f][:]))
		}
		return nil
	})
}

// reloadIndexIfStale reads the index again if it may differ from the database.
func (e *sqliteEngine) reloadIndexIfStale(ctx context.Context) error {
	e.writing.Lock()
	defer e.writing.Unlock()
	if !e.indexStale {
		return nil
	}
	err := e.loadIndex(ctx)
	e.indexStale = err != nil
	return err
}

func (x *activityIndex) readChunks(ctx context.Context, db *sql.DB) error {
	x.firstChunk = x.firstKey / chunkSize
	var n int64
	var c chunkInfo
	var gone []byte
	return eachRow(ctx, db, scanTargets{&n, &c.minTime, &c.maxTime, &gone, &c.refusedBytes}, func() (err error) {
		if c.deleted, err = decodeBitmap(gone); err != nil {
			return err
		}
		if len(x.chunks) == 0 {
			x.firstChunk = n
		}
		if n != x.firstChunk+int64(len(x.chunks)) {
			return fmt.Errorf("chunk %d is missing or at the wrong position: %w", n, errDamaged)
		}
		x.chunks = append(x.chunks, c)
		return nil
	}, "SELECT chunk, min_time, max_time, gone, refused_bytes FROM activity_chunk ORDER BY chunk")
}

// readSegments finds out which chunks are in the text index.
func (x *activityIndex) readSegments(ctx context.Context, db *sql.DB) error {
	var segment int64
	return eachRow(ctx, db, scanTargets{&segment}, func() error {
		i := segment/chunkSize - x.firstChunk
		if i < 0 || i >= int64(len(x.chunks)) {
			return fmt.Errorf("segment %d has no chunk: %w", segment, errDamaged)
		}
		x.chunks[i].indexed = true
		return nil
	}, "SELECT segment FROM activity_segment")
}

// readTail reads the newest records, which are not in a chunk.
func (x *activityIndex) readTail(ctx context.Context, db *sql.DB, hashes hashCache) error {
	x.tail.first = x.keyAfterChunks()
	next := x.tail.first
	pruned := func(before int64) {
		for ; next < before && next < x.firstKey; next++ {
			x.tail.addRecord(&[fieldCount]uint64{}, 0)
		}
	}
	var key int64
	var entry, outcome []byte
	err := eachRow(ctx, db, scanTargets{&key, &entry, &outcome}, func() error {
		if pruned(key); key != next {
			return fmt.Errorf("record %d is missing: %w", next, errDamaged)
		}
		facts := decodeRecordFacts(entry, outcome)
		x.tail.addRecord(hashes.columnValues(&facts), facts.Time)
		if facts.Type == activity.PolicyDecision {
			x.tail.refusedBytes += int64(len(entry) + len(outcome))
		}
		next++
		return nil
	}, "SELECT key, entry, outcome FROM activity WHERE key >= ? ORDER BY key", x.tail.first)
	if err != nil {
		return err
	}
	pruned(x.nextKey)
	if next != x.nextKey {
		return fmt.Errorf("record %d is missing: %w", next, errDamaged)
	}
	return nil
}

// decodeRecordFacts decodes the facts of a stored record.
func decodeRecordFacts(entry, outcome []byte) activity.RecordFacts {
	r := activity.DecodeForDisplay(entry, outcome)
	return activity.NewRecordFacts(&r)
}

// readRefusalBits finds out which records of the chunks are refusals.
func (x *activityIndex) readRefusalBits(ctx context.Context, db *sql.DB) error {
	return sqliteReader{db}.eachColumn(ctx, x.storedChunks(), []columnField{fieldType}, func(_ int, _ columnField, id chunkID, data []byte) error {
		types, err := decodeColumn(data)
		if err != nil {
			return err
		}
		c := &x.chunks[id.chunk-x.firstChunk]
		c.refused = refusalBits(types, c.deleted)
		return nil
	})
}
