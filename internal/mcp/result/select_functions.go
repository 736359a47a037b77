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
var functions = map[string]jqFunction{
	"empty/0":  func(call) error { return nil },
	"select/1": evalSelect,
	"map/1": func(c call) error {
		return c.emit(c.collectArray(&node{op: opPipe, a: eachValue, b: c.args[0]}, c.in, c.env))
	},
	"first/1":      func(c call) error { return c.emitFirstN(1, c.args[0]) },
	"limit/2":      evalLimit,
	"any/0":        func(c call) error { return c.evalAnyAll(true, eachValue, same) },
	"all/0":        func(c call) error { return c.evalAnyAll(false, eachValue, same) },
	"any/1":        func(c call) error { return c.evalAnyAll(true, eachValue, c.args[0]) },
	"all/1":        func(c call) error { return c.evalAnyAll(false, eachValue, c.args[0]) },
	"any/2":        func(c call) error { return c.evalAnyAll(true, c.args[0], c.args[1]) },
	"all/2":        func(c call) error { return c.evalAnyAll(false, c.args[0], c.args[1]) },
	"has/1":        newOneArgFunction(evalHas),
	"contains/1":   newOneArgFunction((*evaluation).evalContains),
	"startswith/1": newOneArgFunction(newStringPredicate(strings.HasPrefix)),
	"endswith/1":   newOneArgFunction(newStringPredicate(strings.HasSuffix)),
	"ltrimstr/1":   newOneArgFunction(newStringTrimmer(strings.TrimPrefix)),
	"rtrimstr/1":   newOneArgFunction(newStringTrimmer(strings.TrimSuffix)),
	"split/1":      newOneArgFunction(splitString),
	"join/1":       newOneArgFunction(joinValues),
	"test/1":       newOneArgFunction(func(r *evaluation, in, re []byte) ([]byte, error) { return r.evalRegexpTest(in, re, nil) }),
	"test/2": func(c call) error {
		return c.eval(1, func(flags []byte) error {
			return c.eval(0, func(re []byte) error { return c.emit(c.evalRegexpTest(c.in, re, flags)) })
		})
	},
	"sort/0":           func(c call) error { return c.emit(c.buildArray(c.sortByKey(nil))) },
	"sort_by/1":        func(c call) error { return c.emit(c.buildArray(c.sortByKey(c.args[0]))) },
	"group_by/1":       func(c call) error { return c.emit(c.groupByKey(c.args[0])) },
	"unique/0":         func(c call) error { return c.emit(c.uniqueByKey(nil)) },
	"unique_by/1":      func(c call) error { return c.emit(c.uniqueByKey(c.args[0])) },
	"min/0":            func(c call) error { return c.emit(c.minOrMax(-1, nil)) },
	"max/0":            func(c call) error { return c.emit(c.minOrMax(1, nil)) },
	"min_by/1":         func(c call) error { return c.emit(c.minOrMax(-1, c.args[0])) },
	"max_by/1":         func(c call) error { return c.emit(c.minOrMax(1, c.args[0])) },
	"with_entries/1":   evalWithEntries,
	"map_values/1":     evalMapValues,
	"del/1":            evalDel,
	"reverse/0":        evalReverse,
	"length/0":         newNoArgFunction(lengthOf),
	"keys/0":           newNoArgFunction(func(r *evaluation, in []byte) ([]byte, error) { return r.keysOf(in, true) }),
	"keys_unsorted/0":  newNoArgFunction(func(r *evaluation, in []byte) ([]byte, error) { return r.keysOf(in, false) }),
	"not/0":            newNoArgFunction(func(_ *evaluation, in []byte) ([]byte, error) { return boolJSON(!isTruthy(in)), nil }),
	"type/0":           newNoArgFunction(func(_ *evaluation, in []byte) ([]byte, error) { return []byte(`"` + kindName(in) + `"`), nil }),
	"tostring/0":       newNoArgFunction((*evaluation).toStringJSON),
	"tojson/0":         newNoArgFunction(func(r *evaluation, in []byte) ([]byte, error) { return quoteString(r, in) }),
	"tonumber/0":       newNoArgFunction(toNumber),
	"fromjson/0":       newNoArgFunction(parseJSONText),
	"ascii_downcase/0": newStringFunction("has no case", shiftLetters('A', 'Z', 'a'-'A')),
	"ascii_upcase/0":   newStringFunction("has no case", shiftLetters('a', 'z', 'A'-'a')),
	"add/0":            newNoArgFunction(func(r *evaluation, in []byte) ([]byte, error) { return r.sumElements(in) }),
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
	"trim/0":         newStringFunction("cannot be trimmed", strings.TrimSpace),
	"arrays/0":       newKindFilter("array"), "objects/0": newKindFilter("object"), "strings/0": newKindFilter("string"), "numbers/0": newKindFilter("number"), "booleans/0": newKindFilter("boolean"), "nulls/0": newKindFilter("null"),
	"values/0": newKindFilter("array", "object", "string", "number", "boolean"), "scalars/0": newKindFilter("string", "number", "boolean", "null"), "iterables/0": newKindFilter("array", "object"),
}

var (
	same      = &node{op: opSame}
	eachValue = &node{op: opEach, a: same}
)

// call is the call of a function. Its arguments are expressions, which are evaluated on the input.
type call struct {
	*evaluation
	args []*node
	in   []byte
	env  *variableBinding
	out  emitFunc
}

// jqFunction is a function of the language.
type jqFunction func(c call) error

// eval evaluates an argument.
func (c call) eval(i int, out emitFunc) error { return c.evalNode(c.args[i], c.in, c.env, out) }

// emit emits a value or returns its error.
func (c call) emit(v []byte, err error) error {
	if err != nil {
		return err
	}
	return c.out(v)
}

// newKindFilter returns a function that emits only values of these kinds.
func newKindFilter(kinds ...string) jqFunction {
	return func(c call) error {
		if slices.Contains(kinds, kindName(c.in)) {
			return c.out(c.in)
		}
		return nil
	}
}

// newNoArgFunction returns a function without arguments that has one result.
func newNoArgFunction(f func(r *evaluation, in []byte) ([]byte, error)) jqFunction {
	return func(c call) error {
		if err := c.chargeWork(len(c.in)); err != nil {
			return err
		}
		return c.emit(f(c.evaluation, c.in))
	}
}

// newOneArgFunction returns a function that has one result for each value of its argument.
func newOneArgFunction(f func(r *evaluation, in, arg []byte) ([]byte, error)) jqFunction {
	return func(c call) error {
		return c.eval(0, func(arg []byte) error {
			if err := c.chargeWork(len(c.in) + len(arg)); err != nil {
				return err
			}
			return c.emit(f(c.evaluation, c.in, arg))
		})
	}
}

func evalSelect(c call) error {
	return c.eval(0, func(v []byte) error {
		if isTruthy(v) {
			return c.out(c.in)
		}
		return nil
	})
}

// firstNReachedError is the error that stops an expression after enough values.
type firstNReachedError struct{ _ byte }

func (*firstNReachedError) Error() string { return "enough" }

// emitFirstN emits the first n values of an expression.
func (c call) emitFirstN(n int, f *node) error {
	if n <= 0 {
		return nil
	}
	end := &firstNReachedError{}
	err := c.evalNode(f, c.in, c.env, func(v []byte) error {
		if err := c.out(v); err != nil {
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

func evalLimit(c call) error {
	return c.eval(0, func(v []byte) error {
		n, ok := toIndex(v)
		if !ok || n < 0 {
			return newDataError("the limit must be 0 or a positive number")
		}
		return c.emitFirstN(n, c.args[1])
	})
}

// evalAnyAll emits whether the result of f equals wanted for any value of another expression.
func (c call) evalAnyAll(wanted bool, values, f *node) error {
	found := false
	err := c.evalNode(values, c.in, c.env, func(v []byte) error {
		return c.evalNode(f, v, c.env, func(is []byte) error {
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
	return c.out(boolJSON(found == wanted))
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

func (r *evaluation) evalContains(in, arg []byte) ([]byte, error) {
	ok, err := r.containsValue(in, arg, 0)
	return boolJSON(ok), err
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

func evalReverse(c call) error {
	all, err := c.elementsWithKeys(nil)
	slices.Reverse(all)
	return c.emit(c.buildArray(all, err))
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
