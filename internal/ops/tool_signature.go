package ops

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
)

// Limits of a signature. Parts above a limit are replaced with "…". The detail level full contains the whole schema.
const (
	maxSignature      = 2000 // bytes; further parameters are left out
	maxBriefSignature = 200  // bytes; a brief signature leaves out further optional parameters
	maxEnum           = 12   // values of an enum
	maxLiteral        = 60   // bytes of one enum value or default value
	maxMembers        = 16   // members of a nested object
	maxNesting        = 4    // levels of nested objects, arrays, unions and references
	maxSteps          = 1000 // visited schemas, as a protection against hostile schemas
	maxDefinition     = 256 << 10
)

// formatToolSignature describes a tool in one line. It lists parameters with their types, required ones first. Optional
// parameters have a "?", enums list their values, default values follow "=", objects are written as {…} and arrays as
// T[]. The detail level compact contains the signature instead of the schema.
func formatToolSignature(name string, inputSchema json.RawMessage) string {
	return formatLimitedToolSignature(name, inputSchema, maxSignature)
}

// formatLimitedToolSignature is like formatToolSignature, but leaves out optional parameters after most bytes.
func formatLimitedToolSignature(name string, inputSchema json.RawMessage, most int) string {
	if len(inputSchema) == 0 {
		return name + "()"
	}
	if len(inputSchema) > maxDefinition || wirejson.Check(inputSchema, wirejson.Limits{}) != nil || wirejson.Kind(inputSchema) != '{' {
		return name + "(…)"
	}
	w := toolSignatureWriter{root: inputSchema, most: most}
	w.out = append(w.out, name...)
	w.out = append(w.out, '(')
	w.writeProperties(w.resolveReferences(inputSchema, 0), 0)
	return string(append(w.out, ')'))
}

// toolSignatureWriter writes the signature of a tool.
type toolSignatureWriter struct {
	root  json.RawMessage // schema in which references are resolved
	out   []byte
	most  int // number of bytes after which only required parameters are written
	steps int
}

// schemaProperty is a property of an object.
type schemaProperty struct {
	name     string
	schema   json.RawMessage
	required bool
}

// listProperties returns the properties of an object in the server's order, required ones first.
func listProperties(schema json.RawMessage) []schemaProperty {
	var required []string
	_ = wirejson.EachElement(wirejson.Find(schema, "required"), func(value []byte) error {
		if s, ok := wirejson.String(value); ok {
			required = append(required, s)
		}
		return nil
	})
	var first, then []schemaProperty
	_ = wirejson.EachMember(wirejson.Find(schema, "properties"), func(name, value []byte) error {
		p := schemaProperty{string(name), value, slices.Contains(required, string(name))}
		if p.required {
			first = append(first, p)
		} else {
			then = append(then, p)
		}
		return nil
	})
	return append(first, then...)
}

// writeProperties writes the properties of an object.
func (w *toolSignatureWriter) writeProperties(schema json.RawMessage, depth int) {
	for i, p := range listProperties(schema) {
		if i > 0 {
			w.out = append(w.out, ", "...)
		}
		if len(w.out) > maxSignature || len(w.out) > w.most && !p.required || depth > 0 && i == maxMembers {
			w.out = append(w.out, "…"...)
			return
		}
		w.writePropertyName(p.name)
		if !p.required {
			w.out = append(w.out, '?')
		}
		w.out = append(w.out, ": "...)
		s := w.resolveReferences(p.schema, depth)
		w.writeType(s, depth)
		if value := wirejson.Find(s, "default"); value != nil {
			w.out = append(w.out, " = "...)
			w.writeLiteral(value)
		}
	}
}

// writePropertyName writes the name of a property, quoted where it is ambiguous.
func (w *toolSignatureWriter) writePropertyName(name string) {
	for _, r := range name {
		if r > '~' || !strings.ContainsRune("_-$.", r) && (r < '0' || '9' < r && r < 'A' || 'Z' < r && r < 'a' || 'z' < r) {
			w.out = wirejson.AppendString(w.out, problem.ClipForDisplay(name, maxLiteral))
			return
		}
	}
	w.out = append(w.out, problem.ClipForDisplay(name, maxLiteral)...)
}

func (w *toolSignatureWriter) writeLiteral(value json.RawMessage) {
	var b bytes.Buffer
	if len(value) > 4*maxLiteral || json.Compact(&b, value) != nil || b.Len() > maxLiteral {
		w.out = append(w.out, "…"...)
		return
	}
	w.out = append(w.out, b.Bytes()...)
}

// resolveReferences follows local references and a single allOf.
func (w *toolSignatureWriter) resolveReferences(schema json.RawMessage, depth int) json.RawMessage {
	for ; depth < 2*maxNesting; depth++ {
		if all := firstElements(wirejson.Find(schema, "allOf"), 2); len(all) == 1 {
			schema = all[0]
			continue
		}
		ref, ok := wirejson.String(wirejson.Find(schema, "$ref"))
		path, local := strings.CutPrefix(ref, "#/")
		if !ok || !local {
			return schema
		}
		found := w.root
		for step := range strings.SplitSeq(path, "/") {
			found = wirejson.Find(found, strings.NewReplacer("~1", "/", "~0", "~").Replace(step))
		}
		if found == nil {
			return schema
		}
		schema = found
	}
	return nil // the references form a cycle
}

// firstElements returns at most n elements of an array.
func firstElements(array json.RawMessage, n int) (out []json.RawMessage) {
	if wirejson.Kind(array) != '[' {
		return nil
	}
	_ = wirejson.EachElement(array, func(value []byte) error {
		if len(out) < n {
			out = append(out, value)
		}
		return nil
	})
	return out
}

// writeType writes the type that a schema describes.
func (w *toolSignatureWriter) writeType(schema json.RawMessage, depth int) {
	if value := wirejson.Find(schema, "const"); value != nil {
		w.writeLiteral(value)
		return
	}
	if values := firstElements(wirejson.Find(schema, "enum"), maxEnum+1); len(values) > 0 {
		w.writeEnum(values)
		return
	}
	if w.steps++; w.steps > maxSteps || len(w.out) > maxSignature || depth >= maxNesting {
		w.out = append(w.out, "…"...)
		return
	}
	for _, keyword := range [...]string{"anyOf", "oneOf"} {
		if choices := firstElements(wirejson.Find(schema, keyword), maxEnum+1); len(choices) > 0 {
			w.writeUnion(choices, depth)
			return
		}
	}
	kinds := schemaTypes(schema)
	for i, kind := range kinds {
		if i > 0 {
			w.out = append(w.out, '|')
		}
		w.writeNamedType(schema, kind, depth)
	}
}

// schemaTypes returns the types that a schema names or implies.
func schemaTypes(schema json.RawMessage) (kinds []string) {
	named := wirejson.Find(schema, "type")
	if one, ok := wirejson.String(named); ok {
		return []string{one}
	}
	for _, value := range firstElements(named, 8) {
		if kind, ok := wirejson.String(value); ok {
			kinds = append(kinds, kind)
		}
	}
	switch {
	case len(kinds) > 0:
		return kinds
	case wirejson.Find(schema, "properties") != nil:
		return []string{"object"}
	case wirejson.Find(schema, "items") != nil:
		return []string{"array"}
	}
	return []string{"any"}
}

func (w *toolSignatureWriter) writeNamedType(schema json.RawMessage, kind string, depth int) {
	switch kind {
	case "array":
		w.writeArray(wirejson.Find(schema, "items"), depth)
	case "object":
		w.writeObject(schema, depth)
	default:
		w.out = append(w.out, problem.ClipForDisplay(kind, maxLiteral)...)
	}
}

func (w *toolSignatureWriter) writeArray(items json.RawMessage, depth int) {
	if wirejson.Kind(items) != '{' {
		w.out = append(w.out, "any[]"...)
		return
	}
	start := len(w.out)
	w.writeType(w.resolveReferences(items, depth+1), depth+1)
	if item := w.out[start:]; bytes.IndexByte(item, '|') >= 0 && item[0] != '{' {
		w.out = append(slices.Insert(w.out, start, '('), ')')
	}
	w.out = append(w.out, "[]"...)
}

func (w *toolSignatureWriter) writeObject(schema json.RawMessage, depth int) {
	if wirejson.Kind(wirejson.Find(schema, "properties")) == '{' {
		w.out = append(w.out, '{')
		w.writeProperties(schema, depth+1)
		w.out = append(w.out, '}')
		return
	}
	if values := wirejson.Find(schema, "additionalProperties"); wirejson.Kind(values) == '{' {
		w.out = append(w.out, "{[key]: "...)
		w.writeType(w.resolveReferences(values, depth+1), depth+1)
		w.out = append(w.out, '}')
		return
	}
	w.out = append(w.out, "object"...)
}

func (w *toolSignatureWriter) writeEnum(values []json.RawMessage) {
	for i, value := range values {
		if i > 0 {
			w.out = append(w.out, '|')
		}
		if i == maxEnum {
			w.out = append(w.out, "…"...)
			return
		}
		w.writeLiteral(value)
	}
}

// writeUnion writes the distinct choices of a union.
func (w *toolSignatureWriter) writeUnion(choices []json.RawMessage, depth int) {
	var seen []string
	for _, choice := range choices {
		start := len(w.out)
		if len(seen) > 0 {
			w.out = append(w.out, '|')
		}
		from := len(w.out)
		w.writeType(w.resolveReferences(choice, depth+1), depth+1)
		if text := string(w.out[from:]); slices.Contains(seen, text) {
			w.out = w.out[:start]
		} else {
			seen = append(seen, text)
		}
	}
}
