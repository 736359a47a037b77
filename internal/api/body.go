package api

import (
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"mcpproxy/internal/problem"
	"mcpproxy/internal/search"
	"mcpproxy/internal/strictjson"
)

// maxBody bounds the body of a request, in bytes. The bound on arguments is the
// gateway's and lower.
const maxBody = 5 << 20

// form is the body of a route, a JSON object: what the document says and what
// is read are the same. The zero value is a route without a body.
type form struct {
	fields  []field
	example string
}

// field is one member of a body.
type field struct {
	name     string
	schema   *huma.Schema
	required bool
}

func (f form) names() []string {
	names := make([]string, len(f.fields))
	for i, one := range f.fields {
		names[i] = one.name
	}
	return names
}

// describe is the body in the document.
func (f form) describe() *huma.RequestBody {
	s := &huma.Schema{Type: huma.TypeObject, AdditionalProperties: false, Properties: map[string]*huma.Schema{}}
	for _, one := range f.fields {
		s.Properties[one.name] = one.schema
		if one.required {
			s.Required = append(s.Required, one.name)
		}
	}
	return &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/json": {Schema: s}}}
}

// read reads a body strictly and gives its members to set, which says what is
// wrong with a value.
func (f form) read(body []byte, set func(name string, value []byte) error) error {
	if err := strictjson.Check(body, strictjson.Limits{Bytes: maxBody}); err != nil {
		return problem.New(problem.InvalidRequest, "The body of the request: "+err.Error(),
			"Send one JSON object without duplicate members.").Because(err)
	}
	if strictjson.Kind(body) != '{' {
		return problem.New(problem.InvalidRequest, "The body of the request is not a JSON object.", "Send "+f.example+".")
	}
	return strictjson.Members(body, func(name, value []byte) error { return set(string(name), value) })
}

// unknown is the refusal of a member that the form does not have.
func (f form) unknown(name string) error {
	p := problem.Newf(problem.InvalidRequest, "The body of the request has an unknown member '%s'.", clip(name)).
		WithHint("The members are " + strings.Join(f.names(), ", ") + ".")
	if near := search.Nearest(name, f.names(), 1); len(near) > 0 {
		p.WithHint("Did you mean " + near[0] + "?")
	}
	return p
}

// wrongType is the refusal of a value of another type than the document says.
func (f form) wrongType(name string) error {
	i := slices.Index(f.names(), name)
	return problem.Newf(problem.InvalidParameter, "Invalid value for %s: its type is wrong", name).
		WithHint("It must be of type "+f.fields[i].schema.Type+": "+f.fields[i].schema.Description).
		With("parameter", name).With("allowed", f.fields[i].schema.Type)
}

// word is the schema of a text, or of one of a few words.
func word(doc string, allowed ...string) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeString, Description: doc}
	for _, a := range allowed {
		s.Enum = append(s.Enum, a)
	}
	return s
}

// readBody reads a JSON body whole. Only application/json is taken: a page of
// another site can send the other types without being asked.
func readBody(r *http.Request) ([]byte, error) {
	if mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || mediaType != "application/json" {
		return nil, problem.New(problem.InvalidRequest, "The Content-Type of the request must be application/json.",
			"Send the header Content-Type: application/json.")
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	switch {
	case len(body) > maxBody:
		return nil, problem.Newf(problem.TooLarge, "The body of the request is larger than %d bytes.", maxBody).
			WithHint("Send less at once.").With("limit", maxBody)
	case err != nil:
		return nil, problem.New(problem.InvalidRequest, "The body of the request did not arrive completely.", "Send it again.").Because(err)
	}
	return body, nil
}

// shown is a JSON value as an error gives it back: a string without its quotes.
func shown(value []byte) string {
	if s, ok := strictjson.String(value); ok {
		return s
	}
	return string(value)
}
