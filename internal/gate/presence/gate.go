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

// Saved is the stored state: anchors in order, and statements. Bad names the unreadable rows.
type Saved struct {
	Anchors    []Anchor
	Statements []Evidence
	Bad        []string
}

// Head returns the fingerprint of the last anchor, zero for none.
func (s *Saved) Head() Digest { return chain(s.Anchors).head() }

// ErrUsed says that a statement with this nonce is already stored.
var ErrUsed = errors.New("the statement was used before")

// ErrMoved says that another instance has set another anchor.
var ErrMoved = errors.New("another anchor was set meanwhile")

// Store stores anchors and statements.
type Store interface {
	LoadPresence(ctx context.Context) (Saved, error)
	// SaveStatement stores a statement durably, or returns ErrUsed.
	SaveStatement(ctx context.Context, e Evidence) error
	// SaveAnchors replaces the stored anchors, or returns ErrMoved if the last stored one does not have
	// the fingerprint head (zero for none).
	SaveAnchors(ctx context.Context, head Digest, all []Anchor) error
}

// Place is a second location of the anchor's fingerprint, outside of the database. Each instance has its
// own.
type Place interface {
	Name() string
	// Mark returns the stored mark, zero for none.
	Mark(ctx context.Context) (Mark, error)
	SetMark(ctx context.Context, m Mark) error
}

// Options configure a Gate.
type Options struct {
	Store  Store
	Places []Place
	// Demanded returns the configured kind; nil is none.
	Demanded func() Kind
	// ClaimsInForce returns the claims of all current grants or, for the first anchor, of all decisions: a
	// root anchor signs them.
	ClaimsInForce func(ctx context.Context, first bool) ([]Claim, error)
	// Changed is called when other claims count than before.
	Changed func(ctx context.Context)
	Now     func() time.Time
	Logger  *slog.Logger
}

// Gate requires statements, stores them, and says which claims are signed. It is safe for concurrent use.
// A nil Gate is that of an instance without presence.
type Gate struct {
	opt     Options
	started time.Time

	deciding sync.Mutex // held while a statement is accepted or the anchor changes

	mu    sync.RWMutex // guards the following fields
	known *state       // nil: not loaded, nothing counts
	used  map[string]bool
	spent map[short]int
}

// short is a shortened claim hash.
type short [16]byte

func shortOf(c Claim) short {
	sum := sha256.Sum256([]byte(c))
	return short(sum[:16])
}

// state is the loaded state.
type state struct {
	chain  chain
	broken error
	places map[string]standing
	signed map[short]time.Time // time of the last signature
	all    []Evidence          // verified
	bad    []string            // statements that do not verify
	// counted is the highest signature counter of each anchor's passkey.
	counted map[Digest]uint32
	// judged caches the verdict for the demanded kind; not during a reset, whose verdict changes with
	// time.
	judged   verdict
	demanded Kind
}

// NewGate returns a Gate at which nothing counts before Load.
func NewGate(o Options) *Gate {
	if o.Demanded == nil {
		o.Demanded = func() Kind { return None }
	}
	return &Gate{opt: o, started: o.Now().Truncate(time.Microsecond), used: map[string]bool{}, spent: map[short]int{}}
}

// Load reads the stored state and compares it with the places.
func (g *Gate) Load(ctx context.Context) error {
	g.deciding.Lock()
	defer g.deciding.Unlock()
	return g.load(ctx)
}

// Ready loads the state if that has not happened.
func (g *Gate) Ready(ctx context.Context) error {
	if g == nil {
		return nil
	}
	g.deciding.Lock()
	defer g.deciding.Unlock()
	if s, _ := g.verdict(); s != nil {
		return nil
	}
	return g.load(ctx)
}

func (g *Gate) load(ctx context.Context) error {
	saved, err := g.opt.Store.LoadPresence(ctx)
	if err != nil {
		return err
	}
	s := &state{chain: saved.Anchors, signed: map[short]time.Time{}, counted: map[Digest]uint32{}, bad: saved.Bad, places: map[string]standing{}}
	byNonce := make(map[string]*Evidence, len(saved.Statements))
	for i := range saved.Statements {
		byNonce[saved.Statements[i].Nonce] = &saved.Statements[i]
	}
	s.broken = s.chain.check(byNonce)
	current := s.chain.current()
	for i := range saved.Statements {
		e := &saved.Statements[i]
		a := s.chain.find(e.Anchor)
		if a == nil || a.verify(e) != nil {
			s.bad = append(s.bad, e.Nonce)
			continue
		}
		s.all = append(s.all, *e)
		s.counted[e.Anchor] = max(s.counted[e.Anchor], counter(e.Signature))
		if current.find(e.Anchor) != nil {
			s.remember(e)
		}
	}
	for _, p := range g.opt.Places {
		s.places[p.Name()] = g.checkPlace(ctx, s, p)
	}
	s.demanded = g.opt.Demanded()
	s.judged = evaluate(s.chain, s.broken, s.places, s.demanded, g.opt.Now())
	g.mu.Lock()
	g.known = s
	g.mu.Unlock()
	return nil
}

// checkPlace reads the mark of a place and updates it if allowed.
func (g *Gate) checkPlace(ctx context.Context, s *state, p Place) standing {
	m, err := p.Mark(ctx)
	if err != nil {
		g.opt.Logger.Error("the fingerprint of the anchor cannot be read", "place", p.Name(), "error", err)
		return standing{Unreadable, Mark{}}
	}
	is, next := s.chain.follow(m, g.opt.Now().UTC().Truncate(time.Microsecond), func(reset Digest) bool {
		_, ok := s.signed[shortOf(calledOff(reset))]
		return ok
	})
	if next == m || s.broken != nil {
		return standing{is, m}
	}
	if err := p.SetMark(ctx, next); err != nil {
		g.opt.Logger.Error("the fingerprint of the anchor cannot be written", "place", p.Name(), "error", err)
		return standing{is, m}
	}
	if is == Behind {
		is = Matches
	}
	return standing{is, next}
}

// Recheck is Load, and calls Changed if other claims count than before: another instance may have stored
// statements, or a place has changed.
func (g *Gate) Recheck(ctx context.Context) error {
	before, was := g.verdict()
	if err := g.Load(ctx); err != nil {
		return err
	}
	now, is := g.verdict()
	if g.opt.Changed != nil && (before == nil || was != is || len(before.all) != len(now.all) || before.chain.head() != now.chain.head()) {
		g.opt.Changed(ctx)
	}
	return nil
}

func (s *state) remember(e *Evidence) {
	for _, c := range e.Claims {
		if at := shortOf(c); s.signed[at].Before(e.At) {
			s.signed[at] = e.At
		}
	}
}

// verdict returns the current verdict.
func (g *Gate) verdict() (*state, verdict) {
	g.mu.RLock()
	s := g.known
	g.mu.RUnlock()
	if s == nil {
		return nil, verdict{on: true, void: "What proves that a person decides could not be read yet.", remedy: "Try again in a moment; see `mcpproxy status`."}
	}
	demanded := g.opt.Demanded()
	if s.demanded == demanded && s.chain.last().Kind != reset {
		return s, s.judged
	}
	return s, evaluate(s.chain, s.broken, s.places, demanded, g.opt.Now())
}

// Confirmed reports whether a user has signed the claim, or no signature is required.
func (g *Gate) Confirmed(c Claim) bool {
	if g == nil {
		return true
	}
	s, v := g.verdict()
	if !v.on || v.void != "" {
		return !v.on
	}
	g.mu.RLock()
	defer g.mu.RUnlock()
	_, ok := s.signed[shortOf(c)]
	return ok
}

// Void returns why no signature counts, and the remedy; "" if they count or none is required.
func (g *Gate) Void() (why, remedy string) {
	if g == nil {
		return "", ""
	}
	_, v := g.verdict()
	return v.void, v.remedy
}

// On reports whether grants of access need a signed statement.
func (g *Gate) On() bool {
	if g == nil {
		return false
	}
	_, v := g.verdict()
	return v.on
}

// ByPasskey reports whether they need a passkey, which only pages of Origin can use.
func (g *Gate) ByPasskey() bool {
	if g == nil {
		return false
	}
	s, v := g.verdict()
	return s != nil && v.on && s.chain.withoutResets().last().Kind == Passkey
}

// Holds reports whether a claim with limited time and uses counts: it was signed since this process
// started and has uses left. The count is only in memory, where no one can reset it; so it ends with the
// process.
func (g *Gate) Holds(c Claim, uses int) bool { return g.hold(c, uses, 0) }

// Spend is Holds and consumes one use.
func (g *Gate) Spend(c Claim, uses int) bool { return g.hold(c, uses, 1) }

// Exhaust consumes all uses of a claim.
func (g *Gate) Exhaust(c Claim) {
	if g != nil {
		g.hold(c, math.MaxInt, math.MaxInt)
	}
}

func (g *Gate) hold(c Claim, uses, takes int) bool {
	if g == nil {
		return true
	}
	s, v := g.verdict()
	if !v.on {
		return true
	}
	if v.void != "" {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	at, name := s.signed[shortOf(c)], shortOf(c)
	if at.Before(g.started) || g.spent[name] >= uses {
		return false
	}
	g.spent[name] += takes
	return true
}

// Draft returns the time and nonce of the statement of the request, for claims that contain them. Require
// verifies them.
func (g *Gate) Draft(ctx context.Context) (at time.Time, name string) {
	if p := proofOf(ctx); p != nil {
		return p.draft(g.now())
	}
	return fresh(g.now())
}

func (g *Gate) now() time.Time {
	if g == nil {
		return time.Now()
	}
	return g.opt.Now()
}

// Require returns nil if a user has signed the claims, or no signature is required; a proof in the request
// is stored first. Otherwise it returns the problem PRESENCE_REQUIRED with the statement to sign. A
// request requires all its claims at once, before it does anything.
func (g *Gate) Require(ctx context.Context, claims ...Claim) error {
	if g == nil || len(claims) == 0 {
		return nil
	}
	p := proofOf(ctx)
	if p != nil && p.permits(claims) {
		return nil
	}
	s, v := g.verdict()
	switch {
	case !v.on:
		return nil
	case v.void != "":
		return problem.New(problem.PresenceRequired, v.void+" So nothing can be permitted.", v.remedy)
	case p == nil:
		return problem.New(problem.PresenceRequired, "A person has to permit this, and cannot from here.", "Use the command of mcpproxy that does it, in a terminal.")
	}
	return g.require(ctx, p, s.chain.last(), claims)
}

// require accepts the proof of a request for claims, from an anchor.
func (g *Gate) require(ctx context.Context, p *Proof, a *Anchor, claims []Claim) error {
	e, err := g.signed(p, a, claims)
	if err != nil {
		return err
	}
	g.deciding.Lock()
	defer g.deciding.Unlock()
	return g.accept(ctx, p, e)
}

// accept stores a proven statement and puts it into effect. g.deciding is held.
func (g *Gate) accept(ctx context.Context, p *Proof, e *Evidence) error {
	if g.used[e.Nonce] {
		return refused(ErrUsed.Error())
	}
	count, before := counter(e.Signature), g.known.counted[e.Anchor]
	if count <= before && before|count != 0 {
		return refused("the authenticator counts backwards: somebody may have a copy of the passkey")
	}
	switch err := g.opt.Store.SaveStatement(ctx, *e); {
	case errors.Is(err, ErrUsed):
		return refused(ErrUsed.Error())
	case err != nil:
		return problem.New(problem.AuditUnavailable, "What you have signed cannot be stored, so it does not take effect.",
			"Make room on the disk of the data directory, or see the log of the daemon, and try again.").Because(err)
	}
	g.mu.Lock()
	g.used[e.Nonce] = true
	if g.known.chain.current().find(e.Anchor) != nil {
		g.known.remember(e)
	}
	g.known.all = append(g.known.all, *e)
	g.known.counted[e.Anchor] = count
	g.mu.Unlock()
	p.grant(e.Claims)
	return nil
}

// signed returns the evidence that an anchor has signed claims for a request. Without a proof the error
// contains the statement to sign.
func (g *Gate) signed(p *Proof, a *Anchor, claims []Claim) (*Evidence, error) {
	claims = sorted(claims)
	if p.Text == "" {
		return nil, g.ask(p, a, claims)
	}
	e, why := g.proven(p, a, claims)
	if why != "" {
		return nil, refused(why)
	}
	return e, nil
}

// proven returns the evidence of a proof, or why it is invalid.
func (g *Gate) proven(p *Proof, a *Anchor, claims []Claim) (*Evidence, string) {
	signed, err := parseSigned(p.Text)
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
	case e.Statement.Claims != digestOf(claims) || e.Count != len(claims):
		return nil, "it says something else than what is to be done, which may have changed meanwhile"
	}
	if err := a.verify(e); err != nil {
		return nil, err.Error()
	}
	return e, ""
}

func refused(why string) error {
	return problem.New(problem.PresenceRequired, "The proof that a person decides does not hold: "+why+".", "Do it once more, and sign what you are shown then.")
}

// ask returns the problem with the statement to sign.
func (g *Gate) ask(p *Proof, a *Anchor, claims []Claim) error {
	for _, c := range claims {
		if err := c.check(); err != nil || len(claims) > maxClaims {
			return problem.New(problem.TooLarge, "There is more to sign than can be signed at once.", "Decide in parts.")
		}
	}
	at, nonce := p.draft(g.opt.Now())
	s := Statement{digestOf(claims), len(claims), at, p.For, nonce, a.Fingerprint()}
	return problem.New(problem.PresenceRequired, "A person has to permit this.", howTo(a.Kind)).
		With("statement", json.RawMessage(s.Text())).With("claims", claims).With("anchor", a)
}

// howTo says where a user signs.
func howTo(k Kind) string {
	if k == Passkey {
		return "Permit it in the web UI: `mcpproxy ui`."
	}
	return "Do it with the mcpproxy command in a terminal, which asks for your passphrase."
}

// Standing is the status of presence.
type Standing struct {
	On       bool
	Kind     Kind   // of the anchor
	Void     string // why nothing that grants access counts; "" if signatures count
	Remedy   string
	Anchor   *Anchor // the verifying anchor, nil for none
	Reset    time.Time
	Places   []PlaceStanding
	Signed   int      // number of verified statements
	Bad      []string // statements that do not verify
	MaySet   bool     // a root anchor can be set
	MayJoin  bool
	ResetOff bool // a reset can be cancelled
}

// PlaceStanding is the status of one place.
type PlaceStanding struct {
	Name  string
	State PlaceState
}

// Standing reads the places again and returns the status of presence.
func (g *Gate) Standing(ctx context.Context) (Standing, error) {
	if g == nil {
		return Standing{Kind: None}, nil
	}
	if err := g.Recheck(ctx); err != nil {
		return Standing{}, err
	}
	s, v := g.verdict()
	out := Standing{On: v.on, Kind: s.chain.last().Kind, Void: v.void, Remedy: v.remedy, Signed: len(s.all), Bad: s.bad, MaySet: v.canSetRoot, MayJoin: v.canJoin}
	for _, p := range g.opt.Places {
		out.Places = append(out.Places, PlaceStanding{p.Name(), s.places[p.Name()].state})
	}
	if out.ResetOff = v.canCancelReset; s.chain.last().Kind == reset {
		out.Reset, out.Kind = s.chain.last().Since, None
	}
	if before := s.chain.withoutResets(); before.last().proves() {
		out.Anchor = before.last()
		out.Kind = out.Anchor.Kind
	}
	return out, nil
}

// claimsInForce returns the claims of all current decisions.
func (g *Gate) claimsInForce(ctx context.Context, c chain) ([]Claim, error) {
	if g.opt.ClaimsInForce == nil {
		return nil, nil
	}
	all, err := g.opt.ClaimsInForce(ctx, c.last().Kind == None)
	return slices.Clone(all), err
}
