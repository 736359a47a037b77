package gate

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"testing"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/pause"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/testutil/catalogtest"
	"mcpproxy/internal/upstream/oauth"
)

// world is a gate with everything around it in memory.
type world struct {
	*catalogtest.Harness
	gate   *Gate
	relays *catalogtest.ScriptedServers
}

func newWorld(t testing.TB, change func(*config.Config), definitions ...string) *world {
	t.Helper()
	w := &world{Harness: catalogtest.New(t, change, definitions...)}
	w.relays = w.Upstreams.(*catalogtest.ScriptedServers)
	w.gate = New(depsOf(w.Harness))
	return w
}

// depsOf returns the dependencies of a gate in front of the servers of w.
func depsOf(w *catalogtest.Harness) Deps {
	off := pause.New(pause.File{Path: filepath.Join(w.T.TempDir(), "pause.json")}, func() {})
	if err := off.Reload(context.Background(), false); err != nil {
		w.T.Fatal(err)
	}
	return Deps{
		Pause: off, Config: w.Config, Catalog: w.Catalog, UpstreamSurface: w.Surface, Offers: catalog.NewPrimitiveGuard(w.Catalog, w, catalogtest.Logger),
		Log: w, Results: w, Logins: (*oauth.Accounts)(nil), Proposed: w.Book.IsProposed, Logger: catalogtest.Logger,
	}
}

var (
	anAgent = catalogtest.AgentCaller
	passed  = catalogtest.NewRequest
)

func (w *world) call(v policy.CallToolVariant, name, args string) (CallResult, *problem.Problem) {
	w.T.Helper()
	r, err := w.gate.Call(context.Background(), LaneCall{CallTool: v, Name: name, Args: json.RawMessage(args), Caller: anAgent})
	if err == nil {
		return r, nil
	}
	var p *problem.Problem
	if !errors.As(err, &p) {
		w.T.Fatalf("the error %v is not a *problem.Problem", err)
	}
	return r, p
}

// relay sends a client's request outside a session.
func (w *world) relay(ctx context.Context, r *session.Request) (session.Reply, error) {
	return w.gate.GatedEndpoint("s").Do(ctx, r)
}

const (
	readsTool    = `{"name":"reads","description":"Read a thing.","inputSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]},"annotations":{"readOnlyHint":true}}`
	destroysTool = `{"name":"destroys","description":"Destroy a thing.","annotations":{"destructiveHint":true}}`
	brokenTool   = `{"name":"broken","inputSchema":{"type":"object","properties":{"n":{"type":"no such type"}}}}`
)

const reads, deletes, denied = catalogtest.Reads, catalogtest.Deletes, catalogtest.Denied

func relayWorld(t *testing.T, change func(*config.Config)) (*world, *catalogtest.ScriptedServers) {
	w := newWorld(t, func(c *config.Config) {
		c.Servers[0].DisabledTools = []string{"denied"}
		if change != nil {
			change(c)
		}
	}, reads, deletes, denied)
	return w, w.relays
}
