package store

import (
	"context"
	"database/sql/driver"
	"slices"
	"strings"
	"time"

	"mcpproxy/internal/store/activity"
)

// erase takes fields out of a record, and its words out of the text index. That the
// spool has them still is noted.
func (p *projection) erase(ctx context.Context, r activity.Redaction) error {
	fields := make([]string, len(r.Fields))
	for i, f := range r.Fields {
		fields[i] = string(f)
	}
	c := p.e.conn
	c.do("INSERT INTO activity_erasing (id, fields, at) VALUES (?, ?, ?)", r.ID, strings.Join(fields, ","), r.At.Unix())
	keys, err := find(ctx, c, r.ID, r.ID, p.e.index.firstKey, p.next)
	if err != nil {
		return err
	}
	for _, key := range keys {
		var entry, outcome []byte
		if err := c.QueryRowContext(ctx, "SELECT entry, outcome FROM activity WHERE key = ?", key).Scan(&entry, &outcome); err != nil {
			return err
		}
		for _, payload := range []*[]byte{&entry, &outcome} {
			if *payload != nil {
				*payload = r.ErasePayload(*payload)
			}
		}
		c.do("UPDATE activity SET entry = ?, outcome = ? WHERE key = ?", orNull(entry), orNull(outcome), key)
		if err := p.indexAgain(ctx, key/chunkSize); err != nil {
			return err
		}
	}
	return nil
}

func orNull(b []byte) driver.Value {
	if b == nil {
		return nil
	}
	return b
}

// indexAgain makes the text index of a chunk anew, if there is one.
func (p *projection) indexAgain(ctx context.Context, chunk int64) (err error) {
	i := chunk - p.e.index.firstChunk
	if i < 0 || i >= int64(len(p.e.index.chunks)) || p.e.index.chunks[i].segments == nil {
		return nil
	}
	if p.indexed == nil {
		p.indexed = map[int64][]segment{}
	}
	p.e.dropText(chunk, chunk+1)
	p.indexed[chunk], err = p.e.indexChunk(ctx, chunk)
	return err
}

// sign notes a place of the chain that is signed.
func (p *projection) sign(s *activity.Checkpoint) {
	p.e.conn.do("INSERT OR REPLACE INTO activity_signed (chain, seq, hash, time, key, signature) VALUES (?, ?, ?, ?, ?, ?)",
		s.Chain, s.Seq, s.Hash[:], s.Time.UnixMicro(), s.Key, s.Signature)
}

// PendingErasures returns what is erased here, and not in the spool yet.
func (p proofs) PendingErasures(ctx context.Context) ([]activity.Redaction, error) {
	e, err := p.db.use(ctx)
	if err != nil {
		return nil, err
	}
	var out []activity.Redaction
	var id, fields string
	var at int64
	err = each(ctx, e.reads, into{&id, &fields, &at}, func() error {
		r := activity.Redaction{ID: id, At: time.Unix(at, 0).UTC()}
		for f := range strings.SplitSeq(fields, ",") {
			r.Fields = append(r.Fields, activity.ErasableField(f))
		}
		out = append(out, r)
		return nil
	}, "SELECT id, fields, at FROM activity_erasing")
	return out, err
}

// FinishErasures empties the WAL, in which the values still are, and forgets what was noted. A
// reader who needs the WAL is no failure.
func (p proofs) FinishErasures(ctx context.Context, what []activity.Redaction) (done bool, err error) {
	e, err := p.db.writer(ctx)
	if err != nil {
		return false, err
	}
	done, err = e.erased(ctx, what)
	return done, p.db.failed(e, err)
}

func (e *engine) erased(ctx context.Context, what []activity.Redaction) (done bool, err error) {
	e.writing.Lock()
	defer e.writing.Unlock()
	var busy, pages, moved int64
	if err := e.conn.exec("PRAGMA busy_timeout = 0"); err != nil { // calls wait for the projector
		return false, err
	}
	err = e.conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &pages, &moved)
	if again := e.conn.exec("PRAGMA busy_timeout = 5000"); err == nil {
		err = again
	}
	if err != nil || busy != 0 {
		return false, err
	}
	err = e.conn.tx(ctx, func() error {
		for _, r := range what {
			e.conn.do("DELETE FROM activity_erasing WHERE id = ? AND at = ?", r.ID, r.At.Unix())
		}
		return nil
	})
	return err == nil, err
}

// GetStored returns the record with an id as it is stored.
func (p proofs) GetStored(ctx context.Context, id string) (activity.StoredRecord, error) {
	e, err := p.db.use(ctx)
	if err != nil {
		return activity.StoredRecord{}, err
	}
	e.mu.RLock()
	from, to := e.index.firstKey, e.index.nextKey
	e.mu.RUnlock()
	keys, err := find(ctx, e.reads, id, id, from, to)
	if err != nil {
		return activity.StoredRecord{}, err
	}
	if len(keys) == 0 {
		return activity.StoredRecord{}, noActivity(id)
	}
	return readStored(e.reads.QueryRowContext(ctx, selectStored, keys[0]))
}

// publishIndexed shows queries the text index that was made anew. The engine's mu is held.
func (x *index) publishIndexed(indexed map[int64][]segment) {
	for chunk, segments := range indexed {
		x.chunks[chunk-x.firstChunk].segments = slices.Clone(segments)
	}
}
