package api

import (
	"context"
	"net/http"
	"time"

	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
)

// httpRequestInput is embedded in inputs that need the HTTP request of a web UI page.
type httpRequestInput struct{ r *http.Request }

func (p *httpRequestInput) setHTTPRequest(r *http.Request) { p.r = r }

// SignInInput contains the sign-in code or the API key.
type SignInInput struct {
	Code string `json:"code" maxLength:"64" doc:"A sign-in code from POST /session/codes. It can be used once."`
	Key  string `json:"key" maxLength:"512" doc:"The API key."`
	httpRequestInput
}

// UISession is the session of a web UI page. The response also sets the session cookie.
type UISession struct {
	Value     string    `json:"value,omitempty" doc:"The value that the page must send as X-MCPProxy-Session with each request. Only the response to the sign-in contains it."`
	ExpiresAt time.Time `json:"expires_at" doc:"The time at which the session ends. Each use extends it."`
	cookie    *http.Cookie
}

func (s UISession) cookies() []*http.Cookie {
	if s.cookie == nil {
		return nil
	}
	return []*http.Cookie{s.cookie}
}

// sessionCookie returns the session cookie for the page that sent the request. Browsers send it to all servers on the
// host: see auth.SessionCookie. It has the Secure attribute only over TLS, which the loopback address usually lacks.
func sessionCookie(d *Deps, r *http.Request, value string, maxAge int) *http.Cookie {
	path := Prefix
	if d.PublicPath != nil {
		path = d.PublicPath(r.Host) + Prefix
	}
	return &http.Cookie{Name: auth.SessionCookie, Value: value, Path: path, MaxAge: maxAge, Secure: auth.IsSecure(r), HttpOnly: true, SameSite: http.SameSiteStrictMode}
}

// foreignPageError returns the error for a request that does not come from a page of this server.
func foreignPageError(why string) error {
	return problem.New(problem.Forbidden, "The request does not come from a page of this address: "+why+".",
		"A session of the web UI is valid only for its own page, on the loopback address or over https. A program sends the key.")
}

func signIn(d *Deps, ctx context.Context, c ops.Caller, in SignInInput) (UISession, error) {
	if why := auth.ForeignPageRefusal(in.r); why != "" {
		return UISession{}, foreignPageError(why)
	}
	if (in.Code == "") == (in.Key == "") {
		return UISession{}, problem.New(problem.InvalidParameter, "Either 'code' or 'key' is required.",
			`Send {"code": "…"} with what `+"`mcpproxy ui`"+` has made, or {"key": "…"} with the API key.`).With("parameter", "code")
	}
	if refused := checkSignIn(d, in); refused != nil {
		c.Actor = auth.Actor{} // no actor, because the credential is wrong
		d.Refuse(ctx, gate.SurfaceRefusal{Caller: c, Problem: refused})
		return UISession{}, refused
	}
	_, cookies := auth.SessionCredentials(in.r)
	opened := d.Auth.SignIns.OpenSession(cookies)
	return UISession{Value: opened.Value, ExpiresAt: opened.Expires.UTC(), cookie: sessionCookie(d, in.r, opened.Cookie, 0)}, nil
}

// checkSignIn returns nil if the code or key is valid, otherwise the reason.
func checkSignIn(d *Deps, in SignInInput) *problem.Problem {
	signIns := &d.Auth.SignIns
	tooMany := signIns.HasTooManyWrongAttempts()
	if in.Code != "" && signIns.RedeemCode(in.Code) || in.Key != "" && !tooMany && d.Auth.IsAPIKey(in.Key) {
		return nil
	}
	signIns.CountWrongAttempt()
	switch {
	case tooMany:
		return problem.New(problem.Overloaded, "Too many invalid keys and codes were tried.", "Wait for a few seconds, or run `mcpproxy ui`, whose code is always accepted.")
	case in.Code != "":
		return problem.New(problem.Unauthorized, "The code is invalid or has expired. It works once, within a minute.", "Run `mcpproxy ui` again.")
	}
	return problem.New(problem.Unauthorized, "The key is wrong.", "It is in the file api_key of the data directory, if the configuration has no api_key. `mcpproxy ui` does not need it.")
}

// PageRequestInput is the input of an operation that only needs the HTTP request of a page.
type PageRequestInput struct{ httpRequestInput }

func getSession(d *Deps, _ context.Context, _ ops.Caller, in PageRequestInput) (UISession, error) {
	expires, ok := d.Auth.SignIns.SessionExpiry(auth.SessionCredentials(in.r))
	if !ok {
		return UISession{}, problem.New(problem.Unauthorized, "The request has no session of the web UI.", "A page gets one with POST "+Prefix+"/session; programs need none.")
	}
	return UISession{ExpiresAt: expires.UTC()}, nil
}

// SignOutInput selects the sessions to end.
type SignOutInput struct {
	Everywhere bool `query:"everywhere" doc:"Whether to end all sessions of the web UI and all sign-in codes. Default: only the sessions of this browser."`
	httpRequestInput
}

// SignedOut counts the ended sessions.
type SignedOut struct {
	Sessions int `json:"sessions" doc:"The number of ended sessions."`
	cookie   *http.Cookie
}

// cookies returns a cookie that deletes the session cookie.
func (s SignedOut) cookies() []*http.Cookie { return []*http.Cookie{s.cookie} }

func signOut(d *Deps, _ context.Context, _ ops.Caller, in SignOutInput) (SignedOut, error) {
	cookie := sessionCookie(d, in.r, "", -1)
	if in.Everywhere {
		return SignedOut{d.Auth.SignIns.SignOutEverywhere(), cookie}, nil
	}
	return SignedOut{d.Auth.SignIns.SignOutBrowser(auth.SessionCredentials(in.r)), cookie}, nil
}

// SignInCode is a one-time code that signs in a web UI page.
type SignInCode struct {
	Code      string    `json:"code" doc:"The sign-in code for POST /session. It can be used once."`
	ID        string    `json:"id" doc:"The id of the code for GET /session/codes/{id}, which reports whether the code was used."`
	ExpiresAt time.Time `json:"expires_at"`
}

func newCode(d *Deps, _ context.Context, _ ops.Caller, _ ops.Nothing) (SignInCode, error) {
	c := d.Auth.SignIns.IssueSignInCode()
	return SignInCode{c.Text, c.ID, c.Expires.UTC()}, nil
}

// CodeRef identifies a sign-in code.
type CodeRef struct {
	ID string `path:"id" doc:"The id of the code, not the code itself."`
}

// CodeState reports whether a sign-in code was used.
type CodeState struct {
	Used bool `json:"used"`
}

func getCodeState(d *Deps, _ context.Context, _ ops.Caller, in CodeRef) (CodeState, error) {
	used, known := d.Auth.SignIns.IsCodeUsed(in.ID)
	if !known {
		return CodeState{}, problem.New(problem.NotFound, "The code does not exist, or has expired after one minute.", "Create a new one with POST "+Prefix+"/session/codes.")
	}
	return CodeState{used}, nil
}
