package store

import (
	"context"
	"database/sql"
	"fmt"

	"mcpproxy/internal/store/activity"
)

// load reads the index from the database.
func (e *engine) load(ctx context.Context) error {
	x := index{}
	err := e.reads.QueryRowContext(ctx, "SELECT first_key, next_key FROM activity_position").Scan(&x.firstKey, &x.nextKey)
	if err != nil {
		return err
	}
	for _, read := range []func(context.Context, *sql.DB) error{x.readChunks, x.readRefused, x.readSegments, x.readLacking} {
		if err := read(ctx, e.reads); err != nil {
			return err
		}
	}
	if err := x.readTail(ctx, e.reads, e.hashes); err != nil {
		return err
	}
	e.mu.Lock()
	e.index, e.used = x, nil
	e.mu.Unlock()
	return nil
}

// reload reads the index again when it may be wrong.
func (e *engine) reload(ctx context.Context) error {
	e.writing.Lock()
	defer e.writing.Unlock()
	if !e.stale {
		return nil
	}
	err := e.load(ctx)
	e.stale = err != nil
	return err
}

func (x *index) readChunks(ctx context.Context, db *sql.DB) error {
	x.firstChunk = x.firstKey / chunkSize
	var n int64
	var c chunkInfo
	var gone []byte
	return each(ctx, db, into{&n, &c.minTime, &c.maxTime, &gone, &c.refusedBytes}, func() (err error) {
		if c.gone, err = decodeBitmap(gone); err != nil {
			return err
		}
		if len(x.chunks) == 0 {
			x.firstChunk = n
		}
		if n != x.firstChunk+int64(len(x.chunks)) {
			return fmt.Errorf("chunk %d is not in its place: %w", n, errDamaged)
		}
		x.chunks = append(x.chunks, c)
		return nil
	}, "SELECT chunk, min_time, max_time, gone, refused_bytes FROM activity_chunk ORDER BY chunk")
}

func (x *index) readSegments(ctx context.Context, db *sql.DB) error {
	var s segment
	return each(ctx, db, into{&s.first, &s.past}, func() error {
		i := s.first/chunkSize - x.firstChunk
		if i < 0 || i >= int64(len(x.chunks)) {
			return fmt.Errorf("segment %d has no chunk: %w", s.first, errDamaged)
		}
		x.chunks[i].segments = append(x.chunks[i].segments, s)
		return nil
	}, "SELECT segment, past FROM activity_segment ORDER BY segment")
}

// readTail reads the records that are in no chunk.
func (x *index) readTail(ctx context.Context, db *sql.DB, hashes hashes) error {
	x.tail.first = x.pastChunks()
	next := x.tail.first
	pruned := func(before int64) {
		for ; next < before && next < x.firstKey; next++ {
			x.tail.add(&[fields]uint64{}, 0)
		}
	}
	var key int64
	var entry, outcome []byte
	err := each(ctx, db, into{&key, &entry, &outcome}, func() error {
		if pruned(key); key != next {
			return fmt.Errorf("record %d is missing: %w", next, errDamaged)
		}
		facts := factsOfRow(entry, outcome)
		x.tail.add(hashes.all(&facts), facts.Time)
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

// factsOfRow reads what a record is found by from what is stored of it.
func factsOfRow(entry, outcome []byte) activity.RecordFacts {
	r := activity.DecodeForDisplay(entry, outcome)
	return activity.NewRecordFacts(&r)
}

// readRefused reads which records of the chunks are refusals.
func (x *index) readRefused(ctx context.Context, db *sql.DB) error {
	past := x.firstChunk + int64(len(x.chunks))
	return eachColumn(ctx, db, fieldType, x.firstChunk, past, func(chunk int64, data []byte) error {
		types, err := decodeColumn(data)
		if err != nil {
			return err
		}
		c := &x.chunks[chunk-x.firstChunk]
		c.refused = refusedIn(types, c.gone)
		return nil
	})
}
