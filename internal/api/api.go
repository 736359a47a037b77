// Package api is the REST API under /api/v1, its OpenAPI document, and the typed client that the CLI uses. Each
// operation is declared once (operations.go). The route, the required right, the document and the client's request
// follow from the declaration and the tags of its input (op.go).
//
// Files:
//   - operations.go, access.go, approvals.go, settings.go, …: declare the operations on one kind of object
//   - op.go, right.go: an operation, its declaration and the right it requires
//   - api.go, caller.go: serve a request: check the credentials and the right, write the response
//   - input.go, field.go, query.go, body.go: parse and validate the input
//   - call.go, idempotency.go: tool calls, and retries with an Idempotency-Key
//   - client.go: the typed client
//   - document.go, schema.go, vocabulary.go: the OpenAPI document
//   - signin.go: sessions of the web UI
//   - socket*.go: the local socket
//   - problem.go, stream.go: write errors and streams
//
// Guarantees:
//   - Every operation names the right that it requires.
//   - Every failure is an RFC 9457 problem document with a code of package problem.
//   - An invalid value is rejected with its parameter and the allowed values.
//   - The gate receives the arguments of a call unchanged, after the strict parser has accepted them.
//
// Package api makes no decisions: package gate decides about calls, and package ops implements the operations.
package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate"
	"mcpproxy/internal/gate/presence"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
)

// Server serves all paths under Prefix.
type Server struct {
	deps  Deps
	mux   *http.ServeMux
	open  map[string]bool // the operations that need no right, by method and path
	guard *http.CrossOriginProtection
}

// New validates the operations and returns the handler.
func New(d Deps) (*Server, error) {
	d.repeats = &idempotentCalls{}
	s := &Server{deps: d, mux: http.NewServeMux(), open: map[string]bool{}, guard: http.NewCrossOriginProtection()}
	if err := validateOperations(&d, d.operations()); err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	for _, o := range d.operations() {
		head, plan := o.base(), o.base().deriveInputSpec()
		s.open[head.method+" "+Prefix+head.path] = head.right == Open
		s.mux.HandleFunc(head.method+" "+Prefix+head.path, func(w http.ResponseWriter, r *http.Request) { s.serveOperation(o, plan, w, r) })
	}
	s.mux.HandleFunc("/", s.serveNotFound)
	return s, nil
}

// validateOperations returns an error for operations that are unsafe or incomplete.
func validateOperations(d *Deps, all []Operation) error {
	var problems []error
	seen := map[string]bool{}
	for _, one := range all {
		o := one.base()
		name := o.method + " " + o.path
		if o.right == noRight {
			problems = append(problems, fmt.Errorf("%s names no right", name))
		}
		if seen[name] || seen[o.id] || o.id == "" {
			problems = append(problems, fmt.Errorf("%s or its id %q is not unique", name, o.id))
		}
		if o.hasImplementation != nil && !o.hasImplementation(d) {
			problems = append(problems, fmt.Errorf("%s is not done by anyone", name))
		}
		if o.method == http.MethodGet && o.right != Look && o.right != Open {
			problems = append(problems, fmt.Errorf("%s is a GET that does more than look", name))
		}
		seen[name], seen[o.id] = true, true
		if o.right == Open && strings.Contains(o.path, "{") {
			problems = append(problems, fmt.Errorf("%s needs no right, for whatever is in its path", name))
		}
		path := o.path
		for _, f := range o.deriveInputSpec().fieldsIn(inPath) {
			path = pathParamReplacer(f.name).Replace(path)
		}
		if strings.Contains(path, "{") {
			problems = append(problems, fmt.Errorf("%s has a wildcard that nothing reads", name))
		}
	}
	return errors.Join(problems...)
}

// serveOperation runs an operation if the actor has the required right.
func (s *Server) serveOperation(o Operation, plan *inputSpec, w http.ResponseWriter, r *http.Request) {
	who, _ := r.Context().Value(actorKey{}).(authenticatedActor)
	if right := o.base().right; !hasRight(who.Actor, right) {
		writeProblem(w, problem.Newf(problem.Forbidden, "This request requires the right to %s.", right))
		return
	}
	from := newCaller(r, who.Actor)
	from.Bounds = auth.NewCallerBounds(who.token, "", s.deps.Profiles)
	r = r.WithContext(presence.WithProof(r.Context(), &presence.Proof{For: r.Method + " " + r.URL.RequestURI(), Text: r.Header.Get(presence.Header)}))
	answer, err := o.base().answerRequest(&s.deps, plan, r, from)
	if stream, ok := answer.(ops.StreamFunc); ok && err == nil {
		serveStream(w, r, ops.Download{Type: o.base().contentType, Stream: stream})
		return
	}
	if file, ok := answer.(ops.Download); ok && err == nil {
		serveStream(w, r, file)
		return
	}
	body, isPage := answer.(rawBody)
	if err == nil && !isPage {
		body, err = wirejson.MarshalWithoutHTMLEscape(answer)
		body = append(body, '\n')
	}
	if err != nil {
		writeProblem(w, err)
		return
	}
	if with, ok := answer.(interface{ cookies() []*http.Cookie }); ok {
		for _, c := range with.cookies() {
			http.SetCookie(w, c)
		}
	}
	w.Header().Set("Content-Type", o.base().contentType)
	_, _ = w.Write(body)
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	defer s.recoverPanic(w, r)

	if err := s.guard.Check(r); err != nil {
		writeProblem(w, problem.New(problem.Forbidden, "The request comes from another site.",
			"MCPProxy accepts requests that change something only from programs and from its own pages.").Because(err))
		return
	}
	open := s.open[r.Method+" "+r.URL.Path]
	actor, token, err := s.deps.Auth.IdentifyRequest(r)
	if err != nil {
		writeProblem(w, problem.New(problem.ServerUnavailable, "The agent tokens cannot be read yet, so no token is accepted.", "Try again in a moment."))
		return
	}
	ctx, done := r.Context(), func() {}
	if auth.IsFromWebUIPage(r) && actor.Kind != auth.Nobody && token == nil && !open { // a sign-in may still send the cookie of an expired session
		if why := auth.ForeignPageRefusal(r); why != "" {
			writeProblem(w, foreignPageError(why))
			return
		}
		actor, ctx, done = s.deps.Auth.BindRequestToWebUISession(r)
	}
	defer done()
	if actor.Kind == auth.Nobody || actor.Kind != auth.Admin && token == nil && !open {
		const message = "The request has no valid credentials."
		s.deps.Refuse(ctx, gate.SurfaceRefusal{Caller: newCaller(r, actor), Problem: problem.New(problem.Unauthorized, message, "")})
		writeProblem(w, problem.New(problem.Unauthorized, message,
			"Send the key in the file api_key of the data directory as X-API-Key or as Authorization: Bearer; over the unix socket no key is needed. "+
				"To call tools, a valid agent token is sufficient. "+
				"In the web UI, sign in again."))
		return
	}
	s.mux.ServeHTTP(w, r.WithContext(context.WithValue(ctx, actorKey{}, authenticatedActor{actor, token})))
}

// recoverPanic answers a request whose handler panicked, unless a response has begun.
func (s *Server) recoverPanic(w http.ResponseWriter, r *http.Request) {
	cause := recover()
	if cause == nil {
		return
	}
	if cause == http.ErrAbortHandler {
		panic(cause)
	}
	if r.Context().Err() != nil {
		return // the client disconnected during the answer
	}
	s.deps.Logger.Error("a request to the API ended in a panic", "method", r.Method, "cause", fmt.Sprint(cause))
	writeProblem(w, problem.From(fmt.Errorf("panic: %v", cause)))
}

// serveNotFound answers a request without a route: a wrong method or path.
func (s *Server) serveNotFound(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, m := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		probe := &http.Request{Method: m, URL: r.URL, Host: r.Host}
		if _, pattern := s.mux.Handler(probe); pattern != "/" {
			allowed = append(allowed, m)
		}
	}
	if len(allowed) > 0 && !slices.Contains(allowed, r.Method) {
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		refused := newMethodNotAllowed(r.Method, problem.ClipName(r.URL.Path), allowed)
		refused.Hint += escapedSlashHint(r)
		refused.writeTo(w)
		return
	}
	writeProblem(w, problem.Newf(problem.NotFound, "The path %s does not exist.", problem.ClipName(r.URL.Path)).
		WithHint("The routes are described at "+Prefix+"/docs."+escapedSlashHint(r)))
}

// escapedSlashHint returns a hint for a client that did not escape the slash in a tool name.
func escapedSlashHint(r *http.Request) string {
	if r.Method == http.MethodPost && strings.HasPrefix(r.URL.Path, Prefix+"/servers/") && strings.Contains(r.URL.Path, "/tools/") {
		return " The name of a tool is one path segment. Write a slash in it as %2F."
	}
	return ""
}

type actorKey struct{}

// authenticatedActor is the actor of a request and its token, if it has one.
type authenticatedActor struct {
	auth.Actor
	token *auth.LoadedToken
}
