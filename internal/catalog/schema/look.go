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

// look is what the schemas of one place look at in the value there. Of large
// arguments only that is decoded, so that what no schema looks at costs
// nothing. The zero look is that of no schemas.
type look struct {
	whole   bool // at everything
	itself  bool // at what kind of value it is
	size    bool // at what members there are, or how many elements
	names   map[string]*look
	rest    *look // at members of other names
	element *look
}

// looker finds what schemas look at. Places with the same schemas are one, so
// that a schema that refers to itself has an end.
type looker struct {
	known map[string]*look
	work  int // schemas of all places
}

// maxLooks bounds the work of a looker. Beyond, all is looked at.
const maxLooks = 10_000

func (l *looker) at(list schemas) *look {
	all, key := withInPlace(list), ""
	if l.work += 1 + len(all); l.work > maxLooks {
		return &look{whole: true}
	}
	for _, s := range all {
		key += fmt.Sprintf("%p ", s)
	}
	if known := l.known[key]; known != nil {
		return known
	}
	out := &look{itself: len(all) > 0}
	l.known[key] = out
	for _, s := range all {
		out.whole = out.whole || s.Const != nil || s.Enum != nil || s.UniqueItems || s.DynamicRef != nil ||
			s.RecursiveRef != nil || s.UnevaluatedItems != nil || s.UnevaluatedProperties != nil
		out.size = out.size || s.MinItems != nil || s.MaxItems != nil || s.AdditionalItems == false ||
			s.MinProperties != nil || s.MaxProperties != nil || s.AdditionalProperties == false ||
			len(s.Required)+len(s.DependentRequired)+len(s.DependentSchemas)+len(s.Dependencies) > 0
	}
	if !out.whole {
		l.inside(out, all)
	}
	return out
}

// withInPlace returns the schemas and those that they apply to the same value,
// in a fixed order.
func withInPlace(list schemas) (all schemas) {
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

// inside finds what is looked at in the members and the elements.
func (l *looker) inside(out *look, all schemas) {
	var rest, element schemas
	names := map[string]schemas{}
	for _, s := range all {
		rest = slices.Concat(rest, members(s))
		element = slices.Concat(element, elements(s), s.PrefixItems)
		if list, ok := s.Items.(schemas); ok {
			element = slices.Concat(element, list)
		}
		for name, member := range s.Properties {
			names[name] = append(names[name], member)
		}
	}
	out.rest, out.element, out.names = l.at(rest), l.at(element), make(map[string]*look, len(names))
	for name, list := range names {
		out.names[name] = l.at(slices.Concat(list, rest))
	}
}

// The prices of reading, in steps.
const (
	decoderSteps   = 7   // to begin with what is decoded as a whole
	nothingPerStep = 32  // elements that nobody looks at
	stepOver       = 512 // bytes of an array or object
	textPerStep    = 256 // bytes of a string
)

// used reports whether a value is looked at at all.
func (l *look) used() bool { return l.itself || l.whole }

// read decodes a value of a checked text. In the place of what is not looked at
// is nil.
func (m *meter) read(value []byte, l *look) (v any, err error) {
	m.spend(1)
	switch kind := wirejson.Kind(value); {
	case l.whole && (kind == '[' || kind == '{'):
		m.spend(decoderSteps + len(value)/bytesPerStep + mostValues(value))
		return jsonschema.UnmarshalJSON(bytes.NewReader(value))
	case !l.used() || kind == 'n':
		return nil, nil
	case kind == '[':
		return m.elements(value, l)
	case kind == '{':
		return m.members(value, l)
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

func (m *meter) elements(value []byte, l *look) (list []any, err error) {
	list = []any{}
	if !l.element.used() && !l.size {
		return list, nil
	}
	m.spend(len(value) / stepOver)
	err = wirejson.Elements(value, func(element []byte) (err error) {
		var v any
		if l.element.used() || len(list)%nothingPerStep == 0 {
			v, err = m.read(element, l.element)
		}
		list = append(list, v)
		return err
	})
	return list, err
}

func (m *meter) members(value []byte, l *look) (object map[string]any, err error) {
	object = map[string]any{}
	if len(l.names) == 0 && !l.size && !l.rest.used() {
		return object, nil
	}
	m.spend(len(value) / stepOver)
	err = wirejson.Members(value, func(name, value []byte) (err error) {
		inner := l.names[string(name)]
		if inner == nil {
			inner = l.rest
		}
		object[string(name)], err = m.read(value, inner)
		return err
	})
	return object, err
}

// readSome decodes of large arguments what the schema looks at. It returns the
// steps that are left, too.
func (s *Schema) readSome(args json.RawMessage, steps int) (doc any, left int, err error) {
	if wirejson.Check(args, wirejson.Limits{Bytes: len(args), Depth: maxArgDepth}) != nil {
		return nil, 0, errUndecided
	}
	m, l := meter{left: steps}, looker{known: map[string]*look{}}
	undecided := bounded(func() { doc, err = m.read(args, l.at(schemas{s.root})) })
	return doc, m.left, cmp.Or(undecided, err)
}
