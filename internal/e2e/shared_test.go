package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpproxy/internal/testutil/mcptest"
)

// sharer is a client of the two servers of TestSharedSession.
type sharer struct {
	everything, memory *mcp.ClientSession
	prefix             func(server string) string // of the server's tool names
	mu                 sync.Mutex                 // guards totals
	totals             []float64                  // total values of the received progress
}

// sharer connects a client of a protocol version to /mcp/all or to the endpoint of each server.
func (d *daemon) sharer(version string, all bool) *sharer {
	s := &sharer{}
	opt := &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.totals = append(s.totals, r.Params.Total)
	}}
	if all {
		s.everything = d.sdkAt("/mcp/all", version, opt)
		s.memory, s.prefix = s.everything, func(server string) string { return server + "__" }
		return s
	}
	s.everything, s.memory = d.sdkAt("/mcp/servers/everything", version, opt), d.sdkAt("/mcp/servers/memory", version, opt)
	s.prefix = func(string) string { return "" }
	return s
}

func (s *sharer) call(ctx context.Context, server, tool string, arguments map[string]any) (string, error) {
	session := s.everything
	if server == "memory" {
		session = s.memory
	}
	p := &mcp.CallToolParams{Name: s.prefix(server) + tool, Arguments: arguments}
	p.SetProgressToken("same")
	r, err := session.CallTool(ctx, p)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(r)
	if r.IsError {
		err = fmt.Errorf("%s", text)
	}
	return string(text), err
}

// TestSharedSession: 16 clients of both protocols, on both endpoints, use two servers from npm, each with one process.
// Each client gets its own progress, and the sessions survive the kill of a server.
func TestSharedSession(t *testing.T) {
	t.Parallel()
	modules, node := peers(t)
	dir := t.TempDir()
	server := func(name, script string) string { // the script records each start
		return fmt.Sprintf(`%q: {"session": "shared", "command": "sh", "args": ["-c", "echo start >> \"$0\"; exec \"$@\"", %q, %q, %q],
			"env": {"MEMORY_FILE_PATH": %q}}`, name, filepath.Join(dir, name), node,
			filepath.Join(modules, "@modelcontextprotocol", script, "dist", "index.js"), filepath.Join(dir, "memory.json"))
	}
	starts := func(name string) int {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(text), "start")
	}
	d := startDaemon(t, `{"mcpServers": {`+server("everything", "server-everything")+`, `+server("memory", "server-memory")+`}}`)
	d.awaitTools("everything:echo", "memory:read_graph")
	before := starts("everything") + starts("memory") // a server that does not support the modern protocol may end and be restarted

	var all []*sharer
	for i := range 16 {
		all = append(all, d.sharer([]string{legacyRevision, modernRevision}[i%2], i%4 > 1))
	}
	var wg sync.WaitGroup
	for i, s := range all {
		wg.Go(func() {
			steps := 3 + i
			for range 3 {
				want := fmt.Sprint("client ", i)
				if text, err := s.call(within(t), "everything", "echo", map[string]any{"message": want}); err != nil || !strings.Contains(text, "Echo: "+want+`"`) {
					t.Errorf("client %d: %s %v", i, text, err)
				}
				if text, err := s.call(within(t), "everything", "trigger-long-running-operation", map[string]any{"duration": 0.2, "steps": steps}); err != nil || !strings.Contains(text, fmt.Sprintf("Steps: %d.", steps)) {
					t.Errorf("client %d: %s %v", i, text, err)
				}
			}
		})
	}
	wg.Wait()
	for i, s := range all {
		eventually(t, fmt.Sprintf("client %d has its progress", i), func() error {
			s.mu.Lock()
			defer s.mu.Unlock()
			want := slices.Repeat([]float64{float64(3 + i)}, 3*(3+i))
			if !slices.Equal(s.totals, want) {
				return fmt.Errorf("%v, want %v", s.totals, want)
			}
			return nil
		})
	}
	for i, s := range all { // sequentially, because the server reads, changes and writes its file
		entity := map[string]any{"name": fmt.Sprint("entity-", i), "entityType": "client", "observations": []string{"was here"}}
		if text, err := s.call(within(t), "memory", "create_entities", map[string]any{"entities": []any{entity}}); err != nil {
			t.Errorf("client %d: %s %v", i, text, err)
		}
	}
	for i, s := range all {
		wg.Go(func() {
			text, err := s.call(within(t), "memory", "read_graph", map[string]any{})
			for other := range all {
				if err != nil || !strings.Contains(text, fmt.Sprintf(`entity-%d`, other)) {
					t.Errorf("client %d does not see that of %d: %s %v", i, other, text, err)
					break
				}
			}
		})
	}
	wg.Wait()
	if now := starts("everything") + starts("memory"); now != before {
		t.Errorf("the servers were started %d times, %d before the first client", now, before)
	}

	was, err := d.server("memory")
	if err != nil || signal(was.PID, os.Kill) != nil {
		t.Fatalf("%+v %v", was, err)
	}
	eventually(t, "the killed server is ready again", func() error {
		s, err := d.server("memory")
		if err == nil && (s.State != "ready" || s.PID == was.PID) {
			err = fmt.Errorf("%+v", s)
		}
		return err
	})
	for i, s := range all { // in their existing sessions
		if text, err := s.call(within(t), "memory", "read_graph", map[string]any{}); err != nil || !strings.Contains(text, "entity-0") {
			t.Errorf("client %d: %s %v", i, text, err)
		}
	}
	if code, out, _ := d.cli("upstream", "get", "memory"); code != 0 || !strings.Contains(out, "shared by its clients") {
		t.Errorf("upstream get: %d\n%s", code, out)
	}
}

// TestSharedSessionNotifications: two clients share one session. Only the client that subscribed to a resource is
// notified of it, and both are notified of a changed list. When a client disconnects, only its own subscriptions end.
func TestSharedSessionNotifications(t *testing.T) {
	t.Parallel()
	up := mcptest.New(mcptest.Options{
		Capabilities: `{"tools":{"listChanged":true},"resources":{"subscribe":true}}`,
		Other:        func(string, *mcptest.Call) (json.RawMessage, error) { return json.RawMessage("{}"), nil },
	}, mcptest.Tool{Definition: mcptest.ToolDefinition("echo")})
	d := startDaemon(t, fmt.Sprintf(`{"mcpServers":{"s":{"url":%q,"session":"shared"}}}`, mcptest.Serve(t, up).URL))
	d.awaitTools("s:echo")
	connect := func() (s *mcp.ClientSession, updated, listed chan struct{}) {
		updated, listed = make(chan struct{}, 100), make(chan struct{}, 100)
		return d.sdkAt("/mcp/servers/s", legacyRevision, &mcp.ClientOptions{
			ResourceUpdatedHandler: func(context.Context, *mcp.ResourceUpdatedNotificationRequest) { updated <- struct{}{} },
			ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { listed <- struct{}{} },
		}), updated, listed
	}
	a, updatedA, listedA := connect()
	b, updatedB, listedB := connect()
	if err := a.Subscribe(within(t), &mcp.SubscribeParams{URI: "file:///x"}); err != nil {
		t.Fatal(err)
	}
	up.Broadcast("notifications/resources/updated", json.RawMessage(`{"uri":"file:///x"}`))
	up.Broadcast("notifications/tools/list_changed", nil)
	for what, heard := range map[string]chan struct{}{"updated": updatedA, "list_changed": listedA, "list_changed of the other": listedB} {
		select {
		case <-heard:
		case <-within(t).Done():
			t.Fatalf("no notification: %s", what)
		}
	}
	if len(updatedB) != 0 { // a notification would have arrived before
		t.Error("a client was notified of a resource without a subscription")
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	eventually(t, "the server gets the unsubscription", func() error {
		if n := len(up.Received("resources/unsubscribe")); n != 1 {
			return fmt.Errorf("%d times", n)
		}
		return nil
	})
	if _, err := b.CallTool(within(t), &mcp.CallToolParams{Name: "echo"}); err != nil {
		t.Errorf("the other client: %v", err)
	}
	if n := len(up.Received("initialize")); n != 1 {
		t.Errorf("%d sessions", n)
	}
}

// TestSessionChangesLive: a change of the session setting applies when it is saved. The open sessions of clients end,
// and the server process keeps running.
func TestSessionChangesLive(t *testing.T) {
	t.Parallel()
	up := mcptest.New(mcptest.Options{}, mcptest.Tool{Definition: mcptest.ToolDefinition("echo")})
	url := mcptest.Serve(t, up).URL
	config := func(session string) string {
		return fmt.Sprintf(`{"mcpServers":{"s":{"url":%q,"session":%q}}}`, url, session)
	}
	d := startDaemon(t, config("shared"))
	d.awaitTools("s:echo")
	status := func(c *relayClient) int {
		resp, err := c.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}`)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	before := d.relayClient("s")
	if got := status(before); got != http.StatusOK {
		t.Fatalf("status %d", got)
	}
	d.writeConfig(config("per_client"))
	eventually(t, "the session has ended", func() error {
		if got := status(before); got != http.StatusNotFound {
			return fmt.Errorf("status %d", got)
		}
		return nil
	})
	if n := len(up.Received("initialize")); n != 1 {
		t.Errorf("%d sessions before the first client", n)
	}
	if got := status(d.relayClient("s")); got != http.StatusOK {
		t.Errorf("status %d", got)
	}
	if n := len(up.Received("initialize")); n != 2 {
		t.Errorf("%d sessions after the first client", n)
	}
	if s, err := d.server("s"); err != nil || s.Restarts != 0 || s.State != "ready" {
		t.Errorf("%+v %v", s, err)
	}
}
