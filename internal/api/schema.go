package api

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"time"

	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
)

// schema is a JSON Schema, as used in OpenAPI 3.1.
type schema map[string]any

// schemaSet maps type names to the schemas of the structs in responses.
type schemaSet map[string]schema

// schemaOf returns the schema of a type. A struct becomes a reference to a component. If all is nil, as for request
// bodies, the struct is inlined.
func (all schemaSet) schemaOf(t reflect.Type) schema {
	switch {
	case t.Kind() == reflect.Pointer:
		return all.schemaOf(t.Elem())
	case t == reflect.TypeFor[time.Time]():
		return schema{"type": "string", "format": "date-time"}
	case t == reflect.TypeFor[json.RawMessage](), t.Kind() == reflect.Interface:
		return schema{}
	case t == reflect.TypeFor[problem.Details]():
		return schema{"type": "object", "additionalProperties": schema{}}
	}
	typed, hasWords := reflect.Zero(t).Interface().(interface{ Words() []string })
	if hasWords && t.Kind() != reflect.Array {
		return schema{"type": "string", "enum": typed.Words()}
	}
	switch t.Kind() {
	case reflect.Bool:
		return schema{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return schema{"type": "integer", "format": "int64"}
	case reflect.Float64:
		return schema{"type": "number", "format": "double"}
	case reflect.Slice:
		return schema{"type": "array", "items": all.schemaOf(t.Elem())}
	case reflect.Map:
		return schema{"type": "object", "additionalProperties": all.schemaOf(t.Elem())}
	case reflect.Array: // an object with one number per word, of which only the first is required
		members := schema{}
		for _, word := range typed.Words() {
			members[word] = all.schemaOf(t.Elem())
		}
		all[t.Name()] = schema{"type": "object", "properties": members, "required": typed.Words()[:1], "additionalProperties": true}
		return all.newReference(t.Name())
	case reflect.Struct:
		if all == nil {
			return schema{"type": "object", "properties": all.propertiesOf(t)}
		}
		name := schemaName(t)
		if all[name] == nil {
			all[name] = schema{} // ends the recursion for a recursive type
			all[name] = all.objectSchema(t)
		}
		return all.newReference(name)
	}
	return schema{"type": "string"}
}

func (schemaSet) newReference(name string) schema {
	return schema{"$ref": "#/components/schemas/" + name}
}

// schemaName returns the name of a struct in the OpenAPI document.
func schemaName(t reflect.Type) string {
	if t == reflect.TypeFor[problemDocument]() {
		return "Problem"
	}
	return t.Name()
}

// objectSchema returns the schema of a struct as encoding/json writes it. It allows additional properties, because
// later versions may add members.
func (all schemaSet) objectSchema(t reflect.Type) schema {
	s := schema{"type": "object", "properties": all.propertiesOf(t), "additionalProperties": true}
	var required []string
	for _, f := range reflect.VisibleFields(t) {
		if name, optional := jsonName(f); name != "" && !optional {
			required = append(required, name)
		}
	}
	if required != nil {
		s["required"] = required
	}
	return s
}

func (all schemaSet) propertiesOf(t reflect.Type) schema {
	properties := schema{}
	for _, f := range reflect.VisibleFields(t) {
		if name, _ := jsonName(f); name != "" {
			properties[name] = all.schemaOf(f.Type).withTags(f.Tag).withDescription(f.Tag.Get("doc"))
		}
	}
	return properties
}

// jsonName returns the JSON name of a field and whether the field is optional. The name is "" if the field is not
// encoded.
func jsonName(f reflect.StructField) (name string, optional bool) {
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	return strings.TrimPrefix(name, "-"), options == "omitempty"
}

// withTags adds the constraints in the tags of a field.
func (s schema) withTags(tag reflect.StructTag) schema {
	if format := tag.Get("format"); format != "" {
		s["format"] = format
	}
	if kind := tag.Get("type"); kind != "" { // the field is raw JSON that is decoded later
		s["type"] = kind
	}
	if s["type"] == "object" && s["properties"] == nil && s["additionalProperties"] == nil {
		s["additionalProperties"] = true
	}
	if tag.Get("null") != "" {
		s["type"] = []string{s.stringAt("type"), "null"}
	}
	if longest, err := strconv.Atoi(tag.Get("maxLength")); err == nil {
		s["maxLength"] = longest
	}
	switch {
	case s["type"] == "boolean" && tag.Get("enum") != "":
		s["enum"] = []bool{tag.Get("enum") == "true"}
	case tag.Get("enum") != "":
		s["enum"] = strings.Split(tag.Get("enum"), ",")
	case tag.Get("words") != "":
		s["enum"] = vocabularyWords(tag.Get("words"))
	}
	return s
}

// withDescription adds a description, if there is one.
func (s schema) withDescription(doc string) schema {
	if doc != "" {
		s["description"] = doc
	}
	return s
}

// typeName returns the type of a value, without null.
func (s schema) typeName() string {
	if either, ok := s["type"].([]string); ok {
		return either[0]
	}
	return s.stringAt("type")
}

func (s schema) stringAt(key string) string {
	text, _ := s[key].(string)
	return text
}

// enumWords returns the allowed strings, or nil if any string is allowed.
func (s schema) enumWords() []string {
	words, _ := s["enum"].([]string)
	return words
}

// vocabularyWords returns the allowed values for a name in the struct tag "words".
func vocabularyWords(name string) []string {
	switch name {
	case "status":
		return toolStatusWords()
	case "shown status":
		return ops.Counts{}.Words()[1:]
	case "status or callable":
		return ops.Counts{}.Words()
	case "variant":
		return callToolVariantWords()
	case "operation":
		return operationTypeWords()
	case "check":
		return policy.CheckNames()
	case "sensitivity":
		return policy.Sensitivities()
	case "trust":
		return config.TrustValues()
	case "lane_by":
		return policy.ArgumentKindNames()
	case "infer":
		return config.InferValues()
	}
	panic("there is no vocabulary " + name)
}

func toolStatusWords() (words []string) {
	for _, s := range policy.Statuses() {
		words = append(words, s.String())
	}
	return words
}

func operationTypeWords() []string {
	return []string{policy.Read.String(), policy.Write.String(), policy.Destructive.String()}
}

func callToolVariantWords() []string {
	return []string{policy.CallToolRead.String(), policy.CallToolWrite.String(), policy.CallToolDestructive.String()}
}

// newInvalidValueError returns an error with the parameter, the value and the allowed values.
func newInvalidValueError(name, value string, allowed ...string) *problem.Problem {
	return problem.Newf(problem.InvalidParameter, "Invalid value '%s' for %s: must be %s", problem.ClipName(value), name, joinOr(allowed)).
		With("parameter", name).With("value", problem.ClipName(value)).With("allowed", emptyIfNil(allowed))
}

func joinOr(words []string) string {
	switch len(words) {
	case 0:
		return "left out"
	case 1:
		return words[0]
	case 2:
		return words[0] + " or " + words[1]
	}
	return strings.Join(words[:len(words)-1], ", ") + ", or " + words[len(words)-1]
}

// displayValue returns a JSON value for an error: a string without quotes.
func displayValue(value []byte) string {
	if s, ok := wirejson.String(value); ok {
		return s
	}
	return string(value)
}

func emptyIfNil[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}
