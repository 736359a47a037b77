package schema

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Bounds on one validation. A step is what the library needs to begin with one
// schema on one value: about 300 ns.
const (
	budget       = 50_000
	bytesPerStep = 64 // of the arguments
	maxArgDepth  = 64
	maxNest      = 64 // schemas that apply each other to the same value
)

var errComplex = errors.New("it is too complex to check, or refers to itself without end")

// meter counts the steps of a validation and ends it when there are none left.
// The library has no such thing. But it asks the format of a schema about
// every value that the schema is applied to, before it goes further into
// either: so every schema gets a meter as its format, which takes from the
// budget what comes next.
type meter struct {
	left        int
	slowness    int  // how much longer a step can take for what the schema has
	program     int  // size of all patterns
	unevaluated bool // a schema asks for what others did not see
}

// spend panics when the budget is used up: an error would only end the check
// of one alternative.
func (m *meter) spend(steps int) {
	if m.left -= steps; m.left < 0 {
		panic(errUndecided)
	}
}

// bounded runs what spends steps, and returns why it did not come to its end.
func bounded(run func()) (undecided error) {
	defer func() {
		if p := recover(); p == errUndecided {
			undecided = errUndecided
		} else if p != nil {
			undecided = fmt.Errorf("validating the arguments failed: %v", p)
		}
	}()
	run()
	return nil
}

type schemas = []*jsonschema.Schema

// watch puts the meter to the schemas and all that they lead to.
func (m *meter) watch(all schemas) error {
	seen, anchors := map[*jsonschema.Schema]bool{nil: true}, map[string]schemas{}
	for i := 0; i < len(all); i++ {
		s := all[i]
		anchors[s.DynamicAnchor] = append(anchors[s.DynamicAnchor], s)
		for _, next := range slices.Concat(schemas{s}, inPlace(s), members(s), elements(s), named(s)) {
			if !seen[next] && next != s {
				all = append(all, next)
			}
			seen[next] = true
		}
	}
	nested := make(map[*jsonschema.Schema]schemas, len(all))
	for _, s := range all {
		nested[s] = inPlace(s)
		if s.DynamicRef != nil && s.DynamicRef.Anchor != "" {
			nested[s] = append(nested[s], anchors[s.DynamicRef.Anchor]...)
		}
		m.unevaluated = m.unevaluated || s.UnevaluatedItems != nil || s.UnevaluatedProperties != nil
		if s.Enum != nil {
			m.slowness = max(m.slowness, measure(s.Enum.Values).weight/2/weightPerStep)
		}
		if s.Const != nil {
			m.slowness = max(m.slowness, measure(*s.Const).weight/2/weightPerStep)
		}
		s.Format = &jsonschema.Format{Validate: m.toll(s, len(nested[s]))}
	}
	return checkNest(all, nested)
}

// checkNest finds schemas that apply too many others to the same value, or
// themselves.
func checkNest(all schemas, nested map[*jsonschema.Schema]schemas) error {
	depth := make(map[*jsonschema.Schema]int, len(all))
	for range maxNest {
		deeper := false
		for _, s := range slices.Backward(all) {
			for _, inner := range nested[s] {
				if depth[s] <= depth[inner] {
					depth[s], deeper = depth[inner]+1, true
				}
			}
		}
		if !deeper {
			return nil
		}
	}
	return errComplex
}

// toll returns the function that takes the price of applying s: of beginning
// with all that is in it, whose own meters then ask for the rest.
func (m *meter) toll(s *jsonschema.Schema, nested int) func(any) error {
	member, element, numbered := len(members(s)), len(elements(s)), len(named(s))-len(s.Properties)
	fixed := 1 + nested + len(s.Required)/8
	for _, names := range s.DependentRequired {
		fixed += len(names) / 8
	}
	if s.DynamicRef != nil || s.RecursiveRef != nil {
		fixed += 100 // they look at all the schemas on the way here
	}
	return func(v any) error {
		m.spend(fixed)
		switch v := v.(type) {
		case map[string]any: // a quarter: to go over the names
			m.spend(min(len(v), len(s.Properties)) + len(v)*member + len(v)*(1+m.lists(nested))/4)
		case []any:
			m.spend(min(len(v), numbered) + len(v)*element + len(v)*m.lists(nested)/4)
			if s.UniqueItems {
				m.spend(comparisons(v) / 2 / weightPerStep)
			}
		case string:
			m.spend(len(v) / 128)
		}
		return nil
	}
}

// lists returns how many nested schemas have a list of what they did not see.
func (m *meter) lists(nested int) int {
	if m.unevaluated {
		return nested
	}
	return 0
}

// comparisons returns the weight of what is compared at most to find equal
// elements. The library compares those with the same hash: lists and objects
// can be made to have one, and as many numbers as there are ways to part their
// bytes.
func comparisons(list []any) int {
	var containers, others []any
	for _, element := range list {
		switch element.(type) {
		case []any, map[string]any:
			containers = append(containers, element)
		default:
			others = append(others, element)
		}
	}
	in, out := measure(containers), measure(others)
	return len(containers)*in.weight + min(len(others), 2+out.digits/2)*out.weight
}

// inPlace returns the schemas that s applies to the same value.
func inPlace(s *jsonschema.Schema) schemas {
	list := slices.Concat(s.AllOf, s.AnyOf, s.OneOf, slices.Collect(maps.Values(s.DependentSchemas)))
	for _, dependency := range s.Dependencies {
		list = append(list, one(dependency))
	}
	if s.DynamicRef != nil {
		list = append(list, s.DynamicRef.Ref)
	}
	return present(append(list, s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else))
}

// members returns those that s can apply to each member of an object.
func members(s *jsonschema.Schema) schemas {
	list := slices.Collect(maps.Values(s.PatternProperties))
	return present(append(list, one(s.AdditionalProperties), s.UnevaluatedProperties, s.PropertyNames))
}

// elements returns those that s can apply to each element of an array.
func elements(s *jsonschema.Schema) schemas {
	return present(schemas{one(s.Items), one(s.AdditionalItems), s.Items2020, s.UnevaluatedItems, s.Contains})
}

// named returns those that s applies to one certain member or element.
func named(s *jsonschema.Schema) schemas {
	items, _ := s.Items.(schemas)
	return slices.Concat(slices.Collect(maps.Values(s.Properties)), s.PrefixItems, items)
}

func one(schema any) *jsonschema.Schema {
	s, _ := schema.(*jsonschema.Schema)
	return s
}

func present(list schemas) schemas {
	return slices.DeleteFunc(list, func(s *jsonschema.Schema) bool { return s == nil })
}

// errUndecided says that a validation took more than it may, so that nothing
// can be said about the arguments.
var errUndecided = errors.New("validating the arguments would take too long")
