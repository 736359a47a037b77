package presence

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"mcpproxy/internal/problem"
)

// StoredState is the stored state: anchors in order, and statements. Bad contains the names of the unreadable
// rows.
type StoredState struct {
	Anchors    []Anchor
	Statements []Evidence
	Bad        []string
}

// HeadFingerprint returns the fingerprint of the last anchor, zero if there is none.
func (s *StoredState) HeadFingerprint() Digest { return anchorChain(s.Anchors).headFingerprint() }

// ErrUsed means that a statement with this nonce is already stored.
var ErrUsed = errors.New("the statement was used before")

// ErrMoved means that another instance has set another anchor.
var ErrMoved = errors.New("the anchor was replaced in the meantime")

// Store stores anchors and statements.
type Store interface {
	LoadPresence(ctx context.Context) (StoredState, error)
	// SaveStatement stores a statement durably, or returns ErrUsed.
	SaveStatement(ctx context.Context, e Evidence) error
	// SaveAnchors replaces the stored anchors, or returns ErrMoved if the last stored one does not have the
	// fingerprint head (zero: no anchor).
	SaveAnchors(ctx context.Context, head Digest, all []Anchor) error
}

// FingerprintStore is a second location of the anchor's fingerprint, outside of the database. Each instance has its
// own.
type FingerprintStore interface {
	Name() string
	// Mark returns the stored mark, zero if there is none.
	Mark(ctx context.Context) (FingerprintMark, error)
	SetMark(ctx context.Context, m FingerprintMark) error
}

// Options configure a Gate.
type Options struct {
	Store  Store
	Places []FingerprintStore
	// RequiredKind returns the configured kind; nil means None.
	RequiredKind func() ProofKind
	// CurrentClaims returns the claims that a root anchor signs: the claims of all current grants or, for the first
	// anchor, of all decisions.
	CurrentClaims func(ctx context.Context, first bool) ([]Claim, error)
	// Changed is called when the set of valid claims has changed.
	Changed func(ctx context.Context)
	Now     func() time.Time
	Logger  *slog.Logger
}

// Gate requires statements, stores them, and reports which claims are signed. It is safe for concurrent use. A nil
// Gate is the gate of an instance without presence.
type Gate struct {
	opt     Options
	started time.Time

	decisionMu sync.Mutex // held while a statement is accepted or the anchor changes

	mu    sync.RWMutex    // guards the following fields
	known *loadedPresence // nil: not loaded, no claim is valid
	used  map[string]bool
	spent map[claimHash]int
}

// claimHash is a shortened claim hash.
type claimHash [16]byte

func newClaimHash(c Claim) claimHash {
	sum := sha256.Sum256([]byte(c))
	return claimHash(sum[:16])
}

// loadedPresence is the loaded state.
type loadedPresence struct {
	chain  anchorChain
	broken error
	places map[string]storedFingerprint
	signed map[claimHash]time.Time // time of the last signature
	all    []Evidence              // verified
	bad    []string                // statements that do not verify
	// passkeyCounters contains the highest signature counter of each anchor's passkey.
	passkeyCounters map[Digest]uint32
	// cachedVerdict is the verdict for the required kind. It is not used during a reset, because the verdict then
	// changes with time.
	cachedVerdict verdict
	requiredKind  ProofKind
}

// NewGate returns a Gate for which no claim is valid before Load.
func NewGate(o Options) *Gate {
	if o.RequiredKind == nil {
		o.RequiredKind = func() ProofKind { return None }
	}
	return &Gate{opt: o, started: o.Now().Truncate(time.Microsecond), used: map[string]bool{}, spent: map[claimHash]int{}}
}

// Load reads the stored state and compares it with the fingerprint stores.
func (g *Gate) Load(ctx context.Context) error {
	g.decisionMu.Lock()
	defer g.decisionMu.Unlock()
	return g.loadState(ctx)
}

// EnsureLoaded loads the state if it is not loaded.
func (g *Gate) EnsureLoaded(ctx context.Context) error {
	if g == nil {
		return nil
	}
	g.decisionMu.Lock()
	defer g.decisionMu.Unlock()
	if s, _ := g.currentVerdict(); s != nil {
		return nil
	}
	return g.loadState(ctx)
}

func (g *Gate) loadState(ctx context.Context) error {
	saved, err := g.opt.Store.LoadPresence(ctx)
	if err != nil {
		return err
	}
	s := &loadedPresence{chain: saved.Anchors, signed: map[claimHash]time.Time{}, passkeyCounters: map[Digest]uint32{}, bad: saved.Bad, places: map[string]storedFingerprint{}}
	byNonce := make(map[string]*Evidence, len(saved.Statements))
	for i := range saved.Statements {
		byNonce[saved.Statements[i].Nonce] = &saved.Statements[i]
	}
	s.broken = s.chain.verify(byNonce)
	current := s.chain.sinceLastRoot()
	for i := range saved.Statements {
		e := &saved.Statements[i]
		a := s.chain.findByFingerprint(e.Anchor)
		if a == nil || a.verifyEvidence(e) != nil {
			s.bad = append(s.bad, e.Nonce)
			continue
		}
		s.all = append(s.all, *e)
		s.passkeyCounters[e.Anchor] = max(s.passkeyCounters[e.Anchor], signatureCounter(e.Signature))
		if current.findByFingerprint(e.Anchor) != nil {
			s.recordSignedClaims(e)
		}
	}
	for _, p := range g.opt.Places {
		s.places[p.Name()] = g.syncFingerprintMark(ctx, s, p)
	}
	s.requiredKind = g.opt.RequiredKind()
	s.cachedVerdict = evaluateVerdict(s.chain, s.broken, s.places, s.requiredKind, g.opt.Now())
	g.mu.Lock()
	g.known = s
	g.mu.Unlock()
	return nil
}

// syncFingerprintMark reads the mark in a fingerprint store and updates it if that is allowed.
func (g *Gate) syncFingerprintMark(ctx context.Context, s *loadedPresence, p FingerprintStore) storedFingerprint {
	m, err := p.Mark(ctx)
	if err != nil {
		g.opt.Logger.Error("the fingerprint of the anchor cannot be read", "place", p.Name(), "error", err)
		return storedFingerprint{Unreadable, FingerprintMark{}}
	}
	is, next := s.chain.nextMark(m, g.opt.Now().UTC().Truncate(time.Microsecond), func(reset Digest) bool {
		_, ok := s.signed[newClaimHash(cancelResetClaim(reset))]
		return ok
	})
	if next == m || s.broken != nil {
		return storedFingerprint{is, m}
	}
	if err := p.SetMark(ctx, next); err != nil {
		g.opt.Logger.Error("the fingerprint of the anchor cannot be written", "place", p.Name(), "error", err)
		return storedFingerprint{is, m}
	}
	if is == Behind {
		is = Matches
	}
	return storedFingerprint{is, next}
}

// Reload is Load, and calls Changed if the set of valid claims has changed: another instance may have stored
// statements, or a fingerprint store may have changed.
func (g *Gate) Reload(ctx context.Context) error {
	before, was := g.currentVerdict()
	if err := g.Load(ctx); err != nil {
		return err
	}
	now, is := g.currentVerdict()
	if g.opt.Changed != nil && (before == nil || was != is || len(before.all) != len(now.all) || before.chain.headFingerprint() != now.chain.headFingerprint()) {
		g.opt.Changed(ctx)
	}
	return nil
}

func (s *loadedPresence) recordSignedClaims(e *Evidence) {
	for _, c := range e.Claims {
		if at := newClaimHash(c); s.signed[at].Before(e.At) {
			s.signed[at] = e.At
		}
	}
}

// currentVerdict returns the current verdict.
func (g *Gate) currentVerdict() (*loadedPresence, verdict) {
	g.mu.RLock()
	s := g.known
	g.mu.RUnlock()
	if s == nil {
		return nil, verdict{on: true, invalidReason: "The presence key could not be read yet.", remedy: "Try again in a moment; see `mcpproxy status`."}
	}
	demanded := g.opt.RequiredKind()
	if s.requiredKind == demanded && s.chain.lastAnchor().Kind != reset {
		return s, s.cachedVerdict
	}
	return s, evaluateVerdict(s.chain, s.broken, s.places, demanded, g.opt.Now())
}

// IsConfirmed reports whether a user has signed the claim, or no signature is required.
func (g *Gate) IsConfirmed(c Claim) bool {
	if g == nil {
		return true
	}
	s, v := g.currentVerdict()
	if !v.on || v.invalidReason != "" {
		return !v.on
	}
	g.mu.RLock()
	defer g.mu.RUnlock()
	_, ok := s.signed[newClaimHash(c)]
	return ok
}

// VoidReason returns the reason why all signatures are invalid, and the remedy; "" if they are valid or none is
// required.
func (g *Gate) VoidReason() (why, remedy string) {
	if g == nil {
		return "", ""
	}
	_, v := g.currentVerdict()
	return v.invalidReason, v.remedy
}

// IsOn reports whether grants of access need a signed statement.
func (g *Gate) IsOn() bool {
	if g == nil {
		return false
	}
	_, v := g.currentVerdict()
	return v.on
}

// NeedsPasskey reports whether grants of access need a passkey, which only pages of PageOrigin can use.
func (g *Gate) NeedsPasskey() bool {
	if g == nil {
		return false
	}
	s, v := g.currentVerdict()
	return s != nil && v.on && s.chain.beforeReset().lastAnchor().Kind == Passkey
}

// HasUsesLeft reports whether a claim with limited time and uses is valid: it was signed since this process started
// and has uses left. The count is kept only in memory, where no other program can reset it, so it ends with the
// process.
func (g *Gate) HasUsesLeft(c Claim, uses int) bool { return g.spendUses(c, uses, 0) }

// SpendUse is HasUsesLeft and consumes one use.
func (g *Gate) SpendUse(c Claim, uses int) bool { return g.spendUses(c, uses, 1) }

// SpendAllUses consumes all uses of a claim.
func (g *Gate) SpendAllUses(c Claim) {
	if g != nil {
		g.spendUses(c, math.MaxInt, math.MaxInt)
	}
}

func (g *Gate) spendUses(c Claim, uses, takes int) bool {
	if g == nil {
		return true
	}
	s, v := g.currentVerdict()
	if !v.on {
		return true
	}
	if v.invalidReason != "" {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	at, name := s.signed[newClaimHash(c)], newClaimHash(c)
	if at.Before(g.started) || g.spent[name] >= uses {
		return false
	}
	g.spent[name] += takes
	return true
}

// DraftTimeAndNonce returns the time and nonce of the statement of the request, for claims that contain them.
// RequireSigned verifies them.
func (g *Gate) DraftTimeAndNonce(ctx context.Context) (at time.Time, name string) {
	if p := proofFromContext(ctx); p != nil {
		return p.draftTimeAndNonce(g.now())
	}
	return newTimeAndNonce(g.now())
}

func (g *Gate) now() time.Time {
	if g == nil {
		return time.Now()
	}
	return g.opt.Now()
}

// RequireSigned returns nil if a user has signed the claims, or no signature is required. It first stores a proof
// that the request contains. Otherwise it returns the problem PRESENCE_REQUIRED with the statement to sign. A request
// must require all its claims in one call, before it changes anything.
func (g *Gate) RequireSigned(ctx context.Context, claims ...Claim) error {
	if g == nil || len(claims) == 0 {
		return nil
	}
	p := proofFromContext(ctx)
	if p != nil && p.permitsAll(claims) {
		return nil
	}
	s, v := g.currentVerdict()
	switch {
	case !v.on:
		return nil
	case v.invalidReason != "":
		return problem.New(problem.PresenceRequired, v.invalidReason+" Changes that grant more access are not possible.", v.remedy)
	case p == nil:
		return problem.New(problem.PresenceRequired, "This requires a signature, which is not possible from here.", "Use the mcpproxy command for it, in a terminal.")
	}
	return g.acceptProof(ctx, p, s.chain.lastAnchor(), claims)
}

// acceptProof accepts the proof of a request for claims, from an anchor.
func (g *Gate) acceptProof(ctx context.Context, p *Proof, a *Anchor, claims []Claim) error {
	e, err := g.verifiedEvidence(p, a, claims)
	if err != nil {
		return err
	}
	g.decisionMu.Lock()
	defer g.decisionMu.Unlock()
	return g.storeEvidence(ctx, p, e)
}

// storeEvidence stores a proven statement and makes it effective. The caller holds g.decisionMu.
func (g *Gate) storeEvidence(ctx context.Context, p *Proof, e *Evidence) error {
	if g.used[e.Nonce] {
		return invalidProofProblem(ErrUsed.Error())
	}
	count, before := signatureCounter(e.Signature), g.known.passkeyCounters[e.Anchor]
	if count <= before && before|count != 0 {
		return invalidProofProblem("the counter of the authenticator went backwards: the passkey may have been copied")
	}
	switch err := g.opt.Store.SaveStatement(ctx, *e); {
	case errors.Is(err, ErrUsed):
		return invalidProofProblem(ErrUsed.Error())
	case err != nil:
		return problem.New(problem.AuditUnavailable, "The signed decision cannot be stored, so it does not take effect.",
			"Free space on the disk of the data directory, or check the daemon's log, and try again.").Because(err)
	}
	g.mu.Lock()
	g.used[e.Nonce] = true
	if g.known.chain.sinceLastRoot().findByFingerprint(e.Anchor) != nil {
		g.known.recordSignedClaims(e)
	}
	g.known.all = append(g.known.all, *e)
	g.known.passkeyCounters[e.Anchor] = count
	g.mu.Unlock()
	p.grantClaims(e.Claims)
	return nil
}

// verifiedEvidence returns the evidence that an anchor has signed claims for a request. Without a proof the error
// contains the statement to sign.
func (g *Gate) verifiedEvidence(p *Proof, a *Anchor, claims []Claim) (*Evidence, error) {
	claims = sortClaims(claims)
	if p.Text == "" {
		return nil, g.signRequestProblem(p, a, claims)
	}
	e, why := g.verifyProof(p, a, claims)
	if why != "" {
		return nil, invalidProofProblem(why)
	}
	return e, nil
}

// verifyProof returns the evidence of a proof, or the reason why the proof is invalid.
func (g *Gate) verifyProof(p *Proof, a *Anchor, claims []Claim) (*Evidence, string) {
	signed, err := parseSignedStatement(p.Text)
	if err != nil {
		return nil, err.Error()
	}
	e := &Evidence{signed, claims}
	age := g.opt.Now().Sub(e.At)
	switch {
	case e.For != p.For:
		return nil, "it was made for another request"
	case age > GoodFor || age < -GoodFor:
		return nil, "it was made more than five minutes ago, or the clocks differ"
	case e.Statement.Claims != claimsDigest(claims) || e.Count != len(claims):
		return nil, "it signs a different change; the change may have been modified since"
	}
	if err := a.verifyEvidence(e); err != nil {
		return nil, err.Error()
	}
	return e, ""
}

func invalidProofProblem(why string) error {
	return problem.New(problem.PresenceRequired, "The signature is invalid: "+why+".", "Try again, and sign the new text.")
}

// signRequestProblem returns the problem with the statement to sign.
func (g *Gate) signRequestProblem(p *Proof, a *Anchor, claims []Claim) error {
	for _, c := range claims {
		if err := c.validate(); err != nil || len(claims) > maxClaims {
			return problem.New(problem.TooLarge, "There are too many changes for one signature.", "Split the change.")
		}
	}
	at, nonce := p.draftTimeAndNonce(g.opt.Now())
	s := Statement{claimsDigest(claims), len(claims), at, p.For, nonce, a.Fingerprint()}
	return problem.New(problem.PresenceRequired, "This requires your signature.", whereToSignText(a.Kind)).
		With("statement", json.RawMessage(s.CanonicalJSON())).With("claims", claims).With("anchor", a)
}

// whereToSignText tells the user where to sign.
func whereToSignText(k ProofKind) string {
	if k == Passkey {
		return "Sign it in the web UI: run `mcpproxy ui`."
	}
	return "Do it with the mcpproxy command in a terminal, which asks for your passphrase."
}

// currentClaims returns the claims of all current decisions.
func (g *Gate) currentClaims(ctx context.Context, c anchorChain) ([]Claim, error) {
	if g.opt.CurrentClaims == nil {
		return nil, nil
	}
	all, err := g.opt.CurrentClaims(ctx, c.lastAnchor().Kind == None)
	return slices.Clone(all), err
}
