package oauth

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"mcpproxy/internal/mcp/dialpolicy"
)

func TestURLs(t *testing.T) {
	for _, address := range []string{
		"http://as.example/", "http://10.0.0.1/", "https://127.0.0.1/", "https://[::1]/", "https://[::ffff:7f00:1]/", "https://10.1.2.3/", "https://169.254.169.254/latest",
		"https://u:p@as.example/", "ftp://as.example/", "file:///etc/passwd", "gopher://as.example/", "https:///x", "//as.example/x", "/x", "http://localhost/",
		"https://[fe80::1%25eth0]/", "https://0.0.0.0/", "data:text/plain,x",
	} {
		u, err := url.Parse(address)
		if err != nil {
			continue
		}
		if (urlGuard{}).checkURL(u) == nil {
			t.Errorf("%s may be asked for a server on the internet", address)
		}
	}
	for _, address := range []string{"http://localhost:1/", "http://127.0.0.1/", "http://[::1]/", "https://as.example/"} {
		u, err := url.Parse(address)
		if err != nil || (urlGuard{dialpolicy.Policy{Loopback: true}}).checkURL(u) != nil {
			t.Errorf("%s may not be asked for a server on this machine (%v)", address, err)
		}
	}
}

// A name is checked by the address that it resolves to when it is dialled, whatever it was before.
func TestNameThatResolvesToLoopback(t *testing.T) {
	var asked atomic.Int64
	s := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer s.Close()
	_, port, _ := strings.Cut(strings.TrimPrefix(s.URL, "https://"), ":")
	var into struct{}
	for _, host := range []string{"localhost", "127.1", "2130706433", "0x7f.1", "0177.0.0.1"} {
		err := newWebClient(urlGuard{}, "test").fetchDocument(context.Background(), "https://"+host+":"+port+"/", &into)
		if err == nil || host == "localhost" && !strings.Contains(err.Error(), "it is this machine, which was not meant") {
			t.Errorf("%s was asked: %v", host, err)
		}
	}
	if asked.Load() != 0 {
		t.Error("something was asked")
	}
}

func TestRedirects(t *testing.T) {
	var hops atomic.Int64
	mux := http.NewServeMux()
	s := httptest.NewServer(mux)
	defer s.Close()
	mux.HandleFunc("/n/", func(w http.ResponseWriter, r *http.Request) {
		var n int
		fmt.Sscanf(r.URL.Path, "/n/%d", &n)
		hops.Add(1)
		if n == 0 {
			fmt.Fprint(w, "{}")
			return
		}
		http.Redirect(w, r, fmt.Sprint("/n/", n-1), http.StatusFound)
	})
	mux.HandleFunc("/to", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Query().Get("u"), http.StatusTemporaryRedirect)
	})
	w := newWebClient(urlGuard{dialpolicy.Policy{Loopback: true}}, "test")
	var into struct{}
	if err := w.fetchDocument(context.Background(), s.URL+"/n/3", &into); err != nil {
		t.Errorf("three redirects: %v", err)
	}
	if err := w.fetchDocument(context.Background(), s.URL+"/n/4", &into); err == nil {
		t.Error("four redirects are followed")
	}
	for _, to := range []string{"http://169.254.169.254/", "https://10.0.0.1/", "http://as.example/", "file:///etc/passwd", "https://u:p@as.example/"} {
		if err := w.fetchDocument(context.Background(), s.URL+"/to?u="+url.QueryEscape(to), &into); err == nil {
			t.Errorf("a redirect to %s is followed", to)
		}
	}
	// What carries a secret goes nowhere else.
	hops.Store(0)
	_, err := w.requestToken(context.Background(), s.URL+"/to?u=/n/0", &clientRegistration{ID: "c", Secret: "s", Method: methodPost}, formParams{"code": "x"})
	if err == nil || hops.Load() != 0 || strings.Contains(err.Error(), "u=") {
		t.Errorf("a token request was redirected (%v)", err)
	}
}

func TestChallenges(t *testing.T) {
	for header, want := range map[string]bearerChallenge{
		``:       {},
		`Bearer`: {},
		`Bearer resource_metadata="https://a/b", scope="x y", error="insufficient_scope"`: {"https://a/b", "x y", "insufficient_scope"},
		`Basic realm="a, b", Bearer scope=x , error=invalid_token`:                        {"", "x", "invalid_token"},
		`Basic scope="no", bearer Scope="yes"`:                                            {"", "yes", ""},
		`Bearer scope="a \"q\" \\ b"`:                                                     {"", `a "q" \ b`, ""},
		`Negotiate dG9rZW4=, Bearer scope="s"`:                                            {"", "s", ""},
		`Bearer scope="not closed`:                                                        {"", "not closed", ""},
		`Bearer scope = "spaced" , resource_metadata = "m"`:                               {"m", "spaced", ""},
		`Bearer scope="first", scope="second"`:                                            {"", "first", ""},
		`Bearer "x", scope="y"`:                                                           {},
		`DPoP algs="ES256", resource_metadata="https://a"`:                                {"https://a", "", ""},
		strings.Repeat("Bearer ", maxChallenge):                                           {},
	} {
		if got := parseChallenge(header); got != want {
			t.Errorf("%.80s: %+v, want %+v", header, got, want)
		}
	}
}

func FuzzChallenge(f *testing.F) {
	f.Add(`Bearer resource_metadata="https://a/b", scope="x"`)
	f.Add(`Basic dG9r==, Bearer scope=x`)
	f.Fuzz(func(t *testing.T, header string) {
		c := parseChallenge(header)
		if len(c.metadata)+len(c.scope)+len(c.err) > len(header) {
			t.Errorf("more came out of %q than went in", header)
		}
	})
}

func TestTokenAnswers(t *testing.T) {
	for body, want := range map[string]string{
		`{"access_token":"a","token_type":"Bearer","expires_in":"3600"}`: "",
		`{"access_token":"a","token_type":"bearer","expires_in":-1}`:     "",
		`{"access_token":"a","token_type":"DPoP"}`:                       "unsupported type",
		`{"access_token":"a"}`:                                           "unsupported type",
		`{"token_type":"bearer"}`:                                        "cannot be sent",
		`{"access_token":"a\r\nX: y","token_type":"bearer"}`:             "cannot be sent",
		`{"access_token":"ä","token_type":"bearer"}`:                     "cannot be sent",
		`{"error":"invalid_grant\r\n"}`:                                  `"invalid_grant"`,
		`[]`:                                                             "not the expected JSON",
		`{"access_token":"` + strings.Repeat("x", maxToken+1) + `","token_type":"bearer"}`: "cannot be sent",
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) }))
		a, err := newWebClient(urlGuard{dialpolicy.Policy{Loopback: true}}, "test").requestToken(context.Background(), s.URL, &clientRegistration{ID: "c", Method: methodNone}, formParams{})
		s.Close()
		switch {
		case want == "" && (err != nil || a.Access != "a"):
			t.Errorf("%.80s: %v", body, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%.80s: %v, want %q", body, err, want)
		}
	}
	for raw, want := range map[string]float64{"3600": 3600, `"60"`: 60, "1e300": 315360000, "-5": 0, "null": 0, `"x"`: 0, "": 0, "NaN": 0} {
		if got := parseLifetime([]byte(raw)).Seconds(); got != want {
			t.Errorf("%s: %v", raw, got)
		}
	}
}
