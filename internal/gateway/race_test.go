package gateway

import (
	"context"
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"mcpproxy/internal/approval/approvaltest"
	"mcpproxy/internal/catalog"
	"mcpproxy/internal/config"
	"mcpproxy/internal/policy"
	"mcpproxy/internal/session"
	"mcpproxy/internal/tool"
)

// crowd is a gateway that many use at once. Its upstream runs a call only if it
// lists what was judged, as a real one does, and notes what it ran.
type crowd struct {
	*world  // for the log alone
	t       *testing.T
	cfg     atomic.Pointer[config.Config]
	editing sync.Mutex
	catalog *catalog.Catalog
	gateway *Gateway

	listing sync.Mutex // held while a list is told, as by one server's goroutine
	listed  atomic.Pointer[tool.Definition]
	lies    atomic.Int64
	ran     atomic.Int64
}

func (c *crowd) Surface(string) session.Surface { return crowdSurface{c} }

type crowdSurface struct{ *crowd }

func (crowdSurface) Open(context.Context, *session.Request) (session.Session, session.Reply, error) {
	return nil, session.Reply{}, nil
}

func (c crowdSurface) Do(_ context.Context, call *session.Request) (session.Reply, error) {
	if d := c.listed.Load(); string(d.Raw) == string(call.Judged.Listed()) {
		c.ran.Add(1)
		if d.Hints.ReadOnly == tool.True { // no person has approved that
			c.lies.Add(1)
		}
	}
	return session.Reply{Result: json.RawMessage(`{}`)}, nil
}

// list has the server list a definition; version 3 claims to be read-only.
func (c *crowd) list(v variant) {
	d, err := tool.ParseDefinition("s", json.RawMessage(v.raw("a")))
	if err != nil {
		c.t.Error(err)
		return
	}
	c.listing.Lock()
	defer c.listing.Unlock()
	c.listed.Store(&d)
	c.catalog.ToolsListed("s", []tool.Definition{d})
}

func (c *crowd) change(change func(*config.Server)) {
	c.editing.Lock()
	defer c.editing.Unlock()
	next := *c.cfg.Load()
	next.Servers = slices.Clone(next.Servers)
	change(&next.Servers[0])
	commit, err := c.catalog.Prepare(&next)
	if err != nil {
		c.t.Error(err)
		return
	}
	c.cfg.Store(&next)
	commit()
}

// Whatever lists, approves, blocks, switches, reloads and calls at once: no
// definition runs that nobody has accepted, and none after it was locked.
func TestACrowdRunsNothingUnapproved(t *testing.T) {
	c := &crowd{world: newWorld(t, nil), t: t}
	c.cfg.Store(c.world.cfg)
	book := new(approvaltest.Memory).Book()
	c.catalog = catalog.New(catalog.Options{Servers: c.world.cfg.Servers, Infer: policy.InferAdvise, Book: book, Logger: slog.New(slog.DiscardHandler)})
	c.gateway = New(Deps{Config: c.cfg.Load, Catalog: c.catalog, Book: book, Upstreams: c, Log: c.world, Results: c.world, Logger: slog.New(slog.DiscardHandler)})
	c.list(0)
	c.catalog.Refresh()

	ctx, id := context.Background(), tool.ID{Server: "s", Tool: "a"}
	call := func() error {
		_, err := c.gateway.Call(ctx, CallRequest{Variant: policy.CallToolDestructive, Name: "s:a", Caller: anAgent})
		return err
	}
	if err := call(); err != nil {
		t.Fatal(err)
	}
	fingerprints := make([]string, variants)
	for v := range fingerprints {
		d, err := tool.ParseDefinition("s", json.RawMessage(variant(v).raw("a")))
		if err != nil {
			t.Fatal(err)
		}
		fingerprints[v] = d.Fingerprint().String()
	}
	var working, busy sync.WaitGroup
	var over atomic.Bool
	often := func(n int, do func(r *rand.Rand)) {
		r := rand.New(rand.NewPCG(rand.Uint64(), 0))
		working.Go(func() {
			for range n {
				do(r)
			}
		})
	}
	always := func(do func()) {
		busy.Go(func() {
			for !over.Load() {
				do()
			}
		})
	}
	always(func() { _ = call() })
	always(c.catalog.Refresh)
	always(func() { // what was seen; never the one that claims to be read-only
		if seen := c.listed.Load(); seen.Hints.ReadOnly != tool.True {
			_, _ = c.gateway.ApproveTool(ctx, aPerson, ToolDecision{ToolRef(id), Seen{seen.Fingerprint().String()}})
		}
	})
	const rounds = 100
	often(rounds, func(r *rand.Rand) {
		c.list(variant(r.IntN(variants)))
		for range 20 { // so that the person has the time to decide about it
			_ = call()
		}
	})
	often(rounds/10, func(r *rand.Rand) {
		_, _ = c.gateway.BlockTool(ctx, aPerson, ToolDecision{ToolRef(id), Seen{fingerprints[r.IntN(variants)]}})
	})
	often(rounds/2, func(r *rand.Rand) {
		c.change(func(s *config.Server) { s.Trust = []config.Trust{config.TrustScan, config.TrustAuto}[r.IntN(2)] })
	})
	often(rounds/2, func(r *rand.Rand) { // a lock holds for every call from its return on
		if r.IntN(2) == 0 {
			_, _ = c.gateway.DisableTool(ctx, aPerson, ToolRef(id))
			if call() == nil {
				t.Error("called after it was switched off")
			}
			_, _ = c.gateway.EnableTool(ctx, aPerson, ToolRef(id))
			return
		}
		c.change(func(s *config.Server) { s.Quarantined = true })
		if call() == nil {
			t.Error("called in quarantine")
		}
		c.change(func(s *config.Server) { s.Quarantined = false })
	})
	working.Wait()
	over.Store(true)
	busy.Wait()
	if c.lies.Load() > 0 {
		t.Errorf("of %d calls that ran, %d were of a definition that nobody accepted", c.ran.Load(), c.lies.Load())
	}
}
