package store

import "context"

// pgRecordKey identifies a record. Records of different instances are sorted by order (the SQL
// column place).
type pgRecordKey struct {
	instance, key int64
	order         string
}

// pgInstanceRecords are the selected records of one instance, the newest first.
type pgInstanceRecords struct {
	instance int64
	chunks   []pgSelectedChunk // the newest first
	before   int64             // only keys below this one are left
	ready    []pgRecordKey
}

type pgSelectedChunk struct {
	first int64 // key
	words []uint64
}

// pgMergedRecords merges the selected records of all instances, the newest first.
type pgMergedRecords struct{ sources []*pgInstanceRecords }

// mergeInstanceRecords returns the selected records as pgMergedRecords. If before is not nil, they begin
// after that record.
func (v *pgSnapshot) mergeInstanceRecords(ctx context.Context, before *pgRecordKey) (*pgMergedRecords, error) {
	byInstance := map[int64]*pgInstanceRecords{}
	m := &pgMergedRecords{}
	for i := len(v.chunks) - 1; i >= 0; i-- {
		ch := &v.chunks[i]
		words := v.sel.chunkBits(int64(i))
		if allZero(words) {
			continue
		}
		s := byInstance[ch.instance]
		if s == nil {
			s = &pgInstanceRecords{instance: ch.instance, before: maxKey}
			byInstance[ch.instance], m.sources = s, append(m.sources, s)
		}
		s.chunks = append(s.chunks, pgSelectedChunk{ch.chunk * chunkSize, words})
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
		found, err := v.c.firstRow(ctx, scanTargets{&key}, "SELECT key FROM activity WHERE instance = $1 AND place < $2 ORDER BY place DESC, key DESC LIMIT 1", s.instance, before.order)
		if err != nil {
			return nil, err
		}
		if found {
			s.before = key + 1
		}
	}
	return m, nil
}

// takeKeys returns and removes up to n keys.
func (s *pgInstanceRecords) takeKeys(n int) (keys []int64) {
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

// skipKeys removes n keys.
func (s *pgInstanceRecords) skipKeys(n int64) {
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

// prefetchRecordKeys makes up to n records ready. A single instance needs no order, which saves a query.
func (s *pgInstanceRecords) prefetchRecordKeys(ctx context.Context, c *pgConn, n int, alone bool) error {
	for len(s.ready) == 0 && len(s.chunks) > 0 {
		keys := s.takeKeys(n)
		if alone {
			for _, key := range keys {
				s.ready = append(s.ready, pgRecordKey{s.instance, key, ""})
			}
			continue
		}
		k := pgRecordKey{instance: s.instance}
		if err := c.eachRow(ctx, scanTargets{&k.key, &k.order}, func() error { s.ready = append(s.ready, k); return nil },
			"SELECT key, place FROM activity WHERE instance = $1 AND key = ANY($2::bigint[]) ORDER BY key DESC", s.instance, pgIntArray(keys)); err != nil {
			return err
		}
	}
	return nil
}

// nextRecordKeys skips some records and returns up to n more.
func (m *pgMergedRecords) nextRecordKeys(ctx context.Context, c *pgConn, skip, n int) (out []pgRecordKey, err error) {
	if len(m.sources) == 1 {
		m.sources[0].skipKeys(int64(skip))
		skip = 0
	}
	for len(out) < n {
		var newest *pgInstanceRecords
		for _, s := range m.sources {
			if err := s.prefetchRecordKeys(ctx, c, min(skip+n, 4096), len(m.sources) == 1); err != nil {
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
