package store

import (
	"context"

	"mcpproxy/internal/store/activity"
)

// pgFields are the columns of the table that have what records are filtered and counted
// by, in the order of the fields.
var pgFields = [fields + 1]string{
	fieldType: "type", fieldStatus: "status", fieldServer: "server", fieldTool: "tool", fieldSession: "session", fieldRequest: "request",
	fieldIntent: "intent", fieldSensitivity: "sensitivity", fieldActor: "actor", fieldClient: "client", fieldError: "error_code",
	fieldDuration: "duration", fieldOwn: "own", fieldTimes: "times", fieldTime: "time",
}

// pgValues reads the values of some fields of a row.
type pgValues struct {
	fields  []field
	texts   [hashed]string
	numbers [fields + 1]int64
}

// columns is what is selected, and to where it is read.
func (v *pgValues) columns() (list string, to into) {
	for _, f := range v.fields {
		list += ", " + pgFields[f]
		if f < hashed {
			to = append(to, &v.texts[f])
		} else {
			to = append(to, &v.numbers[f])
		}
	}
	return list, to
}

// of is the value of a field.
func (v *pgValues) of(h hashes, f field) uint64 {
	if f < hashed {
		return h.of(f, v.texts[f])
	}
	return uint64(v.numbers[f])
}

func allFields() (all []field) {
	for f := range fields + 1 {
		all = append(all, f)
	}
	return all
}

// pgSealed is what is stored of a chunk.
type pgSealed struct {
	columns                                       [fields + 1][]uint64
	minTime, maxTime, bytes, refused, refusedSize int64
}

// readChunk makes the columns of a chunk.
func (p *pgProjection) readChunk(ctx context.Context, chunk int64) (*pgSealed, error) {
	s := &pgSealed{}
	for f := range s.columns {
		s.columns[f] = make([]uint64, chunkSize)
	}
	v := pgValues{fields: allFields()}
	list, to := v.columns()
	var key, size int64
	first := true
	err := p.c.each(ctx, append(into{&key, &size}, to...), func() error {
		for f := range s.columns {
			s.columns[f][key%chunkSize] = v.of(p.e.hashes, field(f))
		}
		at := v.numbers[fieldTime]
		if s.minTime, s.maxTime = min(s.minTime, at), max(s.maxTime, at); first {
			s.minTime, s.maxTime, first = at, at, false
		}
		s.bytes += size
		if v.texts[fieldType] == string(activity.PolicyDecision) {
			s.refused++
			s.refusedSize += size
		}
		return nil
	}, "SELECT key, coalesce(octet_length(entry), 0) + coalesce(octet_length(outcome), 0)"+list+
		" FROM activity WHERE instance = $1 AND key >= $2 AND key < $3", p.e.instance, chunk*chunkSize, (chunk+1)*chunkSize)
	return s, err
}

// seal writes the columns of a chunk.
func (p *pgProjection) seal(ctx context.Context, chunk int64) error {
	s, err := p.readChunk(ctx, chunk)
	if err != nil {
		return err
	}
	rows := pgCopy{into: "activity_column (field, instance, chunk, data)"}
	for f, values := range s.columns {
		rows.add(int16(f), int32(p.e.instance), chunk, encodeColumn(values))
	}
	if err := rows.run(ctx, p.c); err != nil {
		return err
	}
	_, err = p.c.exec(ctx, "INSERT INTO activity_chunk (instance, chunk, min_time, max_time, bytes, refused, refused_bytes) VALUES ($1, $2, $3, $4, $5, $6, $7)",
		p.e.instance, chunk, s.minTime, s.maxTime, s.bytes, s.refused, s.refusedSize)
	return err
}

// sealAgain writes the columns of a chunk anew, of which a record has changed. Its words
// are to be read again.
func (p *pgProjection) sealAgain(ctx context.Context, chunk int64) error {
	n, err := p.c.exec(ctx, "UPDATE activity_chunk SET indexed = false WHERE instance = $1 AND chunk = $2", p.e.instance, chunk)
	if err != nil || n == 0 {
		return err
	}
	s, err := p.readChunk(ctx, chunk)
	if err != nil {
		return err
	}
	for f, values := range s.columns {
		p.batch.do(ctx, "UPDATE activity_column SET data = $4 WHERE field = $1 AND instance = $2 AND chunk = $3", int64(f), p.e.instance, chunk, encodeColumn(values))
	}
	p.batch.do(ctx, "UPDATE activity_chunk SET bytes = $3, refused = $4, refused_bytes = $5 WHERE instance = $1 AND chunk = $2",
		p.e.instance, chunk, s.bytes, s.refused, s.refusedSize)
	pgDropText(ctx, &p.batch, p.e.instance, chunk*chunkSize, (chunk+1)*chunkSize)
	return p.batch.run(ctx)
}

// pgDropText removes segments from the text index.
func pgDropText(ctx context.Context, b *pgBatch, instance, from, to int64) {
	b.do(ctx, "DELETE FROM activity_text WHERE instance = $1 AND segment >= $2 AND segment < $3", instance, from, to)
	b.do(ctx, "DELETE FROM activity_segment WHERE instance = $1 AND segment >= $2 AND segment < $3", instance, from, to)
}

// indexText brings the text index up to the newest chunks, those of all instances.
func (db *Postgres) indexText(ctx context.Context) error {
	for {
		if more, err := db.indexNext(ctx); err != nil || !more {
			return err
		}
	}
}

// indexNext indexes one chunk, and reports whether there may be more. Who comes second waits, and
// finds that it is done.
func (db *Postgres) indexNext(ctx context.Context) (found bool, err error) {
	var instance, chunk int64
	look := func(ctx context.Context, c *pgConn, lock string) error {
		found, err = c.first(ctx, into{&instance, &chunk}, "SELECT instance, chunk FROM activity_chunk WHERE NOT indexed LIMIT 1"+lock)
		return err
	}
	err = db.read(ctx, func(ctx context.Context, _ *pgEngine, c *pgConn) error { return look(ctx, c, "") })
	if err != nil || !found {
		return false, err
	}
	err = db.write(ctx, func(ctx context.Context, _ *pgEngine, c *pgConn) error {
		if err := look(ctx, c, " FOR UPDATE"); err != nil || !found {
			found = true // somebody was faster
			return err
		}
		return pgIndexChunk(ctx, c, instance, chunk)
	})
	return found, err
}

// pgIndexChunk indexes the records of a chunk, in more than one segment when its texts
// are large.
func pgIndexChunk(ctx context.Context, c *pgConn, instance, chunk int64) error {
	words, segments := pgCopy{into: "activity_text (instance, segment, first, data)"}, pgCopy{into: "activity_segment (instance, segment)"}
	from, at := chunk*chunkSize, uint16(0)
	index := segmentIndex{words: map[string]posting{}}
	save := func(past int64) {
		for _, p := range index.pages() {
			words.add(int32(instance), from, p.first, p.data)
		}
		segments.add(int32(instance), from)
		from, index = past, segmentIndex{words: map[string]posting{}}
	}
	s := splitter{emit: func(word []byte, _ bool) { index.add(word, at) }}
	var key int64
	var entry, outcome pgRaw
	err := c.each(ctx, into{&key, &entry, &outcome}, func() error {
		if index.bytes > segmentBytes {
			save(key)
		}
		at = uint16(key % chunkSize)
		s.record(entry, outcome)
		return nil
	}, "SELECT key, entry, outcome FROM activity WHERE instance = $1 AND key >= $2 AND key < $3 ORDER BY key", instance, from, (chunk+1)*chunkSize)
	if err != nil {
		return err
	}
	save((chunk + 1) * chunkSize)
	for _, rows := range []*pgCopy{&words, &segments} {
		if err := rows.run(ctx, c); err != nil {
			return err
		}
	}
	_, err = c.exec(ctx, "UPDATE activity_chunk SET indexed = true WHERE instance = $1 AND chunk = $2", instance, chunk)
	return err
}

type pgSegment struct{ instance, segment int64 }

// upgradeText writes one segment of an older version with its prefixes, from its pages alone,
// and reports whether there may be more.
func (db *Postgres) upgradeText(ctx context.Context) (more bool, err error) {
	err = db.write(ctx, func(ctx context.Context, e *pgEngine, c *pgConn) error {
		at := e.upgraded
		more, err = c.first(ctx, into{&at.instance, &at.segment}, `SELECT instance, segment FROM activity_segment s WHERE (instance, segment) > ($1, $2)
			AND NOT EXISTS (SELECT FROM activity_text t WHERE t.instance = s.instance AND t.segment = s.segment AND t.first = '\x00')
			ORDER BY instance, segment LIMIT 1 FOR UPDATE SKIP LOCKED`, at.instance, at.segment)
		if err != nil || !more {
			e.prefixed.Store(err == nil)
			return err
		}
		e.upgraded = at // one that cannot be read stays as it is
		index := segmentIndex{words: map[string]posting{}}
		var data pgRaw
		if err := c.each(ctx, into{&data}, func() error { return index.addPage(data) },
			"SELECT data FROM activity_text WHERE instance = $1 AND segment = $2", at.instance, at.segment); err != nil {
			return err
		}
		if _, err := c.exec(ctx, "DELETE FROM activity_text WHERE instance = $1 AND segment = $2", at.instance, at.segment); err != nil {
			return err
		}
		words := pgCopy{into: "activity_text (instance, segment, first, data)"}
		for _, p := range index.pages() {
			words.add(int32(at.instance), at.segment, p.first, p.data)
		}
		return words.run(ctx, c)
	})
	return more, err
}
