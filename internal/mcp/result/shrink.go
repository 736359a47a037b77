package result

import (
	"slices"
	"unicode/utf8"
)

// shrinker makes JSON small. Elements of arrays are left out from the end; in an
// object the large members give way and the small ones stay, and where too many
// are large, those at the end do. Strings are cut between characters, marked with
// an ellipsis. What is left out somewhere is a gap, whose line counts as part of
// the value there. The work is bounded, since containers within containers are
// read again and again on the way down.
type shrinker struct {
	path   func(at []step) string // by which read_result finds a value
	handle string
	most   int // no number in a line is greater

	out  []byte
	gaps []gap
	at   []step // of the value that is written
	work int    // bytes that may still be read
}

const (
	leastMember = 64  // bytes that a member must get for the budget to be shared out
	mostShared  = 8   // large members that it is shared out among
	longestPath = 512 // bytes of a path that is told
	ellipsis    = "…"
)

// shrink returns a JSON text that is like v, but takes no more than budget bytes
// inside a JSON string, together with the lines of its gaps. ok is false when v
// is no JSON, or does not get that small.
func (s *shrinker) shrink(v []byte, budget int) (small []byte, gaps []gap, ok bool) {
	s.work = 4*len(v) + 64<<10
	if !valid(v) || !s.value(v, budget) {
		return nil, nil, false
	}
	size := writtenSize(s.out)
	for _, g := range s.gaps {
		size += lineSize(g.path, s.handle, s.most)
	}
	return s.out, s.gaps, size <= budget
}

// value writes v within the budget. It returns false, and has written nothing,
// when that cannot be.
func (s *shrinker) value(v []byte, budget int) bool {
	if len(v) <= budget && writtenSize(v) <= budget {
		s.out = append(s.out, v...)
		return true
	}
	if s.work < 0 || len(s.at) > maxSteps-4 {
		return false
	}
	path := s.path(s.at)
	if len(path) > longestPath || !utf8.ValidString(path) {
		return false // nobody could go on there
	}
	left := budget - lineSize(path, s.handle, s.most)
	switch v[0] {
	case '{':
		return s.fair(v, budget) || s.first(v, path, left)
	case '[':
		return s.first(v, path, left)
	case '"':
		return s.str(v, path, left)
	}
	return false
}

func (s *shrinker) str(v []byte, path string, budget int) bool {
	const around = len(`\"\"` + ellipsis)
	inner := v[1 : len(v)-1]
	if budget < around+8 {
		return false
	}
	// An escape takes more inside another string than cutWritten counts.
	kept := cutWritten(inner, budget-around)
	for writtenSize(kept) > budget-around {
		kept = cutWritten(inner, len(kept)-(writtenSize(kept)-(budget-around)+1)/2)
	}
	s.out = append(append(append(append(s.out, '"'), kept...), ellipsis...), '"')
	s.gaps = append(s.gaps, gap{path, characters(kept), characters(inner), Characters})
	return true
}

// first keeps as many members or elements from the start as fit. When that leaves
// most of the budget unused, since the next one is large, that one is made smaller.
func (s *shrinker) first(v []byte, path string, budget int) bool {
	left := budget - len("[]")
	if left < 0 {
		return false
	}
	s.work -= len(v)
	s.out = append(s.out, v[0])
	kept, total, full := 0, 0, false
	each(v, func(_ int, e entry) bool {
		total++
		if full {
			return true // it counts
		}
		if need := entrySize(e, left); need <= left {
			s.begin(kept, e)
			s.out = append(s.out, e.value...)
			left -= need
			kept++
			return true
		}
		full = true
		if left >= budget/2 && s.smaller(kept, e, left) {
			kept++
		}
		return true
	})
	s.out = append(s.out, v[0]+2) // } and ] are two after { and [
	if kept < total {
		s.gaps = append(s.gaps, gap{path, kept, total, unit(v)})
	}
	return true
}

// begin writes what stands before the value of the ith entry.
func (s *shrinker) begin(i int, e entry) {
	if i > 0 {
		s.out = append(s.out, ',')
	}
	if e.name != nil {
		s.out = appendName(s.out, e.name)
	}
}

// smaller writes the ith entry with a smaller value. It returns false, and has
// written nothing, when there is none within the budget.
func (s *shrinker) smaller(i int, e entry, budget int) bool {
	out, gaps := len(s.out), len(s.gaps)
	s.begin(i, e)
	s.at = append(s.at, e.step(i))
	ok := s.value(e.value, budget-entrySize(entry{name: e.name}, 0))
	s.at = s.at[:len(s.at)-1]
	if !ok {
		s.out, s.gaps = s.out[:out], s.gaps[:gaps]
	}
	return ok
}

// fair shares the budget out among the members of an object. It returns false,
// and has written nothing, when too many are too large for it.
func (s *shrinker) fair(v []byte, budget int) bool {
	s.work -= len(v)
	left := budget - len("{}")
	var members []entry
	var sizes []int
	few := true
	each(v, func(_ int, e entry) bool {
		if few = (len(members)+1)*leastMember <= left; few {
			members = append(members, e)
			sizes = append(sizes, entrySize(e, left))
		}
		return few
	})
	level := fillLevel(sizes, left)
	large := 0
	for _, size := range sizes {
		if size > level {
			large++
		}
	}
	if !few || large > mostShared {
		return false
	}
	out, gaps := len(s.out), len(s.gaps)
	s.out = append(s.out, '{')
	for i, e := range members {
		if sizes[i] <= level {
			s.begin(i, e)
			s.out = append(s.out, e.value...)
		} else if !s.smaller(i, e, level) {
			s.out, s.gaps = s.out[:out], s.gaps[:gaps]
			return false
		}
	}
	s.out = append(s.out, '}')
	return true
}

// entrySize returns what an entry takes with a comma, or something above most.
func entrySize(e entry, most int) int {
	n := len(",")
	if e.name != nil {
		n += writtenSize(e.name) + len(`\"\":`)
	}
	if len(e.value) > most {
		return n + len(e.value)
	}
	return n + writtenSize(e.value)
}

// fillLevel shares a budget out fairly: what needs no more than the level gets
// all it needs, everything else gets the level.
func fillLevel(needs []int, budget int) (level int) {
	sorted := slices.Clone(needs)
	slices.Sort(sorted)
	for i, need := range sorted {
		level = budget / (len(sorted) - i)
		if need > level {
			return level
		}
		budget -= need
	}
	return max(level, slices.Max(append(sorted, 0)))
}
