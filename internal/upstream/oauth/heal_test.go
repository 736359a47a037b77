package oauth

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpproxy/internal/testutil/authtest"
	"mcpproxy/internal/testutil/mcptest"
)

// providerWorld is a world with an authorization server that others wrote.
func providerWorld(t *testing.T, vault *memory, p *authtest.Provider, s *authtest.Resource) *world {
	t.Helper()
	return worldOf(t, &mcptest.LoginServer{URL: s.URL}, vault, Settings{})
}

func nothing(http.ResponseWriter, *http.Request) {}

// Two processes share a store and a refresh token that is valid once. Both continue with the new login.
func TestTwoProcessesRenew(t *testing.T) {
	p := authtest.StartProvider(t)
	s := authtest.StartResource(t, p, http.HandlerFunc(nothing))
	vault := &memory{}
	one := providerWorld(t, vault, p, s)
	one.mustLogin()
	two := providerWorld(t, vault, p, s)
	if one.ask() != 200 || two.ask() != 200 {
		t.Fatal("one of them is not logged in")
	}
	for round := range 5 {
		for _, w := range []*world{one, two} { // both believe that the token is old
			c := *w.account.cred.Load()
			c.Obtained = time.Now().Add(-time.Hour)
			w.account.cred.Store(&c)
		}
		s.ExpireTokens()
		var both sync.WaitGroup
		for _, w := range []*world{one, two} {
			both.Go(func() {
				if status := w.ask(); status != 200 {
					t.Errorf("round %d: status %d, %+v", round, status, w.account.Status())
				}
			})
		}
		both.Wait()
	}
}

// A login from the future, because the clock was set back, is renewed when the server rejects it.
func TestClockSetBack(t *testing.T) {
	p := authtest.StartProvider(t)
	s := authtest.StartResource(t, p, http.HandlerFunc(nothing))
	w := providerWorld(t, &memory{}, p, s)
	w.mustLogin()
	if w.ask() != 200 {
		t.Fatal("not logged in")
	}
	c := *w.account.cred.Load()
	c.Obtained, c.Expires = time.Now().Add(time.Hour), time.Now().Add(2*time.Hour)
	w.account.cred.Store(&c)
	s.ExpireTokens()
	if w.ask() != 200 || w.account.NeedsLogin() {
		t.Errorf("status %+v", w.account.Status())
	}
}

// A server whose clock is behind rejects a new token for a moment. A server that rejects every token causes no loop.
func TestFreshTokenRejected(t *testing.T) {
	p := authtest.StartProvider(t)
	s := authtest.StartResource(t, p, http.HandlerFunc(nothing))
	w := providerWorld(t, &memory{}, p, s)
	w.mustLogin()
	s.Reject(1)
	if w.ask() != 200 || w.account.NeedsLogin() {
		t.Errorf("status %+v", w.account.Status())
	}
	s.Reject(-1)
	before := p.Requests("/oauth/token")
	for range 5 {
		if w.ask() != 401 || w.account.Status().Reason != reasonRejected {
			t.Errorf("status %+v", w.account.Status())
		}
	}
	if n := p.Requests("/oauth/token") - before; n > 1 {
		t.Errorf("%d renewals", n)
	}
	s.Reject(0)
	if w.ask() != 200 || w.account.NeedsLogin() {
		t.Errorf("after it accepts the token again: %+v", w.account.Status())
	}
}

// An authorization server that no longer knows the client shows an error page to the user. So it is asked first, and
// the client is registered again.
func TestForgottenClientIsRegisteredAgain(t *testing.T) {
	for _, headless := range []bool{false, true} {
		p := authtest.StartProvider(t)
		s := authtest.StartResource(t, p, http.HandlerFunc(nothing))
		vault := &memory{}
		w := providerWorld(t, vault, p, s)
		if _, err := w.account.BeginLogin(t.Context(), headless, func(context.Context) {}); err != nil {
			t.Fatal(err)
		}
		w.account.cancelLogin()
		p.ForgetClients()
		again := providerWorld(t, vault, p, s)
		begun, err := again.account.BeginLogin(t.Context(), headless, func(context.Context) {})
		if err != nil {
			t.Fatal(err)
		}
		authtest.Browse(t, begun.URL) // fails if the page rejects the client
		if n := p.Requests("/register"); n != 2 {
			t.Errorf("%d registrations", n)
		}
	}
}

// Documents and answers that are web pages.
func TestWebPages(t *testing.T) {
	page := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte("<html>secret-of-the-page</html>"))
	}
	p := authtest.StartProvider(t)
	s := authtest.StartResource(t, p, http.HandlerFunc(nothing))
	w := providerWorld(t, &memory{}, p, s)
	p.SetFault(page) // a site that returns its start page for every path
	if err := w.login(); err == nil || !strings.Contains(err.Error(), "publishes no metadata") || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
	p.SetFault(nil)
	w.mustLogin()
	if w.ask() != 200 {
		t.Fatal("not logged in")
	}
	for _, status := range []int{200, 400, 403, 502} {
		p.SetFault(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(status)
			_, _ = w.Write([]byte("secret-of-the-page"))
		})
		c := *w.account.cred.Load()
		c.Expires = time.Now().Add(-time.Minute)
		w.account.cred.Store(&c)
		_, err := w.account.Authorization(t.Context())
		if err == nil || strings.Contains(err.Error(), "secret") || w.account.Status().State != LoginRetrying {
			t.Errorf("status %d: %v, %+v", status, err, w.account.Status())
		}
	}
	p.SetFault(nil)
	if _, err := w.account.Authorization(t.Context()); err != nil || w.account.Status() != (LoginStatus{}) {
		t.Errorf("after it answers again: %v, %+v", err, w.account.Status())
	}
}

// The events of a login name what has happened, once.
func TestLoginEvents(t *testing.T) {
	p := authtest.StartProvider(t)
	s := authtest.StartResource(t, p, http.HandlerFunc(nothing))
	w := providerWorld(t, &memory{}, p, s)
	var mu sync.Mutex
	var got []LoginEvent
	w.keeper.opt.Notify = func(server string, e LoginEvent) {
		mu.Lock()
		defer mu.Unlock()
		if e != EventChanged {
			got = append(got, e)
		}
	}
	for range 3 {
		w.ask()
		w.keeper.RequestLogin("s") // an agent asks
	}
	p.Stop()
	if err := w.login(); err == nil {
		t.Error("a login without its provider")
	}
	p.Continue()
	w.mustLogin()
	w.keeper.RequestLogin("s")
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(got, []LoginEvent{EventNeeded, EventFailed}) {
		t.Errorf("events %q", got)
	}
}

// AwaitLogin returns after a login, and after a renewal that it tries itself.
func TestAwaitLogin(t *testing.T) {
	p := authtest.StartProvider(t)
	s := authtest.StartResource(t, p, http.HandlerFunc(nothing))
	w := providerWorld(t, &memory{}, p, s)
	w.ask()
	done := make(chan error, 1)
	go func() { done <- w.keeper.AwaitLogin(t.Context(), "s") }()
	w.mustLogin()
	if err := <-done; err != nil || w.ask() != 200 {
		t.Errorf("after the login: %v", err)
	}
	p.Stop()
	s.ExpireTokens()
	if w.ask() != 401 || w.account.Status().State != LoginRetrying {
		t.Fatalf("%+v", w.account.Status())
	}
	go func() { done <- w.keeper.AwaitLogin(t.Context(), "s") }()
	p.Continue()
	if err := <-done; err != nil || w.ask() != 200 {
		t.Errorf("after the provider is back: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p.RevokeLogins()
	w.ask()
	if err := w.keeper.AwaitLogin(ctx, "s"); err == nil {
		t.Error("it does not end with its caller")
	}
	if err := w.keeper.AwaitLogin(t.Context(), "none"); err == nil {
		t.Error("a server without a login is waited for")
	}
}

// A pasted address completes the login only if it is its answer.
func TestPastedAnswer(t *testing.T) {
	w := newWorld(t, Settings{})
	if err := w.account.CompleteLogin("http://127.0.0.1/callback"); err == nil {
		t.Error("no login is in progress")
	}
	begun, err := w.account.BeginLogin(t.Context(), true, func(context.Context) {})
	if err != nil || begun.Code != "" {
		t.Fatalf("%+v %v", begun, err)
	}
	end := authtest.Browse(t, begun.URL)
	u, err := url.Parse(end)
	if err != nil {
		t.Fatal(err)
	}
	state := u.Query().Get("state")
	for _, bad := range []string{"", "x", strings.Replace(end, state, state+"x", 1), strings.Replace(end, "/callback", "/", 1), strings.Replace(end, "127.0.0.1", "localhost", 1),
		end + "&state=" + state, strings.Replace(end, "http:", "https:", 1), end + strings.Repeat("x", maxCallbackHeader)} {
		if err := w.account.CompleteLogin(bad); err == nil || strings.Contains(err.Error(), state) {
			t.Errorf("%.100q: %v", bad, err)
		}
	}
	if err := w.account.CompleteLogin(" " + strings.TrimPrefix(end, "http://") + "\n"); err != nil {
		t.Fatal(err)
	}
	<-w.account.login.ended
	if p, _ := w.account.Progress(); p.Phase != Done || w.ask() != 200 {
		t.Errorf("%+v", p)
	}
}

// Hostile answers to the device authorization request.
func TestHostileDeviceAuthorization(t *testing.T) {
	for _, field := range []string{"verification_uri", "verification_uri_complete"} {
		for _, address := range hostile() {
			if address == "" && field != "verification_uri" || strings.Contains(address, "#") { // a page may have a fragment
				continue
			}
			w := newWorld(t, Settings{})
			w.server.ChangeMetadata("/.well-known/oauth-authorization-server/as", map[string]any{"device_authorization_endpoint": w.server.BaseURL() + "/device"})
			answer := map[string]any{"device_code": "d", "user_code": "ABCD", "verification_uri": w.server.BaseURL() + "/page", "expires_in": 60}
			answer[field] = address
			w.server.ChangeMetadata("/device", answer)
			if p, err := w.account.BeginLogin(t.Context(), true, func(context.Context) {}); err == nil {
				t.Errorf("%s %q: the user is sent to %s", field, address, p.URL)
			}
			w.account.cancelLogin()
		}
	}
	for _, code := range []string{"", "A\x1b[31m", strings.Repeat("x", maxUserCode+1), "ü"} {
		w := newWorld(t, Settings{})
		w.server.ChangeMetadata("/.well-known/oauth-authorization-server/as", map[string]any{"device_authorization_endpoint": w.server.BaseURL() + "/device"})
		w.server.ChangeMetadata("/device", map[string]any{"device_code": "d", "user_code": code, "verification_uri": w.server.BaseURL() + "/page"})
		if p, err := w.account.BeginLogin(t.Context(), true, func(context.Context) {}); err == nil {
			t.Errorf("the user code %q is shown: %+v", code, p)
		}
		w.account.cancelLogin()
	}
}
