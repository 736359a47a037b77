package catalog

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/testutil/approvaltest"
	"mcpproxy/internal/upstream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is a ToolStore in memory. It reports each change on the channel saved.
type memory struct {
	mu    sync.Mutex // guards tools
	tools map[string][]json.RawMessage
	saved chan string
}

func newMemory() *memory {
	return &memory{tools: map[string][]json.RawMessage{}, saved: make(chan string, 1000)}
}

func (m *memory) SaveTools(_ context.Context, server string, raws []json.RawMessage) error {
	m.mu.Lock()
	m.tools[server] = raws
	m.mu.Unlock()
	m.saved <- server
	return nil
}

func (m *memory) LoadTools(context.Context) (map[string][]json.RawMessage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	loaded := map[string][]json.RawMessage{}
	for k, v := range m.tools {
		loaded[k] = v
	}
	return loaded, nil
}

func (m *memory) ForgetTools(_ context.Context, server string) error {
	m.mu.Lock()
	delete(m.tools, server)
	m.mu.Unlock()
	m.saved <- "-" + server
	return nil
}

func define(t testing.TB, server, raw string) *tool.Definition {
	t.Helper()
	d, err := tool.ParseDefinition(server, json.RawMessage(raw))
	if err != nil {
		t.Fatal(err)
	}
	return &d
}

func named(t testing.TB, server string, names ...string) []*tool.Definition {
	var all []*tool.Definition
	for _, n := range names {
		all = append(all, define(t, server, fmt.Sprintf(`{"name":%q,"description":"About %s.","inputSchema":{"type":"object"}}`, n, n)))
	}
	return all
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func enabled(name string) config.Server {
	return config.Server{Name: name, Protocol: "stdio", Enabled: true, Trust: config.TrustScan}
}

// start runs a catalog with the given store and servers until the test ends.
func start(t *testing.T, keeper ToolStore, servers ...config.Server) *Catalog {
	t.Helper()
	c := New(Options{Servers: servers, Store: keeper, Approvals: new(approvaltest.MemoryStore).NewBook(), Logger: quiet()})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return c
}

// list reports a server's tools to the catalog and publishes the snapshot that contains them.
func (c *Catalog) list(server string, tools []*tool.Definition) {
	c.ToolsListed(server, tools)
	c.Publish()
}

func TestStatusFollowsTheConfiguration(t *testing.T) {
	locked := map[string]struct {
		server config.Server
		want   map[string]policy.ToolStatus
	}{
		"enabled":     {enabled("s"), map[string]policy.ToolStatus{"read_a": policy.Callable, "delete_a": policy.Callable}},
		"disabled":    {config.Server{Name: "s"}, map[string]policy.ToolStatus{"read_a": policy.ServerDisabled, "delete_a": policy.ServerDisabled}},
		"quarantined": {config.Server{Name: "s", Enabled: true, Quarantined: true}, map[string]policy.ToolStatus{"read_a": policy.ServerQuarantined}},
		"denied":      {config.Server{Name: "s", Enabled: true, Trust: config.TrustScan, DisabledTools: []string{"delete_*"}}, map[string]policy.ToolStatus{"read_a": policy.Callable, "delete_a": policy.DisabledByConfig}},
		"not allowed": {config.Server{Name: "s", Enabled: true, Trust: config.TrustScan, EnabledTools: []string{"read_?"}}, map[string]policy.ToolStatus{"read_a": policy.Callable, "delete_a": policy.DisabledByConfig}},
	}
	for name, c := range locked {
		t.Run(name, func(t *testing.T) {
			catalog := start(t, newMemory(), c.server)
			catalog.list("s", named(t, "s", "read_a", "delete_a"))
			for toolName, want := range c.want {
				got := catalog.Current().Tool(tool.ID{Server: "s", Tool: toolName})
				if got == nil || got.Status != want {
					t.Errorf("%s: got %v, want status %v", toolName, got, want)
				}
			}
		})
	}
}

func TestLockedToolsDoNotMoveTheScoresOfCallableOnes(t *testing.T) {
	tools := named(t, "s", "delete_repository", "create_repository", "list_issues", "secret_repository_delete")
	without := start(t, newMemory(), enabled("s"))
	without.list("s", tools[:3])
	with := start(t, newMemory(), config.Server{Name: "s", Enabled: true, Trust: config.TrustScan, DisabledTools: []string{"secret_*"}})
	with.list("s", tools)
	const query = "delete a repository"
	a, totalA := without.Current().Search(nil, query, 10, nil)
	b, totalB := with.Current().Search(nil, query, 10, nil)
	same := func(x, y Hit) bool { return x.Score == y.Score && x.Tool.ID == y.Tool.ID }
	if totalA != totalB || totalA == 0 || !slices.EqualFunc(a, b, same) {
		t.Errorf("the results differ: %v %d, %v %d", a, totalA, b, totalB)
	}
	if hits, _ := with.Current().SearchLocked(query, 10, nil); len(hits) != 1 {
		t.Errorf("the locked tool is not found: %v", hits)
	}
}

func TestOverridesMakeTheEffectiveHints(t *testing.T) {
	server := enabled("s")
	server.HintOverrides = []config.HintOverride{
		{Pattern: "*", Hints: tool.Hints{OpenWorld: tool.False}},
		{Pattern: "get_*", Hints: tool.Hints{ReadOnly: tool.True, Destructive: tool.False}},
		{Pattern: "get_rid", Hints: tool.Hints{Destructive: tool.True}},
	}
	c := start(t, newMemory(), server)
	c.infers(t, policy.InferOff)
	c.list("s", []*tool.Definition{
		define(t, "s", `{"name":"get_it","annotations":{"destructiveHint":true,"idempotentHint":true}}`),
		define(t, "s", `{"name":"get_rid"}`), define(t, "s", `{"name":"other"}`),
	})
	want := map[string]struct {
		hints tool.Hints
		with  policy.CallToolVariant
	}{
		"get_it":  {tool.Hints{ReadOnly: tool.True, Destructive: tool.False, Idempotent: tool.True, OpenWorld: tool.False}, policy.CallToolRead},
		"get_rid": {tool.Hints{ReadOnly: tool.True, Destructive: tool.True, OpenWorld: tool.False}, policy.CallToolDestructive},
		"other":   {tool.Hints{OpenWorld: tool.False}, policy.CallToolWrite},
	}
	for name, w := range want {
		got := c.Current().Tool(tool.ID{Server: "s", Tool: name})
		if got.Effective != w.hints || got.CallWith != w.with {
			t.Errorf("%s: got %+v %v, want %+v %v", name, got.Effective, got.CallWith, w.hints, w.with)
		}
	}
}

func TestToolsAreRememberedAcrossRestarts(t *testing.T) {
	keeper := newMemory()
	first := start(t, keeper, enabled("a"), enabled("b"))
	first.ToolsListed("a", named(t, "a", "x", "y"))
	for got := ""; got != "a"; got = <-keeper.saved {
	}

	second := New(Options{Servers: []config.Server{enabled("a")}, Store: keeper, Approvals: new(approvaltest.MemoryStore).NewBook(), Logger: quiet()})
	second.loadSavedTools(context.Background())
	second.Publish()
	if n := second.Current().ToolCount(); n != 2 {
		t.Fatalf("got %d tools after a restart, want 2", n)
	}
	// A definition that the server lists again is not stored next to the restored one.
	again := named(t, "a", "x", "y", "new")
	x, changed := again[0], again[2]
	second.list("a", again)
	if again[0] == x || again[0] != second.Current().Tool(x.ID).Definition || again[2] != changed {
		t.Error("a restored definition is in the snapshot twice")
	}
	// The server's current list replaces the restored list, never the reverse.
	second.list("a", named(t, "a", "z"))
	second.loadSavedTools(context.Background())
	second.Publish()
	if second.Current().Tool(tool.ID{Server: "a", Tool: "z"}) == nil || second.Current().ToolCount() != 1 {
		t.Error("a restored list replaced a received one")
	}
}

func TestRemovedServersAreForgotten(t *testing.T) {
	keeper := newMemory()
	c := start(t, keeper, enabled("a"), enabled("b"))
	c.ToolsListed("a", named(t, "a", "x"))
	for got := ""; got != "a"; got = <-keeper.saved {
	}
	commit, err := c.PrepareConfig(&config.Config{Servers: []config.Server{enabled("b")}})
	if err != nil {
		t.Fatal(err)
	}
	commit()
	if c.Current().Server("a") != nil || c.Current().ToolCount() != 0 {
		t.Error("the removed server is still in the snapshot after the commit")
	}
	for got := ""; got != "-a"; got = <-keeper.saved {
	}
}

func TestStateChangeKeepsTheIndexes(t *testing.T) {
	c := start(t, newMemory(), enabled("a"))
	c.list("a", named(t, "a", "x"))
	before := c.Current()
	c.StateChanged(upstream.State{Name: "a", Phase: upstream.Ready})
	c.Publish()
	after := c.Current()
	if after.Version() == before.Version() || after.lookup.index != before.lookup.index || after.lookup.callable != before.lookup.callable {
		t.Error("want a new snapshot with the same index and the same views")
	}
	if after.Server("a").State.Phase != upstream.Ready {
		t.Error("the state is not in the snapshot")
	}
}

// TestLockKeepsTheIndex checks that locking or unlocking a tool builds a new view, but no new index.
func TestLockKeepsTheIndex(t *testing.T) {
	c := start(t, newMemory(), enabled("a"))
	c.list("a", named(t, "a", "x", "y"))
	before := c.Current()
	locked := enabled("a")
	locked.DisabledTools = []string{"x"}
	commit, err := c.PrepareConfig(&config.Config{Servers: []config.Server{locked}})
	if err != nil {
		t.Fatal(err)
	}
	commit()
	after := c.Current()
	if after.lookup.index != before.lookup.index {
		t.Error("locking a tool built a new index")
	}
	if hits, _ := after.Search(nil, "x", 5, nil); len(hits) != 0 {
		t.Errorf("the search for callable tools returns the locked tool: %v", hits[0].Tool.ID)
	}
	if hits, total := after.SearchLocked("x", 5, nil); total != 1 || hits[0].Tool.ID.Tool != "x" {
		t.Errorf("the search for locked tools does not return the locked tool")
	}
}

func TestConcurrentChangesEndWithTheLast(t *testing.T) {
	c := start(t, newMemory(), enabled("a"), enabled("b"), enabled("c"))
	var changing sync.WaitGroup
	for _, server := range []string{"a", "b", "c"} {
		changing.Go(func() {
			for i := range 50 {
				c.ToolsListed(server, named(t, server, fmt.Sprintf("tool_%d", i)))
				c.StateChanged(upstream.State{Name: server, Restarts: i})
				c.Current().Search(nil, "tool", 5, nil)
			}
		})
	}
	changing.Wait()
	c.Publish()
	for _, server := range []string{"a", "b", "c"} {
		if c.Current().Tool(tool.ID{Server: server, Tool: "tool_49"}) == nil {
			t.Errorf("the last list of %s is not in the snapshot", server)
		}
	}
}

func TestNearestNames(t *testing.T) {
	c := start(t, newMemory(), enabled("github"), enabled("gitlab"))
	c.list("github", named(t, "github", "create_issue", "list_repos"))
	if got := c.Current().SuggestIDs(tool.ID{Server: "github", Tool: "creat_isue"}); len(got) == 0 || got[0] != "github:create_issue" {
		t.Errorf("nearest tool: %v", got)
	}
	if got := c.Current().SuggestIDs(tool.ID{Server: "githb", Tool: "x"}); len(got) == 0 || got[0] != "github" {
		t.Errorf("nearest server: %v", got)
	}
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"a", "a", true}, {"a", "b", false}, {"*", "", true}, {"*", "any/thing:x", true}, {"delete_*", "delete_", true},
		{"delete_*", "undelete_x", false}, {"*_issue", "create_issue", true}, {"*_issue", "create_issues", false},
		{"a*b*c", "axxbyybc", true}, {"a*b*c", "axxbyyb", false}, {"?", "a", true}, {"?", "", false}, {"", "", true}, {"", "a", false},
		{"[x]", "[x]", true}, {"[x]", "x", false}, {"**", "a", true},
	} {
		if got := auth.MatchesPattern(c.pattern, c.name); got != c.want {
			t.Errorf("Matches(%q, %q) = %v", c.pattern, c.name, got)
		}
	}
}

// TestSearchOmitsToolsForClients checks that a tool that clients can call only on its server's own endpoint is
// evaluated and shown, but that no search finds it until the server also lists it to MCPProxy.
func TestSearchOmitsToolsForClients(t *testing.T) {
	c := start(t, newMemory(), enabled("a"))
	for _, theirs := range []bool{true, false} {
		tools := named(t, "a", "ours", "theirs") // new values each time: the catalog owns a received list
		tools[1].ForClients = theirs
		c.list("a", tools)
		s := c.Current()
		known := s.Tool(tools[1].ID)
		if known == nil || known.Status != policy.Callable || known.ForClients != theirs {
			t.Fatalf("for clients %t: %+v", theirs, known)
		}
		_, open := s.Search(nil, "theirs", 10, nil)
		_, locked := s.SearchLocked("theirs", 10, nil)
		if found := open == 1; found == theirs || locked != 0 {
			t.Errorf("for clients %t: %d found, %d of them locked", theirs, open, locked)
		}
	}
}
