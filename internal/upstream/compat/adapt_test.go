//go:build unix

package compat

import (
	"encoding/json"
	"sync/atomic"
	"testing"

	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/testutil/mcptest"
)

// TestNoCallWithoutAPermit checks that on every Surface, a tool call without a decision reaches no server, neither as a
// single request nor in a session.
func TestNoCallWithoutAPermit(t *testing.T) {
	t.Parallel()
	var ran atomic.Int64
	server := func(o mcptest.Options) *mcptest.Server {
		return mcptest.New(o, mcptest.Tool{Definition: mcptest.ToolDefinition("count"), Handle: func(*mcptest.Call) (json.RawMessage, error) {
			ran.Add(1)
			return json.RawMessage(`{"content":[]}`), nil
		}})
	}
	f := newFixture(t)
	shared := httpSpec(t, "shared", server(mcptest.Options{}))
	shared.Shared = true
	f.ApplySpecs([]Spec{httpSpec(t, "legacy", server(mcptest.Options{})), shared, httpSpec(t, "modern", server(mcptest.Options{Modern: true}))})
	caller := &auth.Caller{Actor: auth.Actor{Kind: auth.Agent}}
	params := json.RawMessage(`{"name":"count","arguments":{},"_meta":{"` + mcp.MetaVersion + `":"` + mcp.Modern + `","` + mcp.MetaCapabilities + `":{}}}`)
	for _, name := range []string{"legacy", "shared", "modern"} {
		f.untilReady(t, name, 0)
		surface := f.ServerEndpoint(name)
		s, a, err := surface.OpenSession(t.Context(), &session.Request{ID: json.RawMessage(`"i"`), Method: mcp.Initialize, Params: json.RawMessage(hello), Caller: caller})
		if err != nil || s == nil {
			t.Fatalf("%s: no session: %v %+v", name, err, a)
		}
		if err := s.NotifyServer(t.Context(), mcp.Initialized, nil); err != nil {
			t.Fatal(err)
		}
		agreed := func() error { return nil }
		for what, way := range map[string]session.Doer{"by itself": surface, "in a session": s} {
			for why, judged := range map[string]session.ToolCallPermit{
				"without proof": {}, "with the proof for another tool": session.NewToolCallPermit("other", nil, agreed), "with half a proof": session.NewToolCallPermit("count", nil, nil),
			} {
				for form, r := range map[string]session.Request{"as it is": {Params: params}, "in parts": {Call: &session.ToolCall{Tool: "count"}}} {
					r.ID, r.Method, r.Caller, r.Permit = json.RawMessage("1"), mcp.CallTool, caller, judged
					if reply, err := way.Do(t.Context(), &r); err == nil || ran.Load() != 0 {
						t.Errorf("%s, %s, %s, %s: %+v, ran %d times", name, what, why, form, reply, ran.Load())
					}
				}
			}
		}
		if err := s.NotifyServer(t.Context(), mcp.CallTool, params); err == nil || ran.Load() != 0 {
			t.Errorf("%s: a notification: %v, ran %d times", name, err, ran.Load())
		}
		for what, way := range map[string]session.Doer{"by itself": surface, "in a session": s} {
			r := &session.Request{ID: json.RawMessage("1"), Method: mcp.CallTool, Params: params, Caller: caller, Permit: session.NewToolCallPermit("count", nil, agreed)}
			if reply, err := way.Do(t.Context(), r); err != nil || reply.Error != nil || ran.Swap(0) != 1 {
				t.Errorf("%s, %s, with proof: %+v %v", name, what, reply, err)
			}
		}
		s.Close()
	}
}
