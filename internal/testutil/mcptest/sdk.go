package mcptest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// SDKVar makes a test binary that calls SDKChild a stdio server of the official
// SDK.
const SDKVar = "MCPTEST_SDK"

// SDKChild runs an SDK server over stdio and ends the process, if SDKVar is set.
func SDKChild() {
	if os.Getenv(SDKVar) == "" {
		return
	}
	if err := SDK().Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

type sdkInput struct {
	Text  string `json:"text"`
	Steps int    `json:"steps,omitempty"`
}

// SDK returns a server of the official SDK. It has the tool echo, which reports
// progress, and the tool wait, which ends only when it is cancelled.
func SDK() *mcp.Server {
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

// SDKHTTP returns the addresses of an SDK server over streamable HTTP, by how it
// answers.
func SDKHTTP(t testing.TB) map[string]string {
	s := SDK()
	serve := func(opt *mcp.StreamableHTTPOptions) string {
		return Serve(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, opt)).URL
	}
	return map[string]string{
		"sessions":  serve(nil),
		"json":      serve(&mcp.StreamableHTTPOptions{JSONResponse: true}),
		"stateless": serve(&mcp.StreamableHTTPOptions{Stateless: true}),
	}
}

// SDKOverSSE returns the address of an SDK server over the older transport, with
// a tool held that tells when it was cancelled. drop ends its streams.
func SDKOverSSE(t testing.TB) (url string, cancelled chan struct{}, drop func()) {
	cancelled = make(chan struct{}, 1)
	handler := mcp.NewSSEHandler(func(*http.Request) *mcp.Server {
		server := SDK()
		mcp.AddTool(server, &mcp.Tool{Name: "held"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			<-ctx.Done()
			cancelled <- struct{}{}
			return nil, nil, ctx.Err()
		})
		return server
	}, nil)
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s.URL + "/sse", cancelled, s.CloseClientConnections
}
