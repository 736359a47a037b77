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

// Person has a gate at which an anchor is set, and its key.
type Person struct {
	*presence.Gate
	t      testing.TB
	key    ed25519.PrivateKey
	stored *stored
}

// stored is a presence.Store.
type stored struct {
	mu sync.Mutex // guards what follows
	presence.Saved
}

func (s *stored) LoadPresence(context.Context) (presence.Saved, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return presence.Saved{Anchors: slices.Clone(s.Anchors), Statements: slices.Clone(s.Statements)}, nil
}

func (s *stored) SaveStatement(_ context.Context, e presence.Evidence) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Statements = append(s.Statements, e)
	return nil
}

func (s *stored) SaveAnchors(_ context.Context, _ presence.Digest, all []presence.Anchor) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Anchors = slices.Clone(all)
	return nil
}

// New returns a person who has signed nothing.
func New(t testing.TB) *Person {
	t.Helper()
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p := &Person{t: t, key: key, stored: &stored{}}
	p.Restart()
	anchor := presence.Anchor{Kind: presence.Passphrase, Key: public, Since: time.Now().UTC().Truncate(time.Microsecond)}
	p.as(func(ctx context.Context) error { return p.Set(ctx, anchor) })
	return p
}

// Restart makes the gate anew, as a start of the product does.
func (p *Person) Restart() {
	p.t.Helper()
	p.Gate = presence.NewGate(presence.Options{Store: p.stored, Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
	if err := p.Load(context.Background()); err != nil {
		p.t.Fatal(err)
	}
}

// Sign signs claims.
func (p *Person) Sign(claims ...presence.Claim) {
	p.t.Helper()
	p.as(func(ctx context.Context) error { return p.Require(ctx, claims...) })
}

// as does something as a request of the person.
func (p *Person) as(do func(context.Context) error) {
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
