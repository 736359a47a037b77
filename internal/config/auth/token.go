package auth

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// tokenPrefix makes an agent token recognizable, for users and for redact, and distinguishes it from a key.
const (
	tokenPrefix = "mcpp_t_"
	tokenLength = len(tokenPrefix) + 64
)

// Limits of tokens.
const (
	// MaxTokens is the maximum number of tokens.
	MaxTokens = 1_000
	// loadTimeout is how long a request waits at the start until the tokens are loaded.
	loadTimeout = 10 * time.Second
	// usedSaveInterval is how much a stored time of the last use may lag behind.
	usedSaveInterval  = 10 * time.Minute
	loadRetryInterval = time.Second
)

// Errors of tokens.
var (
	ErrTokenExists   = errors.New("a token with that name exists")
	ErrNoToken       = errors.New("no token has that name")
	ErrTooManyTokens = errors.New("the maximum number of tokens exists")
	// ErrTokensUnread means that a token cannot be checked, because the database has not been read yet.
	ErrTokensUnread = errors.New("the tokens could not be read yet")
	// ErrProviderAway means that an access token cannot be checked, because its provider does not answer.
	ErrProviderAway = errors.New("the OpenID provider does not answer")
)

// Token is a stored agent token. Its text is not stored.
type Token struct {
	ID      string // distinguishes the token from an earlier one of the same name
	Name    string
	Hash    [sha256.Size]byte
	Profile string   // the profile that it is bound to, "" if there is none
	Servers []string // names or patterns; nil: all
	Lanes   []string // nil: all
	By      string   // creator
	Created time.Time
	Expires time.Time // zero: never
	Used    time.Time // last stored use; zero: never
}

// RuleWithoutProfile returns the token's own limits, without the limits of its profile.
func (t *Token) RuleWithoutProfile() *ScopeRule {
	return NewScopeRule(ScopeLimits{Servers: t.Servers, Lanes: t.Lanes})
}

// TokenStore stores tokens.
type TokenStore interface {
	SaveToken(ctx context.Context, t Token) error
	DropToken(ctx context.Context, id string) error
	SetTokenUsed(ctx context.Context, id string, at time.Time) error
	LoadTokens(ctx context.Context) ([]Token, error)
	// ReplaceTokens replaces all tokens in the store.
	ReplaceTokens(ctx context.Context, all []Token) error
}

// AgentTokens manages the agent tokens. Reads use memory. Changes are stored first. It is safe for concurrent use.
type AgentTokens struct {
	store    TokenStore
	dir      string            // directory with the file of revoked tokens
	onEnded  func(Actor)       // called for each token that ends
	isUsable func(*Token) bool // reports whether a loaded token may be used
	seed     [32]byte          // seed for the texts of new tokens
	loaded   chan struct{}

	changing sync.Mutex // held while a token is created or revoked
	mu       sync.RWMutex
	byHash   map[[sha256.Size]byte]*LoadedToken
}

// NewAgentTokens returns AgentTokens that are empty until Run has loaded them. dir contains a second copy of the
// revoked ids. ended is called when a token is revoked or expires. counts is called each time a token is presented,
// and reports whether the token may be used; nil accepts every token.
func NewAgentTokens(keeper TokenStore, dir string, ended func(Actor), counts func(*Token) bool) *AgentTokens {
	t := &AgentTokens{store: keeper, dir: dir, onEnded: ended, isUsable: counts, loaded: make(chan struct{}), byHash: map[[sha256.Size]byte]*LoadedToken{}}
	_, _ = rand.Read(t.seed[:]) // never fails
	return t
}

// LoadedToken is a stored token in memory. It may have ended (see HasEnded).
type LoadedToken struct {
	Token
	rule      *ScopeRule
	ended     chan struct{}
	once      sync.Once
	revoked   atomic.Bool // revoked, even if storing that failed
	timer     *time.Timer // ends the token when it expires
	user      *UserAccess // nil: an agent token
	watched   atomic.Bool // Ended was called
	used      atomic.Int64
	usedSaved int64 // stored value of used; accessed only by Run
}

// Ended returns a channel that is closed when the token is revoked or expires. For a nil token it returns nil, a
// channel that is never closed.
func (h *LoadedToken) Ended() <-chan struct{} {
	if h == nil {
		return nil
	}
	h.watched.Store(true)
	return h.ended
}

// HasEnded reports whether the token was revoked or has expired.
func (h *LoadedToken) HasEnded() bool {
	select {
	case <-h.ended:
		return true
	default:
		return !h.Expires.IsZero() && !time.Now().Before(h.Expires)
	}
}

// Principal returns the principal of the token's actor; see Actor.Principal.
func (h *LoadedToken) Principal() string { return h.Actor().Principal() }

// Actor returns the actor that presents the token.
func (h *LoadedToken) Actor() Actor {
	a := Actor{Kind: Agent, Name: h.Name, ID: h.ID}
	if h.user != nil {
		a.Role = h.user.Role
	}
	return a
}

// Run loads the tokens and saves their last uses, until ctx ends.
func (t *AgentTokens) Run(ctx context.Context) {
	for !t.loadAll(ctx) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(loadRetryInterval):
		}
	}
	look := time.NewTicker(time.Minute)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			t.saveLastUsed(last, 0)
			cancel()
			return
		case <-look.C:
			t.saveLastUsed(ctx, usedSaveInterval)
		}
	}
}

func (t *AgentTokens) loadAll(ctx context.Context) bool {
	all, err := t.store.LoadTokens(ctx)
	gone, also := readRevokedIDs(t.dir)
	if err != nil || also != nil {
		return false
	}
	for _, one := range all {
		if slices.Contains(gone, one.ID) {
			_ = t.store.DropToken(ctx, one.ID) // the token stays revoked even if this fails
			continue
		}
		t.addLoaded(one)
	}
	close(t.loaded)
	return true
}

// addLoaded adds a loaded token.
func (t *AgentTokens) addLoaded(one Token) *LoadedToken {
	h := &LoadedToken{Token: one, rule: one.RuleWithoutProfile(), ended: make(chan struct{})}
	if !one.Used.IsZero() {
		h.used.Store(one.Used.UnixMicro())
		h.usedSaved = h.used.Load()
	}
	t.mu.Lock()
	t.byHash[one.Hash] = h
	t.mu.Unlock()
	if !one.Expires.IsZero() {
		h.timer = time.AfterFunc(time.Until(one.Expires), func() { t.endToken(h) })
	}
	return h
}

func (t *AgentTokens) endToken(h *LoadedToken) {
	h.once.Do(func() {
		close(h.ended)
		t.onEnded(h.Actor())
	})
}

// saveLastUsed stores each last use that is newer than its stored value by more than older.
func (t *AgentTokens) saveLastUsed(ctx context.Context, older time.Duration) {
	for _, h := range t.loadedTokens() {
		if at := h.used.Load(); at-h.usedSaved > older.Microseconds() && t.store.SetTokenUsed(ctx, h.ID, time.UnixMicro(at)) == nil {
			h.usedSaved = at
		}
	}
}

func (t *AgentTokens) loadedTokens() (all []*LoadedToken) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, h := range t.byHash {
		all = append(all, h)
	}
	return all
}

// ListAll returns the tokens by name, including expired ones. The error is ErrTokensUnread.
func (t *AgentTokens) ListAll(ctx context.Context) ([]Token, error) {
	if err := t.waitLoaded(ctx); err != nil {
		return nil, err
	}
	var all []Token
	for _, h := range t.loadedTokens() {
		one := h.Token
		if at := h.used.Load(); at != 0 {
			one.Used = time.UnixMicro(at)
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b Token) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// MayHaveName reports whether there is a token of this name; true until the tokens are loaded.
func (t *AgentTokens) MayHaveName(name string) bool {
	select {
	case <-t.loaded:
		return slices.ContainsFunc(t.loadedTokens(), func(h *LoadedToken) bool { return h.Token.Name == name })
	default:
		return true
	}
}

// waitLoaded waits until the tokens are loaded.
func (t *AgentTokens) waitLoaded(ctx context.Context) error {
	select {
	case <-t.loaded:
		return nil
	default:
	}
	limit := time.NewTimer(loadTimeout)
	defer limit.Stop()
	select {
	case <-t.loaded:
		return nil
	case <-ctx.Done():
	case <-limit.C:
	}
	return ErrTokensUnread
}

// Create creates a token if permit allows it, and returns its text: a prefix and 256 bits, which are not stored. The
// same ID results in the same text, so that a user can confirm the exact token before it is created. Without an ID
// the text is random.
func (t *AgentTokens) Create(ctx context.Context, one Token, permit func(*Token) error) (text string, made Token, err error) {
	if err := t.waitLoaded(ctx); err != nil {
		return "", Token{}, err
	}
	t.changing.Lock()
	defer t.changing.Unlock()
	all := t.loadedTokens()
	switch {
	case slices.ContainsFunc(all, func(h *LoadedToken) bool { return h.Name == one.Name }):
		return "", Token{}, ErrTokenExists
	case len(all) >= MaxTokens:
		return "", Token{}, ErrTooManyTokens
	}
	one.ID = cmp.Or(one.ID, rand.Text())
	secret := hmac.New(sha256.New, t.seed[:])
	secret.Write([]byte(one.ID))
	text = tokenPrefix + hex.EncodeToString(secret.Sum(nil))
	one.Hash, one.Used = sha256.Sum256([]byte(text)), time.Time{}
	one.Created = time.Now().UTC().Truncate(time.Microsecond)
	if permit != nil {
		if err := permit(&one); err != nil {
			return "", Token{}, err
		}
	}
	if err := t.store.SaveToken(ctx, one); err != nil {
		return "", Token{}, err
	}
	return text, t.addLoaded(one).Token, nil
}

// Revoke ends a token. It is invalid from now on even if storing that fails. An error means that the token may be
// valid again after a restart.
func (t *AgentTokens) Revoke(ctx context.Context, name string) (Token, error) {
	if err := t.waitLoaded(ctx); err != nil {
		return Token{}, err
	}
	t.changing.Lock()
	defer t.changing.Unlock()
	all := t.loadedTokens()
	i := slices.IndexFunc(all, func(h *LoadedToken) bool { return h.Name == name })
	if i < 0 {
		return Token{}, ErrNoToken
	}
	h := all[i]
	if h.timer != nil {
		h.timer.Stop()
	}
	h.revoked.Store(true)
	t.endToken(h) // the token stays in the list until its end is stored, so that the user can retry
	if err := errors.Join(addRevokedID(t.dir, h.ID), t.store.DropToken(ctx, h.ID)); err != nil {
		return Token{}, err
	}
	t.mu.Lock()
	delete(t.byHash, h.Hash)
	t.mu.Unlock()
	return h.Token, nil
}

// Reload reads the tokens again after another instance has changed some. Tokens that are missing from the store end.
func (t *AgentTokens) Reload(ctx context.Context) error {
	select {
	case <-t.loaded:
	default:
		return nil // Run reads them
	}
	t.changing.Lock()
	defer t.changing.Unlock()
	all, err := t.store.LoadTokens(ctx)
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, one := range all {
		there[one.ID] = true
	}
	known := map[string]bool{}
	for _, h := range t.loadedTokens() {
		if known[h.ID] = true; there[h.ID] {
			continue
		}
		if h.timer != nil {
			h.timer.Stop()
		}
		t.mu.Lock()
		delete(t.byHash, h.Hash)
		t.mu.Unlock()
		h.revoked.Store(true)
		t.endToken(h)
	}
	for _, one := range all {
		if !known[one.ID] {
			t.addLoaded(one)
		}
	}
	return nil
}

// StoreAllAgain stores all tokens again, in case the store has lost them.
func (t *AgentTokens) StoreAllAgain(ctx context.Context) error {
	select {
	case <-t.loaded:
	default:
		return nil // not loaded yet
	}
	t.changing.Lock()
	defer t.changing.Unlock()
	var all []Token
	for _, h := range t.loadedTokens() {
		if !h.revoked.Load() {
			all = append(all, h.Token)
		}
	}
	return t.store.ReplaceTokens(ctx, all)
}

// findActiveAndMarkUsed returns the valid token with this text, or nil, and records the use. The error is
// ErrTokensUnread.
func (t *AgentTokens) findActiveAndMarkUsed(ctx context.Context, text string) (*LoadedToken, error) {
	h, err := t.LookupByText(ctx, text)
	if h == nil || h.HasEnded() || t.isUsable != nil && !t.isUsable(&h.Token) {
		return nil, err
	}
	h.used.Store(time.Now().UnixMicro())
	return h, nil
}

// LookupByText returns the token with this text, even if expired; nil if there is none. It does not count as a use.
// The error is ErrTokensUnread.
func (t *AgentTokens) LookupByText(ctx context.Context, text string) (*LoadedToken, error) {
	if t == nil || len(text) != tokenLength || !strings.HasPrefix(text, tokenPrefix) {
		return nil, nil
	}
	if err := t.waitLoaded(ctx); err != nil {
		return nil, err
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.byHash[sha256.Sum256([]byte(text))], nil
}

// LookupByName returns the token of that name, even if expired, or nil, and all names.
// The error is ErrTokensUnread.
func (t *AgentTokens) LookupByName(ctx context.Context, name string) (found *LoadedToken, names []string, err error) {
	if err := t.waitLoaded(ctx); err != nil {
		return nil, nil, err
	}
	for _, h := range t.loadedTokens() {
		if names = append(names, h.Name); h.Name == name {
			found = h
		}
	}
	return found, names, nil
}

// FindTokenText returns the first agent token in a text, or "".
func FindTokenText(text string) string {
	if at := strings.Index(text, tokenPrefix); at >= 0 && len(text)-at >= tokenLength {
		return text[at : at+tokenLength]
	}
	return ""
}
