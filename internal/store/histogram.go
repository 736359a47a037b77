package store

import "math/bits"

// histogram counts numbers. Each number below 256 has a separate counter. Above, numbers share counters, each for a
// range of less than one percent, so that the histogram stays small.
type histogram struct {
	counts []uint32 // large enough, because of the maximum number of records in a summary
	total  int64
}

const exactCounts = 256 // from this number on, numbers share counters, 128 for each power of two

func (h *histogram) add(n int64) {
	n = max(0, n)
	shift := max(0, bits.Len64(uint64(n))-8)
	at := shift*exactCounts/2 + int(n>>shift)
	h.growTo(at)
	h.counts[at]++
	h.total++
}

// growTo makes room for a counter at index at.
func (h *histogram) growTo(at int) {
	if more := at + 1 - len(h.counts); more > 0 {
		h.counts = append(h.counts, make([]uint32, max(more, len(h.counts)))...)
	}
}

// merge adds the counts of another histogram.
func (h *histogram) merge(other *histogram) {
	if len(other.counts) > 0 {
		h.growTo(len(other.counts) - 1)
	}
	for at, n := range other.counts {
		h.counts[at] += n
	}
	h.total += other.total
}

// percentile returns the smallest number that is at least as large as p percent of the numbers, or 0 if there are none.
// For numbers that share a counter, it returns the middle of their range.
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
