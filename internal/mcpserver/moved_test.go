package mcpserver

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/testutil/mcptest"
	"mcpproxy/internal/upstream"
	"mcpproxy/internal/upstream/compat"
)

// TestSessionMovesWithoutLoss: 12 clients share the session with a server until it asks one of them. Each client
// continues its session with MCPProxy, and gets its own session with the server. No call is lost, before or after.
func TestSessionMovesWithoutLoss(t *testing.T) {
	asks := mcptest.Tool{Definition: mcptest.ToolDefinition("ask"), Handle: func(c *mcptest.Call) (json.RawMessage, error) {
		answer, err := c.SendRequest(mcp.Elicit, json.RawMessage(`{"message":"?"}`))
		if err != nil || answer.Error != nil {
			return nil, fmt.Errorf("no answer: %v %v", answer.Error, err)
		}
		return append(append([]byte(`{"content":[],"answer":`), answer.Result...), '}'), nil
	}}
	server := mcptest.New(mcptest.Options{}, asks, mcptest.Tool{Definition: mcptest.ToolDefinition("plain")})
	set := &throughSet{ServerSet: compat.NewServerSet(upstream.Options{})}
	set.ApplySpecs([]upstream.Spec{{Name: "one", Transport: upstream.HTTP, URL: mcptest.Serve(t, server).URL, Auto: true}})
	t.Cleanup(func() { _ = set.Close(context.Background()) })
	p := startProcess(t, &memoryStore{}, "", func(name string) session.Endpoint { return set.At(name) })
	const path = "/mcp/servers/one"
	hello := strings.Replace(relayHello, `{"roots":{}}`, `{"elicitation":{}}`, 1)
	var ids []string
	for range 12 {
		status, _, header := p.to(path, "", hello)
		id := header.Get(mcp.HeaderSession)
		if status != http.StatusOK || id == "" {
			t.Fatalf("status %d, session %q", status, id)
		}
		ids = append(ids, id)
	}
	// ask calls the tool that asks, and answers the question.
	ask := func(id, word string) string {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, p.http.URL+path,
			strings.NewReader(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"ask"}}`))
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set(mcp.HeaderSession, id)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Error(err)
			return ""
		}
		defer resp.Body.Close()
		last := ""
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			text := strings.TrimPrefix(lines.Text(), "data: ")
			if m, err := wirejson.ParseServerMessage([]byte(text)); err == nil && m.IsRequest() {
				p.ask(http.MethodPost, path, id, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"word":%q}}`, m.ID, word))
			}
			last += text
		}
		return last
	}
	wants := func(got, word string) {
		t.Helper()
		if !strings.Contains(got, `"answer":{"word":"`+word+`"}`) {
			t.Errorf("%s: %s", word, got)
		}
	}
	var wg sync.WaitGroup
	for i, id := range ids {
		wg.Go(func() {
			for range 30 {
				if status, body := p.ask(http.MethodPost, path, id, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"plain"}}`); status != http.StatusOK || !strings.Contains(body, `"content":[]`) {
					t.Errorf("client %d: %d %s", i, status, body)
				}
				if status, body := p.ask(http.MethodPost, path, id, `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`); status != http.StatusAccepted {
					t.Errorf("client %d: %d %s", i, status, body)
				}
			}
		})
	}
	wants(ask(ids[0], "first"), "first")
	wg.Wait()
	for i, id := range ids {
		word := fmt.Sprint("word ", i)
		wants(ask(id, word), word)
	}
	if n := len(server.Received(mcp.Initialize)); n != 2+len(ids) {
		t.Errorf("%d sessions with the server, want one for each client, and two of MCPProxy, which compares lists", n)
	}
}
