package api

import (
	"encoding/json"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
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
