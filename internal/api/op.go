package api

import (
	"context"
	"crypto/sha256"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
)

// Op is one operation. Its declaration determines the route, the required right, the OpenAPI document and the client's
// request.
//
// The tags of In declare its input: path, query, header and json name the source of a field, and doc is its
// description. The tags enum, words, min, max, default, required and split restrict its values.
type Op[In, Out any] struct{ operation }

// operation is an Op without its type parameters, to keep most code free of generics.
type operation struct {
	method, path      string // {name} is one segment, {name...} is the rest of the path
	id, summary       string
	right             Right
	wait              time.Duration // timeout of a client for the response header; 0 means no limit
	in, out           reflect.Type
	contentType       string            // of the response
	docs              map[string]string // overrides descriptions of parameters
	leftOut           []string          // parameters of In that this operation does not have
	hasImplementation func(*Deps) bool
	handler           handlerFunc
	check             func(in any, given url.Values) error // nil if there is nothing more to check
}

// handlerFunc runs an operation. in is a pointer to the In of the operation, and out is its Out.
type handlerFunc func(d *Deps, ctx context.Context, c ops.Caller, in any) (out any, err error)

// Operation is an Op with any type parameters.
type Operation interface {
	base() *operation
}

// Deps are the dependencies of the API.
type Deps struct {
	// Implementations are the values whose methods implement the operations, one per type.
	Implementations []any
	Refuse          func(ctx context.Context, r gate.SurfaceRefusal) string // records a rejected call and returns the record's id
	Auth            *auth.Authenticator
	// Profiles returns the configured profiles. A token may be bound to a profile.
	Profiles auth.ProfileRuleFunc
	// PublicPath returns the path in front of Prefix in requests of browsers to a host. nil means "".
	PublicPath func(host string) string
	Logger     *slog.Logger
	Version    string
	// Replacements replace the declared operations that have the same ID.
	Replacements []Operation

	repeats *idempotentCalls
}

// declared lists all operations in the order of declaration.
var declared []Operation

// operations returns all operations of the API.
func (d *Deps) operations() []Operation {
	all := slices.Clone(declared)
	for i, o := range all {
		for _, other := range d.Replacements {
			if other.base().id == o.base().id {
				all[i] = other
			}
		}
	}
	return all
}

// deriveInputSpec derives the input specification from the tags of In.
func (o *operation) deriveInputSpec() *inputSpec {
	in := newInputSpec(o.in, o.path)
	in.fields = slices.DeleteFunc(in.fields, func(f inputField) bool { return slices.Contains(o.leftOut, f.name) })
	for i, f := range in.fields {
		if doc := o.docs[f.name]; doc != "" {
			in.fields[i].doc = doc
		}
	}
	if own, ok := reflect.New(o.in).Interface().(customBody); ok {
		in.fields = slices.DeleteFunc(in.fields, func(f inputField) bool { return f.location == inBody })
		described := inputSpec{fields: fieldsOf(reflect.TypeOf(own.bodyType()), "")}
		in.fields = append(in.fields, described.fieldsIn(inBody)...)
	}
	return in
}

// declareOperation declares an operation. It is implemented by a method of Home, or by a function whose first parameter
// is a Home.
func declareOperation[Home, In, Out any](route, id string, right Right, summary string,
	do func(Home, context.Context, ops.Caller, In) (Out, error)) *Op[In, Out] {
	o := &Op[In, Out]{newOperation(route, id, right, summary, reflect.TypeFor[In](), reflect.TypeFor[Out]())}
	home := func(d *Deps) int {
		return slices.IndexFunc(d.Implementations, func(one any) bool { _, is := one.(Home); return is })
	}
	o.hasImplementation = func(d *Deps) bool { return home(d) >= 0 }
	o.handler = func(d *Deps, ctx context.Context, c ops.Caller, in any) (any, error) {
		return do(d.Implementations[home(d)].(Home), ctx, c, *in.(*In)) // validateOperations has checked that it exists
	}
	declared = append(declared, o)
	return o
}

func newOperation(route, id string, right Right, summary string, in, out reflect.Type) operation {
	method, path, _ := strings.Cut(route, " ")
	return operation{
		method: method, path: path, id: id, summary: summary, right: right,
		wait: responseTimeout, in: in, out: out, contentType: "application/json",
	}
}

// declarePage declares an operation that returns a document, not a JSON value.
func declarePage(route, id string, right Right, summary, contentType string, do func(*Deps) ([]byte, error)) *Op[ops.Nothing, rawBody] {
	return declareBuiltin(route, id, right, summary,
		func(d *Deps, _ context.Context, _ ops.Caller, _ ops.Nothing) (rawBody, error) { return do(d) }).withContentType(contentType)
}

// declareBuiltin declares an operation that package api implements itself.
func declareBuiltin[In, Out any](route, id string, right Right, summary string,
	do func(*Deps, context.Context, ops.Caller, In) (Out, error)) *Op[In, Out] {
	o := declareOperation[any, In, Out](route, id, right, summary, nil)
	o.hasImplementation = func(*Deps) bool { return true }
	o.handler = func(d *Deps, ctx context.Context, c ops.Caller, in any) (any, error) {
		return do(d, ctx, c, *in.(*In))
	}
	return o
}

// rawBody is a response body that is written as is.
type rawBody []byte

// AllowedValues returns the allowed values of a parameter.
func (o *Op[In, Out]) AllowedValues(parameter string) []string {
	for _, f := range o.deriveInputSpec().fieldsIn(inQuery) {
		if f.name == parameter {
			return f.allowedValues()
		}
	}
	return nil
}

// withTimeout sets how long a client waits for the response header.
func (o *Op[In, Out]) withTimeout(wait time.Duration) *Op[In, Out] {
	o.wait = wait
	return o
}

// withContentType sets the content type of a response that is not JSON, such as an ops.StreamFunc.
func (o *Op[In, Out]) withContentType(contentType string) *Op[In, Out] {
	o.contentType = contentType
	return o
}

// describeParam overrides the description of a parameter.
func (o *Op[In, Out]) describeParam(name, doc string) *Op[In, Out] {
	if o.docs == nil {
		o.docs = map[string]string{}
	}
	o.docs[name] = doc
	return o
}

// omitParams removes parameters of In from this operation.
func (o *Op[In, Out]) omitParams(names ...string) *Op[In, Out] {
	o.leftOut = names
	return o
}

// withValidation adds a function that completes or rejects the input. Its second argument contains the query values.
func (o *Op[In, Out]) withValidation(check func(*In, url.Values) error) *Op[In, Out] {
	o.check = func(in any, given url.Values) error { return check(in.(*In), given) }
	return o
}

// WithHandler returns the operation with another implementation: see Deps.Replacements.
func (o *Op[In, Out]) WithHandler(do func(context.Context, ops.Caller, In) (Out, error)) Operation {
	other := *o
	other.hasImplementation = func(*Deps) bool { return true }
	other.handler = func(_ *Deps, ctx context.Context, c ops.Caller, in any) (any, error) {
		return do(ctx, c, *in.(*In))
	}
	return &other
}

// Call sends the operation to the daemon.
func (o *Op[In, Out]) Call(ctx context.Context, c *Client, in In) (out Out, err error) {
	return out, c.sendSignedIfRequired(ctx, o.wait, o.method, o.deriveInputSpec().toClientRequest(o.path, in), &out)
}

// Stream sends the operation to the daemon and copies the response to w.
func (o *Op[In, Out]) Stream(ctx context.Context, c *Client, in In, w io.Writer) error {
	return c.streamTo(ctx, o.method, o.deriveInputSpec().toClientRequest(o.path, in), w)
}

func (o *Op[In, Out]) base() *operation { return &o.operation }

// runOnce runs the operation, or returns the stored answer of the same call with the same Idempotency-Key.
func (o *operation) runOnce(d *Deps, ctx context.Context, c ops.Caller, in any) (any, error) {
	call, ok := in.(interface {
		idempotencyKeyAndHash() (key string, body [sha256.Size]byte)
	})
	if !ok {
		return o.handler(d, ctx, c, in)
	}
	key, body := call.idempotencyKeyAndHash()
	if key == "" {
		return o.handler(d, ctx, c, in)
	}
	return d.repeats.callOnce(ctx, idempotencyKey{c.Actor.Principal(), c.Scope().Key(), key}, body, func(ctx context.Context) (any, error) { return o.handler(d, ctx, c, in) })
}

// answerRequest reads the input of a request and runs the operation.
func (o *operation) answerRequest(d *Deps, plan *inputSpec, r *http.Request, c ops.Caller) (any, error) {
	into := reflect.New(o.in)
	in := into.Interface()
	if whole, ok := in.(interface{ setHTTPRequest(*http.Request) }); ok {
		whole.setHTTPRequest(r)
	}
	given, err := plan.readRequest(r, into.Elem())
	if err == nil && o.check != nil {
		err = o.check(in, given)
	}
	if err != nil {
		if call, ok := in.(interface {
			callSummary() (string, policy.CallToolVariant, int)
		}); ok {
			name, variant, size := call.callSummary()
			refusal := gate.SurfaceRefusal{Caller: c, Tool: name, CallTool: variant, RequestBytes: size, Problem: problem.From(err)}
			err = &recordedError{err, d.Refuse(r.Context(), refusal)}
		}
		return nil, err
	}
	done, err := o.runOnce(d, r.Context(), c, in)
	if call, ok := done.(interface{ recordID() string }); ok && err != nil {
		err = &recordedError{err, call.recordID()}
	}
	out := reflect.New(o.out).Elem() // a copy, because repeated calls share the stored answer
	if done != nil {
		out.Set(reflect.ValueOf(done))
	}
	replaceNilLists(out)
	return out.Interface(), err
}
