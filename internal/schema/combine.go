package schema

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// combined checks the keywords that put schemas together.
func (r *run) combined(n *node, v int32, ev *evaluated) bool {
	ok := true
	for _, sub := range n.allOf {
		if !r.goOn(ok) {
			return false
		}
		ok = r.check(sub, v, ev) && ok
	}
	if n.anyOf != nil && r.goOn(ok) {
		ok = r.anyOf(n.anyOf, v, ev) && ok
	}
	if n.oneOf != nil && r.goOn(ok) {
		ok = r.oneOf(n.oneOf, v, ev) && ok
	}
	if n.not != nil && r.goOn(ok) && r.quietly(n.not, v, nil) && !r.over {
		ok = r.fail(v, "is what the schema rules out")
	}
	if n.cond != nil && r.goOn(ok) {
		ok = r.conditional(n, v, ev) && ok
	}
	return ok && !r.over
}

func (r *run) conditional(n *node, v int32, ev *evaluated) bool {
	branch := n.els
	if r.try(n.cond, v, ev) {
		branch = n.then
	}
	return !r.over && (branch == nil || r.check(branch, v, ev))
}

// try checks quietly; what was looked at counts only when it fits.
func (r *run) try(n *node, v int32, ev *evaluated) bool {
	if ev == nil {
		return r.quietly(n, v, nil)
	}
	var own evaluated
	ok := r.quietly(n, v, &own)
	if ok {
		ev.merge(&own)
	}
	return ok
}

func (r *run) anyOf(subs []*node, v int32, ev *evaluated) bool {
	fits := false
	for _, sub := range subs {
		if r.try(sub, v, ev) {
			if fits = true; ev == nil { // else all of them say what they looked at
				break
			}
		}
		if r.over {
			return false
		}
	}
	return fits || r.none(subs, v)
}

func (r *run) oneOf(subs []*node, v int32, ev *evaluated) bool {
	first := -1
	for i, sub := range subs {
		if r.try(sub, v, ev) {
			if first >= 0 {
				return r.fail(v, "fits the alternatives %d and %d, but must fit one only", first+1, i+1)
			}
			first = i
		}
		if r.over {
			return false
		}
	}
	return first >= 0 || r.none(subs, v)
}

// none reports a value that fits no alternative: by the types that they want
// if it has none of them, else by what the nearest alternative finds wrong.
func (r *run) none(subs []*node, v int32) bool {
	if !r.collecting || len(r.found) >= 4*maxReported {
		return false
	}
	var types typeSet
	var candidates []*node
	for _, sub := range subs {
		if t := wanted(sub); t != 0 && t&r.typeOf(v) == 0 {
			types |= t
		} else {
			candidates = append(candidates, sub)
		}
	}
	if len(candidates) == 0 {
		return r.failWeighing(3, v, "want %s, but got %s", types, r.typeOf(v))
	}
	nearest := r.nearest(candidates, v)
	if len(candidates) > 1 {
		r.fail(v, "fits none of the %d alternatives; the nearest says:", len(candidates))
	}
	r.found = append(r.found, nearest...)
	return false
}

// wanted gives the types that a schema wants, 0 for any.
func wanted(n *node) typeSet {
	for range 8 {
		if n.types != 0 || n.ref == nil || n.dynamic != "" {
			break
		}
		n = n.ref
	}
	return n.types
}

// nearest gives the violations of the alternative that the value is nearest to.
func (r *run) nearest(subs []*node, v int32) []violation {
	before := r.found
	var all [][]violation
	for _, sub := range subs {
		r.found = nil
		r.check(sub, v, nil)
		if len(r.found) > 0 {
			all = append(all, r.found)
		}
	}
	r.found = before
	if len(all) == 0 {
		return []violation{{Violation{r.pointer(), "fits none of the alternatives"}, 1}}
	}
	return slices.MinFunc(all, func(a, b []violation) int { return cmp.Compare(weigh(a), weigh(b)) })
}

func weigh(found []violation) (sum int) {
	for _, v := range found {
		sum += v.weight
	}
	return sum
}

// checkUnique finds equal elements by hash, so that a long list is not compared
// with itself.
func (r *run) checkUnique(v int32) bool {
	count := int(r.doc.values[v].count)
	if count < 2 {
		return true
	}
	type element struct {
		hash    uint64
		at      int32
		ordinal int32
	}
	elements := make([]element, count)
	m := r.doc.first(v)
	for i := range elements {
		elements[i] = element{r.hash(m), m, int32(i)}
		m = r.doc.next(m)
	}
	if !r.spend(count) {
		return false
	}
	slices.SortFunc(elements, func(a, b element) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.ordinal, b.ordinal))
	})
	for i := range elements {
		for j := i + 1; j < count && elements[j].hash == elements[i].hash; j++ {
			if r.equal(&r.doc, elements[i].at, &r.doc, elements[j].at) {
				return r.fail(v, "the elements %d and %d are equal, but must differ", elements[i].ordinal, elements[j].ordinal)
			}
			if r.over {
				return false
			}
		}
	}
	return true
}

const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// hash is equal for values that are equal.
func (r *run) hash(v int32) uint64 {
	h := uint64(fnvOffset)
	mix := func(b []byte) {
		for _, c := range b {
			h = (h ^ uint64(c)) * fnvPrime
		}
	}
	kind := r.doc.values[v].kind
	mix([]byte{kind})
	if !r.spend(1 + len(r.doc.raw(v))/32) {
		return h
	}
	switch kind {
	case '"':
		mix(r.doc.text(v))
	case 0:
		n := parseNumber(r.doc.raw(v))
		var buf [smallDigits + 1]byte
		mix(n.appendDigits(buf[:0]))
		h += uint64(n.exp)
		if n.negative {
			h = ^h
		}
	case '[', '{':
		sum := uint64(0)
		m := r.doc.first(v)
		for range r.doc.values[v].count {
			x := r.hash(m)
			if kind == '{' { // in any order
				for _, c := range r.doc.name(m) {
					x = (x ^ uint64(c)) * fnvPrime
				}
				sum += x
			} else {
				sum = sum*fnvPrime + x
			}
			m = r.doc.next(m)
		}
		h ^= sum * fnvPrime
	}
	return h
}

// show gives a constant of the schema as messages show it.
func (r *run) show(constant int32) string {
	if r.schema.values[constant].kind == '"' {
		return quoted(r.schema.text(constant))
	}
	raw := r.schema.raw(constant)
	if len(raw) > 80 {
		return "the value in the schema"
	}
	return string(raw)
}

func (r *run) showAll(constants []int32) string {
	const most = 12
	var names []string
	for _, c := range constants {
		if len(names) == most {
			names = append(names, fmt.Sprintf("… (%d more)", len(constants)-most))
			break
		}
		names = append(names, r.show(c))
	}
	return strings.Join(names, ", ")
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
