package oauth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"mcpproxy/internal/mcp"
)

// loginTimeout is the time limit for a user, and for a state parameter.
const loginTimeout = 10 * time.Minute

// LoginPhase is the phase of a login.
type LoginPhase string

// The phases.
const (
	Waiting LoginPhase = "waiting" // for the user
	Done    LoginPhase = "done"
	Failed  LoginPhase = "failed"
)

// LoginProgress is the progress of a login.
type LoginProgress struct {
	Phase   LoginPhase
	URL     string // for the user's browser
	Code    string // user code of the device flow, which the user enters at URL; "" if there is none
	Expires time.Time
	Err     string // why it failed
	Issuer  string // the authorization server
	Before  string // the authorization server of the login before, if it was another one
}

// pendingLogin is one user login, from the URL to the token.
type pendingLogin struct {
	LoginProgress // Account.mu guards Phase and Err

	redirect  string
	state     string
	verifier  string
	discovery *discoveryResult
	issued    credential // the credential before there is a token
	scopes    []string
	device    *deviceAuthorization // nil: the user's browser comes back to the callback
	answers   chan url.Values      // cap 1: the authorization response
	cancel    context.CancelFunc
	ended     chan struct{} // closed when the login has ended
}

// requestedScopes returns the configured scopes, else those of the challenge, else all
// supported ones; and always those granted before, so that a step-up loses none.
func requestedScopes(s *Settings, asked bearerChallenge, d *discoveryResult, known *credential) []string {
	var all []string
	if known != nil && known.Issuer == d.as.Issuer {
		all = slices.Clone(known.Scopes)
	}
	switch challenged := strings.Fields(asked.scope); {
	case len(s.Scopes) > 0:
		all = append(append(all, s.Scopes...), challenged...)
	case len(challenged) > 0:
		all = append(all, challenged...)
	default:
		all = append(all, d.scopes...)
	}
	if slices.Contains(d.as.Scopes, "offline_access") {
		all = append(all, "offline_access")
	}
	var once []string
	for _, scope := range all {
		if !slices.Contains(once, scope) {
			once = append(once, scope)
		}
	}
	return once
}

func (l *pendingLogin) authorizationURL() string {
	u, err := url.Parse(l.discovery.as.Authorization) // checkEndpoints has parsed it
	if err != nil {
		return ""
	}
	sum := sha256.Sum256([]byte(l.verifier))
	q := u.Query()
	q.Set("response_type", "code")
	q.Set("client_id", l.issued.Client.ID)
	q.Set("redirect_uri", l.redirect)
	q.Set("state", l.state)
	q.Set("code_challenge", base64.RawURLEncoding.EncodeToString(sum[:]))
	q.Set("code_challenge_method", "S256")
	q.Set("resource", l.discovery.resource)
	if len(l.scopes) > 0 {
		q.Set("scope", strings.Join(l.scopes, " "))
	}
	if slices.Contains(l.scopes, "offline_access") {
		q.Set("prompt", "consent") // OpenID Connect requires it for a refresh token
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// listenCallback opens the callback: at the configured port, else at the registered one,
// else at a free one.
func listenCallback(s *Settings, known *credential) (net.Listener, error) {
	if s.RedirectPort != 0 {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(s.RedirectPort)))
		if err != nil {
			return nil, fmt.Errorf("the port of oauth.redirect_port cannot be used: %w", err)
		}
		return l, nil
	}
	if known != nil {
		if u, err := url.Parse(known.Client.Redirect); err == nil && u.Hostname() == "127.0.0.1" {
			if l, err := net.Listen("tcp", u.Host); err == nil {
				return l, nil
			}
		}
	}
	return net.Listen("tcp", "127.0.0.1:0")
}

// probeChallenge sends a request without a token to get the challenge. A server without
// one may still have metadata.
func (w *webClient) probeChallenge(ctx context.Context, server *url.URL) bearerChallenge {
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + mcp.Legacy + `","capabilities":{},"clientInfo":{"name":"mcpproxy","version":"1"}}}`
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.String(), strings.NewReader(hello))
	if err != nil {
		return bearerChallenge{}
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("User-Agent", w.agent)
	resp, err := w.http.Do(r)
	if err != nil {
		return bearerChallenge{}
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden {
		return bearerChallenge{}
	}
	return parseChallenge(strings.Join(resp.Header.Values("WWW-Authenticate"), ", "))
}

// Bounds of the callback.
const (
	maxCallbackHeader = 64 << 10
	callbackTimeout   = 10 * time.Second
)

// newCallbackHandler returns a handler that accepts the authorization response from the user's browser, once and only
// if its state parameter matches. It rejects other requests without effect, because any web page can send them.
func (l *pendingLogin) newCallbackHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.answerCallback(w, r, r.URL.Path == "/callback" && "http://"+r.Host+"/callback" == l.redirect)
	})
}

// answerCallback answers a request at the callback. own reports whether it arrived at the address of the login.
func (l *pendingLogin) answerCallback(w http.ResponseWriter, r *http.Request, own bool) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	q := r.URL.Query()
	status, title, text := http.StatusBadRequest, "This is not the login that MCPProxy waits for.", "Start it again with <code>mcpproxy login</code>."
	if own && r.Method == http.MethodGet && l.matchesResponse(q) {
		select {
		case l.answers <- q:
			status, title, text = http.StatusOK, "MCPProxy has your answer.", "You can close this page. MCPProxy shows the result where you started the login."
		default:
			title = "This login has been used already."
		}
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, callbackPage(title, text))
}

// matchesResponse reports whether the response belongs to the login, with each parameter once.
func (l *pendingLogin) matchesResponse(q url.Values) bool {
	for _, values := range q {
		if len(values) != 1 {
			return false
		}
	}
	return subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(l.state)) == 1
}

func callbackPage(title, text string) string {
	return `<!doctype html><html lang="en"><meta charset="utf-8"><title>MCPProxy</title>` +
		`<body style="font-family:system-ui,sans-serif;max-width:36rem;margin:4rem auto;padding:0 1rem"><h1 style="font-size:1.3rem">` +
		title + `</h1><p>` + text + `</p></body></html>`
}

// checkResponseIssuer checks that the response is from the expected authorization server (RFC 9207), by exact
// comparison.
func checkResponseIssuer(q url.Values, as *authServerMetadata) error {
	iss, given := q.Get("iss"), q.Has("iss")
	switch {
	case !given && as.IssParameter:
		return errors.New("the answer does not name its authorization server, although that server declares that it does")
	case given && iss != as.Issuer:
		return errors.New("the answer is from another authorization server than the one that was asked")
	}
	return nil
}
