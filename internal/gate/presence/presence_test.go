package presence

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"mcpproxy/internal/problem"
)

// memory is a database and a fingerprint store in memory.
type memory struct {
	anchors    []Anchor
	statements []Evidence
	mark       FingerprintMark
	failing    error
}

func (m *memory) LoadPresence(context.Context) (StoredState, error) {
	return StoredState{Anchors: slices.Clone(m.anchors), Statements: slices.Clone(m.statements)}, m.failing
}

func (m *memory) SaveStatement(_ context.Context, e Evidence) error {
	if slices.ContainsFunc(m.statements, func(o Evidence) bool { return o.Nonce == e.Nonce }) {
		return ErrUsed
	}
	if m.failing == nil {
		m.statements = append(m.statements, e)
	}
	return m.failing
}

func (m *memory) SaveAnchors(_ context.Context, head Digest, all []Anchor) error {
	if anchorChain(m.anchors).headFingerprint() != head {
		return ErrMoved
	}
	m.anchors = slices.Clone(all)
	return m.failing
}

type place struct {
	name string
	*memory
}

func (p place) Name() string                                  { return p.name }
func (p place) Mark(context.Context) (FingerprintMark, error) { return p.mark, p.failing }
func (p place) SetMark(_ context.Context, m FingerprintMark) error {
	if p.failing == nil {
		p.mark = m
	}
	return p.failing
}

// world is a gate with its dependencies.
type world struct {
	t            *testing.T
	db           *memory
	vault, log   *memory
	now          time.Time
	requiredKind ProofKind
	inForce      []Claim
	first        bool // the last value of first in a call of CurrentClaims
	*Gate
}

var cheap = SealedKey{Time: 1, ArgonMemoryKiB: 8, Lanes: 1}

const secret = "correct horse battery"

func newWorld(t *testing.T) *world {
	w := &world{t: t, db: &memory{}, vault: &memory{}, log: &memory{}, requiredKind: None, now: time.Date(2026, 11, 26, 10, 0, 0, 123_456_789, time.UTC)}
	w.restart()
	return w
}

// restart creates the gate again.
func (w *world) restart() {
	w.t.Helper()
	w.Gate = NewGate(Options{
		Store: w.db, Places: []FingerprintStore{place{"the vault", w.vault}, place{"the log", w.log}}, RequiredKind: func() ProofKind { return w.requiredKind },
		CurrentClaims: func(_ context.Context, first bool) ([]Claim, error) { w.first = first; return w.inForce, nil },
		Now:           func() time.Time { return w.now }, Logger: slog.New(slog.DiscardHandler),
	})
	if err := w.Load(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

const request = "POST /api/v1/servers/github/tools/create_issue/approve"

// asked returns the statement and the claims that a problem requires to be signed.
func asked(t *testing.T, err error) (s Statement, claims []Claim) {
	t.Helper()
	p := problem.From(err)
	if p == nil || p.Code != problem.PresenceRequired {
		t.Fatalf("no signature is requested: %v", err)
	}
	raw, ok := p.Detail("statement").(json.RawMessage)
	if !ok {
		t.Fatalf("no statement to sign: %v", err)
	}
	s, err = ParseStatement(raw)
	if err != nil {
		t.Fatal(err)
	}
	return s, p.Detail("claims").([]Claim)
}

// do calls f as a request, and signs the requested statement with the key.
func (w *world) do(k ed25519.PrivateKey, f func(context.Context) error) error {
	w.t.Helper()
	s, _ := asked(w.t, f(WithProof(w.t.Context(), &Proof{For: request})))
	return f(WithProof(w.t.Context(), &Proof{For: request, Text: SignStatement(s, k).HeaderValue()}))
}

// enrol sets the first anchor.
func (w *world) enrol() (Anchor, ed25519.PrivateKey) {
	w.t.Helper()
	a, k, err := newPassphraseAnchor([]byte(secret), w.HeadFingerprint(), w.now, cheap)
	if err == nil {
		err = w.do(k, func(ctx context.Context) error { return w.SetAnchor(ctx, a) })
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return a, k
}

func (w *world) standing() Status {
	w.t.Helper()
	s, err := w.Status(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

var (
	approve = NewClaim("approve tool", "github", "create_issue", "sha256:00")
	other   = NewClaim("approve tool", "github", "delete_repo", "sha256:00")
)

func require(g *Gate, claims ...Claim) func(context.Context) error {
	return func(ctx context.Context) error { return g.RequireSigned(ctx, claims...) }
}

func refusedWith(t *testing.T, err error, why string) {
	t.Helper()
	if p := problem.From(err); p == nil || p.Code != problem.PresenceRequired || !strings.Contains(p.Message, why) {
		t.Errorf("%v, want: %s", err, why)
	}
}

// TestNoAnchorNeedsNoSignature checks that decisions need no signature if there is no anchor.
func TestNoAnchorNeedsNoSignature(t *testing.T) {
	w := newWorld(t)
	if err := w.RequireSigned(t.Context(), approve); err != nil || !w.IsConfirmed(approve) || !w.SpendUse(approve, 1) || w.IsOn() {
		t.Error(err)
	}
	var none *Gate
	if err := none.RequireSigned(t.Context(), approve); err != nil || !none.IsConfirmed(approve) || !none.HasUsesLeft(approve, 1) {
		t.Error(err)
	}
}

// TestUnloadedSignaturesAreInvalid checks that no decision is valid before the stored statements are loaded, or if
// they cannot be loaded.
func TestUnloadedSignaturesAreInvalid(t *testing.T) {
	g := NewGate(Options{Store: &memory{failing: errors.New("away")}, RequiredKind: func() ProofKind { return None }, Now: time.Now})
	if err := g.Load(t.Context()); err == nil || g.IsConfirmed(approve) || g.HasUsesLeft(approve, 1) {
		t.Error(err)
	}
	refusedWith(t, g.RequireSigned(t.Context(), approve), "could not be read yet")
}

// TestSignedDecisionIsValid checks that a signature is valid for one decision, also after a restart.
func TestSignedDecisionIsValid(t *testing.T) {
	w := newWorld(t)
	_, k := w.enrol()
	if w.IsConfirmed(approve) {
		t.Fatal("the claim is not signed")
	}
	s, claims := asked(t, w.RequireSigned(WithProof(t.Context(), &Proof{For: request}), other, approve, approve))
	if !slices.Equal(claims, []Claim{approve, other}) || s.Count != 2 || s.For != request {
		t.Errorf("%+v: %q", s, claims)
	}
	text := SignStatement(s, k).HeaderValue()
	once := WithProof(t.Context(), &Proof{For: request, Text: text})
	if err := w.RequireSigned(once, approve, other); err != nil || !w.IsConfirmed(approve) || !w.IsConfirmed(other) {
		t.Fatal(err)
	}
	if err := w.RequireSigned(once, other); err != nil { // one of the claims of the request
		t.Error(err)
	}
	if w.RequireSigned(once, NewClaim("something else")) == nil {
		t.Error("the proof permits a claim that it does not contain")
	}
	refusedWith(t, w.RequireSigned(WithProof(t.Context(), &Proof{For: request, Text: text}), approve, other), "used before")
	w.restart()
	refusedWith(t, w.RequireSigned(WithProof(t.Context(), &Proof{For: request, Text: text}), approve, other), "used before")
	if !w.IsConfirmed(approve) || w.IsConfirmed(NewClaim("approve tool", "github", "create_issue", "sha256:01")) {
		t.Error("a restart changed the signed claims")
	}
}

// TestInvalidProofs checks that a proof that differs in any part from the signed statement is rejected.
func TestInvalidProofs(t *testing.T) {
	w := newWorld(t)
	a, k := w.enrol()
	_, stranger, err := newPassphraseAnchor([]byte(secret), Digest{}, w.now, cheap)
	if err != nil {
		t.Fatal(err)
	}
	good, _ := asked(t, w.RequireSigned(WithProof(t.Context(), &Proof{For: request}), approve))
	with := func(change func(*Statement)) Statement {
		s := good
		change(&s)
		return s
	}
	late := with(func(s *Statement) { s.At = s.At.Add(-GoodFor - time.Second) })
	for what, c := range map[string]struct {
		text, why string
	}{
		"garbage":          {"x", "not a statement"},
		"no signature":     {SignedStatement{good, nil}.HeaderValue(), "not from the anchor"},
		"another key":      {SignStatement(good, stranger).HeaderValue(), "not from the anchor"},
		"another nonce":    {SignedStatement{with(func(s *Statement) { s.Nonce = strings.Repeat("a", 26) }), SignStatement(good, k).Signature}.HeaderValue(), "not from the anchor"},
		"another time":     {SignedStatement{with(func(s *Statement) { s.At = s.At.Add(time.Second) }), SignStatement(good, k).Signature}.HeaderValue(), "not from the anchor"},
		"another request":  {SignStatement(with(func(s *Statement) { s.For = "POST /api/v1/other" }), k).HeaderValue(), "another request"},
		"too old":          {SignStatement(late, k).HeaderValue(), "five minutes"},
		"from the future":  {SignStatement(with(func(s *Statement) { s.At = s.At.Add(GoodFor + time.Second) }), k).HeaderValue(), "five minutes"},
		"other claims":     {SignStatement(with(func(s *Statement) { s.Claims = claimsDigest([]Claim{other}) }), k).HeaderValue(), "a different change"},
		"another count":    {SignStatement(with(func(s *Statement) { s.Count = 2 }), k).HeaderValue(), "a different change"},
		"another anchor":   {SignStatement(with(func(s *Statement) { s.Anchor[0] ^= 1 }), k).HeaderValue(), "another anchor"},
		"a wide statement": {SignStatement(with(func(s *Statement) { s.Claims, s.Count = claimsDigest(sortClaims([]Claim{approve, other})), 2 }), k).HeaderValue(), "a different change"},
	} {
		refusedWith(t, w.RequireSigned(WithProof(t.Context(), &Proof{For: request, Text: c.text}), approve), c.why)
		if w.IsConfirmed(approve) || len(w.db.statements) != 1 {
			t.Errorf("%s is accepted", what)
		}
	}
	refusedWith(t, w.RequireSigned(t.Context(), approve), "not possible from here")
	w.db.failing = errors.New("full")
	if p := problem.From(w.RequireSigned(WithProof(t.Context(), &Proof{For: request, Text: SignStatement(good, k).HeaderValue()}), approve)); p == nil || p.Code != problem.AuditUnavailable || w.IsConfirmed(approve) {
		t.Errorf("a statement that was not stored is valid: %v", p)
	}
	_ = a
}

// TestStoredStatementsAreVerified checks that rows that were inserted or changed in the database are invalid, and are
// reported.
func TestStoredStatementsAreVerified(t *testing.T) {
	w := newWorld(t)
	_, k := w.enrol()
	if err := w.do(k, require(w.Gate, approve)); err != nil {
		t.Fatal(err)
	}
	_, stranger, _ := newPassphraseAnchor([]byte(secret), Digest{}, w.now, cheap)
	good := w.db.statements[1]
	forged := good
	forged.Claims = []Claim{other}
	own := good
	own.Claims, own.Statement.Claims = []Claim{other}, claimsDigest([]Claim{other})
	own.SignedStatement = SignStatement(own.Statement, stranger)
	unsigned := own
	unsigned.Signature = good.Signature
	for what, e := range map[string]Evidence{"other claims": forged, "another key": own, "another's signature": unsigned} {
		w.db.statements = []Evidence{w.db.statements[0], e}
		w.restart()
		if w.IsConfirmed(other) || w.IsConfirmed(approve) || len(w.standing().Bad) != 1 {
			t.Errorf("%s: %+v", what, w.standing())
		}
	}
}

// TestFingerprintPlacesMustAgree checks that no decision is valid if one of the three places has another fingerprint,
// or none.
func TestFingerprintPlacesMustAgree(t *testing.T) {
	for what, damage := range map[string]func(w *world, a Anchor){
		"no vault":      func(w *world, _ Anchor) { w.vault.mark = FingerprintMark{} },
		"another vault": func(w *world, a Anchor) { w.vault.mark = FingerprintMark{Anchor: a.Fingerprint()} },
		"no log":        func(w *world, _ Anchor) { w.log.mark = FingerprintMark{} },
		"another log":   func(w *world, a Anchor) { w.log.mark = FingerprintMark{Anchor: a.Fingerprint()} },
		"vault and log": func(w *world, a Anchor) {
			w.log.mark, w.vault.mark = FingerprintMark{Anchor: a.Fingerprint()}, FingerprintMark{Anchor: a.Fingerprint()}
		},
		"no anchor": func(w *world, _ Anchor) { w.db.anchors = nil },
		"none":      func(w *world, _ Anchor) { w.db.anchors = []Anchor{{Kind: None}} },
		"none after it": func(w *world, _ Anchor) {
			w.db.anchors = append(w.db.anchors, Anchor{Kind: None, Before: w.db.anchors[0].Fingerprint()})
		},
		"own": func(w *world, a Anchor) { w.db.anchors = []Anchor{a} },
		"own, and vault": func(w *world, a Anchor) {
			w.db.anchors, w.vault.mark = []Anchor{a}, FingerprintMark{Anchor: a.Fingerprint()}
		},
		"own, and log": func(w *world, a Anchor) {
			w.db.anchors, w.log.mark = []Anchor{a}, FingerprintMark{Anchor: a.Fingerprint()}
		},
		"own, no vault": func(w *world, a Anchor) { w.db.anchors, w.vault.mark = []Anchor{a}, FingerprintMark{} },
		"own after it": func(w *world, a Anchor) {
			a.Before = w.db.anchors[0].Fingerprint()
			w.db.anchors = append(w.db.anchors, a)
		},
		"an old reset": func(w *world, _ Anchor) { w.db.anchors = append(w.db.anchors, oldReset(w)) },
		"reset and vault": func(w *world, _ Anchor) {
			r := oldReset(w)
			w.db.anchors, w.vault.mark = append(w.db.anchors, r), FingerprintMark{w.vault.mark.Anchor, r.Fingerprint(), r.Since}
		},
		"unreadable": func(w *world, _ Anchor) { w.vault.failing = errors.New("locked") },
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			person, k := w.enrol()
			if err := w.do(k, require(w.Gate, approve)); err != nil {
				t.Fatal(err)
			}
			own, stranger, _ := newPassphraseAnchor([]byte("my own passphrase"), Digest{}, w.now, cheap)
			s := Statement{claimsDigest([]Claim{own.toClaim()}), 1, w.now.UTC().Truncate(time.Microsecond), "x", strings.Repeat("z", 26), own.Fingerprint()}
			own.Nonce = s.Nonce
			w.db.statements = append(w.db.statements, Evidence{SignStatement(s, stranger), []Claim{own.toClaim()}})
			damage(w, own)
			for range 2 {
				if s := w.standing(); s.Void == "" || s.Remedy == "" || !s.On || w.IsConfirmed(approve) {
					t.Errorf("%+v", s)
				}
				refusedWith(t, w.RequireSigned(WithProof(t.Context(), &Proof{For: request}), other), "")
				next, nextKey, _ := newPassphraseAnchor([]byte("my own passphrase"), w.HeadFingerprint(), w.now, cheap)
				for name, err := range map[string]error{
					"set":      w.SetAnchor(WithProof(t.Context(), &Proof{For: request, Text: SignStatement(s, nextKey).HeaderValue()}), next),
					"join":     w.AddFingerprintToPlaces(WithProof(t.Context(), &Proof{For: request, Text: SignStatement(s, stranger).HeaderValue()})),
					"call off": w.CancelReset(WithProof(t.Context(), &Proof{For: request, Text: SignStatement(s, stranger).HeaderValue()})),
				} {
					if err == nil {
						t.Errorf("%s is accepted", name)
					}
				}
				w.restart()
			}
			// An attacker that resets an invalid state cannot cancel the reset, neither without a signature nor with
			// the user's signature.
			if err := w.Reset(t.Context()); err != nil && !errors.Is(err, w.vault.failing) {
				t.Fatal(err)
			}
			if s := w.standing(); s.MayCancelReset && s.Anchor.Fingerprint() != person.Fingerprint() || s.Void == "" {
				t.Errorf("after a reset: %+v", s)
			}
		})
	}
}

func oldReset(w *world) Anchor {
	return Anchor{Kind: reset, Since: w.now.Add(-2 * resetTime), Before: w.db.anchors[0].Fingerprint()}
}

// TestFirstAnchorSignsCurrentDecisions checks that the first anchor signs the current decisions.
func TestFirstAnchorSignsCurrentDecisions(t *testing.T) {
	w := newWorld(t)
	w.inForce = []Claim{approve, other}
	a, _ := w.enrol()
	if !w.first || !w.IsConfirmed(approve) || !w.IsConfirmed(other) || !w.IsConfirmed(a.toClaim()) {
		t.Error("a current decision is no longer valid")
	}
	w.restart()
	if s := w.standing(); !w.IsConfirmed(other) || !s.On || s.Void != "" || s.Kind != Passphrase || s.Signed != 1 {
		t.Errorf("%+v", s)
	}
}

// TestAnchorSignsItsSuccessor sets another passphrase, then none. Signatures of each anchor stay valid as long as
// each anchor was signed by the previous one.
func TestAnchorSignsItsSuccessor(t *testing.T) {
	w := newWorld(t)
	_, k := w.enrol()
	if err := w.do(k, require(w.Gate, approve)); err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(time.Hour)
	second, k2, _ := newPassphraseAnchor([]byte("another passphrase"), w.HeadFingerprint(), w.now, cheap)
	set := func(ctx context.Context) error { return w.SetAnchor(ctx, second) }
	s, _ := asked(t, set(WithProof(t.Context(), &Proof{For: request})))
	refusedWith(t, set(WithProof(t.Context(), &Proof{For: request, Text: SignStatement(s, k2).HeaderValue()})), "not from the anchor")
	if err := w.do(k, set); err != nil {
		t.Fatal(err)
	}
	if err := w.do(k2, require(w.Gate, other)); err != nil {
		t.Fatal(err)
	}
	w.restart()
	if !w.IsConfirmed(approve) || !w.IsConfirmed(other) {
		t.Error("a signature of an earlier anchor is no longer valid")
	}
	// An instance that does not know the second anchor accepts it, because the first anchor signed it.
	w.vault.mark, w.log.mark = FingerprintMark{Anchor: second.Before}, FingerprintMark{Anchor: second.Before}
	w.restart()
	if s := w.standing(); s.Void != "" || w.vault.mark.Anchor != second.Fingerprint() {
		t.Errorf("%+v", s)
	}
	none := Anchor{Kind: None, Since: w.now.UTC().Truncate(time.Microsecond), Before: w.HeadFingerprint()}
	if err := w.do(k2, func(ctx context.Context) error { return w.SetAnchor(ctx, none) }); err != nil || w.IsOn() {
		t.Fatal(err)
	}
	w.restart()
	if s := w.standing(); s.On || s.Void != "" || !w.IsConfirmed(NewClaim("anything")) {
		t.Errorf("%+v", s)
	}
	// A new first anchor after it does not make earlier signatures valid.
	w.enrol()
	if w.IsConfirmed(approve) {
		t.Error("a signature from before presence was none is valid")
	}
}

// TestReset checks that all signatures become invalid, that no anchor can be set for a day, and that the anchor can
// cancel the reset.
func TestReset(t *testing.T) {
	w := newWorld(t)
	if problem.From(w.Reset(t.Context())).Code != problem.Conflict {
		t.Error("a reset without an anchor causes no error")
	}
	_, k := w.enrol()
	if err := w.do(k, require(w.Gate, approve)); err != nil {
		t.Fatal(err)
	}
	if err := w.Reset(t.Context()); err != nil || w.IsConfirmed(approve) {
		t.Fatal(err)
	}
	enrol := func() error {
		a, k, _ := newPassphraseAnchor([]byte(secret), w.HeadFingerprint(), w.now, cheap)
		if err := w.SetAnchor(WithProof(t.Context(), &Proof{For: request}), a); problem.From(err).Detail("statement") == nil {
			return err
		}
		return w.do(k, func(ctx context.Context) error { return w.SetAnchor(ctx, a) })
	}
	w.now = w.now.Add(resetTime - time.Second)
	refusedWith(t, enrol(), "Presence was reset. Until 2026-11-27T10:00:00Z")
	if err := w.do(k, w.CancelReset); err != nil || !w.IsConfirmed(approve) {
		t.Fatal(err)
	}
	w.restart()
	if !w.IsConfirmed(approve) {
		t.Error("after a restart the cancelled reset is in effect")
	}
	if err := w.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(resetTime / 2)
	if err := w.Reset(t.Context()); err != nil { // a second reset: the day starts again
		t.Fatal(err)
	}
	w.now = w.now.Add(resetTime / 2)
	refusedWith(t, enrol(), "Until")
	w.now = w.now.Add(resetTime)
	w.restart()
	if w.IsConfirmed(approve) || w.IsConfirmed(other) {
		t.Error("a claim is valid after the day")
	}
	w.inForce = []Claim{other}
	if err := enrol(); err != nil || w.IsConfirmed(approve) || !w.IsConfirmed(other) || w.first {
		t.Error(err)
	}
}

// TestInstanceJoins covers an instance that shares the database and does not know the anchor yet.
func TestInstanceJoins(t *testing.T) {
	w := newWorld(t)
	_, k := w.enrol()
	if err := w.do(k, require(w.Gate, approve)); err != nil {
		t.Fatal(err)
	}
	w.vault, w.log = &memory{}, &memory{}
	w.restart()
	if w.IsConfirmed(approve) || !w.standing().MayJoin {
		t.Fatalf("%+v", w.standing())
	}
	if err := w.do(k, w.AddFingerprintToPlaces); err != nil || !w.IsConfirmed(approve) || w.log.mark.Anchor != w.HeadFingerprint() {
		t.Error(err)
	}
}

// TestLimitedPermits checks that a permit ends with its uses, and with the process.
func TestLimitedPermits(t *testing.T) {
	w := newWorld(t)
	_, k := w.enrol()
	if w.HasUsesLeft(approve, 2) {
		t.Fatal("the claim is not signed")
	}
	if err := w.do(k, require(w.Gate, approve)); err != nil {
		t.Fatal(err)
	}
	if !w.HasUsesLeft(approve, 2) || !w.SpendUse(approve, 2) || !w.SpendUse(approve, 2) || w.HasUsesLeft(approve, 2) || w.SpendUse(approve, 2) {
		t.Error("the permit is not valid for two uses")
	}
	if err := w.do(k, require(w.Gate, other)); err != nil || !w.HasUsesLeft(other, 1) {
		t.Fatal(err)
	}
	w.SpendAllUses(other)
	if w.HasUsesLeft(other, 1) {
		t.Error("a revoked permit is valid")
	}
	w.now = w.now.Add(time.Second)
	w.restart()
	if w.HasUsesLeft(approve, 5) || w.SpendUse(approve, 5) || !w.IsConfirmed(approve) {
		t.Error("the permit is valid in another process")
	}
}

// TestRequiredWithoutAnAnchor checks that no decision is valid until an anchor is set if the configuration requires
// presence.
func TestRequiredWithoutAnAnchor(t *testing.T) {
	w := newWorld(t)
	w.requiredKind = Passphrase
	if s := w.standing(); w.IsConfirmed(approve) || s.Void == "" || !s.MaySet {
		t.Errorf("%+v", s)
	}
	w.enrol()
	if s := w.standing(); s.Void != "" {
		t.Errorf("%+v", s)
	}
	w.requiredKind = None // an attacker that edits the file may do this
	if s := w.standing(); !s.On || w.IsConfirmed(approve) {
		t.Errorf("%+v", s)
	}
}

// TestPassphraseDecryptsItsKey checks that only the right passphrase decrypts a key.
func TestPassphraseDecryptsItsKey(t *testing.T) {
	a, k, err := newPassphraseAnchor([]byte(secret), Digest{}, time.Now(), cheap)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := a.StoredJSON()
	read, err := ParseAnchor(text)
	if err != nil || read.Fingerprint() != a.Fingerprint() {
		t.Fatal(err)
	}
	if opened, err := read.OpenSealedKey([]byte(secret)); err != nil || !opened.Equal(k) {
		t.Error(err)
	}
	for _, wrong := range []string{"", "correct horse batterY", secret + " "} {
		if _, err := read.OpenSealedKey([]byte(wrong)); !errors.Is(err, ErrPassphrase) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	if _, _, err := NewPassphraseAnchor([]byte("short"), Digest{}, time.Now()); err == nil {
		t.Error("a short passphrase is accepted")
	}
	for name, worse := range map[string]func(*SealedKey){"time": func(s *SealedKey) { s.Time = 11 }, "memory": func(s *SealedKey) { s.ArgonMemoryKiB = 1<<20 + 1 }, "no time": func(s *SealedKey) { s.Time = 0 }, "lanes": func(s *SealedKey) { s.Lanes = 17 }} {
		s := *a.Sealed
		worse(&s)
		if _, err := (&Anchor{Kind: Passphrase, Key: a.Key, Sealed: &s}).OpenSealedKey([]byte(secret)); err == nil || errors.Is(err, ErrPassphrase) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestClaimsAreUnambiguous checks that different values result in different claims.
func TestClaimsAreUnambiguous(t *testing.T) {
	values := []string{"", " ", `"`, `a" "b`, "a", "b", "a b", "\n", "\x00", "\u202e", `\`, `\"`, "é"}
	seen := map[Claim]string{}
	for _, a := range values {
		for _, b := range values {
			c := NewClaim("approve tool", a, b)
			if seen[c] != "" || c.validate() != nil {
				t.Errorf("%q, %q: %s, as %s: %v", a, b, c, seen[c], c.validate())
			}
			seen[c] = fmt.Sprintf("%q, %q", a, b)
		}
	}
}

func FuzzParseSigned(f *testing.F) {
	_, k, _ := newPassphraseAnchor([]byte(secret), Digest{}, time.Now(), cheap)
	f.Add(SignStatement(Statement{Count: 1, At: time.Now().UTC(), For: "POST /", Nonce: strings.Repeat("a", 26)}, k).HeaderValue())
	f.Add("e30.")
	f.Fuzz(func(t *testing.T, text string) {
		if s, err := parseSignedStatement(text); err == nil && s.HeaderValue() != text {
			t.Errorf("%q is parsed as %q", text, s.HeaderValue())
		}
	})
}

func FuzzParseAnchor(f *testing.F) {
	a, _, _ := newPassphraseAnchor([]byte(secret), Digest{}, time.Now(), cheap)
	text, _ := a.StoredJSON()
	f.Add(text)
	f.Add([]byte(`{"kind":"none"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		a, err := ParseAnchor(text)
		if err != nil {
			return
		}
		again, err := a.StoredJSON()
		if err != nil {
			return // JSON cannot represent this year
		}
		if b, err := ParseAnchor(again); err != nil || b.Fingerprint() != a.Fingerprint() {
			t.Errorf("%s: %v", again, err)
		}
	})
}

func FuzzParseEvidence(f *testing.F) {
	e := Evidence{SignedStatement{Statement{claimsDigest([]Claim{approve}), 1, time.Now().UTC(), "POST /", strings.Repeat("a", 26), Digest{}}, nil}, []Claim{approve}}
	f.Add(e.Statement.CanonicalJSON(), []byte("x"), e.ClaimLines())
	f.Fuzz(func(t *testing.T, statement, signature []byte, lines string) {
		if e, err := ParseStoredEvidence(statement, signature, lines); err == nil && (e.ClaimLines() != lines || e.checkClaims() != nil) {
			t.Errorf("%q is parsed as %q", lines, e.ClaimLines())
		}
	})
}
