package auth_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mcpproxy/internal/config/auth"
)

// TestCodes checks that a code is valid once, within a minute, for the first caller.
func TestCodes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s auth.WebUISignIns
		late, used := s.IssueSignInCode(), s.IssueSignInCode()
		if len(late.Text) < 26 || late.Text == used.Text || late.ID == late.Text || time.Until(late.Expires) != time.Minute {
			t.Errorf("%+v", late)
		}
		time.Sleep(time.Minute - 1)
		if is, known := s.IsCodeUsed(used.ID); is || !known {
			t.Error("a code is reported as used before its use")
		}
		if !s.RedeemCode(used.Text) || s.RedeemCode(used.Text) || s.RedeemCode(used.ID) || s.RedeemCode("") {
			t.Error("a code is not valid exactly once")
		}
		if is, known := s.IsCodeUsed(used.ID); !is || !known {
			t.Error("a code is not reported as used after its use")
		}
		time.Sleep(time.Nanosecond)
		if s.RedeemCode(late.Text) {
			t.Error("a code is valid after its minute")
		}
		if _, known := s.IsCodeUsed(used.ID); known {
			t.Error("a code is known after its minute")
		}
	})
}

func TestCodeIsUsedOnceAtOnce(t *testing.T) {
	t.Parallel()
	for range 50 {
		var s auth.WebUISignIns
		var good atomic.Int32
		var all sync.WaitGroup
		c := s.IssueSignInCode()
		for range 16 {
			all.Go(func() {
				if s.RedeemCode(c.Text) {
					good.Add(1)
				}
			})
		}
		if all.Wait(); good.Load() != 1 {
			t.Fatalf("%d of 16 callers redeemed one code", good.Load())
		}
	}
}

func TestCodesAndSessionsAreBounded(t *testing.T) {
	t.Parallel()
	var s auth.WebUISignIns
	codes := []auth.IssuedSignInCode{}
	for range 17 {
		codes = append(codes, s.IssueSignInCode())
	}
	if s.RedeemCode(codes[0].Text) || !s.RedeemCode(codes[1].Text) || !s.RedeemCode(codes[16].Text) {
		t.Error("not exactly the oldest code was dropped")
	}
	sessions := []auth.IssuedWebUISession{}
	for range 65 {
		sessions = append(sessions, s.OpenSession(nil))
	}
	for i, want := range map[int]bool{0: false, 1: true, 64: true} {
		if _, ok := s.SessionExpiry(sessions[i].Value, []string{sessions[i].Cookie}); ok != want {
			t.Errorf("session %d: valid %v", i, ok)
		}
	}
	s.SignOutEverywhere()
}

// TestSessionsEnd checks that a session ends when it is not used for 12 hours, after 7 days, by Sign out and by Sign
// out everywhere, and that its requests end with it.
func TestSessionsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s auth.WebUISignIns
		use := func(of auth.IssuedWebUISession) (context.Context, bool) {
			ctx, done, ok := s.BindRequestToSession(t.Context(), of.Value, []string{of.Cookie})
			t.Cleanup(done)
			return ctx, ok
		}
		idle, busy := s.OpenSession(nil), s.OpenSession(nil)
		if time.Until(idle.Expires) != 12*time.Hour {
			t.Errorf("a new session expires at %v", idle.Expires)
		}
		stream, _ := use(idle)
		for i := range 13 {
			time.Sleep(12*time.Hour - 1)
			if _, ok := use(busy); !ok {
				t.Fatalf("a session ended after %d uses", i)
			}
			if i == 0 && stream.Err() != nil {
				t.Error("a request ended before its session")
			}
		}
		if _, ok := use(idle); ok || !errors.Is(context.Cause(stream), auth.ErrSignedOut) {
			t.Errorf("an idle session: valid %v, cause %v", ok, context.Cause(stream))
		}
		stream, _ = use(busy)
		at, _ := s.SessionExpiry(busy.Value, []string{busy.Cookie})
		if left := time.Until(at); left > 12*time.Hour {
			t.Errorf("remaining lifetime: %v", left)
		}
		time.Sleep(time.Until(at))
		synctest.Wait()
		if _, ok := use(busy); ok || stream.Err() == nil {
			t.Error("a session lasts longer than 7 days")
		}

		here, too, there := s.OpenSession(nil), auth.IssuedWebUISession{}, s.OpenSession(nil)
		too = s.OpenSession([]string{"x", here.Cookie})
		streams := map[auth.IssuedWebUISession]context.Context{}
		for _, one := range []auth.IssuedWebUISession{here, too, there} {
			streams[one], _ = use(one)
		}
		if n := s.SignOutBrowser(here.Value, []string{there.Cookie}); n != 0 {
			t.Errorf("%d sessions ended without their cookie", n)
		}
		if n := s.SignOutBrowser(here.Value, []string{here.Cookie}); n != 2 || streams[here].Err() == nil || streams[too].Err() == nil || streams[there].Err() != nil {
			t.Errorf("Sign out ended %d sessions, or the wrong ones", n)
		}
		code := s.IssueSignInCode()
		if n := s.SignOutEverywhere(); n != 1 || streams[there].Err() == nil || s.RedeemCode(code.Text) {
			t.Errorf("Sign out everywhere ended %d sessions, or not everything", n)
		}
	})
}

func TestWrongAttemptsExpire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s auth.WebUISignIns
		for range 1000 {
			s.CountWrongAttempt()
		}
		if !s.HasTooManyWrongAttempts() {
			t.Error("1,000 wrong attempts are not too many")
		}
		time.Sleep(3 * time.Second)
		if s.HasTooManyWrongAttempts() {
			t.Error("no wrong attempt is forgiven")
		}
		if s.CountWrongAttempt(); !s.HasTooManyWrongAttempts() {
			t.Error("more than one wrong attempt is forgiven")
		}
		time.Sleep(time.Hour)
		for range 19 {
			s.CountWrongAttempt()
		}
		if s.HasTooManyWrongAttempts() {
			t.Error("19 wrong attempts are too many")
		}
	})
}

func TestOwnPage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		method, host, origin, site string
		want                       bool
	}{
		{"GET", "127.0.0.1:8080", "", "same-origin", true},
		{"HEAD", "127.0.0.1:8080", "", "same-origin", true},
		{"POST", "127.0.0.1:8080", "http://127.0.0.1:8080", "same-origin", true},
		{"GET", "127.0.0.1:8080", "http://127.0.0.1:8080", "same-origin", true},
		{"POST", "[::1]:8080", "http://[::1]:8080", "same-origin", true},
		{"POST", "proxy.example", "https://proxy.example", "same-origin", true}, // behind a TLS proxy
		{"POST", "127.0.0.1:8080", "", "same-origin", false},
		{"OPTIONS", "127.0.0.1:8080", "", "same-origin", false},
		{"GET", "127.0.0.1:8080", "", "", false},
		{"GET", "127.0.0.1:8080", "", "none", false},
		{"POST", "127.0.0.1:8080", "http://127.0.0.1:8080", "same-site", false},
		{"GET", "127.0.0.1:8080", "http://127.0.0.1:8081", "same-origin", false},
		{"GET", "127.0.0.1:8080", "null", "same-origin", false},
		{"POST", "127.0.0.1:8080", "http://localhost:8080", "same-origin", false},
		{"POST", "127.0.0.1:8080", "https://127.0.0.1:8080", "same-origin", false},
		{"POST", "localhost", "https://localhost", "same-origin", false},
		{"POST", "[::1]", "https://[::1]", "same-origin", false},
		{"POST", "proxy.example", "https://proxy.example:8443", "same-origin", false},
	} {
		r := httptest.NewRequest(c.method, "/", nil)
		r.Host = c.host
		for name, value := range map[string]string{"Origin": c.origin, "Sec-Fetch-Site": c.site} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		if why := auth.ForeignPageRefusal(r); (why == "") != c.want {
			t.Errorf("%+v: %q", c, why)
		}
		if r.URL.Scheme = "https"; strings.HasPrefix(c.origin, "https://") && c.origin == "https://"+c.host && auth.ForeignPageRefusal(r) != "" {
			t.Errorf("%+v: refused over TLS", c)
		}
		r.Header.Add("Sec-Fetch-Site", "same-origin")
		r.Header.Add("Origin", "http://"+c.host)
		if c.origin != "" && auth.ForeignPageRefusal(r) == "" {
			t.Errorf("%+v: a second Origin header is accepted", c)
		}
	}
}

// TestActorIgnoresSessions checks that Actor, which MCP uses, never makes an admin from a session of the web UI.
func TestActorIgnoresSessions(t *testing.T) {
	t.Parallel()
	a := auth.NewAuthenticator(key, nil)
	opened := a.SignIns.OpenSession(nil)
	r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
	r.Header.Set("Cookie", auth.SessionCookie+"="+opened.Cookie)
	r.Header.Set(auth.SessionHeader, opened.Value)
	if got := who(a, r); got.Kind != auth.Agent {
		t.Errorf("%+v", got)
	}
	if got, _, done := a.BindRequestToWebUISession(r); got.Kind != auth.Admin || !got.FromWebUI {
		t.Errorf("%+v", got)
	} else {
		done()
	}
	r.Header.Add(auth.SessionHeader, opened.Value)
	if got, _, done := a.BindRequestToWebUISession(r); got.Kind != auth.Nobody {
		t.Errorf("two session values identify %+v", got)
	} else {
		done()
	}
}
