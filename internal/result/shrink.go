package result

import (
	"bytes"
	"encoding/json"
	"slices"
)

// shrinkJSON returns a JSON text that is like v, but takes no more than budget
// bytes inside a JSON string. Elements of arrays are left out from the end; in
// an object the large members give way and the small ones stay. Only what has
// no elements to leave out is cut itself: strings between characters, marked
// with an ellipsis. It is nil when v is no JSON, or does not get that small.
func shrinkJSON(v []byte, budget int) []byte {
	s := shrinker{work: 4*len(v) + 64<<10}
	s.value(v, budget)
	if s.wrong || writtenSize(s.out) > budget || !json.Valid(s.out) {
		return nil
	}
	return s.out
}

// shrinker writes the small text. Its work is bounded, since containers within
// containers are read again and again on the way down.
type shrinker struct {
	out  []byte
	work int // bytes that may still be read

	wrong bool // it is no JSON
}

const (
	leastMember = 64 // bytes that a member must get for the budget to be shared out
	ellipsis    = "…"
)

// value writes v within the budget, or nearly so.
func (s *shrinker) value(v []byte, budget int) {
	if s.work < 0 {
		s.least(v)
		return
	}
	if len(v) <= budget && writtenSize(v) <= budget {
		s.out = append(s.out, v...)
		return
	}
	switch v[0] {
	case '[':
		s.array(v, budget)
	case '{':
		s.object(v, budget)
	case '"':
		s.str(v, budget)
	default:
		s.least(v)
	}
}

// least writes the smallest value of v's type.
func (s *shrinker) least(v []byte) {
	switch v[0] {
	case '[', '{':
		s.out = append(s.out, v[0], v[0]+2)
	case '"':
		s.out = append(s.out, `""`...)
	default:
		s.out = append(s.out, "null"...)
	}
}

func (s *shrinker) str(v []byte, budget int) {
	const around = len(`\"\"` + ellipsis)
	inner := v[1 : len(v)-1]
	if budget < around+8 {
		s.least(v)
		return
	}
	// An escape takes more inside another string than cutWritten counts.
	kept := cutWritten(inner, budget-around)
	for writtenSize(kept) > budget-around {
		kept = cutWritten(inner, len(kept)-(writtenSize(kept)-(budget-around)+1)/2)
	}
	s.out = append(append(append(append(s.out, '"'), kept...), ellipsis...), '"')
}

// array keeps as many elements from the start as fit. When that leaves most of
// the budget unused, since the next one is large, that one is made smaller.
func (s *shrinker) array(v []byte, budget int) {
	left := budget - len("[]")
	s.out = append(s.out, '[')
	empty := true
	ok := each(v, func(m member) bool {
		s.work -= len(m.value)
		need := len(m.value) + 1
		if need <= left {
			need = writtenSize(m.value) + 1
		}
		if need > left && left < budget/2 {
			return false
		}
		if !empty {
			s.out = append(s.out, ',')
		}
		empty = false
		if need > left {
			s.value(m.value, left-1)
			return false
		}
		s.out = append(s.out, m.value...)
		left -= need
		return true
	})
	s.wrong = s.wrong || !ok
	s.out = append(s.out, ']')
}

// object shares the budget out among the members. An object of very many
// members is treated as a list of them.
func (s *shrinker) object(v []byte, budget int) {
	s.work -= len(v)
	left := budget - len("{}")
	var members []member
	var sizes []int
	few := true
	ok := each(v, func(m member) bool {
		if few = (len(members)+1)*leastMember <= left; few {
			members = append(members, m)
			sizes = append(sizes, memberSize(m, left))
		}
		return few
	})
	s.wrong = s.wrong || !ok
	if !few {
		s.manyMembers(v, left)
		return
	}
	level := fillLevel(sizes, left)
	s.out = append(s.out, '{')
	for i, m := range members {
		if i > 0 {
			s.out = append(s.out, ',')
		}
		s.out = appendName(s.out, m.name)
		if sizes[i] <= level {
			s.out = append(s.out, m.value...)
		} else {
			s.value(m.value, level-writtenSize(m.name)-len(`\"\":,`))
		}
	}
	s.out = append(s.out, '}')
}

// memberSize returns what a member takes, or something above most.
func memberSize(m member, most int) int {
	if len(m.value) > most {
		return len(m.value)
	}
	return writtenSize(m.name) + writtenSize(m.value) + len(`\"\":,`)
}

func (s *shrinker) manyMembers(v []byte, left int) {
	s.out = append(s.out, '{')
	empty := true
	each(v, func(m member) bool {
		if left -= memberSize(m, left); left < 0 {
			return false
		}
		if !empty {
			s.out = append(s.out, ',')
		}
		empty = false
		s.out = appendName(s.out, m.name)
		s.out = append(s.out, m.value...)
		return true
	})
	s.out = append(s.out, '}')
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

// looksLikeJSON reports whether text may be an object or an array.
func looksLikeJSON(text []byte) bool {
	text = bytes.TrimLeft(text, " \t\r\n")
	return len(text) > 0 && (text[0] == '{' || text[0] == '[')
}
