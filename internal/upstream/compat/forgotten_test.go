//go:build unix

package compat

import (
	"encoding/json"
	"strings"
	"testing"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/testutil/mcptest"
)

// TestForgottenSessionsOfClients: a server has forgotten sessions of single clients. A modern client does not notice
// it. A legacy client must open a new session.
func TestForgottenSessionsOfClients(t *testing.T) {
	t.Parallel()
	s := mcptest.New(mcptest.Options{NoStream: true, OldStatus: true}, mcptest.SampleTools()...)
	f := newFixture(t)
	f.ApplySpecs([]Spec{httpSpec(t, "s", s)})
	f.untilReady(t, "s", 0)
	modern := func() {
		t.Helper()
		r, err := f.Call(t.Context(), "s", Call{Tool: "echo", Passed: &Passed{Request: session.Request{ID: json.RawMessage("1"), Caller: named("me"), Method: mcp.CallTool,
			Params: json.RawMessage(`{"name":"echo","arguments":{"a":1},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}`)}}})
		if err != nil || !strings.Contains(string(r.Result), `"a":1`) {
			t.Errorf("a modern client: %s %v", r.Result, err)
		}
	}
	modern()
	legacy, _, err := f.Converse(t.Context(), "s", session.Request{ID: json.RawMessage("1"), Method: mcp.Initialize, Params: json.RawMessage(hello)})
	if err != nil {
		t.Fatal(err)
	}
	defer legacy.Close()
	s.DropSessions()
	modern()
	_, err = legacy.Do(t.Context(), &session.Request{ID: json.RawMessage("2"), Method: mcp.ListTools})
	if p := wantCode(t, err, problem.UpstreamError); !strings.Contains(p.Hint, "open a new session") {
		t.Errorf("a legacy client: %v, %s", p, p.Hint)
	}
	<-legacy.Done()
}
