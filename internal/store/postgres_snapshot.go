package store

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strconv"
	"strings"

	"mcpproxy/internal/store/activity"
)

// pgSnapshot is the records of all instances at one time. Their chunks are in one list: those of an
// instance in their order, those of different instances by time. The position of a record is 1,024
// times the index of its chunk in the list plus its index in the chunk. A query selects positions,
// with one bit for each, and reads one small row for each chunk and field.
type pgSnapshot struct {
	e       *pgEngine
	c       *pgConn
	chunks  []pgChunk
	at      map[pgChunkID]int
	sel     recordSelection
	columns []columnField // columns that eachSelectedChunk reads, in addition to the time
}

type pgChunkID struct{ instance, chunk int64 }

// pgChunk is a chunk of a snapshot. A chunk that has no columns in the database has them in tail.
type pgChunk struct {
	pgChunkID
	minTime, maxTime int64
	indexed          bool
	tail             *[fieldCount + 1][]uint64
}

// newPgSnapshot reads which records exist, and selects those that f selects, without its page.
func newPgSnapshot(ctx context.Context, e *pgEngine, c *pgConn, f *activity.Filter, columns ...columnField) (*pgSnapshot, error) {
	v := &pgSnapshot{e: e, c: c, at: map[pgChunkID]int{}, columns: columns}
	w := fieldConditions(cleanPgFilter(f))
	need := slices.Clone(columns)
	for _, one := range w {
		need = append(need, one.field)
	}
	if err := v.readChunks(ctx); err != nil {
		return nil, err
	}
	first, keys, err := v.readTails(ctx, append(need, fieldTime))
	if err != nil {
		return nil, err
	}
	v.orderChunks()
	v.selectAllRecords(first, keys)
	if err := v.deselectDeleted(ctx); err != nil {
		return nil, err
	}
	for _, one := range w {
		if err := v.filterField(ctx, one); err != nil {
			return nil, err
		}
	}
	if err := v.filterTime(ctx, f); err != nil {
		return nil, err
	}
	words := parseSearchTerms(f.Search)
	if len(words) == 0 && strings.TrimSpace(f.Search) != "" { // a search without a word finds nothing
		clear(v.sel.words)
	}
	return v, v.filterText(ctx, words)
}

// cleanPgFilter returns a filter with the texts as PostgreSQL stores them.
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

func (v *pgSnapshot) readChunks(ctx context.Context) error {
	var ch pgChunk
	return v.c.eachRow(ctx, scanTargets{&ch.instance, &ch.chunk, &ch.minTime, &ch.maxTime, &ch.indexed}, func() error {
		v.chunks = append(v.chunks, ch)
		return nil
	}, "SELECT instance, chunk, min_time, max_time, indexed FROM activity_chunk ORDER BY instance, chunk")
}

// readTails reads the records that are in no chunk of the database, and makes chunks of them. It
// returns the first key of each instance, and which keys of the tails exist.
func (v *pgSnapshot) readTails(ctx context.Context, need []columnField) (first map[int64]int64, keys map[pgChunkID]*bitmap, err error) {
	first, keys = map[int64]int64{}, map[pgChunkID]*bitmap{}
	var instance, key int64
	if err := v.c.eachRow(ctx, scanTargets{&instance, &key}, func() error { first[instance] = key; return nil }, "SELECT id, first_key FROM instance"); err != nil {
		return nil, nil, err
	}
	slices.Sort(need)
	values := pgFieldReader{fields: slices.Compact(need)}
	list, to := values.selectList()
	list = strings.ReplaceAll(list, ", ", ", a.")
	hashes := hashCache{}
	err = v.c.eachRow(ctx, append(scanTargets{&instance, &key}, to...), func() error {
		id := pgChunkID{instance, key / chunkSize}
		at, there := v.at[id]
		if !there {
			at = len(v.chunks)
			v.at[id], keys[id] = at, &bitmap{}
			v.chunks = append(v.chunks, pgChunk{pgChunkID: id, minTime: 1 << 62, maxTime: -1 << 62, tail: &[fieldCount + 1][]uint64{}})
			for _, f := range values.fields {
				v.chunks[at].tail[f] = make([]uint64, chunkSize)
			}
		}
		keys[id][key%chunkSize/64] |= 1 << (key % 64)
		ch := &v.chunks[at]
		for _, f := range values.fields {
			ch.tail[f][key%chunkSize] = values.value(hashes, f)
		}
		ch.minTime, ch.maxTime = min(ch.minTime, values.numbers[fieldTime]), max(ch.maxTime, values.numbers[fieldTime])
		return nil
	}, "SELECT a.instance, a.key"+list+" FROM instance i JOIN activity a ON a.instance = i.id AND a.key >= i.sealed * "+strconv.Itoa(chunkSize)+" ORDER BY a.instance, a.key")
	return first, keys, err
}

// orderChunks sorts the chunks of all instances into one list.
func (v *pgSnapshot) orderChunks() {
	byInstance := map[int64][]pgChunk{}
	var instances []int64
	for _, ch := range v.chunks {
		if byInstance[ch.instance] == nil {
			instances = append(instances, ch.instance)
		}
		byInstance[ch.instance] = append(byInstance[ch.instance], ch)
	}
	slices.Sort(instances)
	v.chunks = make([]pgChunk, 0, len(v.chunks))
	for {
		next, found := int64(0), false
		for _, i := range instances {
			if rest := byInstance[i]; len(rest) > 0 && (!found || rest[0].maxTime < byInstance[next][0].maxTime) {
				next, found = i, true
			}
		}
		if !found {
			break
		}
		v.chunks = append(v.chunks, byInstance[next][0])
		byInstance[next] = byInstance[next][1:]
	}
	for i, ch := range v.chunks {
		v.at[ch.pgChunkID] = i
	}
}

// selectAllRecords selects all existing records.
func (v *pgSnapshot) selectAllRecords(first map[int64]int64, keys map[pgChunkID]*bitmap) {
	v.sel = recordSelection{words: make([]uint64, len(v.chunks)*chunkWords)}
	for i, ch := range v.chunks {
		words := v.sel.chunkBits(int64(i))
		if there := keys[ch.pgChunkID]; there != nil {
			copy(words, there[:])
		} else {
			for j := range words {
				words[j] = ^uint64(0)
			}
		}
		if from := first[ch.instance] - ch.chunk*chunkSize; from > 0 {
			retainBits(words, func(at int) bool { return int64(at) >= from })
		}
	}
}

func (v *pgSnapshot) deselectDeleted(ctx context.Context) error {
	var id pgChunkID
	var data []byte
	return v.c.eachRow(ctx, scanTargets{&id.instance, &id.chunk, &data}, func() error {
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

// chunkBits returns the bits of a chunk, nil if the snapshot does not have it.
func (v *pgSnapshot) chunkBits(id pgChunkID) []uint64 {
	at, there := v.at[id]
	if !there {
		return nil
	}
	return v.sel.chunkBits(int64(at))
}

// keyAt returns the instance and key of the record at a position.
func (v *pgSnapshot) keyAt(place int64) (instance, key int64) {
	ch := &v.chunks[place/chunkSize]
	return ch.instance, ch.chunk*chunkSize + place%chunkSize
}

// positionOf returns the position of a record; ok is false if the snapshot does not have it.
func (v *pgSnapshot) positionOf(instance, key int64) (place int64, ok bool) {
	at, ok := v.at[pgChunkID{instance, key / chunkSize}]
	return int64(at)*chunkSize + key%chunkSize, ok
}

// pgChunkRanges are ranges of chunks, one for each instance. They are the first three values of a
// statement with pgInRanges.
type pgChunkRanges struct{ instances, from, past []int64 }

const pgInRanges = " unnest($1::bigint[], $2::bigint[], $3::bigint[]) WITH ORDINALITY AS r(instance, low, high, n) "

func (r *pgChunkRanges) args() []any {
	return []any{pgIntArray(r.instances), pgIntArray(r.from), pgIntArray(r.past)}
}

// selectedChunkRanges returns the ranges of stored chunks that have selected records and for which want
// returns true.
func (v *pgSnapshot) selectedChunkRanges(chunks []pgChunk, want func(*pgChunk) bool) *pgChunkRanges {
	r := &pgChunkRanges{}
	at := map[int64]int{}
	for i := range chunks {
		ch := &chunks[i]
		if ch.tail != nil || allZero(v.chunkBits(ch.pgChunkID)) || !want(ch) {
			continue
		}
		n, there := at[ch.instance]
		if !there {
			at[ch.instance] = len(r.instances)
			r.instances, r.from, r.past = append(r.instances, ch.instance), append(r.from, ch.chunk), append(r.past, ch.chunk+1)
			continue
		}
		r.from[n], r.past[n] = min(r.from[n], ch.chunk), max(r.past[n], ch.chunk+1)
	}
	return r
}

func acceptAnyChunk(*pgChunk) bool { return true }

// eachColumn calls fn for the columns of fields in ranges: range by range, with the index of the
// range.
func (v *pgSnapshot) eachColumn(ctx context.Context, r *pgChunkRanges, of []columnField, fn func(n int, f columnField, id pgChunkID, data []byte) error) error {
	if len(r.instances) == 0 {
		return nil
	}
	numbers := make([]int64, len(of))
	for i, f := range of {
		numbers[i] = int64(f)
	}
	var n, f int64
	var id pgChunkID
	var data sql.RawBytes
	return v.c.eachRow(ctx, scanTargets{&n, &f, &id.instance, &id.chunk, &data}, func() error { return fn(int(n)-1, columnField(f), id, data) },
		// OFFSET 0 makes the server read range by range and look up the columns of each field by
		// field, in their order on the disk.
		"SELECT r.n, c.field, r.instance, c.chunk, c.data FROM"+pgInRanges+`CROSS JOIN LATERAL (
		SELECT f.field, d.chunk, d.data FROM unnest($4::bigint[]) AS f(field) CROSS JOIN LATERAL (
			SELECT chunk, data FROM activity_column WHERE field = f.field AND instance = r.instance AND chunk >= r.low AND chunk < r.high OFFSET 0
		) d OFFSET 0) c`,
		append(r.args(), pgIntArray(numbers))...)
}

// filterField deselects the records that have none of the wanted values.
func (v *pgSnapshot) filterField(ctx context.Context, w fieldCondition) error {
	for i := range v.chunks {
		if t := v.chunks[i].tail; t != nil {
			retainBits(v.sel.chunkBits(int64(i)), func(at int) bool { return slices.Contains(w.hashes, t[w.field][at]) })
		}
	}
	return v.eachColumn(ctx, v.selectedChunkRanges(v.chunks, acceptAnyChunk), []columnField{w.field}, func(_ int, _ columnField, id pgChunkID, data []byte) error {
		words := v.chunkBits(id)
		if allZero(words) {
			return nil
		}
		c, err := parseColumn(data)
		if err == nil {
			c.deselectUnwantedRecords(w.hashes, words)
		}
		return err
	})
}

// filterTime deselects the records outside the time range of a filter.
func (v *pgSnapshot) filterTime(ctx context.Context, f *activity.Filter) error {
	since, until := timeBounds(f.Since, f.Until)
	in := func(t int64) bool { return since <= t && t < until }
	partly := func(ch *pgChunk) bool { return !in(ch.minTime) || !in(ch.maxTime) }
	for i := range v.chunks {
		ch := &v.chunks[i]
		switch words := v.sel.chunkBits(int64(i)); {
		case ch.maxTime < since || ch.minTime >= until:
			clear(words)
		case ch.tail != nil:
			retainBits(words, func(at int) bool { return in(int64(ch.tail[fieldTime][at])) })
		}
	}
	return v.eachColumn(ctx, v.selectedChunkRanges(v.chunks, partly), []columnField{fieldTime}, func(_ int, _ columnField, id pgChunkID, data []byte) error {
		words := v.chunkBits(id)
		if allZero(words) {
			return nil
		}
		times, err := decodeColumn(data)
		if err == nil {
			retainBits(words, func(at int) bool { return in(int64(times[at])) })
		}
		return err
	})
}

// filterText deselects the records that do not have all words.
func (v *pgSnapshot) filterText(ctx context.Context, words []searchTerm) error {
	if len(words) == 0 {
		return nil
	}
	for _, w := range words {
		if err := v.filterTerm(ctx, w); err != nil {
			return err
		}
	}
	m := newRecordMatcher(words)
	for i := range v.chunks {
		if v.chunks[i].indexed || allZero(v.sel.chunkBits(int64(i))) {
			continue
		}
		if err := v.scanUnindexed(ctx, m, &v.chunks[i]); err != nil {
			return err
		}
	}
	return nil
}

// pgPagesOfWord selects the page of each segment that can have a word, or the first words with a
// prefix. pgPagesOfPrefix selects the later pages of segments that can have more words with the
// prefix.
const (
	pgPagesOfWord = "SELECT s.instance, s.segment, t.data FROM" + pgInRanges + `JOIN activity_segment s
		ON s.instance = r.instance AND s.segment >= r.low * 1024 AND s.segment < r.high * 1024
		LEFT JOIN LATERAL (SELECT t.data FROM activity_text t WHERE t.instance = s.instance AND t.segment = s.segment AND t.first <= $4
			ORDER BY t.first DESC LIMIT 1) t ON true`
	pgPagesOfPrefix = `SELECT s.instance, s.segment, t.data FROM unnest($1::bigint[], $2::bigint[]) AS s(instance, segment)
		CROSS JOIN LATERAL (SELECT data FROM activity_text WHERE instance = s.instance AND segment = s.segment AND first > $3 AND first < $4 OFFSET 0) t`
)

// filterTerm deselects the records of indexed chunks that do not have a term.
func (v *pgSnapshot) filterTerm(ctx context.Context, w searchTerm) error {
	r := v.selectedChunkRanges(v.chunks, func(ch *pgChunk) bool { return ch.indexed })
	if len(r.instances) == 0 {
		return nil
	}
	have := recordSelection{words: make([]uint64, len(v.sel.words))}
	var instances, segments []int64 // whose later pages can have more
	pages := func(query string, args ...any) error {
		var instance, segment int64
		var data sql.RawBytes
		return v.c.eachRow(ctx, scanTargets{&instance, &segment, &data}, func() error {
			at, there := v.at[pgChunkID{instance, segment / chunkSize}]
			if !there {
				return nil
			}
			more, err := w.markRecordsOfPage(data, have.chunkBits(int64(at)))
			if more {
				instances, segments = append(instances, instance), append(segments, segment)
			}
			return err
		}, query, args...)
	}
	err := pages(pgPagesOfWord, append(r.args(), []byte(w.word))...)
	if err == nil && len(segments) > 0 {
		err = pages(pgPagesOfPrefix, pgIntArray(instances), pgIntArray(segments), []byte(w.word), w.prefixEnd())
	}
	for i := range v.chunks {
		if v.chunks[i].indexed {
			words := v.sel.chunkBits(int64(i))
			for j, bits := range have.chunkBits(int64(i)) {
				words[j] &= bits
			}
		}
	}
	return err
}

// scanUnindexed reads the selected records of a chunk without a text index and deselects those that
// do not match.
func (v *pgSnapshot) scanUnindexed(ctx context.Context, m *recordMatcher, ch *pgChunk) error {
	var key int64
	var entry, outcome sql.RawBytes
	words := v.chunkBits(ch.pgChunkID)
	return v.c.eachRow(ctx, scanTargets{&key, &entry, &outcome}, func() error {
		if at := key % chunkSize; words[at/64]&(1<<(at%64)) != 0 && !m.matches(entry, outcome) {
			words[at/64] &^= 1 << (at % 64)
		}
		return nil
	}, "SELECT key, entry, outcome FROM activity WHERE instance = $1 AND key >= $2 AND key < $3", ch.instance, ch.chunk*chunkSize, (ch.chunk+1)*chunkSize)
}

// pgBatchChunks is how many chunks eachSelectedChunk counts at a time.
const pgBatchChunks = 32

// eachSelectedChunk reads all columns with one statement: the server reads the next ones while fn counts.
func (v *pgSnapshot) eachSelectedChunk(ctx context.Context, most int64, fn func(*selectedChunk)) (cut bool, err error) {
	b := pgChunkWindow{v: v, blocks: make([]selectedChunk, pgBatchChunks), most: most, fn: fn, past: len(v.chunks)}
	ranges, past := &pgChunkRanges{}, []int{}
	for selected, to := int64(0), len(v.chunks); to > 0 && selected <= most; to = max(0, to-pgBatchChunks) {
		from := max(0, to-pgBatchChunks)
		more := v.selectedChunkRanges(v.chunks[from:to], acceptAnyChunk)
		ranges.instances, ranges.from, ranges.past = append(ranges.instances, more.instances...), append(ranges.from, more.from...), append(ranges.past, more.past...)
		for range more.instances {
			past = append(past, to)
		}
		selected += recordSelection{words: v.sel.words[from*chunkWords : to*chunkWords]}.count()
	}
	b.startWindow()
	err = v.eachColumn(ctx, ranges, append(slices.Clone(v.columns), fieldTime), func(n int, f columnField, id pgChunkID, data []byte) error {
		for b.past > past[n] {
			b.countWindowAndAdvance()
		}
		if b.past < past[n] {
			return errors.New("the database gave columns in another order")
		}
		return b.addColumn(f, id, data)
	})
	for err == nil && b.past > 0 && !b.cut {
		b.countWindowAndAdvance()
	}
	return b.cut, err
}

// pgChunkWindow holds the blocks of consecutive chunks of a snapshot, up to before past. They are
// counted when all their columns were read.
type pgChunkWindow struct {
	v      *pgSnapshot
	blocks []selectedChunk
	past   int
	most   int64 // how many records may still be counted
	cut    bool  // there were more records
	fn     func(*selectedChunk)
}

// windowChunks returns the chunks in the window.
func (b *pgChunkWindow) windowChunks() []pgChunk {
	return b.v.chunks[max(0, b.past-pgBatchChunks):b.past]
}

// startWindow prepares the blocks of the chunks before past.
func (b *pgChunkWindow) startWindow() {
	chunks := b.windowChunks()
	for i := range chunks {
		at := int64(b.past - len(chunks) + i)
		to := &b.blocks[i]
		to.firstKey, to.words = at*chunkSize, b.v.sel.chunkBits(at)
		if tail := chunks[i].tail; tail != nil {
			for f, values := range tail {
				to.columns[f].setValues(values)
			}
		}
	}
}

// addColumn decodes a column, if its chunk is in the window and has selected records.
func (b *pgChunkWindow) addColumn(f columnField, id pgChunkID, data []byte) error {
	i := b.v.at[id] - (b.past - len(b.windowChunks()))
	if i < 0 || i >= len(b.windowChunks()) || allZero(b.v.chunkBits(id)) {
		return nil
	}
	c, err := parseColumn(data)
	if err != nil {
		return err
	}
	return b.blocks[i].columns[f].decodeFrom(c)
}

// countWindowAndAdvance calls fn for the chunks in the window, the newest first, and moves the window to the
// chunks before.
func (b *pgChunkWindow) countWindowAndAdvance() {
	for i := len(b.windowChunks()) - 1; i >= 0 && !b.cut; i-- {
		if allZero(b.blocks[i].words) {
			continue
		}
		var n int64
		n, b.cut = b.blocks[i].keepNewest(b.most)
		b.most -= n
		b.fn(&b.blocks[i])
	}
	b.past -= len(b.windowChunks())
	b.startWindow()
}
