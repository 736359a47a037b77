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

// Op is one operation. From its declaration follow the route, the right that it
// needs, its part of the document, and the request of a client.
//
// The tags of In say what it reads: path, query, header and json name where a field
// comes from, doc what it means, and enum, words, min, max, default, required and split
// what is allowed.
type Op[In, Out any] struct{ operation }

// operation is all of an operation but its types, which are there once more for each
// piece of code that has them.
type operation struct {
	method, path string // {name} stands for a segment, {name...} for the rest
	id, summary  string
	right        Right
	wait         time.Duration // how long a client waits for an answer; 0 = until there is one
	in, out      reflect.Type
	contentType  string            // of a page
	docs         map[string]string // of parameters, instead of what In says
	leftOut      []string          // parameters that In has
	hasHome      func(*Deps) bool
	do           doer
	check        func(in any, given url.Values) error // nil: nothing is left to check
}

// doer does an operation. It is given a pointer to its In, and returns its Out.
type doer func(d *Deps, ctx context.Context, c ops.Caller, in any) (out any, err error)

// Operation is an Op of any types.
type Operation interface {
	head() *operation
}

// Deps is what the surface needs.
type Deps struct {
	// Homes have the operations as their methods, each of another type.
	Homes  []any
	Refuse func(ctx context.Context, r gate.Refusal) string // puts a refused call on record, and returns its id
	Auth   *auth.Authenticator
	// Profiles has those of the configuration, to which tokens may be bound.
	Profiles auth.Profiles
	Logger   *slog.Logger
	Version  string
	// Instead are operations that stand for those declared with the same id.
	Instead []Operation

	repeats *repeats
}

// declared are all operations, in the order of their declarations.
var declared []Operation

// operations are all that the surface has.
func (d *Deps) operations() []Operation {
	all := slices.Clone(declared)
	for i, o := range all {
		for _, other := range d.Instead {
			if other.head().id == o.head().id {
				all[i] = other
			}
		}
	}
	return all
}

// input follows from the tags of In.
func (o *operation) input() *input {
	in := inputOf(o.in, o.path)
	in.fields = slices.DeleteFunc(in.fields, func(f field) bool { return slices.Contains(o.leftOut, f.name) })
	for i, f := range in.fields {
		if doc := o.docs[f.name]; doc != "" {
			in.fields[i].doc = doc
		}
	}
	if own, ok := reflect.New(o.in).Interface().(ownBody); ok {
		in.fields = slices.DeleteFunc(in.fields, func(f field) bool { return f.place == inBody })
		described := input{fields: fieldsOf(reflect.TypeOf(own.members()), "")}
		in.fields = append(in.fields, described.at(inBody)...)
	}
	return in
}

// declare declares an operation that one of the homes does, by a method of its own
// or by a function of it.
func declare[Home, In, Out any](route, id string, right Right, summary string,
	do func(Home, context.Context, ops.Caller, In) (Out, error)) *Op[In, Out] {
	o := &Op[In, Out]{declaration(route, id, right, summary, reflect.TypeFor[In](), reflect.TypeFor[Out]())}
	home := func(d *Deps) int {
		return slices.IndexFunc(d.Homes, func(one any) bool { _, is := one.(Home); return is })
	}
	o.hasHome = func(d *Deps) bool { return home(d) >= 0 }
	o.do = func(d *Deps, ctx context.Context, c ops.Caller, in any) (any, error) {
		return do(d.Homes[home(d)].(Home), ctx, c, *in.(*In)) // that it is there, check has seen to
	}
	declared = append(declared, o)
	return o
}

func declaration(route, id string, right Right, summary string, in, out reflect.Type) operation {
	method, path, _ := strings.Cut(route, " ")
	return operation{
		method: method, path: path, id: id, summary: summary, right: right,
		wait: patience, in: in, out: out, contentType: "application/json",
	}
}

// declarePage declares an operation whose answer is not JSON of ours.
func declarePage(route, id string, right Right, summary, contentType string, do func(*Deps) ([]byte, error)) *Op[ops.Nothing, page] {
	return declareHere(route, id, right, summary,
		func(d *Deps, _ context.Context, _ ops.Caller, _ ops.Nothing) (page, error) { return do(d) }).as(contentType)
}

// declareHere declares an operation that the surface does by itself.
func declareHere[In, Out any](route, id string, right Right, summary string,
	do func(*Deps, context.Context, ops.Caller, In) (Out, error)) *Op[In, Out] {
	o := declare[any, In, Out](route, id, right, summary, nil)
	o.hasHome = func(*Deps) bool { return true }
	o.do = func(d *Deps, ctx context.Context, c ops.Caller, in any) (any, error) {
		return do(d, ctx, c, *in.(*In))
	}
	return o
}

// page is an answer that is not JSON of ours.
type page []byte

// Words are what a parameter may be.
func (o *Op[In, Out]) Words(parameter string) []string {
	for _, f := range o.input().at(inQuery) {
		if f.name == parameter {
			return f.allowed()
		}
	}
	return nil
}

// within says how long a client waits for an answer.
func (o *Op[In, Out]) within(wait time.Duration) *Op[In, Out] {
	o.wait = wait
	return o
}

// as says what the answer is, where it is not JSON of ours: a ops.Stream.
func (o *Op[In, Out]) as(contentType string) *Op[In, Out] {
	o.contentType = contentType
	return o
}

// describe says what a parameter means in this operation.
func (o *Op[In, Out]) describe(name, doc string) *Op[In, Out] {
	if o.docs == nil {
		o.docs = map[string]string{}
	}
	o.docs[name] = doc
	return o
}

// without leaves out parameters that In has.
func (o *Op[In, Out]) without(names ...string) *Op[In, Out] {
	o.leftOut = names
	return o
}

// checked has what was read completed, or refused, before anything is done. The
// values are the query's, as they were given.
func (o *Op[In, Out]) checked(check func(*In, url.Values) error) *Op[In, Out] {
	o.check = func(in any, given url.Values) error { return check(in.(*In), given) }
	return o
}

// As is the operation, done by something else: see Deps.Instead.
func (o *Op[In, Out]) As(do func(context.Context, ops.Caller, In) (Out, error)) Operation {
	other := *o
	other.hasHome = func(*Deps) bool { return true }
	other.do = func(_ *Deps, ctx context.Context, c ops.Caller, in any) (any, error) {
		return do(ctx, c, *in.(*In))
	}
	return &other
}

// Call has the daemon of a client do the operation.
func (o *Op[In, Out]) Call(ctx context.Context, c *Client, in In) (out Out, err error) {
	return out, c.do(ctx, o.wait, o.method, o.input().request(o.path, in), &out)
}

// Pour has the daemon of a client do the operation, and writes its answer as it comes.
func (o *Op[In, Out]) Pour(ctx context.Context, c *Client, in In, w io.Writer) error {
	return c.pour(ctx, o.method, o.input().request(o.path, in), w)
}

func (o *Op[In, Out]) head() *operation { return &o.operation }

// doOnce does the operation, but not once more where the same one was done with the
// same key.
func (o *operation) doOnce(d *Deps, ctx context.Context, c ops.Caller, in any) (any, error) {
	call, ok := in.(interface {
		repeats() (key string, body [sha256.Size]byte)
	})
	if !ok {
		return o.do(d, ctx, c, in)
	}
	key, body := call.repeats()
	if key == "" {
		return o.do(d, ctx, c, in)
	}
	return d.repeats.call(ctx, repeatKey{c.Actor.Principal(), c.Scope().Key(), key}, body, func(ctx context.Context) (any, error) { return o.do(d, ctx, c, in) })
}

// answer reads the input of a request and does the operation.
func (o *operation) answer(d *Deps, plan *input, r *http.Request, c ops.Caller) (any, error) {
	into := reflect.New(o.in)
	in := into.Interface()
	if whole, ok := in.(interface{ of(*http.Request) }); ok {
		whole.of(r)
	}
	given, err := plan.read(r, into.Elem())
	if err == nil && o.check != nil {
		err = o.check(in, given)
	}
	if err != nil {
		if call, ok := in.(interface {
			asked() (string, policy.Variant, int)
		}); ok {
			name, variant, size := call.asked()
			refusal := gate.Refusal{Caller: c, Tool: name, Variant: variant, RequestBytes: size, Problem: problem.From(err)}
			err = &recorded{err, d.Refuse(r.Context(), refusal)}
		}
		return nil, err
	}
	done, err := o.doOnce(d, r.Context(), c, in)
	if call, ok := done.(interface{ recordID() string }); ok && err != nil {
		err = &recorded{err, call.recordID()}
	}
	out := reflect.New(o.out).Elem() // a copy: a repeated call has the same answer
	if done != nil {
		out.Set(reflect.ValueOf(done))
	}
	fillLists(out)
	return out.Interface(), err
}
