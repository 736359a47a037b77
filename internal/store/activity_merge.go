package store

import "context"

// recordKey identifies a record. The field order, the SQL column place, determines the order of records of different
// instances. SQLite has only one instance and no such column.
type recordKey struct {
	instance, key int64
	order         string
}

// instanceRecords contains the selected records of one instance, newest first.
type instanceRecords struct {
	instance int64
	chunks   []chunkKeys // newest first
	before   int64       // only keys below this one remain
	ready    []recordKey
}

type chunkKeys struct {
	first int64 // first key of the chunk
	words []uint64
}

// mergedRecords merges the selected records of all instances, newest first.
type mergedRecords struct{ sources []*instanceRecords }

// mergeInstanceRecords returns the selected records as mergedRecords. If before is not nil, the result contains only
// older records than before.
func (v *recordSnapshot) mergeInstanceRecords(ctx context.Context, before *recordKey) (*mergedRecords, error) {
	byInstance := map[int64]*instanceRecords{}
	m := &mergedRecords{}
	for i := len(v.chunks) - 1; i >= 0; i-- {
		ch := &v.chunks[i]
		words := v.sel.chunkBits(int64(i))
		if allZero(words) {
			continue
		}
		s := byInstance[ch.instance]
		if s == nil {
			s = &instanceRecords{instance: ch.instance, before: maxKey}
			byInstance[ch.instance], m.sources = s, append(m.sources, s)
		}
		s.chunks = append(s.chunks, chunkKeys{ch.chunk * chunkSize, words})
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
		found, err := v.db.ofInstance(s.instance).firstRow(ctx, scanTargets{&key}, "SELECT key FROM activity WHERE instance = @instance AND place < ? ORDER BY place DESC, key DESC LIMIT 1", before.order)
		if err != nil {
			return nil, err
		}
		if found {
			s.before = key + 1
		}
	}
	return m, nil
}

// takeKeys removes up to n keys, newest first, and returns them.
func (s *instanceRecords) takeKeys(n int) (keys []int64) {
	for len(s.chunks) > 0 && len(keys) < n {
		ch := s.chunks[0]
		more := false
		recordSelection{words: ch.words}.eachNewestFirst(min(s.before-ch.first, chunkSize), func(at int64) bool {
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

// skipKeys removes the n newest keys.
func (s *instanceRecords) skipKeys(n int64) {
	for len(s.chunks) > 0 && n > 0 {
		ch := s.chunks[0]
		if s.before >= ch.first+chunkSize {
			if all := (recordSelection{words: ch.words}).count(); all <= n {
				n, s.chunks = n-all, s.chunks[1:]
				continue
			}
		}
		keys := s.takeKeys(int(min(n, chunkSize)))
		n -= int64(len(keys))
	}
}

// prefetchRecordKeys adds up to n records to ready. If the instance is alone, the order is not needed, which saves a
// query.
func (s *instanceRecords) prefetchRecordKeys(ctx context.Context, r sqlReader, n int, alone bool) error {
	for len(s.ready) == 0 && len(s.chunks) > 0 {
		keys := s.takeKeys(n)
		if alone {
			for _, key := range keys {
				s.ready = append(s.ready, recordKey{s.instance, key, ""})
			}
			continue
		}
		k := recordKey{instance: s.instance}
		if err := r.ofInstance(s.instance).eachRow(ctx, scanTargets{&k.key, &k.order}, func() error { s.ready = append(s.ready, k); return nil },
			"SELECT key, place FROM activity WHERE instance = @instance AND key = ANY(?::bigint[]) ORDER BY key DESC", pgIntArray(keys)); err != nil {
			return err
		}
	}
	return nil
}

// nextRecordKeys skips some records and returns up to n of the following ones.
func (m *mergedRecords) nextRecordKeys(ctx context.Context, r sqlReader, skip, n int) (out []recordKey, err error) {
	if len(m.sources) == 1 {
		m.sources[0].skipKeys(int64(skip))
		skip = 0
	}
	for len(out) < n {
		var newest *instanceRecords
		for _, s := range m.sources {
			if err := s.prefetchRecordKeys(ctx, r, min(skip+n, 4096), len(m.sources) == 1); err != nil {
				return nil, err
			}
			if len(s.ready) > 0 && (newest == nil || s.ready[0].order > newest.ready[0].order) {
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
