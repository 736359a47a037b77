package store

import "math/bits"

// chunkBlock is the selected records of a chunk, as they are counted: column by column.
type chunkBlock struct {
	firstKey int64    // the key of its first record, or the place
	words    []uint64 // a bit for each that is selected
	columns  [fieldCount + 1]codedColumn
}

// eachRow calls fn for the selected records, the newest first, by their number in the chunk.
func (b *chunkBlock) eachSelected(fn func(i int)) {
	for j := len(b.words) - 1; j >= 0; j-- {
		for w := b.words[j]; w != 0; {
			bit := 63 - bits.LeadingZeros64(w)
			w &^= 1 << bit
			fn(64*j + bit)
		}
	}
}

// keepNewest leaves the newest of the selected records, most at most. It returns how many there are,
// and whether there were more.
func (b *chunkBlock) keepNewest(most int64) (n int64, cut bool) {
	n = keySelection{words: b.words}.count()
	if n <= most {
		return n, false
	}
	left := most
	b.eachSelected(func(i int) {
		if left--; left < 0 {
			b.words[i/64] &^= 1 << (i % 64)
		}
	})
	return most, true
}
