package catalog

import (
	"context"
	"errors"
	"slices"
	"time"

	"mcpproxy/internal/upstream"
)

// errNotListed is returned for a server that has not listed its primitives.
var errNotListed = errors.New("the definitions of the server are unknown")

// ensureListIsFresh makes sure that the catalog has a server's current list. maxAge is the accepted age for servers that
// do not announce changes. If the server cannot be reached, the last list is used.
func (g *PrimitiveGuard) ensureListIsFresh(ctx context.Context, server string, l ListKind, maxAge time.Duration) error {
	last := g.listings.requestOf(g.catalog.Current(), server, l)
	select {
	case last.sem <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-last.sem }()
	s, list := g.catalog.Current().Server(server), &listKinds[l]
	if s == nil {
		return errNotListed
	}
	listed := g.catalog.Primitives(server).hasList(list.kind)
	if !listed && s.State.Capabilities != nil && !HasCapability(s, list.capability) {
		return nil // the server has no such list
	}
	if !last.isDue(s, l, listed, maxAge) {
		if !listed {
			return errNotListed
		}
		return nil
	}
	requestedAt := time.Now()
	raws, err := g.source.ListPrimitives(ctx, server, list.method, list.member)
	duration := time.Since(requestedAt)
	if err != nil {
		if errors.Is(ctx.Err(), context.Canceled) {
			return ctx.Err()
		}
		g.logger.Warn("the definitions of a server could not be listed", "server", server, "list", list.member, "error", err)
		requestedAt = time.Now()
	}
	last.listRequestState = listRequestState{primitivesVersion: s.State.PrimitivesVersion, listedAt: requestedAt, duration: duration, failed: err != nil, answered: upstream.ServerAnswered(err)}
	switch {
	case err == nil, upstream.ServerAnswered(err) && (!listed || len(raws) > 0):
		g.catalog.StorePrimitives(ctx, server, list.kind, raws)
	case !listed:
		return errNotListed
	}
	return nil
}

// markStale requests the list again before the next use, because a client saw a different
// one.
func (g *PrimitiveGuard) markStale(server string, l ListKind) {
	last := g.listings.requestOf(g.catalog.Current(), server, l)
	select {
	case last.sem <- struct{}{}:
		last.stale = true
		<-last.sem
	default: // a request is running
		return
	}
	select {
	case g.stale <- struct{}{}:
	default:
	}
}

// ListApproved returns the approved primitives of a list. If the server cannot be reached, it uses the last list.
func (g *PrimitiveGuard) ListApproved(ctx context.Context, s *Server, l ListKind) []*Primitive {
	kind := listKinds[l].kind
	if g.ensureListIsFresh(ctx, s.Name, l, staleAfter) != nil && !g.catalog.Primitives(s.Name).hasList(kind) {
		return nil
	}
	listed, now := g.catalog.Primitives(s.Name).Listed(kind), g.catalog.CurrentPrimitives(s.Name)
	approved := make([]*Primitive, 0, len(listed))
	for _, one := range listed {
		if now.isApproved(one) {
			approved = append(approved, one)
		}
	}
	return slices.Clip(approved)
}
