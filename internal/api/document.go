package api

import (
	_ "embed"
	"encoding/json"
	"html"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"mcpproxy/internal/config"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
)

// openAPIDocument returns the OpenAPI document.
func openAPIDocument(d *Deps) ([]byte, error) {
	all, paths := schemaSet{}, map[string]map[string]any{}
	failure := responseObject("Error", problemType, all.schemaOf(reflect.TypeFor[problemDocument]()))
	for _, one := range d.operations() {
		o := one.base()
		path := pathInOpenAPISyntax(o)
		if paths[path] == nil {
			paths[path] = map[string]any{}
		}
		paths[path][strings.ToLower(o.method)] = o.operationObject(all, failure)
	}
	raw, err := json.MarshalIndent(map[string]any{
		"openapi": "3.1.0",
		"info": map[string]any{"title": "MCPProxy", "version": d.Version,
			"description": "Servers, tools, calls and the activity log of one MCPProxy. Every failure is an RFC 9457 problem document with a code."},
		"servers": []any{map[string]any{"url": Prefix}},
		"paths":   paths,
		"components": map[string]any{"schemas": all, "securitySchemes": map[string]any{
			"key":    map[string]any{"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "The API key: the content of the file api_key in the data directory. Requests over the unix socket need no key."},
			"bearer": map[string]any{"type": "http", "scheme": "bearer", "description": "The API key as a bearer token."},
			"cookie": map[string]any{"type": "apiKey", "in": "cookie", "name": auth.SessionCookie, "description": "The session cookie of the web UI. The request must also send the page's X-MCPProxy-Session value."},
			"page":   map[string]any{"type": "apiKey", "in": "header", "name": auth.SessionHeader, "description": "The session value that the page received when it signed in."},
		}},
		"security": []any{map[string]any{"key": []any{}}, map[string]any{"bearer": []any{}}, map[string]any{"cookie": []any{}, "page": []any{}}},
	}, "", "  ")
	return append(raw, '\n'), err
}

// pathInOpenAPISyntax returns the path in OpenAPI syntax, which has no "rest of the path" parameter.
func pathInOpenAPISyntax(o *operation) string { return strings.ReplaceAll(o.path, "...}", "}") }

// operationObject returns the OpenAPI Operation Object for the operation.
func (o *operation) operationObject(all schemaSet, failure map[string]any) map[string]any {
	d := map[string]any{
		"operationId": o.id, "summary": o.summary, "description": o.right.requirementText(), "x-right": o.right.String(),
	}
	if o.right == Open {
		d["security"] = []any{}
	}
	answer := responseObject("OK", o.contentType, nil)
	if slices.Contains([]reflect.Type{reflect.TypeFor[rawBody](), reflect.TypeFor[ops.StreamFunc](), reflect.TypeFor[ops.Download]()}, o.out) {
		answer["headers"] = map[string]any{"Content-Type": map[string]any{"schema": schema{"type": "string"}}}
	} else {
		answer = responseObject("OK", o.contentType, all.schemaOf(o.out))
	}
	d["responses"] = map[string]any{"200": answer, "default": failure}
	var params, required []any
	members := schema{}
	for _, f := range o.deriveInputSpec().fields {
		switch {
		case f.location != inBody:
			params = append(params, f.parameterObject())
		default:
			members[f.name] = f.schema.withDescription(f.doc)
			if f.required {
				required = append(required, f.name)
			}
		}
	}
	if params != nil {
		d["parameters"] = params
	}
	if len(members) > 0 {
		body := schema{"type": "object", "properties": members, "additionalProperties": false}
		if required != nil {
			body["required"] = required
		}
		// A POST whose members are all optional needs no body: see readBody.
		d["requestBody"] = map[string]any{"required": required != nil || o.method != http.MethodPost, "content": contentObject("application/json", body)}
	}
	return d
}

func responseObject(description, contentType string, of schema) map[string]any {
	return map[string]any{"description": description, "content": contentObject(contentType, of)}
}

func contentObject(contentType string, of schema) map[string]any {
	media := map[string]any{}
	if of != nil {
		media["schema"] = of
	}
	return map[string]any{contentType: media}
}

// docsHead is the part of the page before the operations, and docsFoot is the part after them. The page does not use
// html/template, because its calls by name would keep unused methods in the binary and make it 10% larger.
//
//go:embed docs.html
var docsHead string

const docsFoot = "</body>\n</html>\n"

// docsOperation is one operation on the page.
type docsOperation struct {
	Method, Path, Summary, Needs string
	Params                       []docsParam
	Body                         []docsParam
}

type docsParam struct {
	Name, Type, Doc, Allowed string
	Required                 bool
}

// docsPage returns the OpenAPI document as an HTML page. It loads no other resource.
func docsPage(d *Deps) ([]byte, error) {
	text := html.EscapeString
	out := strings.NewReplacer("{{prefix}}", text(Prefix)).Replace(docsHead)
	for _, o := range d.operations() {
		e := newDocsOperation(o.base())
		out += "<section>\n<h2>" + text(e.Method+" "+e.Path) + "</h2>\n<p>" + text(e.Summary+". "+e.Needs) + "</p>\n" +
			docsParamTable("Parameters", "Name", e.Params) + docsParamTable("Body", "Member", e.Body) + "</section>\n"
	}
	return []byte(out + docsFoot), nil
}

// docsParamTable returns an HTML table of parameters, or "" if there are none.
func docsParamTable(caption, name string, params []docsParam) string {
	if len(params) == 0 {
		return ""
	}
	text := html.EscapeString
	out := "<table><caption>" + caption + `</caption><tr><th scope="col">` + name + `</th><th scope="col">Type</th><th scope="col">Meaning</th></tr>` + "\n"
	for _, p := range params {
		out += "<tr><td>" + text(p.Name)
		if p.Required {
			out += " (required)"
		}
		out += "</td><td>" + text(p.Type) + "</td><td>" + text(p.Doc)
		if p.Allowed != "" {
			out += " One of: <code>" + text(p.Allowed) + "</code>."
		}
		out += "</td></tr>\n"
	}
	return out + "</table>"
}

func newDocsOperation(o *operation) docsOperation {
	e := docsOperation{Method: o.method, Path: pathInOpenAPISyntax(o), Summary: o.summary, Needs: o.right.requirementText()}
	for _, f := range o.deriveInputSpec().fields {
		p := docsParam{f.name, f.schema.typeName(), f.doc, strings.Join(f.allowedValues(), ", "), f.required}
		if f.location == inBody {
			e.Body = append(e.Body, p)
		} else {
			e.Params = append(e.Params, p)
		}
	}
	return e
}

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
