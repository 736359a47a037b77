package store

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"

	"mcpproxy/internal/store/activity"
)

// A query computes a selection, which has one bit for every record. Each filter clears the bits of the records that do
// not match, using one small row for each chunk of 1,024 records. The remaining bits are counted, and the records of
// the page are read by their keys. So every combination of filters takes about the same time, and the total is exact.

// recordSnapshot describes the records of all instances at one time. SQLite has only instance 0. The chunks of all
// instances are in one list. Chunks of the same instance keep their order, and chunks of different instances are
// ordered by time. The position of a record is 1,024 times the index of its chunk in the list, plus its index in the
// chunk. A query selects positions.
type recordSnapshot struct {
	db      sqlReader
	chunks  []snapshotChunk
	at      map[int64]*instanceChunks
	sel     recordSelection
	columns []columnField // columns that eachSelectedChunk reads, in addition to the time
	window  int           // number of chunks that eachSelectedChunk counts together
}

type (
	chunkID    struct{ instance, chunk int64 }
	segmentID  struct{ instance, segment int64 }
	chunkRange struct{ instance, from, past int64 }
)

// snapshotChunk is a chunk of a snapshot. If the chunk is not in the database yet, tail contains its columns.
type snapshotChunk struct {
	chunkID
	minTime, maxTime int64
	indexed          bool
	tail             *[fieldCount + 1][]uint64
}

// instanceChunks contains the positions of an instance's chunks in the list, starting with the chunk first. A position
// of -1 means that the snapshot does not contain the chunk.
type instanceChunks struct {
	first   int64
	indexes []int
}

// setChunks sets the list of chunks.
func (v *recordSnapshot) setChunks(chunks []snapshotChunk) {
	v.chunks, v.at = chunks, map[int64]*instanceChunks{}
	var a *instanceChunks
	for i := range chunks {
		ch := &chunks[i]
		if i == 0 || ch.instance != chunks[i-1].instance {
			if a = v.at[ch.instance]; a == nil {
				a = &instanceChunks{ch.chunk, make([]int, 0, len(chunks)-i)}
				v.at[ch.instance] = a
			}
		}
		for int64(len(a.indexes)) < ch.chunk-a.first {
			a.indexes = append(a.indexes, -1)
		}
		a.indexes = append(a.indexes, i)
	}
}

// indexOf returns the index of a chunk in the list. ok is false if the snapshot does not contain it.
func (v *recordSnapshot) indexOf(id chunkID) (i int, ok bool) {
	a := v.at[id.instance]
	if a == nil || id.chunk < a.first || id.chunk-a.first >= int64(len(a.indexes)) {
		return 0, false
	}
	i = a.indexes[id.chunk-a.first]
	return i, i >= 0
}

// chunkBits returns the selection bits of a chunk, or nil if the snapshot does not contain it.
func (v *recordSnapshot) chunkBits(id chunkID) []uint64 {
	i, ok := v.indexOf(id)
	if !ok {
		return nil
	}
	return v.sel.chunkBits(int64(i))
}

// keyAt returns the instance and the key of the record at a position.
func (v *recordSnapshot) keyAt(position int64) recordKey {
	ch := &v.chunks[position/chunkSize]
	return recordKey{instance: ch.instance, key: ch.chunk*chunkSize + position%chunkSize}
}

// eachRecordAt reads the records at these positions. It calls fn for each record that exists, with its index in
// positions.
func (v *recordSnapshot) eachRecordAt(ctx context.Context, positions []int64, fn func(at int64, r *activity.Record)) error {
	keys := make([]recordKey, len(positions))
	for i, position := range positions {
		keys[i] = v.keyAt(position)
	}
	return eachRecord(ctx, v.db, keys, fn)
}

// repeatsByPosition converts the number of repetitions of refusals from record IDs to positions.
func (v *recordSnapshot) repeatsByPosition(ctx context.Context, byID map[string]int64) (map[int64]int64, error) {
	repeats := map[int64]int64{}
	return repeats, v.db.eachKeyOfID(ctx, byID, func(id string, k recordKey) {
		if i, ok := v.indexOf(chunkID{k.instance, k.key / chunkSize}); ok {
			repeats[int64(i)*chunkSize+k.key%chunkSize] = byID[id]
		}
	})
}

// filter deselects the records that f does not match.
func (v *recordSnapshot) filter(ctx context.Context, f *activity.Filter) error {
	since, until := timeBounds(f.Since, f.Until)
	in := func(t int64) bool { return since <= t && t < until }
	for i := range v.chunks {
		ch, words := &v.chunks[i], v.sel.chunkBits(int64(i))
		switch {
		case ch.maxTime < since || ch.minTime >= until:
			clear(words)
		case ch.tail != nil && !(in(ch.minTime) && in(ch.maxTime)):
			retainBits(words, func(at int) bool { return in(int64(ch.tail[fieldTime][at])) })
		}
	}
	for _, w := range fieldConditions(f) {
		if err := v.filterField(ctx, w); err != nil {
			return err
		}
	}
	if err := v.filterTime(ctx, in); err != nil {
		return err
	}
	terms := parseSearchTerms(f.Search)
	if len(terms) == 0 && strings.TrimSpace(f.Search) != "" { // a search without any word matches nothing
		clear(v.sel.words)
	}
	return v.filterText(ctx, terms)
}

// filterField deselects the records that have none of the wanted values.
func (v *recordSnapshot) filterField(ctx context.Context, w fieldCondition) error {
	for i := range v.chunks {
		if t := v.chunks[i].tail; t != nil {
			retainBits(v.sel.chunkBits(int64(i)), func(at int) bool { return slices.Contains(w.hashes, t[w.field][at]) })
		}
	}
	return v.filterColumns(ctx, v.selectedRanges(0, len(v.chunks), acceptAnyChunk), w.field, func(c encodedColumn, words []uint64) error {
		c.deselectUnwantedRecords(w.hashes, words)
		return nil
	})
}

// filterTime deselects the records outside of a time range. It examines only chunks that are partly inside the range.
func (v *recordSnapshot) filterTime(ctx context.Context, in func(t int64) bool) error {
	var ranges []chunkRange
	for i := range v.chunks {
		if ch := &v.chunks[i]; !in(ch.minTime) || !in(ch.maxTime) {
			ranges = append(ranges, v.selectedRanges(i, i+1, acceptAnyChunk)...)
		}
	}
	return v.filterColumns(ctx, ranges, fieldTime, func(c encodedColumn, words []uint64) error {
		times, err := c.decodeValues()
		if err == nil {
			retainBits(words, func(at int) bool { return in(int64(times[at])) })
		}
		return err
	})
}

// filterColumns calls deselect with the column of a field for each chunk in ranges. If a column is missing because the
// chunk was pruned in the meantime, it deselects all records of the chunk.
func (v *recordSnapshot) filterColumns(ctx context.Context, ranges []chunkRange, f columnField, deselect func(c encodedColumn, words []uint64) error) error {
	if len(ranges) == 0 {
		return nil
	}
	found := make([]bool, len(v.chunks))
	err := v.db.eachColumn(ctx, ranges, []columnField{f}, func(_ int, _ columnField, id chunkID, data []byte) error {
		i, ok := v.indexOf(id)
		if !ok {
			return nil
		}
		found[i] = true
		words := v.sel.chunkBits(int64(i))
		if allZero(words) {
			return nil
		}
		c, err := parseColumn(data)
		if err == nil {
			err = deselect(c, words)
		}
		return err
	})
	for _, r := range ranges {
		for n := r.from; n < r.past; n++ {
			if i, ok := v.indexOf(chunkID{r.instance, n}); ok && !found[i] {
				clear(v.sel.chunkBits(int64(i)))
			}
		}
	}
	return err
}

// selectedRanges returns ranges of stored chunks that have selected records and for which want returns true. It
// examines the part [from, to) of the list.
func (v *recordSnapshot) selectedRanges(from, to int, want func(*snapshotChunk) bool) (ranges []chunkRange) {
	for i := from; i < to; i++ {
		ch := &v.chunks[i]
		if ch.tail != nil || allZero(v.sel.chunkBits(int64(i))) || !want(ch) {
			continue
		}
		n := slices.IndexFunc(ranges, func(r chunkRange) bool { return r.instance == ch.instance })
		if n < 0 {
			ranges = append(ranges, chunkRange{ch.instance, ch.chunk, ch.chunk + 1})
			continue
		}
		ranges[n].from, ranges[n].past = min(ranges[n].from, ch.chunk), max(ranges[n].past, ch.chunk+1)
	}
	return ranges
}

func acceptAnyChunk(*snapshotChunk) bool { return true }

// filterText deselects the records that do not contain all terms.
func (v *recordSnapshot) filterText(ctx context.Context, terms []searchTerm) error {
	if len(terms) == 0 {
		return nil
	}
	for _, t := range terms {
		if err := v.filterTerm(ctx, t); err != nil {
			return err
		}
	}
	m := newRecordMatcher(terms)
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

// filterTerm deselects the records of indexed chunks that do not contain a term.
func (v *recordSnapshot) filterTerm(ctx context.Context, t searchTerm) error {
	ranges := v.selectedRanges(0, len(v.chunks), func(ch *snapshotChunk) bool { return ch.indexed })
	if len(ranges) == 0 {
		return nil
	}
	have := recordSelection{words: make([]uint64, len(v.sel.words))}
	var further []segmentID // segments whose following pages can contain more words
	mark := func(s segmentID, data []byte) error {
		i, ok := v.indexOf(chunkID{s.instance, s.segment / chunkSize})
		if !ok {
			return nil
		}
		more, err := t.markRecordsOfPage(data, have.chunkBits(int64(i)))
		if more {
			further = append(further, s)
		}
		return err
	}
	err := v.db.eachPage(ctx, ranges, t, mark)
	if err == nil && len(further) > 0 {
		err = v.db.eachFurtherPage(ctx, further, t, mark)
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

// scanUnindexed reads the records of a chunk without a text index, and deselects those that do not match.
func (v *recordSnapshot) scanUnindexed(ctx context.Context, m *recordMatcher, ch *snapshotChunk) error {
	var key int64
	var entry, outcome sql.RawBytes
	words := v.chunkBits(ch.chunkID)
	return v.db.ofInstance(ch.instance).eachRow(ctx, scanTargets{&key, &entry, &outcome}, func() error {
		if at := key % chunkSize; words[at/64]&(1<<(at%64)) != 0 && !m.matches(entry, outcome) {
			words[at/64] &^= 1 << (at % 64)
		}
		return nil
	}, "SELECT key, entry, outcome FROM activity WHERE {instance = @instance AND} key >= ? AND key < ?", ch.chunk*chunkSize, (ch.chunk+1)*chunkSize)
}

// eachSelectedChunk calls fn for the chunks that have selected records, newest first, until they contain most records.
// cut reports whether there are more. It reads only columns, not records. PostgreSQL reads the next columns while fn is
// running.
func (v *recordSnapshot) eachSelectedChunk(ctx context.Context, most int64, fn func(*selectedChunk)) (cut bool, err error) {
	b := chunkWindow{v: v, blocks: make([]windowBlock, v.window), most: most, fn: fn, past: len(v.chunks)}
	var ranges []chunkRange
	var past []int
	for selected, to := int64(0), len(v.chunks); to > 0 && selected <= most; to = max(0, to-v.window) {
		from := max(0, to-v.window)
		ranges = append(ranges, v.selectedRanges(from, to, acceptAnyChunk)...)
		for len(past) < len(ranges) {
			past = append(past, to)
		}
		selected += recordSelection{words: v.sel.words[from*chunkWords : to*chunkWords]}.count()
	}
	b.startWindow()
	if len(ranges) > 0 {
		err = v.db.eachColumn(ctx, ranges, append(slices.Clone(v.columns), fieldTime), func(n int, f columnField, id chunkID, data []byte) error {
			for b.past > past[n] {
				b.countWindowAndAdvance()
			}
			if b.past < past[n] {
				return errors.New("the database returned the columns in another order")
			}
			return b.addColumn(f, id, data)
		})
	}
	for err == nil && b.past > 0 && !b.cut {
		b.countWindowAndAdvance()
	}
	return b.cut, err
}

// chunkWindow contains the blocks of consecutive chunks of a snapshot. past is the first chunk after them. A block is
// counted after all its columns were read.
type chunkWindow struct {
	v      *recordSnapshot
	blocks []windowBlock
	past   int
	most   int64 // number of records that may still be counted
	cut    bool  // whether there were more records
	fn     func(*selectedChunk)
}

type windowBlock struct {
	selectedChunk
	present bool // false if the columns were not read, or the chunk was pruned in the meantime
}

// windowChunks returns the chunks in the window.
func (b *chunkWindow) windowChunks() []snapshotChunk {
	return b.v.chunks[max(0, b.past-b.v.window):b.past]
}

// startWindow prepares the blocks of the chunks before past. The values of columns that are not read are 0.
func (b *chunkWindow) startWindow() {
	chunks := b.windowChunks()
	for i := range chunks {
		at := int64(b.past - len(chunks) + i)
		to, tail := &b.blocks[i], chunks[i].tail
		to.firstKey, to.words, to.present = at*chunkSize, b.v.sel.chunkBits(at), tail != nil
		for _, f := range b.v.columns {
			to.columns[f].fillZero()
		}
		if tail != nil {
			for f, values := range tail {
				to.columns[f].setValues(values)
			}
		}
	}
}

// addColumn decodes a column if its chunk is in the window and has selected records.
func (b *chunkWindow) addColumn(f columnField, id chunkID, data []byte) error {
	at, ok := b.v.indexOf(id)
	i := at - (b.past - len(b.windowChunks()))
	if !ok || i < 0 || i >= len(b.windowChunks()) || allZero(b.blocks[i].words) {
		return nil
	}
	c, err := parseColumn(data)
	if err != nil {
		return err
	}
	b.blocks[i].present = b.blocks[i].present || f == fieldTime
	return b.blocks[i].columns[f].decodeFrom(c)
}

// countWindowAndAdvance calls fn for the chunks in the window, newest first, and moves the window to the preceding
// chunks.
func (b *chunkWindow) countWindowAndAdvance() {
	for i := len(b.windowChunks()) - 1; i >= 0 && !b.cut; i-- {
		if !b.blocks[i].present || allZero(b.blocks[i].words) {
			continue
		}
		var n int64
		n, b.cut = b.blocks[i].keepNewest(b.most)
		b.most -= n
		b.fn(&b.blocks[i].selectedChunk)
	}
	b.past -= len(b.windowChunks())
	b.startWindow()
}
