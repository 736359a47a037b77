// Package presencetest is a gate with a person before it, in memory, for tests of what
// stands on presence.
//
// What the person signs goes the way that it goes in the product. It is for tests only: no
// package of the product imports it.
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

// Signer has a gate at which an anchor is set, and its key.
type Signer struct {
	*presence.Gate
	t      testing.TB
	key    ed25519.PrivateKey
	stored *memoryStore
}

// memoryStore is a presence.Store.
type memoryStore struct {
	mu sync.Mutex // guards what follows
	presence.Saved
}

func (s *memoryStore) LoadPresence(context.Context) (presence.Saved, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return presence.Saved{Anchors: slices.Clone(s.Anchors), Statements: slices.Clone(s.Statements)}, nil
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

// NewSigner returns a person who has signed nothing.
func NewSigner(t testing.TB) *Signer {
	t.Helper()
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p := &Signer{t: t, key: key, stored: &memoryStore{}}
	p.Restart()
	anchor := presence.Anchor{Kind: presence.Passphrase, Key: public, Since: time.Now().UTC().Truncate(time.Microsecond)}
	p.signAndRepeat(func(ctx context.Context) error { return p.Set(ctx, anchor) })
	return p
}

// Restart makes the gate anew, as a start of the product does.
func (p *Signer) Restart() {
	p.t.Helper()
	p.Gate = presence.NewGate(presence.Options{Store: p.stored, Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
	if err := p.Load(context.Background()); err != nil {
		p.t.Fatal(err)
	}
}

// Sign signs claims.
func (p *Signer) Sign(claims ...presence.Claim) {
	p.t.Helper()
	p.signAndRepeat(func(ctx context.Context) error { return p.Require(ctx, claims...) })
}

// signAndRepeat does something as a request of the person.
func (p *Signer) signAndRepeat(do func(context.Context) error) {
	p.t.Helper()
	err := do(presence.With(context.Background(), &presence.Proof{For: "TEST"}))
	raw, _ := problem.From(err).Detail("statement").(json.RawMessage)
	s, wrong := presence.ParseStatement(raw)
	if wrong != nil {
		p.t.Fatalf("nothing is to be signed: %v", err)
	}
	if err := do(presence.With(context.Background(), &presence.Proof{For: "TEST", Text: presence.Sign(s, p.key).Text()})); err != nil {
		p.t.Fatal(err)
	}
}
