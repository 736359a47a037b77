package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"mcpproxy/internal/catalog/search"
	"mcpproxy/internal/problem"
)

// inputSpec describes how the server reads the input of an operation and how a client writes it.
type inputSpec struct {
	fields  []inputField
	example string // example of the body, if its type declares one
}

// newInputSpec derives the input of an operation from the tags of a struct and from the path of the operation.
func newInputSpec(t reflect.Type, path string) *inputSpec {
	in := &inputSpec{fields: fieldsOf(t, path)}
	if says, ok := reflect.New(t).Interface().(interface{ Example() string }); ok {
		in.example = says.Example()
	}
	return in
}

// fieldsIn returns the fields in one location.
func (in *inputSpec) fieldsIn(p fieldLocation) []inputField {
	var out []inputField
	for _, f := range in.fields {
		if f.location == p {
			out = append(out, f)
		}
	}
	return out
}

func (in *inputSpec) fieldNames(p fieldLocation) []string {
	var names []string
	for _, f := range in.fieldsIn(p) {
		names = append(names, f.name)
	}
	return names
}

// exampleBody returns the declared example body. If there is none, it returns an object with the required members, or
// with all members if none is required.
func (in *inputSpec) exampleBody() string {
	if in.example != "" {
		return in.example
	}
	var needs, may []string
	for _, f := range in.fieldsIn(inBody) {
		if may = append(may, strconv.Quote(f.name)+": …"); f.required {
			needs = append(needs, may[len(may)-1])
		}
	}
	if len(needs) == 0 {
		needs = may
	}
	return "{" + strings.Join(needs, ", ") + "}"
}

// readRequest reads a request into a struct and returns the query values.
func (in *inputSpec) readRequest(r *http.Request, into reflect.Value) (url.Values, error) {
	given, err := in.readQuery(r.URL.RawQuery)
	if err != nil {
		return nil, err
	}
	for _, f := range in.fields {
		values := given[f.name]
		switch f.location {
		case inPath:
			values = []string{r.PathValue(f.name)}
		case inHeader:
			if values, err = f.readValues(r.Header.Values(f.name)); err != nil {
				return nil, err
			}
		}
		if f.location != inBody && len(values) > 0 {
			f.parseValues(into.FieldByIndex(f.index), values)
		}
	}
	if len(in.fieldsIn(inBody)) == 0 {
		return given, nil
	}
	return given, in.readBody(r, into)
}

// clientRequest is a request that a client sends.
type clientRequest struct {
	path   string
	header http.Header
	body   any // nil if the request has no body
}

// toClientRequest encodes the nonzero and required values of an input.
func (in *inputSpec) toClientRequest(path string, from any) clientRequest {
	out, v, q, body := clientRequest{path: path, header: http.Header{}}, reflect.ValueOf(from), url.Values{}, map[string]any{}
	_, own := from.(json.Marshaler) // the input encodes its own body
	for _, f := range in.fields {
		if f.location == inBody && own {
			continue
		}
		switch value := v.FieldByIndex(f.index); {
		case f.location == inPath:
			out.path = pathParamReplacer(f.name, escapePathSegment(value.String())).Replace(out.path)
		case f.location == inQuery && !value.IsZero():
			q[f.name] = f.formatValues(value)
		case f.location == inHeader && !value.IsZero():
			out.header[http.CanonicalHeaderKey(f.name)] = f.formatValues(value)
		case f.location == inBody && (f.required || !value.IsZero()):
			body[f.name] = value.Interface()
		}
	}
	if len(q) > 0 {
		out.path += "?" + q.Encode()
	}
	switch {
	case own:
		out.body = from
	case len(in.fieldsIn(inBody)) > 0:
		out.body = body
	}
	return out
}

// escapePathSegment escapes s as one path segment. It also escapes "." and "..", which would be resolved as a relative
// path.
func escapePathSegment(s string) string {
	if strings.Trim(s, ".") == "" {
		return strings.ReplaceAll(s, ".", "%2E")
	}
	return url.PathEscape(s)
}

// replaceNilLists replaces nil lists of an answer with empty ones.
func replaceNilLists(answer reflect.Value) {
	if answer.Kind() != reflect.Struct {
		return
	}
	for _, one := range reflect.VisibleFields(answer.Type()) {
		if f := answer.FieldByIndex(one.Index); f.Kind() == reflect.Slice && f.IsNil() && f.Type().Elem().Kind() != reflect.Uint8 {
			f.Set(reflect.MakeSlice(f.Type(), 0, 0))
		}
	}
}

// fieldLocation is the part of the request that contains a field. Its value is the name of the struct tag.
type fieldLocation string

const (
	inPath   fieldLocation = "path"
	inQuery  fieldLocation = "query"
	inHeader fieldLocation = "header"
	inBody   fieldLocation = "json"
)

// inputField is one parameter or body member of an input. The OpenAPI document and the validation are derived from it.
type inputField struct {
	name, doc string
	location  fieldLocation
	typ       reflect.Type
	index     []int // path of the struct field, for reflect.Value.FieldByIndex
	schema    schema
	required  bool
	split     bool // commas separate values

	min, max, defaultValue int // for a number in the query
}

// fieldsOf returns the tagged fields of a struct. It leaves out path parameters that path does not contain.
func fieldsOf(t reflect.Type, path string) []inputField {
	var all []inputField
	for _, one := range reflect.VisibleFields(t) {
		tag := one.Tag
		for _, at := range []fieldLocation{inPath, inQuery, inHeader, inBody} {
			name, _, _ := strings.Cut(tag.Get(string(at)), ",")
			if name == "" || name == "-" || at == inPath && pathParamReplacer(name).Replace(path) == path {
				continue
			}
			f := inputField{name: name, doc: tag.Get("doc"), location: at, typ: one.Type, index: one.Index,
				required: at == inPath || tag.Get("required") != "", split: tag.Get("split") != ""}
			if at == inBody {
				f.schema = schemaSet(nil).schemaOf(f.typ).withTags(tag)
			} else {
				f.schema = f.parameterSchema(tag)
			}
			all = append(all, f)
		}
	}
	return all
}

// pathParamReplacer returns a replacer that replaces a path parameter with value, or removes it if value is missing.
func pathParamReplacer(name string, value ...string) *strings.Replacer {
	v := strings.Join(value, "")
	return strings.NewReplacer("{"+name+"}", v, "{"+name+"...}", v)
}

// parameterSchema returns the schema of a path, query or header parameter, whose values are strings.
func (f *inputField) parameterSchema(tag reflect.StructTag) schema {
	switch {
	case f.typ == reflect.TypeFor[time.Time]():
		return schema{"type": "string", "examples": []any{"2026-01-15T10:30:00Z"}}
	case f.typ.Kind() == reflect.Bool:
		return schema{"type": "string", "enum": []string{"true", "false"}}
	case f.typ.Kind() == reflect.Slice:
		return schema{"type": "array", "items": schemaSet(nil).schemaOf(f.typ.Elem()).withTags(tag)}
	case f.typ.Kind() != reflect.Int:
		return schemaSet(nil).schemaOf(f.typ).withTags(tag)
	}
	for name, bound := range map[string]*int{"min": &f.min, "max": &f.max, "default": &f.defaultValue} {
		*bound, _ = strconv.Atoi(tag.Get(name))
	}
	s := schema{"type": "integer", "minimum": f.min, "maximum": f.max}
	if f.defaultValue >= f.min {
		s["default"] = f.defaultValue
	}
	return s
}

// allowedValues returns the allowed values, or nil if any value is allowed.
func (f *inputField) allowedValues() []string {
	if items, ok := f.schema["items"].(schema); ok && f.location != inBody {
		return items.enumWords()
	}
	return f.schema.enumWords()
}

// parameterObject returns the OpenAPI Parameter Object for the field.
func (f *inputField) parameterObject() map[string]any {
	d := map[string]any{"name": f.name, "in": f.location, "description": f.doc, "schema": f.schema}
	if f.required {
		d["required"] = true
	}
	if f.typ.Kind() == reflect.Slice {
		d["explode"] = true
	}
	return d
}

// parseValues stores validated strings in the field of an input.
func (f *inputField) parseValues(v reflect.Value, values []string) {
	switch v := v.Addr().Interface().(type) {
	case *time.Time:
		*v, _ = parseTime(values[0])
		return
	case *int:
		*v, _ = strconv.Atoi(values[0])
		return
	case *bool:
		*v = values[0] == "true"
		return
	}
	if v.Kind() != reflect.Slice {
		v.SetString(values[0])
		return
	}
	v.Set(reflect.MakeSlice(f.typ, len(values), len(values)))
	for i, one := range values {
		v.Index(i).SetString(one)
	}
}

// formatValues returns the strings that parseValues parses.
func (f *inputField) formatValues(v reflect.Value) []string {
	switch v := v.Interface().(type) {
	case time.Time:
		return []string{v.UTC().Format(time.RFC3339Nano)}
	case int:
		return []string{strconv.Itoa(v)}
	case bool:
		return []string{strconv.FormatBool(v)}
	}
	if v.Kind() != reflect.Slice {
		return []string{v.String()}
	}
	var out []string
	for i := range v.Len() {
		out = append(out, v.Index(i).String())
	}
	return out
}

// parseTime parses a time. An unencoded plus sign arrives as a space.
func parseTime(s string) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339Nano, strings.ReplaceAll(s, " ", "+")); err == nil {
		return t, nil
	}
	return time.Parse(time.DateOnly, s)
}

// readQuery validates the query against the fields. It rejects unknown parameters, because a misspelt filter would
// select everything. A missing or empty parameter has no values, or its default if it is a number. The error is an
// INVALID_PARAMETER problem.
func (in *inputSpec) readQuery(raw string) (url.Values, error) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return nil, problem.New(problem.InvalidRequest, "The query of the URL cannot be read: "+err.Error(),
			"Percent-encode the values.")
	}
	if err := rejectUnknownParams(in.fieldNames(inQuery), values); err != nil {
		return nil, err
	}
	q := url.Values{}
	for _, f := range in.fieldsIn(inQuery) {
		given, err := f.readValues(values[f.name])
		if err != nil {
			return nil, err
		}
		switch {
		case len(given) > 0:
			q[f.name] = given
		case f.defaultValue != 0:
			q[f.name] = []string{strconv.Itoa(f.defaultValue)}
		}
	}
	return q, nil
}

func rejectUnknownParams(known []string, values url.Values) error {
	for name := range values {
		if slices.Contains(known, name) {
			continue
		}
		p := problem.Newf(problem.InvalidParameter, "This route has no parameter '%s'.", name).
			With("parameter", name).With("value", values.Get(name)).With("allowed", emptyIfNil(known))
		if near := search.ClosestName(name, known); near != "" {
			return p.WithHint("Did you mean " + near + "?")
		}
		if len(known) == 0 {
			return p.WithHint("This route takes no parameters.")
		}
		return p.WithHint("The parameters are " + strings.Join(known, ", ") + ".")
	}
	return nil
}

// readValues returns the validated values of one parameter.
func (f *inputField) readValues(given []string) ([]string, error) {
	if f.typ.Kind() != reflect.Slice && len(given) > 1 {
		return nil, newInvalidValueError(f.name, strings.Join(given, ", "), "one value")
	}
	if f.split {
		given = strings.Split(strings.Join(given, ","), ",")
	}
	values := slices.DeleteFunc(slices.Clone(given), func(v string) bool { return v == "" })
	if len(values) == 0 && f.required {
		return nil, problem.Newf(problem.InvalidParameter, "The parameter '%s' is required.", f.name).
			WithHint(f.doc).With("parameter", f.name)
	}
	for _, v := range values {
		if err := f.validateValue(v); err != nil {
			return nil, err
		}
	}
	return values, nil
}

func (f *inputField) validateValue(value string) error {
	allowed := f.allowedValues()
	switch {
	case f.typ == reflect.TypeFor[time.Time]():
		if _, err := parseTime(value); err != nil {
			return newInvalidValueError(f.name, value, "a time such as 2026-01-15T10:30:00Z, or a date such as 2026-01-15")
		}
	case f.typ.Kind() == reflect.Int:
		if n, err := strconv.Atoi(value); err != nil || n < f.min || n > f.max {
			return newInvalidValueError(f.name, value, fmt.Sprintf("a whole number from %d to %d", f.min, f.max))
		}
	case allowed != nil && !slices.Contains(allowed, value):
		return newInvalidValueError(f.name, value, allowed...)
	}
	return nil
}
