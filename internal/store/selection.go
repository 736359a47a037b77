package store

import "math/bits"

// recordSelection has one bit for each position. The bit states whether the record at the position is selected.
type recordSelection struct{ words []uint64 }

// newFullSelection returns a selection for chunks chunks, in which the positions [from, to) are selected.
func newFullSelection(chunks int, from, to int64) recordSelection {
	s := recordSelection{make([]uint64, chunks*chunkWords)}
	for i := from / chunkSize; i*chunkSize < to; i++ {
		words := s.chunkBits(i)
		for j := range words {
			words[j] = ^uint64(0)
		}
		if i*chunkSize < from || (i+1)*chunkSize > to {
			retainBits(words, func(at int) bool { position := i*chunkSize + int64(at); return from <= position && position < to })
		}
	}
	return s
}

// retainBits clears all set bits for which keeps returns false.
func retainBits(words []uint64, keeps func(i int) bool) {
	for w := range words {
		for rest := words[w]; rest != 0; rest &= rest - 1 {
			if !keeps(64*w + bits.TrailingZeros64(rest)) {
				words[w] &^= rest & -rest
			}
		}
	}
}

// chunkBits returns the bits of a chunk.
func (s recordSelection) chunkBits(n int64) []uint64 {
	at := n * chunkWords
	if at < 0 || at >= int64(len(s.words)) {
		return nil
	}
	return s.words[at : at+chunkWords]
}

func (s recordSelection) count() (n int64) {
	for _, w := range s.words {
		n += int64(bits.OnesCount64(w))
	}
	return n
}

// eachNewestFirst calls fn for the selected positions below before, in descending order, until fn returns false.
func (s recordSelection) eachNewestFirst(before int64, fn func(position int64) bool) {
	top := min(before, 64*int64(len(s.words)))
	if top <= 0 {
		return
	}
	for i := (top - 1) / 64; i >= 0; i-- {
		w := s.words[i]
		if left := top - 64*i; left < 64 {
			w &= 1<<left - 1
		}
		for w != 0 {
			at := 63 - bits.LeadingZeros64(w)
			w &^= 1 << at
			if !fn(64*i + int64(at)) {
				return
			}
		}
	}
}

func allZero(words []uint64) bool {
	for _, w := range words {
		if w != 0 {
			return false
		}
	}
	return true
}
