package schema

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Bounds on one validation. A step is the cost of applying one schema to one value in the
// library: about 300 ns.
const (
	budget       = 50_000
	bytesPerStep = 64 // of the arguments
	maxArgDepth  = 64
	maxNest      = 64 // schemas that apply each other to the same value
)

var errTooComplex = errors.New("it is too complex to check, or refers to itself without end")

// meter counts the steps of a validation and aborts it when none are left. The library
// has no such limit, but it checks the format of a schema for each value before it goes
// deeper. So every schema gets a meter as its format, which charges the cost of the next
// part.
type meter struct {
	left        int
	stepFactor  int  // cost factor for expensive keywords
	patternSize int  // size of all patterns
	unevaluated bool // a schema uses unevaluated*
}

// spend panics when the budget is used up: an error would only end one alternative.
func (m *meter) spend(steps int) {
	if m.left -= steps; m.left < 0 {
		panic(errUndecided)
	}
}

// runBounded runs a function that spends steps, and returns why it was aborted.
func runBounded(run func()) (undecided error) {
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

// attach attaches the meter to the schemas and all that they refer to.
func (m *meter) attach(all schemas) error {
	seen, anchors := map[*jsonschema.Schema]bool{nil: true}, map[string]schemas{}
	for i := 0; i < len(all); i++ {
		s := all[i]
		anchors[s.DynamicAnchor] = append(anchors[s.DynamicAnchor], s)
		for _, next := range slices.Concat(schemas{s}, inPlace(s), memberSchemas(s), elementSchemas(s), namedSchemas(s)) {
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
			m.stepFactor = max(m.stepFactor, measure(s.Enum.Values).weight/2/weightPerStep)
		}
		if s.Const != nil {
			m.stepFactor = max(m.stepFactor, measure(*s.Const).weight/2/weightPerStep)
		}
		s.Format = &jsonschema.Format{Validate: m.charge(s, len(nested[s]))}
	}
	return checkNest(all, nested)
}

// checkNest finds schemas that apply too many others to the same value, or themselves.
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
	return errTooComplex
}

// charge returns the function that charges the cost of applying s without nested schemas,
// whose own meters charge for themselves.
func (m *meter) charge(s *jsonschema.Schema, nested int) func(any) error {
	member, element, numbered := len(memberSchemas(s)), len(elementSchemas(s)), len(namedSchemas(s))-len(s.Properties)
	fixed := 1 + nested + len(s.Required)/8
	for _, names := range s.DependentRequired {
		fixed += len(names) / 8
	}
	if s.DynamicRef != nil || s.RecursiveRef != nil {
		fixed += 100 // they inspect all schemas on the path
	}
	return func(v any) error {
		m.spend(fixed)
		switch v := v.(type) {
		case map[string]any: // a quarter: to iterate over the names
			m.spend(min(len(v), len(s.Properties)) + len(v)*member + len(v)*(1+m.unevaluatedLists(nested))/4)
		case []any:
			m.spend(min(len(v), numbered) + len(v)*element + len(v)*m.unevaluatedLists(nested)/4)
			if s.UniqueItems {
				m.spend(comparisonWeight(v) / 2 / weightPerStep)
			}
		case string:
			m.spend(len(v) / 128)
		}
		return nil
	}
}

// unevaluatedLists returns how many nested schemas track unevaluated values.
func (m *meter) unevaluatedLists(nested int) int {
	if m.unevaluated {
		return nested
	}
	return 0
}

// comparisonWeight returns the maximum weight of comparisons for uniqueItems. The library
// compares elements with equal hashes; lists and objects can be built to collide, and so
// can as many numbers as their bytes can encode.
func comparisonWeight(list []any) int {
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
		list = append(list, asSchema(dependency))
	}
	if s.DynamicRef != nil {
		list = append(list, s.DynamicRef.Ref)
	}
	return nonNil(append(list, s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else))
}

// memberSchemas returns those that s can apply to each member of an object.
func memberSchemas(s *jsonschema.Schema) schemas {
	list := slices.Collect(maps.Values(s.PatternProperties))
	return nonNil(append(list, asSchema(s.AdditionalProperties), s.UnevaluatedProperties, s.PropertyNames))
}

// elementSchemas returns those that s can apply to each element of an array.
func elementSchemas(s *jsonschema.Schema) schemas {
	return nonNil(schemas{asSchema(s.Items), asSchema(s.AdditionalItems), s.Items2020, s.UnevaluatedItems, s.Contains})
}

// namedSchemas returns those that s applies to one specific member or element.
func namedSchemas(s *jsonschema.Schema) schemas {
	items, _ := s.Items.(schemas)
	return slices.Concat(slices.Collect(maps.Values(s.Properties)), s.PrefixItems, items)
}

func asSchema(schema any) *jsonschema.Schema {
	s, _ := schema.(*jsonschema.Schema)
	return s
}

func nonNil(list schemas) schemas {
	return slices.DeleteFunc(list, func(s *jsonschema.Schema) bool { return s == nil })
}

// errUndecided says that a validation exceeded its budget, so that the arguments are
// neither valid nor invalid.
var errUndecided = errors.New("validating the arguments would take too long")
