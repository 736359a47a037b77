package schema

import (
	"encoding/json"
	"fmt"
	"strings"
)

// run is one validation, and its working memory.
//
// It goes over the arguments twice at most: first only to see whether they
// fit, stopping at the first that does not; then, if they do not, to collect
// what does not. A call whose arguments fit costs no allocation.
type run struct {
	schema *document
	doc    document // the arguments

	steps  int // left of the budget
	nested int
	over   bool // the budget is used up: nothing that is said holds any more

	collecting bool
	found      []violation
	path       []int32 // values from the root to the current one
	scope      []*resource
}

// violation is a Violation and how sure a sign it is that another alternative
// was meant.
type violation struct {
	Violation
	weight int
}

func (r *run) validate(root *node, args json.RawMessage) ([]Violation, error) {
	if len(args) > maxArgBytes {
		return nil, ErrUndecided
	}
	if err := r.doc.parse(args, maxArgDepth, maxArgValues); err != nil {
		return nil, fmt.Errorf("the arguments cannot be read: %w", err)
	}
	r.start(false)
	if r.check(root, 0, nil) && !r.over {
		return nil, nil
	}
	if r.over {
		return nil, ErrUndecided
	}
	r.start(true)
	r.check(root, 0, nil)
	return r.report(), nil
}

func (r *run) start(collecting bool) {
	r.steps = stepBudget + 2*len(r.doc.values)
	r.nested, r.over, r.collecting = 0, false, collecting
	r.found, r.path, r.scope = nil, r.path[:0], r.scope[:0]
}

// report gives what was found, each once.
func (r *run) report() []Violation {
	if len(r.found) == 0 { // the budget ended the collecting early
		return []Violation{{Message: "the arguments do not fit the schema"}}
	}
	var out []Violation
	seen := make(map[Violation]bool, len(r.found))
	for _, v := range r.found {
		if !seen[v.Violation] && len(out) < maxReported {
			seen[v.Violation] = true
			out = append(out, v.Violation)
		}
	}
	r.found = nil
	return out
}

// spend takes n steps from the budget. It is false when there are none left.
func (r *run) spend(n int) bool {
	if r.steps -= n; r.steps < 0 || n < 0 {
		r.over = true
	}
	return !r.over
}

// fail notes a violation by the value at v, and is false.
func (r *run) fail(v int32, format string, args ...any) bool {
	return r.failWeighing(1, v, format, args...)
}

// failWeighing is fail for a violation that says more than others that not
// this alternative was meant.
func (r *run) failWeighing(weight int, v int32, format string, args ...any) bool {
	if r.collecting && len(r.found) < 4*maxReported {
		r.found = append(r.found, violation{Violation{r.pointer(), fmt.Sprintf(format, args...)}, weight})
	}
	return false
}

// pointer gives the JSON pointer to the current value.
func (r *run) pointer() string {
	var b strings.Builder
	parent := int32(0)
	for _, v := range r.path {
		b.WriteByte('/')
		if r.doc.values[parent].kind == '{' {
			writePointer(&b, r.doc.name(v))
		} else {
			index := 0
			for m := r.doc.first(parent); m != v; m = r.doc.next(m) {
				index++
			}
			fmt.Fprint(&b, index)
		}
		parent = v
	}
	return b.String()
}

// goOn says whether checking has a point after a result: it has while it was
// right, and to collect more of what is wrong.
func (r *run) goOn(ok bool) bool { return (ok || r.collecting) && !r.over }

// inside checks a member or an element.
func (r *run) inside(n *node, v int32) bool {
	if n.verdict == valid {
		return true
	}
	r.path = append(r.path, v)
	ok := r.check(n, v, nil)
	r.path = r.path[:len(r.path)-1]
	return ok
}

// quietly checks without collecting.
func (r *run) quietly(n *node, v int32, ev *evaluated) bool {
	was := r.collecting
	r.collecting = false
	ok := r.check(n, v, ev)
	r.collecting = was
	return ok
}

// check says whether the value at v fits the schema. ev, when not nil, notes
// which of its members or elements were looked at.
func (r *run) check(n *node, v int32, ev *evaluated) bool {
	if !r.spend(1) || n.verdict != depends {
		return !r.over && (n.verdict == valid || r.fail(v, "nothing is allowed here"))
	}
	if r.nested++; r.nested > nestBudget {
		r.over = true
	}
	depth := len(r.scope)
	if depth == 0 || r.scope[depth-1] != n.resource {
		r.scope = append(r.scope, n.resource)
	}
	ok := r.simple(n, v)
	if ok { // a value of another type breaks other rules for no other reason
		ok = r.all(n, v, ev)
	}
	r.scope = r.scope[:depth]
	r.nested--
	return ok && !r.over
}

// simple checks the keywords that no other has a part in.
func (r *run) simple(n *node, v int32) bool {
	if n.types != 0 && n.types&r.typeOf(v) == 0 {
		return r.failWeighing(3, v, "want %s, but got %s", n.types, r.typeOf(v))
	}
	if n.constant != 0 && !r.equalConstant(v, n.constant) {
		return r.failWeighing(5, v, "must be %s", r.show(n.constant))
	}
	if n.enum != nil && !r.inEnum(n.enum, v) {
		return r.failWeighing(5, v, "must be one of %s", r.showAll(n.enum.all))
	}
	return true
}

// all checks the other keywords.
func (r *run) all(n *node, v int32, ev *evaluated) bool {
	own := ev
	if n.tracks {
		own = &evaluated{}
	}
	ok := true
	if n.ref != nil {
		ok = r.check(r.referred(n), v, own)
	}
	if r.goOn(ok) {
		ok = r.typed(n, v, own) && ok
	}
	if r.goOn(ok) {
		ok = r.combined(n, v, own) && ok
	}
	if n.tracks && ok && !r.over { // else what no schema looked at is not known
		if ok = r.leftOver(n, v, own); ok && ev != nil {
			ev.merge(own)
		}
	}
	return ok
}

// referred gives the schema that the node refers to: for a dynamic reference
// the first in the dynamic scope that has the name.
func (r *run) referred(n *node) *node {
	if n.dynamic == "" {
		return n.ref
	}
	for _, res := range r.scope {
		if to := res.dynamic[n.dynamic]; to != nil {
			return to
		}
	}
	return n.ref
}

// typed checks the keywords for the type that the value has.
func (r *run) typed(n *node, v int32, ev *evaluated) bool {
	switch r.doc.values[v].kind {
	case '{':
		return n.object == nil || r.checkObject(n.object, v, ev)
	case '[':
		return n.array == nil || r.checkArray(n.array, v, ev)
	case '"':
		return n.str == nil || r.checkString(n.str, v)
	case 0:
		return n.number == nil || r.checkNumber(n.number, v)
	}
	return true
}

func (r *run) typeOf(v int32) typeSet {
	switch r.doc.values[v].kind {
	case '{':
		return isObject
	case '[':
		return isArray
	case '"':
		return isString
	case 't', 'f':
		return isBoolean
	case 'n':
		return isNull
	}
	if raw := r.doc.raw(v); !plainInteger(raw) {
		if n := parseNumber(raw); !n.isInteger() {
			return isNumber
		}
	}
	return isInteger
}

// plainInteger says whether a number is written without point and exponent.
func plainInteger(raw []byte) bool {
	for _, c := range raw {
		if c == '.' || c == 'e' || c == 'E' {
			return false
		}
	}
	return true
}

// String names the types as messages do: "string", "string or null".
func (t typeSet) String() string {
	if t&isNumber != 0 {
		t &^= isInteger
	}
	var names []string
	for i, name := range typeNames {
		if t&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	if last := len(names) - 1; last > 0 {
		return strings.Join(names[:last], ", ") + " or " + names[last]
	}
	return strings.Join(names, "")
}
