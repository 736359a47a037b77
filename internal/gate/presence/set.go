package presence

import (
	"context"
	"errors"
	"fmt"

	"mcpproxy/internal/problem"
)

// Head returns the fingerprint that the next anchor must follow.
func (g *Gate) Head() Digest {
	s, _ := g.verdict()
	if s == nil {
		return Digest{}
	}
	return s.chain.head()
}

// Set sets the anchor. The current anchor signs it; a root signs itself and all current decisions.
func (g *Gate) Set(ctx context.Context, a Anchor) error {
	s, v := g.verdict()
	p := proofOf(ctx)
	if s == nil || p == nil || !v.canSetRoot && !v.canSetNext {
		return notNow(v)
	}
	switch {
	case a.Kind == reset:
		return problem.New(problem.InvalidParameter, "A reset is not set.", "Use `mcpproxy presence reset`.")
	case a.Before != s.chain.head():
		return problem.New(problem.Conflict, "Another anchor was set meanwhile.", "Look at it again: `mcpproxy presence test`.")
	case a.Kind == None && s.chain.last().Kind == None:
		return problem.New(problem.Conflict, "Presence is none already.", "")
	}
	signer, claims := s.chain.last(), []Claim{a.claim()}
	if v.canSetRoot {
		if signer = &a; !a.proves() {
			return notNow(v)
		}
		inForce, err := g.claimsInForce(ctx, s.chain)
		if err != nil {
			return err
		}
		claims = append(claims, inForce...)
	}
	e, err := g.signed(p, signer, claims)
	if err != nil {
		return err
	}
	a.Nonce = e.Nonce
	return g.change(ctx, s, func() (chain, error) {
		return append(s.chain[:len(s.chain):len(s.chain)], a), g.accept(ctx, p, e)
	})
}

func notNow(v verdict) error {
	why := v.void
	if why == "" {
		why = "There is no anchor that could sign this."
	}
	return problem.New(problem.PresenceRequired, why, v.remedy)
}

// Join lets the anchor sign that its fingerprint is written to places that lack it: this instance is new.
func (g *Gate) Join(ctx context.Context) error {
	s, v := g.verdict()
	p := proofOf(ctx)
	if s == nil || p == nil || !v.canJoin {
		return problem.New(problem.Conflict, "There is no anchor whose fingerprint is missing somewhere, and nowhere another one.", v.remedy)
	}
	return g.signedChange(ctx, s, p, s.chain.last(), []Claim{NewClaim("presence join", s.chain.head().String())}, s.chain)
}

// Reset voids all signatures at once, and allows a new anchor after ResetTime. It needs no proof: the
// passphrase may be lost.
func (g *Gate) Reset(ctx context.Context) error {
	s, v := g.verdict()
	if s == nil {
		return notNow(v)
	}
	if !v.on {
		return problem.New(problem.Conflict, "Presence is none, so there is nothing to reset.", "Set an anchor: `mcpproxy presence set passphrase`.")
	}
	return g.change(ctx, s, func() (chain, error) {
		at, _ := fresh(g.opt.Now())
		before := s.chain.withoutResets()
		if s.broken != nil {
			before = nil
		}
		return append(before[:len(before):len(before)], Anchor{Kind: reset, Since: at, Before: before.head()}), nil
	})
}

// CallOff cancels a reset; the previous anchor signs that.
func (g *Gate) CallOff(ctx context.Context) error {
	s, v := g.verdict()
	p := proofOf(ctx)
	switch {
	case s == nil || p == nil:
		return notNow(v)
	case s.chain.last().Kind != reset && !v.canCancelReset:
		return problem.New(problem.Conflict, "Presence was not reset.", "")
	case !v.canCancelReset:
		return problem.New(problem.PresenceRequired, "This reset cannot be called off: the anchor did not hold when it was made, or does not now.", v.remedy)
	}
	before := s.chain.withoutResets()
	var claims []Claim // for every known reset, so that other instances follow
	for _, place := range s.places {
		claims = append(claims, calledOff(place.mark.Reset))
	}
	return g.signedChange(ctx, s, p, before.last(), claims, before)
}

// signedChange replaces the chain after an anchor has signed claims.
func (g *Gate) signedChange(ctx context.Context, s *state, p *Proof, a *Anchor, claims []Claim, next chain) error {
	e, err := g.signed(p, a, claims)
	if err != nil {
		return err
	}
	return g.change(ctx, s, func() (chain, error) { return next, g.accept(ctx, p, e) })
}

// change stores the result of next in every place if the state is still the one seen: in the database
// first, from which the anchor can update the others.
func (g *Gate) change(ctx context.Context, seen *state, next func() (chain, error)) error {
	err := func() error {
		g.deciding.Lock()
		defer g.deciding.Unlock()
		if now, _ := g.verdict(); now.chain.head() != seen.chain.head() {
			return refused(ErrMoved.Error())
		}
		c, err := next()
		if err != nil {
			return err
		}
		switch err := g.opt.Store.SaveAnchors(ctx, seen.chain.head(), c); {
		case errors.Is(err, ErrMoved):
			return refused(err.Error())
		case err != nil:
			return unstored("the database", err)
		}
		for _, p := range g.opt.Places {
			m := Mark{Anchor: c.head()}
			if c.last().Kind == reset {
				m = Mark{seen.places[p.Name()].mark.Anchor, c.head(), c.last().Since}
			}
			if err := p.SetMark(ctx, m); err != nil {
				return unstored(p.Name(), err)
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

// Restore stores the known state again, in a possibly new database.
func (g *Gate) Restore(ctx context.Context) error {
	if g == nil {
		return nil
	}
	g.deciding.Lock()
	defer g.deciding.Unlock()
	s, v := g.verdict()
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
		err = g.opt.Store.SaveAnchors(ctx, stored.Head(), s.chain)
	}
	if err != nil || v.void != "" {
		return err
	}
	for _, p := range g.opt.Places {
		if err := p.SetMark(ctx, Mark{Anchor: s.chain.head()}); err != nil {
			return err
		}
	}
	return nil
}

func unstored(where string, err error) error {
	return problem.New(problem.AuditUnavailable, fmt.Sprintf("The anchor cannot be stored in %s.", where), "See the log of the daemon, then look with `mcpproxy presence test`.").Because(err)
}
