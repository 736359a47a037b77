package ops

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
)

// The bounds of a signature. It is to be called from, and to be read at a
// glance: what does not fit is "…", and the whole schema is in detail full.
const (
	maxSignature  = 2000 // bytes; parameters after that are left out
	maxBrief      = 200  // bytes; parameters after that are left out of a brief one if they need not be given
	maxEnum       = 12   // values of an enum
	maxLiteral    = 60   // bytes of one such value, or of a default
	maxMembers    = 16   // of an object inside the parameters
	maxNesting    = 4    // objects, arrays, unions and references inside each other
	maxSteps      = 1000 // schemas looked at, so that a hostile one costs no more
	maxDefinition = 256 << 10
)

// signature is a tool on one line: its parameters with their types, those that
// are required first, the others with "?", enums as their values, defaults
// behind "=", objects as {…}, arrays as T[]. It is what detail compact shows
// instead of the schema.
func signature(name string, inputSchema json.RawMessage) string {
	return signed(name, inputSchema, maxSignature)
}

// signed is a signature with at most so many bytes of parameters that need not be given.
func signed(name string, inputSchema json.RawMessage, most int) string {
	if len(inputSchema) == 0 {
		return name + "()"
	}
	if len(inputSchema) > maxDefinition || wirejson.Check(inputSchema, wirejson.Limits{}) != nil || wirejson.Kind(inputSchema) != '{' {
		return name + "(…)"
	}
	w := signer{root: inputSchema, most: most}
	w.out = append(w.out, name...)
	w.out = append(w.out, '(')
	w.parameters(w.resolve(inputSchema, 0), 0)
	return string(append(w.out, ')'))
}

// signer writes a signature.
type signer struct {
	root  json.RawMessage // what references are looked up in
	out   []byte
	most  int // bytes, from where on only what has to be given is written
	steps int
}

// parameter is a property of an object.
type parameter struct {
	name     string
	schema   json.RawMessage
	required bool
}

// properties returns the properties of an object in the server's order, those
// that are required first.
func properties(schema json.RawMessage) []parameter {
	var required []string
	_ = wirejson.Elements(wirejson.Find(schema, "required"), func(value []byte) error {
		if s, ok := wirejson.String(value); ok {
			required = append(required, s)
		}
		return nil
	})
	var first, then []parameter
	_ = wirejson.Members(wirejson.Find(schema, "properties"), func(name, value []byte) error {
		p := parameter{string(name), value, slices.Contains(required, string(name))}
		if p.required {
			first = append(first, p)
		} else {
			then = append(then, p)
		}
		return nil
	})
	return append(first, then...)
}

// parameters writes the properties of an object.
func (w *signer) parameters(schema json.RawMessage, depth int) {
	for i, p := range properties(schema) {
		if i > 0 {
			w.out = append(w.out, ", "...)
		}
		if len(w.out) > maxSignature || len(w.out) > w.most && !p.required || depth > 0 && i == maxMembers {
			w.out = append(w.out, "…"...)
			return
		}
		w.name(p.name)
		if !p.required {
			w.out = append(w.out, '?')
		}
		w.out = append(w.out, ": "...)
		s := w.resolve(p.schema, depth)
		w.describe(s, depth)
		if value := wirejson.Find(s, "default"); value != nil {
			w.out = append(w.out, " = "...)
			w.literal(value)
		}
	}
}

// name writes the name of a property, quoted where it could be misread.
func (w *signer) name(name string) {
	for _, r := range name {
		if r > '~' || !strings.ContainsRune("_-$.", r) && (r < '0' || '9' < r && r < 'A' || 'Z' < r && r < 'a' || 'z' < r) {
			w.out = wirejson.AppendString(w.out, problem.Shown(name, maxLiteral))
			return
		}
	}
	w.out = append(w.out, problem.Shown(name, maxLiteral)...)
}

func (w *signer) literal(value json.RawMessage) {
	var b bytes.Buffer
	if len(value) > 4*maxLiteral || json.Compact(&b, value) != nil || b.Len() > maxLiteral {
		w.out = append(w.out, "…"...)
		return
	}
	w.out = append(w.out, b.Bytes()...)
}

// resolve follows references inside the schema, and takes the only choice
// where there is one.
func (w *signer) resolve(schema json.RawMessage, depth int) json.RawMessage {
	for ; depth < 2*maxNesting; depth++ {
		if all := elements(wirejson.Find(schema, "allOf"), 2); len(all) == 1 {
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
	return nil // a circle
}

// elements returns at most n elements of an array.
func elements(array json.RawMessage, n int) (out []json.RawMessage) {
	if wirejson.Kind(array) != '[' {
		return nil
	}
	_ = wirejson.Elements(array, func(value []byte) error {
		if len(out) < n {
			out = append(out, value)
		}
		return nil
	})
	return out
}

// describe writes the type of what a schema allows.
func (w *signer) describe(schema json.RawMessage, depth int) {
	if value := wirejson.Find(schema, "const"); value != nil {
		w.literal(value)
		return
	}
	if values := elements(wirejson.Find(schema, "enum"), maxEnum+1); len(values) > 0 {
		w.enum(values)
		return
	}
	if w.steps++; w.steps > maxSteps || len(w.out) > maxSignature || depth >= maxNesting {
		w.out = append(w.out, "…"...)
		return
	}
	for _, keyword := range [...]string{"anyOf", "oneOf"} {
		if choices := elements(wirejson.Find(schema, keyword), maxEnum+1); len(choices) > 0 {
			w.union(choices, depth)
			return
		}
	}
	kinds := typesOf(schema)
	for i, kind := range kinds {
		if i > 0 {
			w.out = append(w.out, '|')
		}
		w.kind(schema, kind, depth)
	}
}

// typesOf returns the types that a schema names, or the one that it implies.
func typesOf(schema json.RawMessage) (kinds []string) {
	named := wirejson.Find(schema, "type")
	if one, ok := wirejson.String(named); ok {
		return []string{one}
	}
	for _, value := range elements(named, 8) {
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

func (w *signer) kind(schema json.RawMessage, kind string, depth int) {
	switch kind {
	case "array":
		w.array(wirejson.Find(schema, "items"), depth)
	case "object":
		w.object(schema, depth)
	default:
		w.out = append(w.out, problem.Shown(kind, maxLiteral)...)
	}
}

func (w *signer) array(items json.RawMessage, depth int) {
	if wirejson.Kind(items) != '{' {
		w.out = append(w.out, "any[]"...)
		return
	}
	start := len(w.out)
	w.describe(w.resolve(items, depth+1), depth+1)
	if item := w.out[start:]; bytes.IndexByte(item, '|') >= 0 && item[0] != '{' {
		w.out = append(slices.Insert(w.out, start, '('), ')')
	}
	w.out = append(w.out, "[]"...)
}

func (w *signer) object(schema json.RawMessage, depth int) {
	if wirejson.Kind(wirejson.Find(schema, "properties")) == '{' {
		w.out = append(w.out, '{')
		w.parameters(schema, depth+1)
		w.out = append(w.out, '}')
		return
	}
	if values := wirejson.Find(schema, "additionalProperties"); wirejson.Kind(values) == '{' {
		w.out = append(w.out, "{[key]: "...)
		w.describe(w.resolve(values, depth+1), depth+1)
		w.out = append(w.out, '}')
		return
	}
	w.out = append(w.out, "object"...)
}

func (w *signer) enum(values []json.RawMessage) {
	for i, value := range values {
		if i > 0 {
			w.out = append(w.out, '|')
		}
		if i == maxEnum {
			w.out = append(w.out, "…"...)
			return
		}
		w.literal(value)
	}
}

// union writes each choice once.
func (w *signer) union(choices []json.RawMessage, depth int) {
	var seen []string
	for _, choice := range choices {
		start := len(w.out)
		if len(seen) > 0 {
			w.out = append(w.out, '|')
		}
		from := len(w.out)
		w.describe(w.resolve(choice, depth+1), depth+1)
		if text := string(w.out[from:]); slices.Contains(seen, text) {
			w.out = w.out[:start]
		} else {
			seen = append(seen, text)
		}
	}
}
