package schema

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"mcpproxy/internal/mcp/wirejson"
)

// partsToValidate describes the part of a value that the schemas at its location read. Only that part of large
// arguments is decoded, so that unread values cost nothing. The zero value means that no schema applies.
type partsToValidate struct {
	all      bool // the whole value
	kindOnly bool // its type
	size     bool // its member names or its number of elements
	names    map[string]*partsToValidate
	rest     *partsToValidate // for members with other names
	element  *partsToValidate
}

// partsToValidateFinder computes the parts that schemas read. Locations with the same schemas share one result, so that
// recursive schemas terminate.
type partsToValidateFinder struct {
	known map[string]*partsToValidate
	work  int // number of schemas at all locations
}

// maxAccessWork limits the work of a partsToValidateFinder. Beyond it, every value counts as read.
const maxAccessWork = 10_000

func (l *partsToValidateFinder) findPartsToValidate(list schemaList) *partsToValidate {
	all, key := allInPlaceSubschemas(list), ""
	if l.work += 1 + len(all); l.work > maxAccessWork {
		return &partsToValidate{all: true}
	}
	for _, s := range all {
		key += fmt.Sprintf("%p ", s)
	}
	if known := l.known[key]; known != nil {
		return known
	}
	out := &partsToValidate{kindOnly: len(all) > 0}
	l.known[key] = out
	for _, s := range all {
		out.all = out.all || s.Const != nil || s.Enum != nil || s.UniqueItems || s.DynamicRef != nil ||
			s.RecursiveRef != nil || s.UnevaluatedItems != nil || s.UnevaluatedProperties != nil
		out.size = out.size || s.MinItems != nil || s.MaxItems != nil || s.AdditionalItems == false ||
			s.MinProperties != nil || s.MaxProperties != nil || s.AdditionalProperties == false ||
			len(s.Required)+len(s.DependentRequired)+len(s.DependentSchemas)+len(s.Dependencies) > 0
	}
	if !out.all {
		l.addMembersAndElements(out, all)
	}
	return out
}

// allInPlaceSubschemas returns the schemas in list and the schemas that they apply to the same value, in a fixed order.
func allInPlaceSubschemas(list schemaList) (all schemaList) {
	seen := map[*jsonschema.Schema]bool{}
	for todo := list; len(todo) > 0; {
		s := todo[len(todo)-1]
		if todo = todo[:len(todo)-1]; !seen[s] && s.Bool == nil {
			all = append(all, s)
			todo = slices.Concat(todo, inPlaceSubschemas(s))
		}
		seen[s] = true
	}
	slices.SortFunc(all, func(a, b *jsonschema.Schema) int { return strings.Compare(a.Location, b.Location) })
	return all
}

// addMembersAndElements computes the read parts of the members and elements.
func (l *partsToValidateFinder) addMembersAndElements(out *partsToValidate, all schemaList) {
	var rest, element schemaList
	names := map[string]schemaList{}
	for _, s := range all {
		rest = slices.Concat(rest, memberSubschemas(s))
		element = slices.Concat(element, elementSubschemas(s), s.PrefixItems)
		if list, ok := s.Items.(schemaList); ok {
			element = slices.Concat(element, list)
		}
		for name, member := range s.Properties {
			names[name] = append(names[name], member)
		}
	}
	out.rest, out.element, out.names = l.findPartsToValidate(rest), l.findPartsToValidate(element), make(map[string]*partsToValidate, len(names))
	for name, list := range names {
		out.names[name] = l.findPartsToValidate(slices.Concat(list, rest))
	}
}

// The costs of decoding, in steps.
const (
	decoderSteps        = 7   // to begin decoding a whole value
	skippedPerStep      = 32  // unread elements
	skippedBytesPerStep = 512 // bytes of an array or object
	textPerStep         = 256 // bytes of a string
)

// isRead reports whether any part of the value is read.
func (l *partsToValidate) isRead() bool { return l.kindOnly || l.all }

// decodeValueToValidate decodes a value whose JSON was checked. Unread values become nil.
func (m *stepMeter) decodeValueToValidate(value []byte, l *partsToValidate) (v any, err error) {
	m.spendSteps(1)
	switch kind := wirejson.Kind(value); {
	case l.all && (kind == '[' || kind == '{'):
		m.spendSteps(decoderSteps + len(value)/bytesPerStep + valueCountUpperBound(value))
		return jsonschema.UnmarshalJSON(bytes.NewReader(value))
	case !l.isRead() || kind == 'n':
		return nil, nil
	case kind == '[':
		return m.decodeElementsToValidate(value, l)
	case kind == '{':
		return m.decodeMembersToValidate(value, l)
	case kind == '"':
		m.spendSteps(len(value) / textPerStep)
		text, _ := wirejson.String(value)
		return text, nil
	case kind == '0':
		return json.Number(value), nil
	default:
		return kind == 't', nil
	}
}

func (m *stepMeter) decodeElementsToValidate(value []byte, l *partsToValidate) (list []any, err error) {
	list = []any{}
	if !l.element.isRead() && !l.size {
		return list, nil
	}
	m.spendSteps(len(value) / skippedBytesPerStep)
	err = wirejson.EachElement(value, func(element []byte) (err error) {
		var v any
		if l.element.isRead() || len(list)%skippedPerStep == 0 {
			v, err = m.decodeValueToValidate(element, l.element)
		}
		list = append(list, v)
		return err
	})
	return list, err
}

func (m *stepMeter) decodeMembersToValidate(value []byte, l *partsToValidate) (object map[string]any, err error) {
	object = map[string]any{}
	if len(l.names) == 0 && !l.size && !l.rest.isRead() {
		return object, nil
	}
	m.spendSteps(len(value) / skippedBytesPerStep)
	err = wirejson.EachMember(value, func(name, value []byte) (err error) {
		inner := l.names[string(name)]
		if inner == nil {
			inner = l.rest
		}
		object[string(name)], err = m.decodeValueToValidate(value, inner)
		return err
	})
	return object, err
}

// decodePartsToValidate decodes the part of large arguments that the schema reads. It also returns the remaining steps.
func (s *Schema) decodePartsToValidate(args json.RawMessage, steps int) (doc any, left int, err error) {
	if wirejson.Check(args, wirejson.Limits{Bytes: len(args), Depth: maxArgDepth}) != nil {
		return nil, 0, errUndecided
	}
	m, l := stepMeter{left: steps}, partsToValidateFinder{known: map[string]*partsToValidate{}}
	undecided := runMetered(func() { doc, err = m.decodeValueToValidate(args, l.findPartsToValidate(schemaList{s.root})) })
	return doc, m.left, cmp.Or(undecided, err)
}
