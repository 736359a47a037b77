package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"mcpproxy/internal/auth"
)

// Right is what a route lets its caller do. The zero value is none: a surface
// with a route that names no right is not made.
type Right uint8

// The rights.
const (
	noRight Right = iota
	Look          // see servers, tools, the log and the status
	Call          // call a tool, within the policy
	Operate       // change what runs
	Decide        // say what may run: approve, block, switch, add, remove

)

// String is the name in the document.
func (r Right) String() string {
	switch r {
	case Look:
		return "look"
	case Call:
		return "call"
	case Operate:
		return "operate"
	case Decide:
		return "decide"
	}
	return "none"
}

// grants says whether the actor has the right.
func grants(a auth.Actor, r Right) bool {
	return a.Kind == auth.Admin && r != noRight
}

// route is one line of the table. It is complete: the document and the handler
// follow from it.
type route struct {
	method  string
	path    string // {name} for a segment, {name...} for the rest
	id      string
	summary string
	right   Right
	params  []param
	body    form
	bind    func(huma.API, huma.Operation)
}

// checkRoutes finds what would make the surface unsafe or impossible to build.
func checkRoutes(table []route) error {
	var problems []error
	seen := map[string]bool{}
	for _, r := range table {
		name := r.method + " " + r.path
		if r.right == noRight {
			problems = append(problems, fmt.Errorf("route %s names no right", name))
		}
		if r.bind == nil {
			problems = append(problems, fmt.Errorf("route %s has no handler", name))
		}
		if seen[name] || seen[r.id] || r.id == "" {
			problems = append(problems, fmt.Errorf("route %s or its id %q is not unique", name, r.id))
		}
		if r.method == http.MethodGet && r.right != Look {
			problems = append(problems, fmt.Errorf("route %s is a GET that does more than look", name))
		}
		seen[name], seen[r.id] = true, true
		problems = append(problems, checkPath(r))
	}
	return errors.Join(problems...)
}

// checkPath holds the wildcards of the path against the declared parameters.
func checkPath(r route) error {
	for _, p := range r.params {
		if p.in == inPath && !strings.Contains(r.path, "{"+p.name+"}") && !strings.Contains(r.path, "{"+p.name+"...}") {
			return fmt.Errorf("route %s %s has no {%s}", r.method, r.path, p.name)
		}
	}
	return nil
}

// request is what a handler gets: the parameters are checked.
type request struct {
	http  *http.Request
	actor auth.Actor
	query query
}

func (r *request) path(name string) string { return r.http.PathValue(name) }

type requestKey struct{}

// answer is the form in which huma wants a body.
type answer[T any] struct{ Body T }

// handle makes a handler of a function, with its answer in the document.
func handle[T any](f func(ctx context.Context, r *request) (T, error)) func(huma.API, huma.Operation) {
	return func(api huma.API, op huma.Operation) {
		huma.Register(api, op, func(ctx context.Context, _ *struct{}) (*answer[T], error) {
			r, _ := ctx.Value(requestKey{}).(*request)
			if r == nil {
				return nil, refuse(errors.New("the request went past its checks"))
			}
			body, err := f(ctx, r)
			if err != nil {
				return nil, refuse(err)
			}
			return &answer[T]{body}, nil
		})
	}
}

// page is an answer that is not JSON of ours.
type page struct {
	ContentType string `header:"Content-Type"`
	Body        []byte
}

// handlePage is handle for an answer of another type.
func handlePage(contentType string, f func() ([]byte, error)) func(huma.API, huma.Operation) {
	return func(api huma.API, op huma.Operation) {
		op.Responses = map[string]*huma.Response{"200": {
			Description: http.StatusText(http.StatusOK),
			Content:     map[string]*huma.MediaType{contentType: {}},
		}}
		huma.Register(api, op, func(context.Context, *struct{}) (*page, error) {
			body, err := f()
			if err != nil {
				return nil, refuse(err)
			}
			return &page{contentType, body}, nil
		})
	}
}
