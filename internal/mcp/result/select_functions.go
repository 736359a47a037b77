package result

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"mcpproxy/internal/mcp/wirejson"
)

// functions contains the functions of the language, by name and number of arguments.
var functions = map[string]*jqFunction{
	"empty/0":  {func(*evaluation, []*node, []byte, *variableBinding, emitFunc) error { return nil }},
	"select/1": {evalSelect},
	"map/1":    {evalMap},
	"first/1": {func(r *evaluation, args []*node, in []byte, env *variableBinding, out emitFunc) error {
		return r.emitFirstN(1, args[0], in, env, out)
	}},
	"limit/2": {evalLimit},
	"any/1": {func(r *evaluation, args []*node, in []byte, env *variableBinding, out emitFunc) error {
		return r.evalAnyAll(true, eachValue, args[0], in, env, out)
	}},
	"all/1": {func(r *evaluation, args []*node, in []byte, env *variableBinding, out emitFunc) error {
		return r.evalAnyAll(false, eachValue, args[0], in, env, out)
	}},
	"any/0": {func(r *evaluation, _ []*node, in []byte, env *variableBinding, out emitFunc) error {
		return r.evalAnyAll(true, eachValue, same, in, env, out)
	}},
	"all/0": {func(r *evaluation, _ []*node, in []byte, env *variableBinding, out emitFunc) error {
		return r.evalAnyAll(false, eachValue, same, in, env, out)
	}},
	"any/2": {func(r *evaluation, args []*node, in []byte, env *variableBinding, out emitFunc) error {
		return r.evalAnyAll(true, args[0], args[1], in, env, out)
	}},
	"all/2": {func(r *evaluation, args []*node, in []byte, env *variableBinding, out emitFunc) error {
		return r.evalAnyAll(false, args[0], args[1], in, env, out)
	}},
	"has/1": newOneArgFunction(evalHas),
	"contains/1": newOneArgFunction(func(r *evaluation, in, arg []byte) ([]byte, error) {
		ok, err := r.containsValue(in, arg, 0)
		return boolJSON(ok), err
	}),
	"startswith/1": newOneArgFunction(newStringPredicate(func(in, arg string) []byte { return boolJSON(strings.HasPrefix(in, arg)) })),
	"endswith/1":   newOneArgFunction(newStringPredicate(func(in, arg string) []byte { return boolJSON(strings.HasSuffix(in, arg)) })),
	"ltrimstr/1":   newOneArgFunction(newStringTrimmer(strings.TrimPrefix)),
	"rtrimstr/1":   newOneArgFunction(newStringTrimmer(strings.TrimSuffix)),
	"split/1":      newOneArgFunction(splitString),
	"join/1":       newOneArgFunction(joinValues),
	"test/1":       newOneArgFunction(func(r *evaluation, in, re []byte) ([]byte, error) { return r.evalRegexpTest(in, re, nil) }),
	"test/2": {func(r *evaluation, args []*node, in []byte, env *variableBinding, out emitFunc) error {
		return r.evalNode(args[1], in, env, func(flags []byte) error {
			return r.evalNode(args[0], in, env, func(re []byte) error { return emitOrFail(out)(r.evalRegexpTest(in, re, flags)) })
		})
	}},
	"sort/0": {func(r *evaluation, _ []*node, in []byte, env *variableBinding, out emitFunc) error {
		return emitOrFail(out)(r.buildArray(r.sortByKey(nil, in, env)))
	}},
	"sort_by/1": {func(r *evaluation, args []*node, in []byte, env *variableBinding, out emitFunc) error {
		return emitOrFail(out)(r.buildArray(r.sortByKey(args[0], in, env)))
	}},
	"group_by/1": {func(r *evaluation, args []*node, in []byte, env *variableBinding, out emitFunc) error {
		return emitOrFail(out)(r.groupByKey(args[0], in, env))
	}},
	"unique/0": {func(r *evaluation, _ []*node, in []byte, env *variableBinding, out emitFunc) error {
		return emitOrFail(out)(r.uniqueByKey(nil, in, env))
	}},
	"unique_by/1": {func(r *evaluation, args []*node, in []byte, env *variableBinding, out emitFunc) error {
		return emitOrFail(out)(r.uniqueByKey(args[0], in, env))
	}},
	"min/0": {func(r *evaluation, _ []*node, in []byte, env *variableBinding, out emitFunc) error {
		return emitOrFail(out)(r.minOrMax(-1, nil, in, env))
	}},
	"max/0": {func(r *evaluation, _ []*node, in []byte, env *variableBinding, out emitFunc) error {
		return emitOrFail(out)(r.minOrMax(1, nil, in, env))
	}},
	"min_by/1": {func(r *evaluation, args []*node, in []byte, env *variableBinding, out emitFunc) error {
		return emitOrFail(out)(r.minOrMax(-1, args[0], in, env))
	}},
	"max_by/1": {func(r *evaluation, args []*node, in []byte, env *variableBinding, out emitFunc) error {
		return emitOrFail(out)(r.minOrMax(1, args[0], in, env))
	}},
	"with_entries/1":   {evalWithEntries},
	"map_values/1":     {evalMapValues},
	"del/1":            {evalDel},
	"length/0":         newNoArgFunction(lengthOf),
	"keys/0":           newNoArgFunction(func(r *evaluation, in []byte) ([]byte, error) { return r.keysOf(in, true) }),
	"keys_unsorted/0":  newNoArgFunction(func(r *evaluation, in []byte) ([]byte, error) { return r.keysOf(in, false) }),
	"not/0":            newNoArgFunction(func(_ *evaluation, in []byte) ([]byte, error) { return boolJSON(!isTruthy(in)), nil }),
	"type/0":           newNoArgFunction(func(_ *evaluation, in []byte) ([]byte, error) { return []byte(`"` + kindName(in) + `"`), nil }),
	"tostring/0":       newNoArgFunction((*evaluation).toStringJSON),
	"tojson/0":         newNoArgFunction(func(r *evaluation, in []byte) ([]byte, error) { return quoteString(r, in) }),
	"tonumber/0":       newNoArgFunction(toNumber),
	"fromjson/0":       newNoArgFunction(parseJSONText),
	"ascii_downcase/0": newNoArgFunction(newCaseConverter('A', 'Z', 'a'-'A')),
	"ascii_upcase/0":   newNoArgFunction(newCaseConverter('a', 'z', 'A'-'a')),
	"add/0":            newNoArgFunction(func(r *evaluation, in []byte) ([]byte, error) { return r.sumElements(in) }),
	"reverse/0":        newNoArgFunction(reverseArray),
	"flatten/0":        newNoArgFunction(func(r *evaluation, in []byte) ([]byte, error) { return r.flattenArray(in, math.MaxInt32) }),
	"flatten/1": newOneArgFunction(func(r *evaluation, in, depth []byte) ([]byte, error) {
		n, ok := toIndex(depth)
		if !ok || n < 0 {
			return nil, newDataError("the depth of flatten must be a number from 0 on")
		}
		return r.flattenArray(in, n)
	}),
	"first/0":        newNoArgFunction(func(r *evaluation, in []byte) ([]byte, error) { return r.valueAt(in, []byte("0")) }),
	"last/0":         newNoArgFunction(func(r *evaluation, in []byte) ([]byte, error) { return r.valueAt(in, []byte("-1")) }),
	"to_entries/0":   newNoArgFunction((*evaluation).toEntries),
	"from_entries/0": newNoArgFunction(fromEntries),
	"floor/0":        newNoArgFunction(newNumberFunction(math.Floor)),
	"ceil/0":         newNoArgFunction(newNumberFunction(math.Ceil)),
	"round/0":        newNoArgFunction(newNumberFunction(math.Round)),
	"abs/0":          newNoArgFunction(newNumberFunction(math.Abs)),
	"trim/0": newNoArgFunction(func(r *evaluation, in []byte) ([]byte, error) {
		s, ok := wirejson.String(in)
		if !ok {
			return nil, newDataError("%s cannot be trimmed", kindName(in))
		}
		return r.newStringJSON(strings.TrimSpace(s))
	}),
	"arrays/0": newKindFilter("array"), "objects/0": newKindFilter("object"), "strings/0": newKindFilter("string"), "numbers/0": newKindFilter("number"), "booleans/0": newKindFilter("boolean"), "nulls/0": newKindFilter("null"),
	"values/0": newKindFilter("array", "object", "string", "number", "boolean"), "scalars/0": newKindFilter("string", "number", "boolean", "null"), "iterables/0": newKindFilter("array", "object"),
}

var (
	same      = &node{op: opSame}
	eachValue = &node{op: opEach, a: same}
)

// newKindFilter returns a function that emits only values of these kinds.
func newKindFilter(kinds ...string) *jqFunction {
	return &jqFunction{func(_ *evaluation, _ []*node, in []byte, _ *variableBinding, out emitFunc) error {
		if slices.Contains(kinds, kindName(in)) {
			return out(in)
		}
		return nil
	}}
}

// newNoArgFunction returns a function without arguments that has one result.
func newNoArgFunction(f func(r *evaluation, in []byte) ([]byte, error)) *jqFunction {
	return &jqFunction{func(r *evaluation, _ []*node, in []byte, _ *variableBinding, out emitFunc) error {
		if err := r.chargeWork(len(in)); err != nil {
			return err
		}
		return emitOrFail(out)(f(r, in))
	}}
}

// newOneArgFunction returns a function that has one result for each value of its argument.
func newOneArgFunction(f func(r *evaluation, in, arg []byte) ([]byte, error)) *jqFunction {
	return &jqFunction{func(r *evaluation, args []*node, in []byte, env *variableBinding, out emitFunc) error {
		return r.evalNode(args[0], in, env, func(arg []byte) error {
			if err := r.chargeWork(len(in) + len(arg)); err != nil {
				return err
			}
			return emitOrFail(out)(f(r, in, arg))
		})
	}}
}

func evalSelect(r *evaluation, args []*node, in []byte, env *variableBinding, out emitFunc) error {
	return r.evalNode(args[0], in, env, func(v []byte) error {
		if isTruthy(v) {
			return out(in)
		}
		return nil
	})
}

func evalMap(r *evaluation, args []*node, in []byte, env *variableBinding, out emitFunc) error {
	return emitOrFail(out)(r.collectArray(&node{op: opPipe, a: eachValue, b: args[0]}, in, env))
}

// firstNReachedError is the error that stops an expression after enough values.
type firstNReachedError struct{ _ byte }

func (*firstNReachedError) Error() string { return "enough" }

// emitFirstN emits the first n values of an expression.
func (r *evaluation) emitFirstN(n int, f *node, in []byte, env *variableBinding, out emitFunc) error {
	if n <= 0 {
		return nil
	}
	end := &firstNReachedError{}
	err := r.evalNode(f, in, env, func(v []byte) error {
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

func evalLimit(r *evaluation, args []*node, in []byte, env *variableBinding, out emitFunc) error {
	return r.evalNode(args[0], in, env, func(v []byte) error {
		n, ok := toIndex(v)
		if !ok || n < 0 {
			return newDataError("the limit must be 0 or a positive number")
		}
		return r.emitFirstN(n, args[1], in, env, out)
	})
}

// evalAnyAll emits whether the result of f equals wanted for any value of another expression.
func (r *evaluation) evalAnyAll(wanted bool, values, f *node, in []byte, env *variableBinding, out emitFunc) error {
	found := false
	err := r.evalNode(values, in, env, func(v []byte) error {
		return r.evalNode(f, v, env, func(is []byte) error {
			if isTruthy(is) == wanted {
				found = true
				return errDone
			}
			return nil
		})
	})
	if err != nil && err != errDone {
		return err
	}
	return out(boolJSON(found == wanted))
}

func evalHas(_ *evaluation, in, at []byte) ([]byte, error) {
	switch kindName(in) + " " + kindName(at) {
	case "object string":
		name, _ := wirejson.String(at)
		return boolJSON(wirejson.Find(in, name) != nil), nil
	case "array number":
		i, _ := toIndex(at)
		n := 0
		_ = wirejson.EachElement(in, func([]byte) error { n++; return nil })
		return boolJSON(i >= 0 && i < n), nil
	}
	return nil, newDataError("%s has nothing at a %s", kindName(in), kindName(at))
}

// containsValue implements jq's contains: a substring, an array whose elements are each within an element of a, or an
// object whose members are each within the same member of a.
func (r *evaluation) containsValue(a, b []byte, depth int) (bool, error) {
	if err := r.chargeWork(len(a) + len(b)); err != nil {
		return false, err
	}
	ka, kb := kindName(a), kindName(b)
	switch {
	case depth > maxCompared:
		return false, ErrLimit
	case ka != kb:
		if depth > 0 {
			return false, nil
		}
		return false, newDataError("%s cannot contain %s", ka, kb)
	case ka == "string":
		one, _ := wirejson.String(a)
		other, _ := wirejson.String(b)
		return strings.Contains(one, other), nil
	case ka == "array":
		all := true
		err := wirejson.EachElement(b, func(wanted []byte) error {
			found := false
			err := wirejson.EachElement(a, func(e []byte) error {
				if found {
					return nil
				}
				within, err := r.containsValue(e, wanted, depth+1)
				found = within
				return err
			})
			all = all && found
			return err
		})
		return all, err
	case ka == "object":
		all := true
		err := wirejson.EachMember(b, func(name, wanted []byte) error {
			v := wirejson.Find(a, string(name))
			if v == nil {
				all = false
				return nil
			}
			within, err := r.containsValue(v, wanted, depth+1)
			all = all && within
			return err
		})
		return all, err
	}
	order, err := r.compareValues(a, b, 0)
	return order == 0, err
}

// newStringPredicate returns a function of two strings.
func newStringPredicate(f func(in, arg string) []byte) func(*evaluation, []byte, []byte) ([]byte, error) {
	return func(_ *evaluation, in, arg []byte) ([]byte, error) {
		a, one := wirejson.String(in)
		b, two := wirejson.String(arg)
		if !one || !two {
			return nil, newDataError("%s and %s are not both strings", kindName(in), kindName(arg))
		}
		return f(a, b), nil
	}
}

// newStringTrimmer returns a function that removes a prefix or suffix.
func newStringTrimmer(f func(s, off string) string) func(*evaluation, []byte, []byte) ([]byte, error) {
	return func(r *evaluation, in, arg []byte) ([]byte, error) {
		a, one := wirejson.String(in)
		b, two := wirejson.String(arg)
		if !one || !two {
			return nil, newDataError("%s and %s are not both strings", kindName(in), kindName(arg))
		}
		return r.newStringJSON(f(a, b))
	}
}

func joinValues(r *evaluation, in, by []byte) ([]byte, error) {
	if kindName(by) != "string" {
		return nil, newDataError("%s cannot be joined by %s", kindName(in), kindName(by))
	}
	var out []byte
	err := r.emitElements(in, func(e []byte) error {
		var s []byte
		switch kindName(e) {
		case "null":
			s = []byte(`""`)
		case "array", "object":
			return newDataError("%s cannot be joined", kindName(e))
		default:
			var err error
			if s, err = r.toStringJSON(e); err != nil {
				return err
			}
		}
		if err := r.chargeOutput(len(s) + len(by)); err != nil {
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

func lengthOf(_ *evaluation, in []byte) ([]byte, error) {
	n := 0
	switch kindName(in) {
	case "null":
	case "string":
		s, _ := wirejson.String(in)
		n = utf8.RuneCountInString(s)
	case "array":
		_ = wirejson.EachElement(in, func([]byte) error { n++; return nil })
	case "object":
		_ = wirejson.EachMember(in, func(_, _ []byte) error { n++; return nil })
	case "number":
		return newNumberFunction(math.Abs)(nil, in)
	default:
		return nil, newDataError("%s has no length", kindName(in))
	}
	return strconv.AppendInt(nil, int64(n), 10), nil
}

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

func toNumber(r *evaluation, in []byte) ([]byte, error) {
	switch s, ok := wirejson.String(in); {
	case kindName(in) == "number":
		return in, nil
	case ok:
		text := []byte(strings.TrimSpace(s))
		if err := r.chargeOutput(len(text)); err != nil {
			return nil, err
		}
		if wirejson.Check(text, wirejson.Limits{Bytes: maxInput}) == nil && kindName(text) == "number" {
			return text, nil
		}
	}
	return nil, newDataError("%s is not a number", kindName(in))
}

func parseJSONText(r *evaluation, in []byte) ([]byte, error) {
	s, ok := wirejson.String(in)
	if !ok {
		return nil, newDataError("%s is not JSON text", kindName(in))
	}
	if err := r.chargeOutput(len(s)); err != nil {
		return nil, err
	}
	text := []byte(strings.TrimSpace(s))
	if wirejson.Check(text, wirejson.Limits{Bytes: maxInput, Depth: wirejson.RelayDepth}) != nil {
		return nil, newDataError("a text is not JSON")
	}
	return text, nil
}

func newCaseConverter(from, to byte, by int) func(*evaluation, []byte) ([]byte, error) {
	return func(r *evaluation, in []byte) ([]byte, error) {
		s, ok := wirejson.String(in)
		if !ok {
			return nil, newDataError("%s has no case", kindName(in))
		}
		b := []byte(s)
		for i, c := range b {
			if from <= c && c <= to {
				b[i] = byte(int(c) + by)
			}
		}
		return r.newStringJSON(string(b))
	}
}

// sumElements adds the elements of an array or the values of an object.
func (r *evaluation) sumElements(in []byte) ([]byte, error) {
	// Arrays and strings are added in one step, to save memory.
	var all arrayBuilder
	var text []byte
	total, kinds := null, ""
	err := r.emitElements(in, func(e []byte) error {
		k := kindName(e)
		switch {
		case k == "null":
			return nil
		case kinds == "" || kinds == k:
			kinds = k
		default:
			return newDataError("%s and %s cannot be added", kinds, k)
		}
		switch k {
		case "array":
			return wirejson.EachElement(e, func(v []byte) error { return all.appendElement(r, v) })
		case "string":
			text = append(text, e[1:len(e)-1]...)
			return r.chargeOutput(len(e))
		}
		var err error
		total, err = r.addValues(total, e)
		return err
	})
	switch kinds {
	case "array":
		total = all.finishArray()
	case "string":
		total = append(append([]byte{'"'}, text...), '"')
	}
	return total, err
}

func reverseArray(r *evaluation, in []byte) ([]byte, error) {
	all, err := r.elementsWithKeys(nil, in, nil)
	slices.Reverse(all)
	return r.buildArray(all, err)
}

func (r *evaluation) flattenArray(in []byte, depth int) ([]byte, error) {
	var b arrayBuilder
	var walk func(v []byte, depth int) error
	walk = func(v []byte, depth int) error {
		return r.emitElements(v, func(e []byte) error {
			if kindName(e) == "array" && depth > 0 {
				return walk(e, depth-1)
			}
			return b.appendElement(r, e)
		})
	}
	return b.finishArrayWith(walk(in, depth))
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

func evalWithEntries(r *evaluation, args []*node, in []byte, env *variableBinding, out emitFunc) error {
	all, err := r.toEntries(in)
	if err == nil {
		all, err = r.collectArray(&node{op: opPipe, a: eachValue, b: args[0]}, all, env)
	}
	if err != nil {
		return err
	}
	return emitOrFail(out)(fromEntries(r, all))
}

// evalMapValues replaces each value by the first result of an expression.
func evalMapValues(r *evaluation, args []*node, in []byte, env *variableBinding, out emitFunc) error {
	firstOf := func(v []byte) (first []byte, err error) {
		err = r.emitFirstN(1, args[0], v, env, func(one []byte) error { first = one; return nil })
		return first, err
	}
	if kindName(in) == "array" {
		var b arrayBuilder
		return emitOrFail(out)(b.finishArrayWith(r.emitElements(in, func(e []byte) error {
			v, err := firstOf(e)
			if v == nil || err != nil {
				return err
			}
			return b.appendElement(r, v)
		})))
	}
	if kindName(in) != "object" {
		return newDataError("%s has no values", kindName(in))
	}
	all, err := r.appendMembers(nil, in)
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
	return emitOrFail(out)(r.buildObject(kept))
}

func newNumberFunction(f func(float64) float64) func(*evaluation, []byte) ([]byte, error) {
	return func(_ *evaluation, in []byte) ([]byte, error) {
		if kindName(in) != "number" {
			return nil, newDataError("%s is not a number", kindName(in))
		}
		if n, ok := wirejson.Int(in); ok && n >= 0 {
			return in, nil
		}
		return formatNumber(f(parseNumber(in))), nil
	}
}
