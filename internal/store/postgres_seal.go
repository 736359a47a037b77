package store

import (
	"context"

	"mcpproxy/internal/store/activity"
)

// pgFieldColumns contains the names of the table columns, in the order of the fields.
var pgFieldColumns = [fieldCount + 1]string{
	fieldType: "type", fieldStatus: "status", fieldServer: "server", fieldTool: "tool", fieldSession: "session", fieldRequest: "request",
	fieldIntent: "intent", fieldSensitivity: "sensitivity", fieldActor: "actor", fieldClient: "client", fieldError: "error_code",
	fieldDuration: "duration", fieldOwnTime: "own", fieldRepeats: "times", fieldTime: "time",
}

// pgFieldReader reads the values of some fields from a row.
type pgFieldReader struct {
	fields  []columnField
	texts   [firstNumericField]string
	numbers [fieldCount + 1]int64
}

// selectList returns the columns for a SELECT statement, and the targets into which they are scanned.
func (v *pgFieldReader) selectList() (list string, to scanTargets) {
	for _, f := range v.fields {
		list += ", " + pgFieldColumns[f]
		if f < firstNumericField {
			to = append(to, &v.texts[f])
		} else {
			to = append(to, &v.numbers[f])
		}
	}
	return list, to
}

// value returns the value of a field in the form in which a column stores it.
func (v *pgFieldReader) value(h hashCache, f columnField) uint64 {
	if f < firstNumericField {
		return h.hashField(f, v.texts[f])
	}
	return uint64(v.numbers[f])
}

func allColumnFields() (all []columnField) {
	for f := range fieldCount + 1 {
		all = append(all, f)
	}
	return all
}

// pgChunkColumns contains the columns of a chunk and facts about the chunk.
type pgChunkColumns struct {
	columns                                       [fieldCount + 1][]uint64
	minTime, maxTime, bytes, refused, refusedSize int64
}

// buildChunkColumns builds the columns of a chunk from its records.
func (p *pgProjectionTx) buildChunkColumns(ctx context.Context, chunk int64) (*pgChunkColumns, error) {
	s := &pgChunkColumns{}
	for f := range s.columns {
		s.columns[f] = make([]uint64, chunkSize)
	}
	v := pgFieldReader{fields: allColumnFields()}
	list, to := v.selectList()
	var key, size int64
	first := true
	err := p.c.eachRow(ctx, append(scanTargets{&key, &size}, to...), func() error {
		for f := range s.columns {
			s.columns[f][key%chunkSize] = v.value(p.e.hashes, columnField(f))
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

// sealChunk writes the columns of a chunk.
func (p *pgProjectionTx) sealChunk(ctx context.Context, chunk int64) error {
	s, err := p.buildChunkColumns(ctx, chunk)
	if err != nil {
		return err
	}
	rows := pgCopyRows{table: "activity_column (field, instance, chunk, data)"}
	for f, values := range s.columns {
		rows.addRow(int16(f), int32(p.e.instance), chunk, encodeColumn(values))
	}
	if err := rows.send(ctx, p.c); err != nil {
		return err
	}
	_, err = p.c.exec(ctx, "INSERT INTO activity_chunk (instance, chunk, min_time, max_time, bytes, refused, refused_bytes) VALUES ($1, $2, $3, $4, $5, $6, $7)",
		p.e.instance, chunk, s.minTime, s.maxTime, s.bytes, s.refused, s.refusedSize)
	return err
}

// resealChunk rewrites the columns of a chunk after one of its records changed. After that, the chunk must be indexed
// again.
func (p *pgProjectionTx) resealChunk(ctx context.Context, chunk int64) error {
	n, err := p.c.exec(ctx, "UPDATE activity_chunk SET indexed = false WHERE instance = $1 AND chunk = $2", p.e.instance, chunk)
	if err != nil || n == 0 {
		return err
	}
	s, err := p.buildChunkColumns(ctx, chunk)
	if err != nil {
		return err
	}
	for f, values := range s.columns {
		p.c.write("UPDATE activity_column SET data = $4 WHERE field = $1 AND instance = $2 AND chunk = $3", int64(f), p.e.instance, chunk, encodeColumn(values))
	}
	p.c.write("UPDATE activity_chunk SET bytes = $3, refused = $4, refused_bytes = $5 WHERE instance = $1 AND chunk = $2",
		p.e.instance, chunk, s.bytes, s.refused, s.refusedSize)
	deleteTextIndexOfChunks(p.c, chunk, chunk+1)
	return nil
}

// indexTextOfNextChunk indexes one chunk, and reports whether there may be more. If another instance is doing the same,
// indexTextOfNextChunk waits for its lock and finds the chunk indexed.
func (db *Postgres) indexTextOfNextChunk(ctx context.Context) (found bool, err error) {
	var instance, chunk int64
	look := func(ctx context.Context, c *pgConn, lock string) error {
		found, err = c.firstRow(ctx, scanTargets{&instance, &chunk}, "SELECT instance, chunk FROM activity_chunk WHERE NOT indexed LIMIT 1"+lock)
		return err
	}
	err = db.withReadConn(ctx, func(ctx context.Context, c *pgConn) error { return look(ctx, c, "") })
	if err != nil || !found {
		return false, err
	}
	err = db.writeTx(ctx, func(ctx context.Context, c *pgConn) error {
		if err := look(ctx, c, " FOR UPDATE"); err != nil || !found {
			found = true // another instance has indexed the chunk
			return err
		}
		return pgIndexChunkText(ctx, c, instance, chunk)
	})
	return found, err
}

// pgIndexChunkText indexes the records of a chunk.
func pgIndexChunkText(ctx context.Context, c *pgConn, instance, chunk int64) error {
	words, segments := pgCopyRows{table: "activity_text (instance, segment, first, data)"}, pgCopyRows{table: "activity_segment (instance, segment)"}
	if err := eachTextSegment(ctx, c.ofInstance(instance), chunk*chunkSize, (chunk+1)*chunkSize, func(first, _ int64, pages []textIndexPage) {
		for _, p := range pages {
			words.addRow(int32(instance), first, p.first, p.data)
		}
		segments.addRow(int32(instance), first)
	}); err != nil {
		return err
	}
	for _, rows := range []*pgCopyRows{&words, &segments} {
		if err := rows.send(ctx, c); err != nil {
			return err
		}
	}
	_, err := c.exec(ctx, "UPDATE activity_chunk SET indexed = true WHERE instance = $1 AND chunk = $2", instance, chunk)
	return err
}
