package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"mcpproxy/internal/activity"
	"mcpproxy/internal/approval"
	"mcpproxy/internal/auth"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gateway"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/scan"
)

// surface is the built routes and their document.
type surface struct {
	mux      *http.ServeMux
	document []byte
}

// newSurface builds the routes. What huma finds wrong with them, it says by a
// panic, which is an error here.
func newSurface(d Deps, table []route) (s *surface, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			s, err = nil, fmt.Errorf("build the routes of the API: %v", cause)
		}
	}()
	s = &surface{mux: http.NewServeMux()}
	api := huma.NewAPI(description(d.Version), adapter{humago.NewAdapter(s.mux, Prefix)})
	for _, r := range table {
		r.bind(api, operation(r))
		if len(r.body.fields) > 0 {
			// Said afterwards: huma would read and judge the body by itself,
			// where the strict parse has to.
			described(api.OpenAPI().Paths[documentPath(r)], r.method).RequestBody = r.body.describe()
		}
	}
	s.mux.HandleFunc("/", s.notFound)
	refineSchemas(api.OpenAPI().Components.Schemas.Map())
	raw, err := json.Marshal(api.OpenAPI())
	if err != nil {
		return nil, fmt.Errorf("encode the OpenAPI document: %w", err)
	}
	s.document, err = indent(raw)
	return s, err
}

// described is the operation of a path in the document.
func described(p *huma.PathItem, method string) *huma.Operation {
	if method == http.MethodPatch {
		return p.Patch
	}
	return p.Post
}

// ServeHTTP answers one request of an actor who is known.
func (s *surface) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// adapter lets a parameter take the rest of the path, which OpenAPI cannot say.
type adapter struct{ huma.Adapter }

func (a adapter) Handle(op *huma.Operation, h func(huma.Context)) {
	c := *op
	if path, ok := op.Metadata["pattern"].(string); ok {
		c.Path = path
	}
	a.Adapter.Handle(&c, h)
}

// documentPath is the path in the document.
func documentPath(r route) string { return strings.ReplaceAll(r.path, "...}", "}") }

// operation is the route in the document, with the checks before its handler.
func operation(r route) huma.Operation {
	op := huma.Operation{
		Method: r.method, Path: documentPath(r), OperationID: r.id,
		Summary: r.summary, Description: "Needs the right to " + r.right.String() + ".",
		Metadata:           map[string]any{"pattern": r.path},
		Extensions:         map[string]any{"x-right": r.right.String()},
		SkipValidateParams: true,
		Middlewares:        huma.Middlewares{check(r)},
	}
	for _, p := range r.params {
		op.Parameters = append(op.Parameters, p.describe())
	}
	return op
}

// check lets a request through to its handler when the actor has the right and
// the parameters are sound.
func check(r route) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		hr, w := humago.Unwrap(ctx)
		actor, _ := hr.Context().Value(actorKey{}).(auth.Actor)
		if !grants(actor, r.right) {
			writeProblem(w, problem.Newf(problem.Forbidden, "This needs the right to %s.", r.right))
			return
		}
		q, err := readQuery(r.params, hr.URL.RawQuery)
		if err != nil {
			writeProblem(w, err)
			return
		}
		next(huma.WithValue(ctx, requestKey{}, &request{http: hr, actor: actor, query: q}))
	}
}

// notFound answers what no route answers: a wrong method, or a wrong path.
func (s *surface) notFound(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, m := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		probe := &http.Request{Method: m, URL: r.URL, Host: r.Host}
		if _, pattern := s.mux.Handler(probe); pattern != "/" {
			allowed = append(allowed, m)
		}
	}
	if len(allowed) > 0 && !slices.Contains(allowed, r.Method) {
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		refused := notAllowed(r.Method, clip(r.URL.Path), allowed)
		refused.Hint += aboutSlashes(r)
		writeRefusal(w, refused)
		return
	}
	writeProblem(w, problem.Newf(problem.NotFound, "There is nothing at %s.", clip(r.URL.Path)).
		WithHint("The routes are described at "+Prefix+"/docs."+aboutSlashes(r)))
}

// aboutSlashes helps who wrote the name of a tool as it is into a path.
func aboutSlashes(r *http.Request) string {
	if r.Method == http.MethodPost && strings.HasPrefix(r.URL.Path, Prefix+"/servers/") && strings.Contains(r.URL.Path, "/tools/") {
		return " The name of a tool is one segment of the path: a slash in it is written %2F."
	}
	return ""
}

// description is the head of the document.
func description(version string) huma.Config {
	schemas := huma.NewMapRegistry("#/components/schemas/", schemaName)
	schemas.RegisterTypeAlias(reflect.TypeFor[huma.ErrorModel](), reflect.TypeFor[problemDocument]())
	schemas.RegisterTypeAlias(reflect.TypeFor[problem.Details](), reflect.TypeFor[map[string]any]())
	c := huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{Title: "MCPProxy", Version: version,
				Description: "Servers, tools, calls and the activity log of one MCPProxy. Every failure is an RFC 9457 problem document with a code."},
			Servers: []*huma.Server{{URL: Prefix}},
			Components: &huma.Components{Schemas: schemas, SecuritySchemes: map[string]*huma.SecurityScheme{
				"key":    {Type: "apiKey", In: "header", Name: "X-API-Key", Description: "The key in the file api_key of the data directory. Over the unix socket none is needed."},
				"bearer": {Type: "http", Scheme: "bearer", Description: "The same key."},
			}},
			Security: []map[string][]string{{"key": {}}, {"bearer": {}}},
		},
		Formats:       map[string]huma.Format{"application/json": huma.DefaultJSONFormat, "json": huma.DefaultJSONFormat},
		DefaultFormat: "application/json",
	}
	c.AllowAdditionalPropertiesByDefault = true
	return c
}

// schemaName names the types whose Go names say too little in the document.
func schemaName(t reflect.Type, hint string) string {
	if t == reflect.TypeFor[problemDocument]() {
		return "Problem"
	}
	return huma.DefaultSchemaNamer(t, hint)
}

// refineSchemas says what Go types cannot: that lists are never null, and the
// words that a text may be.
func refineSchemas(schemas map[string]*huma.Schema) {
	for _, s := range schemas {
		for _, p := range s.Properties {
			if p.Type == huma.TypeArray {
				p.Nullable = false
			}
		}
	}
	statuses, reasons := ToolStatuses()[1:], texts([]approval.Why{approval.New, approval.Changed, approval.Blocked})
	stages := texts([]gateway.ReviewStage{gateway.StageLaunch, gateway.StageDefinitions, gateway.StageApproved})
	verdicts := []string{scan.Clean.String(), scan.Review.String(), scan.Block.String(), scan.Incomplete.String()}
	for name, allowed := range map[string][]string{
		"Record.type": RecordTypes(), "Record.status": RecordStatuses(),
		"Record.source":         texts([]activity.Source{activity.SourceMCP, activity.SourceREST, activity.SourceCLI, activity.SourceUI}),
		"Intent.operation_type": operations(), "Intent.data_sensitivity": Sensitivities(),
		"Metadata.tool_variant": variants(), "ToolView.call_with": variants(), "ToolView.inferred_operation": operations(),
		"ToolView.status": statuses, "ToolDiff.status": statuses, "ReviewedTool.status": statuses,
		"ServerReview.stage": stages, "WaitingServer.stage": stages[:2], "ServerView.stage": stages[:2],
		"WaitingTool.reason": reasons, "ToolDiff.reason": reasons, "ReviewedTool.reason": reasons, "Trust.reason": reasons,
		"WaitingTool.verdict": verdicts, "ToolDiff.verdict": verdicts, "ReviewedTool.verdict": verdicts, "ServerReview.verdict": verdicts,
		"Finding.severity": {scan.SeverityNote.String(), scan.SeverityReview.String(), scan.SeverityBlock.String()},
		"ServerView.trust": texts([]config.Trust{config.TrustManual, config.TrustScan, config.TrustAuto}),
	} {
		schema, property, _ := strings.Cut(name, ".")
		for _, word := range allowed {
			schemas[schema].Properties[property].Enum = append(schemas[schema].Properties[property].Enum, word)
		}
	}
}
