//go:build unix

package upstream

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	protocol "mcpproxy/internal/mcp"

	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/testutil/mcptest"
)

// sdkSpecs are servers of the official SDK over each transport.
func sdkSpecs(t *testing.T) map[string]Spec {
	command, _ := mcptest.ChildCommand(t, "")
	specs := map[string]Spec{"stdio": {Transport: Stdio, Command: command, Env: map[string]string{mcptest.SDKVar: "1"}}}
	for name, url := range mcptest.ServeSDKHTTP(t) {
		specs[name] = Spec{Transport: HTTP, URL: url}
	}
	return specs
}

// TestOfficialSDK: servers of the official SDK, over each of its transports.
func TestOfficialSDK(t *testing.T) {
	t.Parallel()
	// A server that supports both protocols is used with the modern one.
	revision := map[string]string{"stdio": protocol.Modern, "sessions": protocol.Legacy, "json": protocol.Legacy, "stateless": protocol.Modern}
	for name, spec := range sdkSpecs(t) {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			spec.Name = name
			f.ApplySpecs([]Spec{spec})
			f.untilReady(t, name, 0)
			if s, _ := f.State(name); s.ProtocolVersion != revision[name] || s.Instructions != "be nice" {
				t.Errorf("state %+v", s)
			}
			if got := f.listedTools(name); !slices.Equal(got, []string{"echo", "wait"}) {
				t.Errorf("tools %q", got)
			}
			var progress []string
			r, err := f.Call(t.Context(), name, Call{Tool: "echo", Arguments: json.RawMessage(`{"text":"hello","steps":3}`),
				Meta: json.RawMessage(`{"progressToken":7}`),
				Notify: func(_ string, params json.RawMessage) {
					progress = append(progress, string(wirejson.Find(params, "progressToken"))+string(wirejson.Find(params, "progress")))
				}})
			if err != nil || string(wirejson.Find(r.Result, "content")) != `[{"type":"text","text":"hello"}]` {
				t.Errorf("result %s, error %v", r.Result, err)
			}
			if want := []string{"70", "71", "72"}; name != "json" && !slices.Equal(progress, want) {
				t.Errorf("progress %q", progress)
			}
			r, err = f.call(name, "nope", "{}")
			if err != nil || r.Error == nil || r.Error.Code != wirejson.CodeInvalidParams {
				t.Errorf("unknown tool: reply %+v, error %v", r, err)
			}
		})
	}
}

// TestOfficialSDKListChanged: the server announces new tools on its own stream or on the pipe.
func TestOfficialSDKListChanged(t *testing.T) {
	t.Parallel()
	s := mcptest.NewSDKServer()
	h := mcptest.Serve(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)) // stops after the Set
	f := newFixture(t)
	f.ApplySpecs([]Spec{{Name: "s", Transport: HTTP, URL: h.URL}})
	f.untilReady(t, "s", 0)
	mcp.AddTool(s, &mcp.Tool{Name: "late"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{}, nil, nil
	})
	f.until(t, "the new tool", func() bool { return slices.Contains(f.lastTools("s"), "late") })
}
