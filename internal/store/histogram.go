package store

import "math/bits"

// histogram counts numbers: by themselves below 256, above in steps of less than a
// hundredth, so that it stays small.
type histogram struct {
	counts []uint32 // no more are counted than a summary looks at records
	total  int64
}

const exactCounts = 256 // numbers from here on share a count, 128 to each power of two

func (h *histogram) add(n int64) {
	n = max(0, n)
	shift := max(0, bits.Len64(uint64(n))-8)
	at := shift*exactCounts/2 + int(n>>shift)
	h.growTo(at)
	h.counts[at]++
	h.total++
}

// growTo makes room for a count.
func (h *histogram) growTo(at int) {
	if more := at + 1 - len(h.counts); more > 0 {
		h.counts = append(h.counts, make([]uint32, max(more, len(h.counts)))...)
	}
}

// mergeInstances adds what another one has counted.
func (h *histogram) merge(other *histogram) {
	if len(other.counts) > 0 {
		h.growTo(len(other.counts) - 1)
	}
	for at, n := range other.counts {
		h.counts[at] += n
	}
	h.total += other.total
}

// percentile returns the least number that p of 100 do not exceed, 0 of none. Of those that
// share a count it is the one in the middle.
func (h *histogram) percentile(p int64) int64 {
	left := (h.total*p + 99) / 100
	for at, n := range h.counts {
		if left -= int64(n); left <= 0 && n > 0 {
			if at < exactCounts {
				return int64(at)
			}
			shift := at/(exactCounts/2) - 1
			return int64(at-shift*exactCounts/2)<<shift + 1<<(shift-1)
		}
	}
	return 0
}
