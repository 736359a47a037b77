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

// maxBody bounds the body of a request, in bytes. The bound on arguments is the
// gateway's and lower.
const maxBody = 5 << 20

// BodyTime is how long the body of a request may take to arrive. Whoever serves
// the routes sees to it: a read beyond it is os.ErrDeadlineExceeded.
const BodyTime = 10 * time.Second

// ownBody is an input that reads its body by itself.
type ownBody interface {
	members() any // a struct whose tags describe the body
	readMembers(in *input, body []byte) error
}

// members reads a body strictly and passes its members to set, which returns what
// is wrong with a value.
func (in *input) members(body []byte, set func(name string, value []byte) error) error {
	if err := wirejson.Check(body, wirejson.Limits{Bytes: maxBody}); err != nil {
		return problem.New(problem.InvalidRequest, "The body of the request: "+err.Error(),
			"Send one JSON object without duplicate members.").Because(err)
	}
	if wirejson.Kind(body) != '{' {
		return problem.New(problem.InvalidRequest, "The body of the request is not a JSON object.", "Send "+in.sample()+".")
	}
	return wirejson.Members(body, func(name, value []byte) error { return set(string(name), value) })
}

// readBody reads the body of a request into an input. A value of a wrong type
// is not repeated: it may be a secret.
func (in *input) readBody(r *http.Request, into reflect.Value) error {
	body, err := readBody(r)
	if err != nil {
		return err
	}
	if own, ok := into.Addr().Interface().(ownBody); ok {
		return own.readMembers(in, body)
	}
	return in.readMembers(body, into)
}

// readMembers reads an object into an input, or into one of a list in it.
func (in *input) readMembers(body []byte, into reflect.Value) error {
	given := map[string]bool{}
	if err := in.members(body, func(name string, value []byte) error {
		f, err := in.member(name)
		switch {
		case err != nil:
			return err
		case wirejson.Kind(value) == 'n':
			return nil // as good as nothing
		case holdsNull(value):
			return f.wrongType()
		}
		given[name] = true
		return f.take(value, into.FieldByIndex(f.index))
	}); err != nil {
		return err
	}
	for _, f := range in.at(inBody) {
		if f.required && !given[f.name] {
			return in.lacks(f.name)
		}
	}
	return nil
}

// take reads a value of a body. The objects of a list are read as strictly as the body.
func (f *field) take(value []byte, into reflect.Value) error {
	if f.of.Kind() != reflect.Slice || f.of.Elem().Kind() != reflect.Struct || wirejson.Kind(value) != '[' {
		if json.Unmarshal(value, into.Addr().Interface()) != nil {
			return f.wrongType()
		}
		return nil
	}
	each := inputOf(f.of.Elem(), "")
	into.SetZero()
	return wirejson.Elements(value, func(object []byte) error {
		if wirejson.Kind(object) != '{' {
			return f.wrongType()
		}
		one := reflect.New(f.of.Elem()).Elem()
		if err := each.readMembers(object, one); err != nil {
			return problem.From(err).With("list", f.name).With("index", into.Len())
		}
		into.Set(reflect.Append(into, one))
		return nil
	})
}

// lacks is the refusal of a body without a member.
func (in *input) lacks(name string) error {
	return problem.Newf(problem.InvalidParameter, "The member '%s' is required.", name).WithHint("Send "+in.sample()+".").With("parameter", name)
}

// holdsNull reports whether a list or an object has null for a member, which
// would be taken for an empty text.
func holdsNull(value []byte) bool {
	isNull := func(member []byte) error {
		if wirejson.Kind(member) == 'n' {
			return errNull
		}
		return nil
	}
	switch wirejson.Kind(value) {
	case '[':
		return wirejson.Elements(value, isNull) != nil
	case '{':
		return wirejson.Members(value, func(_, member []byte) error { return isNull(member) }) != nil
	}
	return false
}

var errNull = errors.New("null")

// member is the field of that name, or the refusal of one that the body does not
// have.
func (in *input) member(name string) (field, error) {
	fields, names := in.at(inBody), in.names(inBody)
	if i := slices.Index(names, name); i >= 0 {
		return fields[i], nil
	}
	p := problem.Newf(problem.InvalidRequest, "The body of the request has an unknown member '%s'.", problem.Brief(name)).
		WithHint("The members are " + strings.Join(names, ", ") + ".")
	if near := search.ClosestName(name, names); near != "" {
		p.WithHint("Did you mean " + near + "?")
	}
	return field{}, p
}

// wrongType is the refusal of a value of another type than the document says.
func (f *field) wrongType() error {
	return problem.Newf(problem.InvalidParameter, "Invalid value for %s: its type is wrong", f.name).
		WithHint("It must be of type "+f.schema.kind()+": "+f.doc).
		With("parameter", f.name).With("allowed", f.schema.kind())
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
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, problem.Newf(problem.InvalidRequest, "The body of the request did not arrive within %s.", BodyTime).
			WithHint("Send it without a pause.").With("limit", BodyTime.String()).Because(err)
	case err != nil:
		return nil, problem.New(problem.InvalidRequest, "The body of the request did not arrive completely.", "Send it again.").Because(err)
	}
	return body, nil
}
