package api

import (
	_ "embed"
	"encoding/json"
	"html"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"mcpproxy/internal/ops"

	"mcpproxy/internal/config/auth"
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
