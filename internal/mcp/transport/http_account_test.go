package transport

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"mcpproxy/internal/mcp/dialpolicy"
	"mcpproxy/internal/mcp/session"
)

// here is the dial policy for servers in tests.
var here = dialpolicy.Policy{Loopback: true}

// wallet is an account whose authorizations are used one after the other.
type wallet struct {
	mu      sync.Mutex
	tokens  []string
	refused []string
	broken  error
}

func (p *wallet) Authorization(context.Context) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.tokens) == 0 {
		return "", p.broken
	}
	return p.tokens[0], p.broken
}

func (*wallet) HandleAcceptance(string) {}

func (p *wallet) HandleRefusal(_ context.Context, used string, status int, challenge string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused = append(p.refused, fmt.Sprint(used, " ", status, " ", challenge))
	if len(p.tokens) > 0 && p.tokens[0] == used {
		p.tokens = p.tokens[1:]
	}
	return len(p.tokens) > 0
}

func parseURL(t *testing.T, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// TestSendWithAuthorization checks that both clients send the authorization of the account, and repeat a rejected
// request once with the next authorization.
func TestSendWithAuthorization(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer good" || len(r.Header.Values("Authorization")) > 1 {
			w.Header().Add("WWW-Authenticate", `Basic realm="x"`)
			w.Header().Add("WWW-Authenticate", `Bearer error="insufficient_scope"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.WriteHeader(http.StatusAccepted)
	}))
	defer server.Close()
	for name, client := range map[string]HTTPClient{"lean": newLeanClient(parseURL(t, server.URL), here), "std": newStdClient(here)} {
		p := &wallet{tokens: []string{"Bearer old", "Bearer good"}}
		head, err := newRequestHead(parseURL(t, server.URL), http.Header{"X-A": {"b"}})
		if err != nil {
			t.Fatal(err)
		}
		a, err := (&authClient{client, p}).Do(context.Background(), &HTTPRequest{Method: "POST", Head: head, Body: []byte("{}")})
		if err != nil || a.Status != http.StatusAccepted || len(p.refused) != 1 || !strings.HasSuffix(p.refused[0], `error="insufficient_scope"`) {
			t.Errorf("%s: %+v %v, refused %q", name, a, err, p.refused)
		}
		if err == nil {
			a.Body.Close()
		}
		client.Close()
		if len(head.fields) != 1 {
			t.Errorf("%s: the head still contains the authorization: %v", name, head.fields)
		}
	}
}

// TestDialPolicyOfClients checks that both clients check the address that a name resolves to when they dial it.
func TestDialPolicyOfClients(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	for name, client := range map[string]HTTPClient{"lean": newLeanClient(parseURL(t, server.URL), dialpolicy.Policy{}), "std": newStdClient(dialpolicy.Policy{})} {
		head, err := newRequestHead(parseURL(t, server.URL), http.Header{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err = client.Do(context.Background(), &HTTPRequest{Method: "POST", Head: head}); !session.IsNotSent(err) || !strings.Contains(err.Error(), "allow_private") {
			t.Errorf("%s: %v", name, err)
		}
		client.Close()
	}
}

// BenchmarkAccount measures the cost of an account for a server that requires no login. It is close to zero.
func BenchmarkAccount(b *testing.B) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") }))
	defer s.Close()
	u, err := url.Parse(s.URL)
	if err != nil {
		b.Fatal(err)
	}
	head, err := newRequestHead(u, http.Header{})
	if err != nil {
		b.Fatal(err)
	}
	for _, bench := range []struct {
		name    string
		account ServerAuthorizer
	}{{"none", nil}, {"nobody", &wallet{}}, {"token", &wallet{tokens: []string{"Bearer x"}}}} {
		b.Run(bench.name, func(b *testing.B) {
			client := wrapWithAuthorization(newLeanClient(u, here), bench.account)
			defer client.Close()
			b.ReportAllocs()
			for b.Loop() {
				a, err := client.Do(b.Context(), &HTTPRequest{Method: "POST", Head: head, Body: []byte("{}")})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := readBody(a, 100); err != nil {
					b.Fatal(err)
				}
				a.Body.Close()
			}
		})
	}
}
