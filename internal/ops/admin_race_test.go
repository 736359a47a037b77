package ops

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/testutil/volume"
)

// crowd is a gateway with concurrent users. Like a real one, its upstream executes a call only if it still lists the
// definition that was checked. It counts the executed calls.
type crowd struct {
	*adminWorld
	editing sync.Mutex

	listing sync.Mutex // serializes the lists, like a server's goroutine
	listed  atomic.Pointer[tool.Definition]
	lies    atomic.Int64
	ran     atomic.Int64
}

func (c *crowd) run(_ context.Context, call *session.Request) (session.Reply, error) {
	if d := c.listed.Load(); string(d.Raw) == string(call.Permit.ListedDefinition()) {
		c.ran.Add(1)
		if d.Hints.ReadOnly == tool.True { // the user never approves this variant
			c.lies.Add(1)
		}
	}
	return session.Reply{Result: json.RawMessage(`{}`)}, nil
}

// list makes the server list a variant of the definition.
func (c *crowd) list(v variant) {
	d, err := tool.ParseDefinition("s", json.RawMessage(v.raw("a")))
	if err != nil {
		c.T.Error(err)
		return
	}
	c.listing.Lock()
	defer c.listing.Unlock()
	c.listed.Store(&d)
	c.Catalog.ToolsListed("s", []*tool.Definition{&d})
}

func (c *crowd) change(change func(*config.Server)) {
	c.editing.Lock()
	defer c.editing.Unlock()
	c.Reload(func(cfg *config.Config) { change(&cfg.Servers[0]) })
}

// Lists, approvals, blocks, reloads and calls run concurrently. No call is executed with a definition that was not
// accepted, and none after the tool was locked.
func TestConcurrentRunsNothingUnapproved(t *testing.T) {
	c := &crowd{adminWorld: newAdminWorld(t, func(c *config.Config) { c.Intent.InferHints = policy.InferAdvise })}
	c.AnswerCall = c.run
	c.list(0)
	c.Catalog.Publish()

	ctx, id := context.Background(), tool.ID{Server: "s", Tool: "a"}
	call := func() error {
		_, err := c.gateway.Call(ctx, gate.LaneCall{CallTool: policy.CallToolDestructive, Name: "s:a", Caller: adminAgent})
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
	seed, stream := volume.Seed(t, 1), uint64(0)
	often := func(n int, do func(r *rand.Rand)) {
		stream++
		r := rand.New(rand.NewPCG(seed, stream))
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
	always(c.Catalog.Publish)
	always(func() { // approves the last listed definition, unless it claims to be read-only
		if seen := c.listed.Load(); seen.Hints.ReadOnly != tool.True {
			_, _ = c.gateway.ApproveTool(ctx, adminPerson, ToolApproval{ToolDecision: ToolDecision{ToolRef: ToolRef(id), SeenFingerprint: SeenFingerprint{Fingerprint: seen.Fingerprint().String()}}})
		}
	})
	const rounds = 100
	often(rounds, func(r *rand.Rand) {
		c.list(variant(r.IntN(variants)))
		for range 20 { // gives the user time to decide about it
			_ = call()
		}
	})
	often(rounds/10, func(r *rand.Rand) {
		_, _ = c.gateway.BlockTool(ctx, adminPerson, ToolDecision{ToolRef: ToolRef(id), SeenFingerprint: SeenFingerprint{Fingerprint: fingerprints[r.IntN(variants)]}})
	})
	often(rounds/2, func(r *rand.Rand) {
		c.change(func(s *config.Server) { s.Trust = []config.Trust{config.TrustScan, config.TrustAuto}[r.IntN(2)] })
	})
	often(rounds/2, func(r *rand.Rand) { // after a lock has returned, every call is rejected
		if r.IntN(2) == 0 {
			_, _ = c.gateway.DisableTool(ctx, adminPerson, ToolRef(id))
			if call() == nil {
				t.Error("a call succeeded after the tool was disabled")
			}
			_, _ = c.gateway.EnableTool(ctx, adminPerson, ToolRef(id))
			return
		}
		c.change(func(s *config.Server) { s.Quarantined = true })
		if call() == nil {
			t.Error("a call succeeded in quarantine")
		}
		c.change(func(s *config.Server) { s.Quarantined = false })
	})
	working.Wait()
	over.Store(true)
	busy.Wait()
	if c.lies.Load() > 0 {
		t.Errorf("of %d executed calls, %d had a definition that was not accepted", c.ran.Load(), c.lies.Load())
	}
}
