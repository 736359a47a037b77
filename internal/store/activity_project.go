package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"mcpproxy/internal/store/activity"
)

// errNotResumed means that the database was opened again and may be a different one. The projector must call
// ResumePosition first.
var errNotResumed = fmt.Errorf("%w: its position must be read again", activity.ErrAgain)

// ResumePosition returns the position in the spool up to which the database has all entries, and notes for the log.
func (db *SQLite) ResumePosition(ctx context.Context) (activity.SpoolPosition, []string, error) {
	var pos activity.SpoolPosition
	e, err := db.waitOpen(ctx)
	if err != nil {
		return pos, nil, err
	}
	err = e.reloadIndexIfStale(ctx)
	if err == nil {
		pos, err = readPosition(ctx, sqliteReader{e.reads})
	}
	if err != nil {
		return pos, nil, db.blockWritesOnDamage(e, err)
	}
	e.resumed.Store(true)
	db.mu.Lock()
	notes := db.pendingNotes
	db.pendingNotes = nil
	db.mu.Unlock()
	return pos, notes, nil
}

// recordToInsert is a record that will be inserted.
type recordToInsert struct {
	begin *activity.Entry // nil if the entry is lost or already stored
	end   *activity.Entry
}

// projectionBatch contains the changes of a projection: rows to insert, ends of stored records, and counts of refusals.
type projectionBatch struct {
	rows     []recordToInsert
	lateEnds []*activity.Entry
	repeats  []*activity.Entry
}

func newProjectionBatch(entries []activity.Entry) projectionBatch {
	b := projectionBatch{rows: make([]recordToInsert, 0, len(entries))}
	begun := make(map[int64]int, len(entries)/2)
	for i := range entries {
		e := &entries[i]
		if e.Kind == activity.KindRepeat {
			b.repeats = append(b.repeats, e)
			continue
		}
		if e.Kind != activity.KindEnd {
			begun[e.Seq] = len(b.rows)
			b.rows = append(b.rows, recordToInsert{begin: e})
			continue
		}
		if at, ok := begun[e.BeginSeq]; ok && b.rows[at].end == nil && b.rows[at].begin.ID == e.ID {
			b.rows[at].end = e
		} else {
			b.lateEnds = append(b.lateEnds, e)
		}
	}
	return b
}

// ProjectEntries stores entries, and the position of the log after them.
func (db *SQLite) ProjectEntries(ctx context.Context, entries []activity.Entry, pos activity.SpoolPosition) error {
	e, err := db.waitWritable(ctx)
	if err != nil {
		return err
	}
	if !e.resumed.Load() {
		return errNotResumed
	}
	e.writing.Lock()
	err = e.projectEntries(ctx, entries, pos)
	if err == nil {
		err = e.sealFullChunks(ctx)
	}
	// After a failed commit, the file may or may not contain the transaction, so the index must be read again.
	e.indexStale = err != nil
	e.writing.Unlock()
	return db.blockWritesOnDamage(e, err)
}

func (e *sqliteEngine) projectEntries(ctx context.Context, entries []activity.Entry, pos activity.SpoolPosition) error {
	b := newProjectionBatch(entries)
	p := projectionTx{e: e, nextKey: e.index.nextKey, rollUp: newHourlyRollUp(), columnChanges: map[int64]map[int64]uint64{}}
	err := e.writeConn.runTx(ctx, func() error {
		for i := range b.rows {
			p.insertRecord(&b.rows[i])
			if i%64 == 63 {
				runtime.Gosched() // let calls run first
			}
		}
		if err := p.endStoredRecords(ctx, b.lateEnds); err != nil {
			return err
		}
		for _, n := range b.repeats {
			if err := p.updateRefusalCount(ctx, n); err != nil {
				return err
			}
		}
		if err := saveErasuresAndCheckpoints(ctx, e.writeConn, entries, p.eraseFields); err != nil {
			return err
		}
		if err := p.rewriteChangedColumns(ctx); err != nil {
			return err
		}
		p.rollUp.save(e.writeConn)
		e.writeConn.write("UPDATE activity_position SET chain = ?, seq = ?, hash = ?, segment = ?, offset = ?, next_key = ?, signer = ?",
			pos.Chain, pos.Seq, pos.Hash[:], pos.Segment, pos.Offset, p.nextKey, pos.Signer)
		return nil
	})
	if err == nil {
		e.publishProjection(&p)
	}
	return err
}

// publishProjection makes the committed changes visible to queries.
func (e *sqliteEngine) publishProjection(p *projectionTx) {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := &e.index.tail
	for i, v := range p.values {
		t.addRecord(v, p.times[i])
	}
	t.refusedBytes += p.refusedBytes
	for _, c := range p.changes {
		t.columns[c.field][c.key-t.first] = c.value
	}
	e.index.nextKey = p.nextKey
	if e.toolUse != nil {
		for k, n := range p.rollUp.hours {
			e.toolUse.addHour(k, n.records, n.last)
		}
	}
}

// projectionTx is a transaction of the projector.
type projectionTx struct {
	e       *sqliteEngine
	nextKey int64
	rollUp  hourlyRollUp
	// The following fields are changes to the in-memory index, made after the commit.
	values       []*[fieldCount]uint64
	times        []int64
	changes      []valueChange // of records in the tail
	refusedBytes int64         // total size of the new refusals
	// columnChanges contains new values of records in chunks, by column and position.
	columnChanges map[int64]map[int64]uint64
}

// valueChange is a new value of one field of a record.
type valueChange struct {
	key   int64
	field columnField
	value uint64
}

const (
	insertActivity = "INSERT INTO activity (key, seq, end_seq, hash, end_hash, entry, outcome) VALUES (?, ?, ?, ?, ?, ?, ?)"
	updateEnd      = "UPDATE activity SET end_seq = ?, end_hash = ?, outcome = ? WHERE {instance = @instance AND} key = ?"
)

func (p *projectionTx) insertRecord(r *recordToInsert) {
	row := r.toRow()
	facts := row.facts
	p.e.writeConn.write(insertActivity, p.nextKey, row.seq, row.endSeqOrNull(), bytesOrNull(row.hash), bytesOrNull(row.endHash), bytesOrNull(row.entry), bytesOrNull(row.outcome))
	if facts.Type == activity.PolicyDecision && r.begin != nil {
		p.e.rememberRefusalKey(r.begin.ID, p.nextKey)
		p.refusedBytes += int64(len(r.begin.Payload))
	}
	p.values = append(p.values, p.e.hashes.columnValues(facts))
	p.times = append(p.times, facts.Time)
	p.nextKey++
	if row.ended {
		p.rollUp.addRecord(facts)
	}
}

// recordRow contains the values of the row of a record.
type recordRow struct {
	id                            string
	seq, endSeq                   int64
	ended                         bool
	hash, endHash, entry, outcome []byte
	facts                         *activity.RecordFacts
}

func (r *recordToInsert) toRow() recordRow {
	var row recordRow
	if b := r.begin; b != nil {
		row = recordRow{id: b.ID, seq: b.Seq, endSeq: b.Seq, ended: b.Kind == activity.KindWhole, hash: b.Hash[:], entry: b.Payload, facts: &b.Facts}
	}
	if d := r.end; d != nil {
		row.facts, row.endSeq, row.ended, row.endHash, row.outcome = &d.Facts, d.Seq, true, d.Hash[:], d.Payload
		if r.begin == nil {
			row.id, row.seq = d.ID, d.BeginSeq
		}
	}
	if row.facts.Type == "" { // the end was read from the spool, and lacks the facts of the beginning
		var facts activity.RecordFacts
		if r.begin != nil {
			facts = r.begin.Facts.WithOutcome(row.facts)
		} else {
			facts = decodeRecordFacts(nil, r.end.Payload)
		}
		row.facts = &facts
	}
	return row
}

func (r *recordRow) endSeqOrNull() any {
	if r.ended {
		return r.endSeq
	}
	return nil
}

func bytesOrNull(data []byte) any {
	if data == nil {
		return nil
	}
	return data
}

// factsOfLateEnd returns the facts of a record that ended. entry is its stored beginning.
func factsOfLateEnd(end *activity.Entry, entry []byte) *activity.RecordFacts {
	if end.Facts.Type != "" {
		return &end.Facts
	}
	facts := decodeRecordFacts(entry, end.Payload)
	return &facts
}

// saveErasuresAndCheckpoints erases the fields that the entries redact, and stores the checkpoints that sign entries.
func saveErasuresAndCheckpoints(ctx context.Context, t sqlTx, entries []activity.Entry, erase func(context.Context, activity.FieldErasure) error) error {
	for i := range entries {
		if r, ok := entries[i].RequestedErasure(); ok {
			if err := erase(ctx, r); err != nil {
				return err
			}
		}
		if s := entries[i].Signature; s != nil {
			saveSignedCheckpoint(t, s)
		}
	}
	return nil
}

// endStoredRecords stores the ends of records whose beginning is in the database.
func (p *projectionTx) endStoredRecords(ctx context.Context, late []*activity.Entry) error {
	for _, end := range late {
		var key int64
		var entry []byte
		// The beginning is read only if the end lacks its facts.
		found, err := firstRow(ctx, p.e.writeConn, scanTargets{&key, &entry}, `SELECT key, CASE WHEN ? THEN entry END FROM activity
			WHERE end_seq IS NULL AND seq = ? AND CAST(substr(entry, 8, 26) AS TEXT) = ?
			ORDER BY key DESC LIMIT 1`, end.Facts.Type == "", end.BeginSeq, end.ID)
		if err != nil {
			return err
		}
		if !found { // the beginning was pruned, or lost with a damaged file
			p.insertRecord(&recordToInsert{end: end})
			continue
		}
		facts := factsOfLateEnd(end, entry)
		p.e.writeConn.write(updateEnd, end.Seq, end.Hash[:], end.Payload, key)
		p.rollUp.addRecord(facts)
		now := p.e.hashes.columnValues(facts)
		for _, f := range []columnField{fieldStatus, fieldError, fieldDuration, fieldOwnTime} {
			p.noteFieldChange(key, f, now[f])
		}
	}
	return nil
}

// noteFieldChange records a new value of a field. A value in the tail is published after the commit. A value in a chunk
// is written in this transaction.
func (p *projectionTx) noteFieldChange(key int64, f columnField, value uint64) {
	t := &p.e.index.tail
	if key >= t.first+int64(len(t.times)) { // a record that this transaction inserts
		p.values[key-t.first-int64(len(t.times))][f] = value
		return
	}
	if key >= t.first {
		p.changes = append(p.changes, valueChange{key, f, value})
		return
	}
	id := columnRowID(f, key/chunkSize)
	if p.columnChanges[id] == nil {
		p.columnChanges[id] = map[int64]uint64{}
	}
	p.columnChanges[id][key%chunkSize] = value
}

// rewriteChangedColumns rewrites the columns of chunks with the values that noteFieldChange recorded. It skips missing
// columns.
func (p *projectionTx) rewriteChangedColumns(ctx context.Context) error {
	for id, changes := range p.columnChanges {
		values, err := readColumn(ctx, p.e.writeConn, id)
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		if err != nil {
			return err
		}
		for at, value := range changes {
			values[at] = value
		}
		p.e.writeConn.write("UPDATE activity_column SET data = ? WHERE id = ?", encodeColumn(values), id)
	}
	return nil
}

// maxTailChunks limits the number of chunks in the tail. It allows most running calls to end before their records move
// into a chunk, where an end is more expensive to store.
const maxTailChunks = 2

// sealFullChunks moves the oldest records of the tail into chunks while the tail is too long.
func (e *sqliteEngine) sealFullChunks(ctx context.Context) error {
	for len(e.index.tail.times) >= maxTailChunks*chunkSize {
		if err := e.sealOldestChunk(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (e *sqliteEngine) sealOldestChunk(ctx context.Context) error {
	t := &e.index.tail
	chunk := t.first / chunkSize
	times := t.times[:chunkSize]
	info := chunkInfo{
		minTime: slices.Min(times), maxTime: slices.Max(times),
		refused: refusalBits(t.columns[fieldType][:chunkSize], nil),
	}
	raw := make([]uint64, chunkSize)
	for i, v := range times {
		raw[i] = uint64(v)
	}
	err := e.writeConn.runTx(ctx, func() (err error) {
		const insert = "INSERT INTO activity_column (id, data) VALUES (?, ?)"
		for f := range t.columns {
			e.writeConn.write(insert, columnRowID(columnField(f), chunk), encodeColumn(t.columns[f][:chunkSize]))
		}
		e.writeConn.write(insert, columnRowID(fieldTime, chunk), encodeRawColumn(raw))
		if info.refusedBytes, err = e.sizeOfMarkedRecords(ctx, t.first, info.refused); err != nil {
			return err
		}
		e.writeConn.write("INSERT INTO activity_chunk (chunk, min_time, max_time, refused_bytes) VALUES (?, ?, ?, ?)",
			chunk, info.minTime, info.maxTime, info.refusedBytes)
		return nil
	})
	if err != nil {
		return err
	}
	e.mu.Lock()
	e.index.chunks = append(e.index.chunks, info)
	e.index.tail.dropOldestChunk()
	e.index.tail.refusedBytes = max(0, e.index.tail.refusedBytes-info.refusedBytes)
	e.mu.Unlock()
	return nil
}

// UnfinishedRecords returns the records of this instance that have no end.
func (s *commonStore) UnfinishedRecords(ctx context.Context) ([]activity.UnfinishedRecord, error) {
	return viewed(ctx, s.db, func(ctx context.Context, db sqlReader) (out []activity.UnfinishedRecord, err error) {
		var u activity.UnfinishedRecord
		var entry []byte
		err = db.eachRow(ctx, scanTargets{&u.Seq, &entry}, func() error {
			if r, err := activity.DecodeRecord(entry, nil); err == nil { // a damaged record is left unchanged
				u.ID, u.Facts = r.ID, activity.NewRecordFacts(&r)
				out = append(out, u)
			}
			return nil
		}, "SELECT seq, entry FROM activity WHERE {instance = @instance AND} end_seq IS NULL ORDER BY seq")
		return out, err
	})
}

// Sync makes projected entries survive a loss of power. SQLite syncs its WAL before it copies pages into the database
// file.
func (db *SQLite) Sync(ctx context.Context) error {
	e, err := db.waitWritable(ctx)
	if err != nil {
		return err
	}
	e.writing.Lock()
	var busy, pages, moved int64
	err = e.writeConn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(PASSIVE)").Scan(&busy, &pages, &moved)
	e.writing.Unlock()
	return db.blockWritesOnDamage(e, err)
}

// RecordCount returns the number of records, or 0 while the database is not open. It does not block.
func (db *SQLite) RecordCount() int64 {
	db.mu.Lock()
	e := db.engine
	db.mu.Unlock()
	if e == nil {
		return 0
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	there := e.index.countStoredRecords()
	return there.refused + there.others
}
