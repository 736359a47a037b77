package result

import (
	"slices"
	"strconv"
	"strings"

	"mcpproxy/internal/mcp/wirejson"
)

func (r *evaluation) keysOf(in []byte, sort bool) ([]byte, error) {
	var b arrayBuilder
	switch kindName(in) {
	case "array":
		i := 0
		return b.finishArrayWith(wirejson.EachElement(in, func([]byte) error {
			i++
			return b.appendElement(r, strconv.AppendInt(nil, int64(i-1), 10))
		}))
	case "object":
		all, err := r.appendMembers(nil, in)
		if err != nil {
			return nil, err
		}
		if sort {
			slices.SortFunc(all, func(x, y [2][]byte) int {
				one, _ := wirejson.String(x[0])
				other, _ := wirejson.String(y[0])
				return strings.Compare(one, other)
			})
		}
		for _, m := range all {
			if err := b.appendElement(r, m[0]); err != nil {
				return nil, err
			}
		}
		return b.finishArray(), nil
	}
	return nil, newDataError("%s has no keys", kindName(in))
}

func (r *evaluation) toEntries(in []byte) ([]byte, error) {
	var b arrayBuilder
	add := func(key, value []byte) error {
		e, err := r.buildObject([][2][]byte{{[]byte(`"key"`), key}, {[]byte(`"value"`), value}})
		if err != nil {
			return err
		}
		return b.appendElement(r, e)
	}
	switch kindName(in) {
	case "object":
		return b.finishArrayWith(wirejson.EachMember(in, func(name, v []byte) error { return add(wirejson.AppendString(nil, name), v) }))
	case "array":
		i := -1
		return b.finishArrayWith(wirejson.EachElement(in, func(v []byte) error {
			i++
			return add(strconv.AppendInt(nil, int64(i), 10), v)
		}))
	}
	return nil, newDataError("%s has no entries", kindName(in))
}

// fromEntries builds an object from {key, value}, {name, value} or {k, v}.
func fromEntries(r *evaluation, in []byte) ([]byte, error) {
	var all [][2][]byte
	err := r.emitElements(in, func(e []byte) error {
		if kindName(e) != "object" {
			return newDataError("%s is not an entry", kindName(e))
		}
		var m [2][]byte
		for i, names := range [...][]string{{"key", "k", "name", "Name", "Key", "K"}, {"value", "v", "Value", "V"}} {
			m[i] = null
			for _, name := range names {
				if v := wirejson.Find(e, name); v != nil && (i == 1 || isTruthy(v)) {
					m[i] = v
					break
				}
			}
		}
		if kindName(m[0]) != "string" {
			return newDataError("%s is not a member name", kindName(m[0]))
		}
		all = append(all, m)
		return r.chargeOutput(64)
	})
	if err != nil {
		return nil, err
	}
	return r.buildObject(all)
}

func evalWithEntries(c call) error {
	all, err := c.toEntries(c.in)
	if err == nil {
		all, err = c.collectArray(&node{op: opPipe, a: eachValue, b: c.args[0]}, all, c.env)
	}
	if err != nil {
		return err
	}
	return c.emit(fromEntries(c.evaluation, all))
}

// evalMapValues replaces each value by the first result of an expression.
func evalMapValues(c call) error {
	firstOf := func(v []byte) (first []byte, err error) {
		inner := call{c.evaluation, c.args, v, c.env, func(one []byte) error { first = one; return nil }}
		err = inner.emitFirstN(1, c.args[0])
		return first, err
	}
	if kindName(c.in) == "array" {
		var b arrayBuilder
		return c.emit(b.finishArrayWith(c.emitElements(c.in, func(e []byte) error {
			v, err := firstOf(e)
			if v == nil || err != nil {
				return err
			}
			return b.appendElement(c.evaluation, v)
		})))
	}
	if kindName(c.in) != "object" {
		return newDataError("%s has no values", kindName(c.in))
	}
	all, err := c.appendMembers(nil, c.in)
	if err != nil {
		return err
	}
	kept := all[:0]
	for _, m := range all {
		if m[1], err = firstOf(m[1]); err != nil {
			return err
		}
		if m[1] != nil {
			kept = append(kept, m)
		}
	}
	return c.emit(c.buildObject(kept))
}
