package mcptest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// SDKVar makes a test binary that calls RunIfSDKChild a stdio server of the official Go SDK.
const SDKVar = "MCPTEST_SDK"

// RunIfSDKChild runs NewSDKServer over stdio and ends the process, if SDKVar is set.
func RunIfSDKChild() {
	if os.Getenv(SDKVar) == "" {
		return
	}
	if err := NewSDKServer().Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

type sdkEchoInput struct {
	Text  string `json:"text"`
	Steps int    `json:"steps,omitempty"`
}

// NewSDKServer returns a server of the official Go SDK. It has the tool echo, which reports
// progress, and the tool wait, which ends only when it is cancelled.
func NewSDKServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "sdk", Version: "1"}, &mcp.ServerOptions{Instructions: "be nice"})
	mcp.AddTool(s, &mcp.Tool{Name: "echo"}, func(ctx context.Context, req *mcp.CallToolRequest, in sdkEchoInput) (*mcp.CallToolResult, any, error) {
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

// ServeSDKHTTP serves NewSDKServer over streamable HTTP and returns the addresses by kind of
// response.
func ServeSDKHTTP(t testing.TB) map[string]string {
	s := NewSDKServer()
	serve := func(opt *mcp.StreamableHTTPOptions) string {
		return Serve(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, opt)).URL
	}
	return map[string]string{
		"sessions":  serve(nil),
		"json":      serve(&mcp.StreamableHTTPOptions{JSONResponse: true}),
		"stateless": serve(&mcp.StreamableHTTPOptions{Stateless: true}),
	}
}

// ServeSDKOverSSE returns the address of the server of NewSDKServer over the HTTP+SSE transport of the legacy protocol, with
// a tool held, which ends only when it is cancelled. held receives a value when the tool starts and
// another when it is cancelled. drop ends the streams.
func ServeSDKOverSSE(t testing.TB) (url string, held chan struct{}, drop func()) {
	held = make(chan struct{}, 2)
	handler := mcp.NewSSEHandler(func(*http.Request) *mcp.Server {
		server := NewSDKServer()
		mcp.AddTool(server, &mcp.Tool{Name: "held"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			held <- struct{}{}
			select {
			case <-ctx.Done():
				held <- struct{}{}
			case <-t.Context().Done(): // otherwise the server never closes
			}
			return nil, nil, context.Canceled
		})
		return server
	}, nil)
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s.URL + "/sse", held, s.CloseClientConnections
}
