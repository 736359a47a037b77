package result

import (
	"bytes"
	"math"
	"slices"
	"unicode/utf8"

	"mcpproxy/internal/mcp/wirejson"
)

// valueAt returns the value at a name or index.
func (r *evaluation) valueAt(of, at []byte) ([]byte, error) {
	if err := r.chargeWork(len(of)); err != nil {
		return nil, err
	}
	switch k := wirejson.Kind(at); wirejson.Kind(of) {
	case 'n':
		if k == '"' || k == '0' {
			return null, nil
		}
	case '{':
		if k == '"' {
			name, _ := wirejson.String(at)
			if v := wirejson.Find(of, name); v != nil {
				return v, nil
			}
			return null, nil
		}
	case '"':
		if k == '0' {
			i, _ := toIndex(at)
			v, err := r.sliceValue(of, i, i+1, i != -1)
			if string(v) == `""` {
				v = null
			}
			return v, err
		}
	case '[':
		if k == '0' {
			return elementAt(of, at), nil
		}
	}
	return nil, newDataError("%s has nothing at a %s", kindName(of), kindName(at))
}

// elementAt returns an element of an array, counted from the end for a negative index. It returns null if the element
// is missing.
func elementAt(of, at []byte) []byte {
	i, _ := toIndex(at)
	if n := 0; i < 0 {
		_ = wirejson.EachElement(of, func([]byte) error { n++; return nil })
		if i += n; i < 0 {
			return null
		}
	}
	v := null
	_ = wirejson.EachElement(of, func(e []byte) error {
		if i--; i < 0 {
			v = e
			return errDone
		}
		return nil
	})
	return v
}

// emitElements emits the elements of an array or the values of an object.
func (r *evaluation) emitElements(of []byte, out emitFunc) error {
	if err := r.chargeWork(len(of)); err != nil {
		return err
	}
	switch kindName(of) {
	case "array":
		return wirejson.EachElement(of, out)
	case "object":
		return wirejson.EachMember(of, func(_, v []byte) error { return out(v) })
	}
	return newDataError("%s has no elements", kindName(of))
}

// sliceValue returns a slice of an array or string.
func (r *evaluation) sliceValue(of []byte, from, to int, hasTo bool) ([]byte, error) {
	if err := r.chargeWork(len(of)); err != nil {
		return nil, err
	}
	within := func(n int) (int, int) {
		at := func(i int) int {
			if i < 0 {
				i += n
			}
			return max(0, min(i, n))
		}
		first, last := at(from), n
		if hasTo {
			last = at(to)
		}
		return first, max(first, last)
	}
	switch kindName(of) {
	case "null":
		return null, nil
	case "array":
		n := 0
		_ = wirejson.EachElement(of, func([]byte) error { n++; return nil })
		first, last := within(n)
		var b arrayBuilder
		i := 0
		err := wirejson.EachElement(of, func(e []byte) error {
			i++
			if i > last {
				return errDone
			}
			if i > first {
				return b.appendElement(r, e)
			}
			return nil
		})
		if err != nil && err != errDone {
			return nil, err
		}
		return b.finishArray(), nil
	case "string":
		text, _ := wirejson.String(of)
		first, last := within(utf8.RuneCountInString(text))
		from, to, i := len(text), len(text), 0
		for at := range text {
			if i == first {
				from = at
			}
			if i == last {
				to = at
				break
			}
			i++
		}
		return r.newStringJSON(text[min(from, to):to])
	}
	return nil, newDataError("%s has no parts", kindName(of))
}

// appendMembers appends the members of an object. The names are JSON strings.
func (r *evaluation) appendMembers(all [][2][]byte, object []byte) ([][2][]byte, error) {
	err := wirejson.EachMember(object, func(name, v []byte) error {
		all = append(all, [2][]byte{wirejson.AppendString(nil, name), v})
		return r.chargeOutput(len(name) + 64)
	})
	return all, err
}

// buildObject builds an object from names, which are JSON strings, and values. If a name occurs several times, the last
// value is used, at the position of the first. It modifies members.
func (r *evaluation) buildObject(members [][2][]byte) ([]byte, error) {
	kept, size := members[:0], 2
	for _, m := range members {
		if err := r.chargeWork(32 * len(kept)); err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(kept, func(k [2][]byte) bool { return equalJSONStrings(k[0], m[0]) }); i >= 0 {
			kept[i][1] = m[1]
			continue
		}
		kept = append(kept, m)
		size += len(m[0]) + len(m[1]) + 2
	}
	if err := r.chargeOutput(size); err != nil {
		return nil, err
	}
	text := append(make([]byte, 0, size), '{')
	for i, m := range kept {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(append(append(text, m[0]...), ':'), m[1]...)
	}
	return append(text, '}'), nil
}

// equalJSONStrings reports whether two JSON strings are equal.
func equalJSONStrings(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	if wirejson.IsUnescapedASCII(a[1:len(a)-1]) && wirejson.IsUnescapedASCII(b[1:len(b)-1]) {
		return false
	}
	one, _ := wirejson.String(a)
	other, _ := wirejson.String(b)
	return one == other
}

// applyOperator applies an operator.
func (r *evaluation) applyOperator(name string, a, b []byte) ([]byte, error) {
	if err := r.chargeWork(len(a) + len(b)); err != nil {
		return nil, err
	}
	switch name {
	case "==", "!=", "<", "<=", ">", ">=":
		order, err := r.compareValues(a, b, 0)
		if err != nil {
			return nil, err
		}
		return boolJSON(map[string]bool{"==": order == 0, "!=": order != 0, "<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0}[name]), nil
	case "+":
		return r.addValues(a, b)
	}
	switch ka, kb := kindName(a), kindName(b); {
	case ka == "array" && kb == "array" && name == "-":
		return r.subtractArray(a, b)
	case ka == "string" && kb == "string" && name == "/":
		return splitString(r, a, b)
	}
	if kindName(a) != "number" || kindName(b) != "number" {
		return nil, newDataError("%s and %s have no %s", kindName(a), kindName(b), name)
	}
	x, y := parseNumber(a), parseNumber(b)
	switch name {
	case "-":
		return subtractNumbers(a, b), nil
	case "*":
		return formatNumber(x * y), nil
	}
	if name == "%" {
		x, y = math.Trunc(x), math.Trunc(y)
	}
	switch {
	case y == 0:
		return nil, newDataError("a division by zero")
	case name == "%":
		return formatNumber(math.Mod(x, math.Abs(y))), nil
	}
	return formatNumber(x / y), nil
}

// addValues adds two values of the same kind, or null.
func (r *evaluation) addValues(a, b []byte) ([]byte, error) {
	switch ka, kb := kindName(a), kindName(b); {
	case ka == "null":
		return b, nil
	case kb == "null":
		return a, nil
	case ka != kb:
		return nil, newDataError("%s and %s cannot be added", ka, kb)
	case ka == "number":
		return addNumbers(a, b), nil
	case ka == "boolean":
		return nil, newDataError("booleans cannot be added")
	case ka == "object":
		members, err := r.appendMembers(nil, a)
		if err == nil {
			members, err = r.appendMembers(members, b)
		}
		if err != nil {
			return nil, err
		}
		return r.buildObject(members)
	}
	if err := r.chargeOutput(len(a) + len(b)); err != nil {
		return nil, err
	}
	a, b = bytes.TrimSpace(a), bytes.TrimSpace(b)
	first, second := bytes.TrimSpace(a[1:len(a)-1]), bytes.TrimSpace(b[1:len(b)-1])
	if a[0] == '"' {
		return append(append(append([]byte{'"'}, a[1:len(a)-1]...), b[1:len(b)-1]...), '"'), nil
	}
	switch {
	case len(first) == 0:
		return b, nil
	case len(second) == 0:
		return a, nil
	}
	return append(append(append(append([]byte{'['}, first...), ','), second...), ']'), nil
}

// subtractArray removes the elements of b from a.
func (r *evaluation) subtractArray(a, b []byte) ([]byte, error) {
	var left arrayBuilder
	err := wirejson.EachElement(a, func(e []byte) error {
		gone := false
		err := wirejson.EachElement(b, func(other []byte) error {
			order, err := r.compareValues(e, other, 0)
			gone = gone || order == 0
			return err
		})
		if err != nil || gone {
			return err
		}
		return left.appendElement(r, e)
	})
	return left.finishArray(), err
}
