// Package oauth is MCPProxy's OAuth 2.1 client for upstream servers: discovery, client registration, user login, tokens and
// their renewal.
//
// Files:
//   - oauth.go: Accounts and Account: the Authorization header of a server, renewal, logout.
//   - challenge.go: parses the WWW-Authenticate header.
//   - discover.go: finds the authorization server and its metadata.
//   - register.go: chooses or registers the client.
//   - login.go, login_account.go: a login of the user, from the URL to the token; device.go: with a device code.
//   - status.go: whether a login works, and calls that wait for it.
//   - token.go: requests to the token endpoint; credential.go: the issued tokens and client.
//   - web_client.go: the HTTP client and the check of URLs.
//   - settings.go: the configuration of a server.
//
// Guarantees:
//   - A token is sent only to the server it was issued for. A credential of one authorization server is never sent to another
//     one.
//   - A login uses PKCE with S256, a single-use state that expires after ten minutes, the resource parameter, and a compared
//     issuer.
//   - Concurrent requests that need a new token cause one renewal.
//   - Documents are fetched over https (http on this machine only) from addresses that are checked when they are dialed.
//   - Tokens are stored in the system keyring or encrypted, and never logged.
//
// It never opens a browser or starts a login automatically.
package oauth

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"mcpproxy/internal/mcp/dialpolicy"
	"mcpproxy/internal/problem"
)

// Vault stores the data of accounts by key. A missing value is nil.
type Vault interface {
	Load(ctx context.Context, key string) ([]byte, error)
	Save(ctx context.Context, key string, value []byte) error
	Delete(ctx context.Context, key string) error
}

// Options configure Accounts.
type Options struct {
	Vault   Vault
	Logger  *slog.Logger
	Version string // sent to authorization servers
	// PublicCallback returns the address of Accounts.ServeHTTP for the browsers of users, or "": then each login listens
	// on the loopback address. nil means "".
	PublicCallback func() string
	// Notify is called when a login has changed. It must not block. It may be nil.
	Notify func(server string, e LoginEvent)
}

// Accounts has the accounts at all servers.
type Accounts struct {
	opt Options
	wg  sync.WaitGroup // logins and renewals

	mu       sync.Mutex // guards the fields below
	accounts map[string]*Account
	closed   bool
}

// NewAccounts returns Accounts without an account.
func NewAccounts(opt Options) *Accounts {
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	return &Accounts{opt: opt, accounts: map[string]*Account{}}
}

// Configure sets the servers. An account stays while its server's name and URL do. An
// invalid URL has no account.
func (k *Accounts) Configure(targets []AccountTarget) {
	k.mu.Lock()
	defer k.mu.Unlock()
	next := make(map[string]*Account, len(targets))
	for _, t := range targets {
		a := k.accounts[t.Name]
		if a == nil || a.target.Load().URL != t.URL {
			if a = newAccount(k, t); a == nil {
				continue
			}
		}
		a.target.Store(&t)
		next[t.Name] = a
	}
	for name, a := range k.accounts {
		if next[name] != a {
			a.cancelLogin()
		}
	}
	k.accounts = next
}

// Account returns the account at the server of that name, or nil. A nil Accounts has no accounts.
func (k *Accounts) Account(server string) *Account {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.accounts[server]
}

// Close cancels all logins in progress.
func (k *Accounts) Close(ctx context.Context) error {
	k.mu.Lock()
	k.closed = true
	accounts := slices.Collect(maps.Values(k.accounts))
	k.mu.Unlock()
	for _, a := range accounts {
		a.cancelLogin()
	}
	done := make(chan struct{})
	go func() {
		k.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// addWorkUnlessClosed counts work that Close waits for, until wg.Done; after Close it counts nothing and returns
// false.
func (k *Accounts) addWorkUnlessClosed() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.closed {
		k.wg.Add(1)
	}
	return !k.closed
}

// Account is the account at one server. It is safe for concurrent use.
type Account struct {
	accounts *Accounts
	name     string
	resource *url.URL // without user, query and fragment
	target   atomic.Pointer[AccountTarget]

	loaded atomic.Bool
	cred   atomic.Pointer[credential]  // nil: not logged in; written with mu held
	status atomic.Pointer[LoginStatus] // nil: LoginWorks; written with mu held

	accepted atomic.Pointer[credential] // the last one that the server has accepted

	loginMu sync.Mutex // one login starts at a time

	renewal singleflight.Group // one at a time

	mu            sync.Mutex      // guards the fields below
	lastChallenge bearerChallenge // the last one that requires a login
	login         *pendingLogin   // the last one, or nil
	changed       chan struct{}   // closed and replaced when the status or the login changes
	neededAt      time.Time       // last EventNeeded
	forcedFor     *credential     // a fresh credential that was renewed because the server rejected it
	forcedAt      time.Time
	doubted       *credential // a fresh credential that the server has rejected
	doubtedAt     time.Time   // when it was first rejected

	vaultMu sync.Mutex // serializes access to the vault
}

func newAccount(k *Accounts, t AccountTarget) *Account {
	u, err := url.Parse(t.URL)
	if err != nil || u.Host == "" {
		return nil
	}
	resource := &url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	return &Account{accounts: k, name: t.Name, resource: resource, changed: make(chan struct{})}
}

// newWebClient returns a web client for one operation.
func (a *Account) newWebClient() *webClient {
	g := urlGuard{dialpolicy.Policy{Loopback: dialpolicy.IsLoopbackHost(a.resource.Hostname()), Private: a.target.Load().AllowPrivate}}
	return newWebClient(g, "mcpproxy/"+a.accounts.opt.Version)
}

// vaultKey returns the vault key of the account.
func (a *Account) vaultKey() string { return a.name + " " + a.resource.String() }

// Times of a token.
const (
	renewalTimeout = 20 * time.Second // limit of a renewal
	minTokenAge    = 10 * time.Second // a younger token is not renewed when it is rejected
	freshPause     = time.Second      // until a younger token is sent again: clocks of servers differ
	otherRenewal   = time.Second      // for another process to store the result of its renewal
)

// Authorization returns the Authorization header for the server, or "" if there is no login. It first renews a token
// that is about to expire.
func (a *Account) Authorization(ctx context.Context) (string, error) {
	if !a.loaded.Load() {
		a.loadOnce(ctx)
	}
	c := a.cred.Load()
	if c == nil {
		return "", nil
	}
	if c.Expires.IsZero() || c.Refresh == "" || time.Until(c.Expires) > c.renewalMargin() {
		return c.authorizationHeader(), nil
	}
	fresh, err := a.renewOnce(ctx, c)
	switch {
	case err == nil:
		return fresh.authorizationHeader(), nil
	case a.cred.Load() == nil:
		return "", nil // expired: the server answers with a new challenge
	case time.Now().Before(c.Expires):
		return c.authorizationHeader(), nil // renewal failed, but it is still valid
	}
	return "", fmt.Errorf("the login could not be renewed: %w", err)
}

// HandleRefusal handles a 401 or 403 response with a challenge to a request with the
// authorization used. It reports whether the request can be sent again: there is a new
// authorization, or the same one may be accepted by now.
func (a *Account) HandleRefusal(ctx context.Context, used string, status int, challenge string) bool {
	asked := parseChallenge(challenge)
	if status == 403 && asked.err != "insufficient_scope" {
		return false // a login would not help
	}
	c, reason := a.cred.Load(), reasonScope
	switch {
	case c != nil && c.authorizationHeader() != used:
		return true
	case c == nil:
		reason = reasonNone
		if s := a.Status(); s.State == LoginNeeded {
			reason = s.Reason // why there is none
		}
	case status == 403:
	case c.isFresh() && !a.mayForceRenewal(c):
		if a.waitForAcceptance(ctx, c) {
			return true
		}
		reason = reasonRejected
	case c.Refresh == "":
		reason = reasonExpired
	default:
		if _, err := a.renewOnce(ctx, c); err == nil {
			return true
		}
		if c = a.cred.Load(); ctx.Err() != nil || c != nil {
			return false // a later renewal may succeed
		}
		reason = a.Status().Reason
	}
	a.mu.Lock()
	if a.cred.Load() == c {
		a.lastChallenge = asked
	}
	a.mu.Unlock()
	needed := LoginStatus{State: LoginNeeded, Reason: reason}
	if before := a.Status(); before.Reason == reason {
		needed.Detail = before.Detail
	}
	a.setStatus(c, needed)
	return false
}

// HandleAcceptance handles a response to a request with the authorization used that the server accepted. A token that
// was rejected before may be valid now.
func (a *Account) HandleAcceptance(used string) {
	c := a.cred.Load()
	if c == nil || c == a.accepted.Load() && a.status.Load() == nil || c.authorizationHeader() != used {
		return
	}
	a.accepted.Store(c)
	if s := a.Status(); s.State == LoginNeeded && s.Reason != reasonScope {
		a.setStatus(c, LoginStatus{})
	}
}

// mayForceRenewal reports whether a fresh token that the server rejects is renewed at once: if the server has accepted it
// before. That happens once in a while, so that no server can cause a renewal for each request.
func (a *Account) mayForceRenewal(c *credential) bool {
	if a.accepted.Load() != c || c.Refresh == "" {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.forcedFor != c && time.Since(a.forcedAt) < minTokenAge {
		return false
	}
	a.forcedFor, a.forcedAt = c, time.Now()
	return true
}

// waitForAcceptance waits until a fresh token that was rejected may be valid, if it was first rejected less than
// freshPause ago. A server whose clock is behind rejects a token of the future.
func (a *Account) waitForAcceptance(ctx context.Context, c *credential) bool {
	a.mu.Lock()
	if a.doubted != c {
		a.doubted, a.doubtedAt = c, time.Now()
	}
	left := freshPause - time.Since(a.doubtedAt)
	a.mu.Unlock()
	return left > 0 && sleepContext(ctx, left)
}

// sleepContext waits and reports whether ctx is still valid.
func sleepContext(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// renewOnce returns the credential after old, with one renewal for all callers. The end of one caller's ctx does not cancel it,
// because the authorization server may have revoked the old token already.
func (a *Account) renewOnce(ctx context.Context, old *credential) (*credential, error) {
	renewal := a.renewal.DoChan("", func() (any, error) {
		if c := a.cred.Load(); c != nil && c != old {
			return c, nil
		}
		if !a.accounts.addWorkUnlessClosed() {
			return nil, errClosed
		}
		defer a.accounts.wg.Done()
		rctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewalTimeout)
		defer cancel()
		return a.refreshToken(rctx, old)
	})
	select {
	case r := <-renewal:
		fresh, _ := r.Val.(*credential)
		return fresh, r.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

var errClosed = problem.New(problem.Internal, "MCPProxy is stopping.", "")

// refreshToken gets a new token. It deletes a credential that the authorization server rejects for good. If another
// process has renewed the login, it uses that credential, because a refresh token is often valid only once.
func (a *Account) refreshToken(ctx context.Context, old *credential) (*credential, error) {
	if c := a.adoptStored(ctx, old); c != nil {
		return c, nil
	}
	web := a.newWebClient()
	t, err := web.requestToken(ctx, old.TokenEndpoint, &old.Client, formParams{
		"grant_type": "refresh_token", "refresh_token": old.Refresh, "resource": old.Resource,
	})
	switch {
	case err == nil:
		c := *old
		c.applyTokenResponse(t)
		a.setCredential(ctx, &c, &c)
		a.setStatus(&c, LoginStatus{})
		return &c, nil
	case !isFinalRejection(err):
		a.setStatus(old, LoginStatus{LoginRetrying, reasonUnrenewed, err.Error()})
		return nil, err
	}
	if sleepContext(ctx, otherRenewal) {
		if c := a.adoptStored(ctx, old); c != nil {
			return c, nil
		}
	}
	reason, forget := reasonEnded, isUnknownClient(err)
	if forget && old.Client.Kind == preregistered {
		reason = reasonConfig
	} else if forget {
		reason = reasonClient
	}
	a.setCredential(ctx, nil, old.withoutToken(forget))
	a.setStatus(nil, LoginStatus{LoginNeeded, reason, err.Error()})
	return nil, err
}

// adoptStored returns the stored credential if it is newer than old, and uses it from now on.
func (a *Account) adoptStored(ctx context.Context, old *credential) *credential {
	c := a.loadStored(ctx)
	if c == nil || c.Access == "" || c.Access == old.Access || !c.Obtained.After(old.Obtained) {
		return nil
	}
	a.mu.Lock()
	a.cred.Store(c)
	a.mu.Unlock()
	a.setStatus(c, LoginStatus{})
	return c
}

// setCredential sets the credential and tries to store kept.
func (a *Account) setCredential(ctx context.Context, c, kept *credential) {
	if err := a.storeCredential(ctx, c, kept); err != nil {
		a.accounts.opt.Logger.Error("a login could not be stored: it is lost when MCPProxy stops", "server", a.name, "error", err)
	}
}

// storeCredential sets the credential and stores kept; nil deletes it.
func (a *Account) storeCredential(ctx context.Context, c, kept *credential) error {
	a.vaultMu.Lock()
	defer a.vaultMu.Unlock()
	a.loaded.Store(true)
	a.mu.Lock()
	a.cred.Store(c)
	a.mu.Unlock()
	if kept == nil {
		return a.accounts.opt.Vault.Delete(ctx, a.vaultKey())
	}
	raw, err := json.Marshal(kept)
	if err != nil {
		return err
	}
	return a.accounts.opt.Vault.Save(ctx, a.vaultKey(), raw)
}

// loadOnce loads the stored credential, once.
func (a *Account) loadOnce(ctx context.Context) {
	a.vaultMu.Lock()
	defer a.vaultMu.Unlock()
	if a.loaded.Load() {
		return
	}
	if c := a.loadStored(ctx); c != nil && c.Access != "" {
		a.cred.Store(c)
	}
	if ctx.Err() == nil {
		a.loaded.Store(true)
	}
}

// loadStored returns the stored credential for exactly this server, or nil.
func (a *Account) loadStored(ctx context.Context) *credential {
	raw, err := a.accounts.opt.Vault.Load(ctx, a.vaultKey())
	if err != nil {
		a.accounts.opt.Logger.Warn("a stored login cannot be read", "server", a.name, "error", err)
	}
	c := decodeCredential(raw)
	if c == nil || c.Server != a.resource.String() {
		return nil
	}
	return c
}

// Logout deletes the login and the registration, and revokes the token if the
// authorization server supports that.
func (a *Account) Logout(ctx context.Context) error {
	a.cancelLogin()
	c := a.cred.Load()
	if c == nil {
		c = a.loadStored(ctx)
	}
	err := a.storeCredential(ctx, nil, nil)
	a.setStatus(nil, LoginStatus{})
	if c != nil && c.Access != "" {
		a.newWebClient().revokeToken(ctx, c)
	}
	if err != nil {
		return problem.Newf(problem.Internal, "The stored login to server '%s' could not be removed: %v", a.name, err).
			WithHint("Look for it in the keyring of the system and in the data directory.")
	}
	return nil
}
