package catalog

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/upstream"
)

// followTimeout is the time limit for a list that is requested in the background.
const followTimeout = 2 * time.Minute

// StoreChangedInstructions evaluates the current instructions of a server.
func (g *PrimitiveGuard) StoreChangedInstructions(ctx context.Context, s *Server) {
	known := g.catalog.Primitives(s.Name)
	var raws []json.RawMessage
	if s.State.Instructions != "" {
		raws = append(raws, wirejson.AppendString(nil, s.State.Instructions))
	}
	old := known.Listed(tool.KindInstructions)
	if known.hasList(tool.KindInstructions) && len(old) == len(raws) && (len(raws) == 0 || bytes.Equal(old[0].Raw, raws[0])) {
		return
	}
	if known == nil && raws == nil {
		return
	}
	g.catalog.StorePrimitives(ctx, s.Name, tool.KindInstructions, raws)
}

// FollowListChanges lists and evaluates servers' primitives whenever they connect or announce a
// change, until ctx ends.
func (g *PrimitiveGuard) FollowListChanges(ctx context.Context) {
	var following sync.WaitGroup
	defer following.Wait()
	again := time.NewTicker(retryAfter)
	defer again.Stop()
	done := make(chan string)
	busy := map[string]bool{}
	var settle <-chan time.Time // set while a stale list waits for its refresh
	for {
		snapshot := g.catalog.Current()
		for _, s := range snapshot.Servers() {
			if busy[s.Name] || g.AreListsUpToDate(snapshot, s) {
				continue
			}
			busy[s.Name] = true
			following.Go(func() {
				g.listServerPrimitives(ctx, s)
				select {
				case done <- s.Name:
				case <-ctx.Done():
				}
			})
		}
		select {
		case <-ctx.Done():
			return
		case name := <-done:
			delete(busy, name)
		case <-snapshot.ReplacedChan():
		case <-again.C:
		case <-settle:
			settle = nil
		case <-g.stale:
			if settle == nil {
				settle = time.After(minRefreshInterval)
			}
		}
	}
}

// listServerPrimitives lists the primitives of one server.
func (g *PrimitiveGuard) listServerPrimitives(ctx context.Context, s *Server) {
	ctx, cancel := context.WithTimeout(ctx, followTimeout)
	defer cancel()
	g.StoreChangedInstructions(ctx, s)
	for _, l := range []ListKind{ListPrompts, ListResources, ListTemplates} {
		if HasCapability(s, listKinds[l].capability) {
			_ = g.ensureListIsFresh(ctx, s.Name, l, useStaleAfter) // logged and retried
		}
	}
}

// AreListsUpToDate reports whether all lists of a server were requested since it last announced a change. Lists of a
// server that is not ready are not requested, so they count as up to date.
func (g *PrimitiveGuard) AreListsUpToDate(snapshot *Snapshot, s *Server) bool {
	if s.State.Phase != upstream.Ready {
		return true
	}
	known := g.catalog.Primitives(s.Name)
	if s.State.Instructions != "" && !known.hasList(tool.KindInstructions) {
		return false
	}
	for _, l := range []ListKind{ListPrompts, ListResources, ListTemplates} {
		if !HasCapability(s, listKinds[l].capability) {
			continue
		}
		last := g.listings.requestOf(snapshot, s.Name, l)
		select {
		case last.sem <- struct{}{}:
		default:
			return false // a request is running
		}
		now := last.listRequestState
		<-last.sem
		if now.listedAt.IsZero() || now.primitivesVersion != s.State.PrimitivesVersion || now.isRefreshDue() || now.failed && !now.answered && time.Since(now.listedAt) >= retryAfter {
			return false
		}
	}
	return true
}
