// Package presencetest is a presence gate in memory with a user who signs, for tests of packages that use presence.
// Signatures are made and verified as in the product. The package is for tests only.
package presencetest

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"mcpproxy/internal/gate/presence"
	"mcpproxy/internal/problem"
)

// Signer is a presence gate with an anchor, and the private key of that anchor.
type Signer struct {
	*presence.Gate
	t      testing.TB
	key    ed25519.PrivateKey
	stored *memoryStore
}

// memoryStore is a presence.Store in memory.
type memoryStore struct {
	mu sync.Mutex // guards the following fields
	presence.StoredPresence
}

func (s *memoryStore) LoadPresence(context.Context) (presence.StoredPresence, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return presence.StoredPresence{Anchors: slices.Clone(s.Anchors), Statements: slices.Clone(s.Statements)}, nil
}

func (s *memoryStore) SaveStatement(_ context.Context, e presence.Evidence) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Statements = append(s.Statements, e)
	return nil
}

func (s *memoryStore) SaveAnchors(_ context.Context, _ presence.Digest, all []presence.Anchor) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Anchors = slices.Clone(all)
	return nil
}

// NewSigner returns a gate with an anchor, and no signed claims.
func NewSigner(t testing.TB) *Signer {
	t.Helper()
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p := &Signer{t: t, key: key, stored: &memoryStore{}}
	p.Restart()
	anchor := presence.Anchor{Kind: presence.Passphrase, Key: public, Since: time.Now().UTC().Truncate(time.Microsecond)}
	p.signAndRepeat(func(ctx context.Context) error { return p.SetAnchor(ctx, anchor) })
	return p
}

// Restart creates a new gate with the same store, as a restart of the daemon does.
func (p *Signer) Restart() {
	p.t.Helper()
	p.Gate = presence.NewGate(presence.GateOptions{Store: p.stored, Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
	if err := p.Load(context.Background()); err != nil {
		p.t.Fatal(err)
	}
}

// Sign signs claims.
func (p *Signer) Sign(claims ...presence.Claim) {
	p.t.Helper()
	p.signAndRepeat(func(ctx context.Context) error { return p.RequireSigned(ctx, claims...) })
}

// signAndRepeat calls do, signs the statement of its problem, and calls do again with the signature.
func (p *Signer) signAndRepeat(do func(context.Context) error) {
	p.t.Helper()
	err := do(presence.WithProof(context.Background(), &presence.Proof{For: "TEST"}))
	raw, _ := problem.From(err).Detail("statement").(json.RawMessage)
	s, wrong := presence.ParseStatement(raw)
	if wrong != nil {
		p.t.Fatalf("nothing is to be signed: %v", err)
	}
	if err := do(presence.WithProof(context.Background(), &presence.Proof{For: "TEST", Text: presence.SignStatement(s, p.key).HeaderValue()})); err != nil {
		p.t.Fatal(err)
	}
}
