package catalog

import (
	"context"
	"errors"
	"slices"
	"time"

	"mcpproxy/internal/upstream"
)

// errNotListed is about a server that has not said what it offers.
var errNotListed = errors.New("it is not known what the server offers")

// know has the catalog know a list of a server as it is now; good is how old that
// may be where the server does not say when it changes. When the server cannot
// be asked what it said last will do.
func (g *PrimitiveGuard) know(ctx context.Context, server string, l PrimitiveList, good time.Duration) error {
	last := g.listings.of(g.catalog.Current(), server, l)
	select {
	case last.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-last.turn }()
	s, list := g.catalog.Current().Server(server), &lists[l]
	if s == nil {
		return errNotListed
	}
	told := g.catalog.Offers(server).Told(list.kind)
	if !told && s.State.Capabilities != nil && !HasCapability(s, list.capability) {
		return nil // it has none
	}
	if !last.due(s, l, told, good) {
		if !told {
			return errNotListed
		}
		return nil
	}
	asked := time.Now()
	raws, err := g.source.Offered(ctx, server, list.method, list.member)
	took := time.Since(asked)
	if err != nil {
		if errors.Is(ctx.Err(), context.Canceled) {
			return ctx.Err()
		}
		g.logger.Warn("what a server offers could not be listed", "server", server, "list", list.member, "error", err)
		asked = time.Now()
	}
	last.listingState = listingState{state: s.State.Offers, at: asked, took: took, lost: err != nil, answered: upstream.Answered(err)}
	switch {
	case err == nil, upstream.Answered(err) && (!told || len(raws) > 0):
		g.catalog.OffersListed(ctx, server, list.kind, raws)
	case !told:
		return errNotListed
	}
	return nil
}

// doubt has a list asked for again before the next use: a client has been shown
// another one.
func (g *PrimitiveGuard) doubt(server string, l PrimitiveList) {
	last := g.listings.of(g.catalog.Current(), server, l)
	select {
	case last.turn <- struct{}{}:
		last.doubted = true
		<-last.turn
	default: // somebody is asking
		return
	}
	select {
	case g.doubts <- struct{}{}:
	default:
	}
}

// Of returns what a server has on a list, of what is approved, with what it said
// last where it cannot be asked.
func (g *PrimitiveGuard) Of(ctx context.Context, s *Server, l PrimitiveList) []*Offer {
	kind := lists[l].kind
	if g.know(ctx, s.Name, l, staleAfter) != nil && !g.catalog.Offers(s.Name).Told(kind) {
		return nil
	}
	listed, now := g.catalog.Offers(s.Name).Listed(kind), g.catalog.OffersNow(s.Name)
	approved := make([]*Offer, 0, len(listed))
	for _, one := range listed {
		if now.Approves(one) {
			approved = append(approved, one)
		}
	}
	return slices.Clip(approved)
}
