package store

import "math/bits"

// selectedChunk contains the selected records of a chunk, and the columns that a summary needs.
type selectedChunk struct {
	firstKey int64    // position of the first record in the snapshot
	words    []uint64 // one bit for each selected record
	columns  [fieldCount + 1]decodedColumn
}

// eachSelected calls fn with the index of each selected record in the chunk, newest first.
func (b *selectedChunk) eachSelected(fn func(i int)) {
	for j := len(b.words) - 1; j >= 0; j-- {
		for w := b.words[j]; w != 0; {
			bit := 63 - bits.LeadingZeros64(w)
			w &^= 1 << bit
			fn(64*j + bit)
		}
	}
}

// keepNewest keeps only the most newest records selected. It returns how many are selected, and whether it deselected
// any.
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
