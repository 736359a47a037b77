package result

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"mcpproxy/internal/mcp/wirejson"
)

// functions are the functions of the language, by name and number of arguments.
var functions = map[string]*function{
	"empty/0":  {func(*run, []*node, []byte, *binding, emit) error { return nil }},
	"select/1": {selectFunction},
	"map/1":    {mapFunction},
	"first/1": {func(r *run, args []*node, in []byte, env *binding, out emit) error {
		return r.firstN(1, args[0], in, env, out)
	}},
	"limit/2": {limitFunction},
	"any/1": {func(r *run, args []*node, in []byte, env *binding, out emit) error {
		return r.anyAll(true, eachValue, args[0], in, env, out)
	}},
	"all/1": {func(r *run, args []*node, in []byte, env *binding, out emit) error {
		return r.anyAll(false, eachValue, args[0], in, env, out)
	}},
	"any/0": {func(r *run, _ []*node, in []byte, env *binding, out emit) error {
		return r.anyAll(true, eachValue, same, in, env, out)
	}},
	"all/0": {func(r *run, _ []*node, in []byte, env *binding, out emit) error {
		return r.anyAll(false, eachValue, same, in, env, out)
	}},
	"any/2": {func(r *run, args []*node, in []byte, env *binding, out emit) error {
		return r.anyAll(true, args[0], args[1], in, env, out)
	}},
	"all/2": {func(r *run, args []*node, in []byte, env *binding, out emit) error {
		return r.anyAll(false, args[0], args[1], in, env, out)
	}},
	"has/1": of(has),
	"contains/1": of(func(r *run, in, arg []byte) ([]byte, error) {
		ok, err := r.contains(in, arg, 0)
		return boolean(ok), err
	}),
	"startswith/1": of(texts(func(in, arg string) []byte { return boolean(strings.HasPrefix(in, arg)) })),
	"endswith/1":   of(texts(func(in, arg string) []byte { return boolean(strings.HasSuffix(in, arg)) })),
	"ltrimstr/1":   of(trimmed(strings.TrimPrefix)),
	"rtrimstr/1":   of(trimmed(strings.TrimSuffix)),
	"split/1":      of(split),
	"join/1":       of(joinValues),
	"test/1":       of(func(r *run, in, re []byte) ([]byte, error) { return r.test(in, re, nil) }),
	"test/2": {func(r *run, args []*node, in []byte, env *binding, out emit) error {
		return r.eval(args[1], in, env, func(flags []byte) error {
			return r.eval(args[0], in, env, func(re []byte) error { return put(out)(r.test(in, re, flags)) })
		})
	}},
	"sort/0": {func(r *run, _ []*node, in []byte, env *binding, out emit) error {
		return put(out)(r.list(r.sorted(nil, in, env)))
	}},
	"sort_by/1": {func(r *run, args []*node, in []byte, env *binding, out emit) error {
		return put(out)(r.list(r.sorted(args[0], in, env)))
	}},
	"group_by/1": {func(r *run, args []*node, in []byte, env *binding, out emit) error {
		return put(out)(r.groups(args[0], in, env))
	}},
	"unique/0": {func(r *run, _ []*node, in []byte, env *binding, out emit) error {
		return put(out)(r.unique(nil, in, env))
	}},
	"unique_by/1": {func(r *run, args []*node, in []byte, env *binding, out emit) error {
		return put(out)(r.unique(args[0], in, env))
	}},
	"min/0": {func(r *run, _ []*node, in []byte, env *binding, out emit) error {
		return put(out)(r.extreme(-1, nil, in, env))
	}},
	"max/0": {func(r *run, _ []*node, in []byte, env *binding, out emit) error {
		return put(out)(r.extreme(1, nil, in, env))
	}},
	"min_by/1": {func(r *run, args []*node, in []byte, env *binding, out emit) error {
		return put(out)(r.extreme(-1, args[0], in, env))
	}},
	"max_by/1": {func(r *run, args []*node, in []byte, env *binding, out emit) error {
		return put(out)(r.extreme(1, args[0], in, env))
	}},
	"with_entries/1":   {withEntries},
	"map_values/1":     {mapValues},
	"del/1":            {deleteFunction},
	"length/0":         plain(length),
	"keys/0":           plain(func(r *run, in []byte) ([]byte, error) { return r.keys(in, true) }),
	"keys_unsorted/0":  plain(func(r *run, in []byte) ([]byte, error) { return r.keys(in, false) }),
	"not/0":            plain(func(_ *run, in []byte) ([]byte, error) { return boolean(!truthy(in)), nil }),
	"type/0":           plain(func(_ *run, in []byte) ([]byte, error) { return []byte(`"` + kind(in) + `"`), nil }),
	"tostring/0":       plain((*run).stringOf),
	"tojson/0":         plain(func(r *run, in []byte) ([]byte, error) { return quoted(r, in) }),
	"tonumber/0":       plain(toNumber),
	"fromjson/0":       plain(fromJSON),
	"ascii_downcase/0": plain(cased('A', 'Z', 'a'-'A')),
	"ascii_upcase/0":   plain(cased('a', 'z', 'A'-'a')),
	"add/0":            plain(func(r *run, in []byte) ([]byte, error) { return r.sum(in) }),
	"reverse/0":        plain(reversed),
	"flatten/0":        plain(func(r *run, in []byte) ([]byte, error) { return r.flat(in, math.MaxInt32) }),
	"flatten/1": of(func(r *run, in, depth []byte) ([]byte, error) {
		n, ok := wholeOf(depth)
		if !ok || n < 0 {
			return nil, failed("the depth of flatten must be a number from 0 on")
		}
		return r.flat(in, n)
	}),
	"first/0":        plain(func(r *run, in []byte) ([]byte, error) { return r.index(in, []byte("0")) }),
	"last/0":         plain(func(r *run, in []byte) ([]byte, error) { return r.index(in, []byte("-1")) }),
	"to_entries/0":   plain((*run).entries),
	"from_entries/0": plain(fromEntries),
	"floor/0":        plain(rounded(math.Floor)),
	"ceil/0":         plain(rounded(math.Ceil)),
	"round/0":        plain(rounded(math.Round)),
	"abs/0":          plain(rounded(math.Abs)),
	"trim/0": plain(func(r *run, in []byte) ([]byte, error) {
		s, ok := wirejson.String(in)
		if !ok {
			return nil, failed("%s cannot be trimmed", kind(in))
		}
		return r.text(strings.TrimSpace(s))
	}),
	"arrays/0": ofKind("array"), "objects/0": ofKind("object"), "strings/0": ofKind("string"), "numbers/0": ofKind("number"), "booleans/0": ofKind("boolean"), "nulls/0": ofKind("null"),
	"values/0": ofKind("array", "object", "string", "number", "boolean"), "scalars/0": ofKind("string", "number", "boolean", "null"), "iterables/0": ofKind("array", "object"),
}

var (
	same      = &node{op: opSame}
	eachValue = &node{op: opEach, a: same}
)

// ofKind passes values of some kinds.
func ofKind(kinds ...string) *function {
	return &function{func(_ *run, _ []*node, in []byte, _ *binding, out emit) error {
		if slices.Contains(kinds, kind(in)) {
			return out(in)
		}
		return nil
	}}
}

// plain is a function without arguments and with one result.
func plain(f func(r *run, in []byte) ([]byte, error)) *function {
	return &function{func(r *run, _ []*node, in []byte, _ *binding, out emit) error {
		if err := r.countRead(len(in)); err != nil {
			return err
		}
		return put(out)(f(r, in))
	}}
}

// of is a function with one result per value of its argument.
func of(f func(r *run, in, arg []byte) ([]byte, error)) *function {
	return &function{func(r *run, args []*node, in []byte, env *binding, out emit) error {
		return r.eval(args[0], in, env, func(arg []byte) error {
			if err := r.countRead(len(in) + len(arg)); err != nil {
				return err
			}
			return put(out)(f(r, in, arg))
		})
	}}
}

func selectFunction(r *run, args []*node, in []byte, env *binding, out emit) error {
	return r.eval(args[0], in, env, func(v []byte) error {
		if truthy(v) {
			return out(in)
		}
		return nil
	})
}

func mapFunction(r *run, args []*node, in []byte, env *binding, out emit) error {
	return put(out)(r.collect(&node{op: opPipe, a: eachValue, b: args[0]}, in, env))
}

// stopError is the error that stops an expression after enough values.
type stopError struct{ _ byte }

func (*stopError) Error() string { return "enough" }

// firstN emits the first n values of an expression.
func (r *run) firstN(n int, f *node, in []byte, env *binding, out emit) error {
	if n <= 0 {
		return nil
	}
	end := &stopError{}
	err := r.eval(f, in, env, func(v []byte) error {
		if err := out(v); err != nil {
			return err
		}
		if n--; n == 0 {
			return end
		}
		return nil
	})
	if err == error(end) {
		return nil
	}
	return err
}

func limitFunction(r *run, args []*node, in []byte, env *binding, out emit) error {
	return r.eval(args[0], in, env, func(v []byte) error {
		n, ok := wholeOf(v)
		if !ok || n < 0 {
			return failed("the limit must be a number from 0 on")
		}
		return r.firstN(n, args[1], in, env, out)
	})
}

// anyAll emits whether f is wanted for any value of another expression.
func (r *run) anyAll(wanted bool, values, f *node, in []byte, env *binding, out emit) error {
	found := false
	err := r.eval(values, in, env, func(v []byte) error {
		return r.eval(f, v, env, func(is []byte) error {
			if truthy(is) == wanted {
				found = true
				return errDone
			}
			return nil
		})
	})
	if err != nil && err != errDone {
		return err
	}
	return out(boolean(found == wanted))
}

func has(_ *run, in, at []byte) ([]byte, error) {
	switch kind(in) + " " + kind(at) {
	case "object string":
		name, _ := wirejson.String(at)
		return boolean(wirejson.Find(in, name) != nil), nil
	case "array number":
		i, _ := wholeOf(at)
		n := 0
		_ = wirejson.Elements(in, func([]byte) error { n++; return nil })
		return boolean(i >= 0 && i < n), nil
	}
	return nil, failed("%s has nothing at a %s", kind(in), kind(at))
}

// contains implements jq's contains: a substring, each element within one of a's, each member within the
// member of a.
func (r *run) contains(a, b []byte, depth int) (bool, error) {
	if err := r.countRead(len(a) + len(b)); err != nil {
		return false, err
	}
	ka, kb := kind(a), kind(b)
	switch {
	case depth > maxCompared:
		return false, ErrLimit
	case ka != kb:
		if depth > 0 {
			return false, nil
		}
		return false, failed("%s cannot contain %s", ka, kb)
	case ka == "string":
		one, _ := wirejson.String(a)
		other, _ := wirejson.String(b)
		return strings.Contains(one, other), nil
	case ka == "array":
		all := true
		err := wirejson.Elements(b, func(wanted []byte) error {
			found := false
			err := wirejson.Elements(a, func(e []byte) error {
				if found {
					return nil
				}
				within, err := r.contains(e, wanted, depth+1)
				found = within
				return err
			})
			all = all && found
			return err
		})
		return all, err
	case ka == "object":
		all := true
		err := wirejson.Members(b, func(name, wanted []byte) error {
			v := wirejson.Find(a, string(name))
			if v == nil {
				all = false
				return nil
			}
			within, err := r.contains(v, wanted, depth+1)
			all = all && within
			return err
		})
		return all, err
	}
	order, err := r.compare(a, b, 0)
	return order == 0, err
}

// texts is a function of two strings.
func texts(f func(in, arg string) []byte) func(*run, []byte, []byte) ([]byte, error) {
	return func(_ *run, in, arg []byte) ([]byte, error) {
		a, one := wirejson.String(in)
		b, two := wirejson.String(arg)
		if !one || !two {
			return nil, failed("%s and %s are not both strings", kind(in), kind(arg))
		}
		return f(a, b), nil
	}
}

// trimmed removes a prefix or suffix.
func trimmed(f func(s, off string) string) func(*run, []byte, []byte) ([]byte, error) {
	return func(r *run, in, arg []byte) ([]byte, error) {
		a, one := wirejson.String(in)
		b, two := wirejson.String(arg)
		if !one || !two {
			return nil, failed("%s and %s are not both strings", kind(in), kind(arg))
		}
		return r.text(f(a, b))
	}
}

func joinValues(r *run, in, by []byte) ([]byte, error) {
	if kind(by) != "string" {
		return nil, failed("%s cannot be joined by %s", kind(in), kind(by))
	}
	var out []byte
	err := r.each(in, func(e []byte) error {
		var s []byte
		switch kind(e) {
		case "null":
			s = []byte(`""`)
		case "array", "object":
			return failed("%s cannot be joined", kind(e))
		default:
			var err error
			if s, err = r.stringOf(e); err != nil {
				return err
			}
		}
		if err := r.countMade(len(s) + len(by)); err != nil {
			return err
		}
		if out == nil {
			out = append(out, '"')
		} else {
			out = append(out, by[1:len(by)-1]...)
		}
		out = append(out, s[1:len(s)-1]...)
		return nil
	})
	if out == nil {
		return []byte(`""`), err
	}
	return append(out, '"'), err
}

func length(_ *run, in []byte) ([]byte, error) {
	n := 0
	switch kind(in) {
	case "null":
	case "string":
		s, _ := wirejson.String(in)
		n = utf8.RuneCountInString(s)
	case "array":
		_ = wirejson.Elements(in, func([]byte) error { n++; return nil })
	case "object":
		_ = wirejson.Members(in, func(_, _ []byte) error { n++; return nil })
	case "number":
		return rounded(math.Abs)(nil, in)
	default:
		return nil, failed("%s has no length", kind(in))
	}
	return strconv.AppendInt(nil, int64(n), 10), nil
}

func (r *run) keys(in []byte, sort bool) ([]byte, error) {
	var b array
	switch kind(in) {
	case "array":
		i := 0
		return b.endOf(wirejson.Elements(in, func([]byte) error {
			i++
			return b.add(r, strconv.AppendInt(nil, int64(i-1), 10))
		}))
	case "object":
		all, err := r.members(nil, in)
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
			if err := b.add(r, m[0]); err != nil {
				return nil, err
			}
		}
		return b.end(), nil
	}
	return nil, failed("%s has no keys", kind(in))
}

func toNumber(r *run, in []byte) ([]byte, error) {
	switch s, ok := wirejson.String(in); {
	case kind(in) == "number":
		return in, nil
	case ok:
		text := []byte(strings.TrimSpace(s))
		if err := r.countMade(len(text)); err != nil {
			return nil, err
		}
		if wirejson.Check(text, wirejson.Limits{Bytes: maxInput}) == nil && kind(text) == "number" {
			return text, nil
		}
	}
	return nil, failed("%s is no number", kind(in))
}

func fromJSON(r *run, in []byte) ([]byte, error) {
	s, ok := wirejson.String(in)
	if !ok {
		return nil, failed("%s is no text of JSON", kind(in))
	}
	if err := r.countMade(len(s)); err != nil {
		return nil, err
	}
	text := []byte(strings.TrimSpace(s))
	if wirejson.Check(text, wirejson.Limits{Bytes: maxInput, Depth: wirejson.RelayDepth}) != nil {
		return nil, failed("a text is not JSON")
	}
	return text, nil
}

func cased(from, to byte, by int) func(*run, []byte) ([]byte, error) {
	return func(r *run, in []byte) ([]byte, error) {
		s, ok := wirejson.String(in)
		if !ok {
			return nil, failed("%s has no case", kind(in))
		}
		b := []byte(s)
		for i, c := range b {
			if from <= c && c <= to {
				b[i] = byte(int(c) + by)
			}
		}
		return r.text(string(b))
	}
}

// sum adds the elements of an array or the values of an object.
func (r *run) sum(in []byte) ([]byte, error) {
	// Arrays and strings are added in one step, to save memory.
	var all array
	var text []byte
	total, kinds := null, ""
	err := r.each(in, func(e []byte) error {
		k := kind(e)
		switch {
		case k == "null":
			return nil
		case kinds == "" || kinds == k:
			kinds = k
		default:
			return failed("%s and %s cannot be added", kinds, k)
		}
		switch k {
		case "array":
			return wirejson.Elements(e, func(v []byte) error { return all.add(r, v) })
		case "string":
			text = append(text, e[1:len(e)-1]...)
			return r.countMade(len(e))
		}
		var err error
		total, err = r.plus(total, e)
		return err
	})
	switch kinds {
	case "array":
		total = all.end()
	case "string":
		total = append(append([]byte{'"'}, text...), '"')
	}
	return total, err
}

func reversed(r *run, in []byte) ([]byte, error) {
	all, err := r.keyedBy(nil, in, nil)
	slices.Reverse(all)
	return r.list(all, err)
}

func (r *run) flat(in []byte, depth int) ([]byte, error) {
	var b array
	var walk func(v []byte, depth int) error
	walk = func(v []byte, depth int) error {
		return r.each(v, func(e []byte) error {
			if kind(e) == "array" && depth > 0 {
				return walk(e, depth-1)
			}
			return b.add(r, e)
		})
	}
	return b.endOf(walk(in, depth))
}

func (r *run) entries(in []byte) ([]byte, error) {
	var b array
	add := func(key, value []byte) error {
		e, err := r.objectOf([][2][]byte{{[]byte(`"key"`), key}, {[]byte(`"value"`), value}})
		if err != nil {
			return err
		}
		return b.add(r, e)
	}
	switch kind(in) {
	case "object":
		return b.endOf(wirejson.Members(in, func(name, v []byte) error { return add(wirejson.AppendString(nil, name), v) }))
	case "array":
		i := -1
		return b.endOf(wirejson.Elements(in, func(v []byte) error {
			i++
			return add(strconv.AppendInt(nil, int64(i), 10), v)
		}))
	}
	return nil, failed("%s has no entries", kind(in))
}

// fromEntries builds an object from {key, value}, {name, value} or {k, v}.
func fromEntries(r *run, in []byte) ([]byte, error) {
	var all [][2][]byte
	err := r.each(in, func(e []byte) error {
		if kind(e) != "object" {
			return failed("%s is no entry", kind(e))
		}
		var m [2][]byte
		for i, names := range [...][]string{{"key", "k", "name", "Name", "Key", "K"}, {"value", "v", "Value", "V"}} {
			m[i] = null
			for _, name := range names {
				if v := wirejson.Find(e, name); v != nil && (i == 1 || truthy(v)) {
					m[i] = v
					break
				}
			}
		}
		if kind(m[0]) != "string" {
			return failed("%s is no name of a member", kind(m[0]))
		}
		all = append(all, m)
		return r.countMade(64)
	})
	if err != nil {
		return nil, err
	}
	return r.objectOf(all)
}

func withEntries(r *run, args []*node, in []byte, env *binding, out emit) error {
	all, err := r.entries(in)
	if err == nil {
		all, err = r.collect(&node{op: opPipe, a: eachValue, b: args[0]}, all, env)
	}
	if err != nil {
		return err
	}
	return put(out)(fromEntries(r, all))
}

// mapValues replaces each value by the first result of an expression.
func mapValues(r *run, args []*node, in []byte, env *binding, out emit) error {
	firstOf := func(v []byte) (first []byte, err error) {
		err = r.firstN(1, args[0], v, env, func(one []byte) error { first = one; return nil })
		return first, err
	}
	if kind(in) == "array" {
		var b array
		return put(out)(b.endOf(r.each(in, func(e []byte) error {
			v, err := firstOf(e)
			if v == nil || err != nil {
				return err
			}
			return b.add(r, v)
		})))
	}
	if kind(in) != "object" {
		return failed("%s has no values", kind(in))
	}
	all, err := r.members(nil, in)
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
	return put(out)(r.objectOf(kept))
}

func rounded(f func(float64) float64) func(*run, []byte) ([]byte, error) {
	return func(_ *run, in []byte) ([]byte, error) {
		if kind(in) != "number" {
			return nil, failed("%s is no number", kind(in))
		}
		if n, ok := wirejson.Int(in); ok && n >= 0 {
			return in, nil
		}
		return appendNumber(f(numberValue(in))), nil
	}
}
