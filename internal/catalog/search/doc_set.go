package search

import "math/bits"

// docSet is a bit set of documents.
type docSet []uint64

func (s docSet) add(doc uint32)      { s[doc/64] |= 1 << (doc % 64) }
func (s docSet) remove(doc uint32)   { s[doc/64] &^= 1 << (doc % 64) }
func (s docSet) has(doc uint32) bool { return s[doc/64]&(1<<(doc%64)) != 0 }

func (s docSet) len() (n int) {
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// all iterates over the set in order.
func (s docSet) all(yield func(doc uint32) bool) {
	for i, word := range s {
		for ; word != 0; word &= word - 1 {
			if !yield(uint32(64*i + bits.TrailingZeros64(word))) {
				return
			}
		}
	}
}
