package result

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"mcpproxy/internal/mcp/wirejson"
)

// kindRank returns the rank of a value's kind: null, false, true, numbers, strings, arrays, objects.
func kindRank(v []byte) int {
	return strings.IndexByte("nft0\"[{", wirejson.Kind(v))
}

// maxCompared limits the depth of comparisons.
const maxCompared = 1000

// compareValues orders two values as jq does.
func (r *evaluation) compareValues(a, b []byte, depth int) (int, error) {
	if err := r.chargeWork(min(len(a), len(b))); err != nil || depth > maxCompared {
		return 0, cmp.Or(err, ErrLimit)
	}
	if order := cmp.Compare(kindRank(a), kindRank(b)); order != 0 {
		return order, nil
	}
	switch wirejson.Kind(a) {
	case '0':
		if m, n, ok := parseIntegers(a, b); ok {
			return cmp.Compare(m, n), nil
		}
		return cmp.Compare(parseNumber(a), parseNumber(b)), nil
	case '"':
		return bytes.Compare(wirejson.Unescape(a[1:len(a)-1]), wirejson.Unescape(b[1:len(b)-1])), nil
	case '[':
		one, err := r.elementsOf(a)
		if err != nil {
			return 0, err
		}
		other, err := r.elementsOf(b)
		if err != nil {
			return 0, err
		}
		return r.compareElements(one, other, depth)
	case '{':
		one, err := r.appendMembers(nil, a)
		if err != nil {
			return 0, err
		}
		other, err := r.appendMembers(nil, b)
		if err != nil {
			return 0, err
		}
		byName := func(x, y [2][]byte) int { return bytes.Compare(x[0], y[0]) }
		slices.SortFunc(one, byName)
		slices.SortFunc(other, byName)
		for at := range 2 { // first names, then values
			pick := func(of [][2][]byte) (all [][]byte) {
				for _, m := range of {
					all = append(all, m[at])
				}
				return all
			}
			if order, err := r.compareElements(pick(one), pick(other), depth); order != 0 || err != nil {
				return order, err
			}
		}
	}
	return 0, nil
}

func (r *evaluation) compareElements(a, b [][]byte, depth int) (int, error) {
	for i := range min(len(a), len(b)) {
		if order, err := r.compareValues(a[i], b[i], depth+1); order != 0 || err != nil {
			return order, err
		}
	}
	return cmp.Compare(len(a), len(b)), nil
}

func (r *evaluation) elementsOf(v []byte) (all [][]byte, err error) {
	err = wirejson.EachElement(v, func(e []byte) error {
		all = append(all, e)
		return r.chargeOutput(24)
	})
	return all, err
}
