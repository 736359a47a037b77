// Package api is the REST API under /api/v1, its OpenAPI document, and the typed client that the CLI uses. Each
// operation is declared once (operations.go). The route, the required right, the document and the client's request
// follow from the declaration and the tags of its input (op.go).
//
// Files:
//   - operations.go: declares the operations
//   - op.go: an operation and its declaration
//   - api.go: serve a request: check the credentials and the right, write the response, errors and streams
//   - input.go, body.go: parse and validate the input
//   - call.go, idempotency.go: tool calls and changes of settings, and retries with an Idempotency-Key
//   - client.go: the typed client
//   - document.go: the OpenAPI document
//   - signin.go: sessions of the web UI
//   - socket*.go: the local socket
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
	"crypto/rand"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate"
	"mcpproxy/internal/gate/presence"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
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
			problems = append(problems, fmt.Errorf("%s has no function", name))
		}
		if o.method == http.MethodGet && o.right != Look && o.right != Own && o.right != Review && o.right != Open {
			problems = append(problems, fmt.Errorf("%s is a GET, but its right is not one to read", name))
		}
		seen[name], seen[o.id] = true, true
		if o.right == Open && strings.Contains(o.path, "{") {
			problems = append(problems, fmt.Errorf("%s needs no right, but its path has a wildcard", name))
		}
		path := o.path
		for _, f := range o.deriveInputSpec().fieldsIn(inPath) {
			path = pathParamReplacer(f.name).Replace(path)
		}
		if strings.Contains(path, "{") {
			problems = append(problems, fmt.Errorf("%s has a wildcard in its path that is not a field of its input", name))
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
		if wait, ok := problem.From(err).Detail("retry_after").(int); ok {
			w.Header().Set("Retry-After", strconv.Itoa(wait))
		}
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
	if actor.Role == auth.RoleAdmin {
		actor.Kind = auth.Admin
	}
	refusal, refused := errors.AsType[*auth.TokenRefusal](err)
	switch {
	case refused && refusal.Forbidden:
		s.refuseRequest(r.Context(), w, r, actor, problem.New(problem.Forbidden, refusal.Reason+".", "Ask the administrator of MCPProxy for access."))
		return
	case refused: // it has no valid credentials
	case errors.Is(err, auth.ErrProviderAway):
		w.Header().Set("Retry-After", "5")
		writeProblem(w, problem.New(problem.ServerUnavailable, "The OpenID provider does not answer, so no access token is accepted.", "Try again in a moment."))
		return
	case err != nil:
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
		message := "The request has no valid credentials."
		if refused {
			message = refusal.Reason + "."
		}
		if challenge := s.deps.Auth.UserChallenge(r.URL.Path, refusal); challenge != "" {
			w.Header().Set("WWW-Authenticate", challenge)
		}
		s.refuseRequest(ctx, w, r, actor, problem.New(problem.Unauthorized, message,
			"Send the key in the file api_key of the data directory as X-API-Key or as Authorization: Bearer; over the unix socket no key is needed. "+
				"To call tools, a valid agent token is sufficient. "+
				"In the web UI, sign in again."))
		return
	}
	s.mux.ServeHTTP(w, r.WithContext(context.WithValue(ctx, actorKey{}, authenticatedActor{actor, token})))
}

// refuseRequest records and answers a request without access.
func (s *Server) refuseRequest(ctx context.Context, w http.ResponseWriter, r *http.Request, a auth.Actor, p *problem.Problem) {
	s.deps.Refuse(ctx, gate.SurfaceRefusal{Caller: newCaller(r, a), Problem: problem.New(p.Code, p.Message, "")})
	writeProblem(w, p)
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

// requestIDHeader is copied into the record, so that a client can find the record of its request.
const requestIDHeader = "X-Request-Id"

// maxRequestID is the maximum length of a request ID that a client sends.
const maxRequestID = 128

// newCaller returns the caller of a request, as recorded in the activity log. Only an admin can set the source.
func newCaller(r *http.Request, a auth.Actor) ops.Caller {
	c := ops.Caller{Actor: a, Source: activity.SourceREST, RequestID: r.Header.Get(requestIDHeader)}
	c.Origin = auth.ConnectionAddress(r)
	switch said := activity.Source(r.Header.Get(SourceHeader)); said {
	case activity.SourceCLI, activity.SourceUI:
		if a.Kind == auth.Admin {
			c.Source = said
		}
	}
	if c.RequestID == "" || len(c.RequestID) > maxRequestID || !utf8.ValidString(c.RequestID) {
		c.RequestID = rand.Text()
	}
	if a.FromWebUI {
		c.Source = activity.SourceUI // no client name, because the user agent of every browser begins with Mozilla
		return c
	}
	product, _, _ := strings.Cut(r.UserAgent(), " ")
	c.ClientName, c.ClientVersion, _ = strings.Cut(problem.ClipName(product), "/")
	return c
}

// Right is the permission that an operation requires. The zero value is invalid: New rejects an operation without a
// right.
type Right uint8

// The rights that operations require.
const (
	noRight Right = iota
	Look          // read servers, tools, the log and the status
	Call          // call a tool, within the policy
	Own           // read the caller's own records, and answer questions about its own calls
	Review        // read and decide about definitions
	Operate       // restart and log in
	Decide        // enable, add, remove
	Invite        // create a sign-in code for the web UI; not from a page
	Open          // no right, because a sign-in request contains its own proof
)

// String returns the name of the right in the OpenAPI document.
func (r Right) String() string {
	return [...]string{"none", "look", "call", "own", "review", "operate", "decide", "invite", "open"}[r]
}

// requirementText returns a sentence for the OpenAPI document.
func (r Right) requirementText() string {
	if r == Open {
		return "Requires no permission: the code or key in the request identifies the user."
	}
	return "Requires the right to " + r.String() + "."
}

// hasRight reports whether the actor has the right.
func hasRight(a auth.Actor, r Right) bool {
	switch r {
	case noRight:
		return false
	case Open:
		return a.Kind != auth.Nobody
	case Call:
		return a.Kind == auth.Admin || a.Kind == auth.Agent && a.Name != "" // with a token, within its scope
	case Own:
		return a.Kind == auth.Admin || a.Role != auth.NoRole
	case Review:
		return a.Kind == auth.Admin || a.Role >= auth.RoleReviewer
	case Invite:
		return a.Kind == auth.Admin && !a.FromWebUI
	}
	return a.Kind == auth.Admin
}

// stallTimeout limits how long a client may stop reading from a stream.
const stallTimeout = 30 * time.Second

// serveStream sends a response while it is produced. After the first byte, an error can only abort the response.
func serveStream(w http.ResponseWriter, r *http.Request, f ops.Download) {
	w.Header().Set("Content-Type", f.Type)
	if f.Name != "" {
		w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": f.Name}))
	}
	out := &flushingWriter{ResponseWriter: w, control: http.NewResponseController(w)}
	if err := f.Stream(r.Context(), out); err == nil || r.Context().Err() != nil && !errors.Is(context.Cause(r.Context()), auth.ErrSignedOut) {
		return
	} else if !out.begun {
		w.Header().Del("Content-Disposition")
		writeProblem(w, err)
		return
	}
	panic(http.ErrAbortHandler)
}

// flushingWriter flushes each write, and returns an error if the client does not read.
type flushingWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	begun   bool
}

func (s *flushingWriter) Write(p []byte) (int, error) {
	s.begun = true
	_ = s.control.SetWriteDeadline(time.Now().Add(stallTimeout)) // an error means that our own socket has no deadlines
	n, err := s.ResponseWriter.Write(p)
	if err == nil {
		err = s.control.Flush()
	}
	return n, err
}

// problemType is the media type of RFC 9457.
const problemType = "application/problem+json"

// problemDocument is the JSON form of a problem.Problem in a response.
type problemDocument struct {
	Type       string          `json:"type" format:"uri" doc:"The URN of the error: urn:mcpproxy:problem: followed by the code in lower case, with dashes."`
	Title      string          `json:"title" doc:"The title of the error. Each code has one title."`
	Status     int             `json:"status" doc:"The HTTP status."`
	Detail     string          `json:"detail" doc:"The error message."`
	Code       problem.Code    `json:"code" doc:"The error code. Programs should use this field to tell errors apart."`
	Hint       string          `json:"hint,omitempty" doc:"The recommended action. Absent if there is none."`
	Details    problem.Details `json:"details,omitempty" doc:"Structured details of the error, such as parameter, value and allowed."`
	ActivityID string          `json:"activity_id,omitempty" doc:"The id of the activity record of the rejected or failed call. Absent if there is no record."`
}

// newProblemDocument converts an error. It includes the record ID if the failure was recorded.
func newProblemDocument(err error) problemDocument {
	p := problem.From(err)
	d := problemDocument{
		Type:   "urn:mcpproxy:problem:" + strings.ToLower(strings.ReplaceAll(string(p.Code), "_", "-")),
		Title:  codeTitle(p.Code),
		Status: p.Code.HTTPStatus(),
		Detail: p.Message, Code: p.Code, Hint: p.Hint, Details: p.Details,
	}
	var r *recordedError
	if errors.As(err, &r) {
		d.ActivityID = r.activityID
	}
	return d
}

// toProblem converts the document to a problem. It returns nil if d is nil.
func (d *problemDocument) toProblem() error {
	if d == nil {
		return nil
	}
	p := problem.New(d.Code, d.Detail, d.Hint)
	p.Details = d.Details
	if d.ActivityID != "" {
		p.With("activity_id", d.ActivityID)
	}
	return p
}

// recordedError is an error of a call, with the ID of the call's record.
type recordedError struct {
	error
	activityID string
}

// Unwrap returns the problem.
func (r *recordedError) Unwrap() error { return r.error }

// codeTitle returns the title of a code, such as "Server mismatch".
func codeTitle(c problem.Code) string {
	words := strings.ToLower(strings.ReplaceAll(string(c), "_", " "))
	return strings.ToUpper(words[:1]) + words[1:]
}

func writeProblem(w http.ResponseWriter, err error) { newProblemDocument(err).writeTo(w) }

func (d problemDocument) writeTo(w http.ResponseWriter) {
	body, err := wirejson.MarshalWithoutHTMLEscape(d)
	if err != nil {
		// Details that cannot be encoded are a bug, but the other members are still useful.
		d.Details = nil
		body, _ = wirejson.MarshalWithoutHTMLEscape(d)
	}
	if d.Status == http.StatusUnauthorized && w.Header().Get("WWW-Authenticate") == "" {
		w.Header().Set("WWW-Authenticate", `Bearer realm="mcpproxy"`)
	}
	w.Header().Set("Content-Type", problemType)
	w.WriteHeader(d.Status)
	_, _ = w.Write(append(body, '\n'))
}

// WriteForbidden answers a request whose Host or Origin was rejected, with the reason.
func WriteForbidden(w http.ResponseWriter, why string) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	writeProblem(w, problem.Newf(problem.Forbidden, "Forbidden: %s.", why).
		WithHint("Use 127.0.0.1 or localhost, from a program or from MCPProxy's own pages. Other hosts must be in trusted_hosts of the configuration."))
}

// newMethodNotAllowed returns the document for a method that the path does not support. No problem code has this HTTP
// status.
func newMethodNotAllowed(method, path string, allowed []string) problemDocument {
	d := newProblemDocument(problem.Newf(problem.InvalidRequest, "The method %s is not allowed at %s.", method, path).
		WithHint(fmt.Sprintf("Use %s.", joinOr(allowed))).With("allowed", allowed))
	d.Status = http.StatusMethodNotAllowed
	return d
}
