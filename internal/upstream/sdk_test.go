//go:build unix

package upstream

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	protocol "mcpproxy/internal/mcp"

	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/mcptest"
	"mcpproxy/internal/rawjson"
)

// sdkVar makes the test binary a stdio server of the official SDK.
const sdkVar = "UPSTREAM_TEST_SDK"

func sdkChild() {
	if os.Getenv(sdkVar) == "" {
		return
	}
	if err := sdkServer().Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

type sdkInput struct {
	Text  string `json:"text"`
	Steps int    `json:"steps,omitempty"`
}

// sdkServer has the tool echo, which reports progress, and the tool wait,
// which ends only when it is cancelled.
func sdkServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "sdk", Version: "1"}, &mcp.ServerOptions{Instructions: "be nice"})
	mcp.AddTool(s, &mcp.Tool{Name: "echo"}, func(ctx context.Context, req *mcp.CallToolRequest, in sdkInput) (*mcp.CallToolResult, any, error) {
		for i := range in.Steps {
			if token := req.Params.GetProgressToken(); token != nil {
				req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: float64(i)})
			}
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Text}}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "wait"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		<-ctx.Done()
		return nil, nil, ctx.Err()
	})
	return s
}

func sdkHandler(s *mcp.Server, opt *mcp.StreamableHTTPOptions) http.Handler {
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, opt)
}

func sdkSpecs(t *testing.T) map[string]Spec {
	command, _ := mcptest.Command(t, "")
	s := sdkServer()
	serve := func(opt *mcp.StreamableHTTPOptions) Spec {
		return Spec{Transport: HTTP, URL: mcptest.Serve(t, sdkHandler(s, opt)).URL}
	}
	return map[string]Spec{
		"stdio":     {Transport: Stdio, Command: command, Env: map[string]string{sdkVar: "1"}},
		"sessions":  serve(nil),
		"json":      serve(&mcp.StreamableHTTPOptions{JSONResponse: true}),
		"stateless": serve(&mcp.StreamableHTTPOptions{Stateless: true}),
	}
}

// TestOfficialSDK: servers of the official SDK, over each of its transports.
func TestOfficialSDK(t *testing.T) {
	t.Parallel()
	// What speaks both is used in the modern way.
	revision := map[string]string{"stdio": protocol.Modern, "sessions": protocol.Legacy, "json": protocol.Legacy, "stateless": protocol.Modern}
	for name, spec := range sdkSpecs(t) {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			spec.Name = name
			f.Apply([]Spec{spec})
			f.untilReady(t, name, 0)
			if s, _ := f.State(name); s.ProtocolVersion != revision[name] || s.Instructions != "be nice" {
				t.Errorf("state %+v", s)
			}
			if got := f.lastTools(name); !slices.Equal(got, []string{"echo", "wait"}) {
				t.Errorf("tools %q", got)
			}
			var progress []string
			r, err := f.Call(t.Context(), name, Call{Tool: "echo", Arguments: json.RawMessage(`{"text":"hello","steps":3}`),
				Meta: json.RawMessage(`{"progressToken":7}`),
				Notify: func(_ string, params json.RawMessage) {
					progress = append(progress, string(rawjson.Find(params, "progressToken"))+string(rawjson.Find(params, "progress")))
				}})
			if err != nil || string(rawjson.Find(r.Result, "content")) != `[{"type":"text","text":"hello"}]` {
				t.Errorf("result %s, error %v", r.Result, err)
			}
			if want := []string{"70", "71", "72"}; name != "json" && !slices.Equal(progress, want) {
				t.Errorf("progress %q", progress)
			}
			r, err = f.call(name, "nope", "{}")
			if err != nil || r.Error == nil || r.Error.Code != jsonrpc.CodeInvalidParams {
				t.Errorf("unknown tool: reply %+v, error %v", r, err)
			}
		})
	}
}

// TestOfficialSDKListChanged: the server's own stream, and the pipe, tell of
// new tools.
func TestOfficialSDKListChanged(t *testing.T) {
	t.Parallel()
	s := sdkServer()
	h := mcptest.Serve(t, sdkHandler(s, nil)) // stops after the Set
	f := newFixture(t)
	f.Apply([]Spec{{Name: "s", Transport: HTTP, URL: h.URL}})
	f.untilReady(t, "s", 0)
	mcp.AddTool(s, &mcp.Tool{Name: "late"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{}, nil, nil
	})
	f.until(t, "the new tool", func() bool { return slices.Contains(f.lastTools("s"), "late") })
}
