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
	maxText     = 300 // bytes of a message, or a name
)

// findings are the first leaves of the library's tree of errors, in order.
type findings struct {
	leaves []*jsonschema.ValidationError
	weight int // how far the value is from what is wanted
}

// violationsIn returns what the result of a validation says.
func violationsIn(result error) (out []Violation) {
	var f findings
	if invalid, ok := result.(*jsonschema.ValidationError); ok {
		f.collect(invalid)
	}
	for _, leaf := range f.leaves {
		v := Violation{Message: clip(text(leaf))}
		for _, token := range leaf.InstanceLocation {
			v.Path += "/" + wirejson.PointerToken(clip(token))
		}
		if !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

func (f *findings) collect(e *jsonschema.ValidationError) {
	switch k := e.ErrorKind.(type) {
	case *kind.Schema, *kind.Group, *kind.AllOf, *kind.Reference:
		for _, cause := range e.Causes {
			f.collect(cause)
		}
		return
	case *kind.AnyOf, *kind.OneOf:
		if len(e.Causes) > 0 {
			f.alternatives(e)
			return
		}
	case *kind.RefCycle: // says nothing of the value
		panic(errUndecided)
	case *kind.PropertyNames:
		// The library says where it looked last instead of where this is.
		e.InstanceLocation, e.SchemaURL = nil, e.SchemaURL+"/"+k.Property
	}
	f.add(e)
}

// alternatives reports a value that fits none: by the types that they want if
// it has none of them, else by what the nearest finds wrong.
func (f *findings) alternatives(e *jsonschema.ValidationError) {
	var near findings
	types, candidates := &kind.Type{}, 0
	for _, cause := range e.Causes {
		var found findings
		found.collect(cause)
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
		f.add(&jsonschema.ValidationError{SchemaURL: e.SchemaURL, InstanceLocation: e.InstanceLocation, ErrorKind: types})
	case 1:
	default:
		f.add(e)
	}
	for _, leaf := range near.leaves {
		f.add(leaf)
	}
}

// add puts a leaf where it belongs, and forgets the last if there are too many.
func (f *findings) add(e *jsonschema.ValidationError) {
	switch e.ErrorKind.(type) {
	case *kind.Type, *kind.Const, *kind.Enum:
		f.weight += 4 // another alternative was meant
	default:
		f.weight++
	}
	if at, known := slices.BinarySearchFunc(f.leaves, e, compare); !known && at < maxReported {
		f.leaves = slices.Insert(f.leaves, at, e)
		f.leaves = f.leaves[:min(len(f.leaves), maxReported)]
	}
}

// compare orders leaves by path, then by schema and keyword. What says that
// none of several alternatives fits stands before what is wrong with them.
func compare(a, b *jsonschema.ValidationError) int {
	return cmp.Or(
		slices.CompareFunc(a.InstanceLocation, b.InstanceLocation, func(a, b string) int {
			return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) // so that 9 is before 10
		}),
		cmp.Compare(len(b.Causes), len(a.Causes)),
		strings.Compare(a.SchemaURL, b.SchemaURL),
		slices.Compare(a.ErrorKind.KeywordPath(), b.ErrorKind.KeywordPath()),
	)
}

// text returns what a leaf means: in the words of the library, unless these show
// the value or are unclear.
func text(e *jsonschema.ValidationError) string {
	switch k := e.ErrorKind.(type) {
	case *kind.FalseSchema:
		return "nothing is allowed here"
	case *kind.Not:
		return "is what the schema rules out"
	case *kind.AnyOf, *kind.OneOf:
		if n := len(e.Causes); n > 0 {
			return fmt.Sprintf("fits none of the %d alternatives; the nearest says:", n)
		}
	case *kind.Const:
		return "must be " + constant(k.Want)
	case *kind.Enum:
		return "must be one of " + constant(k.Want)
	case *kind.Pattern:
		return "must match the pattern " + k.Want
	case *kind.Format:
		return fmt.Sprintf("is no valid %s: %v", k.Want, k.Err)
	case *kind.AdditionalProperties:
		slices.Sort(k.Properties)
		k.Properties = few(k.Properties)
	case *kind.PropertyNames:
		k.Property = clip(k.Property)
	case *kind.Required:
		k.Missing = few(k.Missing)
	}
	library := (&jsonschema.ValidationError{ErrorKind: e.ErrorKind}).Error()
	return strings.TrimPrefix(library, "at '': ")
}

func constant(v any) string {
	raw, _ := json.Marshal(v)
	return string(raw)
}

// few returns the first names.
func few(names []string) (out []string) {
	for _, name := range names[:min(len(names), maxReported)] {
		out = append(out, clip(name))
	}
	return out
}

func clip(s string) string { return problem.Shown(s, maxText) }

// Violation is one way in which arguments do not fit. Path is a JSON pointer
// into the arguments; "" is the whole.
type Violation struct {
	Path    string `json:"path"`
	Message string `json:"message"`
}
