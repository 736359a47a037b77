package result

import (
	"slices"
	"unicode/utf8"
)

// shrinker shortens JSON. It drops array elements from the end. In an object, it shortens the large members, and if too
// many are large, it drops the last ones. Strings are cut between characters and end with an ellipsis. Each omission is
// a gap, whose line counts as part of the value. The total work is limited, because nested containers are read
// repeatedly.
type shrinker struct {
	path   func(at []pathStep) string // returns the read_result path of a value
	handle string
	most   int // upper limit of the numbers in lines

	out  []byte
	gaps []omission
	at   []pathStep // steps to the current value
	work int        // number of bytes that may still be read
}

const (
	minMember    = 64  // smallest share of a member
	maxShared    = 8   // maximum number of large members that share the budget
	maxShownPath = 512 // maximum length of a path in a note
	ellipsis     = "…"
)

// shrink returns a shortened copy of v that takes at most budget bytes inside a JSON string, including the lines for
// its gaps. ok is false if v is not JSON or cannot be shortened that much.
func (s *shrinker) shrink(v []byte, budget int) (small []byte, gaps []omission, ok bool) {
	s.work = 4*len(v) + 64<<10
	if !isPageableJSON(v) || !s.writeValue(v, budget) {
		return nil, nil, false
	}
	size := escapedSize(s.out)
	for _, g := range s.gaps {
		size += gapLineSize(g.path, s.handle, s.most)
	}
	return s.out, s.gaps, size <= budget
}

// writeValue writes v within the budget. If that is impossible, it writes nothing and returns false.
func (s *shrinker) writeValue(v []byte, budget int) bool {
	if len(v) <= budget && escapedSize(v) <= budget {
		s.out = append(s.out, v...)
		return true
	}
	if s.work < 0 || len(s.at) > maxSteps-4 {
		return false
	}
	path := s.path(s.at)
	if len(path) > maxShownPath || !utf8.ValidString(path) {
		return false // a reader could not continue at this point
	}
	left := budget - gapLineSize(path, s.handle, s.most)
	switch v[0] {
	case '{':
		return s.writeMembersFairly(v, budget) || s.writeLeadingEntries(v, path, left)
	case '[':
		return s.writeLeadingEntries(v, path, left)
	case '"':
		return s.writeShortenedString(v, path, left)
	}
	return false
}

func (s *shrinker) writeShortenedString(v []byte, path string, budget int) bool {
	const around = len(`\"\"` + ellipsis)
	inner := v[1 : len(v)-1]
	if budget < around+8 {
		return false
	}
	// Inside another string, an escape takes more bytes than cutRawString counts.
	kept := cutRawString(inner, budget-around)
	for escapedSize(kept) > budget-around {
		kept = cutRawString(inner, len(kept)-(escapedSize(kept)-(budget-around)+1)/2)
	}
	s.out = append(append(append(append(s.out, '"'), kept...), ellipsis...), '"')
	s.gaps = append(s.gaps, omission{path, countCharacters(kept), countCharacters(inner), Characters})
	return true
}

// writeLeadingEntries keeps as many leading entries as fit. If most of the budget is left, it shortens the next entry.
func (s *shrinker) writeLeadingEntries(v []byte, path string, budget int) bool {
	left := budget - len("[]")
	if left < 0 {
		return false
	}
	s.work -= len(v)
	s.out = append(s.out, v[0])
	kept, total, full := 0, 0, false
	eachEntry(v, func(_ int, e jsonEntry) bool {
		total++
		if full {
			return true // the shortened entry counts
		}
		if need := entrySize(e, left); need <= left {
			s.writeEntryStart(kept, e)
			s.out = append(s.out, e.value...)
			left -= need
			kept++
			return true
		}
		full = true
		if left >= budget/2 && s.writeShortenedEntry(kept, e, left) {
			kept++
		}
		return true
	})
	s.out = append(s.out, v[0]+2) // the codes of } and ] are 2 above { and [
	if kept < total {
		s.gaps = append(s.gaps, omission{path, kept, total, entryUnit(v)})
	}
	return true
}

// writeEntryStart writes the text before the value of the i-th entry.
func (s *shrinker) writeEntryStart(i int, e jsonEntry) {
	if i > 0 {
		s.out = append(s.out, ',')
	}
	if e.name != nil {
		s.out = appendMemberName(s.out, e.name)
	}
}

// writeShortenedEntry writes the i-th entry with a shortened value. If that is impossible, it writes nothing and
// returns false.
func (s *shrinker) writeShortenedEntry(i int, e jsonEntry, budget int) bool {
	out, gaps := len(s.out), len(s.gaps)
	s.writeEntryStart(i, e)
	s.at = append(s.at, e.toStep(i))
	ok := s.writeValue(e.value, budget-entrySize(jsonEntry{name: e.name}, 0))
	s.at = s.at[:len(s.at)-1]
	if !ok {
		s.out, s.gaps = s.out[:out], s.gaps[:gaps]
	}
	return ok
}

// writeMembersFairly divides the budget among the members of an object. If too many are too large, it writes nothing
// and returns false.
func (s *shrinker) writeMembersFairly(v []byte, budget int) bool {
	s.work -= len(v)
	left := budget - len("{}")
	var members []jsonEntry
	var sizes []int
	few := true
	eachEntry(v, func(_ int, e jsonEntry) bool {
		if few = (len(members)+1)*minMember <= left; few {
			members = append(members, e)
			sizes = append(sizes, entrySize(e, left))
		}
		return few
	})
	level := fairShare(sizes, left)
	large := 0
	for _, size := range sizes {
		if size > level {
			large++
		}
	}
	if !few || large > maxShared {
		return false
	}
	out, gaps := len(s.out), len(s.gaps)
	s.out = append(s.out, '{')
	for i, e := range members {
		if sizes[i] <= level {
			s.writeEntryStart(i, e)
			s.out = append(s.out, e.value...)
		} else if !s.writeShortenedEntry(i, e, level) {
			s.out, s.gaps = s.out[:out], s.gaps[:gaps]
			return false
		}
	}
	s.out = append(s.out, '}')
	return true
}

// entrySize returns the size of an entry with a comma. If it exceeds most, it returns some value above most.
func entrySize(e jsonEntry, most int) int {
	n := len(",")
	if e.name != nil {
		n += escapedSize(e.name) + len(`\"\":`)
	}
	if len(e.value) > most {
		return n + len(e.value)
	}
	return n + escapedSize(e.value)
}

// fairShare divides a budget fairly. It returns a level: needs up to the level are satisfied completely, and others get
// the level.
func fairShare(needs []int, budget int) (level int) {
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
