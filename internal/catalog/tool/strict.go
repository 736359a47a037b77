package tool

import (
	"encoding/json"
	"strings"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/wirejson"
)

// StrictForm returns a definition in the form that strict clients accept. If one definition violates the protocol's
// schema, these clients reject the whole list with the definitions of all servers. StrictForm changes only unambiguous
// parts, such as a member that is null. The error explains why a definition has no such form.
func StrictForm(kind DefinitionKind, raw json.RawMessage) (json.RawMessage, error) {
	if kind == KindInstructions {
		return raw, nil
	}
	if kind == KindResource || kind == KindTemplate {
		if name := wirejson.Find(raw, "name"); name == nil || string(name) == "null" { // its address serves as its name
			raw = wirejson.SetMember(raw, "name", wirejson.Find(raw, kind.NameMember()))
		}
	}
	strict, fault := mcp.ApplyStrict(raw, strictMembers[kind])
	if fault != nil { // avoids an error interface with a nil pointer
		return nil, fault
	}
	return strict, nil
}

// The members of a definition that clients check.
var (
	commonMembers = []mcp.StrictMember{{Name: "title", Rule: mcp.StrictText}, {Name: "description", Rule: mcp.StrictText}, {Name: "icons", Rule: mcp.StrictIcons},
		{Name: "_meta", Rule: strictMeta}}

	hintMembers = []mcp.StrictMember{{Name: "title", Rule: mcp.StrictText}, {Name: "readOnlyHint", Rule: mcp.StrictBool}, {Name: "destructiveHint", Rule: mcp.StrictBool},
		{Name: "idempotentHint", Rule: mcp.StrictBool}, {Name: "openWorldHint", Rule: mcp.StrictBool}}

	argumentMembers = []mcp.StrictMember{{Name: "name", Rule: mcp.StrictText, Required: true}, {Name: "title", Rule: mcp.StrictText},
		{Name: "description", Rule: mcp.StrictText}, {Name: "required", Rule: mcp.StrictBool}}

	executionMembers = []mcp.StrictMember{{Name: "taskSupport", Rule: mcp.StrictOneOf("forbidden", "optional", "required")}}

	contentMembers = append([]mcp.StrictMember{{Name: "name", Rule: mcp.StrictText, Required: true}, {Name: "mimeType", Rule: mcp.StrictText},
		{Name: "annotations", Rule: mcp.StrictAnnotations}}, commonMembers...)

	strictMembers = map[DefinitionKind][]mcp.StrictMember{
		KindTool: append([]mcp.StrictMember{{Name: "inputSchema", Rule: strictInputSchema, Required: true}, {Name: "outputSchema", Rule: strictOutputSchema},
			{Name: "annotations", Rule: mcp.StrictObjectWith(hintMembers)}, {Name: "execution", Rule: mcp.StrictObjectWith(executionMembers)}}, commonMembers...),
		KindPrompt:   append([]mcp.StrictMember{{Name: "arguments", Rule: mcp.StrictListOf(mcp.StrictObjectWith(argumentMembers))}}, commonMembers...),
		KindResource: append([]mcp.StrictMember{{Name: "size", Rule: mcp.StrictInteger}}, contentMembers...),
		KindTemplate: contentMembers,
	}
)

// strictInputSchema is the rule for the schema of a call's arguments, which are always an object.
func strictInputSchema(value json.RawMessage) (json.RawMessage, *mcp.StrictFault) {
	if value == nil {
		return json.RawMessage(`{"type":"object"}`), nil
	}
	if mcp.IsEmptyAs(value, '[') {
		value = json.RawMessage("{}")
	}
	if !describesObject(value) {
		return nil, mcp.NewStrictFault("does not describe an object")
	}
	if fault := numberFault(value); fault != nil {
		return nil, fault
	}
	return strictObjectSchema(value)
}

// strictOutputSchema is the rule for an output schema. It leaves out a schema that describes no object, or that some
// clients cannot compile, because no call needs it.
func strictOutputSchema(value json.RawMessage) (json.RawMessage, *mcp.StrictFault) {
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

var schemaMembers = []mcp.StrictMember{{Name: "$schema", Rule: mcp.StrictText}, {Name: "required", Rule: mcp.StrictListOf(mcp.StrictText)}, {Name: "properties", Rule: strictProperties}}

// strictObjectSchema returns the schema of an object with its type, and without members that are null.
func strictObjectSchema(schema json.RawMessage) (json.RawMessage, *mcp.StrictFault) {
	schema, fault := mcp.ApplyStrict(schema, schemaMembers)
	if fault != nil {
		return nil, fault
	}
	if kind, _ := wirejson.String(wirejson.Find(schema, "type")); kind != "object" {
		schema = wirejson.SetMember(schema, "type", json.RawMessage(`"object"`))
	}
	return withoutConstructor(schema)
}

// constructorName is a name that the official TypeScript client rejects in _meta and in properties.
const constructorName = "constructor"

// withoutConstructor returns a schema in which a pattern, which has the same meaning, replaces the property constructor.
func withoutConstructor(schema json.RawMessage) (json.RawMessage, *mcp.StrictFault) {
	properties, patterns := wirejson.Find(schema, "properties"), wirejson.Find(schema, "patternProperties")
	property := wirejson.Find(properties, constructorName)
	if property == nil {
		return schema, nil
	}
	const pattern = "^" + constructorName + "$"
	if patterns != nil && wirejson.Kind(patterns) != '{' || wirejson.Find(patterns, pattern) != nil {
		return nil, mcp.NewStrictFault("has a property with the name constructor, which some clients reject")
	}
	schema = wirejson.SetMember(schema, "patternProperties", wirejson.SetMember(patterns, pattern, property))
	return wirejson.SetMember(schema, "properties", wirejson.DropMember(properties, constructorName)), nil
}

// numberFault returns the fault of a value with a number for which the official Go client rejects the list. It ignores
// members that it does not know.
func numberFault(value json.RawMessage) *mcp.StrictFault {
	if wirejson.ExceedsFloat64(value) {
		return mcp.NewStrictFault("has a number that is too large for a 64-bit float")
	}
	return nil
}

// strictMeta is the rule for _meta.
func strictMeta(value json.RawMessage) (json.RawMessage, *mcp.StrictFault) {
	value, fault := mcp.ApplyStrict(value, nil)
	if fault == nil {
		fault = numberFault(value)
	}
	return wirejson.DropMember(value, constructorName), fault
}

// strictProperties is the rule for properties. Each schema becomes an object: true and false have an equivalent object.
func strictProperties(properties json.RawMessage) (json.RawMessage, *mcp.StrictFault) {
	if mcp.IsEmptyAs(properties, '[') {
		properties = json.RawMessage("{}")
	}
	if wirejson.Kind(properties) != '{' {
		return nil, mcp.NewStrictFault("is no object")
	}
	out := properties
	var fault *mcp.StrictFault
	_ = wirejson.EachMember(properties, func(name, schema []byte) error { // a definition is JSON
		switch wirejson.Kind(schema) {
		case '{':
		case 't':
			out = wirejson.SetMember(out, string(name), json.RawMessage(`{}`))
		case 'f':
			out = wirejson.SetMember(out, string(name), json.RawMessage(`{"not":{}}`))
		default:
			fault = mcp.NewStrictFault("has a schema that is no object")
		}
		return nil
	})
	return out, fault
}
