//go:build unix

package compat

import (
	"encoding/json"
	"strings"
	"testing"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/testutil/mcptest"
)

// TestTasksAreNotBridged: the tasks of one protocol cannot be translated to the other, so neither side sees them.
func TestTasksAreNotBridged(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	legacy, modern := mcptest.NewTaskServer(false), mcptest.NewTaskServer(true)
	f.ApplySpecs([]Spec{httpSpec(t, "legacy", legacy), httpSpec(t, "modern", modern)})
	f.untilReady(t, "legacy", 0)
	f.untilReady(t, "modern", 0)
	const capabilities = `{"elicitation":{},"tasks":{"list":{}},"extensions":{"io.modelcontextprotocol/tasks":{},"io.example/x":{"a":1}}}`
	call := func(server string, c *Session, params string) Reply {
		t.Helper()
		reply, err := f.Call(t.Context(), server, Call{Tool: "work", Passed: &Passed{Session: c,
			Request: session.Request{ID: json.RawMessage("2"), Method: mcp.CallTool, Params: json.RawMessage(params), Caller: named("me")}}})
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	unknown := func(server string, c *Session) {
		t.Helper()
		seen := len(legacy.Received("tasks/get")) + len(modern.Received("tasks/get"))
		a, err := f.Relay(t.Context(), server, c, session.Request{ID: json.RawMessage("3"), Method: "tasks/get", Params: json.RawMessage(`{"taskId":"a"}`)})
		if err != nil || a.Error == nil || a.Error.Code != wirejson.CodeMethodNotFound || len(legacy.Received("tasks/get"))+len(modern.Received("tasks/get")) != seen {
			t.Errorf("%s: %+v %v", server, a, err)
		}
	}

	c, a, err := f.Converse(t.Context(), "modern", session.Request{ID: json.RawMessage("1"), Method: mcp.Initialize, Params: json.RawMessage(
		`{"protocolVersion":"2025-11-25","capabilities":` + capabilities + `,"clientInfo":{"name":"c","version":"1"}}`)})
	if err != nil || c == nil || !strings.Contains(string(a.Result), `"capabilities":{"tools":{"listChanged":true},"extensions":{}}`) {
		t.Fatalf("%s %v", a.Result, err)
	}
	if r := call("modern", c, `{"name":"work","arguments":{"id":"a"},"task":{"ttl":1}}`); !strings.Contains(string(r.Result), `"told":"at once"`) {
		t.Errorf("%s", r.Result)
	}
	seen := modern.Received(mcp.CallTool)
	if p := string(seen[len(seen)-1].Params); strings.Contains(p, mcp.TasksExtension) || strings.Contains(p, `"task"`) || !strings.Contains(p, `"io.example/x":{"a":1}`) {
		t.Errorf("the server receives %s", p)
	}
	unknown("modern", c)

	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":` + capabilities + `}`
	if a, err := f.Relay(t.Context(), "legacy", nil, session.Request{ID: json.RawMessage("1"), Method: mcp.Discover, Params: json.RawMessage("{" + meta + "}")}); err != nil ||
		!strings.Contains(string(a.Result), `"capabilities":{"tools":{"listChanged":true}}`) {
		t.Errorf("%s %v", a.Result, err)
	}
	if r := call("legacy", nil, `{"name":"work","arguments":{"id":"a"},"task":{"ttl":1},`+meta+`}`); !strings.Contains(string(r.Result), `"told":"at once"`) {
		t.Errorf("%s", r.Result)
	}
	for _, m := range legacy.Received(mcp.Initialize) {
		if p := string(m.Params); strings.Contains(p, `"tasks":`) {
			t.Errorf("the server receives %s", p)
		}
	}
	unknown("legacy", nil)
}

// TestNamesWithEscapes: a slash in a name is often escaped; it is the same name.
func TestNamesWithEscapes(t *testing.T) {
	t.Parallel()
	params := json.RawMessage(`{"_meta":{"io.modelcontextprotocol\/clientCapabilities":{"extensions":{"io.modelcontextprotocol\/tasks":{}}}}}`)
	if got := string(mcp.RemoveTasksExtension(params)); strings.Contains(got, "tasks") {
		t.Errorf("it supports tasks: %s", got)
	}
}
