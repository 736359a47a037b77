package config

import (
	"reflect"
	"strings"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/policy"
)

// configKey describes a configuration key, bound to the field with its value. The decoder,
// suggestions, JSON Schema, reference and comparisons use it.
type configKey struct {
	name         string // with a dot for a key in a nested object
	field        any    // pointer to the field; nil if the value is not stored
	defaultValue any    // default; nil means the zero value

	// Constraints, as far as they apply to the type.
	oneOf     []string
	spellings map[string]string // further values, and their meaning
	min, max  int64             // limits of a number; both 0: no limits
	shortest  time.Duration     // minimum of a duration
	longest   time.Duration
	check     func(text string) error // checks a string, or each element or value
	checkName func(name string) error // checks each name in a map

	grants  accessIncreaseRule // which changes grant more access
	aliases []string           // names in other clients' files
	inverse string             // another name with the opposite meaning

	restart bool                    // a change needs a restart
	secret  bool                    // never shown, unless it is only a reference
	mask    func(raw string) string // text shown instead of a secret
	secrets bool                    // may contain ${keyring:NAME}
	folded  bool                    // names in the map are case-insensitive
	alone   string                  // value of the key that may be written instead of its group
}

// valueKind is the type of a value in the file.
type valueKind uint8

const (
	ignored valueKind = iota
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
	webhooks
	issuers
	userRules
	toolSettings
	servers
	profiles
	toolLists
)

var kinds = map[reflect.Type]valueKind{
	reflect.TypeFor[time.Duration]():       duration,
	reflect.TypeFor[[]string]():            list,
	reflect.TypeFor[map[string]string]():   dictionary,
	reflect.TypeFor[tool.TriBool]():        tristate,
	reflect.TypeFor[[]HintOverride]():      overrides,
	reflect.TypeFor[[]ArgumentLaneRule]():  laneRules,
	reflect.TypeFor[[]ResultSelection]():   selections,
	reflect.TypeFor[[]Webhook]():           webhooks,
	reflect.TypeFor[[]OIDCIssuer]():        issuers,
	reflect.TypeFor[[]UserRule]():          userRules,
	reflect.TypeFor[[]ToolSettings]():      toolSettings,
	reflect.TypeFor[[]Server]():            servers,
	reflect.TypeFor[[]Profile]():           profiles,
	reflect.TypeFor[[]policy.ScopeTools](): toolLists,
}

// kind returns the kind of the field's type.
func (k configKey) kind() valueKind {
	if k.field == nil {
		return ignored
	}
	t := reflect.TypeOf(k.field).Elem()
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

// reflectField returns the field that has the value.
func (k configKey) reflectField() reflect.Value { return reflect.ValueOf(k.field).Elem() }

// value returns the field's value.
func (k configKey) value() any { return k.reflectField().Interface() }

// setValue sets the field; the value is of the field's kind.
func (k configKey) setValue(value any) {
	k.reflectField().Set(reflect.ValueOf(value).Convert(k.reflectField().Type()))
}

// isDefault reports whether the field has the default.
func (k configKey) isDefault() bool {
	def := reflect.Zero(k.reflectField().Type())
	if k.defaultValue != nil {
		def = reflect.ValueOf(k.defaultValue).Convert(def.Type())
	}
	return reflect.DeepEqual(k.value(), def.Interface())
}

// setDefaults sets the defaults.
func setDefaults(keys []configKey) {
	for _, k := range keys {
		if k.defaultValue != nil {
			k.setValue(k.defaultValue)
		}
	}
}

// keysInGroup returns the keys of the nested object group, with their names in it.
func keysInGroup(keys []configKey, group string) []configKey {
	var in []configKey
	for _, k := range keys {
		if rest, ok := strings.CutPrefix(k.name, group+"."); ok {
			k.name = rest
			in = append(in, k)
		}
	}
	return in
}

// groupName returns the part of a key's name before the dot, if it has one.
func (k configKey) groupName() string {
	group, _, found := strings.Cut(k.name, ".")
	if !found {
		return ""
	}
	return group
}
