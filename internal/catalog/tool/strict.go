package tool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"mcpproxy/internal/mcp/wirejson"
)

// StrictForm returns a definition in the form that strict clients accept. If one definition violates the protocol's
// schema, these clients reject the whole list with the definitions of all servers. StrictForm changes only unambiguous
// parts, such as a member that is null. The error explains why a definition has no such form.
func StrictForm(kind DefinitionKind, raw json.RawMessage) (json.RawMessage, error) {
	if kind == KindResource || kind == KindTemplate {
		if name := wirejson.Find(raw, "name"); name == nil || string(name) == "null" { // its address serves as its name
			raw = wirejson.SetMember(raw, "name", wirejson.Find(raw, kind.NameMember()))
		}
	}
	if kind == KindInstructions {
		return raw, nil
	}
	strict, fault := toStrictObject(raw, strictMembers[kind])
	if fault != nil { // avoids an error interface with a nil pointer
		return nil, fault
	}
	return strict, nil
}

// strictFault is a fault that strict clients reject, with its path: "inputSchema.required", or "" for the value itself.
type strictFault struct{ path, what string }

func (f *strictFault) Error() string { return strings.TrimPrefix(f.path+" "+f.what, " ") }

// within returns the fault of a value as a fault of the object or list that contains the value at step.
func (f *strictFault) within(step string) *strictFault {
	if f.path != "" && f.path[0] != '[' {
		step += "."
	}
	return &strictFault{step + f.path, f.what}
}

func newStrictFault(what string) *strictFault { return &strictFault{what: what} }

// strictRule returns a value in the form that strict clients accept, or nil if the member is to be left out. value is
// nil if the member is missing.
type strictRule func(value json.RawMessage) (json.RawMessage, *strictFault)

// strictMember is a member of an object whose value has to follow a rule.
type strictMember struct {
	name     string
	rule     strictRule
	required bool // the rule also applies if the member is missing or null
}

// The members of a definition that clients check.
var (
	iconMembers = []strictMember{{"src", isText, true}, {"mimeType", isText, false}, {"sizes", listOf(isText), false}, {"theme", isOneOf("light", "dark"), false}}

	commonMembers = []strictMember{{"title", isText, false}, {"description", isText, false}, {"icons", listOf(objectWith(iconMembers)), false}, {"_meta", objectWith(nil), false}}

	hintMembers = []strictMember{{"title", isText, false}, {"readOnlyHint", isBool, false}, {"destructiveHint", isBool, false}, {"idempotentHint", isBool, false}, {"openWorldHint", isBool, false}}

	argumentMembers = []strictMember{{"name", isText, true}, {"description", isText, false}, {"required", isBool, false}}

	annotationMembers = []strictMember{{"audience", listOf(isOneOf("user", "assistant")), false}, {"priority", isShare, false}, {"lastModified", strictDate, false}}

	contentMembers = append([]strictMember{{"name", isText, true}, {"mimeType", isText, false}, {"annotations", objectWith(annotationMembers), false}}, commonMembers...)

	strictMembers = map[DefinitionKind][]strictMember{
		KindTool: append([]strictMember{{"inputSchema", strictInputSchema, true}, {"outputSchema", strictOutputSchema, false}, {"annotations", objectWith(hintMembers), false},
			{"execution", objectWith([]strictMember{{"taskSupport", isOneOf("forbidden", "optional", "required"), false}}), false}}, commonMembers...),
		KindPrompt:   append([]strictMember{{"arguments", listOf(objectWith(argumentMembers)), false}}, commonMembers...),
		KindResource: append([]strictMember{{"size", isNumber, false}}, contentMembers...),
		KindTemplate: contentMembers,
	}
)

// isEmptyAs reports whether a value is an empty array or object of this kind. Languages without both types, such as PHP
// and Lua, write one for the other.
func isEmptyAs(value json.RawMessage, kind byte) bool {
	return wirejson.Kind(value) == kind && len(bytes.TrimSpace(value[1:len(value)-1])) == 0
}

// toStrictObject applies the rules to the members of an object.
func toStrictObject(object json.RawMessage, members []strictMember) (json.RawMessage, *strictFault) {
	if isEmptyAs(object, '[') {
		object = json.RawMessage("{}")
	}
	if wirejson.Kind(object) != '{' {
		return nil, newStrictFault("is no object")
	}
	for _, m := range members {
		value := json.RawMessage(wirejson.Find(object, m.name))
		null := string(value) == "null"
		switch {
		case value == nil && !m.required:
			continue
		case null && m.required:
			value = nil
		case null:
			object = wirejson.DropMember(object, m.name)
			continue
		}
		strict, fault := m.rule(value)
		switch {
		case fault != nil:
			return nil, fault.within(m.name)
		case strict == nil:
			object = wirejson.DropMember(object, m.name)
		case !bytes.Equal(strict, value):
			object = wirejson.SetMember(object, m.name, strict)
		}
	}
	return object, nil
}

func objectWith(members []strictMember) strictRule {
	return func(value json.RawMessage) (json.RawMessage, *strictFault) { return toStrictObject(value, members) }
}

// listOf returns the rule for an array whose elements follow a rule.
func listOf(rule strictRule) strictRule {
	return func(value json.RawMessage) (json.RawMessage, *strictFault) {
		if isEmptyAs(value, '{') {
			value = json.RawMessage("[]")
		}
		if wirejson.Kind(value) != '[' {
			return nil, newStrictFault("is no list")
		}
		out, i, changed := json.RawMessage("["), 0, false
		var fault *strictFault
		_ = wirejson.EachElement(value, func(element []byte) error { // parsing cannot fail: a definition is valid JSON
			strict, f := rule(element)
			if f != nil && fault == nil {
				fault = f.within(fmt.Sprintf("[%d]", i))
			}
			if i++; i > 1 {
				out = append(out, ',')
			}
			out, changed = append(out, strict...), changed || !bytes.Equal(strict, element)
			return nil
		})
		switch {
		case fault != nil:
			return nil, fault
		case !changed:
			return value, nil
		}
		return append(out, ']'), nil
	}
}

// isKind returns the rule for a value that has one of these JSON kinds.
func isKind(kinds, want string) strictRule {
	return func(value json.RawMessage) (json.RawMessage, *strictFault) {
		if k := wirejson.Kind(value); k == 0 || strings.IndexByte(kinds, k) < 0 {
			return nil, newStrictFault("is no " + want)
		}
		return value, nil
	}
}

var (
	isText   = isKind(`"`, "text")
	isBool   = isKind("tf", "boolean")
	isNumber = isKind("0", "number")
)

// isShare is the rule for a number from 0 to 1.
func isShare(value json.RawMessage) (json.RawMessage, *strictFault) {
	var n float64
	if json.Unmarshal(value, &n) != nil || n < 0 || n > 1 {
		return nil, newStrictFault("is no number from 0 to 1")
	}
	return value, nil
}

func isOneOf(words ...string) strictRule {
	return func(value json.RawMessage) (json.RawMessage, *strictFault) {
		text, _ := wirejson.String(value)
		for _, w := range words {
			if w == text {
				return value, nil
			}
		}
		return nil, newStrictFault("is none of " + strings.Join(words, ", "))
	}
}

// strictDate is the rule for a date. It leaves out a date that clients cannot parse.
func strictDate(value json.RawMessage) (json.RawMessage, *strictFault) {
	text, ok := wirejson.String(value)
	if !ok {
		return nil, newStrictFault("is no text")
	}
	if _, err := time.Parse(time.RFC3339, text); err != nil {
		return nil, nil
	}
	return value, nil
}

// strictInputSchema is the rule for the schema of a call's arguments, which are always an object.
func strictInputSchema(value json.RawMessage) (json.RawMessage, *strictFault) {
	if value == nil {
		return json.RawMessage(`{"type":"object"}`), nil
	}
	if isEmptyAs(value, '[') {
		value = json.RawMessage("{}")
	}
	if !describesObject(value) {
		return nil, newStrictFault("does not describe an object")
	}
	return strictObjectSchema(value)
}

// strictOutputSchema is the rule for an output schema. It leaves out a schema that describes no object, or that some
// clients cannot compile, because no call needs it.
func strictOutputSchema(value json.RawMessage) (json.RawMessage, *strictFault) {
	if !describesObject(value) {
		return nil, nil
	}
	strict, fault := strictObjectSchema(value)
	if fault != nil || !compilesForClients(strict) {
		return nil, nil
	}
	return strict, nil
}

// describesObject reports whether a schema's type, if it has one, allows an object.
func describesObject(schema json.RawMessage) bool {
	if wirejson.Kind(schema) != '{' {
		return false
	}
	kind := wirejson.Find(schema, "type")
	isObject := func(value []byte) bool {
		text, _ := wirejson.String(value)
		return strings.EqualFold(text, "object")
	}
	allowed := kind == nil || string(kind) == "null" || isObject(kind)
	_ = wirejson.EachElement(kind, func(one []byte) error { // a value that is not an array has no elements
		allowed = allowed || isObject(one)
		return nil
	})
	return allowed
}

// strictObjectSchema returns the schema of an object with its type, and without members that are null.
func strictObjectSchema(schema json.RawMessage) (json.RawMessage, *strictFault) {
	schema, fault := toStrictObject(schema, []strictMember{{"required", listOf(isText), false}, {"properties", strictProperties, false}})
	if fault != nil {
		return nil, fault
	}
	if kind, _ := wirejson.String(wirejson.Find(schema, "type")); kind != "object" {
		schema = wirejson.SetMember(schema, "type", json.RawMessage(`"object"`))
	}
	return schema, nil
}

// strictProperties is the rule for properties. Each schema becomes an object: true and false have an equivalent object.
func strictProperties(properties json.RawMessage) (json.RawMessage, *strictFault) {
	if isEmptyAs(properties, '[') {
		properties = json.RawMessage("{}")
	}
	if wirejson.Kind(properties) != '{' {
		return nil, newStrictFault("is no object")
	}
	out := properties
	var fault *strictFault
	_ = wirejson.EachMember(properties, func(name, schema []byte) error { // a definition is JSON
		switch wirejson.Kind(schema) {
		case '{':
		case 't':
			out = wirejson.SetMember(out, string(name), json.RawMessage(`{}`))
		case 'f':
			out = wirejson.SetMember(out, string(name), json.RawMessage(`{"not":{}}`))
		default:
			fault = newStrictFault("has a schema that is no object")
		}
		return nil
	})
	return out, fault
}
