package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"mcpproxy/internal/store/activity"
)

// errNotResumed is a database of which the projector does not know how far it is:
// it was opened again meanwhile, and may be another one.
var errNotResumed = fmt.Errorf("%w: how far it is has to be looked up", activity.ErrAgain)

// Resume returns how far the spool is in the database.
func (db *SQLite) Resume(ctx context.Context) (activity.Position, []string, error) {
	var pos activity.Position
	e, err := db.waitOpen(ctx)
	if err != nil {
		return pos, nil, err
	}
	if err := e.reloadIndexIfStale(ctx); err != nil {
		return pos, nil, db.blockWritesOnDamage(e, err)
	}
	var hash []byte
	err = e.reads.QueryRowContext(ctx, "SELECT chain, seq, hash, segment, offset, signer, EXISTS (SELECT 1 FROM activity_erasing) FROM activity_position").
		Scan(&pos.Chain, &pos.Seq, &hash, &pos.Segment, &pos.Offset, &pos.Signer, &pos.Erasing)
	if err != nil {
		return pos, nil, db.blockWritesOnDamage(e, err)
	}
	copy(pos.Hash[:], hash)
	e.resumed.Store(true)
	db.mu.Lock()
	notes := db.pendingNotes
	db.pendingNotes = nil
	db.mu.Unlock()
	return pos, notes, nil
}

// recordRow is a record on its way into the database.
type recordRow struct {
	begin *activity.Entry // nil when it is lost, or in the database already
	end   *activity.Entry
}

// projectionBatch is what a projection does: rows to insert, ends for rows that are there,
// and counts of refusals.
type projectionBatch struct {
	rows     []recordRow
	lateEnds []*activity.Entry
	repeats  []*activity.Entry
}

func groupEntries(entries []activity.Entry) projectionBatch {
	b := projectionBatch{rows: make([]recordRow, 0, len(entries))}
	begun := make(map[int64]int, len(entries)/2)
	for i := range entries {
		e := &entries[i]
		if e.Kind == activity.KindRepeat {
			b.repeats = append(b.repeats, e)
			continue
		}
		if e.Kind != activity.KindEnd {
			begun[e.Seq] = len(b.rows)
			b.rows = append(b.rows, recordRow{begin: e})
			continue
		}
		if at, ok := begun[e.Of]; ok && b.rows[at].end == nil && b.rows[at].begin.ID == e.ID {
			b.rows[at].end = e
		} else {
			b.lateEnds = append(b.lateEnds, e)
		}
	}
	return b
}

// Project stores entries and how far the log is then.
func (db *SQLite) Project(ctx context.Context, entries []activity.Entry, pos activity.Position) error {
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
	// Whether a transaction that failed to commit is in the file is only known
	// by looking.
	e.indexStale = err != nil
	e.writing.Unlock()
	return db.blockWritesOnDamage(e, err)
}

func (e *sqliteEngine) projectEntries(ctx context.Context, entries []activity.Entry, pos activity.Position) error {
	b := groupEntries(entries)
	p := projection{e: e, nextKey: e.index.nextKey, rollUp: hourlyRollUp{map[hourKey]hourCounts{}, map[durationBucketKey]int64{}}, columnChanges: map[int64]map[int64]uint64{}}
	err := e.writeConn.runTx(ctx, func() error {
		for i := range b.rows {
			p.insertRecord(&b.rows[i])
			if i%64 == 63 {
				runtime.Gosched() // calls come first
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
		for i := range entries {
			if r, ok := entries[i].Redaction(); ok {
				if err := p.eraseFields(ctx, r); err != nil {
					return err
				}
			}
			if s := entries[i].Signature; s != nil {
				p.saveSignature(s)
			}
		}
		if err := p.rewriteChangedColumns(ctx); err != nil {
			return err
		}
		p.rollUp.save(e.writeConn)
		e.writeConn.execInTx("UPDATE activity_position SET chain = ?, seq = ?, hash = ?, segment = ?, offset = ?, next_key = ?, signer = ?",
			pos.Chain, pos.Seq, pos.Hash[:], pos.Segment, pos.Offset, p.nextKey, pos.Signer)
		return nil
	})
	if err == nil {
		e.publishProjection(&p)
	}
	return err
}

// publishProjection shows queries what was committed.
func (e *sqliteEngine) publishProjection(p *projection) {
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
	e.index.setSegments(p.newSegments)
	if e.toolUse != nil {
		for k, n := range p.rollUp.hours {
			e.toolUse.addHour(k, n.records, n.last)
		}
	}
}

// projection is one transaction of the projector.
type projection struct {
	e       *sqliteEngine
	nextKey int64
	rollUp  hourlyRollUp
	// What it changes in memory when it is committed.
	values       []*[fieldCount]uint64
	times        []int64
	changes      []valueChange // of records of the tail
	refusedBytes int64         // the size of the refusals among the new ones
	// sealed is what it changes of records in chunks: column → position → value.
	columnChanges map[int64]map[int64]uint64
	// indexed is the text index of chunks, where it was made anew.
	newSegments map[int64][]textSegment
}

// markChunkChanged is a new value of a record.
type valueChange struct {
	key   int64
	field columnField
	value uint64
}

const (
	insertActivity = "INSERT INTO activity (key, seq, end_seq, hash, end_hash, entry, outcome) VALUES (?, ?, ?, ?, ?, ?, ?)"
	updateEnd      = "UPDATE activity SET end_seq = ?, end_hash = ?, outcome = ? WHERE key = ?"
)

func (p *projection) insertRecord(r *recordRow) {
	var facts *activity.Facts
	var endSeq, hash, endHash, entry, outcome driver.Value
	seq := int64(0)
	if b := r.begin; b != nil {
		facts, seq, hash, entry = &b.Facts, b.Seq, b.Hash[:], b.Payload
		if b.Kind == activity.KindWhole {
			endSeq = b.Seq
		}
	}
	if d := r.end; d != nil {
		facts, endSeq, endHash, outcome = &d.Facts, d.Seq, d.Hash[:], d.Payload
		if r.begin == nil {
			seq = d.Of
		}
	}
	facts = completeFacts(facts, r)
	p.e.writeConn.execInTx(insertActivity, p.nextKey, seq, endSeq, hash, endHash, entry, outcome)
	if facts.Type == activity.PolicyDecision && r.begin != nil {
		p.e.rememberRefusalKey(r.begin.ID, p.nextKey)
		p.refusedBytes += int64(len(r.begin.Payload))
	}
	p.values = append(p.values, p.e.hashes.fieldValues(facts))
	p.times = append(p.times, facts.Time)
	p.nextKey++
	if endSeq != nil {
		p.rollUp.addRecord(facts)
	}
}

// completeFacts returns the facts of a row: those of an end that came without (it
// was read from the spool) are those of its beginning, ended.
func completeFacts(f *activity.Facts, r *recordRow) *activity.Facts {
	if f.Type != "" {
		return f
	}
	facts := activity.Facts{}
	if r.begin != nil {
		facts = r.begin.Facts.EndedBy(f)
	} else {
		facts = decodeFacts(nil, r.end.Payload)
	}
	return &facts
}

// endStoredRecords finishes records whose beginning is in the database.
func (p *projection) endStoredRecords(ctx context.Context, late []*activity.Entry) error {
	for _, end := range late {
		var key int64
		var entry []byte
		// What the record was begun with is read only when the end comes without.
		found, err := firstRow(ctx, p.e.writeConn, scanTargets{&key, &entry}, `SELECT key, CASE WHEN ? THEN entry END FROM activity
			WHERE end_seq IS NULL AND seq = ? AND CAST(substr(entry, 8, 26) AS TEXT) = ?
			ORDER BY key DESC LIMIT 1`, end.Facts.Type == "", end.Of, end.ID)
		if err != nil {
			return err
		}
		if !found { // its beginning is gone: pruned, or lost with a damaged file
			p.insertRecord(&recordRow{end: end})
			continue
		}
		facts := &end.Facts
		if facts.Type == "" {
			read := decodeFacts(entry, end.Payload)
			facts = &read
		}
		p.e.writeConn.execInTx(updateEnd, end.Seq, end.Hash[:], end.Payload, key)
		p.rollUp.addRecord(facts)
		now := p.e.hashes.fieldValues(facts)
		for _, f := range []columnField{fieldStatus, fieldError, fieldDuration, fieldOwnTime} {
			p.setValue(key, f, now[f])
		}
	}
	return nil
}

// setState notes a new value of a record: in the tail for later, in a chunk for this
// transaction.
func (p *projection) setValue(key int64, f columnField, value uint64) {
	t := &p.e.index.tail
	if key >= t.first+int64(len(t.times)) { // inserted by this very transaction
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

// rewriteChangedColumns changes what set has noted of chunks. A column that is not there is
// made of the records when it is needed: see activity_later.go.
func (p *projection) rewriteChangedColumns(ctx context.Context) error {
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
		p.e.writeConn.execInTx("UPDATE activity_column SET data = ? WHERE id = ?", encodeColumn(values), id)
	}
	return nil
}

// maxTailChunks is how many chunks the tail may hold. Calls that run when their record
// is written are mostly over when it moves into a chunk, where ending it costs
// more.
const maxTailChunks = 2

// sealChunk moves what the tail has too much into chunks.
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
			e.writeConn.execInTx(insert, columnRowID(columnField(f), chunk), encodeColumn(t.columns[f][:chunkSize]))
		}
		e.writeConn.execInTx(insert, columnRowID(fieldTime, chunk), encodeRawColumn(raw))
		if info.refusedBytes, err = e.sizeOfMarked(ctx, t.first, info.refused); err != nil {
			return err
		}
		e.writeConn.execInTx("INSERT INTO activity_chunk (chunk, min_time, max_time, refused_bytes) VALUES (?, ?, ?, ?)",
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

// Pending returns the records that have no end.
func (db *SQLite) Pending(ctx context.Context) ([]activity.Unfinished, error) {
	e, err := db.waitOpen(ctx)
	if err != nil {
		return nil, err
	}
	var out []activity.Unfinished
	var u activity.Unfinished
	var entry []byte
	err = eachRow(ctx, e.reads, scanTargets{&u.Seq, &entry}, func() error {
		if r, err := activity.Decode(entry, nil); err == nil { // a damaged one stays as it is
			u.ID, u.Facts = r.ID, activity.FactsOf(&r)
			out = append(out, u)
		}
		return nil
	}, "SELECT seq, entry FROM activity WHERE end_seq IS NULL ORDER BY seq")
	return out, err
}

// Sync makes what was projected survive the loss of power: the log that SQLite
// writes first is synced before it is moved into the file.
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

// Count returns how many records there are, 0 while the database is not open. It
// waits for nothing.
func (db *SQLite) Count() int64 {
	db.mu.Lock()
	e := db.engine
	db.mu.Unlock()
	if e == nil {
		return 0
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	there := e.index.countRetained()
	return there.refused + there.others
}
