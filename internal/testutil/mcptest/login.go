package mcptest

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// LoginServer is an MCP server with a login and its authorization server, on one port. /mcp requires the login.
// /authorize, /token, /register and /revoke are the authorization server. It issues numbered codes and tokens.
type LoginServer struct {
	URL string // of the MCP endpoint

	server *httptest.Server
	inner  http.Handler

	mu sync.Mutex // guards the fields below
	// documents override members of the metadata at a path.
	documents map[string]map[string]any
	asked     []AuthRequest
	codes     map[string]url.Values // by code: the query of its authorization
	tokens    map[string]string     // by access token: its scope
	refresh   map[string]string     // by refresh token: its scope
	number    int

	rules LoginRules
}

// LoginRules configure the authorization server.
type LoginRules struct {
	Scope      string // scope that a request requires; "" accepts any token
	Lifetime   int    // lifetime of tokens in seconds; 0 omits it
	NoRefresh  bool
	Iss        string // issuer in the response: "" omits it, "own", or any text
	Deny       string // error of every authorization response
	TokenError string // error of every token request
	Secret     string // a registered client gets this secret
	Hold       func() // called before a token is issued
}

// AuthRequest is a request to the authorization server.
type AuthRequest struct {
	Path  string
	Form  url.Values // of the body, or the query
	Body  map[string]any
	Basic string // id:secret
}

// StartLoginServer serves inner behind a login.
func StartLoginServer(t testing.TB, inner http.Handler) *LoginServer {
	t.Helper()
	l := &LoginServer{inner: inner, documents: map[string]map[string]any{}, codes: map[string]url.Values{},
		tokens: map[string]string{}, refresh: map[string]string{}}
	l.server = httptest.NewServer(l)
	t.Cleanup(l.server.Close)
	l.URL = l.server.URL + "/mcp"
	l.documents["/.well-known/oauth-protected-resource/mcp"] = map[string]any{
		"resource": l.URL, "authorization_servers": []string{l.server.URL + "/as"}, "scopes_supported": []string{"read"},
	}
	l.documents["/.well-known/oauth-authorization-server/as"] = map[string]any{
		"issuer": l.server.URL + "/as", "authorization_endpoint": l.server.URL + "/authorize", "token_endpoint": l.server.URL + "/token",
		"registration_endpoint": l.server.URL + "/register", "revocation_endpoint": l.server.URL + "/revoke",
		"code_challenge_methods_supported": []string{"S256"},
	}
	return l
}

// BaseURL returns the origin.
func (l *LoginServer) BaseURL() string { return l.server.URL }

// ChangeRules changes the rules.
func (l *LoginServer) ChangeRules(change func(*LoginRules)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.rules)
}

// ChangeMetadata changes members of the metadata at a path; nil removes one.
func (l *LoginServer) ChangeMetadata(path string, members map[string]any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	doc := map[string]any{}
	for name, value := range l.documents[path] {
		doc[name] = value
	}
	for name, value := range members {
		if doc[name] = value; value == nil {
			delete(doc, name)
		}
	}
	l.documents[path] = doc
}

// MoveMetadata moves the metadata at one path to another; "" removes it.
func (l *LoginServer) MoveMetadata(from, to string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	doc := l.documents[from]
	delete(l.documents, from)
	if to != "" {
		l.documents[to] = doc
	}
}

// RequestsTo returns the requests to a path so far.
func (l *LoginServer) RequestsTo(path string) []AuthRequest {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []AuthRequest
	for _, a := range l.asked {
		if a.Path == path {
			found = append(found, a)
		}
	}
	return found
}

// ExpireTokens invalidates all access tokens, and optionally the refresh tokens.
func (l *LoginServer) ExpireTokens(refresh bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.tokens)
	if refresh {
		clear(l.refresh)
	}
}

// ServeHTTP implements http.Handler.
func (l *LoginServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/mcp" {
		l.requireToken(w, r)
		return
	}
	l.mu.Lock()
	doc, there := l.documents[r.URL.Path]
	rules := l.rules
	l.mu.Unlock()
	switch {
	case there:
		writeJSON(w, http.StatusOK, doc)
		return
	case r.URL.Path == "/token" && rules.Hold != nil:
		rules.Hold()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	a := parseAuthRequest(r)
	switch r.URL.Path {
	case "/authorize":
		l.asked = append(l.asked, a)
		l.handleAuthorize(w, r, a.Form)
	case "/token":
		l.asked = append(l.asked, a)
		l.handleToken(w, a.Form)
	case "/register":
		l.asked = append(l.asked, a)
		l.number++
		client := map[string]any{"client_id": fmt.Sprint("client-", l.number)}
		if l.rules.Secret != "" {
			client["client_secret"] = l.rules.Secret
		}
		writeJSON(w, http.StatusCreated, client)
	case "/revoke":
		l.asked = append(l.asked, a)
	default:
		http.NotFound(w, r)
	}
}

func parseAuthRequest(r *http.Request) AuthRequest {
	a := AuthRequest{Path: r.URL.Path, Form: r.URL.Query()}
	if id, secret, ok := r.BasicAuth(); ok {
		a.Basic = id + ":" + secret
	}
	if r.Header.Get("Content-Type") == "application/json" {
		_ = json.NewDecoder(r.Body).Decode(&a.Body)
	} else if r.ParseForm() == nil && r.Method == http.MethodPost {
		a.Form = r.PostForm
	}
	return a
}

// requireToken forwards requests with a valid token.
func (l *LoginServer) requireToken(w http.ResponseWriter, r *http.Request) {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	l.mu.Lock()
	scope, good := l.tokens[token]
	wanted := l.rules.Scope
	l.mu.Unlock()
	challenge := fmt.Sprintf(`Bearer resource_metadata="%s/.well-known/oauth-protected-resource/mcp"`, l.server.URL)
	if wanted != "" {
		challenge += fmt.Sprintf(`, scope="%s"`, wanted)
	}
	switch {
	case !good:
		w.Header().Set("WWW-Authenticate", challenge)
		w.WriteHeader(http.StatusUnauthorized)
	case wanted != "" && !strings.Contains(" "+scope+" ", " "+wanted+" "):
		w.Header().Set("WWW-Authenticate", challenge+`, error="insufficient_scope"`)
		w.WriteHeader(http.StatusForbidden)
	default:
		l.inner.ServeHTTP(w, r)
	}
}

func (l *LoginServer) handleAuthorize(w http.ResponseWriter, r *http.Request, q url.Values) {
	l.number++
	code := fmt.Sprint("code-", l.number)
	l.codes[code] = q
	answer := url.Values{"state": {q.Get("state")}}
	switch l.rules.Iss {
	case "":
	case "own":
		answer.Set("iss", l.server.URL+"/as")
	default:
		answer.Set("iss", l.rules.Iss)
	}
	if l.rules.Deny != "" {
		answer.Set("error", l.rules.Deny)
	} else {
		answer.Set("code", code)
	}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+answer.Encode(), http.StatusFound)
}

func (l *LoginServer) handleToken(w http.ResponseWriter, f url.Values) {
	scope, good := "", false
	switch f.Get("grant_type") {
	case "authorization_code":
		q, there := l.codes[f.Get("code")]
		delete(l.codes, f.Get("code"))
		sum := sha256.Sum256([]byte(f.Get("code_verifier")))
		scope = q.Get("scope")
		good = there && q.Get("code_challenge") == base64.RawURLEncoding.EncodeToString(sum[:]) && q.Get("redirect_uri") == f.Get("redirect_uri")
	case "refresh_token":
		scope, good = l.refresh[f.Get("refresh_token")]
		delete(l.refresh, f.Get("refresh_token"))
	}
	if l.rules.TokenError != "" || !good {
		code := l.rules.TokenError
		if code == "" {
			code = "invalid_grant"
		}
		writeJSON(w, http.StatusBadRequest, map[string]any{"error": code})
		return
	}
	l.number++
	access := fmt.Sprint("access-", l.number)
	l.tokens[access] = scope
	answer := map[string]any{"access_token": access, "token_type": "bearer"}
	if !l.rules.NoRefresh {
		again := fmt.Sprint("refresh-", l.number)
		l.refresh[again] = scope
		answer["refresh_token"] = again
	}
	if l.rules.Lifetime > 0 {
		answer["expires_in"] = l.rules.Lifetime
	}
	writeJSON(w, http.StatusOK, answer)
}

func writeJSON(w http.ResponseWriter, status int, body map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
