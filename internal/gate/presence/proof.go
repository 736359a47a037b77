package presence

import (
	"context"
	"crypto/rand"
	"strings"
	"sync"
	"time"
)

// GoodFor is the time for which a statement can be used.
const GoodFor = 5 * time.Minute

// Proof is the proof that one request contains. It is accepted once, and covers all changes that the request makes.
type Proof struct {
	For  string // method and path of the request
	Text string // value of the header; "" if there is none

	mu      sync.Mutex // guards the following fields
	at      time.Time
	nonce   string
	granted map[Claim]bool
}

type proofContextKey struct{}

// WithProof returns a context with the proof of a request, which may be empty.
func WithProof(ctx context.Context, p *Proof) context.Context {
	return context.WithValue(ctx, proofContextKey{}, p)
}

func proofFromContext(ctx context.Context) *Proof {
	p, _ := ctx.Value(proofContextKey{}).(*Proof)
	return p
}

// draftTimeAndNonce returns the unverified time and nonce of the proof, or new ones.
func (p *Proof) draftTimeAndNonce(now time.Time) (time.Time, string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.nonce == "" {
		p.at, p.nonce = newTimeAndNonce(now)
		if s, err := parseSignedStatement(p.Text); err == nil && s.At.Sub(now).Abs() <= GoodFor {
			p.at, p.nonce = s.At, s.Nonce
		}
	}
	return p.at, p.nonce
}

func newTimeAndNonce(now time.Time) (time.Time, string) {
	return now.UTC().Truncate(time.Microsecond), strings.ToLower(rand.Text())
}

// permitsAll reports whether the proof was accepted for all the claims.
func (p *Proof) permitsAll(claims []Claim) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range claims {
		if !p.granted[c] {
			return false
		}
	}
	return len(claims) > 0
}

func (p *Proof) grantClaims(claims []Claim) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.granted = make(map[Claim]bool, len(claims))
	for _, c := range claims {
		p.granted[c] = true
	}
}
