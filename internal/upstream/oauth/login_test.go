package oauth

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpproxy/internal/testutil/mcptest"
)

func TestLogin(t *testing.T) {
	w := newWorld(t, Settings{})
	if w.ask() != 401 || !w.account.NeedsLogin() {
		t.Fatal("the server does not ask for a login, or it is not noticed")
	}
	w.mustLogin()
	if w.ask() != 200 || w.account.NeedsLogin() {
		t.Fatal("the login succeeded, but no token is sent")
	}
	a, tok := w.last("/authorize").Form, w.last("/token").Form
	for name, want := range map[string]string{"response_type": "code", "code_challenge_method": "S256", "resource": w.server.URL, "scope": "read", "client_id": "client-1"} {
		if a.Get(name) != want {
			t.Errorf("authorize: %s is %q, want %q", name, a.Get(name), want)
		}
	}
	if len(a.Get("state")) < 22 || len(a.Get("code_challenge")) != 43 || !strings.HasPrefix(a.Get("redirect_uri"), "http://127.0.0.1:") {
		t.Errorf("authorize: %v", a)
	}
	for name, want := range map[string]string{"grant_type": "authorization_code", "resource": w.server.URL, "client_id": "client-1", "redirect_uri": a.Get("redirect_uri")} {
		if tok.Get(name) != want {
			t.Errorf("token: %s is %q, want %q", name, tok.Get(name), want)
		}
	}
	reg := w.last("/register").Body
	if reg["application_type"] != "native" || reg["token_endpoint_auth_method"] != "none" || reg["client_name"] != "MCPProxy" {
		t.Errorf("register: %v", reg)
	}
}

// A login and its registration survive a restart of the process.
func TestLoginIsKept(t *testing.T) {
	w := newWorld(t, Settings{})
	w.mustLogin()
	w = w.again(Settings{})
	if w.ask() != 200 {
		t.Fatal("the login is lost")
	}
	w.server.ExpireTokens(true)
	w.account.cred.Load().Obtained = time.Now().Add(-time.Hour) // the only holder is this test
	if w.ask() != 401 || !w.account.NeedsLogin() {
		t.Fatal("a login that has ended goes on")
	}
	w.mustLogin()
	if w.ask() != 200 || w.times("/register") != 1 {
		t.Errorf("registered %d times", w.times("/register"))
	}
}

// The credentials for one URL are of no use for another URL under the same name.
func TestCredentialStaysWithItsServer(t *testing.T) {
	w := newWorld(t, Settings{})
	w.mustLogin()
	other := mcptest.StartLoginServer(t, http.NotFoundHandler())
	for key, value := range w.vault.values {
		w.vault.values[strings.Replace(key, w.server.URL, other.URL, 1)] = value // an attacker copies it
	}
	o := worldOf(t, other, w.vault, Settings{})
	if auth, err := o.account.Authorization(context.Background()); auth != "" || err != nil {
		t.Errorf("%q is sent to another server (%v)", auth, err)
	}
}

func TestDiscovery(t *testing.T) {
	const prm, asm = "/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-authorization-server/as"
	for _, tt := range []struct {
		name   string
		change func(l *mcptest.LoginServer)
		want   string // error; "" = it works
	}{
		{"at the root", func(l *mcptest.LoginServer) { l.MoveMetadata(prm, "/.well-known/oauth-protected-resource") }, ""},
		{"for the whole origin", func(l *mcptest.LoginServer) { l.ChangeMetadata(prm, map[string]any{"resource": l.BaseURL() + "/"}) }, ""},
		{"OpenID with the path in front", func(l *mcptest.LoginServer) { l.MoveMetadata(asm, "/.well-known/openid-configuration/as") }, ""},
		{"OpenID with the path behind", func(l *mcptest.LoginServer) { l.MoveMetadata(asm, "/as/.well-known/openid-configuration") }, ""},
		{"a slash more", func(l *mcptest.LoginServer) {
			l.ChangeMetadata(prm, map[string]any{"authorization_servers": []string{l.BaseURL() + "/"}})
			l.MoveMetadata(asm, "/.well-known/oauth-authorization-server")
			l.ChangeMetadata("/.well-known/oauth-authorization-server", map[string]any{"issuer": l.BaseURL()})
		}, ""},
		{"2025-03-26 with metadata", func(l *mcptest.LoginServer) {
			l.MoveMetadata(prm, "")
			l.MoveMetadata(asm, "/.well-known/oauth-authorization-server")
			l.ChangeMetadata("/.well-known/oauth-authorization-server", map[string]any{"issuer": l.BaseURL()})
		}, ""},
		{"2025-03-26 without", func(l *mcptest.LoginServer) { l.MoveMetadata(prm, ""); l.MoveMetadata(asm, "") }, ""},
		{"another resource", func(l *mcptest.LoginServer) {
			l.ChangeMetadata(prm, map[string]any{"resource": "https://evil.example/mcp"})
		}, "for another resource"},
		{"a sibling", func(l *mcptest.LoginServer) { l.ChangeMetadata(prm, map[string]any{"resource": l.BaseURL() + "/mc"}) }, "for another resource"},
		{"no resource", func(l *mcptest.LoginServer) { l.ChangeMetadata(prm, map[string]any{"resource": nil}) }, "for another resource"},
		{"no authorization server", func(l *mcptest.LoginServer) { l.ChangeMetadata(prm, map[string]any{"authorization_servers": nil}) }, "names no authorization server"},
		{"another issuer", func(l *mcptest.LoginServer) { l.ChangeMetadata(asm, map[string]any{"issuer": "https://evil.example"}) }, "another issuer"},
		{"no issuer", func(l *mcptest.LoginServer) { l.ChangeMetadata(asm, map[string]any{"issuer": nil}) }, "another issuer"},
		{"no metadata", func(l *mcptest.LoginServer) { l.MoveMetadata(asm, "") }, "publishes no metadata"},
		{"no PKCE", func(l *mcptest.LoginServer) {
			l.ChangeMetadata(asm, map[string]any{"code_challenge_methods_supported": nil})
		}, "PKCE"},
		{"plain PKCE", func(l *mcptest.LoginServer) {
			l.ChangeMetadata(asm, map[string]any{"code_challenge_methods_supported": []string{"plain"}})
		}, "PKCE"},
		{"no registration", func(l *mcptest.LoginServer) { l.ChangeMetadata(asm, map[string]any{"registration_endpoint": nil}) }, "set oauth.client_id"},
		{"javascript", func(l *mcptest.LoginServer) {
			l.ChangeMetadata(asm, map[string]any{"authorization_endpoint": "javascript:alert(1)"})
		}, "not a usable URL"},
		{"a file", func(l *mcptest.LoginServer) {
			l.ChangeMetadata(asm, map[string]any{"authorization_endpoint": "file:///etc/passwd"})
		}, "not a usable URL"},
		{"a command", func(l *mcptest.LoginServer) {
			l.ChangeMetadata(asm, map[string]any{"authorization_endpoint": "https://as.example/$(touch /tmp/x) "})
		}, "not a usable URL"},
		{"plain http elsewhere", func(l *mcptest.LoginServer) {
			l.ChangeMetadata(asm, map[string]any{"token_endpoint": "http://as.example/token"})
		}, "not https"},
		{"a user in the URL", func(l *mcptest.LoginServer) {
			l.ChangeMetadata(asm, map[string]any{"authorization_endpoint": "https://u:p@as.example/"})
		}, "cannot be used"},
		{"link-local", func(l *mcptest.LoginServer) {
			l.ChangeMetadata(asm, map[string]any{"token_endpoint": "https://169.254.169.254/token"})
		}, "not a public internet address"},
		{"private", func(l *mcptest.LoginServer) {
			l.ChangeMetadata(prm, map[string]any{"authorization_servers": []string{"https://10.0.0.1"}})
		}, "allow_private allows it"},
		{"not a document", func(l *mcptest.LoginServer) { l.ChangeMetadata(asm, map[string]any{"issuer": 5}) }, "not the expected JSON"},
		{"no end", func(l *mcptest.LoginServer) {
			l.ChangeMetadata(prm, map[string]any{"x": strings.Repeat("x", maxDocument)})
		}, "larger than"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, Settings{})
			tt.change(w.server)
			if tt.want == "" {
				w.mustLogin()
				if w.ask() != 200 {
					t.Error("the login succeeded, but no token is sent")
				}
				return
			}
			w.failLogin(tt.want)
			if w.times("/authorize")+w.times("/token") != 0 {
				t.Error("something was asked of the authorization server")
			}
		})
	}
}

func TestIssuerOfTheAnswer(t *testing.T) {
	for _, tt := range []struct {
		name, iss string
		promised  bool
		want      string
	}{
		{"left out", "", false, ""},
		{"own", "own", true, ""},
		{"own though not promised", "own", false, ""},
		{"left out though promised", "", true, "does not name"},
		{"another", "https://evil.example", true, "another authorization server"},
		{"another though not promised", "https://evil.example", false, "another authorization server"},
		{"nearly", "own/", true, "another authorization server"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, Settings{})
			w.server.ChangeMetadata("/.well-known/oauth-authorization-server/as", map[string]any{"authorization_response_iss_parameter_supported": tt.promised})
			w.server.ChangeRules(func(r *mcptest.LoginRules) { r.Iss = tt.iss })
			if tt.want == "" {
				w.mustLogin()
				return
			}
			w.failLogin(tt.want)
			if w.times("/token") != 0 {
				t.Error("the code was sent")
			}
		})
	}
}

func TestRegistrationOrder(t *testing.T) {
	const asm = "/.well-known/oauth-authorization-server/as"
	for _, tt := range []struct {
		name      string
		settings  Settings
		documents bool
		methods   []string
		secret    string // of the registration
		client    string
		basic     string
		post      string // the client_secret in the body
	}{
		{"by hand", Settings{ClientID: "mine", ClientMetadataURL: "https://x.example/c"}, true, nil, "", "mine", "", ""},
		{"by hand, with a secret", Settings{ClientID: "m:e", ClientSecret: "a b"}, true, nil, "", "m:e", "m%3Ae:a+b", ""},
		{"by hand, posting", Settings{ClientID: "mine", ClientSecret: "s"}, false, []string{"client_secret_post"}, "", "mine", "", "s"},
		{"document", Settings{ClientMetadataURL: "https://x.example/c"}, true, nil, "", "https://x.example/c", "", ""},
		{"document not taken", Settings{ClientMetadataURL: "https://x.example/c"}, false, nil, "", "client-1", "", ""},
		{"dynamic with a secret", Settings{}, false, []string{"client_secret_basic"}, "s", "client-1", "client-1:s", ""},
		{"dynamic, posting", Settings{}, false, []string{"client_secret_post"}, "s", "client-1", "", "s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, tt.settings)
			w.server.ChangeRules(func(r *mcptest.LoginRules) { r.Secret = tt.secret })
			w.server.ChangeMetadata(asm, map[string]any{"client_id_metadata_document_supported": tt.documents, "token_endpoint_auth_methods_supported": tt.methods})
			w.mustLogin()
			a, tok := w.last("/authorize").Form, w.last("/token")
			if a.Get("client_id") != tt.client || tok.Basic != tt.basic || tok.Form.Get("client_secret") != tt.post {
				t.Errorf("authorize as %q, token: %+v", a.Get("client_id"), tok)
			}
		})
	}
}

// Credentials from one authorization server are not sent to another one.
func TestAnotherAuthorizationServer(t *testing.T) {
	const prm, asm = "/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-authorization-server/as"
	move := func(l *mcptest.LoginServer) {
		l.MoveMetadata(asm, "/.well-known/oauth-authorization-server/new")
		l.ChangeMetadata("/.well-known/oauth-authorization-server/new", map[string]any{"issuer": l.BaseURL() + "/new"})
		l.ChangeMetadata(prm, map[string]any{"authorization_servers": []string{l.BaseURL() + "/new"}})
		l.ExpireTokens(true)
	}
	w := newWorld(t, Settings{})
	w.mustLogin()
	move(w.server)
	w.mustLogin()
	if w.times("/register") != 2 || w.last("/authorize").Form.Get("client_id") == "client-1" {
		t.Error("the client of the old authorization server is shown to the new one")
	}

	byHand := Settings{ClientID: "mine", ClientSecret: "secret"}
	w = newWorld(t, byHand)
	w.mustLogin()
	move(w.server)
	w.failLogin("names another authorization server")
	if w.times("/token") != 1 {
		t.Error("the secret went to the new one")
	}
	byHand.AuthorizationServer = w.server.BaseURL() + "/new"
	w.keeper.Configure([]AccountTarget{{Name: "s", URL: w.server.URL, Settings: byHand}})
	w.mustLogin()
	byHand.AuthorizationServer = "https://third.example"
	w.keeper.Configure([]AccountTarget{{Name: "s", URL: w.server.URL, Settings: byHand}})
	w.failLogin("does not name")
}

func TestScopes(t *testing.T) {
	const asm = "/.well-known/oauth-authorization-server/as"
	w := newWorld(t, Settings{})
	w.server.ChangeRules(func(r *mcptest.LoginRules) { r.Scope = "list" })
	w.ask()
	w.mustLogin()
	if got := w.last("/authorize").Form.Get("scope"); got != "list" {
		t.Errorf("asked for %q, the challenge says list", got)
	}
	// A step-up also requests the previous scopes.
	w.server.ChangeRules(func(r *mcptest.LoginRules) { r.Scope = "call" })
	if w.ask() != 403 || !w.account.NeedsLogin() {
		t.Fatal("no step up")
	}
	w.mustLogin()
	if got := w.last("/authorize").Form.Get("scope"); got != "list call" || w.ask() != 200 {
		t.Errorf("asked for %q", got)
	}

	w = newWorld(t, Settings{Scopes: []string{"mine"}})
	w.server.ChangeMetadata(asm, map[string]any{"scopes_supported": []string{"offline_access", "mine"}})
	w.mustLogin()
	if got := w.last("/authorize").Form.Get("scope"); got != "mine offline_access" {
		t.Errorf("asked for %q", got)
	}
	w = newWorld(t, Settings{})
	w.server.ChangeMetadata("/.well-known/oauth-protected-resource/mcp", map[string]any{"scopes_supported": nil})
	w.mustLogin()
	if w.last("/authorize").Form.Has("scope") {
		t.Error("a scope that was not requested")
	}
}

// The callback accepts one response, with the right state, and nothing else.
func TestCallback(t *testing.T) {
	w := newWorld(t, Settings{})
	begun, err := w.account.BeginLogin(context.Background(), false, func(context.Context) {})
	if err != nil {
		t.Fatal(err)
	}
	same, err := w.account.BeginLogin(context.Background(), false, func(context.Context) {})
	if err != nil || same.URL != begun.URL {
		t.Errorf("a second login began: %v", err)
	}
	u, err := url.Parse(begun.URL)
	if err != nil {
		t.Fatal(err)
	}
	back, state := u.Query().Get("redirect_uri"), u.Query().Get("state")
	for _, bad := range []string{
		back, back + "?code=x", back + "?code=x&state=", back + "?code=x&state=" + state + "x", back + "?code=x&state=" + strings.ToLower(state),
		back + "?code=x&state=a&state=" + state, strings.Replace(back, "/callback", "/", 1) + "?code=x&state=" + state,
		strings.Replace(back, "127.0.0.1", "localhost", 1) + "?code=x&state=" + state,
	} {
		if status, page := visit(t, bad); status != 400 || strings.Contains(page, state) {
			t.Errorf("%s: %d %s", bad, status, page)
		}
	}
	if resp, err := http.PostForm(back, url.Values{"code": {"x"}, "state": {state}}); err != nil || resp.StatusCode != 400 {
		t.Errorf("POST: %v", err)
	} else {
		resp.Body.Close()
	}
	if p, _ := w.account.Progress(); p.Phase != Waiting {
		t.Fatalf("an attacker ended the login: %+v", p)
	}
	w.server.ChangeRules(func(r *mcptest.LoginRules) { r.Deny = `access_denied"<script>` })
	w.failLogin(`answers "access_denied<script>"`)
	if _, err := http.Get(back + "?code=x&state=" + state); err == nil {
		t.Error("the callback is still there")
	}
}

func TestLogout(t *testing.T) {
	w := newWorld(t, Settings{})
	w.mustLogin()
	if err := w.account.Logout(context.Background()); err != nil {
		t.Fatal(err)
	}
	if w.ask() != 401 || len(w.vault.values) != 0 || !strings.HasPrefix(w.last("/revoke").Form.Get("token"), "refresh-") {
		t.Errorf("after the logout: %d kept, %v", len(w.vault.values), w.server.RequestsTo("/revoke"))
	}
	// A pending login ends with it.
	if _, err := w.account.BeginLogin(context.Background(), false, func(context.Context) {}); err != nil {
		t.Fatal(err)
	}
	if err := w.account.Logout(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := w.keeper.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if p, _ := w.account.Progress(); p.Phase != Failed || p.Err != "it was cancelled" {
		t.Errorf("%+v", p)
	}
}

func TestRenewal(t *testing.T) {
	w := newWorld(t, Settings{})
	w.server.ChangeRules(func(r *mcptest.LoginRules) { r.Lifetime = 3600 })
	w.mustLogin()
	age := func(expires time.Duration) {
		c := *w.account.cred.Load()
		c.Obtained, c.Expires = time.Now().Add(-time.Hour), time.Now().Add(expires)
		w.account.cred.Store(&c)
	}
	if w.ask() != 200 || w.times("/token") != 1 {
		t.Fatal("a fresh token is renewed")
	}
	age(30 * time.Second)
	if w.ask() != 200 || w.times("/token") != 2 || w.last("/token").Form.Get("resource") != w.server.URL {
		t.Error("a token that is about to expire is not renewed, or not for its resource")
	}
	// While the token is valid, a temporary failure of the renewal does no harm. A permanent refusal ends the login.
	w.server.ChangeRules(func(r *mcptest.LoginRules) { r.TokenError = "temporarily_unavailable" })
	age(30 * time.Second)
	if w.ask() != 200 {
		t.Error("a good token is not used")
	}
	age(-time.Second)
	if _, err := w.account.Authorization(context.Background()); err == nil || w.account.NeedsLogin() {
		t.Errorf("an expired token, and no authorization server: %v", err)
	}
	w.server.ChangeRules(func(r *mcptest.LoginRules) { r.TokenError = "invalid_grant" })
	if w.ask() != 401 || !w.account.NeedsLogin() {
		t.Error("a login that has ended goes on")
	}
	for _, value := range w.vault.values {
		if strings.Contains(string(value), "access-") || strings.Contains(string(value), "refresh-") {
			t.Errorf("kept: %s", value)
		}
	}
}

// Many requests that are refused at the same time cause one renewal, which continues if the first caller disconnects.
func TestOneRenewal(t *testing.T) {
	w := newWorld(t, Settings{})
	w.mustLogin()
	c := *w.account.cred.Load()
	c.Obtained = time.Now().Add(-time.Hour)
	w.account.cred.Store(&c)
	w.server.ExpireTokens(false)
	arrived, release := make(chan struct{}), make(chan struct{})
	w.server.ChangeRules(func(r *mcptest.LoginRules) { r.Hold = func() { close(arrived); <-release } })

	first, leave := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if w.account.HandleRefusal(first, c.authorizationHeader(), 401, "Bearer") {
			t.Error("a canceled caller gets a new token")
		}
	})
	<-arrived
	leave()
	wg.Wait()
	for range 50 {
		wg.Go(func() {
			if !w.account.HandleRefusal(context.Background(), c.authorizationHeader(), 401, "Bearer") {
				t.Error("no new token")
			}
		})
	}
	close(release)
	wg.Wait()
	if n := w.times("/token"); n != 2 || w.ask() != 200 || w.account.NeedsLogin() {
		t.Errorf("%d tokens were asked for", n)
	}
}

// A server that rejects a new token does not get another one.
func TestNoEndlessRenewal(t *testing.T) {
	w := newWorld(t, Settings{})
	w.mustLogin()
	w.server.ExpireTokens(false)
	if w.ask() != 401 || w.times("/token") != 1 || !w.account.NeedsLogin() {
		t.Errorf("%d tokens were asked for", w.times("/token"))
	}
	if w.account.HandleRefusal(context.Background(), "", 403, `Bearer error="other"`) {
		t.Error("403 for another reason is taken for a challenge")
	}
}

// A login that the vault cannot store is valid until the process ends.
func TestVaultThatFails(t *testing.T) {
	w := newWorld(t, Settings{})
	w.vault.fail = true
	w.mustLogin()
	if w.ask() != 200 {
		t.Error("not logged in")
	}
}

// With a public callback, a login listens nowhere, and ends at the callback of the daemon: once, with its own state, and
// registered as a client on the web. A configured port still listens on this machine.
func TestPublicCallback(t *testing.T) {
	const public = "https://mcp.example.com/proxy/oauth/callback"
	w := newWorld(t, Settings{})
	w.keeper.opt.PublicCallback = func() string { return public }
	ask := func(method, query string) *httptest.ResponseRecorder {
		r := httptest.NewRecorder()
		w.keeper.ServeHTTP(r, httptest.NewRequest(method, "/oauth/callback?"+query, nil))
		return r
	}
	if r := ask(http.MethodGet, "state=&code=x"); r.Code != http.StatusBadRequest {
		t.Errorf("without a login: %d", r.Code)
	}
	done := make(chan struct{})
	begun, err := w.account.BeginLogin(t.Context(), false, func(context.Context) { close(done) })
	if err != nil {
		t.Fatal(err)
	}
	asked, err := url.Parse(begun.URL)
	if err != nil || asked.Query().Get("redirect_uri") != public {
		t.Fatalf("%s %v", begun.URL, err)
	}
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := browser.Get(begun.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	end, err := resp.Location()
	if err != nil || !strings.HasPrefix(end.String(), public+"?") {
		t.Fatalf("%v %v", end, err)
	}
	for name, query := range map[string]string{"no state": "code=x", "another state": "code=x&state=y", "two states": end.RawQuery + "&state=y"} {
		if r := ask(http.MethodGet, query); r.Code != http.StatusBadRequest {
			t.Errorf("%s: %d", name, r.Code)
		}
	}
	if r := ask(http.MethodPost, end.RawQuery); r.Code != http.StatusBadRequest {
		t.Errorf("POST: %d", r.Code)
	}
	if r := ask(http.MethodGet, end.RawQuery); r.Code != http.StatusOK {
		t.Errorf("%d %s", r.Code, r.Body)
	}
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("the login does not end")
	}
	if w.ask() != 200 || w.last("/register").Body["application_type"] != "web" || w.last("/token").Form.Get("redirect_uri") != public {
		t.Errorf("register: %v, token: %v", w.last("/register").Body, w.last("/token").Form)
	}
	redirect, l, err := w.account.openCallback(&Settings{RedirectPort: freePort(t)}, nil)
	if err != nil || l == nil || !strings.HasPrefix(redirect, "http://127.0.0.1:") {
		t.Fatalf("with redirect_port: %s %v", redirect, err)
	}
	closeCallback(l)
}

// freePort returns a port that no program uses.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
