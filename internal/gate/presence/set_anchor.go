package presence

import (
	"context"
	"errors"
	"fmt"

	"mcpproxy/internal/problem"
)

// HeadFingerprint returns the fingerprint that the next anchor must follow.
func (g *Gate) HeadFingerprint() Digest {
	s, _ := g.currentVerdict()
	if s == nil {
		return Digest{}
	}
	return s.chain.headFingerprint()
}

// SetAnchor sets the anchor. The current anchor signs it; a root signs itself and all current decisions.
func (g *Gate) SetAnchor(ctx context.Context, a Anchor) error {
	s, v := g.currentVerdict()
	p := proofFromContext(ctx)
	if s == nil || p == nil || !v.canSetRoot && !v.canSetNext {
		return cannotSignNowProblem(v)
	}
	switch {
	case a.Kind == reset:
		return problem.New(problem.InvalidParameter, "A reset cannot be set as an anchor.", "Use `mcpproxy presence reset`.")
	case a.Before != s.chain.headFingerprint():
		return problem.New(problem.Conflict, "The anchor was replaced since you read it.", "To check it again, run `mcpproxy presence test`.")
	case a.Kind == None && s.chain.lastAnchor().Kind == None:
		return problem.New(problem.Conflict, "Presence is already off.", "")
	}
	signer, claims := s.chain.lastAnchor(), []Claim{a.toClaim()}
	if v.canSetRoot {
		if signer = &a; !a.canVerifyStatements() {
			return cannotSignNowProblem(v)
		}
		inForce, err := g.currentClaims(ctx, s.chain)
		if err != nil {
			return err
		}
		claims = append(claims, inForce...)
	}
	e, err := g.verifiedEvidence(p, signer, claims)
	if err != nil {
		return err
	}
	a.Nonce = e.Nonce
	return g.replaceChain(ctx, s, func() (anchorChain, error) {
		return append(s.chain[:len(s.chain):len(s.chain)], a), g.storeEvidence(ctx, p, e)
	})
}

func cannotSignNowProblem(v verdict) error {
	why := v.invalidReason
	if why == "" {
		why = "No anchor can sign this."
	}
	return problem.New(problem.PresenceRequired, why, v.remedy)
}

// AddFingerprintToPlaces writes the anchor's fingerprint to the places that lack it, because this instance is new.
// The anchor must sign that.
func (g *Gate) AddFingerprintToPlaces(ctx context.Context) error {
	s, v := g.currentVerdict()
	p := proofFromContext(ctx)
	if s == nil || p == nil || !v.canJoin {
		return problem.New(problem.Conflict, "An instance can join only if its fingerprint is missing and no other location has a different one.", v.remedy)
	}
	return g.replaceChainSigned(ctx, s, p, s.chain.lastAnchor(), []Claim{NewClaim("presence join", s.chain.headFingerprint().String())}, s.chain)
}

// Reset invalidates all signatures at once, and allows a new anchor after resetTime. It needs no proof, because the
// passphrase may be lost.
func (g *Gate) Reset(ctx context.Context) error {
	s, v := g.currentVerdict()
	if s == nil {
		return cannotSignNowProblem(v)
	}
	if !v.on {
		return problem.New(problem.Conflict, "Presence is none, so there is nothing to reset.", "Set an anchor: `mcpproxy presence set passphrase`.")
	}
	return g.replaceChain(ctx, s, func() (anchorChain, error) {
		at, _ := newTimeAndNonce(g.opt.Now())
		before := s.chain.beforeReset()
		if s.broken != nil {
			before = nil
		}
		return append(before[:len(before):len(before)], Anchor{Kind: reset, Since: at, Before: before.headFingerprint()}), nil
	})
}

// CancelReset cancels a reset. The previous anchor must sign that.
func (g *Gate) CancelReset(ctx context.Context) error {
	s, v := g.currentVerdict()
	p := proofFromContext(ctx)
	switch {
	case s == nil || p == nil:
		return cannotSignNowProblem(v)
	case s.chain.lastAnchor().Kind != reset && !v.canCancelReset:
		return problem.New(problem.Conflict, "Presence was not reset.", "")
	case !v.canCancelReset:
		return problem.New(problem.PresenceRequired, "This reset cannot be cancelled: the anchor was not valid at the time of the reset, or is not valid now.", v.remedy)
	}
	before := s.chain.beforeReset()
	var claims []Claim // for every known reset, so that other instances follow
	for _, place := range s.places {
		claims = append(claims, cancelResetClaim(place.mark.Reset))
	}
	return g.replaceChainSigned(ctx, s, p, before.lastAnchor(), claims, before)
}

// replaceChainSigned replaces the chain after an anchor has signed claims.
func (g *Gate) replaceChainSigned(ctx context.Context, s *loadedPresence, p *Proof, a *Anchor, claims []Claim, next anchorChain) error {
	e, err := g.verifiedEvidence(p, a, claims)
	if err != nil {
		return err
	}
	return g.replaceChain(ctx, s, func() (anchorChain, error) { return next, g.storeEvidence(ctx, p, e) })
}

// replaceChain stores the result of next in every place if the state has not changed since seen. It writes the
// database first, because the other places can be updated from it.
func (g *Gate) replaceChain(ctx context.Context, seen *loadedPresence, next func() (anchorChain, error)) error {
	err := func() error {
		g.decisionMu.Lock()
		defer g.decisionMu.Unlock()
		if now, _ := g.currentVerdict(); now.chain.headFingerprint() != seen.chain.headFingerprint() {
			return invalidProofProblem(ErrMoved.Error())
		}
		c, err := next()
		if err != nil {
			return err
		}
		switch err := g.opt.Store.SaveAnchors(ctx, seen.chain.headFingerprint(), c); {
		case errors.Is(err, ErrMoved):
			return invalidProofProblem(err.Error())
		case err != nil:
			return notStoredProblem("the database", err)
		}
		for _, p := range g.opt.Places {
			m := FingerprintMark{Anchor: c.headFingerprint()}
			if c.lastAnchor().Kind == reset {
				m = FingerprintMark{seen.places[p.Name()].mark.Anchor, c.headFingerprint(), c.lastAnchor().Since}
			}
			if err := p.SetMark(ctx, m); err != nil {
				return notStoredProblem(p.Name(), err)
			}
		}
		return nil
	}()
	if also := g.Load(ctx); err == nil {
		err = also
	}
	if g.opt.Changed != nil {
		g.opt.Changed(ctx)
	}
	return err
}

// RewriteStore stores the known state again, in a possibly new database.
func (g *Gate) RewriteStore(ctx context.Context) error {
	if g == nil {
		return nil
	}
	g.decisionMu.Lock()
	defer g.decisionMu.Unlock()
	s, v := g.currentVerdict()
	if s == nil || len(s.chain)+len(s.all) == 0 {
		return nil
	}
	for _, e := range s.all {
		if err := g.opt.Store.SaveStatement(ctx, e); err != nil && !errors.Is(err, ErrUsed) {
			return err
		}
	}
	stored, err := g.opt.Store.LoadPresence(ctx)
	if err == nil {
		err = g.opt.Store.SaveAnchors(ctx, stored.HeadFingerprint(), s.chain)
	}
	if err != nil || v.invalidReason != "" {
		return err
	}
	for _, p := range g.opt.Places {
		if err := p.SetMark(ctx, FingerprintMark{Anchor: s.chain.headFingerprint()}); err != nil {
			return err
		}
	}
	return nil
}

func notStoredProblem(where string, err error) error {
	return problem.New(problem.AuditUnavailable, fmt.Sprintf("The anchor cannot be stored in %s.", where), "See the log of the daemon, then run `mcpproxy presence test`.").Because(err)
}
