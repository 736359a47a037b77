package schema

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Limits for one validation. A step is the cost of applying one schema to one value in the library, about 300 ns.
const (
	budget       = 50_000
	bytesPerStep = 64 // of the arguments
	maxArgDepth  = 64
	maxNest      = 64 // schemas that apply each other to the same value
)

var errTooComplex = errors.New("it is too complex to check, or its references are circular")

// stepMeter counts the steps of a validation and aborts it when none are left. The library has no such limit, but it
// checks the format of a schema for each value before it descends. So every schema gets a meter as its format. The
// meter charges the cost of the next part.
type stepMeter struct {
	left        int
	stepFactor  int  // cost factor for expensive keywords
	patternSize int  // size of all patterns
	unevaluated bool // a schema uses unevaluatedItems or unevaluatedProperties
}

// spendSteps panics when the budget is used up, because an error would end only one alternative.
func (m *stepMeter) spendSteps(steps int) {
	if m.left -= steps; m.left < 0 {
		panic(errUndecided)
	}
}

// runMetered calls a function that spends steps, and returns the reason if it was aborted.
func runMetered(run func()) (undecided error) {
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

type schemaList = []*jsonschema.Schema

// attachTo attaches the meter to the schemas and to all schemas that they refer to.
func (m *stepMeter) attachTo(all schemaList) error {
	seen, anchors := map[*jsonschema.Schema]bool{nil: true}, map[string]schemaList{}
	for i := 0; i < len(all); i++ {
		s := all[i]
		anchors[s.DynamicAnchor] = append(anchors[s.DynamicAnchor], s)
		for _, next := range slices.Concat(schemaList{s}, inPlaceSubschemas(s), memberSubschemas(s), elementSubschemas(s), namedSubschemas(s)) {
			if !seen[next] && next != s {
				all = append(all, next)
			}
			seen[next] = true
		}
	}
	nested := make(map[*jsonschema.Schema]schemaList, len(all))
	for _, s := range all {
		nested[s] = inPlaceSubschemas(s)
		if s.DynamicRef != nil && s.DynamicRef.Anchor != "" {
			nested[s] = append(nested[s], anchors[s.DynamicRef.Anchor]...)
		}
		m.unevaluated = m.unevaluated || s.UnevaluatedItems != nil || s.UnevaluatedProperties != nil
		if s.Enum != nil {
			m.stepFactor = max(m.stepFactor, measureValue(s.Enum.Values).weight/2/weightPerStep)
		}
		if s.Const != nil {
			m.stepFactor = max(m.stepFactor, measureValue(*s.Const).weight/2/weightPerStep)
		}
		s.Format = &jsonschema.Format{Validate: m.newChargeFunc(s, len(nested[s]))}
	}
	return checkNesting(all, nested)
}

// checkNesting returns an error if a schema applies too many other schemas to the same value, or applies itself.
func checkNesting(all schemaList, nested map[*jsonschema.Schema]schemaList) error {
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

// newChargeFunc returns the function that charges the cost of applying s without its nested schemas. These have their
// own meters.
func (m *stepMeter) newChargeFunc(s *jsonschema.Schema, nested int) func(any) error {
	member, element, numbered := len(memberSubschemas(s)), len(elementSubschemas(s)), len(namedSubschemas(s))-len(s.Properties)
	fixed := 1 + nested + len(s.Required)/8
	for _, names := range s.DependentRequired {
		fixed += len(names) / 8
	}
	if s.DynamicRef != nil || s.RecursiveRef != nil {
		fixed += 100 // the library inspects all schemas on the path
	}
	return func(v any) error {
		m.spendSteps(fixed)
		switch v := v.(type) {
		case map[string]any: // iterating over a name costs a quarter of a step
			m.spendSteps(min(len(v), len(s.Properties)) + len(v)*member + len(v)*(1+m.countUnevaluatedTrackers(nested))/4)
		case []any:
			m.spendSteps(min(len(v), numbered) + len(v)*element + len(v)*m.countUnevaluatedTrackers(nested)/4)
			if s.UniqueItems {
				m.spendSteps(uniqueItemsComparisonCost(v) / 2 / weightPerStep)
			}
		case string:
			m.spendSteps(len(v) / 128)
		}
		return nil
	}
}

// countUnevaluatedTrackers returns how many nested schemas track unevaluated values.
func (m *stepMeter) countUnevaluatedTrackers(nested int) int {
	if m.unevaluated {
		return nested
	}
	return 0
}

// uniqueItemsComparisonCost returns the maximum weight of the comparisons for uniqueItems. The library compares
// elements with equal hashes. Lists and objects can be built to collide. The number of numbers that can collide is
// limited by their bytes.
func uniqueItemsComparisonCost(list []any) int {
	var containers, others []any
	for _, element := range list {
		switch element.(type) {
		case []any, map[string]any:
			containers = append(containers, element)
		default:
			others = append(others, element)
		}
	}
	in, out := measureValue(containers), measureValue(others)
	return len(containers)*in.weight + min(len(others), 2+out.digits/2)*out.weight
}

// inPlaceSubschemas returns the schemas that s applies to the same value.
func inPlaceSubschemas(s *jsonschema.Schema) schemaList {
	list := slices.Concat(s.AllOf, s.AnyOf, s.OneOf, slices.Collect(maps.Values(s.DependentSchemas)))
	for _, dependency := range s.Dependencies {
		list = append(list, asSchema(dependency))
	}
	if s.DynamicRef != nil {
		list = append(list, s.DynamicRef.Ref)
	}
	return dropNilSchemas(append(list, s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else))
}

// memberSubschemas returns the schemas that s can apply to each member of an object.
func memberSubschemas(s *jsonschema.Schema) schemaList {
	list := slices.Collect(maps.Values(s.PatternProperties))
	return dropNilSchemas(append(list, asSchema(s.AdditionalProperties), s.UnevaluatedProperties, s.PropertyNames))
}

// elementSubschemas returns the schemas that s can apply to each element of an array.
func elementSubschemas(s *jsonschema.Schema) schemaList {
	return dropNilSchemas(schemaList{asSchema(s.Items), asSchema(s.AdditionalItems), s.Items2020, s.UnevaluatedItems, s.Contains})
}

// namedSubschemas returns the schemas that s applies to one specific member or element.
func namedSubschemas(s *jsonschema.Schema) schemaList {
	items, _ := s.Items.(schemaList)
	return slices.Concat(slices.Collect(maps.Values(s.Properties)), s.PrefixItems, items)
}

func asSchema(schema any) *jsonschema.Schema {
	s, _ := schema.(*jsonschema.Schema)
	return s
}

func dropNilSchemas(list schemaList) schemaList {
	return slices.DeleteFunc(list, func(s *jsonschema.Schema) bool { return s == nil })
}

// errUndecided means that a validation exceeded its budget. The arguments are neither valid nor invalid.
var errUndecided = errors.New("validating the arguments would take too long")
