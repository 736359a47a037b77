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

// access is what the schemas at one location read of the value there. Only that part of
// large arguments is decoded, so that unread values cost nothing. The zero access is that
// of no schemas.
type access struct {
	all      bool // the whole value
	kindOnly bool // its type
	size     bool // its member names or its number of elements
	names    map[string]*access
	rest     *access // of members with other names
	element  *access
}

// accessFinder computes what schemas read. Locations with the same schemas share one
// result, so that recursive schemas terminate.
type accessFinder struct {
	known map[string]*access
	work  int // schemas of all locations
}

// maxAccessWork bounds the work of an accessFinder. Beyond it, everything counts as read.
const maxAccessWork = 10_000

func (l *accessFinder) find(list schemas) *access {
	all, key := inPlaceClosure(list), ""
	if l.work += 1 + len(all); l.work > maxAccessWork {
		return &access{all: true}
	}
	for _, s := range all {
		key += fmt.Sprintf("%p ", s)
	}
	if known := l.known[key]; known != nil {
		return known
	}
	out := &access{kindOnly: len(all) > 0}
	l.known[key] = out
	for _, s := range all {
		out.all = out.all || s.Const != nil || s.Enum != nil || s.UniqueItems || s.DynamicRef != nil ||
			s.RecursiveRef != nil || s.UnevaluatedItems != nil || s.UnevaluatedProperties != nil
		out.size = out.size || s.MinItems != nil || s.MaxItems != nil || s.AdditionalItems == false ||
			s.MinProperties != nil || s.MaxProperties != nil || s.AdditionalProperties == false ||
			len(s.Required)+len(s.DependentRequired)+len(s.DependentSchemas)+len(s.Dependencies) > 0
	}
	if !out.all {
		l.descend(out, all)
	}
	return out
}

// inPlaceClosure returns the schemas and those that they apply to the same value, in a
// fixed order.
func inPlaceClosure(list schemas) (all schemas) {
	seen := map[*jsonschema.Schema]bool{}
	for todo := list; len(todo) > 0; {
		s := todo[len(todo)-1]
		if todo = todo[:len(todo)-1]; !seen[s] && s.Bool == nil {
			all = append(all, s)
			todo = slices.Concat(todo, inPlace(s))
		}
		seen[s] = true
	}
	slices.SortFunc(all, func(a, b *jsonschema.Schema) int { return strings.Compare(a.Location, b.Location) })
	return all
}

// descend computes what is read in the members and elements.
func (l *accessFinder) descend(out *access, all schemas) {
	var rest, element schemas
	names := map[string]schemas{}
	for _, s := range all {
		rest = slices.Concat(rest, memberSchemas(s))
		element = slices.Concat(element, elementSchemas(s), s.PrefixItems)
		if list, ok := s.Items.(schemas); ok {
			element = slices.Concat(element, list)
		}
		for name, member := range s.Properties {
			names[name] = append(names[name], member)
		}
	}
	out.rest, out.element, out.names = l.find(rest), l.find(element), make(map[string]*access, len(names))
	for name, list := range names {
		out.names[name] = l.find(slices.Concat(list, rest))
	}
}

// The costs of decoding, in steps.
const (
	decoderSteps        = 7   // to begin decoding a whole value
	skippedPerStep      = 32  // unread elements
	skippedBytesPerStep = 512 // bytes of an array or object
	textPerStep         = 256 // bytes of a string
)

// used reports whether the value is read at all.
func (l *access) used() bool { return l.kindOnly || l.all }

// decode decodes a value of a checked text. Unread values become nil.
func (m *meter) decode(value []byte, l *access) (v any, err error) {
	m.spend(1)
	switch kind := wirejson.Kind(value); {
	case l.all && (kind == '[' || kind == '{'):
		m.spend(decoderSteps + len(value)/bytesPerStep + maxValues(value))
		return jsonschema.UnmarshalJSON(bytes.NewReader(value))
	case !l.used() || kind == 'n':
		return nil, nil
	case kind == '[':
		return m.decodeElements(value, l)
	case kind == '{':
		return m.decodeMembers(value, l)
	case kind == '"':
		m.spend(len(value) / textPerStep)
		text, _ := wirejson.String(value)
		return text, nil
	case kind == '0':
		return json.Number(value), nil
	default:
		return kind == 't', nil
	}
}

func (m *meter) decodeElements(value []byte, l *access) (list []any, err error) {
	list = []any{}
	if !l.element.used() && !l.size {
		return list, nil
	}
	m.spend(len(value) / skippedBytesPerStep)
	err = wirejson.EachElement(value, func(element []byte) (err error) {
		var v any
		if l.element.used() || len(list)%skippedPerStep == 0 {
			v, err = m.decode(element, l.element)
		}
		list = append(list, v)
		return err
	})
	return list, err
}

func (m *meter) decodeMembers(value []byte, l *access) (object map[string]any, err error) {
	object = map[string]any{}
	if len(l.names) == 0 && !l.size && !l.rest.used() {
		return object, nil
	}
	m.spend(len(value) / skippedBytesPerStep)
	err = wirejson.EachMember(value, func(name, value []byte) (err error) {
		inner := l.names[string(name)]
		if inner == nil {
			inner = l.rest
		}
		object[string(name)], err = m.decode(value, inner)
		return err
	})
	return object, err
}

// decodeUsed decodes the part of large arguments that the schema reads. It also returns
// the remaining steps.
func (s *Schema) decodeUsed(args json.RawMessage, steps int) (doc any, left int, err error) {
	if wirejson.Check(args, wirejson.Limits{Bytes: len(args), Depth: maxArgDepth}) != nil {
		return nil, 0, errUndecided
	}
	m, l := meter{left: steps}, accessFinder{known: map[string]*access{}}
	undecided := runBounded(func() { doc, err = m.decode(args, l.find(schemas{s.root})) })
	return doc, m.left, cmp.Or(undecided, err)
}
