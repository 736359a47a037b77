package mcpserver

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/testutil/mcptest"
	"mcpproxy/internal/upstream"
	"mcpproxy/internal/upstream/compat"
)

// throughSet forwards everything to real upstreams, and refuses only the calls that refuse selects.
type throughSet struct {
	*compat.ServerSet
	refuse atomic.Pointer[problem.Problem]
}

// At returns the surface of one server, whose calls are all let through.
func (s *throughSet) At(server string) session.Endpoint {
	return through{s, s.ServerSet.ServerEndpoint(server)}
}

type through struct {
	set *throughSet
	session.Endpoint
}

func (t through) Do(ctx context.Context, r *session.Request) (session.Reply, error) {
	return t.set.judged(ctx, t.Endpoint, r)
}

func (t through) OpenSession(ctx context.Context, initialize *session.Request) (session.Session, session.Reply, error) {
	s, reply, err := t.Endpoint.OpenSession(ctx, initialize)
	if s == nil {
		return nil, reply, err
	}
	return throughSession{t.set, s}, reply, err
}

type throughSession struct {
	set *throughSet
	session.Session
}

func (t throughSession) Do(ctx context.Context, r *session.Request) (session.Reply, error) {
	return t.set.judged(ctx, t.Session, r)
}

func (s *throughSet) judged(ctx context.Context, d session.Doer, r *session.Request) (session.Reply, error) {
	if p := s.refuse.Load(); p != nil {
		return session.Reply{}, p
	}
	if r.Method == "tools/call" {
		name, _ := wirejson.String(wirejson.Find(r.Params, "name"))
		judged := *r
		judged.Permit = session.NewToolCallPermit(name, nil, func() error { return nil })
		r = &judged
	}
	return d.Do(ctx, r)
}

// relayHarness is a harness with two servers behind /mcp/servers/….
func relayHarness(t *testing.T) (*harness, *throughSet, *mcptest.Server) {
	server := mcptest.New(mcptest.Options{}, mcptest.SampleTools()...)
	address := mcptest.Serve(t, server).URL
	set := &throughSet{ServerSet: compat.NewServerSet(upstream.Options{})}
	h := newHarness(t)
	t.Cleanup(func() {
		h.srv.Close()
		if err := set.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	h.srv.At = set.At
	set.ApplySpecs([]upstream.Spec{{Name: "one", Transport: upstream.HTTP, URL: address}, {Name: "two", Transport: upstream.HTTP, URL: address}})
	return h, set, server
}

// to posts a message to a path, in a session if there is one.
func (h *harness) to(path, session, body string) (int, string, http.Header) {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), http.MethodPost, h.http.URL+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		req.Header.Set("Mcp-Session-Id", session)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return resp.StatusCode, string(answer), resp.Header
}

const relayHello = `{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}}}`

// TestRelaySession: the server sees the client's own initialize, and the client's session is valid for this one server.
func TestRelaySession(t *testing.T) {
	h, _, server := relayHarness(t)
	status, body, header := h.to("/mcp/servers/one", "", relayHello)
	session := header.Get("Mcp-Session-Id")
	if status != http.StatusOK || session == "" || !strings.Contains(body, `"id":"i","result":{"protocolVersion":"2025-03-26"`) || !strings.Contains(body, `"serverInfo":{"name":"fake"`) {
		t.Fatalf("%d %s", status, body)
	}
	seen := false
	for _, m := range server.Received("initialize") {
		seen = seen || strings.Contains(string(m.Params), `"capabilities":{"roots":{}}`)
		if m.Header["Mcp-Session-Id"] != nil {
			t.Errorf("the server was told a session: %v", m.Header)
		}
	}
	if !seen {
		t.Error("the server has not seen the client's initialize")
	}
	const list = `{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"_meta":{"big":9007199254740993}}}`
	for path, want := range map[string]int{"/mcp/servers/one": 200, "/mcp/s/one": 200, "/mcp/servers/two": 404, "/mcp": 404, "/mcp/servers/none": 404} {
		if status, body, _ := h.to(path, session, list); status != want {
			t.Errorf("%s: %d %s, want %d", path, status, body, want)
		}
	}
	asked := 0 // the shared connection lists for itself, too
	for _, m := range server.Received("tools/list") {
		if string(m.Params) == `{"_meta":{"big":9007199254740993}}` && m.Header["Mcp-Session-Id"][0] != session {
			asked++
		}
	}
	if asked != 2 {
		t.Errorf("the server has seen %d of the client's lists as they were sent, want 2", asked)
	}
	server.DropSessions()
	for range 2 { // the server has ended it, and so it is
		if status, body, _ := h.to("/mcp/servers/one", session, list); status != http.StatusNotFound || !strings.Contains(body, "Session not found") {
			t.Errorf("%d %s", status, body)
		}
	}
}

// TestRelayAnswers: errors and statuses are those of the server, and refusals are readable for a model.
func TestRelayAnswers(t *testing.T) {
	h, set, _ := relayHarness(t)
	_, _, header := h.to("/mcp/servers/one", "", relayHello)
	session := header.Get("Mcp-Session-Id")
	const call = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"%","arguments":{"n":9007199254740993},"_meta":{"progressToken":"p"}}}`
	named := func(name string) string { return strings.Replace(call, "%", name, 1) }
	status, body, _ := h.to("/mcp/servers/one", session, named("rpc_error"))
	if status != http.StatusOK || body != `{"jsonrpc":"2.0","id":7,"error":{"code":-32050,"message":"no luck","data":{"why":1}}}` {
		t.Errorf("%d %s", status, body)
	}
	if _, body, _ = h.to("/mcp/servers/one", session, `{"jsonrpc":"2.0","id":8,"method":"no/such"}`); !strings.Contains(body, `"code":-32601`) {
		t.Errorf("an unknown method: %s", body)
	}
	if status, body, _ = h.to("/mcp/servers/one", session, `{"jsonrpc":"2.0","method":"tools/call","params":{"name":"echo"}}`); status != http.StatusBadRequest {
		t.Errorf("a call without an id: %d %s", status, body)
	}
	batch := `[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/initialized"},` + named("rpc_error") + `]`
	if _, body, _ = h.to("/mcp/servers/one", session, batch); !strings.HasPrefix(body, `[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":7,"error":{"code":-32050`) {
		t.Errorf("a batch: %s", body)
	}
	set.refuse.Store(problem.New(problem.ToolLocked, "The tool is locked", "Ask."))
	if _, body, _ = h.to("/mcp/servers/one", session, named("echo")); !strings.Contains(body, `"isError":true`) || !strings.Contains(body, `"TOOL_LOCKED"`) {
		t.Errorf("a locked tool: %s", body)
	}
	set.refuse.Store(problem.New(problem.ToolNotFound, "Tool 'one:x' not found", ""))
	if _, body, _ = h.to("/mcp/servers/one", session, named("x")); !strings.Contains(body, `"code":-32602,"message":"Tool 'one:x' not found"`) {
		t.Errorf("an unknown tool: %s", body)
	}
	set.refuse.Store(nil)
	if status, body, _ = h.to("/mcp/servers/none", "", relayHello); status != http.StatusServiceUnavailable || !strings.Contains(body, "not started") {
		t.Errorf("no such server: %d %s", status, body)
	}
}

// TestRelayStream: a client's stream gets the server's own messages, and ends with the session.
func TestRelayStream(t *testing.T) {
	h, _, server := relayHarness(t)
	_, _, header := h.to("/mcp/servers/one", "", relayHello)
	session := header.Get("Mcp-Session-Id")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.http.URL+"/mcp/servers/one", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Mcp-Session-Id", session)
	resp, err := http.DefaultClient.Do(req)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp, err)
	}
	defer resp.Body.Close()
	server.Broadcast("notifications/resources/updated", json.RawMessage(`{"uri":"x:y","odd":9007199254740993}`))
	events := wirejson.NewSSEReader(resp.Body, 1<<20)
	if e, err := events.Next(); err != nil || string(e.Data) != `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"x:y","odd":9007199254740993}}` {
		t.Errorf("%s %v", e.Data, err)
	}
	req, err = http.NewRequestWithContext(t.Context(), http.MethodDelete, h.http.URL+"/mcp/servers/one", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Mcp-Session-Id", session)
	if ended, err := http.DefaultClient.Do(req); err != nil || ended.StatusCode != http.StatusNoContent {
		t.Errorf("DELETE: %v %v", ended, err)
	}
	if e, err := events.Next(); err == nil {
		t.Errorf("the stream goes on: %s", e.Data)
	}
}
