package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"mcpproxy/internal/auth"
	"mcpproxy/internal/gateway"
	"mcpproxy/internal/problem"
)

func copyAll(w io.Writer, r io.Reader) (int64, error) { return io.Copy(w, r) }

// concrete is a path of a route with values for its wildcards.
func concrete(r route) string {
	path := Prefix + r.path
	for _, w := range [][2]string{{"{name}", "github"}, {"{tool...}", "a/b.c:d"}, {"{tool}", "a%2Fb.c:d"}, {"{id}", "01JG2K4"}} {
		path = strings.ReplaceAll(path, w[0], w[1])
	}
	if r.path == "/tools/search" {
		path += "?q=x"
	}
	return path
}

func TestEveryRouteNamesItsRight(t *testing.T) {
	t.Parallel()
	for _, r := range handler(t, &fake{}).table {
		if r.right == noRight {
			t.Errorf("%s %s names no right", r.method, r.path)
		}
	}
}

func TestBadTablesAreRefused(t *testing.T) {
	t.Parallel()
	fine := route{method: "GET", path: "/x", id: "x", right: Look, bind: handle((&Server{}).servers)}
	for name, change := range map[string]func(r *route){
		"no right":         func(r *route) { r.right = noRight },
		"no handler":       func(r *route) { r.bind = nil },
		"a GET that calls": func(r *route) { r.right = Call },
		"no id":            func(r *route) { r.id = "" },
		"unknown wildcard": func(r *route) { r.params = []param{{name: "name", in: inPath}} },
	} {
		r := fine
		change(&r)
		if err := checkRoutes([]route{r}); err == nil {
			t.Errorf("a route with %s was taken", name)
		}
	}
	if err := checkRoutes([]route{fine, fine}); err == nil {
		t.Error("the same route twice was taken")
	}
	if err := checkRoutes([]route{fine}); err != nil {
		t.Errorf("a sound route was refused: %v", err)
	}
}

func TestPanicOfTheBuilderIsAnError(t *testing.T) {
	t.Parallel()
	bad := route{method: "GET", path: "/x", id: "x", right: Look, bind: func(huma.API, huma.Operation) { panic("no") }}
	if _, err := newSurface(Deps{}, []route{bad}); err == nil || !strings.Contains(err.Error(), "no") {
		t.Errorf("err = %v", err)
	}
}

func TestSurfaceIsBuiltOnDemand(t *testing.T) {
	t.Parallel()
	s := handler(t, &fake{})
	if _, err := s.build(); err != nil {
		t.Fatal(err)
	}
}

func TestDocumentIsCurrent(t *testing.T) {
	t.Parallel()
	s, err := New(Deps{Gateway: &fake{}, Version: "1"})
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Document()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("..", "..", "docs", "reference", "openapi.json")
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what the code says: run go test ./internal/api -update", path)
	}
}

func TestDocumentHoldsEveryRoute(t *testing.T) {
	t.Parallel()
	s := handler(t, &fake{})
	raw, err := s.Document()
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		OpenAPI string
		Paths   map[string]map[string]struct {
			Right     string `json:"x-right"`
			Responses map[string]struct{ Content map[string]any }
		}
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(d.OpenAPI, "3.1") {
		t.Errorf("openapi = %q", d.OpenAPI)
	}
	for _, r := range s.table {
		op, ok := d.Paths[strings.ReplaceAll(r.path, "...}", "}")][strings.ToLower(r.method)]
		if !ok || op.Right != r.right.String() {
			t.Errorf("%s %s is described as %+v", r.method, r.path, op)
		}
		if _, ok := op.Responses["default"].Content[problemType]; !ok {
			t.Errorf("%s %s does not describe its failures", r.method, r.path)
		}
	}
	if strings.Contains(string(raw), "ErrorModel") {
		t.Error("the document speaks of huma's own errors")
	}
}

func TestEveryRouteNeedsTheKey(t *testing.T) {
	t.Parallel()
	s := serve(t, &fake{})
	paths := []string{Prefix + "/nowhere", Prefix + "/status?api_key=" + testKey, Prefix + "/status?apikey=" + testKey}
	for _, r := range handler(t, &fake{}).table {
		paths = append(paths, r.method+" "+concrete(r))
	}
	for _, p := range paths {
		method, path, ok := strings.Cut(p, " ")
		if !ok {
			method, path = http.MethodGet, p
		}
		for name, header := range map[string][]string{
			"no key":     {"X-API-Key", ""},
			"wrong key":  {"X-API-Key", "wrong"},
			"wrong":      {"X-API-Key", "", "Authorization", "Bearer wrong"},
			"basic auth": {"X-API-Key", "", "Authorization", "Basic " + testKey},
		} {
			r := ask(t, s, method, path, "{}", header...)
			if d := document(t, r); r.status != http.StatusUnauthorized || d.Code != problem.Unauthorized {
				t.Errorf("%s with %s: %d %s", p, name, r.status, r.body)
			}
			if r.header.Get("WWW-Authenticate") == "" {
				t.Errorf("%s with %s: no WWW-Authenticate", p, name)
			}
		}
	}
}

func TestKeyIsTakenInBothHeaders(t *testing.T) {
	t.Parallel()
	s := serve(t, &fake{})
	for _, header := range [][]string{{}, {"X-API-Key", "", "Authorization", "Bearer " + testKey}} {
		if r := ask(t, s, "GET", Prefix+"/status", "", header...); r.status != 200 || !strings.Contains(r.body, `"version":"1.2.3"`) {
			t.Errorf("%v: %d %s", header, r.status, r.body)
		}
	}
}

func TestEveryRouteAnswers(t *testing.T) {
	t.Parallel()
	f := &fake{}
	f.answer.Result = json.RawMessage(`{"content":[]}`)
	s := serve(t, f)
	for _, r := range handler(t, f).table {
		body := map[string]string{
			"callTool": `{"tool_variant":"call_tool_read","name":"github:x"}`, "addServer": `{"name":"new","command":"run"}`, "changeServer": `{"enabled":true}`,
			"approveServer": pinned, "approveTool": pinned, "blockTool": pinned,
		}[r.id]
		got := ask(t, s, r.method, concrete(r), body)
		if got.status != http.StatusOK {
			t.Errorf("%s %s: %d %s", r.method, concrete(r), got.status, got.body)
		}
		if got.header.Get("Cache-Control") != "no-store" || got.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s %s: headers %v", r.method, concrete(r), got.header)
		}
	}
}

func TestWrongPathsAndMethods(t *testing.T) {
	t.Parallel()
	s := serve(t, &fake{})
	if r := ask(t, s, "GET", Prefix+"/nowhere", ""); r.status != 404 || document(t, r).Code != problem.NotFound {
		t.Errorf("unknown path: %d %s", r.status, r.body)
	}
	r := ask(t, s, "PUT", Prefix+"/servers/github", "")
	if document(t, r); r.status != 405 || r.header.Get("Allow") != "GET, PATCH, DELETE" {
		t.Errorf("unknown method: %d %v %s", r.status, r.header, r.body)
	}
}

func TestCrossSiteRequestsChangeNothing(t *testing.T) {
	t.Parallel()
	f := &fake{}
	s := serve(t, f)
	body := `{"tool_variant":"call_tool_read","name":"github:x"}`
	for name, header := range map[string][]string{
		"cross-site fetch": {"Sec-Fetch-Site", "cross-site"},
		"same-site fetch":  {"Sec-Fetch-Site", "same-site"},
		"foreign origin":   {"Origin", "https://evil.example"},
		"null origin":      {"Origin", "null"},
		"a form":           {"Content-Type", "application/x-www-form-urlencoded"},
		"plain text":       {"Content-Type", "text/plain"},
		"multipart":        {"Content-Type", "multipart/form-data; boundary=x"},
		"no type":          {"Content-Type", ""},
	} {
		r := ask(t, s, "POST", Prefix+"/tools/call", body, header...)
		if document(t, r); r.status != 403 && r.status != 400 {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
	if r := ask(t, s, "OPTIONS", Prefix+"/tools/call", "", "Origin", "https://evil.example"); r.status < 400 || r.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("preflight: %d %v", r.status, r.header)
	}
	if len(f.calls) != 0 || len(f.callers) != 0 {
		t.Errorf("%d calls came through", len(f.calls))
	}
}

func TestDocsPageAsksForNothingElse(t *testing.T) {
	t.Parallel()
	r := ask(t, serve(t, &fake{}), "GET", Prefix+"/docs", "")
	if r.status != 200 || !strings.HasPrefix(r.header.Get("Content-Type"), "text/html") {
		t.Fatalf("%d %v", r.status, r.header)
	}
	for _, bad := range []string{"<script", "src=", "http://", "https://", "<link", "@import", "url("} {
		if strings.Contains(r.body, bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
	for _, route := range handler(t, &fake{}).table {
		if !strings.Contains(r.body, html.EscapeString(route.summary)) {
			t.Errorf("the page does not tell of %s %s", route.method, route.path)
		}
	}
}

func TestInternalErrorsAreNotShown(t *testing.T) {
	t.Parallel()
	r := ask(t, serve(t, &fake{failure: errors.New("password=hunter2 in table users")}), "GET", Prefix+"/activity", "")
	if d := document(t, r); r.status != 500 || d.Code != problem.Internal || strings.Contains(r.body, "hunter2") {
		t.Errorf("%d %s", r.status, r.body)
	}
}

func TestToolNamesOfAllKinds(t *testing.T) {
	t.Parallel()
	s := serve(t, &fake{})
	for _, name := range []string{"plain", "a/b", "a//b", "..", ".", "a.b:c", "x y", "ünï", "100%", "a/../b", "?q#f", "a+b", "/", "a/"} {
		r := ask(t, s, "GET", Prefix+"/servers/github/tools/"+segment(name), "")
		var v struct{ Tool string }
		if err := json.Unmarshal([]byte(r.body), &v); r.status != 200 || err != nil || v.Tool != name {
			t.Errorf("tool %q: %d %s", name, r.status, r.body)
		}
	}
}

func TestEmptyListsAreLists(t *testing.T) {
	t.Parallel()
	s := serve(t, &fake{})
	for path, want := range map[string]string{
		"/tools?server=empty":       `"tools":[]`,
		"/tools/search?q=nothing":   `"tools":[]`,
		"/activity?session_id=none": `"activities":[]`,
	} {
		if r := ask(t, s, "GET", Prefix+path, ""); !strings.Contains(r.body, want) {
			t.Errorf("%s: %s", path, r.body)
		}
	}
}

func TestTitle(t *testing.T) {
	t.Parallel()
	if got := title(problem.ServerMismatch); got != "Server mismatch" {
		t.Errorf("title = %q", got)
	}
}

func TestRightsAreTheAdmins(t *testing.T) {
	t.Parallel()
	words := []string{Look.String(), Call.String(), Operate.String(), Decide.String()}
	if slices.Contains(words, noRight.String()) {
		t.Error("a right has no name")
	}
}

func BenchmarkBuild(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		s, err := New(Deps{Gateway: &fake{}, Version: "1"})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := s.build(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := New(Deps{Gateway: &fake{}, Version: "1"}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCall(b *testing.B) {
	f := &fake{answer: gateway.CallResult{Result: json.RawMessage(`{"content":[]}`)}}
	s, err := New(Deps{Gateway: f, Auth: auth.New(testKey), Logger: slog.New(slog.DiscardHandler), Version: "1"})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequest("POST", callPath, strings.NewReader(`{"tool_variant":"call_tool_read","name":"github:x","args":{"a":1}}`))
		r.Header.Set("X-API-Key", testKey)
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != 200 {
			b.Fatal(w.Body)
		}
	}
}
