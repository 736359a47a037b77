package schema

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
)

const (
	maxReported = 20
	maxText     = 300 // bytes of a message or a name
)

// leafCollector collects the first leaves of the error tree of the library, in order.
type leafCollector struct {
	leaves []*jsonschema.ValidationError
	weight int // distance from a valid value
}

// collectViolations returns the violations in a validation result.
func collectViolations(result error) (out []Violation) {
	var f leafCollector
	if invalid, ok := result.(*jsonschema.ValidationError); ok {
		f.collectLeaves(invalid)
	}
	for _, leaf := range f.leaves {
		v := Violation{Message: clipText(violationMessage(leaf))}
		for _, token := range leaf.InstanceLocation {
			v.Path += "/" + wirejson.EscapePointerToken(clipText(token))
		}
		if !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

func (f *leafCollector) collectLeaves(e *jsonschema.ValidationError) {
	switch k := e.ErrorKind.(type) {
	case *kind.Schema, *kind.Group, *kind.AllOf, *kind.Reference:
		for _, cause := range e.Causes {
			f.collectLeaves(cause)
		}
		return
	case *kind.AnyOf, *kind.OneOf:
		if len(e.Causes) > 0 {
			f.addUnmatchedAlternatives(e)
			return
		}
	case *kind.RefCycle: // it does not describe the value
		panic(errUndecided)
	case *kind.PropertyNames:
		// The library reports the location of its last step instead of this one.
		e.InstanceLocation, e.SchemaURL = nil, e.SchemaURL+"/"+k.Property
	}
	f.insertLeaf(e)
}

// addUnmatchedAlternatives reports a value that matches no alternative. If the value has none of the allowed types, it
// reports these types, else the errors of the nearest alternative.
func (f *leafCollector) addUnmatchedAlternatives(e *jsonschema.ValidationError) {
	var near leafCollector
	types, candidates := &kind.Type{}, 0
	for _, cause := range e.Causes {
		var found leafCollector
		found.collectLeaves(cause)
		first := found.leaves[0]
		if t, ok := first.ErrorKind.(*kind.Type); ok && len(found.leaves) == 1 && len(first.InstanceLocation) == len(e.InstanceLocation) {
			types.Got, types.Want = t.Got, append(types.Want, t.Want...)
			continue
		}
		if candidates++; candidates == 1 || found.weight < near.weight {
			near = found
		}
	}
	switch candidates {
	case 0:
		slices.Sort(types.Want)
		types.Want = slices.Compact(types.Want)
		f.insertLeaf(&jsonschema.ValidationError{SchemaURL: e.SchemaURL, InstanceLocation: e.InstanceLocation, ErrorKind: types})
	case 1:
	default:
		f.insertLeaf(e)
	}
	for _, leaf := range near.leaves {
		f.insertLeaf(leaf)
	}
}

// insertLeaf inserts a leaf in order, and drops the last one if there are too many.
func (f *leafCollector) insertLeaf(e *jsonschema.ValidationError) {
	switch e.ErrorKind.(type) {
	case *kind.Type, *kind.Const, *kind.Enum:
		f.weight += 4 // the value was probably meant for another alternative
	default:
		f.weight++
	}
	if at, known := slices.BinarySearchFunc(f.leaves, e, compareValidationErrors); !known && at < maxReported {
		f.leaves = slices.Insert(f.leaves, at, e)
		f.leaves = f.leaves[:min(len(f.leaves), maxReported)]
	}
}

// compareValidationErrors orders leaves by path, then by schema and keyword. An error that no alternative matches
// precedes the errors of the alternatives.
func compareValidationErrors(a, b *jsonschema.ValidationError) int {
	return cmp.Or(
		slices.CompareFunc(a.InstanceLocation, b.InstanceLocation, func(a, b string) int {
			return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) // so that 9 is before 10
		}),
		cmp.Compare(len(b.Causes), len(a.Causes)),
		strings.Compare(a.SchemaURL, b.SchemaURL),
		slices.Compare(a.ErrorKind.KeywordPath(), b.ErrorKind.KeywordPath()),
	)
}

// violationMessage returns the message of a leaf. It is the library's message, unless that contains the value or is
// unclear.
func violationMessage(e *jsonschema.ValidationError) string {
	switch k := e.ErrorKind.(type) {
	case *kind.FalseSchema:
		return "nothing is allowed here"
	case *kind.Not:
		return "is excluded by the schema"
	case *kind.AnyOf, *kind.OneOf:
		if n := len(e.Causes); n > 0 {
			return fmt.Sprintf("fits none of the %d alternatives; the nearest one requires:", n)
		}
	case *kind.Const:
		return "must be " + formatJSON(k.Want)
	case *kind.Enum:
		return "must be one of " + formatJSON(k.Want)
	case *kind.Pattern:
		return "must match the pattern " + k.Want
	case *kind.Format:
		return fmt.Sprintf("is not a valid %s: %v", k.Want, k.Err)
	case *kind.AdditionalProperties:
		slices.Sort(k.Properties)
		k.Properties = limitNames(k.Properties)
	case *kind.PropertyNames:
		k.Property = clipText(k.Property)
	case *kind.Required:
		k.Missing = limitNames(k.Missing)
	}
	library := (&jsonschema.ValidationError{ErrorKind: e.ErrorKind}).Error()
	return strings.TrimPrefix(library, "at '': ")
}

func formatJSON(v any) string {
	raw, _ := json.Marshal(v)
	return string(raw)
}

// limitNames returns the first names of a list.
func limitNames(names []string) (out []string) {
	for _, name := range names[:min(len(names), maxReported)] {
		out = append(out, clipText(name))
	}
	return out
}

func clipText(s string) string { return problem.ClipForDisplay(s, maxText) }

// Violation is one way in which arguments do not match. Path is a JSON pointer into the arguments. An empty Path means
// the whole arguments.
type Violation struct {
	Path    string `json:"path"`
	Message string `json:"message"`
}
