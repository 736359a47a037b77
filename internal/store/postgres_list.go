package store

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"slices"

	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// pgKey is a record. Between instances records are in the order of their places.
type pgKey struct {
	instance, key int64
	place         string
}

// pgSource is the selected records of one instance, the newest first.
type pgSource struct {
	instance int64
	chunks   []pgSourceChunk // the newest first
	before   int64           // the key of what was taken last
	ready    []pgKey
}

type pgSourceChunk struct {
	first int64 // key
	words []uint64
}

// pgMerge is the selected records of all instances, the newest first.
type pgMerge struct{ sources []*pgSource }

// merge makes a pgMerge of what is selected. before, when it is not nil, is the record
// behind which it begins.
func (v *pgView) merge(ctx context.Context, before *pgKey) (*pgMerge, error) {
	byInstance := map[int64]*pgSource{}
	m := &pgMerge{}
	for i := len(v.chunks) - 1; i >= 0; i-- {
		ch := &v.chunks[i]
		words := v.sel.chunk(int64(i))
		if none(words) {
			continue
		}
		s := byInstance[ch.instance]
		if s == nil {
			s = &pgSource{instance: ch.instance, before: noCursor}
			byInstance[ch.instance], m.sources = s, append(m.sources, s)
		}
		s.chunks = append(s.chunks, pgSourceChunk{ch.chunk * chunkSize, words})
	}
	if before == nil {
		return m, nil
	}
	for _, s := range m.sources {
		if s.before = before.key; s.instance == before.instance {
			continue
		}
		s.before = 0
		var key int64
		found, err := v.c.first(ctx, into{&key}, "SELECT key FROM activity WHERE instance = $1 AND place < $2 ORDER BY place DESC, key DESC LIMIT 1", s.instance, before.place)
		if err != nil {
			return nil, err
		}
		if found {
			s.before = key + 1
		}
	}
	return m, nil
}

// take returns up to n keys.
func (s *pgSource) take(n int) (keys []int64) {
	for len(s.chunks) > 0 && len(keys) < n {
		ch := s.chunks[0]
		more := false
		selection{words: ch.words}.each(min(s.before-ch.first, chunkSize), func(at int64) bool {
			if more = len(keys) == n; more {
				return false
			}
			keys = append(keys, ch.first+at)
			return true
		})
		if len(keys) > 0 {
			s.before = keys[len(keys)-1]
		}
		if !more {
			s.chunks = s.chunks[1:]
		}
	}
	return keys
}

// skip leaves n keys out.
func (s *pgSource) skip(n int64) {
	for len(s.chunks) > 0 && n > 0 {
		ch := s.chunks[0]
		if s.before >= ch.first+chunkSize {
			if all := (selection{words: ch.words}).count(); all <= n {
				n, s.chunks = n-all, s.chunks[1:]
				continue
			}
		}
		keys := s.take(int(min(n, chunkSize)))
		n -= int64(len(keys))
	}
}

// fill makes n records ready, as far as there are so many. Of one source alone the places
// need not be known.
func (s *pgSource) fill(ctx context.Context, c *pgConn, n int, alone bool) error {
	for len(s.ready) == 0 && len(s.chunks) > 0 {
		keys := s.take(n)
		if alone {
			for _, key := range keys {
				s.ready = append(s.ready, pgKey{s.instance, key, ""})
			}
			continue
		}
		k := pgKey{instance: s.instance}
		if err := c.each(ctx, into{&k.key, &k.place}, func() error { s.ready = append(s.ready, k); return nil },
			"SELECT key, place FROM activity WHERE instance = $1 AND key = ANY($2::bigint[]) ORDER BY key DESC", s.instance, pgIntegers(keys)); err != nil {
			return err
		}
	}
	return nil
}

// next returns the next records, up to n, but for those that are skipped.
func (m *pgMerge) next(ctx context.Context, c *pgConn, skip, n int) (out []pgKey, err error) {
	if len(m.sources) == 1 {
		m.sources[0].skip(int64(skip))
		skip = 0
	}
	for len(out) < n {
		var newest *pgSource
		for _, s := range m.sources {
			if err := s.fill(ctx, c, min(skip+n, 4096), len(m.sources) == 1); err != nil {
				return nil, err
			}
			if len(s.ready) > 0 && (newest == nil || s.ready[0].place > newest.ready[0].place) {
				newest = s
			}
		}
		if newest == nil {
			break
		}
		if skip--; skip < 0 {
			out = append(out, newest.ready[0])
		}
		newest.ready = newest.ready[1:]
	}
	return out, nil
}

// List returns the records that f selects.
func (db *Postgres) List(ctx context.Context, f activity.Filter) (page activity.RecordPage, err error) {
	before, err := decodePgCursor(f.Cursor)
	if err != nil {
		return page, err
	}
	if f.Search != "" {
		if err := db.indexText(ctx); err != nil {
			return page, err
		}
	}
	err = db.view(ctx, func(ctx context.Context, e *pgEngine, c *pgConn) error {
		v, err := newView(ctx, e, c, &f)
		if err != nil {
			return err
		}
		page.Total = v.sel.count()
		m, err := v.merge(ctx, before)
		if err != nil {
			return err
		}
		skip, limit := max(0, f.Offset), f.BoundedLimit()
		if before != nil {
			skip = 0
		}
		keys, err := m.next(ctx, c, skip, limit+1)
		if err != nil {
			return err
		}
		page.Records = make([]activity.Record, 0, len(keys))
		if len(keys) > limit {
			keys = keys[:limit]
			last := &keys[limit-1]
			if _, err := c.first(ctx, into{&last.place}, "SELECT place FROM activity WHERE instance = $1 AND key = $2", last.instance, last.key); err != nil {
				return err
			}
			page.NextCursor = last.cursor()
		}
		return c.eachStored(ctx, keys, func(_ int64, s *activity.StoredRecord) error {
			page.Records = append(page.Records, activity.DecodeForDisplay(s.Entry, s.Outcome))
			return nil
		})
	})
	return page, err
}

// eachStored calls fn for records, in the order of the keys, those that are there: with the
// place of each among the keys.
func (c *pgConn) eachStored(ctx context.Context, keys []pgKey, fn func(at int64, s *activity.StoredRecord) error) error {
	instances, numbers := make([]int64, len(keys)), make([]int64, len(keys))
	for i, k := range keys {
		instances[i], numbers[i] = k.instance, k.key
	}
	var s activity.StoredRecord
	var at int64
	var endSeq nullable
	return c.each(ctx, into{&at, &s.Seq, &s.Hash, &endSeq, &s.EndHash, &s.Entry, &s.Outcome}, func() error {
		one := s
		one.EndSeq = endSeq.int64
		return fn(at-1, &one)
	}, `SELECT k.n, a.seq, a.hash, a.end_seq, a.end_hash, a.entry, a.outcome
		FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS k(instance, key, n)
		JOIN activity a ON a.instance = k.instance AND a.key = k.key ORDER BY k.n`, pgIntegers(instances), pgIntegers(numbers))
}

// pgEachRecords is how many records Each reads at a time.
const pgEachRecords = 256

// EachRecord calls fn for every record that f selects when it is called, the newest first.
// What is selected are bits in memory; records are read some at a time, so that a slow
// fn holds up nothing.
func (db *Postgres) EachRecord(ctx context.Context, f activity.Filter, fn func(*activity.StoredRecord) error) error {
	return db.eachOf(ctx, f, false, fn)
}

// EachOwn is Each for the records of this instance.
func (db *Postgres) EachOwn(ctx context.Context, f activity.Filter, fn func(*activity.StoredRecord) error) error {
	return db.eachOf(ctx, f, true, fn)
}

func (db *Postgres) eachOf(ctx context.Context, f activity.Filter, own bool, fn func(*activity.StoredRecord) error) error {
	if f.Search != "" {
		if err := db.indexText(ctx); err != nil {
			return err
		}
	}
	var m *pgMerge
	err := db.view(ctx, func(ctx context.Context, e *pgEngine, c *pgConn) error {
		v, err := newView(ctx, e, c, &f)
		if err == nil {
			m, err = v.merge(ctx, nil)
		}
		if own && err == nil {
			m.sources = slices.DeleteFunc(m.sources, func(s *pgSource) bool { return s.instance != e.instance })
		}
		return err
	})
	for err == nil {
		var all []*activity.StoredRecord
		var keys []pgKey
		err = db.read(ctx, func(ctx context.Context, _ *pgEngine, c *pgConn) (err error) {
			if keys, err = m.next(ctx, c, 0, pgEachRecords); err != nil {
				return err
			}
			return c.eachStored(ctx, keys, func(_ int64, s *activity.StoredRecord) error { all = append(all, s); return nil })
		})
		if err != nil || len(keys) == 0 {
			return err
		}
		for _, s := range all {
			if err = fn(s); err != nil {
				return err
			}
		}
	}
	return err
}

// pgFound is a record with where it is.
type pgFound struct {
	pgKey
	activity.StoredRecord
}

// find returns at most two records whose ids are from low to high.
func (c *pgConn) find(ctx context.Context, low, high string) (out []pgFound, err error) {
	var r pgFound
	var endSeq nullable
	err = c.each(ctx, into{&r.instance, &r.key, &r.Seq, &r.Hash, &endSeq, &r.EndHash, &r.Entry, &r.Outcome}, func() error {
		r.EndSeq = endSeq.int64
		out = append(out, r)
		return nil
	}, "SELECT instance, key, seq, hash, end_seq, end_hash, entry, outcome FROM activity WHERE id >= $1 AND id <= $2 ORDER BY id LIMIT 2", low, high)
	return out, err
}

// Get returns the record whose id begins with prefix.
func (db *Postgres) Get(ctx context.Context, prefix string) (r activity.Record, err error) {
	low, high := idBounds(prefix)
	err = db.view(ctx, func(ctx context.Context, _ *pgEngine, c *pgConn) error {
		found, err := c.find(ctx, low, high)
		switch {
		case err != nil:
			return err
		case len(found) == 0:
			return noActivity(prefix)
		case len(found) > 1:
			return ambiguous(prefix)
		}
		r, err = found[0].chained(ctx, c)
		return err
	})
	return r, err
}

// chained returns the record with its place in the chain.
func (f *pgFound) chained(ctx context.Context, c *pgConn) (activity.Record, error) {
	r := activity.DecodeForDisplay(f.Entry, f.Outcome)
	r.Chain = &activity.Chain{Seq: f.Seq, Hash: hex.EncodeToString(f.Hash)}
	if f.EndHash != nil {
		r.Chain.EndSeq, r.Chain.EndHash = f.EndSeq, hex.EncodeToString(f.EndHash)
	}
	if f.Entry == nil {
		return r, nil
	}
	before, err := f.hashBefore(ctx, c)
	if err == nil && string(activity.HashPayloadAfter(before, f.Entry)) == string(f.Hash) {
		r.Chain.Previous = hex.EncodeToString(before)
	}
	return r, err
}

// pgHashNear finds the hash of an entry among so many records before one.
const pgHashNear = `SELECT CASE seq WHEN $2 THEN hash ELSE end_hash END FROM activity
	WHERE instance = $1 AND key < $3 AND key >= $3 - $4::bigint AND (seq = $2 AND hash IS NOT NULL OR end_seq = $2) ORDER BY key DESC LIMIT 1`

// hashBefore returns the hash of the entry before that which began the record; what is no
// hash when it is not there any more.
func (f *pgFound) hashBefore(ctx context.Context, c *pgConn) (hash []byte, err error) {
	before := f.Seq - 1
	if before == 0 {
		return make([]byte, len(activity.Hash{})), nil
	}
	for _, look := range []struct {
		query string
		args  []any
	}{
		// Mostly it is that of one of the next records, and so few are read at once however the server plans it.
		{pgHashNear, []any{f.instance, before, f.key, int64(64)}},
		{"SELECT hash FROM activity_checkpoint WHERE instance = $1 AND seq = $2", []any{f.instance, before}},
		{"SELECT hash FROM activity_gap WHERE instance = $1 AND seq = $2", []any{f.instance, before}},
		{pgHashNear, []any{f.instance, before, f.key, int64(100_000)}},
	} {
		if found, err := c.first(ctx, into{&hash}, look.query, look.args...); found || err != nil {
			return hash, err
		}
	}
	return nil, nil
}

// GetStored returns the record with an id as it is stored. It must be one of this instance,
// whose spool has it, too.
func (p pgProofs) GetStored(ctx context.Context, id string) (s activity.StoredRecord, err error) {
	err = p.db.read(ctx, func(ctx context.Context, e *pgEngine, c *pgConn) error {
		found, err := c.find(ctx, id, id)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return noActivity(id)
		}
		if s = found[0].StoredRecord; found[0].instance == e.instance {
			return nil
		}
		var name, host string
		if _, err := c.first(ctx, into{&name, &host}, "SELECT name, host FROM instance WHERE id = $1", found[0].instance); err != nil {
			return err
		}
		return problem.Newf(problem.Conflict, "Record %s was written by another instance, %s on %s, and is chained there.", id, name, host).
			WithHint("Ask that instance: it erases what its own files have of it, too.").With("instance", name)
	})
	return s, err
}

// A cursor is the last record of a page.
func (k *pgKey) cursor() string {
	data := binary.AppendUvarint(binary.AppendUvarint([]byte{'p'}, uint64(k.instance)), uint64(k.key))
	return base64.RawURLEncoding.EncodeToString(append(data, k.place...))
}

func decodePgCursor(s string) (*pgKey, error) {
	if s == "" {
		return nil, nil
	}
	data, err := base64.RawURLEncoding.DecodeString(s)
	if err == nil && len(data) > 1 && data[0] == 'p' {
		instance, n := binary.Uvarint(data[1:])
		if n > 0 && instance < 1<<31 {
			key, m := binary.Uvarint(data[1+n:])
			if place := string(data[min(len(data), 1+n+max(0, m)):]); m > 0 && key < uint64(noCursor) && activity.IsIDPrefix(place) {
				return &pgKey{int64(instance), int64(key), place}, nil
			}
		}
	}
	return nil, badCursor(s)
}

// Summary counts what q selects, by columns alone.
func (db *Postgres) Summary(ctx context.Context, in activity.SummaryQuery) (activity.Summary, error) {
	if in.Search != "" {
		if err := db.indexText(ctx); err != nil {
			return activity.Summary{}, err
		}
	}
	by := groupFields[in.Group]
	s := newSummary(&in, by)
	err := db.view(ctx, func(ctx context.Context, e *pgEngine, c *pgConn) error {
		v, err := newView(ctx, e, c, &in.Filter, slices.Concat(counted, []field{fieldIntent, fieldError, fieldDuration, fieldOwn}, by)...)
		if err != nil {
			return err
		}
		if s.times, err = v.times(ctx, in.Times); err != nil {
			return err
		}
		if s.Cut, err = v.eachBlock(ctx, in.Most, s.add); err != nil {
			return err
		}
		s.finish()
		s.Groups = []activity.Tally{}
		groups := s.most()
		places := make([]int64, len(groups))
		for i, g := range groups {
			places[i] = g.key
		}
		return v.records(ctx, places, func(at int64, r *activity.Record) {
			s.Groups = append(s.Groups, groups[at].tally(in.Group, r))
		})
	})
	return s.Summary, err
}

// records calls fn for the records of places that are there, in their order: with the number
// of each.
func (v *pgView) records(ctx context.Context, places []int64, fn func(at int64, r *activity.Record)) error {
	keys := make([]pgKey, len(places))
	for i, place := range places {
		keys[i].instance, keys[i].key = v.key(place)
	}
	return v.c.eachStored(ctx, keys, func(at int64, s *activity.StoredRecord) error {
		r := activity.DecodeForDisplay(s.Entry, s.Outcome)
		fn(at, &r)
		return nil
	})
}

// times finds the places of records by their id.
func (v *pgView) times(ctx context.Context, byID map[string]int64) (map[int64]int64, error) {
	times := map[int64]int64{}
	var ids []string
	for id := range byID {
		ids = append(ids, id)
	}
	var id string
	var instance, key int64
	return times, v.c.each(ctx, into{&id, &instance, &key}, func() error {
		if place, ok := v.place(instance, key); ok {
			times[place] = byID[id]
		}
		return nil
	}, "SELECT id, instance, key FROM activity WHERE id = ANY($1::text[])", pgTexts(ids))
}

// Sessions returns the sessions that have records in a time.
func (db *Postgres) Sessions(ctx context.Context, in activity.SessionQuery) (page activity.SessionPage, err error) {
	err = db.view(ctx, func(ctx context.Context, e *pgEngine, c *pgConn) error {
		v, err := newView(ctx, e, c, &activity.Filter{Since: in.Since, Until: in.Until}, append([]field{fieldSession}, counted...)...)
		if err != nil {
			return err
		}
		times, err := v.times(ctx, in.Times)
		if err != nil {
			return err
		}
		t := sessionTally{times: times, byID: map[uint64]*sessionCount{}}
		if page.Cut, err = v.eachBlock(ctx, in.Most, t.add); err != nil {
			return err
		}
		page.Total, page.Sessions = int64(len(t.all)), []activity.Session{}
		sessions := t.page(&in)
		places := make([]int64, len(sessions))
		for i, s := range sessions {
			places[i] = s.key
		}
		return v.records(ctx, places, func(at int64, r *activity.Record) {
			page.Sessions = append(page.Sessions, sessions[at].session(r))
		})
	})
	return page, err
}
