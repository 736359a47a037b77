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

// errUnresumed is a database of which the projector does not know how far it is:
// it was opened again meanwhile, and may be another one.
var errUnresumed = fmt.Errorf("%w: how far it is has to be looked up", activity.ErrAgain)

// ResumePosition returns how far the spool is in the database.
func (db *DB) ResumePosition(ctx context.Context) (activity.SpoolPosition, []string, error) {
	var pos activity.SpoolPosition
	e, err := db.use(ctx)
	if err != nil {
		return pos, nil, err
	}
	if err := e.reload(ctx); err != nil {
		return pos, nil, db.failed(e, err)
	}
	var hash []byte
	err = e.reads.QueryRowContext(ctx, "SELECT chain, seq, hash, segment, offset, signer, EXISTS (SELECT 1 FROM activity_erasing) FROM activity_position").
		Scan(&pos.Chain, &pos.Seq, &hash, &pos.Segment, &pos.Offset, &pos.Signer, &pos.Erasing)
	if err != nil {
		return pos, nil, db.failed(e, err)
	}
	copy(pos.Hash[:], hash)
	e.resumed.Store(true)
	db.mu.Lock()
	notes := db.notes
	db.notes = nil
	db.mu.Unlock()
	return pos, notes, nil
}

// row is a record on its way into the database.
type row struct {
	begin *activity.Entry // nil when it is lost, or in the database already
	end   *activity.Entry
}

// batch is what a projection does: rows to insert, ends for rows that are there,
// and counts of refusals.
type batch struct {
	rows    []row
	late    []*activity.Entry
	repeats []*activity.Entry
}

func split(entries []activity.Entry) batch {
	b := batch{rows: make([]row, 0, len(entries))}
	begun := make(map[int64]int, len(entries)/2)
	for i := range entries {
		e := &entries[i]
		if e.Kind == activity.KindRepeat {
			b.repeats = append(b.repeats, e)
			continue
		}
		if e.Kind != activity.KindEnd {
			begun[e.Seq] = len(b.rows)
			b.rows = append(b.rows, row{begin: e})
			continue
		}
		if at, ok := begun[e.BeginSeq]; ok && b.rows[at].end == nil && b.rows[at].begin.ID == e.ID {
			b.rows[at].end = e
		} else {
			b.late = append(b.late, e)
		}
	}
	return b
}

// ProjectEntries stores entries and how far the log is then.
func (db *DB) ProjectEntries(ctx context.Context, entries []activity.Entry, pos activity.SpoolPosition) error {
	e, err := db.writer(ctx)
	if err != nil {
		return err
	}
	if !e.resumed.Load() {
		return errUnresumed
	}
	e.writing.Lock()
	err = e.project(ctx, entries, pos)
	if err == nil {
		err = e.seal(ctx)
	}
	// Whether a transaction that failed to commit is in the file is only known
	// by looking.
	e.stale = err != nil
	e.writing.Unlock()
	return db.failed(e, err)
}

func (e *engine) project(ctx context.Context, entries []activity.Entry, pos activity.SpoolPosition) error {
	b := split(entries)
	p := projection{e: e, next: e.index.nextKey, rollUp: rollUp{map[hour]counts{}, map[took]int64{}}, sealed: map[int64]map[int64]uint64{}}
	err := e.conn.tx(ctx, func() error {
		for i := range b.rows {
			p.insert(&b.rows[i])
			if i%64 == 63 {
				runtime.Gosched() // calls come first
			}
		}
		if err := p.endLate(ctx, b.late); err != nil {
			return err
		}
		for _, n := range b.repeats {
			if err := p.repeat(ctx, n); err != nil {
				return err
			}
		}
		for i := range entries {
			if r, ok := entries[i].Redaction(); ok {
				if err := p.erase(ctx, r); err != nil {
					return err
				}
			}
			if s := entries[i].Signature; s != nil {
				p.sign(s)
			}
		}
		if err := p.changeColumns(ctx); err != nil {
			return err
		}
		p.rollUp.save(e.conn)
		e.conn.do("UPDATE activity_position SET chain = ?, seq = ?, hash = ?, segment = ?, offset = ?, next_key = ?, signer = ?",
			pos.Chain, pos.Seq, pos.Hash[:], pos.Segment, pos.Offset, p.next, pos.Signer)
		return nil
	})
	if err == nil {
		e.publish(&p)
	}
	return err
}

// publish shows queries what was committed.
func (e *engine) publish(p *projection) {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := &e.index.tail
	for i, v := range p.values {
		t.add(v, p.times[i])
	}
	t.refusedBytes += p.refusedBytes
	for _, c := range p.changes {
		t.columns[c.field][c.key-t.first] = c.value
	}
	e.index.nextKey = p.next
	e.index.publishIndexed(p.indexed)
	if e.used != nil {
		for k, n := range p.rollUp.hours {
			e.used.add(k, n.records, n.last)
		}
	}
}

// projection is one transaction of the projector.
type projection struct {
	e      *engine
	next   int64
	rollUp rollUp
	// What it changes in memory when it is committed.
	values       []*[fields]uint64
	times        []int64
	changes      []change // of records of the tail
	refusedBytes int64    // the size of the refusals among the new ones
	// sealed is what it changes of records in chunks: column → position → value.
	sealed map[int64]map[int64]uint64
	// indexed is the text index of chunks, where it was made anew.
	indexed map[int64][]segment
}

// change is a new value of a record.
type change struct {
	key   int64
	field field
	value uint64
}

const (
	insertActivity = "INSERT INTO activity (key, seq, end_seq, hash, end_hash, entry, outcome) VALUES (?, ?, ?, ?, ?, ?, ?)"
	updateEnd      = "UPDATE activity SET end_seq = ?, end_hash = ?, outcome = ? WHERE key = ?"
)

func (p *projection) insert(r *row) {
	var facts *activity.RecordFacts
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
			seq = d.BeginSeq
		}
	}
	facts = completed(facts, r)
	p.e.conn.do(insertActivity, p.next, seq, endSeq, hash, endHash, entry, outcome)
	if facts.Type == activity.PolicyDecision && r.begin != nil {
		p.e.noteRefused(r.begin.ID, p.next)
		p.refusedBytes += int64(len(r.begin.Payload))
	}
	p.values = append(p.values, p.e.hashes.all(facts))
	p.times = append(p.times, facts.Time)
	p.next++
	if endSeq != nil {
		p.rollUp.add(facts)
	}
}

// completed returns the facts of a row: those of an end that came without (it
// was read from the spool) are those of its beginning, ended.
func completed(f *activity.RecordFacts, r *row) *activity.RecordFacts {
	if f.Type != "" {
		return f
	}
	facts := activity.RecordFacts{}
	if r.begin != nil {
		facts = r.begin.Facts.WithOutcome(f)
	} else {
		facts = factsOfRow(nil, r.end.Payload)
	}
	return &facts
}

// endLate finishes records whose beginning is in the database.
func (p *projection) endLate(ctx context.Context, late []*activity.Entry) error {
	for _, end := range late {
		var key int64
		var entry []byte
		// What the record was begun with is read only when the end comes without.
		found, err := first(ctx, p.e.conn, into{&key, &entry}, `SELECT key, CASE WHEN ? THEN entry END FROM activity
			WHERE end_seq IS NULL AND seq = ? AND CAST(substr(entry, 8, 26) AS TEXT) = ?
			ORDER BY key DESC LIMIT 1`, end.Facts.Type == "", end.BeginSeq, end.ID)
		if err != nil {
			return err
		}
		if !found { // its beginning is gone: pruned, or lost with a damaged file
			p.insert(&row{end: end})
			continue
		}
		facts := &end.Facts
		if facts.Type == "" {
			read := factsOfRow(entry, end.Payload)
			facts = &read
		}
		p.e.conn.do(updateEnd, end.Seq, end.Hash[:], end.Payload, key)
		p.rollUp.add(facts)
		now := p.e.hashes.all(facts)
		for _, f := range []field{fieldStatus, fieldError, fieldDuration, fieldOwn} {
			p.set(key, f, now[f])
		}
	}
	return nil
}

// set notes a new value of a record: in the tail for later, in a chunk for this
// transaction.
func (p *projection) set(key int64, f field, value uint64) {
	t := &p.e.index.tail
	if key >= t.first+int64(len(t.times)) { // inserted by this very transaction
		p.values[key-t.first-int64(len(t.times))][f] = value
		return
	}
	if key >= t.first {
		p.changes = append(p.changes, change{key, f, value})
		return
	}
	id := columnID(f, key/chunkSize)
	if p.sealed[id] == nil {
		p.sealed[id] = map[int64]uint64{}
	}
	p.sealed[id][key%chunkSize] = value
}

// changeColumns changes what set has noted of chunks. A column that is not there is
// made of the records when it is needed: see activity_later.go.
func (p *projection) changeColumns(ctx context.Context) error {
	for id, changes := range p.sealed {
		values, err := readColumn(ctx, p.e.conn, id)
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		if err != nil {
			return err
		}
		for at, value := range changes {
			values[at] = value
		}
		p.e.conn.do("UPDATE activity_column SET data = ? WHERE id = ?", encodeColumn(values), id)
	}
	return nil
}

// tailMax is how many chunks the tail may hold. Calls that run when their record
// is written are mostly over when it moves into a chunk, where ending it costs
// more.
const tailMax = 2

// seal moves what the tail has too much into chunks.
func (e *engine) seal(ctx context.Context) error {
	for len(e.index.tail.times) >= tailMax*chunkSize {
		if err := e.sealChunk(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (e *engine) sealChunk(ctx context.Context) error {
	t := &e.index.tail
	chunk := t.first / chunkSize
	times := t.times[:chunkSize]
	info := chunkInfo{
		minTime: slices.Min(times), maxTime: slices.Max(times),
		refused: refusedIn(t.columns[fieldType][:chunkSize], nil),
	}
	raw := make([]uint64, chunkSize)
	for i, v := range times {
		raw[i] = uint64(v)
	}
	err := e.conn.tx(ctx, func() (err error) {
		const insert = "INSERT INTO activity_column (id, data) VALUES (?, ?)"
		for f := range t.columns {
			e.conn.do(insert, columnID(field(f), chunk), encodeColumn(t.columns[f][:chunkSize]))
		}
		e.conn.do(insert, columnID(fieldTime, chunk), encodeRaw(raw))
		if info.refusedBytes, err = e.refusedBytes(ctx, t.first, info.refused); err != nil {
			return err
		}
		e.conn.do("INSERT INTO activity_chunk (chunk, min_time, max_time, refused_bytes) VALUES (?, ?, ?, ?)",
			chunk, info.minTime, info.maxTime, info.refusedBytes)
		return nil
	})
	if err != nil {
		return err
	}
	e.mu.Lock()
	e.index.chunks = append(e.index.chunks, info)
	e.index.tail.drop()
	e.index.tail.refusedBytes = max(0, e.index.tail.refusedBytes-info.refusedBytes)
	e.mu.Unlock()
	return nil
}

// UnfinishedRecords returns the records that have no end.
func (db *DB) UnfinishedRecords(ctx context.Context) ([]activity.UnfinishedRecord, error) {
	e, err := db.use(ctx)
	if err != nil {
		return nil, err
	}
	var out []activity.UnfinishedRecord
	var u activity.UnfinishedRecord
	var entry []byte
	err = each(ctx, e.reads, into{&u.Seq, &entry}, func() error {
		if r, err := activity.DecodeRecord(entry, nil); err == nil { // a damaged one stays as it is
			u.ID, u.Facts = r.ID, activity.NewRecordFacts(&r)
			out = append(out, u)
		}
		return nil
	}, "SELECT seq, entry FROM activity WHERE end_seq IS NULL ORDER BY seq")
	return out, err
}

// Sync makes what was projected survive the loss of power: the log that SQLite
// writes first is synced before it is moved into the file.
func (db *DB) Sync(ctx context.Context) error {
	e, err := db.writer(ctx)
	if err != nil {
		return err
	}
	e.writing.Lock()
	var busy, pages, moved int64
	err = e.conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(PASSIVE)").Scan(&busy, &pages, &moved)
	e.writing.Unlock()
	return db.failed(e, err)
}

// RecordCount returns how many records there are, 0 while the database is not open. It
// waits for nothing.
func (db *DB) RecordCount() int64 {
	db.mu.Lock()
	e := db.engine
	db.mu.Unlock()
	if e == nil {
		return 0
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	there := e.index.kept()
	return there.refused + there.others
}
