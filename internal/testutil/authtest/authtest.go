// Package authtest runs an OpenID provider that others wrote (zitadel/oidc) and MCP servers that require its tokens, and
// breaks them. It is for tests only.
//
//   - Provider is the authorization server: discovery, registration, the authorization code flow with PKCE, refresh
//     tokens that are valid once, the device flow, revocation. A user is logged in to it, and consents to everything.
//   - Token is an access token that the provider issues without a login, right or wrong.
//   - Resource is an MCP server that accepts the provider's tokens.
package authtest

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// user is the subject of all logins.
const user = "id1"

// Provider is an authorization server.
type Provider struct {
	URL string // the issuer

	t       testing.TB
	op      *op.Provider
	storage *storage.Storage

	mu         sync.Mutex // serializes requests; guards the fields below
	server     *httptest.Server
	clients    map[string]*storage.Client
	all        []string // the clients so far
	fault      http.HandlerFunc
	requests   map[string]int // by path
	keys       []*signingKey  // the last one signs
	groups     map[string][]string
	omitsEmpty bool              // a claim without groups is omitted
	issued     map[string]string // token → its ID
}

// clientStore is the storage, with errors for unknown clients as in RFC 6749, and the device flow for native clients.
type clientStore struct {
	*storage.Storage
	p *Provider
}

func (s clientStore) GetClientByClientID(ctx context.Context, id string) (op.Client, error) {
	c, err := s.Storage.GetClientByClientID(ctx, id)
	if err != nil {
		return nil, oidc.ErrInvalidClient().WithParent(err)
	}
	return deviceClient{c}, nil
}

type deviceClient struct{ op.Client }

func (c deviceClient) GrantTypes() []oidc.GrantType {
	return append(c.Client.GrantTypes(), oidc.GrantTypeDeviceCode)
}

// StartProvider starts an authorization server.
func StartProvider(t testing.TB) *Provider {
	t.Helper()
	p := &Provider{t: t, clients: map[string]*storage.Client{}, requests: map[string]int{}, groups: map[string][]string{}, issued: map[string]string{}}
	p.addKey()
	p.server = httptest.NewServer(p)
	p.URL = p.server.URL
	p.storage = storage.NewStorageWithClients(userStore{storage.NewUserStore(p.URL)}, p.clients)
	provider, err := op.NewProvider(&op.Config{
		CryptoKey: sha256.Sum256([]byte("test")), CodeMethodS256: true, GrantTypeRefreshToken: true,
		DeviceAuthorization: op.DeviceAuthorizationConfig{Lifetime: 5 * time.Minute, PollInterval: time.Second, UserFormPath: "/device", UserCode: op.UserCodeBase20},
	}, clientStore{p.storage, p}, op.StaticIssuer(p.URL), op.WithAllowInsecure())
	if err != nil {
		t.Fatal(err)
	}
	p.op = provider
	t.Cleanup(p.Stop)
	return p
}

// Stop makes the provider unreachable. Continue starts it again at the same address.
func (p *Provider) Stop() {
	p.server.CloseClientConnections()
	p.server.Close()
}

// Continue starts a stopped provider.
func (p *Provider) Continue() {
	p.t.Helper()
	listener, err := net.Listen("tcp", strings.TrimPrefix(p.URL, "http://"))
	if err != nil {
		p.t.Fatal(err)
	}
	p.server = httptest.NewUnstartedServer(p)
	_ = p.server.Listener.Close()
	p.server.Listener = listener
	p.server.Start()
}

// SetFault makes f answer all requests instead of the provider; nil ends that.
func (p *Provider) SetFault(f http.HandlerFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = f
}

// RevokeLogins ends all logins: their access and refresh tokens are no longer valid.
func (p *Provider) RevokeLogins() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range p.all {
		if err := p.storage.TerminateSession(p.t.Context(), user, id); err != nil {
			p.t.Error(err)
		}
	}
}

// ForgetClients deletes all registrations.
func (p *Provider) ForgetClients() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.clients)
}

// Requests returns how many requests a path has received.
func (p *Provider) Requests(path string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests[path]
}

// ServeHTTP implements http.Handler.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests[r.URL.Path]++
	if p.fault != nil {
		p.fault(w, r)
		return
	}
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		p.serveMetadata(w, r)
	case "/register":
		p.register(w, r)
	case "/login/username": // the user's browser
		id := r.FormValue("authRequestID")
		if err := p.storage.CheckUsernamePassword("test-user@127.0.0.1", "verysecure", id); err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		http.Redirect(w, r, op.AuthCallbackURL(p.op)(op.ContextWithIssuer(r.Context(), p.URL), id), http.StatusFound)
	case "/device": // the user's browser
		if err := p.storage.CompleteDeviceAuthorization(r.Context(), r.FormValue("user_code"), user); err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
		}
	default:
		p.op.ServeHTTP(w, r)
	}
}

// serveMetadata serves the provider's metadata with a registration endpoint.
func (p *Provider) serveMetadata(w http.ResponseWriter, r *http.Request) {
	own := httptest.NewRecorder()
	p.op.ServeHTTP(own, r)
	metadata := map[string]any{}
	if err := json.Unmarshal(own.Body.Bytes(), &metadata); err != nil {
		p.t.Error(err)
	}
	metadata["registration_endpoint"] = p.URL + "/register"
	writeJSON(w, http.StatusOK, metadata)
}

// register registers a native client (RFC 7591).
func (p *Provider) register(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Redirects []string `json:"redirect_uris"`
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	id := fmt.Sprint("client-", len(p.all)+1)
	p.all = append(p.all, id)
	p.clients[id] = storage.NativeClient(id, asked.Redirects...)
	writeJSON(w, http.StatusCreated, map[string]any{"client_id": id, "token_endpoint_auth_method": "none"})
}

// accepts reports whether a token is valid.
func (p *Provider) accepts(token string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := httptest.NewRequest(http.MethodGet, "/userinfo", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	p.op.ServeHTTP(w, r)
	return w.Code == http.StatusOK
}

// Browse opens a page as the user's browser, on a machine on which nothing listens at 127.0.0.1, and returns the
// address at which it ends.
func Browse(t testing.TB, page string) string {
	t.Helper()
	first, err := url.Parse(page)
	if err != nil {
		t.Fatal(err)
	}
	end := page
	c := &http.Client{CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if end = r.URL.String(); r.URL.Host != first.Host {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	defer c.CloseIdleConnections()
	resp, err := c.Get(page)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 400 {
		t.Fatalf("the page answers with %d", resp.StatusCode)
	}
	return end
}

// Resource is an MCP server that requires a token.
type Resource struct {
	URL string // of the MCP endpoint

	inner  http.Handler
	server *httptest.Server

	mu       sync.Mutex // guards the fields below
	provider *Provider
	seen     map[string]bool // the accepted tokens
	expired  map[string]bool // tokens that are no longer accepted
	reject   int             // number of requests to reject, whatever the token
	rejected int             // number of requests that were rejected
}

// StartResource serves inner at /mcp behind a login at the provider.
func StartResource(t testing.TB, p *Provider, inner http.Handler) *Resource {
	t.Helper()
	s := &Resource{inner: inner, provider: p, seen: map[string]bool{}, expired: map[string]bool{}}
	s.server = httptest.NewServer(s)
	t.Cleanup(s.server.Close)
	s.URL = s.server.URL + "/mcp"
	return s
}

// Tokens returns the access tokens that the server has accepted.
func (s *Resource) Tokens() iter.Seq[string] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Keys(maps.Clone(s.seen))
}

// ExpireTokens makes the server reject the access tokens that it has accepted so far.
func (s *Resource) ExpireTokens() {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.Copy(s.expired, s.seen)
}

// Reject makes the server reject the next n requests, whatever their tokens; negative: all requests.
func (s *Resource) Reject(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reject = n
}

// Rejected returns how many requests were rejected.
func (s *Resource) Rejected() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rejected
}

// UseProvider makes another provider the authorization server.
func (s *Resource) UseProvider(p *Provider) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.provider = p
}

// ServeHTTP implements http.Handler.
func (s *Resource) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	p := s.provider
	s.mu.Unlock()
	switch r.URL.Path {
	case "/.well-known/oauth-protected-resource/mcp":
		writeJSON(w, http.StatusOK, map[string]any{"resource": s.URL, "authorization_servers": []string{p.URL}, "scopes_supported": []string{"openid"}})
		return
	case "/mcp":
	default:
		http.NotFound(w, r)
		return
	}
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	good := token != "" && p.accepts(token)
	s.mu.Lock()
	good = good && !s.expired[token]
	if good && s.reject != 0 {
		good = false
		s.reject = max(s.reject-1, -1)
	}
	if good {
		s.seen[token] = true
	} else {
		s.rejected++
	}
	s.mu.Unlock()
	if !good {
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer resource_metadata="%s/.well-known/oauth-protected-resource/mcp"`, s.server.URL))
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	s.inner.ServeHTTP(w, r)
}

func writeJSON(w http.ResponseWriter, status int, body map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
