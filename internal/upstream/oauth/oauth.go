// Package oauth is MCPProxy as an OAuth 2.1 client of the servers behind it:
// discovery, registration, the login of a person, tokens and their renewal.
//
// It guarantees that a token goes to the server it was made for and nowhere
// else, that what one authorization server has issued is never shown to
// another one, that a login has PKCE with S256, a state that counts once and
// for ten minutes, the resource it is for, and an issuer that was compared;
// that requests which need a new token at the same time cause one renewal; that
// documents are fetched over https (http on this machine only) from addresses
// that are checked when they are dialled; and that tokens are stored in the
// keyring of the system or sealed, and never logged. It opens no browser and it
// starts no login by itself: a person does.
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

// Vault stores what belongs to accounts by their keys. A value that is not there
// is nil.
type Vault interface {
	Load(ctx context.Context, key string) ([]byte, error)
	Save(ctx context.Context, key string, value []byte) error
	Delete(ctx context.Context, key string) error
}

// Options are the surroundings of a Keeper.
type Options struct {
	Vault   Vault
	Logger  *slog.Logger
	Version string // said to authorization servers
}

// Accounts keeps the accounts at all servers.
type Accounts struct {
	opt Options
	wg  sync.WaitGroup // of logins and renewals

	mu       sync.Mutex // guards what follows
	accounts map[string]*Account
	closed   bool
}

// New makes a Keeper without accounts.
func New(opt Options) *Accounts {
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	return &Accounts{opt: opt, accounts: map[string]*Account{}}
}

// Configure makes the accounts those at the targets. An account stays what it
// is as long as its server's name and URL do. An invalid URL has no account.
func (k *Accounts) Configure(targets []Target) {
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
			a.abandon()
		}
	}
	k.accounts = next
}

// Account returns the account at the server of that name, or nil. A nil Keeper has
// none.
func (k *Accounts) Account(server string) *Account {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.accounts[server]
}

// NeedsLogin reports whether the server asks for a login.
func (k *Accounts) NeedsLogin(server string) bool {
	a := k.Account(server)
	return a != nil && a.NeedsLogin()
}

// Close ends all logins that wait for their person.
func (k *Accounts) Close(ctx context.Context) error {
	k.mu.Lock()
	k.closed = true
	accounts := slices.Collect(maps.Values(k.accounts))
	k.mu.Unlock()
	for _, a := range accounts {
		a.abandon()
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

// begin counts work that Close waits for, until wg.Done; not once it is closed.
func (k *Accounts) begin() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.closed {
		k.wg.Add(1)
	}
	return !k.closed
}

// Account is the account at one server. Its methods may be called at the same
// time.
type Account struct {
	keeper   *Accounts
	name     string
	resource *url.URL // without user, query and fragment
	target   atomic.Pointer[Target]

	loaded atomic.Bool
	cred   atomic.Pointer[credential] // nil: nobody has logged in
	needs  atomic.Bool                // the server asks for a login

	beginning sync.Mutex // one login begins at a time

	renewal singleflight.Group // one at a time

	mu    sync.Mutex // guards what follows
	asked challenge  // the last one that only a login can meet
	login *login     // the last one, or nil

	loading sync.Mutex // one at a time reads or writes the vault
}

func newAccount(k *Accounts, t Target) *Account {
	u, err := url.Parse(t.URL)
	if err != nil || u.Host == "" {
		return nil
	}
	resource := &url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	return &Account{keeper: k, name: t.Name, resource: resource}
}

// web makes a web for one piece of work.
func (a *Account) web() *web {
	g := guard{dialpolicy.Policy{Loopback: dialpolicy.IsLocalName(a.resource.Hostname()), Private: a.target.Load().AllowPrivate}}
	return newWeb(g, "mcpproxy/"+a.keeper.opt.Version)
}

// key returns where the vault keeps what belongs to the account.
func (a *Account) key() string { return a.name + " " + a.resource.String() }

// NeedsLogin reports whether the server has asked for a login that nobody has
// made since.
func (a *Account) NeedsLogin() bool { return a.needs.Load() }

// The times of a token.
const (
	renewTime = 20 * time.Second // that renewing may take
	tooFresh  = 10 * time.Second // a token that is refused so early is not renewed again
)

// Authorization returns the value of the Authorization header for the server, ""
// when nobody has logged in. A token that is about to expire is renewed first.
func (a *Account) Authorization(ctx context.Context) (string, error) {
	if !a.loaded.Load() {
		a.load(ctx)
	}
	c := a.cred.Load()
	if c == nil {
		return "", nil
	}
	if c.Expires.IsZero() || c.Refresh == "" || time.Until(c.Expires) > c.margin() {
		return c.header(), nil
	}
	fresh, err := a.renewed(ctx, c)
	switch {
	case err == nil:
		return fresh.header(), nil
	case a.cred.Load() == nil:
		return "", nil // it has ended: the server says what it wants now
	case time.Now().Before(c.Expires):
		return c.header(), nil // it could not be renewed, but is good yet
	}
	return "", fmt.Errorf("the login could not be renewed: %w", err)
}

// Refused is told that the server has answered a request that carried the
// authorization used with 401 or 403 and a challenge. It reports whether another
// authorization is there now, so that the request is worth sending again.
func (a *Account) Refused(ctx context.Context, used string, status int, challenge string) bool {
	asked := parseChallenge(challenge)
	if status == 403 && asked.err != "insufficient_scope" {
		return false // a login changes nothing
	}
	c := a.cred.Load()
	switch {
	case c != nil && c.header() != used:
		return true
	case status == 401 && c != nil && c.Refresh != "" && time.Since(c.Obtained) > tooFresh:
		if _, err := a.renewed(ctx, c); err == nil {
			return true
		}
		if ctx.Err() != nil || a.cred.Load() != nil {
			return false // it may work later
		}
	}
	a.mu.Lock()
	a.asked = asked
	a.mu.Unlock()
	if !a.needs.Swap(true) {
		a.keeper.opt.Logger.Info("a server asks for a login", "server", a.name, "status", status)
	}
	return false
}

// renewed returns what comes after old: one renewal for all who ask, which the
// end of one caller's ctx does not end, since the authorization server may have
// taken the old token back already.
func (a *Account) renewed(ctx context.Context, old *credential) (*credential, error) {
	renewal := a.renewal.DoChan("", func() (any, error) {
		if c := a.cred.Load(); c != nil && c != old {
			return c, nil
		}
		if !a.keeper.begin() {
			return nil, errClosed
		}
		defer a.keeper.wg.Done()
		rctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewTime)
		defer cancel()
		return a.refresh(rctx, old)
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

// refresh gets a new token for the old one. What the authorization server
// takes back is forgotten.
func (a *Account) refresh(ctx context.Context, old *credential) (*credential, error) {
	web := a.web()
	t, err := web.token(ctx, old.TokenEndpoint, &old.Client, form{
		"grant_type": "refresh_token", "refresh_token": old.Refresh, "resource": old.Resource,
	})
	if err != nil {
		if final(err) {
			a.keeper.opt.Logger.Info("a login has ended", "server", a.name, "error", err)
			kept := old.withoutToken(clientRefused(err))
			a.set(ctx, nil, kept)
		}
		return nil, err
	}
	c := *old
	c.take(t)
	a.set(ctx, &c, &c)
	return &c, nil
}

// set makes c the credential, and stores what is to be kept where that works.
func (a *Account) set(ctx context.Context, c, kept *credential) {
	if err := a.store(ctx, c, kept); err != nil {
		a.keeper.opt.Logger.Error("a login could not be stored: it is lost when MCPProxy stops", "server", a.name, "error", err)
	}
}

// store makes c the credential, and stores what is to be kept: nothing when kept
// is nil.
func (a *Account) store(ctx context.Context, c, kept *credential) error {
	a.loading.Lock()
	defer a.loading.Unlock()
	a.loaded.Store(true)
	a.cred.Store(c)
	if c != nil {
		a.needs.Store(false)
	}
	if kept == nil {
		return a.keeper.opt.Vault.Delete(ctx, a.key())
	}
	raw, err := json.Marshal(kept)
	if err != nil {
		return err
	}
	return a.keeper.opt.Vault.Save(ctx, a.key(), raw)
}

// load reads what is stored, once.
func (a *Account) load(ctx context.Context) {
	a.loading.Lock()
	defer a.loading.Unlock()
	if a.loaded.Load() {
		return
	}
	if c := a.stored(ctx); c != nil && c.Access != "" {
		a.cred.Store(c)
	}
	if ctx.Err() == nil {
		a.loaded.Store(true)
	}
}

// stored returns what the vault has for exactly this server, or nil.
func (a *Account) stored(ctx context.Context) *credential {
	raw, err := a.keeper.opt.Vault.Load(ctx, a.key())
	if err != nil {
		a.keeper.opt.Logger.Warn("a stored login cannot be read", "server", a.name, "error", err)
	}
	c := decodeCredential(raw)
	if c == nil || c.Server != a.resource.String() {
		return nil
	}
	return c
}

// Logout forgets the login and the registration, and has the authorization
// server forget it too, where that can be asked for.
func (a *Account) Logout(ctx context.Context) error {
	a.abandon()
	c := a.cred.Load()
	if c == nil {
		c = a.stored(ctx)
	}
	err := a.store(ctx, nil, nil)
	if c != nil && c.Access != "" {
		a.web().revoke(ctx, c)
	}
	if err != nil {
		return problem.Newf(problem.Internal, "The stored login to server '%s' could not be removed: %v", a.name, err).
			WithHint("Look for it in the keyring of the system and in the data directory.")
	}
	return nil
}
