package users

import (
	"context"
	"errors"
	"hash/maphash"
	"iter"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"mcpproxy/internal/config/auth"
)

const (
	// CheckInterval is how long a token may be used until its provider must accept it again.
	CheckInterval = time.Minute
	// checkAhead is how old a check may be until it is repeated in the background, so that no call waits for it.
	checkAhead = 30 * time.Second
	// tickInterval is how often tokens in use are looked at.
	tickInterval = 10 * time.Second
	// inUse is how long after its last use a token is checked in the background.
	inUse = 2 * time.Minute
	// maxTokens limits the cached tokens, maxTokensOfUser those of one user, and maxChecks the checks in the background at
	// a time.
	maxTokens       = 10_000
	maxTokensOfUser = 64
	maxChecks       = 16
	// maxUsers limits the users whose calls are counted.
	maxUsers = 10_000
)

// Verifier identifies users. It is safe for concurrent use. Without settings it knows no users.
type Verifier struct {
	logger *slog.Logger
	now    func() time.Time
	// ended is called when a user loses access, but not when a token expires.
	ended func(auth.Actor)

	settings atomic.Pointer[Settings]
	seed     maphash.Seed // of the hashes of tokens

	mu        sync.RWMutex // guards the following fields
	providers map[string]*provider
	tokens    map[uint64]*entry   // by a hash of the text
	ofUser    map[string][]*entry // the same by userID
	usage     map[string]*auth.Usage
}

// entry is a token whose signature and claims are valid.
type entry struct {
	key      uint64 // in Verifier.tokens
	user     string // userID
	text     string // for checks by the provider
	claims   claims // of the token
	provider *provider
	audience []string
	expires  time.Time
	used     atomic.Int64 // in seconds
	held     atomic.Pointer[grant]

	// gone is set when the token leaves the cache: nothing would end an access that it gets later.
	gone atomic.Bool

	checking   sync.Mutex // held during a check; guards the following fields
	failed     time.Time  // the last check without an answer
	saidGroups bool       // the provider has named groups in an answer
}

// grant is the result of the last check: access, or a refusal.
type grant struct {
	access   *auth.LoadedToken
	refusal  *auth.TokenRefusal
	checked  time.Time
	said     claims // by the provider
	rule     *Rule
	settings *Settings
}

var errOtherAddress = refuse("The token was issued for another address")

// New returns a Verifier. ended may be nil.
func New(logger *slog.Logger, ended func(auth.Actor)) *Verifier {
	return &Verifier{logger: logger, now: time.Now, ended: ended, providers: map[string]*provider{}, tokens: map[uint64]*entry{}, ofUser: map[string][]*entry{}, seed: maphash.MakeSeed(), usage: map[string]*auth.Usage{}}
}

// Apply replaces the settings; nil: there are no users. Access that they change ends.
func (v *Verifier) Apply(s *Settings) {
	v.mu.Lock()
	kept := map[string]*provider{}
	if s != nil {
		for _, i := range s.Issuers {
			if p := v.providers[i.URL]; p != nil && reflect.DeepEqual(p.Issuer, i) {
				kept[i.URL] = p
			} else {
				kept[i.URL] = newProvider(i, v.now)
			}
		}
	}
	v.providers = kept
	v.settings.Store(s)
	var gone []*entry
	for _, e := range v.tokens {
		if kept[e.provider.URL] != e.provider {
			v.forget(e)
			gone = append(gone, e)
		}
	}
	rest := slices.Collect(maps.Values(v.tokens))
	v.mu.Unlock()
	for _, e := range gone {
		e.checking.Lock()
		v.replace(e, &grant{refusal: refuse("The configuration has changed"), checked: v.now()})
		e.checking.Unlock()
	}
	for _, e := range rest {
		e.checking.Lock()
		if g := e.held.Load(); g != nil && g.settings != s {
			v.replace(e, v.evaluate(s, e, g.said, g.checked))
		}
		e.checking.Unlock()
	}
}

// Run checks tokens that are in use, until ctx ends.
func (v *Verifier) Run(ctx context.Context) {
	tick := time.NewTicker(tickInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			v.checkTokensInUse(ctx)
		}
	}
}

func (v *Verifier) checkTokensInUse(ctx context.Context) {
	now := v.now()
	var due []*entry
	v.mu.Lock()
	for _, e := range v.tokens {
		g := e.held.Load()
		switch {
		case g == nil && !now.After(e.expires.Add(clockSkew)): // it is being checked
		case now.After(e.expires.Add(clockSkew)), g.access == nil && now.Sub(g.checked) > CheckInterval:
			v.forget(e)
		case g.access != nil && now.Sub(g.checked) >= checkAhead && (g.access.IsWatched() || now.Unix()-e.used.Load() < int64(inUse.Seconds())):
			due = append(due, e)
		}
	}
	maps.DeleteFunc(v.usage, func(_ string, u *auth.Usage) bool { return u.IsIdle(now.Add(-24 * time.Hour)) })
	v.mu.Unlock()
	slots, running := make(chan struct{}, maxChecks), sync.WaitGroup{}
	for _, e := range due {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			v.refresh(ctx, e, checkAhead)
		})
	}
	running.Wait()
}

// VerifyUser implements auth.UserVerifier.
func (v *Verifier) VerifyUser(ctx context.Context, path, text string) (*auth.LoadedToken, bool, error) {
	s, resource := v.settings.Load(), resourcePath(path)
	if s == nil || resource == "" || !strings.Contains(text, ".") { // no key or agent token contains a dot
		return nil, false, nil
	}
	key := maphash.String(v.seed, text)
	v.mu.RLock()
	e := v.tokens[key]
	v.mu.RUnlock()
	if e != nil && e.text != text {
		e = nil
	}
	now := v.now()
	var err error
	if e == nil {
		if e, err = v.admit(ctx, s, resource, key, text, now); err != nil {
			return nil, true, err
		}
	}
	if !s.acceptsAudience(e.audience, &e.provider.Issuer, resource) {
		return nil, true, errOtherAddress
	}
	g := e.held.Load()
	if g == nil || g.settings != s || now.Sub(g.checked) >= CheckInterval && e.provider.Check != CheckOff {
		if g, err = v.refresh(ctx, e, CheckInterval); err != nil {
			return nil, true, err
		}
	}
	switch {
	case g.refusal != nil:
		return nil, true, g.refusal
	case g.access.HasEnded():
		return nil, true, refuse("The token has expired")
	}
	if resource != apiPath && g.access.User().Granted == 0 {
		return nil, true, &auth.TokenRefusal{Reason: "The token has none of the scopes of MCPProxy", Forbidden: true, Scope: strings.Join(s.scopes(), " ")}
	}
	if at := now.Unix(); e.used.Load() != at {
		e.used.Store(at)
	}
	return g.access, true, nil
}

// admit verifies a new token for a resource and adds it to the cache.
func (v *Verifier) admit(ctx context.Context, s *Settings, resource string, key uint64, text string, now time.Time) (*entry, error) {
	issuer, refusal := readUnverified(text)
	if refusal != nil {
		return nil, refusal
	}
	v.mu.RLock()
	p := v.providers[issuer]
	v.mu.RUnlock()
	if p == nil {
		return nil, refuse("The issuer of the token is not allowed")
	}
	all, err := p.verify(ctx, text)
	if err != nil {
		return nil, err
	}
	expires, refusal := p.checkClaims(all, now)
	if refusal != nil {
		return nil, refusal
	}
	e := &entry{key: key, user: userID(p.URL, all.text("sub")), text: text, claims: all, provider: p, audience: all.list("aud"), expires: expires}
	if !s.acceptsAudience(e.audience, &p.Issuer, resource) {
		return nil, errOtherAddress
	}
	e.used.Store(now.Unix())
	v.mu.Lock()
	defer v.mu.Unlock()
	if other := v.tokens[key]; other != nil && other.text == text {
		return other, nil
	}
	if v.providers[issuer] != p {
		return nil, refuse("The configuration has changed")
	}
	v.add(e)
	return e, nil
}

// add adds a token to the cache. If the cache or the share of the user is full, another token leaves it. The caller
// holds v.mu.
func (v *Verifier) add(e *entry) {
	if other := v.tokens[e.key]; other != nil { // the same hash
		v.forget(other)
	}
	if own := v.ofUser[e.user]; len(own) >= maxTokensOfUser {
		v.forget(toEvict(slices.Values(own)))
	} else if len(v.tokens) >= maxTokens {
		v.forget(toEvict(maps.Values(v.tokens)))
	}
	v.tokens[e.key] = e
	v.ofUser[e.user] = append(v.ofUser[e.user], e)
}

// toEvict returns the entry to remove: one without access if there is one, and of those the one that was not used for
// the longest time. Among many without access it looks at a few.
func toEvict(all iter.Seq[*entry]) (found *entry) {
	seen := 0
	for e := range all {
		if found == nil || found.hasAccess() && !e.hasAccess() || found.hasAccess() == e.hasAccess() && e.used.Load() < found.used.Load() {
			found = e
		}
		if seen++; seen >= 16 && !found.hasAccess() {
			break
		}
	}
	return found
}

func (e *entry) hasAccess() bool {
	g := e.held.Load()
	return g != nil && g.access != nil
}

// forget removes a token from the cache, and ends its access, because nothing checks it any more. The caller holds v.mu.
func (v *Verifier) forget(e *entry) {
	e.gone.Store(true)
	delete(v.tokens, e.key)
	if v.ofUser[e.user] = slices.DeleteFunc(v.ofUser[e.user], func(o *entry) bool { return o == e }); len(v.ofUser[e.user]) == 0 {
		delete(v.ofUser, e.user)
	}
	if g := e.held.Load(); g != nil && g.access != nil {
		g.access.End()
	}
}

// refresh checks a token again, unless a check is younger than age. The error is auth.ErrProviderAway, also if the token
// has left the cache: the next request adds it again.
func (v *Verifier) refresh(ctx context.Context, e *entry, age time.Duration) (*grant, error) {
	e.checking.Lock()
	defer e.checking.Unlock()
	s := v.settings.Load()
	g := e.held.Load()
	if s == nil {
		return nil, refuse("The configuration has changed")
	}
	if e.gone.Load() {
		return nil, auth.ErrProviderAway
	}
	if g != nil && g.settings == s && (v.now().Sub(g.checked) < age || e.provider.Check == CheckOff) {
		return g, nil
	}
	began := v.now()
	if began.Sub(e.failed) < awayInterval {
		return nil, auth.ErrProviderAway
	}
	said, err := e.provider.check(ctx, e.text, e.claims.text("sub"))
	refusal, _ := errors.AsType[*auth.TokenRefusal](err)
	switch {
	case refusal != nil:
		return v.replace(e, &grant{refusal: refusal, checked: began, settings: s}), nil
	case err != nil:
		// Without an answer the access ends. The user gets it back when the provider answers again.
		if e.failed = v.now(); g != nil && g.access != nil && began.Sub(g.checked) >= CheckInterval-tickInterval {
			v.logger.Warn("an OpenID provider does not answer, so users lose access until it does", "issuer", e.provider.URL)
			g.access.End()
		}
		return nil, err
	}
	g = v.replace(e, v.evaluate(s, e, said, began))
	if e.gone.Load() {
		return nil, auth.ErrProviderAway
	}
	return g, nil
}

// evaluate applies the rules to a token. What the provider says now takes precedence over the token. The caller holds
// e.checking.
func (v *Verifier) evaluate(s *Settings, e *entry, said claims, checked time.Time) *grant {
	i := &e.provider.Issuer
	all := maps.Clone(e.claims)
	if said.has("email") || said.has("email_verified") { // both count from the same document only
		delete(all, "email")
		delete(all, "email_verified")
	}
	for name, value := range said {
		switch name {
		case "iss", "aud", "exp", "sub", "scope", "scp":
		default:
			all[name] = value
		}
	}
	who := i.identity(all)
	if e.saidGroups = e.saidGroups || said.hasList(i.GroupsClaim); !said.hasList(i.GroupsClaim) && (e.saidGroups || i.describesUser(said)) {
		who.groups = nil // a provider may omit a claim without values
	}
	g := &grant{checked: checked, said: said, settings: s, rule: s.ruleFor(&who)}
	if g.rule == nil {
		g.refusal = &auth.TokenRefusal{Reason: "No rule in users gives access to this user", Forbidden: true}
		return g
	}
	id := userID(i.URL, who.subject)
	g.access = auth.NewUserToken(auth.UserAccess{
		ID: id, Name: i.userName(all, &who), Role: g.rule.Role, Profile: g.rule.Profile, Lanes: g.rule.Lanes,
		Granted: i.grantedLanes(e.claims), Expires: e.expires.Add(clockSkew), Usage: v.usageOf(id, g.rule.Limits),
	})
	return g
}

// usageOf returns the counts of a user. They survive a new token.
func (v *Verifier) usageOf(id string, limits auth.UserLimits) *auth.Usage {
	v.mu.Lock()
	defer v.mu.Unlock()
	u := v.usage[id]
	if u == nil {
		if len(v.usage) >= maxUsers {
			maps.DeleteFunc(v.usage, func(_ string, u *auth.Usage) bool { return u.IsIdle(v.now().Add(-time.Hour)) })
		}
		u = auth.NewUsage(limits)
		v.usage[id] = u
	}
	u.SetLimits(limits)
	return u
}

// replace stores the result of a check. Access that does not change stays the same, so that streams continue; access
// that changes ends. The caller holds e.checking.
func (v *Verifier) replace(e *entry, next *grant) *grant {
	last := e.held.Load()
	if last != nil && last.access != nil && next.access != nil && !last.access.HasEnded() && sameAccess(last.access, next.access) {
		next.access.End()
		next.access = last.access
	}
	e.held.Store(next)
	if e.gone.Load() && next.access != nil { // forget may have seen the last one only
		next.access.End()
	}
	if last != nil && last.access != nil && last.access != next.access {
		last.access.End()
		v.logger.Info("the access of a user has ended or changed", "user", last.access.Name)
		if v.ended != nil {
			v.ended(last.access.Actor())
		}
	}
	return next
}

// sameAccess reports whether two results of the same token give the same access.
func sameAccess(a, b *auth.LoadedToken) bool {
	return reflect.DeepEqual(a.User(), b.User()) // they share their Usage
}
