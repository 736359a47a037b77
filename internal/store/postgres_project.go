package store

import (
	"context"

	"mcpproxy/internal/store/activity"
)

// ResumePosition returns the position in the spool up to which the database has all entries.
func (db *Postgres) ResumePosition(ctx context.Context) (pos activity.SpoolPosition, notes []string, err error) {
	e, err := db.waitOpen(ctx)
	if err != nil {
		return pos, nil, err
	}
	err = e.withWriteConn(func(ctx context.Context, c *pgConn) error {
		// An earlier transaction of this instance may still be running. It locks the row, so this transaction waits for
		// it.
		err := c.runTx(ctx, beginWrite, func() (err error) {
			c.write("SELECT FROM instance WHERE id = @instance FOR UPDATE")
			pos, err = readPosition(ctx, c)
			return err
		})
		e.resumed, e.position = err == nil, pgSpoolPosition{pos.Chain, pos.Seq}
		return err
	})
	return pos, nil, err
}

// ProjectEntries stores entries, and the position of the log after them. After a failed commit, only ResumePosition
// tells whether the database contains the transaction.
func (db *Postgres) ProjectEntries(ctx context.Context, entries []activity.Entry, pos activity.SpoolPosition) error {
	e, err := db.waitOpen(ctx)
	if err != nil {
		return err
	}
	return e.withWriteConn(func(ctx context.Context, c *pgConn) error {
		if !e.resumed {
			return errNotResumed
		}
		e.resumed = false
		p := pgProjectionTx{e: e, c: c, rollUp: newHourlyRollUp(), changedChunks: map[int64]bool{}}
		err := c.runTx(ctx, beginWrite, func() error { return p.projectEntries(ctx, entries, pos) })
		e.resumed = err == nil
		if err == nil {
			e.position = pgSpoolPosition{pos.Chain, pos.Seq}
		}
		return err
	})
}

// pgProjectionTx is a transaction of the projector.
type pgProjectionTx struct {
	e             *pgEngine
	c             *pgConn
	rows          pgCopyRows
	rollUp        hourlyRollUp
	nextKey       int64          // key of the next record
	firstUnsealed int64          // number of the first chunk without columns
	order         string         // value of the order (place) of the previous record
	endedKeys     []int64        // keys of stored records that ended
	changedChunks map[int64]bool // chunks whose columns must be rewritten
}

const pgActivityColumns = `activity (instance, key, id, place, seq, end_seq, hash, end_hash, entry, outcome, time, type, status, server, tool,
	session, request, intent, sensitivity, actor, client, error_code, duration, own, times)`

func (p *pgProjectionTx) projectEntries(ctx context.Context, entries []activity.Entry, pos activity.SpoolPosition) error {
	// A transaction of an earlier, broken connection may have been committed in the meantime.
	var at pgSpoolPosition
	if _, err := p.c.firstRow(ctx, scanTargets{&at.chain, &at.seq, &p.nextKey, &p.firstUnsealed, &p.order},
		"SELECT chain, seq, next_key, sealed, place FROM instance WHERE id = $1 FOR UPDATE", p.e.instance); err != nil {
		return err
	}
	if at != p.e.position {
		return errNotResumed
	}
	from := p.nextKey
	b := newProjectionBatch(entries)
	p.rows.table = pgActivityColumns
	for i := range b.rows {
		p.addRecord(&b.rows[i])
	}
	if err := p.endStoredRecords(ctx, b.lateEnds); err != nil {
		return err
	}
	if err := p.rows.send(ctx, p.c); err != nil {
		return err
	}
	if err := p.updateRefusalCounts(ctx, b.repeats); err != nil {
		return err
	}
	if err := saveErasuresAndCheckpoints(ctx, p.c, entries, p.eraseFields); err != nil {
		return err
	}
	p.saveRollUp()
	for chunk := range p.changedChunks {
		if err := p.resealChunk(ctx, chunk); err != nil {
			return err
		}
	}
	for p.nextKey-p.firstUnsealed*chunkSize >= maxTailChunks*chunkSize {
		if err := p.sealChunk(ctx, p.firstUnsealed); err != nil {
			return err
		}
		p.firstUnsealed++
	}
	p.c.write(`UPDATE instance SET chain = $2, seq = $3, hash = $4, segment = $5, file_offset = $6, next_key = $7, sealed = $8,
		signer = $9, place = $10, seen = now() WHERE id = $1`,
		p.e.instance, pos.Chain, pos.Seq, pos.Hash[:], pos.Segment, pos.Offset, p.nextKey, p.firstUnsealed, pos.Signer, p.order)
	p.c.write("SELECT pg_notify($1, $2)", pgChannel, newLogNotification(p.e.instance, from, p.nextKey, p.endedKeys))
	return nil
}

// addRecord adds a row.
func (p *pgProjectionTx) addRecord(r *recordToInsert) {
	row := r.toRow()
	f := cleanPgRecordFacts(row.facts)
	p.order = max(p.order, row.id)
	p.rows.addRow(int32(p.e.instance), p.nextKey, row.id, p.order, row.seq, row.endSeqOrNull(), row.hash, row.endHash, row.entry, row.outcome, f.Time,
		string(f.Type), string(f.Status), f.Server, f.Tool, f.Session, f.Request, f.Intent, f.Sensitivity, f.Actor, f.Client, f.ErrorCode,
		f.Duration, f.OwnTime, f.Repeats)
	p.nextKey++
	if row.ended {
		p.rollUp.addRecord(f)
	}
}

// cleanPgRecordFacts returns the facts in a form that PostgreSQL can store.
func cleanPgRecordFacts(facts *activity.RecordFacts) *activity.RecordFacts {
	f := *facts
	for _, s := range []*string{(*string)(&f.Type), (*string)(&f.Status), &f.Server, &f.Tool, &f.Session, &f.Request, &f.Intent, &f.Sensitivity, &f.Actor, &f.Client, &f.ErrorCode} {
		*s = cleanPgText(*s)
	}
	f.Duration, f.OwnTime, f.Repeats = max(0, f.Duration), max(0, f.OwnTime), max(0, f.Repeats)
	return &f
}

// endStoredRecords stores the ends of records whose beginning is in the database.
func (p *pgProjectionTx) endStoredRecords(ctx context.Context, late []*activity.Entry) error {
	if len(late) == 0 {
		return nil
	}
	type begun struct {
		key   int64
		entry []byte
	}
	ids := make([]string, 0, len(late))
	for _, end := range late {
		ids = append(ids, end.ID)
	}
	open := map[string]begun{}
	var id string
	var b begun
	var seq int64
	bySeq := map[string]int64{}
	if err := p.c.eachRow(ctx, scanTargets{&id, &b.key, &seq, &b.entry}, func() error {
		open[id], bySeq[id] = b, seq
		return nil
	}, `SELECT a.id, a.key, a.seq, a.entry FROM unnest($2::text[]) AS e(id) JOIN activity a ON a.id = e.id
		WHERE a.instance = $1 AND a.end_seq IS NULL ORDER BY a.key`, p.e.instance, pgTextArray(ids)); err != nil {
		return err
	}
	for _, end := range late {
		b, there := open[end.ID]
		if !there || bySeq[end.ID] != end.BeginSeq { // the beginning was pruned or lost
			p.addRecord(&recordToInsert{end: end})
			continue
		}
		delete(open, end.ID)
		f := cleanPgRecordFacts(factsOfLateEnd(end, b.entry))
		p.rollUp.addRecord(f)
		p.c.write(`UPDATE activity SET end_seq = $3, end_hash = $4, outcome = $5, status = $6, error_code = $7, duration = $8, own = $9
			WHERE instance = $1 AND key = $2`, p.e.instance, b.key, end.Seq, end.Hash[:], end.Payload, string(f.Status), f.ErrorCode, f.Duration, f.OwnTime)
		p.endedKeys = append(p.endedKeys, b.key)
		p.markChunkChanged(b.key)
	}
	return nil
}

// markChunkChanged records that the columns of a record's chunk must be rewritten.
func (p *pgProjectionTx) markChunkChanged(key int64) {
	if chunk := key / chunkSize; chunk < p.firstUnsealed {
		p.changedChunks[chunk] = true
	}
}

// updateRefusalCounts stores new counts of refusals.
func (p *pgProjectionTx) updateRefusalCounts(ctx context.Context, repeats []*activity.Entry) error {
	for _, n := range repeats {
		key := int64(-1)
		_, err := p.c.firstRow(ctx, scanTargets{&key}, "SELECT key FROM activity WHERE instance = $1 AND id = $2 AND entry IS NOT NULL", p.e.instance, n.ID)
		if err == nil {
			err = replaceRefusalCount(ctx, p.c, key, n)
		}
		if err != nil {
			return err
		}
		if key >= 0 {
			p.c.write("UPDATE activity SET times = $3 WHERE instance = $1 AND key = $2", p.e.instance, key, max(0, n.Facts.Repeats))
			p.markChunkChanged(key)
		}
	}
	return nil
}

// saveRollUp adds the changes of the transaction to the hourly counts, using two statements. A statement for each group,
// as in SQLite, would cost more than all other work for a record if a batch has many groups.
func (p *pgProjectionTx) saveRollUp() {
	var texts [5][]string
	var numbers [5][]int64
	for k, n := range p.rollUp.hours {
		for i, v := range []string{k.kind, k.server, k.tool, k.intent, k.status} {
			texts[i] = append(texts[i], v)
		}
		for i, v := range []int64{k.hour, n.records, n.duration, n.longest, n.last} {
			numbers[i] = append(numbers[i], v)
		}
	}
	p.c.write(`INSERT INTO activity_hour (instance, type, server, tool, intent, status, hour, records, duration, max_duration, last)
		SELECT $1, * FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[])
		ON CONFLICT (instance, hour, type, server, tool, intent, status) DO UPDATE SET records = activity_hour.records + excluded.records,
		duration = activity_hour.duration + excluded.duration, max_duration = greatest(activity_hour.max_duration, excluded.max_duration),
		last = greatest(activity_hour.last, excluded.last)`,
		p.e.instance, pgTextArray(texts[0]), pgTextArray(texts[1]), pgTextArray(texts[2]), pgTextArray(texts[3]), pgTextArray(texts[4]),
		pgIntArray(numbers[0]), pgIntArray(numbers[1]), pgIntArray(numbers[2]), pgIntArray(numbers[3]), pgIntArray(numbers[4]))
	var servers []string
	var hours, buckets, records []int64
	for k, n := range p.rollUp.durations {
		servers, hours, buckets, records = append(servers, k.server), append(hours, k.hour), append(buckets, k.bucket), append(records, n)
	}
	p.c.write(`INSERT INTO activity_took (instance, server, hour, bucket, records)
		SELECT $1, * FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::bigint[])
		ON CONFLICT (instance, hour, server, bucket) DO UPDATE SET records = activity_took.records + excluded.records`,
		p.e.instance, pgTextArray(servers), pgIntArray(hours), pgIntArray(buckets), pgIntArray(records))
}

// Sync only waits until the database is open, because a committed transaction is already on the disk of the server.
func (db *Postgres) Sync(ctx context.Context) error {
	_, err := db.waitOpen(ctx)
	return err
}

// eraseFields erases fields of a record, and removes their words from the text index.
func (p *pgProjectionTx) eraseFields(ctx context.Context, r activity.FieldErasure) error {
	var key int64
	var keys []int64
	if err := p.c.eachRow(ctx, scanTargets{&key}, func() error { keys = append(keys, key); return nil },
		"SELECT key FROM activity WHERE instance = $1 AND id = $2", p.e.instance, r.ID); err != nil {
		return err
	}
	for _, key := range keys {
		p.markChunkChanged(key)
	}
	return eraseFields(ctx, p.c, r, keys)
}
