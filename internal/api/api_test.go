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
	"reflect"
	"slices"
	"strings"
	"testing"

	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate"
	"mcpproxy/internal/problem"
)

func copyAll(w io.Writer, r io.Reader) (int64, error) { return io.Copy(w, r) }

// concrete returns the path of an operation with values for its wildcards.
func concrete(o *operation) string {
	path := Prefix + o.path
	for _, w := range [][2]string{{"{name}", "github"}, {"{tool...}", "a/b.c:d"}, {"{tool}", "a%2Fb.c:d"}, {"{id}", "01JG2K4"}} {
		path = strings.ReplaceAll(path, w[0], w[1])
	}
	for _, f := range o.deriveInputSpec().fieldsIn(inQuery) {
		if f.required {
			path += "?" + f.name + "=x"
		}
	}
	return path
}

// validBody returns a valid body of an operation.
func validBody(o *operation) string {
	special := map[string]string{
		"callTool": `{"tool_variant":"call_tool_read","name":"github:x"}`, "changeServer": `{"enabled":true}`, "changeTool": `{"alias":"x"}`, "importServers": `{"ids":["x"]}`, "addServers": `{"servers":[{"name":"x","command":"y"}]}`, "approveTools": `{"tools":[{"name":"github:x","fingerprint":"f"}]}`,
		"redactActivity": `{"fields":["arguments"]}`, "changeConfig": `{"set":{"tools_limit":null}}`,
	}
	if body, ok := special[o.id]; ok {
		return body
	}
	members := map[string]string{}
	for _, f := range o.deriveInputSpec().fieldsIn(inBody) {
		if f.required {
			members[f.name] = seenPrint
		}
	}
	body, _ := json.Marshal(members)
	return string(body)
}

func TestEveryOperationNamesItsRight(t *testing.T) {
	t.Parallel()
	for _, one := range declared {
		if o := one.base(); o.right == noRight {
			t.Errorf("%s %s names no right", o.method, o.path)
		}
	}
}

func TestBadOperationsAreRefused(t *testing.T) {
	t.Parallel()
	fine := *GetServer
	for name, change := range map[string]func(o *operation){
		"no right":         func(o *operation) { o.right = noRight },
		"a GET that calls": func(o *operation) { o.right = Call },
		"no id":            func(o *operation) { o.id = "" },
		"no home":          func(o *operation) { o.hasImplementation = func(*Deps) bool { return false } },
		"open wildcards":   func(o *operation) { o.right = Open },
		"unknown wildcard": func(o *operation) { o.path = "/servers/{server}" },
	} {
		o := fine
		change(&o.operation)
		if err := validateOperations(&nobody, []Operation{&o}); err == nil {
			t.Errorf("an operation with %s was accepted", name)
		}
	}
	if err := validateOperations(&nobody, []Operation{&fine, &fine}); err == nil {
		t.Error("a duplicate operation was accepted")
	}
	if err := validateOperations(&nobody, []Operation{&fine}); err != nil {
		t.Errorf("a valid operation was rejected: %v", err)
	}
}

func TestDocumentIsCurrent(t *testing.T) {
	t.Parallel()
	got, err := openAPIDocument(&Deps{Version: "1"})
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
		t.Errorf("%s is out of date: run go test ./internal/api -update", path)
	}
}

func TestDocumentHoldsEveryRoute(t *testing.T) {
	t.Parallel()
	raw, err := openAPIDocument(&Deps{})
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
	for _, one := range declared {
		r := one.base()
		op, ok := d.Paths[strings.ReplaceAll(r.path, "...}", "}")][strings.ToLower(r.method)]
		if !ok || op.Right != r.right.String() {
			t.Errorf("%s %s is described as %+v", r.method, r.path, op)
		}
		if _, ok := op.Responses["default"].Content[problemType]; !ok {
			t.Errorf("%s %s does not describe its failures", r.method, r.path)
		}
	}
}

func TestEveryRouteNeedsTheKey(t *testing.T) {
	t.Parallel()
	s := serve(t, &fake{})
	paths := []string{Prefix + "/nowhere", Prefix + "/status?api_key=" + testKey, Prefix + "/status?apikey=" + testKey}
	for _, o := range declared {
		if o.base().right != Open { // see TestSignIn
			paths = append(paths, o.base().method+" "+concrete(o.base()))
		}
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
			if d := problemOf(t, r); r.status != http.StatusUnauthorized || d.Code != problem.Unauthorized {
				t.Errorf("%s with %s: %d %s", p, name, r.status, r.body)
			}
			if r.header.Get("WWW-Authenticate") == "" {
				t.Errorf("%s with %s: no WWW-Authenticate", p, name)
			}
		}
	}
}

func TestKeyIsAcceptedInBothHeaders(t *testing.T) {
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
	for _, one := range declared {
		r := one.base()
		got := ask(t, s, r.method, concrete(r), validBody(r), "If-Match", "none")
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
	if r := ask(t, s, "GET", Prefix+"/nowhere", ""); r.status != 404 || problemOf(t, r).Code != problem.NotFound {
		t.Errorf("unknown path: %d %s", r.status, r.body)
	}
	r := ask(t, s, "PUT", Prefix+"/servers/github", "")
	if problemOf(t, r); r.status != 405 || r.header.Get("Allow") != "GET, PATCH, DELETE" {
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
		if problemOf(t, r); r.status != 403 && r.status != 400 {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
	if r := ask(t, s, "OPTIONS", Prefix+"/tools/call", "", "Origin", "https://evil.example"); r.status < 400 || r.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("preflight: %d %v", r.status, r.header)
	}
	if len(f.calls) != 0 || len(f.callers) != 0 {
		t.Errorf("%d calls reached the gateway, want 0", len(f.calls))
	}
}

func TestDocsPageAsksForNothingElse(t *testing.T) {
	t.Parallel()
	r := ask(t, serve(t, &fake{}), "GET", Prefix+"/docs", "", "X-API-Key", "") // no key: the page is the same for all installations
	if r.status != 200 || strings.Contains(r.body, "1.2.3") || !strings.HasPrefix(r.header.Get("Content-Type"), "text/html") {
		t.Fatalf("%d %v", r.status, r.header)
	}
	for _, bad := range []string{"<script", "src=", "http://", "https://", "<link", "@import", "url("} {
		if strings.Contains(r.body, bad) {
			t.Errorf("the page contains %q", bad)
		}
	}
	for _, one := range declared {
		if o := one.base(); !strings.Contains(r.body, html.EscapeString(o.summary)) {
			t.Errorf("the page does not list %s %s", o.method, o.path)
		}
	}
}

func TestInternalErrorsAreNotShown(t *testing.T) {
	t.Parallel()
	r := ask(t, serve(t, &fake{failure: errors.New("password=hunter2 in table users")}), "GET", Prefix+"/activity", "")
	if d := problemOf(t, r); r.status != 500 || d.Code != problem.Internal || strings.Contains(r.body, "hunter2") {
		t.Errorf("%d %s", r.status, r.body)
	}
}

func TestToolNamesOfAllKinds(t *testing.T) {
	t.Parallel()
	s := serve(t, &fake{})
	for _, name := range []string{"plain", "a/b", "a//b", "..", ".", "a.b:c", "x y", "ünï", "100%", "a/../b", "?q#f", "a+b", "/", "a/"} {
		r := ask(t, s, "GET", Prefix+"/servers/github/tools/"+escapePathSegment(name), "")
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
	if got := codeTitle(problem.ServerMismatch); got != "Server mismatch" {
		t.Errorf("title = %q", got)
	}
}

func TestOnlyAdminsHaveRights(t *testing.T) {
	t.Parallel()
	words := []string{Look.String(), Call.String(), Operate.String(), Decide.String(), Invite.String(), Open.String()}
	if slices.Contains(words, noRight.String()) {
		t.Error("a right has the name of noRight")
	}
}

func BenchmarkDocument(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := openAPIDocument(&Deps{Version: "1"}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := New(Deps{Implementations: homes, Version: "1"}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCall(b *testing.B) {
	f := &fake{answer: gate.CallResult{Result: json.RawMessage(`{"content":[]}`)}}
	s, err := New(Deps{Implementations: homes, Replacements: f.instead(), Auth: auth.NewAuthenticator(testKey, nil), Logger: slog.New(slog.DiscardHandler), Version: "1"})
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

// TestSchemaNamesAreUnique checks that no two types share a name, because they would share a schema.
func TestSchemaNamesAreUnique(t *testing.T) {
	t.Parallel()
	named := map[string]reflect.Type{}
	var visit func(reflect.Type)
	visit = func(of reflect.Type) {
		switch of.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			visit(of.Elem())
		case reflect.Struct:
			if other, there := named[schemaName(of)]; there {
				if other != of {
					t.Errorf("%v and %v have the same schema name", of, other)
				}
				return
			}
			named[schemaName(of)] = of
			for _, f := range reflect.VisibleFields(of) {
				if name, _ := jsonName(f); name != "" {
					visit(f.Type)
				}
			}
		}
	}
	for _, one := range declared {
		visit(one.base().out)
	}
}
