package store

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"mcpproxy/internal/store/activity"
)

// pgView is the records of all instances as they are at one time: their chunks in one
// row, those of an instance in their order, and between instances by time. The place of
// a record in it is 1,024 times the number of its chunk there, and its place in the
// chunk. A query selects places, with one bit for each, from one small row of each chunk
// for each field.
type pgView struct {
	e       *pgEngine
	c       *pgConn
	chunks  []pgChunk
	at      map[pgChunkID]int
	sel     selection
	columns []field // that eachBlock gives, beside the time
}

type pgChunkID struct{ instance, chunk int64 }

// pgChunk is a chunk of a view. One that has no columns in the database has them here.
type pgChunk struct {
	pgChunkID
	minTime, maxTime int64
	indexed          bool
	tail             *[fields + 1][]uint64
}

// newView reads which records there are, and selects those that f selects but for its
// page.
func newView(ctx context.Context, e *pgEngine, c *pgConn, f *activity.Filter, columns ...field) (*pgView, error) {
	v := &pgView{e: e, c: c, at: map[pgChunkID]int{}, columns: columns}
	w := wants(pgFilter(f))
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
	v.order()
	v.selectAll(first, keys)
	if err := v.clearGone(ctx); err != nil {
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
	words := parseSearch(f.Search)
	if len(words) == 0 && strings.TrimSpace(f.Search) != "" { // there is no word in it: nothing has it
		clear(v.sel.words)
	}
	return v, v.filterText(ctx, words)
}

// pgFilter is a filter of texts as PostgreSQL has them.
func pgFilter(f *activity.Filter) *activity.Filter {
	out := *f
	out.SessionID, out.RequestID = pgClean(f.SessionID), pgClean(f.RequestID)
	for _, list := range []*[]string{&out.Servers, &out.Tools, &out.IntentTypes, &out.Sensitivities, &out.Actors, &out.Clients} {
		*list = slices.Clone(*list)
		for i, s := range *list {
			(*list)[i] = pgClean(s)
		}
	}
	return &out
}

func (v *pgView) readChunks(ctx context.Context) error {
	var ch pgChunk
	return v.c.each(ctx, into{&ch.instance, &ch.chunk, &ch.minTime, &ch.maxTime, &ch.indexed}, func() error {
		v.chunks = append(v.chunks, ch)
		return nil
	}, "SELECT instance, chunk, min_time, max_time, indexed FROM activity_chunk ORDER BY instance, chunk")
}

// readTails reads the records that are in no chunk of the database, and makes chunks of
// them. It returns the first key of each instance, and which keys of the tails are there.
func (v *pgView) readTails(ctx context.Context, need []field) (first map[int64]int64, keys map[pgChunkID]*bitmap, err error) {
	first, keys = map[int64]int64{}, map[pgChunkID]*bitmap{}
	var instance, key int64
	if err := v.c.each(ctx, into{&instance, &key}, func() error { first[instance] = key; return nil }, "SELECT id, first_key FROM instance"); err != nil {
		return nil, nil, err
	}
	slices.Sort(need)
	values := pgValues{fields: slices.Compact(need)}
	list, to := values.columns()
	list = strings.ReplaceAll(list, ", ", ", a.")
	hashes := hashes{}
	err = v.c.each(ctx, append(into{&instance, &key}, to...), func() error {
		id := pgChunkID{instance, key / chunkSize}
		at, there := v.at[id]
		if !there {
			at = len(v.chunks)
			v.at[id], keys[id] = at, &bitmap{}
			v.chunks = append(v.chunks, pgChunk{pgChunkID: id, minTime: 1 << 62, maxTime: -1 << 62, tail: &[fields + 1][]uint64{}})
			for _, f := range values.fields {
				v.chunks[at].tail[f] = make([]uint64, chunkSize)
			}
		}
		keys[id][key%chunkSize/64] |= 1 << (key % 64)
		ch := &v.chunks[at]
		for _, f := range values.fields {
			ch.tail[f][key%chunkSize] = values.of(hashes, f)
		}
		ch.minTime, ch.maxTime = min(ch.minTime, values.numbers[fieldTime]), max(ch.maxTime, values.numbers[fieldTime])
		return nil
	}, "SELECT a.instance, a.key"+list+" FROM instance i JOIN activity a ON a.instance = i.id AND a.key >= i.sealed * "+strconv.Itoa(chunkSize)+" ORDER BY a.instance, a.key")
	return first, keys, err
}

// order brings the chunks of all instances into one row.
func (v *pgView) order() {
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

// selectAll selects the records that there are.
func (v *pgView) selectAll(first map[int64]int64, keys map[pgChunkID]*bitmap) {
	v.sel = selection{words: make([]uint64, len(v.chunks)*chunkWords)}
	for i, ch := range v.chunks {
		words := v.sel.chunk(int64(i))
		if there := keys[ch.pgChunkID]; there != nil {
			copy(words, there[:])
		} else {
			for j := range words {
				words[j] = ^uint64(0)
			}
		}
		if from := first[ch.instance] - ch.chunk*chunkSize; from > 0 {
			keep(words, func(at int) bool { return int64(at) >= from })
		}
	}
}

func (v *pgView) clearGone(ctx context.Context) error {
	var id pgChunkID
	var data []byte
	return v.c.each(ctx, into{&id.instance, &id.chunk, &data}, func() error {
		gone, err := decodeBitmap(data)
		if err != nil || gone == nil {
			return err
		}
		for j, w := range v.chunk(id) {
			v.chunk(id)[j] = w &^ gone[j]
		}
		return nil
	}, "SELECT instance, chunk, gone FROM activity_chunk WHERE gone IS NOT NULL")
}

// chunk returns the bits of a chunk, none when the view does not have it.
func (v *pgView) chunk(id pgChunkID) []uint64 {
	at, there := v.at[id]
	if !there {
		return nil
	}
	return v.sel.chunk(int64(at))
}

// key is the key of a place, and of which instance.
func (v *pgView) key(place int64) (instance, key int64) {
	ch := &v.chunks[place/chunkSize]
	return ch.instance, ch.chunk*chunkSize + place%chunkSize
}

// place is the reverse of key; ok is false when the view has no such record.
func (v *pgView) place(instance, key int64) (place int64, ok bool) {
	at, ok := v.at[pgChunkID{instance, key / chunkSize}]
	return int64(at)*chunkSize + key%chunkSize, ok
}

// pgRanges are parts of what the instances have: of each the chunks from one to before
// another. They are the first three values of a statement that begins with them.
type pgRanges struct{ instances, from, past []int64 }

const pgInRanges = " unnest($1::bigint[], $2::bigint[], $3::bigint[]) WITH ORDINALITY AS r(instance, low, high, n) "

func (r *pgRanges) values() []any {
	return []any{pgIntegers(r.instances), pgIntegers(r.from), pgIntegers(r.past)}
}

// ranges are where chunks are in the database that are selected from and that want takes.
func (v *pgView) ranges(chunks []pgChunk, want func(*pgChunk) bool) *pgRanges {
	r := &pgRanges{}
	at := map[int64]int{}
	for i := range chunks {
		ch := &chunks[i]
		if ch.tail != nil || none(v.chunk(ch.pgChunkID)) || !want(ch) {
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

func anyChunk(*pgChunk) bool { return true }

// eachColumn calls fn for the columns of fields in ranges: range by range, with the number of each.
func (v *pgView) eachColumn(ctx context.Context, r *pgRanges, of []field, fn func(n int, f field, id pgChunkID, data []byte) error) error {
	if len(r.instances) == 0 {
		return nil
	}
	numbers := make([]int64, len(of))
	for i, f := range of {
		numbers[i] = int64(f)
	}
	var n, f int64
	var id pgChunkID
	var data pgRaw
	return v.c.each(ctx, into{&n, &f, &id.instance, &id.chunk, &data}, func() error { return fn(int(n)-1, field(f), id, data) },
		// OFFSET 0 has the server go range by range, and look the columns of each up field by field, in their
		// order on the disk.
		"SELECT r.n, c.field, r.instance, c.chunk, c.data FROM"+pgInRanges+`CROSS JOIN LATERAL (
		SELECT f.field, d.chunk, d.data FROM unnest($4::bigint[]) AS f(field) CROSS JOIN LATERAL (
			SELECT chunk, data FROM activity_column WHERE field = f.field AND instance = r.instance AND chunk >= r.low AND chunk < r.high OFFSET 0
		) d OFFSET 0) c`,
		append(r.values(), pgIntegers(numbers))...)
}

// filterField clears the records that have none of the wanted values.
func (v *pgView) filterField(ctx context.Context, w want) error {
	for i := range v.chunks {
		if t := v.chunks[i].tail; t != nil {
			keep(v.sel.chunk(int64(i)), func(at int) bool { return slices.Contains(w.hashes, t[w.field][at]) })
		}
	}
	return v.eachColumn(ctx, v.ranges(v.chunks, anyChunk), []field{w.field}, func(_ int, _ field, id pgChunkID, data []byte) error {
		words := v.chunk(id)
		if none(words) {
			return nil
		}
		c, err := parseColumn(data)
		if err == nil {
			c.filter(w.hashes, words)
		}
		return err
	})
}

// filterTime clears the records that are not in the time of a filter.
func (v *pgView) filterTime(ctx context.Context, f *activity.Filter) error {
	since, until := bounds(f.Since, f.Until)
	in := func(t int64) bool { return since <= t && t < until }
	partly := func(ch *pgChunk) bool { return !in(ch.minTime) || !in(ch.maxTime) }
	for i := range v.chunks {
		ch := &v.chunks[i]
		switch words := v.sel.chunk(int64(i)); {
		case ch.maxTime < since || ch.minTime >= until:
			clear(words)
		case ch.tail != nil:
			keep(words, func(at int) bool { return in(int64(ch.tail[fieldTime][at])) })
		}
	}
	return v.eachColumn(ctx, v.ranges(v.chunks, partly), []field{fieldTime}, func(_ int, _ field, id pgChunkID, data []byte) error {
		words := v.chunk(id)
		if none(words) {
			return nil
		}
		times, err := decodeColumn(data)
		if err == nil {
			keep(words, func(at int) bool { return in(int64(times[at])) })
		}
		return err
	})
}

// filterText clears the records that do not have all the words.
func (v *pgView) filterText(ctx context.Context, words []term) error {
	if len(words) == 0 {
		return nil
	}
	for _, w := range words {
		if err := v.filterWord(ctx, w); err != nil {
			return err
		}
	}
	m := newMatcher(words)
	for i := range v.chunks {
		if v.chunks[i].indexed || none(v.sel.chunk(int64(i))) {
			continue
		}
		if err := v.scan(ctx, m, &v.chunks[i]); err != nil {
			return err
		}
	}
	return nil
}

// The page of each segment where a word must be, or the first words with a prefix; and the
// pages of segments behind it that can have more of these.
const (
	pgPagesOfWord = "SELECT s.instance, s.segment, t.data FROM" + pgInRanges + `JOIN activity_segment s
		ON s.instance = r.instance AND s.segment >= r.low * 1024 AND s.segment < r.high * 1024
		LEFT JOIN LATERAL (SELECT t.data FROM activity_text t WHERE t.instance = s.instance AND t.segment = s.segment AND t.first <= $4
			ORDER BY t.first DESC LIMIT 1) t ON true`
	pgPagesOfPrefix = `SELECT s.instance, s.segment, t.data FROM unnest($1::bigint[], $2::bigint[]) AS s(instance, segment)
		CROSS JOIN LATERAL (SELECT data FROM activity_text WHERE instance = s.instance AND segment = s.segment AND first > $3 AND first < $4 OFFSET 0) t`
)

// filterWord clears the records of indexed chunks that do not have a word.
func (v *pgView) filterWord(ctx context.Context, w term) error {
	r := v.ranges(v.chunks, func(ch *pgChunk) bool { return ch.indexed })
	if len(r.instances) == 0 {
		return nil
	}
	have := selection{words: make([]uint64, len(v.sel.words))}
	var instances, segments []int64 // with pages behind that can have more
	pages := func(query string, args ...any) error {
		var instance, segment int64
		var data pgRaw
		return v.c.each(ctx, into{&instance, &segment, &data}, func() error {
			at, there := v.at[pgChunkID{instance, segment / chunkSize}]
			if !there {
				return nil
			}
			more, err := w.markPage(data, have.chunk(int64(at)))
			if more {
				instances, segments = append(instances, instance), append(segments, segment)
			}
			return err
		}, query, args...)
	}
	err := pages(pgPagesOfWord, append(r.values(), []byte(w.word))...)
	if err == nil && len(segments) > 0 {
		err = pages(pgPagesOfPrefix, pgIntegers(instances), pgIntegers(segments), []byte(w.word), w.end())
	}
	for i := range v.chunks {
		if v.chunks[i].indexed {
			words := v.sel.chunk(int64(i))
			for j, bits := range have.chunk(int64(i)) {
				words[j] &= bits
			}
		}
	}
	return err
}

// scan reads the selected records of a chunk that is not in the text index.
func (v *pgView) scan(ctx context.Context, m *matcher, ch *pgChunk) error {
	var key int64
	var entry, outcome pgRaw
	words := v.chunk(ch.pgChunkID)
	return v.c.each(ctx, into{&key, &entry, &outcome}, func() error {
		if at := key % chunkSize; words[at/64]&(1<<(at%64)) != 0 && !m.matches(entry, outcome) {
			words[at/64] &^= 1 << (at % 64)
		}
		return nil
	}, "SELECT key, entry, outcome FROM activity WHERE instance = $1 AND key >= $2 AND key < $3", ch.instance, ch.chunk*chunkSize, (ch.chunk+1)*chunkSize)
}

// pgBatchChunks is how many chunks eachBlock counts at a time.
const pgBatchChunks = 32

// eachBlock calls fn for the chunks that have selected records, the newest first, until
// most records were in them, and reports whether there are more. It reads columns alone, by
// one statement: the server reads those of the next chunks while some are counted.
func (v *pgView) eachBlock(ctx context.Context, most int64, fn func(*block)) (cut bool, err error) {
	b := pgBlocks{v: v, blocks: make([]block, pgBatchChunks), most: most, fn: fn, past: len(v.chunks)}
	ranges, past := &pgRanges{}, []int{}
	for selected, to := int64(0), len(v.chunks); to > 0 && selected <= most; to = max(0, to-pgBatchChunks) {
		from := max(0, to-pgBatchChunks)
		more := v.ranges(v.chunks[from:to], anyChunk)
		ranges.instances, ranges.from, ranges.past = append(ranges.instances, more.instances...), append(ranges.from, more.from...), append(ranges.past, more.past...)
		for range more.instances {
			past = append(past, to)
		}
		selected += selection{words: v.sel.words[from*chunkWords : to*chunkWords]}.count()
	}
	b.begin()
	err = v.eachColumn(ctx, ranges, append(slices.Clone(v.columns), fieldTime), func(n int, f field, id pgChunkID, data []byte) error {
		for b.past > past[n] {
			b.count()
		}
		if b.past < past[n] {
			return errors.New("the database gave columns in another order")
		}
		return b.read(f, id, data)
	})
	for err == nil && b.past > 0 && !b.cut {
		b.count()
	}
	return b.cut, err
}

// pgBlocks are the blocks of some chunks of a view in a row, which are counted when all their
// columns are read: those up to before past.
type pgBlocks struct {
	v      *pgView
	blocks []block
	past   int
	most   int64 // that are still to be counted
	cut    bool  // there were more
	fn     func(*block)
}

// chunks are those of the view that are read.
func (b *pgBlocks) chunks() []pgChunk { return b.v.chunks[max(0, b.past-pgBatchChunks):b.past] }

// begin has the next columns be those of the chunks before past.
func (b *pgBlocks) begin() {
	chunks := b.chunks()
	for i := range chunks {
		at := int64(b.past - len(chunks) + i)
		to := &b.blocks[i]
		to.first, to.words = at*chunkSize, b.v.sel.chunk(at)
		if tail := chunks[i].tail; tail != nil {
			for f, values := range tail {
				to.columns[f].plain(values)
			}
		}
	}
}

// read reads a column, if it is one of a chunk that is selected from.
func (b *pgBlocks) read(f field, id pgChunkID, data []byte) error {
	i := b.v.at[id] - (b.past - len(b.chunks()))
	if i < 0 || i >= len(b.chunks()) || none(b.v.chunk(id)) {
		return nil
	}
	c, err := parseColumn(data)
	if err != nil {
		return err
	}
	return b.blocks[i].columns[f].read(c)
}

// count calls fn for the chunks that were read, the newest first, and goes on to those before.
func (b *pgBlocks) count() {
	for i := len(b.chunks()) - 1; i >= 0 && !b.cut; i-- {
		if none(b.blocks[i].words) {
			continue
		}
		var n int64
		n, b.cut = b.blocks[i].newest(b.most)
		b.most -= n
		b.fn(&b.blocks[i])
	}
	b.past -= len(b.chunks())
	b.begin()
}
