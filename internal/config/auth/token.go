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

// tokenPrefix makes an agent token recognisable, to a person and to redact, and tells
// it from a key.
const (
	tokenPrefix = "mcpp_t_"
	tokenLength = len(tokenPrefix) + 64
)

// The bounds of tokens.
const (
	// MaxTokens is how many there may be.
	MaxTokens = 1_000
	// loadTime is how long a token waits at a start until the tokens are known.
	loadTime = 10 * time.Second
	// usedAgain is how old the time of the last use may be that is kept.
	usedAgain = 10 * time.Minute
	loadAgain = time.Second
)

// What can be wrong with tokens.
var (
	ErrTokenExists   = errors.New("there is a token of that name")
	ErrNoToken       = errors.New("there is no token of that name")
	ErrTooManyTokens = errors.New("there are as many tokens as there may be")
	// ErrTokensUnread is that a token cannot be judged, since the database has not
	// been read yet.
	ErrTokensUnread = errors.New("the tokens could not be read yet")
)

// Token is an agent token as it is kept. Its text is nowhere.
type Token struct {
	ID      string // tells it from another one that had its name
	Name    string
	Hash    [sha256.Size]byte
	Profile string   // that it is bound to, "" for none
	Servers []string // names or patterns; nil: all
	Lanes   []string // nil: all
	By      string   // who made it
	Created time.Time
	Expires time.Time // zero: never
	Used    time.Time // last, as far as that is kept; zero: never
}

// Rule is what the token itself lets through, beside the profile that it is bound to.
func (t *Token) Rule() *ScopeRule {
	return NewScopeRule(Limits{Servers: t.Servers, Lanes: t.Lanes})
}

// TokenKeeper stores tokens.
type TokenKeeper interface {
	SaveToken(ctx context.Context, t Token) error
	DropToken(ctx context.Context, id string) error
	SetTokenUsed(ctx context.Context, id string, at time.Time) error
	LoadTokens(ctx context.Context) ([]Token, error)
	// RestoreTokens makes the store have these tokens and no others.
	RestoreTokens(ctx context.Context, all []Token) error
}

// Tokens are the agent tokens. What is asked of them is answered from memory; what
// changes is stored first. Its methods are safe for concurrent use.
type Tokens struct {
	keeper TokenKeeper
	dir    string            // that has the file of those that are revoked
	ended  func(Actor)       // is told of each that has ended
	counts func(*Token) bool // reports whether a token that was loaded is good for something
	seed   [32]byte          // of the texts of tokens
	loaded chan struct{}

	changing sync.Mutex // held while one is made or revoked
	mu       sync.RWMutex
	byHash   map[[sha256.Size]byte]*Held
}

// NewTokens makes Tokens, which know none before Run has read them. In the directory is
// the second home of what is revoked. ended is called when a token is revoked or expires,
// counts each time that one is presented; nil is that all count.
func NewTokens(keeper TokenKeeper, dir string, ended func(Actor), counts func(*Token) bool) *Tokens {
	t := &Tokens{keeper: keeper, dir: dir, ended: ended, counts: counts, loaded: make(chan struct{}), byHash: map[[sha256.Size]byte]*Held{}}
	_, _ = rand.Read(t.seed[:]) // it never fails
	return t
}

// Held is a token that is known.
type Held struct {
	Token
	rule  *ScopeRule
	ended chan struct{}
	once  sync.Once
	gone  atomic.Bool // revoked, though perhaps not in the store
	timer *time.Timer // ends it when it expires
	used  atomic.Int64
	kept  int64 // of used; of Run alone
}

// Ended is closed when the token has ended: it was revoked or has expired. Nil never
// ends.
func (h *Held) Ended() <-chan struct{} {
	if h == nil {
		return nil
	}
	return h.ended
}

// Over reports whether the token has ended.
func (h *Held) Over() bool {
	select {
	case <-h.ended:
		return true
	default:
		return !h.Expires.IsZero() && !time.Now().Before(h.Expires)
	}
}

// Principal is that of who presents the token: see Actor.Principal.
func (h *Held) Principal() string { return h.actor().Principal() }

func (h *Held) actor() Actor { return Actor{Kind: Agent, Name: h.Name, ID: h.ID} }

// Run reads the tokens, and then keeps when they were last used, until ctx ends.
func (t *Tokens) Run(ctx context.Context) {
	for !t.load(ctx) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(loadAgain):
		}
	}
	look := time.NewTicker(time.Minute)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			t.keepUsed(last, 0)
			cancel()
			return
		case <-look.C:
			t.keepUsed(ctx, usedAgain)
		}
	}
}

func (t *Tokens) load(ctx context.Context) bool {
	all, err := t.keeper.LoadTokens(ctx)
	gone, also := revoked(t.dir)
	if err != nil || also != nil {
		return false
	}
	for _, one := range all {
		if slices.Contains(gone, one.ID) {
			_ = t.keeper.DropToken(ctx, one.ID) // else it is here again, and as good for nothing
			continue
		}
		t.hold(one)
	}
	close(t.loaded)
	return true
}

// hold takes a token up.
func (t *Tokens) hold(one Token) *Held {
	h := &Held{Token: one, rule: one.Rule(), ended: make(chan struct{})}
	if !one.Used.IsZero() {
		h.used.Store(one.Used.UnixMicro())
		h.kept = h.used.Load()
	}
	t.mu.Lock()
	t.byHash[one.Hash] = h
	t.mu.Unlock()
	if !one.Expires.IsZero() {
		h.timer = time.AfterFunc(time.Until(one.Expires), func() { t.end(h) })
	}
	return h
}

func (t *Tokens) end(h *Held) {
	h.once.Do(func() {
		close(h.ended)
		t.ended(h.actor())
	})
}

// keepUsed stores when tokens were last used, where what is stored is older by more
// than so much.
func (t *Tokens) keepUsed(ctx context.Context, older time.Duration) {
	for _, h := range t.held() {
		if at := h.used.Load(); at-h.kept > older.Microseconds() && t.keeper.SetTokenUsed(ctx, h.ID, time.UnixMicro(at)) == nil {
			h.kept = at
		}
	}
}

func (t *Tokens) held() (all []*Held) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, h := range t.byHash {
		all = append(all, h)
	}
	return all
}

// All returns the tokens, by name, those that have expired, too. The error is
// ErrTokensUnread.
func (t *Tokens) All(ctx context.Context) ([]Token, error) {
	if err := t.ready(ctx); err != nil {
		return nil, err
	}
	var all []Token
	for _, h := range t.held() {
		one := h.Token
		if at := h.used.Load(); at != 0 {
			one.Used = time.UnixMicro(at)
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b Token) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// Has reports whether there is a token of this name, as far as is known by now: true as long
// as nothing is.
func (t *Tokens) Has(name string) bool {
	select {
	case <-t.loaded:
		return slices.ContainsFunc(t.held(), func(h *Held) bool { return h.Token.Name == name })
	default:
		return true
	}
}

// ready waits until the tokens are known.
func (t *Tokens) ready(ctx context.Context) error {
	select {
	case <-t.loaded:
		return nil
	default:
	}
	limit := time.NewTimer(loadTime)
	defer limit.Stop()
	select {
	case <-t.loaded:
		return nil
	case <-ctx.Done():
	case <-limit.C:
	}
	return ErrTokensUnread
}

// Create makes a token with what one says, if permit permits it, and returns its text, which
// is nowhere else: 256 bits behind a prefix, which nobody outside of this process can know.
// With the same ID they are the same, so that a person can permit the very token that is
// made then; without one they are random.
func (t *Tokens) Create(ctx context.Context, one Token, permit func(*Token) error) (text string, made Token, err error) {
	if err := t.ready(ctx); err != nil {
		return "", Token{}, err
	}
	t.changing.Lock()
	defer t.changing.Unlock()
	all := t.held()
	switch {
	case slices.ContainsFunc(all, func(h *Held) bool { return h.Name == one.Name }):
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
	if err := t.keeper.SaveToken(ctx, one); err != nil {
		return "", Token{}, err
	}
	return text, t.hold(one).Token, nil
}

// Revoke ends a token. Whatever becomes of storing that, it is good for nothing
// from now on; an error says that it may be, after a restart.
func (t *Tokens) Revoke(ctx context.Context, name string) (Token, error) {
	if err := t.ready(ctx); err != nil {
		return Token{}, err
	}
	t.changing.Lock()
	defer t.changing.Unlock()
	all := t.held()
	i := slices.IndexFunc(all, func(h *Held) bool { return h.Name == name })
	if i < 0 {
		return Token{}, ErrNoToken
	}
	h := all[i]
	if h.timer != nil {
		h.timer.Stop()
	}
	h.gone.Store(true)
	t.end(h) // which stays in the list until it is stored, so that it can be tried again
	if err := errors.Join(revoke(t.dir, h.ID), t.keeper.DropToken(ctx, h.ID)); err != nil {
		return Token{}, err
	}
	t.mu.Lock()
	delete(t.byHash, h.Hash)
	t.mu.Unlock()
	return h.Token, nil
}

// Reload reads the tokens once more, since another instance has made or revoked some. Those
// that are not there any more end.
func (t *Tokens) Reload(ctx context.Context) error {
	select {
	case <-t.loaded:
	default:
		return nil // Run reads them
	}
	t.changing.Lock()
	defer t.changing.Unlock()
	all, err := t.keeper.LoadTokens(ctx)
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, one := range all {
		there[one.ID] = true
	}
	known := map[string]bool{}
	for _, h := range t.held() {
		if known[h.ID] = true; there[h.ID] {
			continue
		}
		if h.timer != nil {
			h.timer.Stop()
		}
		t.mu.Lock()
		delete(t.byHash, h.Hash)
		t.mu.Unlock()
		h.gone.Store(true)
		t.end(h)
	}
	for _, one := range all {
		if !known[one.ID] {
			t.hold(one)
		}
	}
	return nil
}

// Restore stores all tokens again: the store may have lost them.
func (t *Tokens) Restore(ctx context.Context) error {
	select {
	case <-t.loaded:
	default:
		return nil // they are read when they can be
	}
	t.changing.Lock()
	defer t.changing.Unlock()
	var all []Token
	for _, h := range t.held() {
		if !h.gone.Load() {
			all = append(all, h.Token)
		}
	}
	return t.keeper.RestoreTokens(ctx, all)
}

// find returns the token with this text, nil when there is none that is good. The
// error is ErrTokensUnread.
func (t *Tokens) find(ctx context.Context, text string) (*Held, error) {
	h, err := t.Known(ctx, text)
	if h == nil || h.Over() || t.counts != nil && !t.counts(&h.Token) {
		return nil, err
	}
	h.used.Store(time.Now().UnixMicro())
	return h, nil
}

// Known returns the token with this text, also when it has expired, without using it;
// nil when there is none. The error is ErrTokensUnread.
func (t *Tokens) Known(ctx context.Context, text string) (*Held, error) {
	if t == nil || len(text) != tokenLength || !strings.HasPrefix(text, tokenPrefix) {
		return nil, nil
	}
	if err := t.ready(ctx); err != nil {
		return nil, err
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.byHash[sha256.Sum256([]byte(text))], nil
}

// Named returns the token of that name, also when it has expired, and the names of all;
// nil when there is none. The error is ErrTokensUnread.
func (t *Tokens) Named(ctx context.Context, name string) (found *Held, names []string, err error) {
	if err := t.ready(ctx); err != nil {
		return nil, nil, err
	}
	for _, h := range t.held() {
		if names = append(names, h.Name); h.Name == name {
			found = h
		}
	}
	return found, names, nil
}

// TokenIn returns the text of the first agent token in a text, "" when there is none.
func TokenIn(text string) string {
	if at := strings.Index(text, tokenPrefix); at >= 0 && len(text)-at >= tokenLength {
		return text[at : at+tokenLength]
	}
	return ""
}
