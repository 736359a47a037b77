package api

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"mcpproxy/internal/catalog/search"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
)

// maxBody limits the body of a request, in bytes. The gate's limit on arguments is lower.
const maxBody = 5 << 20

// BodyTime limits how long the body of a request may take to arrive. The HTTP server enforces it: a later read returns
// os.ErrDeadlineExceeded.
const BodyTime = 10 * time.Second

// customBody is implemented by an input that parses the body itself.
type customBody interface {
	bodyType() any // a struct whose tags describe the body
	parseBody(in *inputSpec, body []byte) error
}

// eachMember parses a body strictly and calls set for each member. set returns an error if the value is invalid.
func (in *inputSpec) eachMember(body []byte, set func(name string, value []byte) error) error {
	if err := wirejson.Check(body, wirejson.Limits{Bytes: maxBody}); err != nil {
		return problem.New(problem.InvalidRequest, "The body of the request: "+err.Error(),
			"Send one JSON object without duplicate members.").Because(err)
	}
	if wirejson.Kind(body) != '{' {
		return problem.New(problem.InvalidRequest, "The body of the request is not a JSON object.", "Send "+in.exampleBody()+".")
	}
	return wirejson.EachMember(body, func(name, value []byte) error { return set(string(name), value) })
}

// readBody parses the body of a request into an input. A POST whose members are all optional needs no body. An error
// about a wrong type does not contain the value, because the value may be a secret.
func (in *inputSpec) readBody(r *http.Request, into reflect.Value) error {
	isOptional := !slices.ContainsFunc(in.fieldsIn(inBody), func(f inputField) bool { return f.required })
	if isOptional && r.Method == http.MethodPost && r.ContentLength == 0 && r.Header.Get("Content-Type") == "" {
		return nil
	}
	body, err := readJSONBody(r)
	if err != nil {
		return err
	}
	if own, ok := into.Addr().Interface().(customBody); ok {
		return own.parseBody(in, body)
	}
	return in.decodeObject(body, into)
}

// decodeObject parses an object into an input or into an element of a list.
func (in *inputSpec) decodeObject(body []byte, into reflect.Value) error {
	given := map[string]bool{}
	if err := in.eachMember(body, func(name string, value []byte) error {
		f, err := in.bodyField(name)
		switch {
		case err != nil:
			return err
		case wirejson.Kind(value) == 'n':
			return nil // the same as absent
		case !f.keepsNulls() && hasNullElement(value):
			return f.wrongTypeError()
		}
		given[name] = true
		return f.decodeValue(value, into.FieldByIndex(f.index))
	}); err != nil {
		return err
	}
	for _, f := range in.fieldsIn(inBody) {
		if f.required && !given[f.name] {
			return in.missingMemberError(f.name)
		}
	}
	return nil
}

// keepsNulls reports whether the members of an object may be null. A null member removes the named entry.
func (f *inputField) keepsNulls() bool { return f.typ == reflect.TypeFor[map[string]json.RawMessage]() }

// decodeValue decodes a value of a body. Objects in lists are parsed as strictly as the body.
func (f *inputField) decodeValue(value []byte, into reflect.Value) error {
	if f.keepsNulls() {
		members, err := f.decodeMembers(value)
		into.Set(reflect.ValueOf(members))
		return err
	}
	if f.typ.Kind() != reflect.Slice || f.typ.Elem().Kind() != reflect.Struct || wirejson.Kind(value) != '[' {
		if json.Unmarshal(value, into.Addr().Interface()) != nil {
			return f.wrongTypeError()
		}
		return nil
	}
	each := newInputSpec(f.typ.Elem(), "")
	into.SetZero()
	return wirejson.EachElement(value, func(object []byte) error {
		if wirejson.Kind(object) != '{' {
			return f.wrongTypeError()
		}
		one := reflect.New(f.typ.Elem()).Elem()
		if err := each.decodeObject(object, one); err != nil {
			return problem.From(err).With("list", f.name).With("index", into.Len())
		}
		into.Set(reflect.Append(into, one))
		return nil
	})
}

// decodeMembers returns the members of an object, nil for null.
func (f *inputField) decodeMembers(value []byte) (map[string]json.RawMessage, error) {
	if wirejson.Kind(value) != '{' {
		return nil, f.wrongTypeError()
	}
	members := map[string]json.RawMessage{}
	return members, wirejson.EachMember(value, func(name, value []byte) error {
		if wirejson.Kind(value) == 'n' {
			value = nil
		}
		members[string(name)] = value
		return nil
	})
}

// missingMemberError returns the error for a missing required member.
func (in *inputSpec) missingMemberError(name string) error {
	return problem.Newf(problem.InvalidParameter, "The member '%s' is required.", name).WithHint("Send "+in.exampleBody()+".").With("parameter", name)
}

// hasNullElement reports whether a list or object contains null, which would decode as an empty string.
func hasNullElement(value []byte) bool {
	isNull := func(member []byte) error {
		if wirejson.Kind(member) == 'n' {
			return errNull
		}
		return nil
	}
	switch wirejson.Kind(value) {
	case '[':
		return wirejson.EachElement(value, isNull) != nil
	case '{':
		return wirejson.EachMember(value, func(_, member []byte) error { return isNull(member) }) != nil
	}
	return false
}

var errNull = errors.New("null")

// bodyField returns the field with this name, or an error for an unknown member.
func (in *inputSpec) bodyField(name string) (inputField, error) {
	fields, names := in.fieldsIn(inBody), in.fieldNames(inBody)
	if i := slices.Index(names, name); i >= 0 {
		return fields[i], nil
	}
	p := problem.Newf(problem.InvalidRequest, "The body of the request has an unknown member '%s'.", problem.ClipName(name)).
		WithHint("The members are " + strings.Join(names, ", ") + ".")
	if near := search.ClosestName(name, names); near != "" {
		p.WithHint("Did you mean " + near + "?")
	}
	return inputField{}, p
}

// wrongTypeError returns the error for a value of a wrong type.
func (f *inputField) wrongTypeError() error {
	return problem.Newf(problem.InvalidParameter, "Invalid value for %s: its type is wrong", f.name).
		WithHint("It must be of type "+f.schema.typeName()+": "+f.doc).
		With("parameter", f.name).With("allowed", f.schema.typeName())
}

// readJSONBody reads a JSON body. It requires application/json, because a page of another site can send other types
// without a CORS preflight.
func readJSONBody(r *http.Request) ([]byte, error) {
	if mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || mediaType != "application/json" {
		return nil, problem.New(problem.InvalidRequest, "The Content-Type of the request must be application/json.",
			"Send the header Content-Type: application/json.")
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	switch {
	case len(body) > maxBody:
		return nil, problem.Newf(problem.TooLarge, "The body of the request is larger than %d bytes.", maxBody).
			WithHint("Send a smaller body.").With("limit", maxBody)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, problem.Newf(problem.InvalidRequest, "The body of the request did not arrive within %s.", BodyTime).
			WithHint("Send it without delay.").With("limit", BodyTime.String()).Because(err)
	case err != nil:
		return nil, problem.New(problem.InvalidRequest, "The body of the request did not arrive completely.", "Send it again.").Because(err)
	}
	return body, nil
}
