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

// followTime bounds the lists that nobody waits for.
const followTime = 2 * time.Minute

// Hear has the catalog know the instructions of a server as they are now.
func (g *PrimitiveGuard) Hear(ctx context.Context, s *Server) {
	known := g.catalog.Offers(s.Name)
	var raws []json.RawMessage
	if s.State.Instructions != "" {
		raws = append(raws, wirejson.AppendString(nil, s.State.Instructions))
	}
	old := known.Listed(tool.KindInstructions)
	if known.Told(tool.KindInstructions) && len(old) == len(raws) && (len(raws) == 0 || bytes.Equal(old[0].Raw, raws[0])) {
		return
	}
	if known == nil && raws == nil {
		return
	}
	g.catalog.OffersListed(ctx, s.Name, tool.KindInstructions, raws)
}

// Follow has what servers offer beside tools listed and judged whenever
// they connect or say that it has changed, until ctx ends.
func (g *PrimitiveGuard) Follow(ctx context.Context) {
	var following sync.WaitGroup
	defer following.Wait()
	again := time.NewTicker(lostAfter)
	defer again.Stop()
	done := make(chan string)
	busy := map[string]bool{}
	var settle <-chan time.Time // set while a doubt waits for its time
	for {
		snapshot := g.catalog.Current()
		for _, s := range snapshot.Servers() {
			if busy[s.Name] || g.Settled(snapshot, s) {
				continue
			}
			busy[s.Name] = true
			following.Go(func() {
				g.follow(ctx, s)
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
		case <-snapshot.Replaced():
		case <-again.C:
		case <-settle:
			settle = nil
		case <-g.doubts:
			if settle == nil {
				settle = time.After(doubtPause)
			}
		}
	}
}

// follow lists what one server offers.
func (g *PrimitiveGuard) follow(ctx context.Context, s *Server) {
	ctx, cancel := context.WithTimeout(ctx, followTime)
	defer cancel()
	g.Hear(ctx, s)
	for _, l := range []PrimitiveList{ListPrompts, ListResources, ListTemplates} {
		if HasCapability(s, lists[l].capability) {
			_ = g.know(ctx, s.Name, l, staleUseAfter) // it is logged, and tried again
		}
	}
}

// Settled reports whether everything that a server offers has been asked for
// since it last said that it may have changed. One that is not ready is not asked.
func (g *PrimitiveGuard) Settled(snapshot *Snapshot, s *Server) bool {
	if s.State.Phase != upstream.Ready {
		return true
	}
	known := g.catalog.Offers(s.Name)
	if s.State.Instructions != "" && !known.Told(tool.KindInstructions) {
		return false
	}
	for _, l := range []PrimitiveList{ListPrompts, ListResources, ListTemplates} {
		if !HasCapability(s, lists[l].capability) {
			continue
		}
		last := g.listings.of(snapshot, s.Name, l)
		select {
		case last.turn <- struct{}{}:
		default:
			return false // somebody is asking
		}
		now := last.listingState
		<-last.turn
		if now.at.IsZero() || now.state != s.State.Offers || now.again() || now.lost && !now.answered && time.Since(now.at) >= lostAfter {
			return false
		}
	}
	return true
}
