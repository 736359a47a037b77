package store

import (
	"context"

	"mcpproxy/internal/store/activity"
)

// ResumePosition returns how far the spool is in the database.
func (db *Postgres) ResumePosition(ctx context.Context) (pos activity.SpoolPosition, notes []string, err error) {
	e, err := db.use(ctx)
	if err != nil {
		return pos, nil, err
	}
	err = e.write(func(ctx context.Context, c *pgConn) error {
		var hash []byte
		// An earlier transaction of this instance may be ending at this very moment: it holds the row.
		_, err := c.first(ctx, into{&pos.Chain, &pos.Seq, &hash, &pos.Segment, &pos.Offset, &pos.Signer, &pos.Erasing},
			`SELECT chain, seq, hash, segment, file_offset, signer, EXISTS (SELECT FROM activity_erasing WHERE instance = $1)
			FROM instance WHERE id = $1 FOR UPDATE`, e.instance)
		copy(pos.Hash[:], hash)
		e.resumed, e.at = err == nil, pgPlace{pos.Chain, pos.Seq}
		return err
	})
	return pos, nil, err
}

// ProjectEntries stores entries and how far the log is then. Whether a transaction that failed
// to commit is in the database is only known by looking: Resume does.
func (db *Postgres) ProjectEntries(ctx context.Context, entries []activity.Entry, pos activity.SpoolPosition) error {
	e, err := db.use(ctx)
	if err != nil {
		return err
	}
	return e.write(func(ctx context.Context, c *pgConn) error {
		if !e.resumed {
			return errUnresumed
		}
		e.resumed = false
		p := pgProjection{e: e, c: c, batch: pgBatch{conn: c}, rollUp: rollUp{map[hour]counts{}, map[took]int64{}}, changed: map[int64]bool{}}
		err := c.tx(ctx, beginWrite, func() error { return p.project(ctx, entries, pos) })
		e.resumed = err == nil
		if err == nil {
			e.at = pgPlace{pos.Chain, pos.Seq}
		}
		return err
	})
}

// pgProjection is one transaction of the projector.
type pgProjection struct {
	e       *pgEngine
	c       *pgConn
	batch   pgBatch
	rows    pgCopy
	rollUp  rollUp
	next    int64          // key
	sealed  int64          // the number of the first chunk without columns
	place   string         // of the record before
	ended   []int64        // keys of records that were there
	changed map[int64]bool // chunks whose columns are not what their records say any more
}

const pgActivity = `activity (instance, key, id, place, seq, end_seq, hash, end_hash, entry, outcome, time, type, status, server, tool,
	session, request, intent, sensitivity, actor, client, error_code, duration, own, times)`

func (p *pgProjection) project(ctx context.Context, entries []activity.Entry, pos activity.SpoolPosition) error {
	// One of an earlier connection, which was cut off, may have gone on.
	var at pgPlace
	if _, err := p.c.first(ctx, into{&at.chain, &at.seq, &p.next, &p.sealed, &p.place},
		"SELECT chain, seq, next_key, sealed, place FROM instance WHERE id = $1 FOR UPDATE", p.e.instance); err != nil {
		return err
	}
	if at != p.e.at {
		return errUnresumed
	}
	from := p.next
	b := split(entries)
	p.rows.into = pgActivity
	for i := range b.rows {
		p.insert(&b.rows[i])
	}
	if err := p.endLate(ctx, b.late); err != nil {
		return err
	}
	if err := p.rows.run(ctx, p.c); err != nil {
		return err
	}
	if err := p.repeat(ctx, b.repeats); err != nil {
		return err
	}
	for i := range entries {
		if r, ok := entries[i].Redaction(); ok {
			if err := p.erase(ctx, r); err != nil {
				return err
			}
		}
		if s := entries[i].Signature; s != nil {
			p.batch.do(ctx, `INSERT INTO activity_signed (instance, chain, seq, hash, time, key, signature) VALUES ($1, $2, $3, $4, $5, $6, $7)
				ON CONFLICT (instance, chain, seq) DO UPDATE SET hash = excluded.hash, time = excluded.time, key = excluded.key, signature = excluded.signature`,
				p.e.instance, s.Chain, s.Seq, s.Hash[:], s.Time.UnixMicro(), s.Key, s.Signature)
		}
	}
	p.saveRollUp(ctx)
	if err := p.batch.run(ctx); err != nil {
		return err
	}
	for chunk := range p.changed {
		if err := p.sealAgain(ctx, chunk); err != nil {
			return err
		}
	}
	for p.next-p.sealed*chunkSize >= tailMax*chunkSize {
		if err := p.seal(ctx, p.sealed); err != nil {
			return err
		}
		p.sealed++
	}
	p.batch.do(ctx, `UPDATE instance SET chain = $2, seq = $3, hash = $4, segment = $5, file_offset = $6, next_key = $7, sealed = $8,
		signer = $9, place = $10, seen = now() WHERE id = $1`,
		p.e.instance, pos.Chain, pos.Seq, pos.Hash[:], pos.Segment, pos.Offset, p.next, p.sealed, pos.Signer, p.place)
	p.batch.do(ctx, "SELECT pg_notify($1, $2)", pgChannel, toldLog(p.e.instance, from, p.next, p.ended))
	return p.batch.run(ctx)
}

func orNil(n int64, there bool) any {
	if there {
		return n
	}
	return nil
}

// insert notes a row.
func (p *pgProjection) insert(r *row) {
	var facts *activity.RecordFacts
	var hash, endHash, entry, outcome []byte
	var seq, endSeq int64
	id, ended := "", true
	if b := r.begin; b != nil {
		id, facts, seq, endSeq, hash, entry = b.ID, &b.Facts, b.Seq, b.Seq, b.Hash[:], b.Payload
		ended = b.Kind == activity.KindWhole
	}
	if d := r.end; d != nil {
		facts, endSeq, endHash, outcome, ended = &d.Facts, d.Seq, d.Hash[:], d.Payload, true
		if r.begin == nil {
			id, seq = d.ID, d.BeginSeq
		}
	}
	f := pgFacts(completed(facts, r))
	p.place = max(p.place, id)
	p.rows.add(int32(p.e.instance), p.next, id, p.place, seq, orNil(endSeq, ended), hash, endHash, entry, outcome, f.Time,
		string(f.Type), string(f.Status), f.Server, f.Tool, f.Session, f.Request, f.Intent, f.Sensitivity, f.Actor, f.Client, f.ErrorCode,
		f.Duration, f.OwnTime, f.Repeats)
	p.next++
	if ended {
		p.rollUp.add(f)
	}
}

// pgFacts are facts as PostgreSQL can have them.
func pgFacts(facts *activity.RecordFacts) *activity.RecordFacts {
	f := *facts
	for _, s := range []*string{(*string)(&f.Type), (*string)(&f.Status), &f.Server, &f.Tool, &f.Session, &f.Request, &f.Intent, &f.Sensitivity, &f.Actor, &f.Client, &f.ErrorCode} {
		*s = pgClean(*s)
	}
	f.Duration, f.OwnTime, f.Repeats = max(0, f.Duration), max(0, f.OwnTime), max(0, f.Repeats)
	return &f
}

// endLate finishes records whose beginning is in the database.
func (p *pgProjection) endLate(ctx context.Context, late []*activity.Entry) error {
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
	if err := p.c.each(ctx, into{&id, &b.key, &seq, &b.entry}, func() error {
		open[id], bySeq[id] = b, seq
		return nil
	}, `SELECT a.id, a.key, a.seq, a.entry FROM unnest($2::text[]) AS e(id) JOIN activity a ON a.id = e.id
		WHERE a.instance = $1 AND a.end_seq IS NULL ORDER BY a.key`, p.e.instance, pgTexts(ids)); err != nil {
		return err
	}
	for _, end := range late {
		b, there := open[end.ID]
		if !there || bySeq[end.ID] != end.BeginSeq { // its beginning is gone: pruned, or lost
			p.insert(&row{end: end})
			continue
		}
		delete(open, end.ID)
		facts := &end.Facts
		if facts.Type == "" {
			read := factsOfRow(b.entry, end.Payload)
			facts = &read
		}
		f := pgFacts(facts)
		p.rollUp.add(f)
		p.batch.do(ctx, `UPDATE activity SET end_seq = $3, end_hash = $4, outcome = $5, status = $6, error_code = $7, duration = $8, own = $9
			WHERE instance = $1 AND key = $2`, p.e.instance, b.key, end.Seq, end.Hash[:], end.Payload, string(f.Status), f.ErrorCode, f.Duration, f.OwnTime)
		p.ended = append(p.ended, b.key)
		p.change(b.key)
	}
	return p.batch.run(ctx)
}

// change notes that a record is not what the columns of its chunk say.
func (p *pgProjection) change(key int64) {
	if chunk := key / chunkSize; chunk < p.sealed {
		p.changed[chunk] = true
	}
}

// repeat brings the counts of refusals up to date. What told a count before leaves its
// hash, and so does a count whose record has gone.
func (p *pgProjection) repeat(ctx context.Context, repeats []*activity.Entry) error {
	for _, n := range repeats {
		var key int64
		var before nullable
		var hash []byte
		found, err := p.c.first(ctx, into{&key, &before, &hash}, `SELECT key, end_seq, end_hash FROM activity
			WHERE instance = $1 AND id = $2 AND entry IS NOT NULL`, p.e.instance, n.ID)
		switch {
		case err == nil && !found:
			err = pgLeave(ctx, p.c, p.e.instance, []link{{n.Seq, n.Hash[:]}})
		case err == nil && hash != nil:
			err = pgLeave(ctx, p.c, p.e.instance, []link{{before.int64, hash}})
		}
		if err != nil {
			return err
		}
		if !found {
			continue
		}
		if _, err := p.c.exec(ctx, "UPDATE activity SET end_seq = $3, end_hash = $4, outcome = $5, times = $6 WHERE instance = $1 AND key = $2",
			p.e.instance, key, n.Seq, n.Hash[:], n.Payload, max(0, n.Facts.Repeats)); err != nil {
			return err
		}
		p.change(key)
	}
	return nil
}

// saveRollUp adds what the transaction changes to the hours, all in two statements.
func (p *pgProjection) saveRollUp(ctx context.Context) {
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
	p.batch.do(ctx, `INSERT INTO activity_hour (instance, type, server, tool, intent, status, hour, records, duration, max_duration, last)
		SELECT $1, * FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[])
		ON CONFLICT (instance, hour, type, server, tool, intent, status) DO UPDATE SET records = activity_hour.records + excluded.records,
		duration = activity_hour.duration + excluded.duration, max_duration = greatest(activity_hour.max_duration, excluded.max_duration),
		last = greatest(activity_hour.last, excluded.last)`,
		p.e.instance, pgTexts(texts[0]), pgTexts(texts[1]), pgTexts(texts[2]), pgTexts(texts[3]), pgTexts(texts[4]),
		pgIntegers(numbers[0]), pgIntegers(numbers[1]), pgIntegers(numbers[2]), pgIntegers(numbers[3]), pgIntegers(numbers[4]))
	var servers []string
	var hours, buckets, records []int64
	for k, n := range p.rollUp.took {
		servers, hours, buckets, records = append(servers, k.server), append(hours, k.hour), append(buckets, k.bucket), append(records, n)
	}
	p.batch.do(ctx, `INSERT INTO activity_took (instance, server, hour, bucket, records)
		SELECT $1, * FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::bigint[])
		ON CONFLICT (instance, hour, server, bucket) DO UPDATE SET records = activity_took.records + excluded.records`,
		p.e.instance, pgTexts(servers), pgIntegers(hours), pgIntegers(buckets), pgIntegers(records))
}

// UnfinishedRecords returns the records of this instance that have no end.
func (db *Postgres) UnfinishedRecords(ctx context.Context) (out []activity.UnfinishedRecord, err error) {
	err = db.read(ctx, func(ctx context.Context, e *pgEngine, c *pgConn) error {
		var u activity.UnfinishedRecord
		var entry []byte
		return c.each(ctx, into{&u.Seq, &entry}, func() error {
			if r, err := activity.DecodeRecord(entry, nil); err == nil { // a damaged one stays as it is
				u.ID, u.Facts = r.ID, activity.NewRecordFacts(&r)
				out = append(out, u)
			}
			return nil
		}, "SELECT seq, entry FROM activity WHERE instance = $1 AND end_seq IS NULL ORDER BY seq", e.instance)
	})
	return out, err
}

// Sync does nothing: a transaction that was committed is on the disk of the server.
func (db *Postgres) Sync(ctx context.Context) error {
	_, err := db.use(ctx)
	return err
}

// erase takes fields out of a record, and its words out of the text index. That the
// spool has them still is noted.
func (p *pgProjection) erase(ctx context.Context, r activity.Redaction) error {
	if _, err := p.c.exec(ctx, "INSERT INTO activity_erasing (instance, id, fields, at) VALUES ($1, $2, $3, $4)",
		p.e.instance, r.ID, joinFields(r.Fields), r.At.Unix()); err != nil {
		return err
	}
	type stored struct {
		key            int64
		entry, outcome []byte
	}
	var s stored
	var all []stored
	if err := p.c.each(ctx, into{&s.key, &s.entry, &s.outcome}, func() error { all = append(all, s); return nil },
		"SELECT key, entry, outcome FROM activity WHERE instance = $1 AND id = $2", p.e.instance, r.ID); err != nil {
		return err
	}
	for _, s := range all {
		for _, payload := range []*[]byte{&s.entry, &s.outcome} {
			if *payload != nil {
				*payload = r.ErasePayload(*payload)
			}
		}
		if _, err := p.c.exec(ctx, "UPDATE activity SET entry = $3, outcome = $4 WHERE instance = $1 AND key = $2", p.e.instance, s.key, s.entry, s.outcome); err != nil {
			return err
		}
		p.change(s.key)
	}
	return nil
}

func joinFields(all []activity.ErasableField) (text string) {
	for i, f := range all {
		if i > 0 {
			text += ","
		}
		text += string(f)
	}
	return text
}
