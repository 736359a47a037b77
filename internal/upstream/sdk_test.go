package upstream

import (
	"context"
	"net/http"
	"os"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpproxy/internal/mcptest"
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
