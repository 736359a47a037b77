package api

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// serveSignIn returns a server with the real sign-in operations. The fake implements all other operations.
func serveSignIn(t *testing.T, f *fake, more ...Operation) *httptest.Server {
	t.Helper()
	own := []Operation{SignIn, Session, SignOut, NewCode, GetCode}
	instead := slices.DeleteFunc(f.instead(), func(o Operation) bool {
		return slices.ContainsFunc(own, func(one Operation) bool { return one.base().id == o.base().id })
	})
	instead = append(instead, more...)
	h, err := New(Deps{Implementations: homes, Refuse: f.RecordRefusal, Auth: auth.NewAuthenticator(testKey, nil), Logger: slog.New(slog.NewTextHandler(t.Output(), nil)), Version: "1", Replacements: instead})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// tab is a signed-in web UI page.
type tab struct {
	t             *testing.T
	s             *httptest.Server
	cookie, value string
}

// own returns the headers that a browser sends for a page of s. They contain no key.
func own(s *httptest.Server, more ...string) []string {
	return append([]string{"X-API-Key", "", "Origin", s.URL, "Sec-Fetch-Site", "same-origin"}, more...)
}

func newCodeOf(t *testing.T, s *httptest.Server) SignInCode {
	t.Helper()
	r := ask(t, s, "POST", Prefix+"/session/codes", "")
	var c SignInCode
	if err := json.Unmarshal([]byte(r.body), &c); err != nil || r.status != 200 || len(c.Code) < 26 {
		t.Fatalf("%d %s %v", r.status, r.body, err)
	}
	return c
}

// signInAt signs in a page of a browser that has these cookies.
func signInAt(t *testing.T, s *httptest.Server, cookies string) *tab {
	t.Helper()
	r := ask(t, s, "POST", Prefix+"/session", `{"code":"`+newCodeOf(t, s).Code+`"}`, own(s, "Cookie", cookies)...)
	var opened UISession
	if err := json.Unmarshal([]byte(r.body), &opened); err != nil || r.status != 200 || opened.Value == "" {
		t.Fatalf("%d %s %v", r.status, r.body, err)
	}
	set := r.header["Set-Cookie"]
	if len(set) != 1 {
		t.Fatalf("cookies %q", set)
	}
	c, err := http.ParseSetCookie(set[0])
	if err != nil || c.Name != "mcpproxy_session" || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/api/v1" || c.Domain != "" || strings.Contains(r.body, c.Value) {
		t.Errorf("the cookie is %q, %v", set[0], err)
	}
	return &tab{t, s, c.Value, opened.Value}
}

func (p *tab) headers(more ...string) []string {
	return own(p.s, append([]string{"Cookie", auth.SessionCookie + "=" + p.cookie, auth.SessionHeader, p.value}, more...)...)
}

func (p *tab) ask(method, path, body string, more ...string) reply {
	p.t.Helper()
	return ask(p.t, p.s, method, Prefix+path, body, p.headers(more...)...)
}

// A signed-in page may call every declared operation. A request that lacks one of the page's credentials, or that comes
// from another origin, is rejected.
func TestSessionOnEveryRoute(t *testing.T) {
	t.Parallel()
	s := serveSignIn(t, &fake{})
	host := strings.TrimPrefix(s.URL, "http://")
	_, port, _ := strings.Cut(host, ":")
	page, other := signInAt(t, s, ""), signInAt(t, s, "")
	cookie := auth.SessionCookie + "=" + page.cookie
	refused := map[string][]string{
		"no value":           {auth.SessionHeader, ""},
		"another value":      {auth.SessionHeader, page.value + "x"},
		"the cookie twice":   {auth.SessionHeader, page.cookie},
		"no cookie":          {"Cookie", ""},
		"another cookie":     {"Cookie", auth.SessionCookie + "=" + page.value},
		"another name":       {"Cookie", "session=" + page.cookie},
		"another session's":  {"Cookie", auth.SessionCookie + "=" + other.cookie},
		"many cookies":       {"Cookie", strings.Repeat(auth.SessionCookie+"=x; ", 8) + cookie},
		"no Sec-Fetch-Site":  {"Sec-Fetch-Site", ""},
		"from a bookmark":    {"Sec-Fetch-Site", "none"},
		"same site":          {"Sec-Fetch-Site", "same-site"},
		"cross site":         {"Sec-Fetch-Site", "cross-site"},
		"another spelling":   {"Sec-Fetch-Site", "Same-Origin"},
		"with a wrong key":   {"X-API-Key", "wrong-0123456789abcdef"},
		"with a wrong token": {"Authorization", "Bearer wrong"},
	}
	for _, origin := range []string{
		"null", "http://127.0.0.1", "http://127.0.0.1:1", "http://127.0.0.1:3000", "https://" + host, "http://localhost:" + port, "http://[::1]:" + port,
		"http://LOCALHOST:" + port, "HTTP://" + host, s.URL + "/", s.URL + " " + s.URL, "ws://" + host, "file://", "http://evil.example", "http://" + host + ".evil.example",
		"http://evil.example@" + host, "http://127.0.0.2:" + port, "http://0.0.0.0:" + port, "chrome-extension://abcdef", host, "about:blank",
	} {
		refused["origin "+origin] = []string{"Origin", origin}
	}
	for _, one := range declared {
		o := one.base()
		if o.right == Open || o.id == SignOut.id {
			continue // tested by TestSignIn
		}
		path := strings.TrimPrefix(concrete(o), Prefix)
		for name, header := range refused {
			r := page.ask(o.method, path, validBody(o), header...)
			if d := problemOf(t, r); r.status != 401 && r.status != 403 || r.header["Set-Cookie"] != nil {
				t.Errorf("%s %s, %s: %d %s", o.method, path, name, r.status, d.Detail)
			}
		}
		want := 200
		switch {
		case o.right == Invite:
			want = 403 // a page cannot create a sign-in code for another page
		case o.id == GetCode.id:
			want = 404
		}
		if r := page.ask(o.method, path, validBody(o), "If-Match", "none"); r.status != want {
			t.Errorf("%s %s from a signed-in page: %d %s", o.method, path, r.status, r.body)
		}
		if r := page.ask(o.method, path, validBody(o), "Origin", "", "If-Match", "none"); (r.status != 403) != (o.method == "GET") {
			t.Errorf("%s %s without an origin: %d %s", o.method, path, r.status, r.body)
		}
	}
}

func TestSignIn(t *testing.T) {
	t.Parallel()
	f := &fake{}
	s := serveSignIn(t, f)
	session := Prefix + "/session"
	good := func() string { return `{"code":"` + newCodeOf(t, s).Code + `"}` }
	byKey := `{"key":"` + testKey + `"}`
	for name, c := range map[string]struct {
		path, body string
		header     []string
		want       int
	}{
		"a code":                  {session, good(), own(s), 200},
		"the key":                 {session, byKey, own(s), 200},
		"with an old session":     {session, good(), own(s, auth.SessionHeader, "ended", "Cookie", auth.SessionCookie+"=ended"), 200},
		"a wrong code":            {session, `{"code":"AAAAAAAAAAAAAAAAAAAAAAAAAA"}`, own(s), 401},
		"a wrong key":             {session, `{"key":"AAAAAAAAAAAAAAAAAAAAAAAAAA"}`, own(s), 401},
		"nothing":                 {session, `{}`, own(s), 400},
		"both":                    {session, `{"key":"` + testKey + `",` + good()[1:], own(s), 400},
		"a form":                  {session, byKey, own(s, "Content-Type", "application/x-www-form-urlencoded"), 400},
		"the key in the URL":      {session + "?key=" + testKey, byKey, own(s), 400},
		"a code in the URL":       {session + "?code=x", good(), own(s), 400},
		"a program":               {session, good(), []string{"X-API-Key", ""}, 403},
		"a program with the key":  {session, good(), nil, 403},
		"no origin":               {session, good(), own(s, "Origin", ""), 403},
		"a page of another port":  {session, good(), own(s, "Origin", "http://127.0.0.1:1", "Sec-Fetch-Site", "same-site"), 403},
		"another port, unlabeled": {session, good(), own(s, "Origin", "http://127.0.0.1:1"), 403},
		"another site":            {session, byKey, own(s, "Origin", "http://evil.example", "Sec-Fetch-Site", "cross-site"), 403},
		"a wrong key beside":      {session, good(), own(s, "X-API-Key", "wrong"), 401},
	} {
		r := ask(t, s, "POST", c.path, c.body, c.header...)
		if r.status != c.want || (r.header["Set-Cookie"] != nil) != (c.want == 200) {
			t.Errorf("%s: %d %v %s", name, r.status, r.header, r.body)
		}
	}
	if len(f.refused) != 3 || f.refused[0].Caller.Actor.Kind != auth.Nobody || f.refused[0].Problem.Code != problem.Unauthorized {
		t.Errorf("recorded refusals: %+v", f.refused)
	}

	code := newCodeOf(t, s)
	state := func() string { return ask(t, s, "GET", session+"/codes/"+code.ID, "").body }
	if got := state(); !strings.Contains(got, "false") {
		t.Errorf("the code before its use: %s", got)
	}
	for i, want := range []int{200, 401, 401} {
		if r := ask(t, s, "POST", session, `{"code":"`+code.Code+`"}`, own(s)...); r.status != want {
			t.Errorf("use %d of a code: %d", i, r.status)
		}
	}
	if got := state(); !strings.Contains(got, "true") {
		t.Errorf("the code after its use: %s", got)
	}
}

// The actions of a page are recorded with the source ui, even if the page sends another source.
func TestSessionIsTheUI(t *testing.T) {
	t.Parallel()
	f := &fake{}
	s := serveSignIn(t, f)
	signInAt(t, s, "").ask("POST", "/servers/github/restart", "", SourceHeader, "cli")
	if len(f.callers) != 1 || f.callers[0].Source != activity.SourceUI || f.callers[0].Actor.String() != "admin" || f.callers[0].ClientName != "" || !f.callers[0].IsUser() {
		t.Errorf("%+v", f.callers)
	}
}

// The pages of a browser share one cookie, but each page has its own session value. A cookie that another server on
// this machine set is ignored.
func TestPagesOfABrowser(t *testing.T) {
	t.Parallel()
	s := serveSignIn(t, &fake{})
	first := signInAt(t, s, auth.SessionCookie+"=planted")
	second := signInAt(t, s, auth.SessionCookie+"=planted; "+auth.SessionCookie+"="+first.cookie)
	if first.cookie == "planted" || second.cookie != first.cookie || second.value == first.value {
		t.Errorf("%+v, %+v", first, second)
	}
	for _, p := range []*tab{first, second} {
		if r := p.ask("GET", "/session", "", "Cookie", auth.SessionCookie+"=planted; "+auth.SessionCookie+"="+p.cookie); r.status != 200 || strings.Contains(r.body, "value") {
			t.Errorf("%d %s", r.status, r.body)
		}
	}
	elsewhere := signInAt(t, s, "")
	r := first.ask("DELETE", "/session", "")
	if set := r.header.Get("Set-Cookie"); r.status != 200 || !strings.HasPrefix(set, "mcpproxy_session=;") || !strings.Contains(set, "Max-Age=0") {
		t.Errorf("%d %v %s", r.status, r.header, r.body)
	}
	for p, want := range map[*tab]int{first: 401, second: 401, elsewhere: 200} {
		if r := p.ask("GET", "/session", ""); r.status != want {
			t.Errorf("after Sign out: %d, want %d", r.status, want)
		}
	}
	code := newCodeOf(t, s)
	if r := ask(t, s, "DELETE", Prefix+"/session?everywhere=true", "", elsewhere.headers("Origin", "http://127.0.0.1:1")...); r.status != 403 {
		t.Errorf("a sign-out from a page of another port: %d", r.status)
	}
	if r := elsewhere.ask("DELETE", "/session?everywhere=true", ""); r.status != 200 {
		t.Errorf("%d %s", r.status, r.body)
	}
	if r := elsewhere.ask("GET", "/status", ""); r.status != 401 {
		t.Errorf("after Sign out everywhere: %d", r.status)
	}
	if r := ask(t, s, "POST", Prefix+"/session", `{"code":"`+code.Code+`"}`, own(s)...); r.status != 401 {
		t.Errorf("a code from before Sign out everywhere: %d", r.status)
	}
}

// The number of wrong keys is limited, but a valid code is always accepted.
func TestWrongKeysAreLimited(t *testing.T) {
	t.Parallel()
	s := serveSignIn(t, &fake{})
	last := reply{}
	for range 30 {
		last = ask(t, s, "POST", Prefix+"/session", `{"key":"wrong-0123456789abcdef"}`, own(s)...)
	}
	if last.status != 503 || problemOf(t, last).Code != problem.Overloaded {
		t.Errorf("%d %s", last.status, last.body)
	}
	if r := ask(t, s, "POST", Prefix+"/session", `{"key":"`+testKey+`"}`, own(s)...); r.status != 503 {
		t.Errorf("the valid key after too many wrong keys: %d", r.status)
	}
	signInAt(t, s, "")
}

// A stream to a page is aborted when the session of the page ends.
func TestStreamsEndWithTheSession(t *testing.T) {
	t.Parallel()
	stream := &Op[ops.Nothing, ops.StreamFunc]{operation: GetStatus.operation}
	stream.in, stream.out, stream.contentType = reflect.TypeFor[ops.Nothing](), reflect.TypeFor[ops.StreamFunc](), "text/event-stream"
	s := serveSignIn(t, &fake{}, stream.WithHandler(func(context.Context, ops.Caller, ops.Nothing) (ops.StreamFunc, error) {
		return func(ctx context.Context, w io.Writer) error {
			if _, err := io.WriteString(w, ": ping\n\n"); err != nil {
				return err
			}
			<-ctx.Done()
			return ctx.Err()
		}, nil
	}))
	page := signInAt(t, s, "")
	req, err := http.NewRequest("GET", s.URL+Prefix+"/status", nil)
	if err != nil {
		t.Fatal(err)
	}
	for header := page.headers(); len(header) > 0; header = header[2:] {
		if header[1] != "" {
			req.Header.Set(header[0], header[1])
		}
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	first := make([]byte, 8)
	if _, err := io.ReadFull(resp.Body, first); err != nil || resp.StatusCode != 200 {
		t.Fatalf("%d %q %v", resp.StatusCode, first, err)
	}
	if r := page.ask("DELETE", "/session?everywhere=true", ""); r.status != 200 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	if rest, err := io.ReadAll(resp.Body); err == nil {
		t.Errorf("the stream ends without an error, after %q", rest)
	}
}
