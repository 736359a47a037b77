package config

import (
	"reflect"
	"strings"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/policy"
)

// key is what there is to know about a key, bound to the field that holds its
// value. The decoder, the suggestions, the JSON Schema, the reference and the
// comparison of two configurations all follow it.
type key struct {
	name string // with a dot when the key stands in an object of its own
	to   any    // a pointer to the field; nil when the value is not kept
	def  any    // the default; nil means the zero value

	// What a value must satisfy, as far as it applies to the type.
	oneOf     []string
	spellings map[string]string // further values, and what they mean
	min, max  int64             // of numbers; both 0: any
	shortest  time.Duration     // of durations
	longest   time.Duration
	check     func(text string) error // of a string, each element, each value
	checkName func(name string) error // of each name in a map

	widens  widening // which changes of the value do
	aliases []string // other names that clients write
	inverse string   // another name, whose value says the opposite

	restart bool                    // a change waits for a restart
	secret  bool                    // never shown, unless it is only a reference
	mask    func(raw string) string // what is shown of a secret in its place
	secrets bool                    // may hold ${keyring:NAME}
	folded  bool                    // in a map, names that differ only in case are the same
}

// kind is the type of a value in the file.
type kind uint8

const (
	ignored kind = iota
	text
	boolean
	integer
	duration
	list
	dictionary
	tristate
	overrides
	laneRules
	selections
	servers
	profiles
	toolLists
)

var kinds = map[reflect.Type]kind{
	reflect.TypeFor[time.Duration]():       duration,
	reflect.TypeFor[[]string]():            list,
	reflect.TypeFor[map[string]string]():   dictionary,
	reflect.TypeFor[tool.Tri]():            tristate,
	reflect.TypeFor[[]HintOverride]():      overrides,
	reflect.TypeFor[[]LaneRule]():          laneRules,
	reflect.TypeFor[[]Selection]():         selections,
	reflect.TypeFor[[]Server]():            servers,
	reflect.TypeFor[[]Profile]():           profiles,
	reflect.TypeFor[[]policy.ScopeTools](): toolLists,
}

// kind follows from the type of the field.
func (k key) kind() kind {
	if k.to == nil {
		return ignored
	}
	t := reflect.TypeOf(k.to).Elem()
	if kind, ok := kinds[t]; ok {
		return kind
	}
	switch t.Kind() {
	case reflect.Bool:
		return boolean
	case reflect.Int:
		return integer
	default:
		return text
	}
}

// field is the field that holds the value.
func (k key) field() reflect.Value { return reflect.ValueOf(k.to).Elem() }

// value is what the field holds.
func (k key) value() any { return k.field().Interface() }

// set puts a value of the field's kind into it.
func (k key) set(value any) { k.field().Set(reflect.ValueOf(value).Convert(k.field().Type())) }

// isDefault reports whether the field holds the default.
func (k key) isDefault() bool {
	def := reflect.Zero(k.field().Type())
	if k.def != nil {
		def = reflect.ValueOf(k.def).Convert(def.Type())
	}
	return reflect.DeepEqual(k.value(), def.Interface())
}

// fill sets the defaults.
func fill(keys []key) {
	for _, k := range keys {
		if k.def != nil {
			k.set(k.def)
		}
	}
}

// within returns the keys of the object that stands at group, with their names
// in it.
func within(keys []key, group string) []key {
	var in []key
	for _, k := range keys {
		if rest, ok := strings.CutPrefix(k.name, group+"."); ok {
			k.name = rest
			in = append(in, k)
		}
	}
	return in
}

// groupOf is the part of a key's name before the dot, if it has one.
func (k key) groupOf() string {
	group, _, found := strings.Cut(k.name, ".")
	if !found {
		return ""
	}
	return group
}
