package store

import "math/bits"

// selectedChunk is the selected records of a chunk, with the columns that a summary counts.
type selectedChunk struct {
	firstKey int64    // the position of its first record in the snapshot
	words    []uint64 // one bit for each selected record
	columns  [fieldCount + 1]decodedColumn
}

// eachSelected calls fn with the index of each selected record in the chunk, the newest first.
func (b *selectedChunk) eachSelected(fn func(i int)) {
	for j := len(b.words) - 1; j >= 0; j-- {
		for w := b.words[j]; w != 0; {
			bit := 63 - bits.LeadingZeros64(w)
			w &^= 1 << bit
			fn(64*j + bit)
		}
	}
}

// keepNewest deselects all but the newest most records. It returns how many are selected, and
// whether there were more.
func (b *selectedChunk) keepNewest(most int64) (n int64, cut bool) {
	n = recordSelection{words: b.words}.count()
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
