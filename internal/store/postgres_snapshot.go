package store

import (
	"context"
	"database/sql"
	"maps"
	"slices"
	"strconv"
	"strings"

	"mcpproxy/internal/store/activity"
)

// newPgSnapshot finds out which records exist, and selects those that f selects. It ignores the paging fields of f.
func newPgSnapshot(ctx context.Context, c *pgConn, f *activity.Filter, columns []columnField) (*recordSnapshot, error) {
	const windowChunks = 32
	v := &recordSnapshot{db: c, columns: columns, window: windowChunks}
	f = cleanPgFilter(f)
	needed := append(slices.Clone(columns), fieldTime)
	for _, w := range fieldConditions(f) {
		needed = append(needed, w.field)
	}
	chunks, err := readPgChunks(ctx, c)
	if err != nil {
		return nil, err
	}
	chunks, keys, err := readPgTails(ctx, c, chunks, needed)
	if err != nil {
		return nil, err
	}
	v.setChunks(orderChunks(chunks))
	if err := selectAllPgRecords(ctx, c, v, keys); err != nil {
		return nil, err
	}
	return v, v.filter(ctx, f)
}

// cleanPgFilter returns the filter with its texts in the form in which PostgreSQL stores them.
func cleanPgFilter(f *activity.Filter) *activity.Filter {
	out := *f
	out.SessionID, out.RequestID = cleanPgText(f.SessionID), cleanPgText(f.RequestID)
	for _, list := range []*[]string{&out.Servers, &out.Tools, &out.IntentTypes, &out.Sensitivities, &out.Actors, &out.Clients} {
		*list = slices.Clone(*list)
		for i, s := range *list {
			(*list)[i] = cleanPgText(s)
		}
	}
	return &out
}

func readPgChunks(ctx context.Context, c *pgConn) (chunks []snapshotChunk, err error) {
	var ch snapshotChunk
	err = c.eachRow(ctx, scanTargets{&ch.instance, &ch.chunk, &ch.minTime, &ch.maxTime, &ch.indexed}, func() error {
		chunks = append(chunks, ch)
		return nil
	}, "SELECT instance, chunk, min_time, max_time, indexed FROM activity_chunk ORDER BY instance, chunk")
	return chunks, err
}

// readPgTails appends chunks with the records that are not in a chunk of the database yet. It also returns which of
// their keys exist.
func readPgTails(ctx context.Context, c *pgConn, chunks []snapshotChunk, needed []columnField) ([]snapshotChunk, map[chunkID]*bitmap, error) {
	slices.Sort(needed)
	values := pgFieldReader{fields: slices.Compact(needed)}
	list, to := values.selectList()
	list = strings.ReplaceAll(list, ", ", ", a.")
	hashes, keys := hashCache{}, map[chunkID]*bitmap{}
	var instance, key int64
	err := c.eachRow(ctx, append(scanTargets{&instance, &key}, to...), func() error {
		id := chunkID{instance, key / chunkSize}
		if keys[id] == nil {
			keys[id] = &bitmap{}
			chunks = append(chunks, snapshotChunk{chunkID: id, minTime: 1 << 62, maxTime: -1 << 62, tail: &[fieldCount + 1][]uint64{}})
			for _, f := range values.fields {
				chunks[len(chunks)-1].tail[f] = make([]uint64, chunkSize)
			}
		}
		keys[id][key%chunkSize/64] |= 1 << (key % 64)
		ch := &chunks[len(chunks)-1]
		for _, f := range values.fields {
			ch.tail[f][key%chunkSize] = values.value(hashes, f)
		}
		ch.minTime, ch.maxTime = min(ch.minTime, values.numbers[fieldTime]), max(ch.maxTime, values.numbers[fieldTime])
		return nil
	}, "SELECT a.instance, a.key"+list+" FROM instance i JOIN activity a ON a.instance = i.id AND a.key >= i.sealed * "+strconv.Itoa(chunkSize)+" ORDER BY a.instance, a.key")
	return chunks, keys, err
}

// orderChunks sorts the chunks of all instances into one list.
func orderChunks(chunks []snapshotChunk) []snapshotChunk {
	byInstance := map[int64][]snapshotChunk{}
	var instances []int64
	for _, ch := range chunks {
		if byInstance[ch.instance] == nil {
			instances = append(instances, ch.instance)
		}
		byInstance[ch.instance] = append(byInstance[ch.instance], ch)
	}
	slices.Sort(instances)
	ordered := make([]snapshotChunk, 0, len(chunks))
	for {
		next, found := int64(0), false
		for _, i := range instances {
			if rest := byInstance[i]; len(rest) > 0 && (!found || rest[0].maxTime < byInstance[next][0].maxTime) {
				next, found = i, true
			}
		}
		if !found {
			return ordered
		}
		ordered = append(ordered, byInstance[next][0])
		byInstance[next] = byInstance[next][1:]
	}
}

// selectAllPgRecords selects all existing records. keys contains the existing keys of the tails.
func selectAllPgRecords(ctx context.Context, c *pgConn, v *recordSnapshot, keys map[chunkID]*bitmap) error {
	v.sel = recordSelection{words: make([]uint64, len(v.chunks)*chunkWords)}
	for i, ch := range v.chunks {
		words := v.sel.chunkBits(int64(i))
		if there := keys[ch.chunkID]; there != nil {
			copy(words, there[:])
			continue
		}
		for j := range words {
			words[j] = ^uint64(0)
		}
	}
	var id chunkID
	var key int64
	if err := c.eachRow(ctx, scanTargets{&id.instance, &key}, func() error {
		id.chunk = key / chunkSize
		retainBits(v.chunkBits(id), func(at int) bool { return int64(at) >= key%chunkSize })
		return nil
	}, "SELECT id, first_key FROM instance"); err != nil {
		return err
	}
	var data []byte
	return c.eachRow(ctx, scanTargets{&id.instance, &id.chunk, &data}, func() error {
		gone, err := decodeBitmap(data)
		if err != nil || gone == nil {
			return err
		}
		for j, w := range v.chunkBits(id) {
			v.chunkBits(id)[j] = w &^ gone[j]
		}
		return nil
	}, "SELECT instance, chunk, gone FROM activity_chunk WHERE gone IS NOT NULL")
}

// pgInRanges is the part of a statement that reads ranges of chunks. The ranges are the first three values of the
// statement.
const pgInRanges = " unnest($1::bigint[], $2::bigint[], $3::bigint[]) WITH ORDINALITY AS r(instance, low, high, n) "

func pgRangeArgs(ranges []chunkRange) []any {
	var instances, from, past []int64
	for _, r := range ranges {
		instances, from, past = append(instances, r.instance), append(from, r.from), append(past, r.past)
	}
	return []any{pgIntArray(instances), pgIntArray(from), pgIntArray(past)}
}

func (c *pgConn) eachColumn(ctx context.Context, ranges []chunkRange, of []columnField, fn func(n int, f columnField, id chunkID, data []byte) error) error {
	numbers := make([]int64, len(of))
	for i, f := range of {
		numbers[i] = int64(f)
	}
	var n, f int64
	var id chunkID
	var data sql.RawBytes
	return c.eachRow(ctx, scanTargets{&n, &f, &id.instance, &id.chunk, &data}, func() error { return fn(int(n)-1, columnField(f), id, data) },
		// OFFSET 0 makes the server read range by range, and look up the columns field by field, in their order on the
		// disk.
		"SELECT r.n, c.field, r.instance, c.chunk, c.data FROM"+pgInRanges+`CROSS JOIN LATERAL (
		SELECT f.field, d.chunk, d.data FROM unnest($4::bigint[]) AS f(field) CROSS JOIN LATERAL (
			SELECT chunk, data FROM activity_column WHERE field = f.field AND instance = r.instance AND chunk >= r.low AND chunk < r.high OFFSET 0
		) d OFFSET 0) c`,
		append(pgRangeArgs(ranges), pgIntArray(numbers))...)
}

func (c *pgConn) eachPage(ctx context.Context, ranges []chunkRange, t searchTerm, fn func(s segmentID, data []byte) error) error {
	var s segmentID
	var data sql.RawBytes
	return c.eachRow(ctx, scanTargets{&s.instance, &s.segment, &data}, func() error { return fn(s, data) },
		"SELECT s.instance, s.segment, t.data FROM"+pgInRanges+`JOIN activity_segment s
		ON s.instance = r.instance AND s.segment >= r.low * 1024 AND s.segment < r.high * 1024
		LEFT JOIN LATERAL (SELECT t.data FROM activity_text t WHERE t.instance = s.instance AND t.segment = s.segment AND t.first <= $4
			ORDER BY t.first DESC LIMIT 1) t ON true`, append(pgRangeArgs(ranges), []byte(t.word))...)
}

func (c *pgConn) eachFurtherPage(ctx context.Context, segments []segmentID, t searchTerm, fn func(s segmentID, data []byte) error) error {
	instances, numbers := make([]int64, len(segments)), make([]int64, len(segments))
	for i, s := range segments {
		instances[i], numbers[i] = s.instance, s.segment
	}
	var s segmentID
	var data sql.RawBytes
	return c.eachRow(ctx, scanTargets{&s.instance, &s.segment, &data}, func() error { return fn(s, data) },
		`SELECT s.instance, s.segment, t.data FROM unnest($1::bigint[], $2::bigint[]) AS s(instance, segment)
		CROSS JOIN LATERAL (SELECT data FROM activity_text WHERE instance = s.instance AND segment = s.segment AND first > $3 AND first < $4 OFFSET 0) t`,
		pgIntArray(instances), pgIntArray(numbers), []byte(t.word), t.prefixEnd())
}

func (c *pgConn) eachKeyOfID(ctx context.Context, ids map[string]int64, fn func(id string, k recordKey)) error {
	var id string
	var k recordKey
	return c.eachRow(ctx, scanTargets{&id, &k.instance, &k.key}, func() error { fn(id, k); return nil },
		"SELECT id, instance, key FROM activity WHERE id = ANY($1::text[])", pgTextArray(slices.Collect(maps.Keys(ids))))
}

func (c *pgConn) keysInIDRange(ctx context.Context, low, high string) (found []recordKey, err error) {
	var k recordKey
	err = c.eachRow(ctx, scanTargets{&k.instance, &k.key}, func() error { found = append(found, k); return nil },
		"SELECT instance, key FROM activity WHERE id >= $1 AND id <= $2 ORDER BY id LIMIT 2", low, high)
	return found, err
}
